//! What appending to a segment changes besides the file of batches.

use std::collections::VecDeque;
use std::path::Path;

use thalweg_protocol::Offset;
use thalweg_protocol::record::BatchHeader;

use super::{IndexLengths, open_indexes};
use crate::batch_scan::{BatchScan, Scanned};
use crate::environment::Environment;
use crate::error::Error;
use crate::filesystem::StoredFile;
use crate::index::{AbortedEntry, IndexFile, OffsetEntry, TimeEntry};

/// The largest timestamp of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    /// In ms since 1970, −1 while no record has one.
    pub(crate) timestamp: i64,
    /// The last offset of the first batch that has it.
    pub(crate) offset: Offset,
}

/// See the lock in [`Segment`](super::Segment).
#[derive(Debug)]
pub(crate) struct SegmentState {
    base_offset: Offset,
    /// Where the next batch will stand: up to here the file holds batches.
    pub(crate) size: u64,
    pub(crate) offsets: IndexFile<OffsetEntry>,
    pub(crate) times: IndexFile<TimeEntry>,
    pub(crate) transactions: IndexFile<AbortedEntry>,
    pub(crate) newest: Newest,
    /// The largest timestamp of the first batch: what rolling by time counts from.
    pub(crate) first_timestamp: Option<i64>,
    bytes_since_entry: u64,
    /// The timestamp of the time index's last entry.
    last_time: i64,
    /// The newest batches by last offset and position, so that a reader at the log's end need not look for them
    /// in the file.
    pub(super) recent: VecDeque<(Offset, u64)>,
}

/// How many batches [`SegmentState::recent`] remembers: more than are appended while a round of syncs takes place.
const RECENT: usize = 256;

impl SegmentState {
    /// The state of an empty segment, or of one whose size and timestamps the caller sets.
    pub(crate) fn new(directory: &Path, base_offset: Offset, index_lengths: IndexLengths) -> Self {
        let (offsets, times, transactions) = open_indexes(directory, base_offset, index_lengths);
        Self {
            base_offset,
            size: 0,
            offsets,
            times,
            transactions,
            newest: Newest { timestamp: -1, offset: base_offset },
            first_timestamp: None,
            bytes_since_entry: 0,
            last_time: -1,
            recent: VecDeque::new(),
        }
    }

    /// Enters the batch that was written at `size`.
    pub(super) fn note(
        &mut self,
        header: &BatchHeader,
        index_interval_bytes: u32,
        environment: &Environment,
    ) -> Result<(), Error> {
        let last_offset = header.last_offset();
        assert!(last_offset >= self.base_offset, "a batch lies after its segment's base");
        let timestamp = header.newest_record_timestamp();
        if timestamp > self.newest.timestamp {
            self.newest = Newest { timestamp, offset: last_offset };
        }
        self.first_timestamp.get_or_insert(timestamp);
        if self.bytes_since_entry > u64::from(index_interval_bytes) {
            let position = i32::try_from(self.size).expect("a segment is rolled before 2 GiB");
            let entry = OffsetEntry { relative_offset: self.relative(last_offset), position };
            self.offsets.push(entry, environment)?;
            self.note_time(environment)?;
            self.bytes_since_entry = 0;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((last_offset, self.size));
        let bytes = header.size_in_bytes() as u64;
        self.size += bytes;
        self.bytes_since_entry += bytes;
        Ok(())
    }

    fn note_time(&mut self, environment: &Environment) -> Result<(), Error> {
        let Newest { timestamp, offset } = self.newest;
        if timestamp > self.last_time {
            self.times.push(TimeEntry { timestamp, relative_offset: self.relative(offset) }, environment)?;
            self.last_time = timestamp;
        }
        Ok(())
    }

    /// Enters the largest timestamp and writes what the index files lack.
    pub(super) fn complete(&mut self, environment: &Environment) -> Result<(), Error> {
        self.note_time(environment)?;
        self.offsets.write_pending(environment)?;
        self.times.write_pending(environment)?;
        self.transactions.write_pending(environment)
    }

    pub(super) fn release(&mut self) {
        self.offsets.release();
        self.times.release();
        self.transactions.release();
        self.recent = VecDeque::new();
    }

    /// Drops what is said of batches from `position` on.
    pub(super) fn truncate(
        &mut self,
        position: u64,
        next_offset: Offset,
        environment: &Environment,
    ) -> Result<(), Error> {
        let keep = self.offsets.partition_point(|e| (e.position as u64) < position, environment)?;
        self.offsets.truncate(keep, environment)?;
        let relative = next_offset.0 - self.base_offset.0;
        let keep = self.times.partition_point(|e| i64::from(e.relative_offset) < relative, environment)?;
        self.times.truncate(keep, environment)?;
        let keep = self.transactions.partition_point(|e| e.last_offset < next_offset, environment)?;
        self.transactions.truncate(keep, environment)?;
        self.recent.clear();
        self.size = position;
        if position == 0 {
            self.first_timestamp = None;
        }
        self.resume(environment)
    }

    /// Finds out where the indexes stand, for a segment that will be appended to.
    fn resume(&mut self, environment: &Environment) -> Result<(), Error> {
        self.bytes_since_entry = self.size.saturating_sub(self.last_entry_position(environment)?);
        self.last_time = self.times.last(environment)?.map_or(-1, |entry| entry.timestamp);
        Ok(())
    }

    fn last_entry_position(&self, environment: &Environment) -> Result<u64, Error> {
        Ok(self.offsets.last(environment)?.map_or(0, |entry| entry.position as u64))
    }

    /// The largest timestamp, from the last entry of the time index and the batches after the last entry of the
    /// offset index.
    pub(crate) fn find_newest(
        &self,
        file: &StoredFile,
        path: &Path,
        environment: &Environment,
    ) -> Result<Newest, Error> {
        let mut newest = match self.times.last(environment)? {
            Some(TimeEntry { timestamp, relative_offset }) => {
                Newest { timestamp, offset: Offset(self.base_offset.0 + i64::from(relative_offset)) }
            }
            None => Newest { timestamp: -1, offset: self.base_offset },
        };
        let from = self.last_entry_position(environment)?;
        let mut scan = BatchScan::new(environment, file, path, from, self.size, BatchScan::LOOK_UP_WINDOW);
        while let Scanned::Batch { header, .. } = scan.next_header()? {
            let timestamp = header.newest_record_timestamp();
            if timestamp > newest.timestamp {
                newest = Newest { timestamp, offset: header.last_offset() };
            }
        }
        Ok(newest)
    }

    /// Sets what recovery has found out about a segment that exists.
    pub(crate) fn restore(
        &mut self,
        size: u64,
        newest: Newest,
        first_timestamp: Option<i64>,
        environment: &Environment,
    ) -> Result<(), Error> {
        self.size = size;
        self.newest = newest;
        self.first_timestamp = first_timestamp;
        self.resume(environment)
    }

    fn relative(&self, offset: Offset) -> i32 {
        i32::try_from(offset.0 - self.base_offset.0).expect("a segment is rolled before its offsets overflow")
    }
}
