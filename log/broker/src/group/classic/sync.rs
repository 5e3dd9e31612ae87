//! SyncGroup, and what follows when the leader's assignment has been written.

use std::collections::BTreeMap;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::{Action, AfterStore, ClassicGroup, GroupState, JoinAnswer, SyncAnswer, Ticket};
use crate::coordinator::Now;

/// A SyncGroup request.
#[derive(Clone, Debug)]
pub(crate) struct Sync {
    pub(crate) ticket: Ticket,
    pub(crate) member_id: ByteString,
    pub(crate) instance_id: Option<ByteString>,
    pub(crate) generation: i32,
    /// What the client takes the group's protocol type to be (KIP-559, SyncGroup v5+).
    pub(crate) protocol_type: Option<ByteString>,
    /// What the client takes the group's protocol to be (KIP-559, SyncGroup v5+).
    pub(crate) protocol: Option<ByteString>,
    /// From the leader: what each member gets. Empty from the others.
    pub(crate) assignments: BTreeMap<ByteString, Bytes>,
}

impl ClassicGroup {
    /// Takes a SyncGroup. Its answer may come at once, or with a later call's actions.
    pub(crate) fn sync(&mut self, request: Sync, now: Now, actions: &mut Vec<Action>) {
        if let Err(error) = self.check_sync(&request) {
            actions.push(Action::Sync(request.ticket, SyncAnswer::error(error)));
            return;
        }
        let is_leader = self.is_leader(&request.member_id);
        let is_stable = self.state == GroupState::Stable;
        let member = self.members.get_mut(&request.member_id).expect("the member has been checked");
        member.has_synced = true;
        if is_stable {
            let assignment = member.assignment.clone();
            self.renew_session(&request.member_id, now);
            actions.push(Action::Sync(request.ticket, self.assigned(assignment)));
            return;
        }
        if let Some(lost) = member.syncing.replace(request.ticket) {
            actions.push(Action::Sync(lost, SyncAnswer::error(ErrorCode::RebalanceInProgress)));
        }
        if is_leader && self.assigning != Some(self.generation) {
            self.assigning = Some(self.generation);
            let mut assignments = request.assignments;
            assignments.retain(|member_id, _| self.members.contains_key(member_id));
            actions.push(Action::Store {
                metadata: self.snapshot(Some(&assignments)),
                then: AfterStore::Assign { generation: self.generation, assignments },
            });
        }
    }

    fn check_sync(&self, request: &Sync) -> Result<(), ErrorCode> {
        if self.state == GroupState::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        self.check_member(&request.member_id, request.instance_id.as_deref())?;
        if request.generation != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let differs =
            |given: &Option<ByteString>, ours: &Option<ByteString>| given.is_some() && given != ours;
        if differs(&request.protocol_type, &self.protocol_type) || differs(&request.protocol, &self.protocol)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        match self.state {
            GroupState::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
            GroupState::CompletingRebalance | GroupState::Stable => Ok(()),
            GroupState::Empty | GroupState::Dead => Err(ErrorCode::UnknownMemberId),
        }
    }

    fn assigned(&self, assignment: Bytes) -> SyncAnswer {
        SyncAnswer {
            error: ErrorCode::None,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment,
        }
    }

    /// Goes on after an [`Action::Store`]: `outcome` tells whether the record is committed.
    pub(crate) fn stored(
        &mut self,
        then: AfterStore,
        outcome: Result<(), ErrorCode>,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        match then {
            AfterStore::Nothing => {}
            AfterStore::Assign { generation, assignments } => {
                self.assigning = self.assigning.filter(|&assigning| assigning != generation);
                // A rebalance that began meanwhile has already answered everybody.
                if self.state == GroupState::CompletingRebalance && self.generation == generation {
                    match outcome {
                        Ok(()) => self.assign(assignments, now, actions),
                        Err(error) => {
                            self.fail_syncs(error, now, actions);
                            self.rebalance_or_complete(now, actions);
                        }
                    }
                }
            }
            AfterStore::Return { ticket, answer } => {
                let answer = match outcome {
                    Ok(()) => answer,
                    Err(error) => JoinAnswer::error(error, answer.member_id),
                };
                actions.push(Action::Join(ticket, answer));
            }
        }
    }

    fn assign(&mut self, mut assignments: BTreeMap<ByteString, Bytes>, now: Now, actions: &mut Vec<Action>) {
        self.enter(GroupState::Stable, now);
        let mut waiting = Vec::new();
        for member in self.members.values_mut() {
            member.assignment = assignments.remove(&member.id).unwrap_or_default();
            if let Some(ticket) = member.syncing.take() {
                waiting.push((ticket, member.id.clone(), member.assignment.clone()));
            }
        }
        for (ticket, member_id, assignment) in waiting {
            self.renew_session(&member_id, now);
            actions.push(Action::Sync(ticket, self.assigned(assignment)));
        }
    }

    /// The requests that wait in this group; used by tests of the invariants.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> Vec<Ticket> {
        self.members.values().flat_map(|m| m.joining.into_iter().chain(m.syncing)).collect()
    }
}
