//! Heartbeat, LeaveGroup, and the checks of a member that commits offsets.

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::{Action, ClassicGroup, GroupState};
use crate::coordinator::Now;

/// Who leaves: a member id, or an instance id, or both.
#[derive(Clone, Debug)]
pub(crate) struct Leaver {
    /// Empty when only the instance id is known, as when an operator removes a static member.
    pub(crate) member_id: ByteString,
    pub(crate) instance_id: Option<ByteString>,
}

impl ClassicGroup {
    /// Takes a Heartbeat.
    pub(crate) fn heartbeat(
        &mut self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
        now: Now,
    ) -> ErrorCode {
        if self.state == GroupState::Dead {
            return ErrorCode::CoordinatorNotAvailable;
        }
        if let Err(error) = self.check_member(member_id, instance_id) {
            return error;
        }
        if generation != self.generation {
            return ErrorCode::IllegalGeneration;
        }
        self.renew_session(member_id, now);
        match self.state {
            GroupState::PreparingRebalance => ErrorCode::RebalanceInProgress,
            // Members may send heartbeats as soon as they have joined.
            GroupState::CompletingRebalance | GroupState::Stable => ErrorCode::None,
            GroupState::Empty | GroupState::Dead => ErrorCode::UnknownMemberId,
        }
    }

    /// Takes out members that leave of their own will.
    pub(crate) fn leave(&mut self, leaver: &Leaver, now: Now, actions: &mut Vec<Action>) -> ErrorCode {
        if self.state == GroupState::Dead {
            return ErrorCode::CoordinatorNotAvailable;
        }
        let member_id = match &leaver.instance_id {
            Some(instance) if leaver.member_id.is_empty() => match self.static_members.get(instance) {
                Some(member_id) => member_id.clone(),
                None => return ErrorCode::UnknownMemberId,
            },
            _ => leaver.member_id.clone(),
        };
        if leaver.instance_id.is_none() && self.pending_members.remove(&member_id).is_some() {
            self.complete_if_joined(now, actions);
            return ErrorCode::None;
        }
        if let Err(error) = self.check_member(&member_id, leaver.instance_id.as_deref()) {
            return error;
        }
        self.remove_member(&member_id, now, actions);
        ErrorCode::None
    }

    /// Whether offsets may be committed by this member of this generation. An empty member id with a
    /// negative generation is a consumer that only keeps its offsets here.
    ///
    /// `transactional` commits come from a producer: it need not name the member (before KIP-447), and
    /// one that was in the group when the transaction began may finish it while the group rebalances.
    pub(crate) fn check_commit(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
        transactional: bool,
    ) -> Result<(), ErrorCode> {
        if self.state == GroupState::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        if generation < 0 && self.state == GroupState::Empty {
            return Ok(());
        }
        if generation >= 0 || !member_id.is_empty() || instance_id.is_some() {
            self.check_member(member_id, instance_id)?;
            if generation != self.generation {
                return Err(ErrorCode::IllegalGeneration);
            }
        } else if !transactional {
            return Err(ErrorCode::UnknownMemberId);
        }
        if !transactional && self.state == GroupState::CompletingRebalance {
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(())
    }

    /// Notes that a member has been heard of otherwise than by a heartbeat.
    pub(crate) fn heard_of(&mut self, member_id: &str, now: Now) {
        self.renew_session(member_id, now);
    }
}
