//! Offsets as groups keep them, and as logs have them.

use bytestring::ByteString;
use thalweg_protocol::{LeaderEpoch, Offset};

/// An offset to commit, or as it was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The offset of the next record to process.
    pub offset: Offset,
    /// The leader epoch of the last record processed; [`LeaderEpoch::UNKNOWN`] if that is not known.
    pub leader_epoch: LeaderEpoch,
    /// Whatever the committer wants to keep with it (up to 4 KiB by the broker's default).
    pub metadata: ByteString,
}

impl CommittedOffset {
    /// An offset without metadata.
    pub fn new(offset: Offset) -> Self {
        Self { offset, leader_epoch: LeaderEpoch::UNKNOWN, metadata: ByteString::new() }
    }

    /// An offset with metadata.
    pub fn with_metadata(offset: Offset, metadata: impl Into<ByteString>) -> Self {
        Self { metadata: metadata.into(), ..Self::new(offset) }
    }
}

/// What to look for in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The first record there is.
    Earliest,
    /// The end: the last stable offset under read committed, else the high watermark.
    Latest,
    /// The record with the largest timestamp (KIP-734).
    MaxTimestamp,
    /// The first record whose timestamp, in ms since 1970, is at least this. No record is from before 1970: any negative
    /// number finds what 0 finds.
    Timestamp(i64),
}

impl OffsetSpec {
    /// As it stands in a ListOffsets request.
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::MaxTimestamp => -3,
            // Negative numbers have other meanings to the broker.
            Self::Timestamp(timestamp) => timestamp.max(0),
        }
    }
}

/// What was found in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset; `None` when no record fits.
    pub offset: Option<Offset>,
    /// The timestamp of that record in ms since 1970, where one was looked for; else −1.
    pub timestamp: i64,
    /// The leader epoch of that record; [`LeaderEpoch::UNKNOWN`] if there is none.
    pub leader_epoch: LeaderEpoch,
}

/// Who a member of a group is: what a transaction needs to commit offsets for it, so that a member which has
/// been replaced cannot (KIP-447).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadata {
    /// The group.
    pub group: ByteString,
    /// The generation of the group, or the member's epoch where the coordinator assigns (KIP-848); −1 outside of one.
    pub generation: i32,
    /// The id that the coordinator gave the member; empty outside of a group.
    pub member_id: ByteString,
    /// The static member's id.
    pub instance_id: Option<ByteString>,
}

impl GroupMetadata {
    /// A group whose partitions the caller assigns itself, without members.
    pub fn without_membership(group: impl Into<ByteString>) -> Self {
        Self { group: group.into(), generation: -1, member_id: ByteString::new(), instance_id: None }
    }
}
