//! JoinGroup.

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::{
    Action, AfterStore, ClassicGroup, GroupState, JoinAnswer, JoinedMember, Member, Protocol, SyncAnswer,
    Ticket,
};
use crate::coordinator::Now;

/// A JoinGroup request.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) ticket: Ticket,
    /// Empty for a member that has no id yet.
    pub(crate) member_id: ByteString,
    pub(crate) instance_id: Option<ByteString>,
    pub(crate) client_id: ByteString,
    pub(crate) client_host: ByteString,
    pub(crate) session_timeout_ms: i32,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) protocol_type: ByteString,
    /// In order of preference.
    pub(crate) protocols: Vec<Protocol>,
    /// Whether a dynamic member must come back with the id it is given before it counts (KIP-394, JoinGroup v4+).
    pub(crate) needs_known_id: bool,
    /// Whether the client understands `skip_assignment` (KIP-814, JoinGroup v9+).
    pub(crate) can_skip_assignment: bool,
    /// The id that the member gets if it has none.
    pub(crate) fresh_member_id: ByteString,
}

impl ClassicGroup {
    /// Takes a JoinGroup. Its answer may come at once, or with a later call's actions.
    pub(crate) fn join(&mut self, request: Join, now: Now, actions: &mut Vec<Action>) {
        if let Err(error) = self.check_join(&request) {
            actions.push(Action::Join(request.ticket, JoinAnswer::error(error, request.member_id)));
        } else if !request.member_id.is_empty() {
            self.join_known(request, now, actions);
        } else if let Some(instance) = &request.instance_id {
            match self.static_members.get(instance).cloned() {
                Some(old_id) => self.return_static(&old_id, request, now, actions),
                None => self.admit(request.fresh_member_id.clone(), request, now, actions),
            }
        } else if request.needs_known_id {
            let lapses = now.monotonic_ms + u64::try_from(request.session_timeout_ms).unwrap_or(0);
            self.pending_members.insert(request.fresh_member_id.clone(), lapses);
            let answer = JoinAnswer::error(ErrorCode::MemberIdRequired, request.fresh_member_id);
            actions.push(Action::Join(request.ticket, answer));
        } else {
            self.admit(request.fresh_member_id.clone(), request, now, actions);
        }
    }

