//! What a poll returns.

use thalweg_protocol::record::{BatchHeader, OwnedRecord, Record, RecordBatch, RecordError};
use thalweg_protocol::{Offset, Scratch, TopicPartition};

use crate::batch_records::BatchRecords;
use crate::error::{Error, Result};

/// What a [`Consumer::poll`](crate::Consumer::poll) found.
#[derive(Debug, Default)]
pub struct Polled {
    /// Changes of the assignment, in order; to be handled before the batches.
    pub events: Vec<RebalanceEvent>,
    /// What was read, at most one entry a partition.
    pub batches: Vec<FetchedBatches>,
}

impl Polled {
    /// Whether nothing was read and nothing changed.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.batches.is_empty()
    }
}

/// A change of a subscribed consumer's assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebalanceEvent {
    /// These partitions will go to other members. They are still this member's until the *next* call of
    /// `poll`: finish with them and commit before it. Nothing of them is read any more.
    Revoked(Vec<TopicPartition>),
    /// These partitions have gone to other members already (this member was taken for dead): what was not
    /// committed will be processed by them, and commits of it fail.
    Lost(Vec<TopicPartition>),
    /// These partitions are now this member's, besides those that it has. Reading begins with the next
    /// `poll`, where the group's offset is; `seek` before it to begin elsewhere. Also sent with no partition,
    /// when a rebalance gave nothing new.
    Assigned(Vec<TopicPartition>),
}

/// The batches of one partition, in order, and where the partition stood when they were read.
///
/// Only batches with data are in it: control batches, batches of aborted transactions (under read committed)
/// and batches wholly before the position are left out. It may be empty, when only such were read:
/// `next_offset` has moved nevertheless.
#[derive(Clone, Debug)]
pub struct FetchedBatches {
    /// The partition.
    pub partition: TopicPartition,
    /// The batches as they are in the log, compressed if they were.
    pub batches: Vec<RecordBatch>,
    /// The position that was fetched from. Records before it must be skipped: the first batch may begin
    /// earlier.
    pub position: Offset,
    /// The position after these batches.
    pub next_offset: Offset,
    /// The first offset that is still in the log.
    pub log_start: Offset,
    /// The offset after the last replicated record.
    pub high_watermark: Offset,
    /// The offset of the first record of an open transaction, or the high watermark.
    pub last_stable_offset: Offset,
    /// How far this consumer could read at that moment: the last stable offset under read committed, else the
    /// high watermark. When `next_offset` equals it, the consumer had caught up.
    pub end: Offset,
}

impl FetchedBatches {
    /// Whether everything that could be read at the time of this fetch has now been read.
    pub fn is_caught_up(&self) -> bool {
        self.next_offset >= self.end
    }

    /// How many records the batches claim to hold, those before the position included.
    pub fn records_count(&self) -> usize {
        self.batches.iter().map(|batch| batch.header().records_count as usize).sum()
    }

    /// The size of the batches in bytes, as they are in the log.
    pub fn size_in_bytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::size_in_bytes).sum()
    }

    /// Calls `each` with every record from the position on, as a view; `scratch` is where batches are
    /// decompressed.
    ///
    /// # Errors
    /// [`Error::DamagedBatch`], and what `each` returns.
    pub fn for_each<E: From<Error>>(
        &self,
        scratch: &mut Scratch,
        mut each: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for batch in &self.batches {
            let records = batch.records(scratch).map_err(|source| self.damaged(batch, source))?;
            for record in records {
                let record = record.map_err(|source| self.damaged(batch, source))?;
                if record.offset >= self.position {
                    each(record)?;
                }
            }
        }
        Ok(())
    }

    /// All records from the position on, each keeping its batch alive. After an error nothing more comes.
    pub fn into_records(self) -> FetchedRecords {
        FetchedRecords {
            partition: self.partition,
            position: self.position,
            records: BatchRecords::new(self.batches),
        }
    }

    fn damaged(&self, batch: &RecordBatch, source: RecordError) -> Error {
        damaged(&self.partition, batch.header(), source)
    }
}

/// The records of [`FetchedBatches`].
pub struct FetchedRecords {
    partition: TopicPartition,
    position: Offset,
    records: BatchRecords,
}

impl FetchedRecords {
    /// The partition that all records are from.
    pub fn partition(&self) -> &TopicPartition {
        &self.partition
    }
}

impl Iterator for FetchedRecords {
    type Item = Result<OwnedRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.records.next()? {
                Ok(record) if record.offset < self.position => {}
                Ok(record) => {
                    self.position = record.offset.plus(1);
                    return Some(Ok(record));
                }
                Err((header, source)) => return Some(Err(damaged(&self.partition, &header, source))),
            }
        }
    }
}

/// The checksum has been found right, so the header says where the batch ends.
fn damaged(partition: &TopicPartition, header: &BatchHeader, source: RecordError) -> Error {
    let (offset, next_offset) = (header.base_offset, header.next_offset());
    Error::DamagedBatch { partition: partition.clone(), offset, next_offset, source }
}

/// How far a consumer is in a partition, as of its last fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The offset of the next record that `poll` will return.
    pub position: Offset,
    /// The offset up to which records have been fetched; what lies between is buffered.
    pub fetched: Offset,
    /// The first offset that is still in the log.
    pub log_start: Offset,
    /// The offset after the last replicated record.
    pub high_watermark: Offset,
    /// The offset of the first record of an open transaction, or the high watermark.
    pub last_stable_offset: Offset,
    /// How far this consumer could read as of that fetch.
    pub end: Offset,
}

impl Progress {
    /// Whether everything that could be read as of the last fetch has been returned.
    pub fn is_caught_up(&self) -> bool {
        self.position >= self.end
    }

    /// How many offsets are left to read, as of the last fetch.
    pub fn lag(&self) -> i64 {
        (self.end.0 - self.position.0).max(0)
    }
}
