//! What a poll returns: batches as they are in the log, and which of their records the consumer has acquired.

use std::ops::RangeInclusive;

use thalweg_protocol::record::{BatchHeader, OwnedRecord, Record, RecordBatch, RecordError};
use thalweg_protocol::{Offset, Scratch, TopicPartition};

use crate::batch_records::BatchRecords;
use crate::error::{Error, Result};

/// What a [`ShareConsumer::poll`](crate::ShareConsumer::poll) found.
#[derive(Debug, Default)]
pub struct SharePolled {
    /// The records that are this consumer's now, for as long as
    /// [`lock_timeout`](crate::ShareConsumer::lock_timeout) says.
    pub batches: Vec<AcquiredBatches>,
    /// What became of that which was said before and has been told to brokers since the last call.
    pub outcomes: Vec<AcknowledgementOutcome>,
}

impl SharePolled {
    /// Whether nothing was acquired and there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.outcomes.is_empty()
    }
}

/// What became of that which was said of records of one partition.
#[derive(Clone, Debug)]
pub struct AcknowledgementOutcome {
    /// The partition.
    pub partition: TopicPartition,
    /// The offsets that it was said of, in order.
    pub offsets: Vec<RangeInclusive<Offset>>,
    /// Whether it counts. [`Error::NotAcknowledged`] if not, [`Error::AcknowledgementUnknown`] if that is not known:
    /// either way there is nothing to do but to expect the records again.
    pub result: Result<()>,
}

/// Records side by side that were acquired, and how often they were delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquiredRange {
    /// The offset of the first.
    pub first: Offset,
    /// The offset of the last.
    pub last: Offset,
    /// How often they were delivered, this time included.
    pub delivery_count: i16,
}

impl AcquiredRange {
    /// How many records there are.
    fn count(&self) -> u64 {
        u64::try_from(self.last.0 - self.first.0 + 1).unwrap_or_default()
    }
}

/// The batches of one partition of which records were acquired.
///
/// Others may have records of the same batches: only those within `ranges` are this consumer's, and only they come out of
/// [`AcquiredBatches::for_each`] and [`AcquiredBatches::into_records`].
#[derive(Clone, Debug)]
pub struct AcquiredBatches {
    /// The partition.
    pub partition: TopicPartition,
    /// The batches as they are in the log, compressed if they were.
    pub batches: Vec<RecordBatch>,
    /// The records of them that were acquired, in order; every offset of them has a record.
    pub ranges: Vec<AcquiredRange>,
}

impl AcquiredBatches {
    /// How many records were acquired.
    pub fn records_count(&self) -> usize {
        self.ranges.iter().map(|range| range.count() as usize).sum()
    }

    /// The size of the batches in bytes, as they are in the log.
    pub fn size_in_bytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::size_in_bytes).sum()
    }

    /// How many of the records were delivered before.
    pub(super) fn redeliveries(&self) -> u64 {
        let again = self.ranges.iter().filter(|range| range.delivery_count > 1);
        again.map(AcquiredRange::count).sum()
    }

    /// Calls `each` with every record that was acquired, as a view, and how often it was delivered, this time included;
    /// `scratch` is where batches are decompressed.
    ///
    /// # Errors
    /// [`Error::UnreadableRecords`], and what `each` returns.
    pub fn for_each<E: From<Error>>(
        &self,
        scratch: &mut Scratch,
        mut each: impl FnMut(Record<'_>, i16) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut cursor = Cursor { at: 0 };
        for batch in &self.batches {
            let damaged = |source| unreadable(&self.partition, batch.header(), source);
            for record in batch.records(scratch).map_err(damaged)? {
                let record = record.map_err(damaged)?;
                if let Some(delivery_count) = cursor.find(&self.ranges, record.offset) {
                    each(record, delivery_count)?;
                }
            }
        }
        Ok(())
    }

    /// All records that were acquired, each keeping its batch alive. After an error nothing more comes.
    pub fn into_records(self) -> AcquiredRecords {
        AcquiredRecords {
            partition: self.partition,
            ranges: self.ranges,
            cursor: Cursor { at: 0 },
            records: BatchRecords::new(self.batches),
        }
    }
}

/// Finds offsets in ranges, both in rising order.
#[derive(Debug)]
struct Cursor {
    at: usize,
}

impl Cursor {
    /// How often the record at `offset` was delivered, if it was acquired.
    fn find(&mut self, ranges: &[AcquiredRange], offset: Offset) -> Option<i16> {
        while let Some(range) = ranges.get(self.at) {
            if offset <= range.last {
                return (range.first <= offset).then_some(range.delivery_count);
            }
            self.at += 1;
        }
        None
    }
}

/// A record that was acquired.
#[derive(Clone, Debug)]
pub struct AcquiredRecord {
    /// The record.
    pub record: OwnedRecord,
    /// How often it was delivered, this time included: more than 1 says that somebody has released it, or kept it until the
    /// time was over.
    pub delivery_count: i16,
}

/// The records of [`AcquiredBatches`].
pub struct AcquiredRecords {
    partition: TopicPartition,
    ranges: Vec<AcquiredRange>,
    cursor: Cursor,
    records: BatchRecords,
}

impl AcquiredRecords {
    /// The partition that all records are from.
    pub fn partition(&self) -> &TopicPartition {
        &self.partition
    }
}

impl Iterator for AcquiredRecords {
    type Item = Result<AcquiredRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.records.next()? {
                Ok(record) => {
                    if let Some(delivery_count) = self.cursor.find(&self.ranges, record.offset) {
                        return Some(Ok(AcquiredRecord { record, delivery_count }));
                    }
                }
                Err((header, source)) => return Some(Err(unreadable(&self.partition, &header, source))),
            }
        }
    }
}

fn unreadable(partition: &TopicPartition, header: &BatchHeader, source: RecordError) -> Error {
    let (offset, next_offset) = (header.base_offset, header.next_offset());
    Error::UnreadableRecords { partition: partition.clone(), offset, next_offset, source }
}
