//! One partition's log.

mod aborted_sums;
mod append;
mod clean;
mod cleaned_to;
mod interface;
mod journaling;
mod open;
mod read;
mod recovery;
mod replay;
mod retention;
mod roll;
mod swap;
mod sync;
mod time;
mod truncate;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, RwLock};
use thalweg_protocol::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicPartition, Uuid};

use crate::clock::Pace;
use crate::config::{Durability, LogConfig};
use crate::environment::Environment;
use crate::error::Error;
use crate::flush::RoundQueue;
use crate::leader_epochs::LeaderEpochs;
use crate::producers::{ProducerStates, UndecidedTransactions};
use crate::segment::Segment;
use crate::synced_to::{Recorded, SyncedTo};

use aborted_sums::AbortedSums;
pub(crate) use append::MOST_DECOMPRESSED;
pub(crate) use clean::{Cleanable, Source};
pub(crate) use cleaned_to::CleanedTo;
pub use interface::{
    AbortedTransaction, ActiveProducer, AppendInfo, AppendOrigin, EpochEnd, FollowerAppendInfo, MarkerAppend,
    ReadBound, ReadInfo, Standing, TimeQuery, TimestampOffset, TransactionResult, VerificationGuard,
};
pub(crate) use journaling::{Candidate, Captured};
pub(crate) use open::{METADATA_FILE, read_topic_id};
use retention::Trash;
pub(crate) use swap::Replacement;
use sync::Unsynced;

/// The log of one partition: segments, their indexes, and the state of its producers.
///
/// Every method takes `&self` and may be called from any thread; none waits for a sync unless it says so.
#[derive(Debug)]
pub struct Log {
    partition: TopicPartition,
    topic_id: Uuid,
    directory: PathBuf,
    environment: Environment,
    /// For looking things up where nobody may wait for the disk.
    cached_only: Environment,
    checkpoint: Option<Arc<SyncedTo>>,
    me: Weak<Log>,
    /// Where appends to a durable log ask for a sync, once there are rounds.
    rounds: OnceLock<Arc<RoundQueue>>,
    /// Whether the log waits for the next round.
    is_queued: AtomicBool,
    /// Whether a round has synced it of which the checkpoint has not been told.
    is_untold: AtomicBool,
    is_closed: AtomicBool,
    /// Guards the settings; held for the time of a copy.
    config: RwLock<Arc<LogConfig>>,
    /// Held by whoever replaces or removes segments, or closes the log, so that one of them takes place at a time.
    /// Taken before `syncing`.
    changing: Mutex<Changing>,
    /// Held by whoever syncs, truncates or closes the log, so that one of them takes place at a time. Taken before
    /// `writer`.
    syncing: Mutex<()>,
    /// Guards the end of the log: whoever appends, rolls or removes segments holds it, over the write too, so
    /// that offsets, producers and file stay of one mind. Readers never take it.
    writer: Mutex<Writer>,
    /// Guards the list of segments, oldest first and never empty; replaced as a whole by the holder of `writer`,
    /// held for the time of a copy.
    segments: RwLock<Arc<Vec<Arc<Segment>>>>,
    /// Guards what holds back the last stable offset; held for a few instructions. Taken after `writer`.
    undecided: Mutex<UndecidedTransactions>,
    offsets: Offsets,
}

/// See the lock of this name in [`Log`].
#[derive(Debug, Default)]
struct Changing {
    /// A swap that could not be finished: what a crash would leave to recovery.
    unfinished: Option<Replacement>,
}

/// See the lock of this name in [`Log`].
#[derive(Debug, Default)]
struct Writer {
    producers: ProducerStates,
    epochs: LeaderEpochs,
    cleaned: CleanedTo,
    aborted_sums: AbortedSums,
    /// How often the log was truncated since it was opened.
    truncations: u64,
    /// Where the log ended when it was opened after an orderly stop, with `truncations` as it was then.
    finished_at: Option<(Offset, u64)>,
    unsynced: Unsynced,
    trash: Vec<Trash>,
    /// Of the clock between one retention and the next.
    pace: Pace,
}

/// The offsets that readers look at without a lock. They are written by the holder of `writer`, except for
/// the high watermark and what says how far the log is synced, which the holder of `syncing` writes. What is read later is at least as new: a reader
/// that loads the high watermark first finds all of what is below it.
#[derive(Debug)]
struct Offsets {
    log_start: AtomicI64,
    log_end: AtomicI64,
    synced: AtomicI64,
    /// Everything below is synced in the log's own files; what comes after and is synced is in the journal.
    in_files: AtomicI64,
    /// The newest round of the journal that has an entry of the log, since it was opened.
    last_entry: AtomicU64,
    /// Entries up to this round are void: what they had is in the log's own files, or gone.
    void_to: AtomicU64,
    high_watermark: AtomicI64,
    /// The first offset of the oldest undecided transaction, `i64::MAX` without one.
    first_undecided: AtomicI64,
}

