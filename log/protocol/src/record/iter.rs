//! Iterating over the records of a batch, as views or as owned slices.

use bytes::Bytes;

use super::BatchHeader;
use super::error::{RecordError, RecordFault};
use super::single::{OwnedRecord, Record, take_record};
use crate::ids::Offset;

/// Where an iteration stands. The bytes are handed in at every step, so that they can be borrowed or owned.
#[derive(Clone, Debug)]
struct Cursor {
    at: usize,
    index: i32,
    records_count: i32,
    last_delta: i32,
    last_offset_delta: i32,
    base_offset: i64,
    base_timestamp: i64,
    append_time: Option<i64>,
    done: bool,
}

impl Cursor {
    fn new(header: &BatchHeader) -> Self {
        Self {
            at: 0,
            index: 0,
            records_count: header.records_count,
            last_delta: -1,
            last_offset_delta: header.last_offset_delta,
            base_offset: header.base_offset.0,
            base_timestamp: header.base_timestamp,
            append_time: header.is_log_append_time().then_some(header.max_timestamp),
            done: false,
        }
    }

    #[inline(always)]
    fn next<'a>(&mut self, records: &'a [u8]) -> Option<Result<Record<'a>, RecordError>> {
        if self.index >= self.records_count {
            return self.end(records);
        }
        if self.done {
            return None;
        }
        let mut rest = &records[self.at..];
        let record = match take_record(&mut rest) {
            Ok(record) => record,
            Err(fault) => return self.fail(fault),
        };
        if record.offset_delta <= self.last_delta || record.offset_delta > self.last_offset_delta {
            return self.fail(RecordFault::OffsetDelta { delta: record.offset_delta });
        }
        self.at = records.len() - rest.len();
        self.last_delta = record.offset_delta;
        self.index += 1;
        Some(Ok(Record {
            offset: Offset(self.base_offset.wrapping_add(i64::from(record.offset_delta))),
            timestamp: match self.append_time {
                Some(time) => time,
                None => self.base_timestamp.wrapping_add(record.timestamp_delta),
            },
            key: record.key,
            value: record.value,
            headers: record.headers,
        }))
    }

    #[cold]
    fn fail<T>(&mut self, fault: RecordFault) -> Option<Result<T, RecordError>> {
        self.done = true;
        Some(Err(RecordError::Record { index: self.index, fault }))
    }

    #[inline(never)]
    fn end<T>(&mut self, records: &[u8]) -> Option<Result<T, RecordError>> {
        let extra = records.len() - self.at;
        if self.done || extra == 0 {
            return None;
        }
        self.done = true;
        Some(Err(RecordError::TrailingBytes { extra }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // The count is the header's word; only the bytes tell whether it is true. One more for an error.
        let claimed = usize::try_from(self.records_count - self.index).unwrap_or(0);
        (0, Some(claimed + 1))
    }
}

/// Iterates over the records of a batch as views; nothing is allocated.
///
/// Yields one error and then ends when the records are not what the header says.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    cursor: Cursor,
    records: &'a [u8],
}

impl<'a> RecordIter<'a> {
    pub(super) fn new(header: &BatchHeader, records: &'a [u8]) -> Self {
        Self { cursor: Cursor::new(header), records }
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.cursor.next(self.records)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.cursor.size_hint()
    }
}

impl std::iter::FusedIterator for RecordIter<'_> {}

/// The decompressed records of a batch, with their header: what a consumer keeps while it hands out records.
///
/// Cheap to clone: the bytes are shared, and lie in the batch itself when it was not compressed.
#[derive(Clone, Debug)]
pub struct DecodedBatch {
    header: BatchHeader,
    records: Bytes,
}

impl DecodedBatch {
    pub(super) fn new(header: BatchHeader, records: Bytes) -> Self {
        Self { header, records }
    }

    /// The header of the batch.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The size of the records in bytes, decompressed.
    pub fn size_in_bytes(&self) -> usize {
        self.records.len()
    }

    /// The records' bytes, which the views of [`DecodedBatch::iter`] are stretches of.
    pub fn bytes(&self) -> &Bytes {
        &self.records
    }

    /// The records as views.
    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter::new(&self.header, &self.records)
    }
}

impl IntoIterator for DecodedBatch {
    type Item = Result<OwnedRecord, RecordError>;
    type IntoIter = OwnedRecordIter;

    fn into_iter(self) -> OwnedRecordIter {
        OwnedRecordIter { cursor: Cursor::new(&self.header), records: self.records }
    }
}

/// Iterates over the records of a batch while keeping it alive.
///
/// As an [`Iterator`] it yields [`OwnedRecord`]s whose parts are slices of the batch; with
/// [`OwnedRecordIter::next_record`] it lends views and touches no reference count.
#[derive(Clone, Debug)]
pub struct OwnedRecordIter {
    cursor: Cursor,
    records: Bytes,
}

impl OwnedRecordIter {
    /// The next record as a view that lives until the next call.
    #[inline]
    pub fn next_record(&mut self) -> Option<Result<Record<'_>, RecordError>> {
        self.cursor.next(&self.records)
    }
}

impl Iterator for OwnedRecordIter {
    type Item = Result<OwnedRecord, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let record = self.cursor.next(&self.records)?;
        Some(record.map(|record| record.to_owned_in(&self.records)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.cursor.size_hint()
    }
}

impl std::iter::FusedIterator for OwnedRecordIter {}
