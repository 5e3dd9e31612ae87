//! The fast way to append: batches that belong to one thread.

use thalweg_protocol::record::Header;

use super::unfinished;
use crate::error::Result;

/// Appends records to batches of its own and hands each batch to the producer when it is full, has lingered, or is
/// flushed. Nothing is allocated, locked or awaited for a single record.
///
/// Within one appender the records of a partition keep their order. What is still in it when it is dropped is handed
/// over. Records appended within a transaction must be handed over before its end: [`Appender::flush`], then commit.
pub struct Appender {
    _private: (),
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
    /// Looks a topic up, once for all records that go there.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic), and whatever keeps the cluster from answering.
    pub async fn topic(&mut self, name: &str) -> Result<TopicSlot> {
        let _ = name;
        unfinished()
    }

    /// The partition for a record, as the producer's [`Partitioner`](crate::Partitioner) has it; a record without a key
    /// joins the partition whose batch is filling.
    pub fn partition_for(&mut self, topic: TopicSlot, key: Option<&[u8]>, value: Option<&[u8]>) -> i32 {
        let _ = (topic.index, key, value);
        unfinished()
    }

    /// Appends a record. `timestamp` is in ms since 1970.
    ///
    /// # Errors
    /// [`Error::BufferFull`](crate::Error::BufferFull) when the producer's buffer is: nothing was appended; wait with
    /// [`Appender::room`] or [`Appender::room_blocking`] and append it again. `Abort` by kind when the transaction has
    /// failed, `GiveUp` for a record that can never be sent.
    pub fn append(
        &mut self,
        topic: TopicSlot,
        partition: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<()> {
        let _ = (topic, partition, timestamp, key, value, headers);
        unfinished()
    }

    /// [`Appender::append`] that blocks the thread, at most `max_block_ms`, while the buffer is full.
    ///
    /// # Errors
    /// As [`Appender::append`]; `BufferFull` only after that time.
    pub fn append_blocking(
        &mut self,
        topic: TopicSlot,
        partition: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<()> {
        let _ = (topic, partition, timestamp, key, value, headers);
        unfinished()
    }

    /// Waits for room in the producer's buffer, at most `max_block_ms`.
    ///
    /// # Errors
    /// [`Error::BufferFull`](crate::Error::BufferFull) after that time.
    pub async fn room(&mut self) -> Result<()> {
        unfinished()
    }

    /// Blocks the thread until there is room in the producer's buffer, at most `max_block_ms`.
    ///
    /// # Errors
    /// [`Error::BufferFull`](crate::Error::BufferFull) after that time.
    pub fn room_blocking(&mut self) -> Result<()> {
        unfinished()
    }

    /// Hands over the batches that have waited for `linger_ms`. To be called now and then, once a round of the thread's
    /// loop, so that records do not wait for their batch to fill up.
    pub fn linger(&mut self) {
        unfinished()
    }

    /// Hands over all batches, full or not.
    pub fn hand_over(&mut self) {
        unfinished()
    }

    /// Hands over all batches and waits until everything this producer was given is written.
    ///
    /// # Errors
    /// The first error of any record since the last flush.
    pub async fn flush(&mut self) -> Result<()> {
        unfinished()
    }
}
