//! Groups: membership by the classic protocol and by that of KIP-848, and committed offsets.
//!
//! `classic`, `consumer` and `offsets` decide, `groups` holds what one partition of `__consumer_offsets` knows, `shard` drives
//! it (one lock, one journal), `coordinator` finds the shard and keeps the time.

mod classic;
mod commit;
mod consumer;
mod coordinator;
mod groups;
mod membership;
mod offsets;
mod records;
mod shard;
mod share;
mod topic_image;

#[cfg(test)]
mod tests;

pub(crate) use classic::{GroupState, Join, JoinAnswer, Leaver, Protocol, Sync, SyncAnswer, Ticket};
pub(crate) use commit::{Commit, CommitPartition, CommitTopic, FetchedPartition};
pub(crate) use consumer::{
    Assignment, ConsumerDescription, ConsumerLimits, DescribedConsumer, GroupEpoch, Heartbeat,
    HeartbeatAnswer, TopicIdPartition, by_topic,
};
pub(crate) use coordinator::GroupCoordinator;
pub(crate) use groups::Description;
pub(crate) use shard::{DeletedOffsets, GroupShard};
pub(crate) use share::{ASSIGNOR as SHARE_ASSIGNOR, ShareDescription, ShareHeartbeat};
pub(crate) use topic_image::{TopicImage, Topics};
