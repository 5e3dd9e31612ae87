//! The fast way to append: batches that belong to one thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::record::Header;
use thalweg_protocol::{Compressor, TopicPartition};
use tokio::time::Instant;

use super::batch::{Filling, Fit, Hold, RecordParts};
use super::handle::Handle;
use super::partitioner::Partitioner;
use super::refusals::Refusals;
use crate::error::{Error, Result};

/// Appends records to batches of its own and hands each batch to the producer when it is full, has lingered,
/// or is flushed. Nothing is allocated, locked or awaited for a single record.
///
/// Within one appender the records of a partition keep their order. When a topic gets partitions, it chooses among them
/// as soon as the client's metadata tells of them; keys move then, as in Kafka. What is still in it when it is dropped is
/// handed over. Records of a transaction must be handed over before its end: [`Appender::flush`], then
/// commit; or [`Appender::discard`], then abort.
pub struct Appender {
    handle: Handle,
    partitioner: Arc<dyn Partitioner>,
    compressor: Compressor,
    topics: Vec<Topic>,
    by_name: HashMap<ByteString, u32>,
    /// Which version of the metadata the topics have been compared with.
    compared: u64,
    /// When the oldest open batch was opened, or earlier.
    oldest: Option<Instant>,
    /// The bytes that the last append found no room for.
    needed: usize,
    /// Where records that fail are told, and the mark of the next one; `None` if nobody asked.
    marking: Option<(Refusals, u64)>,
}

struct Topic {
    name: ByteString,
    partitions: Vec<Partition>,
    /// Where records without a key go, and how many bytes have.
    sticky: i32,
    sticky_bytes: usize,
}

struct Partition {
    partition: TopicPartition,
    filling: Filling,
}

/// A topic as an [`Appender`] knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopicSlot {
    index: u32,
    partitions: i32,
}

impl TopicSlot {
    /// How many partitions the topic had when it was looked up.
    pub fn partition_count(self) -> i32 {
        self.partitions
    }
}

impl Appender {
    pub(super) fn new(handle: Handle, partitioner: Arc<dyn Partitioner>) -> Self {
        Self {
            handle,
            partitioner,
            compressor: Compressor::new(),
            topics: Vec::new(),
            by_name: HashMap::new(),
            compared: 0,
            oldest: None,
            needed: 0,
            marking: None,
        }
    }

    /// Remembers from now on which records fail. Each is told by the number that [`mark`](Self::mark) last gave, which takes
    /// eight bytes of memory a record until it is acknowledged. What was appended before is handed over.
    pub fn refusals(&mut self) -> Refusals {
        self.hand_over();
        let (refusals, _) = self.marking.get_or_insert_default();
        refusals.clone()
    }

    /// The number by which the records that are appended from now on are told should they fail, such as that of a line.
    #[inline]
    pub fn mark(&mut self, mark: u64) {
        if let Some((_, next)) = &mut self.marking {
            *next = mark;
        }
    }

    /// Looks a topic up, once for all records that go there.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], and whatever keeps the cluster from answering.
    pub async fn topic(&mut self, name: &str) -> Result<TopicSlot> {
        self.compare();
        if let Some(&index) = self.by_name.get(name) {
            let partitions = self.topics[index as usize].partitions.len() as i32;
            return Ok(TopicSlot { index, partitions });
        }
        let name = ByteString::from(name);
        let partitions = self.handle.core().cluster.partition_count(&name).await?;
        let index = self.topics.len() as u32;
        self.topics.push(Topic { name: name.clone(), partitions: Vec::new(), sticky: 0, sticky_bytes: 0 });
        self.by_name.insert(name, index);
        self.resize(index as usize, partitions as usize);
        Ok(TopicSlot { index, partitions })
    }

    /// Looks at how many partitions the topics have, if the metadata has changed.
    fn compare(&mut self) {
        let cluster = &self.handle.core().cluster;
        let version = cluster.version();
        if self.compared == version {
            return;
        }
        self.compared = version;
        let metadata = cluster.metadata();
        for index in 0..self.topics.len() {
            // One that has been deleted stays as it is: its records wait for it to come back.
            if let Some(known) = metadata.topic(&self.topics[index].name) {
                self.resize(index, known.partitions.len());
            }
        }
    }

