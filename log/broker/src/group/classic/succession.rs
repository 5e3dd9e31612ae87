//! A group that comes from one of the consumer protocol, and one that becomes such (KIP-848, "online migration").

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::{
    Action, CONSUMER, ClassicGroup, GroupLimits, GroupMetadata, GroupState, JoinAnswer, Member, Protocol,
    SyncAnswer,
};
use crate::coordinator::Now;

/// A member that the group takes over.
#[derive(Clone, Debug)]
pub(crate) struct Heir {
    pub(crate) id: ByteString,
    pub(crate) instance_id: Option<ByteString>,
    pub(crate) client_id: ByteString,
    pub(crate) client_host: ByteString,
    pub(crate) session_timeout_ms: i32,
    pub(crate) rebalance_timeout_ms: i32,
    /// In order of preference.
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) assignment: Bytes,
}

impl ClassicGroup {
    /// A stable group of consumers with these members.
    pub(crate) fn inherit(
        id: ByteString,
        generation: i32,
        heirs: impl IntoIterator<Item = Heir>,
        limits: GroupLimits,
        now: Now,
    ) -> Self {
        let mut group = Self::new(id, limits, now);
        group.generation = generation;
        group.protocol_type = Some(ByteString::from_static(CONSUMER));
        for heir in heirs {
            let session_timeout_ms = u64::try_from(heir.session_timeout_ms).unwrap_or(0);
            if let Some(instance) = &heir.instance_id {
                group.static_members.insert(instance.clone(), heir.id.clone());
            }
            let member = Member {
                id: heir.id.clone(),
                instance_id: heir.instance_id,
                client_id: heir.client_id,
                client_host: heir.client_host,
                session_timeout_ms,
                rebalance_timeout_ms: u64::try_from(heir.rebalance_timeout_ms).unwrap_or(session_timeout_ms),
                protocols: heir.protocols,
                assignment: heir.assignment,
                is_new: false,
                joining: None,
                syncing: None,
                has_synced: true,
                session_deadline: now.monotonic_ms + session_timeout_ms,
            };
            group.supporters.add(&member.protocols);
            group.members.insert(heir.id, member);
        }
        group.leader = group.members.keys().next().cloned();
        group.protocol = group.choose_protocol();
        group.state = if group.members.is_empty() { GroupState::Empty } else { GroupState::Stable };
        group
    }

    /// The group as it is to be written.
    pub(crate) fn stored_form(&self) -> GroupMetadata {
        self.snapshot(None)
    }

    /// Has the members join again.
    pub(crate) fn rebalance(&mut self, now: Now, actions: &mut Vec<Action>) {
        self.rebalance_or_complete(now, actions);
    }

    /// Turns away whoever waits: the group goes on under the other protocol, and they are to join that one.
    pub(crate) fn turn_all_away(&mut self, actions: &mut Vec<Action>) {
        for member in self.members.values_mut() {
            if let Some(ticket) = member.joining.take() {
                let answer = JoinAnswer::error(ErrorCode::RebalanceInProgress, member.id.clone());
                actions.push(Action::Join(ticket, answer));
            }
            if let Some(ticket) = member.syncing.take() {
                actions.push(Action::Sync(ticket, SyncAnswer::error(ErrorCode::RebalanceInProgress)));
            }
        }
    }
}
