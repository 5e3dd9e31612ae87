//! Where records that are sent one by one wait for their batch to fill up.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::{Mutex, RwLock};
use thalweg_protocol::{Compression, Compressor, TopicPartition};
use tokio::time::Instant;

use super::batch::{Batch, Filling, Fit, RecordParts};
use super::delivery::Delivery;
use super::memory::Memory;
use crate::error::{Error, Result};

/// The batches that fill, by partition.
pub(super) struct Accumulator {
    compression: Compression,
    batch_size: usize,
    linger: Duration,
    /// Guards which topics there are; never held while a batch is.
    topics: RwLock<HashMap<ByteString, Arc<TopicBatches>>>,
    /// How many batches are open.
    open: AtomicUsize,
}

/// The batches of a topic that fill.
pub(super) struct TopicBatches {
    partitions: Vec<PartitionBatch>,
    sticky: Sticky,
}

struct PartitionBatch {
    partition: TopicPartition,
    /// Guards the batch, and with it the order in which batches are handed over.
    filling: Mutex<(Filling, Compressor)>,
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

impl TopicBatches {
    pub(super) fn partition_count(&self) -> i32 {
        self.partitions.len() as i32
    }

    pub(super) fn sticky(&self) -> &Sticky {
        &self.sticky
    }
}

impl Accumulator {
    pub(super) fn new(compression: Compression, batch_size: usize, linger: Duration) -> Self {
        Self {
            compression,
            batch_size,
            linger,
            topics: RwLock::new(HashMap::new()),
            open: AtomicUsize::new(0),
        }
    }

    pub(super) fn topic(&self, name: &ByteString) -> Option<Arc<TopicBatches>> {
        self.topics.read().get(name).cloned()
    }

    /// Adds a topic. Partitions that it gets later are for later producers: a key must not move under this
    /// one's feet.
    pub(super) fn add_topic(&self, name: &ByteString, partitions: i32, sticky: i32) -> Arc<TopicBatches> {
        let mut topics = self.topics.write();
        if let Some(known) = topics.get(name) {
            return Arc::clone(known);
        }
        let partition = |partition| PartitionBatch {
            partition: TopicPartition::new(name.clone(), partition),
            filling: Mutex::new((Filling::new(self.compression), Compressor::new())),
        };
        let topic = TopicBatches {
            partitions: (0..partitions).map(partition).collect(),
            sticky: Sticky::new(sticky),
        };
        let topic = Arc::new(topic);
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
        let at = usize::try_from(partition).ok().and_then(|at| topic.partitions.get(at));
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
                self.open.fetch_sub(1, Ordering::Relaxed);
                hand_over(batch);
            }
            fit = filling.append(memory, self.batch_size, record).map_err(unencodable)?;
        }
        match fit {
            Fit::Appended => {
                let delivery = filling.delivery(record.timestamp);
                let is_first = filling.records_count() == 1;
                if is_first {
                    self.open.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Added::Yes { delivery, is_first })
            }
            Fit::NoRoom { needed } => Ok(Added::NoRoom { needed }),
            Fit::Full => Ok(Added::NoRoom { needed: record.size_at_most() }),
        }
    }

    /// Hands over the batches that were opened at or before `until`; returns when the next one will have
    /// lingered.
    pub(super) fn close_opened(
        &self,
        until: Instant,
        memory: &Memory,
        mut hand_over: impl FnMut(Batch),
    ) -> Option<Instant> {
        if self.open.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let topics: Vec<_> = self.topics.read().values().cloned().collect();
        let mut next: Option<Instant> = None;
        for slot in topics.iter().flat_map(|topic| &topic.partitions) {
            let mut guard = slot.filling.lock();
            let (filling, compressor) = &mut *guard;
            match filling.opened() {
                Some(opened) if opened <= until => {
                    if let Some(batch) = filling.close(memory, compressor, &slot.partition) {
                        self.open.fetch_sub(1, Ordering::Relaxed);
                        hand_over(batch);
                    }
                }
                Some(opened) => next = Some(next.map_or(opened, |next| next.min(opened))),
                None => {}
            }
        }
        next.map(|opened| opened + self.linger)
    }
}