    fn resize(&mut self, index: usize, count: usize) {
        let core = self.handle.core();
        let topic = &mut self.topics[index];
        if topic.partitions.len() == count {
            return;
        }
        topic.sticky = core.cluster.random(count) as i32;
        // Of another topic with the same name: they fail.
        for slot in topic.partitions.iter_mut().skip(count) {
            if let Some(batch) = slot.filling.close(&core.memory, &mut self.compressor, &slot.partition) {
                self.handle.hand_over(batch);
            }
            slot.filling.discard(&core.memory);
        }
        topic.partitions.truncate(count);
        for partition in topic.partitions.len()..count {
            topic.partitions.push(Partition {
                partition: TopicPartition::new(topic.name.clone(), partition as i32),
                filling: Filling::new(core.config.compression, core.config.is_idempotent()),
            });
        }
    }

    /// The partition for a record, as the producer's [`Partitioner`] has it; a record that it leaves open, by
    /// default one without a key, joins the partition whose batch is filling.
    pub fn partition_for(&mut self, topic: TopicSlot, key: Option<&[u8]>, value: Option<&[u8]>) -> i32 {
        let Some(known) = self.topics.get_mut(topic.index as usize) else { return 0 };
        let value = value.unwrap_or_default();
        if let Some(partition) =
            self.partitioner.partition(&known.name, key, value, known.partitions.len() as i32)
        {
            return partition;
        }
        let core = self.handle.core();
        let partition = known.sticky;
        known.sticky_bytes += value.len();
        if known.sticky_bytes >= core.config.batch_size {
            known.sticky_bytes = 0;
            known.sticky = core.cluster.random(known.partitions.len()) as i32;
        }
        partition
    }

