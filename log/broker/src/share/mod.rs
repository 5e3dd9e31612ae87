//! Share groups (KIP-932): what their members have acquired of partitions, and what is done with.
//!
//! `partition` decides about one share-partition and `sessions` about who reads what, both without I/O or clock. `held`
//! drives a share-partition: one lock, and the journal of a partition of `__share_group_state`, whose records `records` knows and
//! `shard` replays. `shares` finds them, keeps the time of locks, and takes back what members leave behind. Who is in a
//! share group is decided in `group/share`. `tally` counts what happens to records, for the page of metrics.

mod connection;
mod held;
mod initial;
mod partition;
mod records;
mod sessions;
mod settings;
mod shard;
mod shares;
mod spans;
mod tally;

pub(crate) use connection::ConnectionSessions;
pub(crate) use held::{HeldShare, Look, ShareSummary};
pub(crate) use initial::start_offset;
pub(crate) use partition::{AckBatch, AcquireMode, AcquireTerms, Acquired};
pub(crate) use records::ShareKey;
pub(crate) use sessions::{Session, SessionKey, SessionStart, SessionTopic};
pub(crate) use settings::ShareSettings;
pub(crate) use shares::Shares;
pub(crate) use spans::{Found, find_spans};
