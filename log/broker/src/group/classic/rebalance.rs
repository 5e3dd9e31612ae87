//! The course of a rebalance, and what time does to a group.

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::{Action, AfterStore, ClassicGroup, GroupState, JoinAnswer, SyncAnswer};
use crate::coordinator::Now;

/// The part of a rebalance in which the members join.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinPhase {
    /// When it ends whoever has joined, in monotonic ms.
    deadline: u64,
    /// Set when the group was empty: it ends at the deadline, not as soon as all have joined, since nobody knows how many
    /// are still to come. This is by how many ms the deadline may yet be put off for those who do.
    extension_ms: Option<u64>,
    /// Whether a member has come since the deadline was set.
    pub(super) has_new_member: bool,
}

impl ClassicGroup {
    /// Starts a rebalance if none is on, and completes it if nothing is missing.
    pub(super) fn rebalance_or_complete(&mut self, now: Now, actions: &mut Vec<Action>) {
        match self.state {
            GroupState::Dead => return,
            GroupState::PreparingRebalance => {}
            GroupState::Empty | GroupState::CompletingRebalance | GroupState::Stable => {
                self.prepare_rebalance(now, actions);
            }
        }
        self.complete_if_joined(now, actions);
    }

    fn prepare_rebalance(&mut self, now: Now, actions: &mut Vec<Action>) {
        self.fail_syncs(ErrorCode::RebalanceInProgress, now, actions);
        self.sync_deadline = None;
        let rebalance_timeout_ms = self.rebalance_timeout_ms();
        let delay_ms = self.limits.initial_rebalance_delay_ms;
        self.join_phase = Some(if self.state == GroupState::Empty && delay_ms > 0 {
            let wait_ms = delay_ms.min(rebalance_timeout_ms);
            JoinPhase {
                deadline: now.monotonic_ms + wait_ms,
                extension_ms: Some(rebalance_timeout_ms - wait_ms),
                has_new_member: false,
            }
        } else {
            JoinPhase {
                deadline: now.monotonic_ms + rebalance_timeout_ms,
                extension_ms: None,
                has_new_member: false,
            }
        });
        self.enter(GroupState::PreparingRebalance, now);
    }

    /// Completes the join phase if nobody is missing.
    pub(super) fn complete_if_joined(&mut self, now: Now, actions: &mut Vec<Action>) {
        let Some(phase) = self.join_phase else { return };
        let all_joined =
            self.pending_members.is_empty() && self.members.values().all(|m| m.joining.is_some());
        if all_joined && phase.extension_ms.is_none() {
            self.complete_join(now, actions);
        }
    }

    /// The deadline of the join phase has passed.
    fn end_join_phase(&mut self, now: Now, actions: &mut Vec<Action>) {
        let Some(phase) = &mut self.join_phase else { return };
        if let Some(extension_ms) = phase.extension_ms
            && phase.has_new_member
            && extension_ms > 0
        {
            let wait_ms = self.limits.initial_rebalance_delay_ms.min(extension_ms);
            phase.deadline = now.monotonic_ms + wait_ms;
            phase.extension_ms = Some(extension_ms - wait_ms);
            phase.has_new_member = false;
            return;
        }
        let late: Vec<ByteString> = self
            .members
            .values()
            .filter(|m| m.joining.is_none() && m.instance_id.is_none())
            .map(|m| m.id.clone())
            .collect();
        for member_id in late {
            self.drop_member(&member_id, actions);
        }
        if !self.members.is_empty() && !self.elect_joined_leader() {
            // Only static members are left, and none of them has come back yet: wait on, their sessions will end it.
            let wait_ms = self.rebalance_timeout_ms();
            if let Some(phase) = &mut self.join_phase {
                phase.deadline = now.monotonic_ms + wait_ms.max(1);
                phase.extension_ms = None;
            }
            return;
        }
        self.complete_join(now, actions);
    }

    /// Makes sure that the leader is somebody who has joined.
    fn elect_joined_leader(&mut self) -> bool {
        let has_joined = |id: &ByteString| self.members.get(id).is_some_and(|m| m.joining.is_some());
        if self.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        let Some(joined) = self.members.values().find(|m| m.joining.is_some()) else { return false };
        self.leader = Some(joined.id.clone());
        true
    }

