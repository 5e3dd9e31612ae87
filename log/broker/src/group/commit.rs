//! Commits of offsets as requests bring them, and offsets as answers tell them.

use bytestring::ByteString;
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset, Uuid};

use super::offsets::CommittedOffset;
use crate::transaction::Producer;

/// An OffsetCommit or TxnOffsetCommit, as far as it concerns partitions that exist.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) group: ByteString,
    /// Empty for a consumer that only keeps its offsets here.
    pub(crate) member_id: ByteString,
    pub(crate) instance_id: Option<ByteString>,
    /// The generation, or the member epoch; negative for a consumer that only keeps its offsets here.
    pub(crate) generation: i32,
    /// Whether the request is of a version that can carry a member epoch.
    pub(crate) knows_epochs: bool,
    /// For how many ms the offsets are kept, if the client says so.
    pub(crate) retention_ms: Option<i64>,
    pub(crate) topics: Vec<CommitTopic>,
    /// Whose transaction the offsets wait for.
    pub(crate) producer: Option<Producer>,
}

/// The offsets of one topic.
#[derive(Clone, Debug)]
pub(crate) struct CommitTopic {
    pub(crate) name: ByteString,
    pub(crate) id: Uuid,
    pub(crate) partitions: Vec<CommitPartition>,
}

/// The offset of one partition.
#[derive(Clone, Debug)]
pub(crate) struct CommitPartition {
    pub(crate) partition: i32,
    pub(crate) offset: Offset,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) metadata: ByteString,
}

/// The offsets of one group, as far as they were asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) topics: Vec<(ByteString, Vec<FetchedPartition>)>,
    /// The last record that any of it rests on: the answer may leave once that is committed.
    pub(crate) rests_on: Option<Offset>,
}

/// The offset of one partition.
#[derive(Clone, Debug)]
pub(crate) struct FetchedPartition {
    pub(crate) partition: i32,
    /// `None` when nothing is committed.
    pub(crate) committed: Result<Option<CommittedOffset>, ErrorCode>,
}
