//! How the leader of a group shares out partitions: pure functions of topics and members.

mod cooperative_sticky;
mod range;
mod round_robin;

use std::collections::BTreeMap;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::TopicPartition;

use crate::error::Error;

pub use cooperative_sticky::CooperativeSticky;
pub use range::Range;
pub use round_robin::RoundRobin;

/// Shares out the partitions of a group's topics among its members (the classic group protocol, KIP-62 and
/// 429).
///
/// Only the assignor of the group's leader runs; the members agree on one by name.
pub trait Assignor: Send + Sync + 'static {
    /// The name under which members agree, such as `range`.
    fn name(&self) -> &str;

    /// Whether members keep what they own while the group rebalances, and give up only what moves (KIP-429).
    /// `assign` must then never give a partition to a member while another still owns it.
    fn is_cooperative(&self) -> bool {
        false
    }

    /// What this member tells the leader, besides its topics; called before each join.
    fn user_data(&self, topics: &[ByteString]) -> Option<Bytes> {
        let _ = topics;
        None
    }

    /// Decides who reads what. `topics` holds the partition counts of all topics that a member subscribes to
    /// and that exist; a member missing from the answer gets nothing.
    ///
    /// # Errors
    /// An error fails this join of the leader; it is returned by its `poll`.
    fn assign(
        &self,
        topics: &BTreeMap<ByteString, i32>,
        members: &[GroupMember],
    ) -> Result<BTreeMap<ByteString, Assignment>, Error>;

    /// Tells this member what it got, before `poll` returns the event.
    fn on_assignment(&self, assignment: &Assignment, generation: i32) {
        let _ = (assignment, generation);
    }
}

/// A member of a group, as the leader sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMember {
    /// The id that the coordinator gave it.
    pub id: ByteString,
    /// The id that survives restarts, of a static member (KIP-345).
    pub instance_id: Option<ByteString>,
    /// The topics it subscribes to.
    pub topics: Vec<ByteString>,
    /// What it owned when it joined.
    pub owned: Vec<TopicPartition>,
    /// The generation in which it owned that; −1 if it does not know.
    pub generation: i32,
    /// Where it runs, if it said so.
    pub rack: Option<ByteString>,
    /// What its assignor had to say.
    pub user_data: Option<Bytes>,
}

/// What a member is to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The partitions.
    pub partitions: Vec<TopicPartition>,
    /// What the leader's assignor has to say to the member's.
    pub user_data: Option<Bytes>,
}

impl GroupMember {
    /// Static members come first, by instance id, so that a restart under a new member id changes nothing.
    fn rank(&self) -> (bool, &ByteString) {
        match &self.instance_id {
            Some(instance) => (false, instance),
            None => (true, &self.id),
        }
    }
}

/// The members in the order in which they are served.
fn ranked(members: &[GroupMember]) -> Vec<&GroupMember> {
    let mut ranked: Vec<_> = members.iter().collect();
    ranked.sort_by(|a, b| a.rank().cmp(&b.rank()));
    ranked
}

fn give(assignments: &mut BTreeMap<ByteString, Assignment>, member: &GroupMember, partition: TopicPartition) {
    assignments.entry(member.id.clone()).or_default().partitions.push(partition);
}

#[cfg(test)]
mod tests;