    /// Starts the next generation with the members that have joined.
    fn complete_join(&mut self, now: Now, actions: &mut Vec<Action>) {
        self.join_phase = None;
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        if self.members.is_empty() {
            self.protocol = None;
            self.leader = None;
            self.enter(GroupState::Empty, now);
            actions.push(Action::Store { metadata: self.snapshot(None), then: AfterStore::Nothing });
            return;
        }
        self.protocol = self.choose_protocol();
        self.enter(GroupState::CompletingRebalance, now);
        self.sync_deadline = Some(now.monotonic_ms + self.rebalance_timeout_ms());
        let ids: Vec<ByteString> = self.members.keys().cloned().collect();
        for id in ids {
            let answer = self.current_answer(&id);
            let member = self.members.get_mut(&id).expect("the ids were taken from the members");
            member.has_synced = false;
            // A static member that has not come back yet keeps its place, and its session runs on.
            let Some(ticket) = member.joining.take() else { continue };
            member.is_new = false;
            self.renew_session(&id, now);
            actions.push(Action::Join(ticket, answer));
        }
    }

    /// Turns away every SyncGroup that waits, and takes back what had been assigned.
    pub(super) fn fail_syncs(&mut self, error: ErrorCode, now: Now, actions: &mut Vec<Action>) {
        if self.state != GroupState::CompletingRebalance {
            return;
        }
        let mut renewed = Vec::new();
        for member in self.members.values_mut() {
            member.assignment.clear();
            if let Some(ticket) = member.syncing.take() {
                actions.push(Action::Sync(ticket, SyncAnswer::error(error)));
                renewed.push(member.id.clone());
            }
        }
        for member_id in renewed {
            self.renew_session(&member_id, now);
        }
    }

    /// Takes a member out and answers what waits of it; the caller sees to the rebalance.
    pub(super) fn drop_member(&mut self, member_id: &ByteString, actions: &mut Vec<Action>) {
        let Some(mut member) = self.members.remove(member_id) else { return };
        self.supporters.remove(&member.protocols);
        if let Some(instance) = &member.instance_id {
            self.static_members.remove(instance);
        }
        if let Some(ticket) = member.joining.take() {
            actions
                .push(Action::Join(ticket, JoinAnswer::error(ErrorCode::UnknownMemberId, member.id.clone())));
        }
        if let Some(ticket) = member.syncing.take() {
            actions.push(Action::Sync(ticket, SyncAnswer::error(ErrorCode::UnknownMemberId)));
        }
        if self.is_leader(member_id) {
            let joined = self.members.values().find(|m| m.joining.is_some());
            self.leader = joined.or_else(|| self.members.values().next()).map(|m| m.id.clone());
        }
    }

    /// Takes a member out and lets the others rebalance without it.
    pub(super) fn remove_member(&mut self, member_id: &ByteString, now: Now, actions: &mut Vec<Action>) {
        self.drop_member(member_id, actions);
        self.rebalance_or_complete(now, actions);
    }

    /// The next moment in monotonic ms at which [`ClassicGroup::expire`] has something to do, if nothing
    /// else happens before.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let sessions = self.members.values().filter_map(|m| m.deadline());
        let pending = self.pending_members.values().copied();
        let phases = self.join_phase.map(|phase| phase.deadline).into_iter().chain(self.sync_deadline);
        sessions.chain(pending).chain(phases).min()
    }

    /// Gives up whoever has let a deadline pass, and ends phases whose time is up.
    pub(crate) fn expire(&mut self, now: Now, actions: &mut Vec<Action>) {
        if self.state == GroupState::Dead {
            return;
        }
        let pending_before = self.pending_members.len();
        self.pending_members.retain(|_, lapses| *lapses > now.monotonic_ms);
        if self.pending_members.len() < pending_before {
            self.complete_if_joined(now, actions);
        }
        let lapsed: Vec<ByteString> = self
            .members
            .values()
            .filter(|m| m.deadline().is_some_and(|deadline| deadline <= now.monotonic_ms))
            .map(|m| m.id.clone())
            .collect();
        for member_id in lapsed {
            self.remove_member(&member_id, now, actions);
        }
        if self.sync_deadline.is_some_and(|deadline| deadline <= now.monotonic_ms) {
            self.end_sync_phase(now, actions);
        }
        if self.join_phase.is_some_and(|phase| phase.deadline <= now.monotonic_ms) {
            self.end_join_phase(now, actions);
        }
    }

    /// Removes whoever has joined the generation but never asked for its assignment.
    fn end_sync_phase(&mut self, now: Now, actions: &mut Vec<Action>) {
        self.sync_deadline = None;
        let silent: Vec<ByteString> =
            self.members.values().filter(|m| !m.has_synced).map(|m| m.id.clone()).collect();
        if silent.is_empty() {
            return;
        }
        for member_id in &silent {
            self.drop_member(member_id, actions);
        }
        self.rebalance_or_complete(now, actions);
    }
}
