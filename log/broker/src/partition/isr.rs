//! The in-sync replicas of a partition, as its leader knows them.

use thalweg_protocol::{NodeId, Offset};

/// The in-sync replicas besides the leader itself, with the end of each one's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Isr {
    followers: Vec<(NodeId, Offset)>,
}

impl Isr {
    /// An ISR of these `members`, of which `leader` is one. The followers' log ends are not known yet, so
    /// the high watermark waits for them.
    pub(crate) fn new(leader: NodeId, members: &[NodeId]) -> Self {
        let followers = members.iter().filter(|&&member| member != leader);
        Self { followers: followers.map(|&member| (member, Offset(0))).collect() }
    }

    /// How many replicas are in sync, the leader included.
    pub(crate) fn len(&self) -> usize {
        1 + self.followers.len()
    }

    /// The log ends of the followers.
    pub(crate) fn follower_ends(&self) -> impl Iterator<Item = Offset> + '_ {
        self.followers.iter().map(|&(_, end)| end)
    }
}
