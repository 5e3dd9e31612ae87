//! Where records that are sent one by one wait for their batch to fill up.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::{Mutex, RwLock};
use thalweg_protocol::{Compression, Compressor, TopicPartition};
use tokio::time::Instant;

use super::batch::{Batch, Filling, Fit, Hold, RecordParts};
use super::delivery::Delivery;
use super::memory::Memory;
use crate::config::ProducerConfig;
use crate::error::{Error, Result};

/// The batches that fill, by partition.
pub(super) struct Accumulator {
    compression: Compression,
    is_idempotent: bool,
    batch_size: usize,
    linger: Duration,
    /// Guards which topics there are; never held while a batch is.
    topics: RwLock<HashMap<ByteString, Arc<TopicBatches>>>,
    /// How many batches are open.
    open: AtomicUsize,
}

/// The batches of a topic that fill; replaced when the topic gets partitions, or is another one with fewer.
pub(super) struct TopicBatches {
    /// Those that there have ever been: a record may be on its way to any of them.
    partitions: Vec<Arc<PartitionBatch>>,
    /// How many the topic has.
    count: usize,
    sticky: Sticky,
    /// Which version of the metadata the count has been compared with.
    compared: AtomicU64,
}

struct PartitionBatch {
    partition: TopicPartition,
    /// Guards the batch, and with it the order in which batches are handed over.
    filling: Mutex<(Filling, Compressor)>,
    /// Whether there is something in the batch, or it is being handed over. Changed only under the lock.
    is_open: AtomicBool,
}

/// The partition that records without a key go to until it has got a batch's worth of bytes (KIP-480, 794).
pub(super) struct Sticky {
    partition: AtomicI32,
    bytes: AtomicUsize,
}

impl Sticky {
    pub(super) fn new(partition: i32) -> Self {
        Self { partition: AtomicI32::new(partition), bytes: AtomicUsize::new(0) }
    }

    /// The partition for a record of `size` bytes; `draw` chooses another one when this has had enough.
    pub(super) fn partition(&self, size: usize, batch_size: usize, draw: impl FnOnce() -> i32) -> i32 {
        let partition = self.partition.load(Ordering::Relaxed);
        if self.bytes.fetch_add(size, Ordering::Relaxed) + size >= batch_size {
            self.bytes.store(0, Ordering::Relaxed);
            self.partition.store(draw(), Ordering::Relaxed);
        }
        partition
    }
}

/// What became of a record.
pub(super) enum Added {
    /// It is in a batch; `is_first` says that it opened one.
    Yes { delivery: Delivery, is_first: bool },
    /// The budget has not so many bytes.
    NoRoom { needed: usize },
}

/// What [`Accumulator::close_opened`] left.
pub(super) struct StillOpen {
    /// When the next batch will have lingered.
    pub(super) lingered_at: Option<Instant>,
    /// Whether some have, and were held back.
    pub(super) is_holding: bool,
}

impl TopicBatches {
    pub(super) fn partition_count(&self) -> i32 {
        self.count as i32
    }

    /// Whether the count has to be compared with this version of the metadata; from now on it has been.
    pub(super) fn must_compare(&self, version: u64) -> bool {
        self.compared.load(Ordering::Relaxed) != version
            && self.compared.swap(version, Ordering::Relaxed) != version
    }

    pub(super) fn sticky(&self) -> &Sticky {
        &self.sticky
    }
}

impl Accumulator {
    pub(super) fn new(config: &ProducerConfig) -> Self {
        Self {
            compression: config.compression,
            is_idempotent: config.is_idempotent(),
            batch_size: config.batch_size,
            linger: Duration::from_millis(config.linger_ms),
            topics: RwLock::new(HashMap::new()),
            open: AtomicUsize::new(0),
        }
    }

    pub(super) fn topic(&self, name: &ByteString) -> Option<Arc<TopicBatches>> {
        self.topics.read().get(name).cloned()
    }