    fn check_join(&self, request: &Join) -> Result<(), ErrorCode> {
        let session = request.session_timeout_ms;
        if session < self.limits.min_session_timeout_ms || session > self.limits.max_session_timeout_ms {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        if self.state == GroupState::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        let is_here = self.members.contains_key(&request.member_id)
            || self.pending_members.contains_key(&request.member_id)
            || request
                .instance_id
                .as_ref()
                .is_some_and(|instance| self.static_members.contains_key(instance));
        if !is_here && self.members.len() + self.pending_members.len() >= self.limits.max_members {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        if !self.supports_any(request) {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        Ok(())
    }

    /// Whether the request has the group's protocol type and a protocol in common with all members.
    fn supports_any(&self, request: &Join) -> bool {
        if self.members.is_empty() {
            return !request.protocol_type.is_empty() && !request.protocols.is_empty();
        }
        self.protocol_type.as_ref() == Some(&request.protocol_type)
            && request.protocols.iter().any(|protocol| self.is_candidate(protocol))
    }

    /// A member that has an id: one that was only given out, or that of a member.
    fn join_known(&mut self, request: Join, now: Now, actions: &mut Vec<Action>) {
        if request.instance_id.is_none() && self.pending_members.contains_key(&request.member_id) {
            return self.admit(request.member_id.clone(), request, now, actions);
        }
        if let Err(error) = self.check_member(&request.member_id, request.instance_id.as_deref()) {
            actions.push(Action::Join(request.ticket, JoinAnswer::error(error, request.member_id)));
            return;
        }
        let matches = self.members[&request.member_id].protocols == request.protocols;
        let is_leader = self.is_leader(&request.member_id);
        match self.state {
            // The member has not got the answer that completed the rebalance, so it gets it again.
            GroupState::CompletingRebalance if matches => {
                let answer = self.current_answer(&request.member_id);
                self.renew_session(&request.member_id, now);
                actions.push(Action::Join(request.ticket, answer));
            }
            // A follower that lost its answer. The leader's request means that it wants to assign anew.
            GroupState::Stable if matches && !is_leader => {
                let answer = self.current_answer(&request.member_id);
                self.renew_session(&request.member_id, now);
                actions.push(Action::Join(request.ticket, answer));
            }
            GroupState::PreparingRebalance | GroupState::CompletingRebalance | GroupState::Stable => {
                let member_id = request.member_id.clone();
                self.update_member(&member_id, &request);
                self.wait_in_join(&member_id, request.ticket, actions);
                self.rebalance_or_complete(now, actions);
            }
            GroupState::Empty | GroupState::Dead => {
                let answer = JoinAnswer::error(ErrorCode::UnknownMemberId, request.member_id);
                actions.push(Action::Join(request.ticket, answer));
            }
        }
    }

    /// Takes in a new member and waits for the others.
    fn admit(&mut self, member_id: ByteString, request: Join, now: Now, actions: &mut Vec<Action>) {
        self.pending_members.remove(&member_id);
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        if let Some(instance) = &request.instance_id {
            self.static_members.insert(instance.clone(), member_id.clone());
        }
        let member = Member {
            id: member_id.clone(),
            instance_id: request.instance_id.clone(),
            client_id: request.client_id.clone(),
            client_host: request.client_host.clone(),
            session_timeout_ms: 0,
            rebalance_timeout_ms: 0,
            protocols: Vec::new(),
            assignment: Bytes::new(),
            is_new: true,
            joining: None,
            syncing: None,
            has_synced: false,
            session_deadline: 0,
        };
        self.members.insert(member_id.clone(), member);
        self.update_member(&member_id, &request);
        self.renew_session(&member_id, now);
        self.leader.get_or_insert_with(|| member_id.clone());
        if let Some(phase) = &mut self.join_phase {
            phase.has_new_member = true;
        }
        self.wait_in_join(&member_id, request.ticket, actions);
        self.rebalance_or_complete(now, actions);
    }

    fn update_member(&mut self, member_id: &str, request: &Join) {
        let member = self.members.get_mut(member_id).expect("the caller has looked the member up");
        member.session_timeout_ms = u64::try_from(request.session_timeout_ms).unwrap_or(0);
        member.rebalance_timeout_ms = match u64::try_from(request.rebalance_timeout_ms) {
            Ok(timeout_ms) => timeout_ms,
            // JoinGroup v0 has no rebalance timeout: the session's stands for it.
            Err(_) => member.session_timeout_ms,
        };
        self.supporters.remove(&member.protocols);
        self.supporters.add(&request.protocols);
        member.protocols = request.protocols.clone();
        member.client_id = request.client_id.clone();
        member.client_host = request.client_host.clone();
    }

    /// Lets a JoinGroup of `member_id` wait; one that already waits is a lost one and is turned away.
    fn wait_in_join(&mut self, member_id: &str, ticket: Ticket, actions: &mut Vec<Action>) {
        let member = self.members.get_mut(member_id).expect("the caller has looked the member up");
        if let Some(lost) = member.joining.replace(ticket) {
            let answer = JoinAnswer::error(ErrorCode::RebalanceInProgress, member.id.clone());
            actions.push(Action::Join(lost, answer));
        }
    }

    /// A static member that has started anew takes its old place under a new id; the old id is fenced.
    fn return_static(&mut self, old_id: &ByteString, request: Join, now: Now, actions: &mut Vec<Action>) {
        let was_leader = self.is_leader(old_id);
        let new_id = request.fresh_member_id.clone();
        self.replace_static(old_id, &new_id, actions);
        self.update_member(&new_id, &request);
        self.renew_session(&new_id, now);
        if self.state != GroupState::Stable || self.choose_protocol() != self.protocol {
            self.wait_in_join(&new_id, request.ticket, actions);
            return self.rebalance_or_complete(now, actions);
        }
        // Nobody else needs to notice. A leader that cannot be told to skip the assignment must not learn that
        // it leads, so it is told its old id.
        let mut answer = self.current_answer(&new_id);
        if was_leader && request.can_skip_assignment {
            answer.skip_assignment = true;
        } else if was_leader {
            answer.leader = old_id.clone();
            answer.members.clear();
        }
        actions.push(Action::Store {
            metadata: self.snapshot(None),
            then: AfterStore::Return { ticket: request.ticket, answer },
        });
    }

    fn replace_static(&mut self, old_id: &ByteString, new_id: &ByteString, actions: &mut Vec<Action>) {
        let mut member = self.members.remove(old_id).expect("static members are members");
        if let Some(ticket) = member.joining.take() {
            let answer = JoinAnswer::error(ErrorCode::FencedInstanceId, old_id.clone());
            actions.push(Action::Join(ticket, answer));
        }
        if let Some(ticket) = member.syncing.take() {
            actions.push(Action::Sync(ticket, SyncAnswer::error(ErrorCode::FencedInstanceId)));
        }
        member.id = new_id.clone();
        let instance = member.instance_id.clone().expect("only static members are replaced");
        self.static_members.insert(instance, new_id.clone());
        self.members.insert(new_id.clone(), member);
        if self.is_leader(old_id) {
            self.leader = Some(new_id.clone());
        }
    }

    /// What `member_id` is told of the generation that stands.
    pub(super) fn current_answer(&self, member_id: &ByteString) -> JoinAnswer {
        let is_leader = self.is_leader(member_id);
        JoinAnswer {
            error: ErrorCode::None,
            member_id: member_id.clone(),
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            members: if is_leader { self.joined_members() } else { Vec::new() },
        }
    }

    fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let describe = |member: &Member| JoinedMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol),
        };
        self.members.values().map(describe).collect()
    }
}
