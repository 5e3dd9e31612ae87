//! The indexes of a segment whose batches are gone through from the first to the last.

use thalweg_protocol::Offset;
use thalweg_protocol::record::BatchHeader;

use super::Newest;
use crate::index::{Entry, OffsetEntry, TimeEntry};

/// Collects what the indexes say of a segment, and the timestamps that are kept of it.
#[derive(Debug)]
pub(crate) struct IndexBuilder {
    base_offset: Offset,
    interval_bytes: u32,
    bytes_since_entry: u64,
    pub(crate) offsets: Vec<OffsetEntry>,
    pub(crate) times: Vec<TimeEntry>,
    pub(crate) newest: Newest,
    pub(crate) first_timestamp: Option<i64>,
}

impl IndexBuilder {
    /// Of a segment of this base, with this many bytes of batches between two entries.
    pub(crate) fn new(base_offset: Offset, interval_bytes: u32) -> Self {
        Self {
            base_offset,
            interval_bytes,
            bytes_since_entry: 0,
            offsets: Vec::new(),
            times: Vec::new(),
            newest: Newest { timestamp: -1, offset: base_offset },
            first_timestamp: None,
        }
    }

    /// Enters the batch that stands at `position`, whose offsets are within the segment's.
    pub(crate) fn note(&mut self, position: u64, header: &BatchHeader) {
        let last_offset = header.last_offset();
        let timestamp = header.newest_record_timestamp();
        if timestamp > self.newest.timestamp {
            self.newest = Newest { timestamp, offset: last_offset };
        }
        self.first_timestamp.get_or_insert(timestamp);
        if self.bytes_since_entry > u64::from(self.interval_bytes) {
            let relative = i32::try_from(last_offset.0 - self.base_offset.0);
            // A segment of ours is smaller; of a larger one the rest is found by scanning.
            if let (Ok(relative_offset), Ok(position)) = (relative, i32::try_from(position)) {
                self.offsets.push(OffsetEntry { relative_offset, position });
                self.note_time();
            }
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += header.size_in_bytes() as u64;
    }

    /// Enters the largest timestamp, when all batches have been noted.
    pub(crate) fn complete(&mut self) {
        self.note_time();
    }

    fn note_time(&mut self) {
        let Ok(relative_offset) = i32::try_from(self.newest.offset.0 - self.base_offset.0) else { return };
        let timestamp = self.newest.timestamp;
        if timestamp >= 0 && self.times.last().is_none_or(|last| timestamp > last.timestamp) {
            self.times.push(TimeEntry { timestamp, relative_offset });
        }
    }
}

/// The content of an index file.
pub(crate) fn encode_index<E: Entry>(entries: &[E]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * E::SIZE);
    entries.iter().for_each(|entry| entry.write(&mut bytes));
    bytes
}
