//! The classic group protocol as a pure state machine: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, with
//! static members (KIP-345) and member ids that are given before they count (KIP-394).
//!
//! Time is an argument. What a call decides comes back as [`Action`]s; the driver answers requests and
//! writes records, and reports the outcome of a write with [`ClassicGroup::stored`]. What members say of
//! themselves (subscription, assignment) passes through unread, so eager and cooperative assignors alike work.

mod join;
mod leave;
mod member;
mod metadata;
mod rebalance;
mod subscription;
mod succession;
mod supporters;
mod sync;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

pub(crate) use join::Join;
pub(crate) use leave::Leaver;
pub(crate) use member::{Member, Protocol};
pub(crate) use metadata::{GroupMetadata, StoredMember};
use rebalance::JoinPhase;
pub(crate) use subscription::{CONSUMER, Subscription};
pub(crate) use succession::Heir;
use supporters::Supporters;
pub(crate) use sync::Sync;

use crate::coordinator::Now;

/// How long a new member may wait for its first rebalance, in ms. Its client cannot send heartbeats before it
/// knows its id, so the session timeout does not apply; Kafka's value.
const NEW_MEMBER_TIMEOUT_MS: u64 = 5 * 60_000;

/// Names a request that is answered later; the driver keeps what it answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(pub(crate) u64);

/// Where a group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    /// No members; perhaps committed offsets.
    Empty,
    /// Waiting for the members to join again.
    PreparingRebalance,
    /// All have joined; waiting for the leader's assignment.
    CompletingRebalance,
    /// Every member has its assignment, or can ask for it.
    Stable,
    /// Removed: whoever still holds it must look it up again.
    Dead,
}

impl GroupState {
    /// The name that DescribeGroups and ListGroups show.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The bounds that every group keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupLimits {
    /// How long an empty group waits for more members before its first rebalance, in ms.
    pub(crate) initial_rebalance_delay_ms: u64,
    /// The shortest session timeout a member may ask for, in ms.
    pub(crate) min_session_timeout_ms: i32,
    /// The longest session timeout a member may ask for, in ms.
    pub(crate) max_session_timeout_ms: i32,
    /// The most members of one group.
    pub(crate) max_members: usize,
}

/// The answer to a JoinGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinAnswer {
    pub(crate) error: ErrorCode,
    pub(crate) member_id: ByteString,
    /// −1 with an error.
    pub(crate) generation: i32,
    pub(crate) protocol_type: Option<ByteString>,
    pub(crate) protocol: Option<ByteString>,
    /// Empty with an error.
    pub(crate) leader: ByteString,
    /// Whether the leader shall leave the assignment as it is (KIP-814).
    pub(crate) skip_assignment: bool,
    /// For the leader: who there is, and what each said of itself.
    pub(crate) members: Vec<JoinedMember>,
}

impl JoinAnswer {
    /// Refuses `member_id`'s request.
    pub(crate) fn error(error: ErrorCode, member_id: ByteString) -> Self {
        Self {
            error,
            member_id,
            generation: -1,
            protocol_type: None,
            protocol: None,
            leader: ByteString::default(),
            skip_assignment: false,
            members: Vec::new(),
        }
    }
}

/// One member as the leader is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinedMember {
    pub(crate) member_id: ByteString,
    pub(crate) instance_id: Option<ByteString>,
    /// What the member sent with the chosen protocol.
    pub(crate) metadata: Bytes,
}

/// The answer to a SyncGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyncAnswer {
    pub(crate) error: ErrorCode,
    pub(crate) protocol_type: Option<ByteString>,
    pub(crate) protocol: Option<ByteString>,
    pub(crate) assignment: Bytes,
}

impl SyncAnswer {
    /// Refuses the request.
    pub(crate) fn error(error: ErrorCode) -> Self {
        Self { error, protocol_type: None, protocol: None, assignment: Bytes::new() }
    }
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Answer a JoinGroup.
    Join(Ticket, JoinAnswer),
    /// Answer a SyncGroup.
    Sync(Ticket, SyncAnswer),
    /// Append `metadata` now, in the order of the actions; when it is committed or has failed, call
    /// [`ClassicGroup::stored`] with `then`.
    Store { metadata: GroupMetadata, then: AfterStore },
}

/// What waits for a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AfterStore {
    /// Nothing does.
    Nothing,
    /// The members of this generation wait for their assignments.
    Assign { generation: i32, assignments: BTreeMap<ByteString, Bytes> },
    /// A static member that has come back waits for its answer.
    Return { ticket: Ticket, answer: JoinAnswer },
}

