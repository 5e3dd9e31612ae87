//! What goes into a [`Log`](super::Log) and what comes out of it.

use thalweg_protocol::{LeaderEpoch, LogSlice, Offset, ProducerEpoch, ProducerId};

/// What is known of a log before it is opened: the data directory's checkpoint knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Everything below was synced, so that damage there is corruption and not a torn tail; `None` when it is not known.
    pub synced_to: Option<Offset>,
    /// The log start offset, where it is above the first segment's.
    pub log_start: Offset,
    /// The high watermark, clamped to what is there.
    pub high_watermark: Offset,
    /// Whether the directory was closed in order, so that the log need not be scanned.
    pub is_clean: bool,
}

/// Who appends as a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOrigin {
    /// A producer: no control batches, and its transactions must be verified.
    Client {
        /// From [`Log::begin_verification`](super::Log::begin_verification), where that gave one.
        guard: Option<VerificationGuard>,
        /// Whether it waits until the batch is synced, where the log is durable: up to then that may be in memory alone,
        /// and gone when the process is killed. Others find it in the file system's cache.
        awaits_sync: bool,
    },
    /// The broker itself: its group and transaction coordinators, which wait until it is synced. Transactions are not verified.
    Coordinator,
}

/// Proof that a transaction was verified with its coordinator; void once a marker ends the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationGuard(pub(crate) u64);

/// The outcome of an append as leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendInfo {
    /// The offset of the batch's first record.
    pub first_offset: Offset,
    /// The offset of its last record: committed once the high watermark is above it.
    pub last_offset: Offset,
    /// The time of the append in ms since 1970 if the topic stamps records with it, else −1.
    pub log_append_time_ms: i64,
    /// The first offset the log has.
    pub log_start_offset: Offset,
    /// Whether the batch had been appended before, and the offsets are those of that time.
    pub is_duplicate: bool,
}

/// The outcome of an append as follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerAppendInfo {
    /// How many bytes were appended.
    pub bytes: usize,
    /// How many batches.
    pub batches: usize,
    /// The offset the next record will get.
    pub log_end_offset: Offset,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionResult {
    /// Its records count.
    Commit,
    /// Its records are to be skipped.
    Abort,
}

/// A control batch that ends a producer's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerAppend {
    /// The producer whose transaction ends.
    pub producer_id: ProducerId,
    /// The producer's epoch; from it on older ones are fenced.
    pub producer_epoch: ProducerEpoch,
    /// Commit or abort.
    pub result: TransactionResult,
    /// The epoch of the coordinator that decided.
    pub coordinator_epoch: i32,
    /// Whether the coordinator has raised the producer's epoch for this marker (KIP-890): then data of the same
    /// epoch belongs to the next transaction, which a marker that comes late must not end.
    pub epoch_is_bumped: bool,
    /// The epoch of the leader that appends.
    pub leader_epoch: LeaderEpoch,
}

/// What a log knows of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveProducer {
    /// Its id.
    pub producer_id: ProducerId,
    /// Its newest epoch.
    pub producer_epoch: ProducerEpoch,
    /// The sequence number of its last record in this epoch; `None` if it has written none.
    pub last_sequence: Option<i32>,
    /// When its last batch or marker was appended, in ms since 1970.
    pub last_active_ms: i64,
    /// The epoch of the coordinator that wrote its last marker; `None` before there was one.
    pub coordinator_epoch: Option<i32>,
    /// Where its open transaction begins; `None` when it has none open here.
    pub transaction_start: Option<Offset>,
}

/// Up to where a read may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBound {
    /// To the log's end: followers.
    LogEnd,
    /// To the high watermark: consumers that read uncommitted.
    HighWatermark,
    /// To the last stable offset, with the aborted transactions: consumers that read committed.
    LastStableOffset,
}

/// The outcome of a read.
#[derive(Clone, Debug)]
pub struct ReadInfo {
    /// The batches, the first of which contains the offset asked for; `None` when there is nothing to read.
    pub records: Option<LogSlice>,
    /// The transactions that were aborted within `records`, ordered by first offset; empty unless the bound is
    /// [`ReadBound::LastStableOffset`].
    pub aborted_transactions: Vec<AbortedTransaction>,
    /// The first offset the log had.
    pub log_start_offset: Offset,
    /// The offset the next record would have got.
    pub log_end_offset: Offset,
    /// The high watermark at the time.
    pub high_watermark: Offset,
    /// The last stable offset at the time.
    pub last_stable_offset: Offset,
}

/// A transaction that was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Whose transaction it was.
    pub producer_id: ProducerId,
    /// The offset of its first record.
    pub first_offset: Offset,
}

/// Which offset is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeQuery {
    /// The log start offset.
    Earliest,
    /// The log end offset.
    Latest,
    /// The first record with the largest timestamp (KIP-734).
    MaxTimestamp,
    /// The first record whose timestamp is this many ms since 1970 or later.
    At(i64),
}

/// A record found by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampOffset {
    /// Its timestamp in ms since 1970, or −1 for the log's ends.
    pub timestamp: i64,
    /// Its offset.
    pub offset: Offset,
    /// The epoch it was appended in, [`LeaderEpoch::UNKNOWN`] if the log does not remember.
    pub leader_epoch: LeaderEpoch,
}

/// Where an epoch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The newest epoch not after the one asked for, [`LeaderEpoch::UNKNOWN`] if the log cannot say.
    pub epoch: LeaderEpoch,
    /// The offset after its last record, −1 if the log cannot say.
    pub end_offset: Offset,
}
