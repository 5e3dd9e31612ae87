//! The leader of a partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::{Mutex, RwLock};
use thalweg_protocol::record::RecordBatch;
use thalweg_protocol::{ErrorCode, LeaderEpoch, NodeId, Offset, ProducerEpoch, ProducerId, TopicPartition};
use thalweg_storage::{
    AppendInfo, AppendOrigin, Durability, EpochEnd, Log, MarkerAppend, ReadBound, ReadInfo, VerificationGuard,
};

use super::bell::{Bell, Place};
use super::high_watermark;
use super::isr::Isr;
use super::pending_fetch::PendingFetch;
use super::pending_produce::PendingProduce;
use crate::error::Refusal;
use crate::metrics::Traffic;

/// A partition that this node leads.
///
/// Appends and reads go straight to the log, which has locks of its own. Whatever moves the high watermark
/// (an append to a relaxed topic, the end of a sync, a follower's fetch) ends in [`Partition::advance`].
#[derive(Debug)]
pub(crate) struct Partition {
    log: Arc<Log>,
    /// Guards what the controller decides; changed rarely and never held for longer than a copy.
    role: RwLock<Role>,
    /// Held while the high watermark is decided and set, so that two threads cannot set it back.
    advancing: Mutex<()>,
    /// The high watermark of which every fetch has been told that waits for one. Only then is a write acknowledged: its
    /// producer may go on to fetch, within a session that looks only at what has rung.
    announced: AtomicI64,
    /// Set once the partition has failed or gone: nothing more will be committed.
    has_given_up: AtomicBool,
    pending_produce: PendingProduce,
    pending_fetch: PendingFetch,
    traffic: Traffic,
}

/// What the controller has decided about a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    /// The epoch in which this node leads.
    pub(crate) leader_epoch: LeaderEpoch,
    /// The fewest in-sync replicas with which acks = all is taken.
    pub(crate) min_insync_replicas: usize,
    isr: Isr,
}

impl Role {
    /// A role in which `leader` leads with these in-sync replicas.
    pub(crate) fn new(
        leader: NodeId,
        leader_epoch: LeaderEpoch,
        isr: &[NodeId],
        min_insync_replicas: usize,
    ) -> Self {
        Self { leader_epoch, min_insync_replicas, isr: Isr::new(leader, isr) }
    }
}

/// How many bytes of batches were found.
fn size_of(read: &ReadInfo) -> u64 {
    read.records.as_ref().map_or(0, |records| records.len as u64)
}

impl Partition {
    /// Takes the lead over `log`. What recovery found beyond the synced offset is synced first: it is in the
    /// log for good and consumers may have read it.
    ///
    /// # Errors
    /// Those of storage.
    pub(crate) fn lead(log: Arc<Log>, role: Role) -> Result<Arc<Self>, thalweg_storage::Error> {
        log.begin_leader_epoch(role.leader_epoch)?;
        if log.synced_offset() < log.log_end_offset() {
            log.sync()?;
        }
        let partition = Self {
            announced: AtomicI64::new(log.high_watermark().0),
            log,
            role: RwLock::new(role),
            advancing: Mutex::new(()),
            has_given_up: AtomicBool::new(false),
            pending_produce: PendingProduce::default(),
            pending_fetch: PendingFetch::default(),
            traffic: Traffic::default(),
        };
        partition.advance();
        Ok(Arc::new(partition))
    }

    /// Takes note of what the controller has decided anew.
    ///
    /// # Errors
    /// Those of storage, when a new epoch cannot be noted.
    pub(crate) fn set_role(&self, role: Role) -> Result<(), thalweg_storage::Error> {
        if *self.role.read() == role {
            return Ok(());
        }
        if self.leader_epoch() < role.leader_epoch {
            self.log.begin_leader_epoch(role.leader_epoch)?;
        }
        *self.role.write() = role;
        self.advance();
        Ok(())
    }

    /// Which partition this is.
    pub(crate) fn id(&self) -> &TopicPartition {
        self.log.partition()
    }

    /// Its log, for what is not about leading: configs, retention, look-ups by time or epoch.
    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// What has gone through it.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The epoch in which this node leads.
    pub(crate) fn leader_epoch(&self) -> LeaderEpoch {
        self.role.read().leader_epoch
    }

    /// Whether the client's idea of the leader epoch is this leader's; −1 stands for no idea.
    ///
    /// # Errors
    /// FENCED_LEADER_EPOCH when the client is behind, UNKNOWN_LEADER_EPOCH when it is ahead.
    pub(crate) fn check_epoch(&self, asked: LeaderEpoch) -> Result<(), ErrorCode> {
        let current = self.leader_epoch();
        match asked {
            LeaderEpoch::UNKNOWN => Ok(()),
            older if older < current => Err(ErrorCode::FencedLeaderEpoch),
            newer if newer > current => Err(ErrorCode::UnknownLeaderEpoch),
            _ => Ok(()),
        }
    }

    /// Whether enough replicas are in sync to take a write with acks = all.
    ///
    /// # Errors
    /// NOT_ENOUGH_REPLICAS.
    pub(crate) fn check_isr(&self) -> Result<(), ErrorCode> {
        let role = self.role.read();
        if role.isr.len() < role.min_insync_replicas { Err(ErrorCode::NotEnoughReplicas) } else { Ok(()) }
    }