    /// Appends a record. `timestamp` is in ms since 1970.
    ///
    /// # Errors
    /// [`Error::BufferFull`] when the producer's buffer is: nothing was appended; wait with
    /// [`Appender::room`] or [`Appender::room_blocking`] and append it again. `Abort` by kind when the
    /// transaction has failed, `GiveUp` for a record that can never be sent.
    #[inline]
    pub fn append(
        &mut self,
        topic: TopicSlot,
        partition: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<()> {
        let record = RecordParts { timestamp, key, value, headers };
        let core = self.handle.core();
        if let Some(slot) = slot_of(&mut self.topics, topic, partition)
            && !slot.filling.is_empty()
            && slot.filling.append(&core.memory, core.config.batch_size, record) == Ok(Fit::Appended)
        {
            if let Some((refusals, mark)) = &self.marking {
                slot.filling.mark(*mark, refusals);
            }
            return Ok(());
        }
        self.append_to_new(topic, partition, record)
    }

    /// Closes the partition's batch, if there is one, and appends to a new one.
    #[cold]
    fn append_to_new(&mut self, topic: TopicSlot, partition: i32, record: RecordParts<'_>) -> Result<()> {
        self.compare();
        let Some(slot) = slot_of(&mut self.topics, topic, partition) else {
            return Err(self.unknown(topic, partition));
        };
        let core = self.handle.core();
        core.check_open()?;
        let (size, limit) = (record.size_at_most(), core.config.max_request_size);
        if size > limit {
            let topic = slot.partition.topic.clone();
            return Err(Error::RecordTooLarge { topic, size, limit, setting: "max_request_size" });
        }
        if let Some(batch) = slot.filling.close(&core.memory, &mut self.compressor, &slot.partition) {
            self.handle.hand_over(batch);
        }
        let fit = slot
            .filling
            .append(&core.memory, core.config.batch_size, record)
            .map_err(|source| Error::Unencodable { partition: slot.partition.clone(), source })?;
        match fit {
            Fit::Appended => {
                if let Some((refusals, mark)) = &self.marking {
                    slot.filling.mark(*mark, refusals);
                }
                let opened = slot.filling.opened();
                self.oldest = self.oldest.or(opened);
                Ok(())
            }
            Fit::NoRoom { .. } | Fit::Full => {
                self.needed = if let Fit::NoRoom { needed } = fit { needed } else { size };
                let limit = core.memory.limit();
                // What this appender holds open may be all there is.
                self.hand_over();
                Err(Error::BufferFull { limit })
            }
        }
    }

    #[cold]
    fn unknown(&self, topic: TopicSlot, partition: i32) -> Error {
        let known = self.topics.get(topic.index as usize);
        let name = known.map(|known| known.name.clone()).unwrap_or_default();
        let partitions = known.map_or(topic.partitions, |known| known.partitions.len() as i32);
        Error::UnknownPartition { partition: TopicPartition::new(name, partition), partitions }
    }

    /// [`Appender::append`] that blocks the thread, at most `max_block_ms`, while the buffer is full.
    ///
    /// # Errors
    /// As [`Appender::append`]; `BufferFull` only after that time.
    #[inline]
    pub fn append_blocking(
        &mut self,
        topic: TopicSlot,
        partition: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<()> {
        loop {
            match self.append(topic, partition, timestamp, key, value, headers) {
                Err(Error::BufferFull { .. }) => self.room_blocking()?,
                appended => return appended,
            }
        }
    }

    /// Waits for room in the producer's buffer, at most `max_block_ms`.
    ///
    /// # Errors
    /// [`Error::BufferFull`] after that time.
    pub async fn room(&mut self) -> Result<()> {
        let core = self.handle.core();
        let deadline = Instant::now() + Duration::from_millis(core.config.max_block_ms);
        match core.memory.wait(self.needed, deadline).await {
            true => Ok(()),
            false => Err(Error::BufferFull { limit: core.memory.limit() }),
        }
    }

    /// Blocks the thread until there is room in the producer's buffer, at most `max_block_ms`.
    ///
    /// # Errors
    /// [`Error::BufferFull`] after that time.
    pub fn room_blocking(&mut self) -> Result<()> {
        let core = self.handle.core();
        let deadline = Instant::now() + Duration::from_millis(core.config.max_block_ms);
        match core.memory.wait_blocking(self.needed, deadline) {
            true => Ok(()),
            false => Err(Error::BufferFull { limit: core.memory.limit() }),
        }
    }

    /// Hands over the batches that have waited for `linger_ms`, unless an earlier batch of the same partition still waits
    /// to be sent. To be called now and then, once a round of the thread's loop, so that records do not wait for
    /// their batch to fill up; before the thread does something else for long, [`Appender::hand_over`].
    pub fn linger(&mut self) {
        self.compare();
        let linger = self.handle.core().linger();
        let now = Instant::now();
        if self.oldest.is_none_or(|oldest| oldest + linger > now) {
            return;
        }
        self.hand_over_opened(now - linger, Hold::BehindUnsent);
    }

    /// Hands over all batches, full or not.
    pub fn hand_over(&mut self) {
        if self.oldest.is_some() {
            self.hand_over_opened(Instant::now(), Hold::Nothing);
        }
    }

    fn hand_over_opened(&mut self, until: Instant, hold: Hold) {
        let memory = &self.handle.core().memory;
        self.oldest = None;
        for slot in self.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            let Some(opened) = slot.filling.opened() else { continue };
            if opened > until || (hold == Hold::BehindUnsent && slot.filling.is_held()) {
                self.oldest = Some(self.oldest.map_or(opened, |oldest| oldest.min(opened)));
            } else if let Some(batch) = slot.filling.close(memory, &mut self.compressor, &slot.partition) {
                self.handle.hand_over(batch);
            }
        }
    }

    /// Forgets the records that have not been handed over, before their transaction is aborted.
    pub fn discard(&mut self) {
        let memory = &self.handle.core().memory;
        self.oldest = None;
        for slot in self.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            slot.filling.discard(memory);
        }
    }

    /// Hands over all batches and waits until everything this producer was given is written.
    ///
    /// # Errors
    /// The first error of any record since the last flush.
    pub async fn flush(&mut self) -> Result<()> {
        self.hand_over();
        self.handle.flush().await
    }
}

#[inline]
fn slot_of(topics: &mut [Topic], topic: TopicSlot, partition: i32) -> Option<&mut Partition> {
    topics.get_mut(topic.index as usize)?.partitions.get_mut(usize::try_from(partition).ok()?)
}

impl Drop for Appender {
    fn drop(&mut self) {
        self.hand_over();
    }
}