/// A consumer group, or another group of the classic protocol.
#[derive(Debug)]
pub(crate) struct ClassicGroup {
    id: ByteString,
    limits: GroupLimits,
    state: GroupState,
    /// When the state was entered, in wall-clock ms: offsets expire by it.
    state_since_ms: i64,
    generation: i32,
    protocol_type: Option<ByteString>,
    protocol: Option<ByteString>,
    leader: Option<ByteString>,
    members: BTreeMap<ByteString, Member>,
    /// The protocols of `members`.
    supporters: Supporters,
    /// Member id by instance id.
    static_members: BTreeMap<ByteString, ByteString>,
    /// Member ids that were given out and have not joined yet, with the monotonic ms at which they lapse.
    pending_members: BTreeMap<ByteString, u64>,
    /// Set while PreparingRebalance.
    join_phase: Option<JoinPhase>,
    /// By when, in monotonic ms, every member of the generation must have asked for its assignment.
    sync_deadline: Option<u64>,
    /// The generation whose assignment is being written: what its leader sends after that is a repetition.
    assigning: Option<i32>,
}

impl ClassicGroup {
    /// A group without members.
    pub(crate) fn new(id: ByteString, limits: GroupLimits, now: Now) -> Self {
        Self {
            id,
            limits,
            state: GroupState::Empty,
            state_since_ms: now.wall_ms,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            supporters: Supporters::default(),
            static_members: BTreeMap::new(),
            pending_members: BTreeMap::new(),
            join_phase: None,
            sync_deadline: None,
            assigning: None,
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> &ByteString {
        &self.id
    }

    /// Where the group stands.
    pub(crate) fn state(&self) -> GroupState {
        self.state
    }

    /// When the state was entered, in wall-clock ms.
    pub(crate) fn state_since_ms(&self) -> i64 {
        self.state_since_ms
    }

    /// How many rebalances have been completed.
    pub(crate) fn generation(&self) -> i32 {
        self.generation
    }

    /// `consumer` for consumers; `None` for a group that only holds offsets.
    pub(crate) fn protocol_type(&self) -> Option<&ByteString> {
        self.protocol_type.as_ref()
    }

    /// The protocol (for consumers: the assignor) of this generation.
    pub(crate) fn protocol(&self) -> Option<&ByteString> {
        self.protocol.as_ref()
    }

    /// The member that assigns.
    #[cfg(test)]
    pub(crate) fn leader(&self) -> Option<&ByteString> {
        self.leader.as_ref()
    }

    /// The members by id.
    pub(crate) fn members(&self) -> &BTreeMap<ByteString, Member> {
        &self.members
    }

    /// Whether nobody is in the group or about to be.
    pub(crate) fn is_deserted(&self) -> bool {
        self.state == GroupState::Empty && self.members.is_empty() && self.pending_members.is_empty()
    }

    /// Marks the group as removed; every later call is told to look it up again.
    pub(crate) fn bury(&mut self, now: Now) {
        self.enter(GroupState::Dead, now);
    }

    fn enter(&mut self, state: GroupState, now: Now) {
        self.state = state;
        self.state_since_ms = now.wall_ms;
    }

    fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    /// Whether `member_id` is a member, and the one that holds `instance_id` if that is given.
    fn check_member(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        match instance_id {
            Some(instance) => match self.static_members.get(instance) {
                None => Err(ErrorCode::UnknownMemberId),
                Some(current) if current != member_id => Err(ErrorCode::FencedInstanceId),
                Some(_) => Ok(()),
            },
            None if self.members.contains_key(member_id) => Ok(()),
            None => Err(ErrorCode::UnknownMemberId),
        }
    }

    /// Whether every member supports the protocol.
    fn is_candidate(&self, protocol: &Protocol) -> bool {
        self.supporters.of(&protocol.name) == self.members.len()
    }

    /// The candidate that most members like best; the alphabet decides a tie.
    fn choose_protocol(&self) -> Option<ByteString> {
        let mut votes: BTreeMap<&ByteString, usize> = BTreeMap::new();
        for member in self.members.values() {
            if let Some(choice) = member.protocols.iter().find(|protocol| self.is_candidate(protocol)) {
                *votes.entry(&choice.name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name.clone())
    }

    /// The longest rebalance timeout of any member, in ms.
    fn rebalance_timeout_ms(&self) -> u64 {
        self.members.values().map(|m| m.rebalance_timeout_ms).max().unwrap_or(0)
    }

    /// Gives a member's session another full timeout. One that waits for its first rebalance has longer.
    fn renew_session(&mut self, member_id: &str, now: Now) {
        if let Some(member) = self.members.get_mut(member_id) {
            let timeout_ms = if member.is_new { NEW_MEMBER_TIMEOUT_MS } else { member.session_timeout_ms };
            member.session_deadline = now.monotonic_ms + timeout_ms;
        }
    }
}