    /// Appends a producer's batch. It is committed once [`Partition::committed`] says so of its last offset.
    ///
    /// `guard` comes from [`Partition::begin_verification`]. Who does not await the commit finds the batch in the file system's
    /// cache at least.
    ///
    /// # Errors
    /// Whatever is wrong with the batch, as a code of the protocol; nothing is appended then.
    pub(crate) fn append(
        &self,
        batch: &RecordBatch,
        guard: Option<VerificationGuard>,
        awaits_commit: bool,
    ) -> Result<AppendInfo, Refusal> {
        self.append_as(batch, AppendOrigin::Client { guard, awaits_sync: awaits_commit })
    }

    /// Appends a batch that the broker itself has made, transactional or not: the records of its coordinators.
    ///
    /// # Errors
    /// As for [`Partition::append`].
    pub(crate) fn append_own(&self, batch: &RecordBatch) -> Result<AppendInfo, Refusal> {
        self.append_as(batch, AppendOrigin::Coordinator)
    }

    /// Ends a producer's transaction here with a control batch.
    ///
    /// # Errors
    /// INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED for old epochs; those of storage.
    pub(crate) fn append_marker(&self, mut marker: MarkerAppend) -> Result<AppendInfo, Refusal> {
        marker.leader_epoch = self.leader_epoch();
        let info = self.log.append_marker(marker)?;
        self.appended();
        Ok(info)
    }

    fn append_as(&self, batch: &RecordBatch, origin: AppendOrigin) -> Result<AppendInfo, Refusal> {
        let info = self.log.append_as_leader(batch, self.leader_epoch(), origin)?;
        if !info.is_duplicate {
            let header = batch.header();
            self.traffic.appended(header.records_count.max(0) as u64, header.size_in_bytes() as u64);
        }
        self.appended();
        Ok(info)
    }

    /// On a durable topic the sync that the append has joined will advance the high watermark.
    fn appended(&self) {
        if self.log.config().durability == Durability::Relaxed {
            self.advance();
        }
    }

    /// Begins to verify that a producer's transaction goes on before its first batch is appended here; `None`
    /// when nothing needs to be verified.
    pub(crate) fn begin_verification(
        &self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
    ) -> Option<VerificationGuard> {
        self.log.begin_verification(producer_id, epoch)
    }

    /// Whether the record at `offset` is committed.
    pub(crate) fn is_committed(&self, offset: Offset) -> bool {
        self.announced.load(Ordering::Acquire) > offset.0
    }

    /// Waits until the record at `offset` is committed. Dropping the future is fine.
    ///
    /// # Errors
    /// KAFKA_STORAGE_ERROR when the partition fails or goes before that.
    pub(crate) async fn committed(&self, offset: Offset) -> Result<(), ErrorCode> {
        while !self.is_committed(offset) {
            let advanced = self.pending_produce.register(offset.plus(1));
            // The high watermark may have passed between the look and the registration.
            if self.is_committed(offset) {
                break;
            }
            if self.has_given_up.load(Ordering::Acquire) || advanced.await.is_err() {
                return Err(ErrorCode::KafkaStorageError);
            }
        }
        Ok(())
    }

    /// Reads from the batch that holds `offset`.
    ///
    /// # Errors
    /// OFFSET_OUT_OF_RANGE; those of storage.
    pub(crate) fn read(
        &self,
        offset: Offset,
        max_bytes: u32,
        bound: ReadBound,
        at_least_one: bool,
    ) -> Result<ReadInfo, Refusal> {
        let read = self.log.read(offset, max_bytes, bound, at_least_one)?;
        self.traffic.read(size_of(&read));
        Ok(read)
    }

    /// The same where nobody may wait for the disk: `None` when that would have to be.
    ///
    /// # Errors
    /// As for [`Partition::read`].
    pub(crate) fn read_cached(
        &self,
        offset: Offset,
        max_bytes: u32,
        bound: ReadBound,
        at_least_one: bool,
    ) -> Result<Option<ReadInfo>, Refusal> {
        let read = self.log.read_cached(offset, max_bytes, bound, at_least_one)?;
        self.traffic.read(read.as_ref().map_or(0, size_of));
        Ok(read)
    }

    /// Where `epoch` ended, for consumers that want to know whether the log was truncated (KIP-320).
    pub(crate) fn end_of_epoch(&self, epoch: LeaderEpoch) -> EpochEnd {
        self.log.end_offset_for_epoch(epoch)
    }

    /// Rings `bell` at the next advance of what consumers may read, saying that it is for `place`.
    pub(crate) fn park(&self, bell: &Arc<Bell>, place: Place) {
        self.pending_fetch.register(bell, place);
    }

    /// Forgets `bell`.
    pub(crate) fn unpark(&self, bell: &Arc<Bell>) {
        self.pending_fetch.deregister(bell);
    }

    /// Moves the high watermark to where it may be by now, and wakes whoever waited for that.
    pub(crate) fn advance(&self) {
        let advancing = self.advancing.lock();
        let current = self.log.high_watermark();
        let own = self.log.settled_offset();
        let decided = high_watermark::decide(current, own, self.role.read().isr.follower_ends());
        if decided > current {
            let high_watermark = self.log.set_high_watermark(decided);
            drop(advancing);
            self.pending_fetch.release();
            self.announced.fetch_max(high_watermark.0, Ordering::AcqRel);
            self.pending_produce.release(high_watermark);
        }
    }

    /// Wakes everyone who waits: the partition has failed or is about to go.
    pub(crate) fn give_up(&self) {
        self.has_given_up.store(true, Ordering::Release);
        self.pending_produce.give_up();
        self.pending_fetch.release();
    }
}
