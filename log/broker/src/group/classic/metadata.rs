//! What of a group is written to `__consumer_offsets`, and a group made from it.

use std::collections::BTreeMap;

use bytes::Bytes;
use bytestring::ByteString;

use super::{ClassicGroup, GroupLimits, GroupState, Member, Protocol};
use crate::coordinator::Now;

/// A group as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupMetadata {
    pub(crate) group: ByteString,
    pub(crate) protocol_type: ByteString,
    pub(crate) generation: i32,
    pub(crate) protocol: Option<ByteString>,
    pub(crate) leader: Option<ByteString>,
    /// When the group entered its state, in wall-clock ms; −1 if unknown.
    pub(crate) state_since_ms: i64,
    pub(crate) members: Vec<StoredMember>,
}

/// A member as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredMember {
    pub(crate) id: ByteString,
    pub(crate) instance_id: Option<ByteString>,
    pub(crate) client_id: ByteString,
    pub(crate) client_host: ByteString,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) session_timeout_ms: i32,
    /// What the member said of itself in the chosen protocol.
    pub(crate) subscription: Bytes,
    pub(crate) assignment: Bytes,
}

impl ClassicGroup {
    /// The group as it is to be written; with `assignments` in place of what the members have.
    pub(super) fn snapshot(&self, assignments: Option<&BTreeMap<ByteString, Bytes>>) -> GroupMetadata {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let store = |member: &Member| StoredMember {
            id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout_ms: i32::try_from(member.rebalance_timeout_ms).unwrap_or(i32::MAX),
            session_timeout_ms: i32::try_from(member.session_timeout_ms).unwrap_or(i32::MAX),
            subscription: member.metadata(protocol),
            assignment: match assignments {
                Some(assignments) => assignments.get(&member.id).cloned().unwrap_or_default(),
                None => member.assignment.clone(),
            },
        };
        GroupMetadata {
            group: self.id.clone(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            state_since_ms: self.state_since_ms,
            members: self.members.values().map(store).collect(),
        }
    }

    /// The group that `metadata` describes; every member's session starts anew.
    pub(crate) fn restore(metadata: GroupMetadata, limits: GroupLimits, now: Now) -> Self {
        let mut group = Self::new(metadata.group, limits, now);
        group.generation = metadata.generation;
        group.protocol_type = Some(metadata.protocol_type).filter(|name| !name.is_empty());
        group.protocol = metadata.protocol;
        group.leader = metadata.leader;
        if metadata.state_since_ms >= 0 {
            group.state_since_ms = metadata.state_since_ms;
        }
        for stored in metadata.members {
            let session_timeout_ms = u64::try_from(stored.session_timeout_ms).unwrap_or(0);
            let name = group.protocol.clone().unwrap_or_default();
            if let Some(instance) = &stored.instance_id {
                group.static_members.insert(instance.clone(), stored.id.clone());
            }
            let member = Member {
                id: stored.id.clone(),
                instance_id: stored.instance_id,
                client_id: stored.client_id,
                client_host: stored.client_host,
                session_timeout_ms,
                rebalance_timeout_ms: u64::try_from(stored.rebalance_timeout_ms)
                    .unwrap_or(session_timeout_ms),
                protocols: vec![Protocol { name, metadata: stored.subscription }],
                assignment: stored.assignment,
                is_new: false,
                joining: None,
                syncing: None,
                has_synced: true,
                session_deadline: now.monotonic_ms + session_timeout_ms,
            };
            group.supporters.add(&member.protocols);
            group.members.insert(stored.id, member);
        }
        group.state = if group.members.is_empty() { GroupState::Empty } else { GroupState::Stable };
        group
    }
}