    /// Adds a topic, or says how many partitions it has by now. `draw` chooses one for records without a key.
    pub(super) fn set_topic(
        &self,
        name: &ByteString,
        partitions: i32,
        version: u64,
        draw: impl FnOnce() -> i32,
    ) -> Arc<TopicBatches> {
        let mut topics = self.topics.write();
        let known = topics.get(name);
        if let Some(known) = known.filter(|known| known.partition_count() == partitions) {
            return Arc::clone(known);
        }
        let count = usize::try_from(partitions).unwrap_or_default();
        let mut partitions = known.map_or_else(Vec::new, |known| known.partitions.clone());
        for partition in partitions.len()..count {
            partitions.push(Arc::new(PartitionBatch {
                partition: TopicPartition::new(name.clone(), partition as i32),
                filling: Mutex::new((Filling::new(self.compression, self.is_idempotent), Compressor::new())),
                is_open: AtomicBool::new(false),
            }));
        }
        let (sticky, compared) = (Sticky::new(draw()), AtomicU64::new(version));
        let topic = Arc::new(TopicBatches { partitions, count, sticky, compared });
        topics.insert(name.clone(), Arc::clone(&topic));
        topic
    }

    /// Adds a record to its partition's batch; a batch that is full is given to `hand_over` first.
    pub(super) fn add(
        &self,
        topic: &TopicBatches,
        partition: i32,
        memory: &Memory,
        record: RecordParts<'_>,
        mut hand_over: impl FnMut(Batch),
    ) -> Result<Added> {
        let count = topic.partition_count();
        let at = usize::try_from(partition).ok().filter(|at| *at < topic.count);
        let at = at.and_then(|at| topic.partitions.get(at));
        let Some(slot) = at else {
            let name = topic.partitions.first().map(|slot| slot.partition.topic.clone()).unwrap_or_default();
            let partition = TopicPartition::new(name, partition);
            return Err(Error::UnknownPartition { partition, partitions: count });
        };
        let mut guard = slot.filling.lock();
        let (filling, compressor) = &mut *guard;
        let unencodable = |source| Error::Unencodable { partition: slot.partition.clone(), source };
        let mut fit = filling.append(memory, self.batch_size, record).map_err(unencodable)?;
        if fit == Fit::Full {
            if let Some(batch) = filling.close(memory, compressor, &slot.partition) {
                hand_over(batch);
                self.note(slot, false);
            }
            fit = filling.append(memory, self.batch_size, record).map_err(unencodable)?;
        }
        match fit {
            Fit::Appended => {
                let delivery = filling.delivery(record.timestamp);
                let is_first = filling.records_count() == 1;
                if is_first {
                    self.note(slot, true);
                }
                Ok(Added::Yes { delivery, is_first })
            }
            Fit::NoRoom { needed } => Ok(Added::NoRoom { needed }),
            Fit::Full => Ok(Added::NoRoom { needed: record.size_at_most() }),
        }
    }

    /// Hands over the batches that were opened at or before `until`, but for those that are held back.
    pub(super) fn close_opened(
        &self,
        until: Instant,
        hold: Hold,
        memory: &Memory,
        mut hand_over: impl FnMut(Batch),
    ) -> StillOpen {
        let mut still_open = StillOpen { lingered_at: None, is_holding: false };
        if self.open.load(Ordering::Acquire) == 0 {
            return still_open;
        }
        let topics: Vec<_> = self.topics.read().values().cloned().collect();
        let open = topics.iter().flat_map(|topic| &topic.partitions);
        for slot in open.filter(|slot| slot.is_open.load(Ordering::Acquire)) {
            let mut guard = slot.filling.lock();
            let (filling, compressor) = &mut *guard;
            match filling.opened() {
                Some(opened) if opened <= until && hold == Hold::BehindUnsent && filling.is_held() => {
                    still_open.is_holding = true;
                }
                Some(opened) if opened <= until => {
                    if let Some(batch) = filling.close(memory, compressor, &slot.partition) {
                        hand_over(batch);
                        self.note(slot, false);
                    }
                }
                Some(opened) => {
                    let lingered_at = opened + self.linger;
                    let soonest = still_open.lingered_at.map_or(lingered_at, |at| at.min(lingered_at));
                    still_open.lingered_at = Some(soonest);
                }
                None => {}
            }
        }
        still_open
    }

    /// Whoever sees that a batch is not open must find it handed over: so this comes after that.
    fn note(&self, slot: &PartitionBatch, is_open: bool) {
        slot.is_open.store(is_open, Ordering::Release);
        match is_open {
            true => self.open.fetch_add(1, Ordering::Release),
            false => self.open.fetch_sub(1, Ordering::Release),
        };
    }
}
