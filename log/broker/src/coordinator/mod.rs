//! What the group and the transaction coordinator share: the journal in which each keeps its state, one for every
//! partition of its internal topic, and the clocks.

mod clocks;
mod deadlines;
mod journal;
mod key_hash;
mod now;
#[cfg(test)]
pub(crate) mod rig;
mod setting;
mod shards;
mod timekeeper;

pub(crate) use clocks::Clocks;
pub(crate) use deadlines::Deadlines;
pub(crate) use journal::{Journal, JournalError, JournalRecord, Replayed};
pub(crate) use key_hash::partition_for;
#[cfg(test)]
pub(crate) use now::JUMPS_MS;
pub(crate) use now::Now;
pub(crate) use setting::Setting;
pub(crate) use shards::{Shard, Shards};
pub(crate) use timekeeper::{Due, Timekeeper};