impl Offsets {
    fn load(offset: &AtomicI64) -> Offset {
        Offset(offset.load(Ordering::SeqCst))
    }

    fn store(offset: &AtomicI64, value: Offset) {
        offset.store(value.0, Ordering::SeqCst);
    }
}

impl Log {
    /// Notes that `epoch` began at the log's end, as a new leader does before its first append.
    ///
    /// # Errors
    /// [`Error::StaleLeaderEpoch`] when the log has a newer one.
    pub fn begin_leader_epoch(&self, epoch: LeaderEpoch) -> Result<(), Error> {
        let mut writer = self.lock_writer()?;
        writer.check_epoch(epoch)?;
        if writer.epochs.assign(epoch, self.log_end_offset()) {
            writer.unsynced.epochs = true;
        }
        Ok(())
    }

    /// Where `epoch`, or else the newest one before it, ended (KIP-101, KIP-279).
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> EpochEnd {
        let writer = self.writer.lock();
        writer.epochs.end_of(epoch, self.log_end_offset())
    }

    /// The epoch in which the record at `offset` was appended, if the log remembers.
    pub fn epoch_of_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.writer.lock().epochs.of_offset(offset)
    }

    /// The newest leader epoch in the log, if there is one.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.writer.lock().epochs.latest()
    }

    /// Raises the high watermark to `offset`, clamped to the log's range; the partition's owner computes it.
    /// It never goes back but by a truncation. Returns what it is now.
    pub fn set_high_watermark(&self, offset: Offset) -> Offset {
        let clamped = offset.max(self.log_start_offset()).min(self.log_end_offset());
        let before = self.offsets.high_watermark.fetch_max(clamped.0, Ordering::SeqCst);
        if before < clamped.0 && self.offsets.first_undecided.load(Ordering::SeqCst) < i64::MAX {
            let mut undecided = self.undecided.lock();
            undecided.committed(clamped);
            self.publish_undecided(&undecided);
        }
        Offset(before.max(clamped.0))
    }

    fn publish_undecided(&self, undecided: &UndecidedTransactions) {
        Offsets::store(&self.offsets.first_undecided, undecided.first().unwrap_or(Offset(i64::MAX)));
    }

    /// Whether the producer has an open transaction here, in this epoch.
    pub fn has_open_transaction(&self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool {
        self.writer.lock().producers.has_open_transaction(producer_id, epoch)
    }

    /// The producers that have an open transaction here, with their epochs.
    pub fn open_transactions(&self) -> Vec<(ProducerId, ProducerEpoch)> {
        self.writer.lock().producers.open_producers()
    }

    /// The producers that the log knows, in the order of their ids (KIP-664).
    pub fn active_producers(&self) -> Vec<ActiveProducer> {
        let mut active = self.writer.lock().producers.active();
        active.sort_unstable_by_key(|producer| producer.producer_id);
        active
    }

    /// Begins to verify with the coordinator that a transaction is going on (KIP-890). The guard goes into the
    /// append that follows, which is refused if the transaction ended meanwhile. `None` when the producer has
    /// an open transaction here, so that nothing needs to be verified.
    pub fn begin_verification(
        &self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
    ) -> Option<VerificationGuard> {
        self.writer.lock().producers.begin_verification(producer_id, epoch)
    }

    /// The first offset the log has.
    pub fn log_start_offset(&self) -> Offset {
        Offsets::load(&self.offsets.log_start)
    }

    /// The offset the next record will get.
    pub fn log_end_offset(&self) -> Offset {
        Offsets::load(&self.offsets.log_end)
    }

    /// Everything below has been synced.
    pub fn synced_offset(&self) -> Offset {
        Offsets::load(&self.offsets.synced)
    }

    /// How far this replica has the log for good: everything below the offset may count towards what is committed. On a
    /// durable topic that is what has been synced, and else all that has been appended.
    pub fn settled_offset(&self) -> Offset {
        let log_end = self.log_end_offset();
        match self.config().durability {
            Durability::Synced => self.synced_offset().min(log_end),
            Durability::Relaxed => log_end,
        }
    }

    /// Everything below is committed: consumers may read it.
    pub fn high_watermark(&self) -> Offset {
        Offsets::load(&self.offsets.high_watermark)
    }

    /// Everything below is committed and belongs to no undecided transaction: the smaller of the high watermark
    /// and the first offset of the oldest transaction that is open, or whose marker is not committed yet.
    pub fn last_stable_offset(&self) -> Offset {
        // In this order: a transaction that begins in between begins above the high watermark read first.
        let high_watermark = self.high_watermark();
        high_watermark.min(Offsets::load(&self.offsets.first_undecided))
    }

    /// Bytes in all segments.
    pub fn size_in_bytes(&self) -> u64 {
        self.segments().iter().map(|segment| segment.size_in_bytes()).sum()
    }

    /// How many segments there are.
    pub fn segment_count(&self) -> usize {
        self.segments().len()
    }

    /// Whose log this is.
    pub fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// The topic's id, from `partition.metadata`.
    pub fn topic_id(&self) -> Uuid {
        self.topic_id
    }

    /// Where its files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The settings in force.
    pub fn config(&self) -> Arc<LogConfig> {
        self.config.read().clone()
    }

    /// Puts new settings in force, from the next append on.
    pub fn set_config(&self, config: LogConfig) {
        // What waits for its sync counts as settled when the log turns relaxed, and is to be in the file then.
        let _writer = self.writer.lock();
        if config.durability == Durability::Relaxed
            && let Err(error) = self.active().log_file().write_out(&self.environment)
        {
            tracing::warn!(partition = %self.partition, %error, "what waits for its sync cannot be written yet");
        }
        *self.config.write() = Arc::new(config);
    }

    /// What the directory's checkpoint says of the log.
    pub(crate) fn recorded(&self) -> Recorded {
        // In this order: with a round that is too low the journal only repeats what is there.
        let void_to = self.void_to();
        let standing = Standing {
            synced_to: Some(Offsets::load(&self.offsets.in_files)),
            log_start: self.log_start_offset(),
            high_watermark: self.high_watermark(),
            is_clean: false,
        };
        Recorded { topic_id: self.topic_id, standing, void_to }
    }

    /// The same, unless the log was closed: then its name may belong to another one by now.
    pub(crate) fn recorded_while_open(&self) -> Option<Recorded> {
        (!self.is_closed()).then(|| self.recorded())
    }

    fn segments(&self) -> Arc<Vec<Arc<Segment>>> {
        self.segments.read().clone()
    }

    fn active(&self) -> Arc<Segment> {
        Arc::clone(self.segments.read().last().expect("a log has at least one segment"))
    }

    /// Whether the log is open and its directory online.
    pub(crate) fn check_usable(&self) -> Result<(), Error> {
        if self.is_closed() {
            return Err(Error::LogClosed { partition: self.partition.clone() });
        }
        self.environment.health.check()
    }

    /// Whether the log was closed or deleted.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Locks the writer of a log that can be written to.
    fn lock_writer(&self) -> Result<parking_lot::MutexGuard<'_, Writer>, Error> {
        let writer = self.writer.lock();
        self.check_usable()?;
        Ok(writer)
    }

    /// Hands the log the queue of the rounds that sync it.
    pub(crate) fn join_rounds(&self, queue: &Arc<RoundQueue>) {
        // A second set of rounds would only sync what the first one does.
        let _ = self.rounds.set(Arc::clone(queue));
        if self.synced_offset() < self.log_end_offset() {
            self.request_sync(0);
        }
    }

    /// Puts the log into the next round, if there are rounds, with so many bytes more.
    fn request_sync(&self, bytes: u64) {
        if let (Some(queue), Some(me)) = (self.rounds.get(), self.me.upgrade()) {
            queue.request(me, bytes);
        }
    }

    /// Whether this call is the one that puts the log into the next round.
    pub(crate) fn enter_queue(&self) -> bool {
        !self.is_queued.swap(true, Ordering::SeqCst)
    }

    /// From here on another append asks for another round.
    pub(crate) fn leave_queue(&self) {
        self.is_queued.store(false, Ordering::SeqCst);
    }

    /// Whether this call is the one that puts the log among those of which the checkpoint is to be told.
    pub(crate) fn enter_untold(&self) -> bool {
        !self.is_untold.swap(true, Ordering::SeqCst)
    }

    /// The checkpoint is told of all that is synced by now.
    pub(crate) fn leave_untold(&self) {
        self.is_untold.store(false, Ordering::SeqCst);
    }
}

impl Writer {
    fn check_epoch(&self, found: LeaderEpoch) -> Result<(), Error> {
        match self.epochs.latest() {
            Some(current) if found < current => Err(Error::StaleLeaderEpoch { current, found }),
            _ => Ok(()),
        }
    }
}
