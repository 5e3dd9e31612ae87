//! Reads partitions of a topic from offset to offset.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytestring::ByteString;
use thalweg_client::{
    Client, Consumer, ConsumerConfig, Error, FetchedBatches, Isolation, OffsetReset, Result,
};
use thalweg_protocol::{Offset, TopicPartition};

/// How long a poll waits before it looks at the clock.
const POLL: Duration = Duration::from_millis(500);

/// After how long without any batch a read is given up: the committed records are there, so the cluster is not.
const STALL_LIMIT: Duration = Duration::from_secs(60);

/// The bytes between two entries of the offset index (Kafka's default `index.interval.bytes`), and the size of a
/// fetch whose range ends before the log does: it returns one batch, or several small ones, so that at most so
/// much is read past the end of the range.
const INDEX_INTERVAL_BYTES: i32 = 4096;

/// A stretch of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) partition: i32,
    /// The first offset to read.
    pub(crate) start: Offset,
    /// The offset behind the last one to read.
    pub(crate) end: Offset,
    /// Whether committed records lie behind the end already.
    pub(crate) is_cut: bool,
}

/// Reads committed records of some extents of one topic.
pub(crate) struct ExtentReader {
    consumer: Consumer,
    topic: ByteString,
    /// The extents that are not read to their ends, by partition.
    ends: BTreeMap<i32, Offset>,
}

impl ExtentReader {
    pub(crate) fn new(client: &Client, topic: &ByteString, extents: &[Extent]) -> Result<Self> {
        let mut config = ConsumerConfig {
            isolation: Isolation::ReadCommitted,
            // What retention took away in the meantime is not there to be read.
            offset_reset: OffsetReset::Earliest,
            ..ConsumerConfig::default()
        };
        if extents.iter().any(|extent| extent.is_cut) {
            config.max_partition_fetch_bytes = INDEX_INTERVAL_BYTES;
        }
        let mut consumer = client.consumer(config)?;
        let extents: Vec<&Extent> = extents.iter().filter(|extent| extent.start < extent.end).collect();
        let partition_of = |extent: &Extent| TopicPartition::new(topic.clone(), extent.partition);
        consumer.assign(extents.iter().map(|extent| partition_of(extent)))?;
        for extent in &extents {
            consumer.seek(&partition_of(extent), extent.start)?;
            consumer.stop_at(&partition_of(extent), Some(extent.end))?;
        }
        let ends = extents.iter().map(|extent| (extent.partition, extent.end)).collect();
        Ok(Self { consumer, topic: topic.clone(), ends })
    }

    /// What was read next, of any partition; records at or behind the extent's end may be in the last batch. `None`
    /// when all extents are read.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<FetchedBatches>>> {
        let began = Instant::now();
        while !self.ends.is_empty() {
            let polled = self.consumer.poll(POLL).await?;
            if !polled.batches.is_empty() {
                for fetched in &polled.batches {
                    let partition = fetched.partition.partition;
                    if self.ends.get(&partition).is_some_and(|end| fetched.next_offset >= *end) {
                        self.finish(partition);
                    }
                }
                return Ok(Some(polled.batches));
            }
            if began.elapsed() > STALL_LIMIT {
                let after_ms = STALL_LIMIT.as_millis() as u64;
                return Err(Error::TimedOut { operation: "reading a topic", after_ms, last: None });
            }
        }
        Ok(None)
    }

    /// Reads no more of a partition.
    pub(crate) fn finish(&mut self, partition: i32) {
        if self.ends.remove(&partition).is_some() {
            self.consumer.pause([&TopicPartition::new(self.topic.clone(), partition)]);
        }
    }
}
