//! Groups: membership by the classic protocol, and committed offsets.
//!
//! `classic` and `offsets` decide, `groups` holds what one partition of `__consumer_offsets` knows, `shard` drives
//! it (one lock, one journal), `coordinator` finds the shard and keeps the time.

mod classic;
mod commit;
mod coordinator;
mod groups;
mod offsets;
mod records;
mod shard;

#[cfg(test)]
mod tests;

pub(crate) use classic::{GroupState, Join, JoinAnswer, Leaver, Protocol, Sync, SyncAnswer, Ticket};
pub(crate) use commit::{Commit, CommitPartition, CommitTopic, FetchedPartition};
pub(crate) use coordinator::GroupCoordinator;
pub(crate) use groups::Description;
pub(crate) use shard::GroupShard;
