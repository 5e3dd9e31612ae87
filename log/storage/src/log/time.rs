//! Finding offsets by time.

use std::cell::RefCell;

use bytes::BytesMut;
use thalweg_protocol::record::{BatchHeader, RecordBatch};
use thalweg_protocol::{LeaderEpoch, Offset, Scratch};

use super::Log;
use super::interface::{TimeQuery, TimestampOffset};
use crate::batch_scan::BatchScan;
use crate::error::{Corruption, Error};
use crate::segment::{Located, Segment, Walk};

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new(super::append::MOST_DECOMPRESSED));
}

impl Log {
    /// Finds an offset by time. `None` when no record is that late, or when there is no record at all.
    ///
    /// The answer may lie above the high watermark: what to make of that is the caller's.
    ///
    /// # Errors
    /// I/O errors.
    pub fn offset_for_time(&self, query: TimeQuery) -> Result<Option<TimestampOffset>, Error> {
        self.check_usable()?;
        match query {
            TimeQuery::Earliest => Ok(Some(self.without_time(self.log_start_offset()))),
            TimeQuery::Latest => Ok(Some(self.without_time(self.log_end_offset()))),
            TimeQuery::MaxTimestamp => self.newest_record(),
            TimeQuery::At(timestamp) => self.first_since(timestamp, self.log_start_offset()),
        }
    }

    fn without_time(&self, offset: Offset) -> TimestampOffset {
        TimestampOffset { timestamp: -1, offset, leader_epoch: self.epoch_at(offset) }
    }

    fn epoch_at(&self, offset: Offset) -> LeaderEpoch {
        self.epoch_of_offset(offset).unwrap_or(LeaderEpoch::UNKNOWN)
    }

    fn first_since(&self, timestamp: i64, log_start: Offset) -> Result<Option<TimestampOffset>, Error> {
        for segment in self.segments().iter() {
            if segment.state().newest.timestamp < timestamp {
                continue;
            }
            // A batch may hold a record of that time that has been deleted, with the one asked for further on.
            let mut next = segment.locate_time(timestamp, log_start, &self.environment)?;
            while let Some((located, header)) = next {
                if let Some(found) = self.record_since(segment, located, &header, timestamp, log_start)? {
                    return Ok(Some(found));
                }
                next = segment.locate_time(timestamp, header.next_offset(), &self.environment)?;
            }
        }
        Ok(None)
    }

    fn newest_record(&self) -> Result<Option<TimestampOffset>, Error> {
        let log_start = self.log_start_offset();
        let mut newest = -1;
        for segment in self.segments().iter() {
            let timestamp = if segment.base_offset() < log_start {
                self.newest_since(segment, log_start)?
            } else {
                segment.state().newest.timestamp
            };
            newest = newest.max(timestamp);
        }
        if newest < 0 { Ok(None) } else { self.first_since(newest, log_start) }
    }

    /// The largest timestamp of a segment's records at or above `from`, which lies within it: the largest of all
    /// may be that of a record that has been deleted.
    fn newest_since(&self, segment: &Segment, from: Offset) -> Result<i64, Error> {
        let Some(first) = segment.locate(from, &self.environment)?.batch() else { return Ok(-1) };
        // In this order: what the file then has is at least as much.
        let size = segment.size_in_bytes();
        let (file, path) = (segment.log_file().get(&self.environment)?, segment.log_file().path());
        let window = BatchScan::LOOK_UP_WINDOW;
        let scan = BatchScan::new(&self.environment, &file, path, first.position, size, window);
        let mut walk = Walk::new(segment, scan, from);
        let mut newest = -1;
        while let Some((_, header)) = walk.next()? {
            if header.base_offset >= from {
                newest = newest.max(header.newest_record_timestamp());
                continue;
            }
            self.each_record(segment, first, &header, |timestamp, offset| {
                if offset >= from {
                    newest = newest.max(timestamp);
                }
                true
            })?;
        }
        Ok(newest)
    }

    /// The first record of a batch with this timestamp or a later one, at or above `from`.
    fn record_since(
        &self,
        segment: &Segment,
        located: Located,
        header: &BatchHeader,
        timestamp: i64,
        from: Offset,
    ) -> Result<Option<TimestampOffset>, Error> {
        let mut found = None;
        self.each_record(segment, located, header, |at, offset| {
            if at >= timestamp && offset >= from {
                found = Some((at, offset));
            }
            found.is_none()
        })?;
        // The one in the batch lies outside of its checksum.
        let told =
            |(timestamp, offset)| TimestampOffset { timestamp, offset, leader_epoch: self.epoch_at(offset) };
        Ok(found.map(told))
    }

    /// Calls `look` with timestamp and offset of the records of a batch, until it returns false.
    fn each_record(
        &self,
        segment: &Segment,
        located: Located,
        header: &BatchHeader,
        mut look: impl FnMut(i64, Offset) -> bool,
    ) -> Result<(), Error> {
        let file = segment.log_file().get(&self.environment)?;
        let mut bytes = BytesMut::zeroed(header.size_in_bytes());
        self.environment.read_at(&file, segment.log_file().path(), &mut bytes, located.position)?;
        let damaged = |problem| {
            segment.corrupt(located.position, Corruption::Batch { expected: header.base_offset, problem })
        };
        let batch = RecordBatch::only(bytes.freeze()).map_err(damaged)?;
        batch.verify().map_err(damaged)?;
        SCRATCH.with_borrow_mut(|scratch| {
            for record in batch.records(scratch).map_err(damaged)? {
                let record = record.map_err(damaged)?;
                if !look(record.timestamp, record.offset) {
                    break;
                }
            }
            Ok(())
        })
    }
}
