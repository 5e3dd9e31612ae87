//! One partition's log.

mod interface;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use thalweg_protocol::record::RecordBatch;
use thalweg_protocol::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicPartition, Uuid};

use crate::config::LogConfig;
use crate::environment::Environment;
use crate::error::Error;

pub use interface::{
    AbortedTransaction, AppendInfo, AppendOrigin, EpochEnd, FollowerAppendInfo, MarkerAppend, ReadBound,
    ReadInfo, Standing, TimeQuery, TimestampOffset, TransactionResult, VerificationGuard,
};

/// The log of one partition: segments, their indexes, and the state of its producers.
///
/// Every method takes `&self` and may be called from any thread; none waits for a sync unless it says so.
#[derive(Debug)]
pub struct Log {}

impl Log {
    /// Opens the log in `directory`, creating it (and its directory) when there is none, and recovers it as
    /// far as `standing` demands.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when bytes below the synced-to offset are damaged or missing: nothing is changed
    /// then. I/O errors.
    pub fn open(
        directory: &Path,
        partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        standing: Standing,
        environment: &Environment,
    ) -> Result<Arc<Self>, Error> {
        unimplemented!()
    }

    /// Appends one batch as the partition's leader: validates it, checks its producer's sequence, gives it
    /// offsets and `leader_epoch`, and writes it unchanged otherwise.
    ///
    /// A batch whose sequence numbers are among its producer's last five is not appended again: the answer is
    /// that of the first time, with `is_duplicate` set.
    ///
    /// # Errors
    /// See [`Error`]; nothing is appended then.
    pub fn append_as_leader(
        &self,
        batch: &RecordBatch,
        leader_epoch: LeaderEpoch,
        origin: AppendOrigin,
    ) -> Result<AppendInfo, Error> {
        unimplemented!()
    }

    /// Appends a control batch that ends a producer's transaction, and enters the transaction into the index
    /// of aborted ones if it was.
    ///
    /// # Errors
    /// [`Error::ProducerFenced`] and [`Error::CoordinatorFenced`] for old epochs; I/O errors.
    pub fn append_marker(&self, marker: MarkerAppend) -> Result<AppendInfo, Error> {
        unimplemented!()
    }

    /// Appends batches as a follower, exactly as the leader has them. A cut batch at the end is left out.
    ///
    /// # Errors
    /// [`Error::UnexpectedOffset`] when the first batch does not begin at the log's end; invalid batches; I/O
    /// errors.
    pub fn append_as_follower(&self, batches: &Bytes) -> Result<FollowerAppendInfo, Error> {
        unimplemented!()
    }

    /// Finds the batches from the one that holds `offset`, up to `bound` and `max_bytes`.
    ///
    /// The slice begins with the whole batch that contains `offset`. When that batch is larger than
    /// `max_bytes` it is returned alone if `at_least_one` is set, and nothing is otherwise. The last batch may
    /// be cut. An offset between the bound and the log's end gives an empty answer.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`]; I/O errors.
    pub fn read(
        &self,
        offset: Offset,
        max_bytes: u32,
        bound: ReadBound,
        at_least_one: bool,
    ) -> Result<ReadInfo, Error> {
        unimplemented!()
    }

    /// The transactions that were aborted with data in `[from, to)`, ordered by first offset.
    pub fn aborted_transactions(&self, from: Offset, to: Offset) -> Result<Vec<AbortedTransaction>, Error> {
        unimplemented!()
    }

    /// Finds an offset by time. `None` when no record is that late, or the log is empty.
    pub fn offset_for_time(&self, query: TimeQuery) -> Result<Option<TimestampOffset>, Error> {
        unimplemented!()
    }

    /// Raises the log start offset to `offset`, which must not pass the high watermark; whole segments below
    /// it are deleted. Returns the log start offset.
    pub fn delete_records(&self, offset: Offset) -> Result<Offset, Error> {
        unimplemented!()
    }

    /// Deletes segments that are too old, too many bytes, or below the log start offset, unlinks the files of
    /// those deleted a while ago, and forgets expired producers. To be called every so often. Returns the
    /// number of segments deleted.
    pub fn apply_retention(&self) -> Result<usize, Error> {
        unimplemented!()
    }

    /// Removes every record from `offset` on, as a follower that diverged from its leader does. Syncs.
    pub fn truncate_to(&self, offset: Offset) -> Result<(), Error> {
        unimplemented!()
    }

    /// Removes every record and begins anew at `offset`, as a follower whose leader no longer has the offset
    /// it needs does. Syncs.
    pub fn restart_at(&self, offset: Offset) -> Result<(), Error> {
        unimplemented!()
    }

    /// Makes everything appended so far last, and returns the offset up to which it does. Blocks on the disk.
    ///
    /// # Errors
    /// After an error the directory is offline: a failed sync is never tried again.
    pub fn sync(&self) -> Result<Offset, Error> {
        unimplemented!()
    }

    /// Notes that `epoch` began at the log's end, as a new leader does before its first append.
    pub fn begin_leader_epoch(&self, epoch: LeaderEpoch) -> Result<(), Error> {
        unimplemented!()
    }

    /// Where `epoch`, or else the newest one before it, ended (KIP-101, KIP-279).
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> EpochEnd {
        unimplemented!()
    }

    /// The epoch in which the record at `offset` was appended, if the log remembers.
    pub fn epoch_of_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        unimplemented!()
    }

    /// The newest leader epoch in the log, if there is one.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        unimplemented!()
    }

    /// Sets the high watermark, clamped to the log's range; the partition's owner computes it. Returns what
    /// it is now.
    pub fn set_high_watermark(&self, offset: Offset) -> Offset {
        unimplemented!()
    }

    /// Whether the producer has an open transaction here, in this epoch.
    pub fn has_open_transaction(&self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool {
        unimplemented!()
    }

    /// Begins to verify with the coordinator that a transaction is going on (KIP-890). The guard goes into the
    /// append that follows, which is refused if the transaction ended meanwhile. `None` when the producer has
    /// an open transaction here, so that nothing needs to be verified.
    pub fn begin_verification(
        &self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
    ) -> Option<VerificationGuard> {
        unimplemented!()
    }

    /// The first offset the log has.
    pub fn log_start_offset(&self) -> Offset {
        unimplemented!()
    }

    /// The offset the next record will get.
    pub fn log_end_offset(&self) -> Offset {
        unimplemented!()
    }

    /// Everything below has been synced.
    pub fn synced_offset(&self) -> Offset {
        unimplemented!()
    }

    /// Everything below is committed: consumers may read it.
    pub fn high_watermark(&self) -> Offset {
        unimplemented!()
    }

    /// Everything below is committed and belongs to no undecided transaction: the smaller of the high watermark
    /// and the first offset of the oldest transaction that is open, or whose marker is not committed yet.
    pub fn last_stable_offset(&self) -> Offset {
        unimplemented!()
    }

    /// Bytes in all segments.
    pub fn size_in_bytes(&self) -> u64 {
        unimplemented!()
    }

    /// How many segments there are.
    pub fn segment_count(&self) -> usize {
        unimplemented!()
    }

    /// Whose log this is.
    pub fn partition(&self) -> &TopicPartition {
        unimplemented!()
    }

    /// The topic's id, from `partition.metadata`.
    pub fn topic_id(&self) -> Uuid {
        unimplemented!()
    }

    /// The settings in force.
    pub fn config(&self) -> Arc<LogConfig> {
        unimplemented!()
    }

    /// Puts new settings in force, from the next append on.
    pub fn set_config(&self, config: LogConfig) {
        unimplemented!()
    }
}
