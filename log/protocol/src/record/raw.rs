//! The records of a batch as they stand in it, for those who copy them.

use super::BatchHeader;
use super::error::{RecordError, RecordFault};
use super::varint::{take_i32, take_i64};
use crate::ids::Offset;

/// A record with the bytes it consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Its position in the partition.
    pub offset: Offset,
    /// In ms since 1970; −1 where the producer gave none.
    pub timestamp: i64,
    /// The key, or null.
    pub key: Option<&'a [u8]>,
    /// Whether the value is not null.
    pub has_value: bool,
    /// All of it, the length included.
    pub(super) bytes: &'a [u8],
    pub(super) attributes: u8,
    /// From the offset delta on: what does not change with the batch's base timestamp.
    pub(super) tail: &'a [u8],
}

/// Iterates over the records of a batch with their bytes; nothing is allocated, and headers are not looked at.
///
/// Yields one error and then ends when the records are not what the header says.
#[derive(Clone, Debug)]
pub struct RawRecords<'a> {
    rest: &'a [u8],
    header: BatchHeader,
    index: i32,
    last_delta: i32,
    done: bool,
}

impl<'a> RawRecords<'a> {
    /// The records of the batch with this header; `records` are the bytes after it, decompressed.
    pub fn new(header: &BatchHeader, records: &'a [u8]) -> Self {
        Self { rest: records, header: *header, index: 0, last_delta: -1, done: false }
    }

    fn take(&mut self) -> Result<RawRecord<'a>, RecordFault> {
        let whole = self.rest;
        let length = take_i32(&mut self.rest).ok_or(RecordFault::Varint)?;
        let fits = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let Some((mut rest, behind)) = fits else {
            return Err(RecordFault::Length { length, available: self.rest.len() });
        };
        self.rest = behind;
        let (&attributes, fields) = rest.split_first().ok_or(RecordFault::Truncated)?;
        rest = fields;
        let timestamp_delta = take_i64(&mut rest).ok_or(RecordFault::Varint)?;
        let tail = rest;
        let delta = take_i32(&mut rest).ok_or(RecordFault::Varint)?;
        if delta <= self.last_delta || delta > self.header.last_offset_delta {
            return Err(RecordFault::OffsetDelta { delta });
        }
        self.last_delta = delta;
        let key_length = take_i32(&mut rest).ok_or(RecordFault::Varint)?;
        let key = match usize::try_from(key_length).ok().and_then(|length| rest.split_at_checked(length)) {
            Some((key, behind)) => {
                rest = behind;
                Some(key)
            }
            None if key_length == -1 => None,
            None => return Err(RecordFault::KeyLength { length: key_length }),
        };
        let value_length = take_i32(&mut rest).ok_or(RecordFault::Varint)?;
        if value_length < -1 || value_length > rest.len() as i32 {
            return Err(RecordFault::ValueLength { length: value_length });
        }
        let timestamp = match self.header.is_log_append_time() {
            true => self.header.max_timestamp,
            false => self.header.base_timestamp.wrapping_add(timestamp_delta),
        };
        Ok(RawRecord {
            offset: Offset(self.header.base_offset.0.wrapping_add(i64::from(delta))),
            timestamp,
            key,
            has_value: value_length >= 0,
            bytes: &whole[..whole.len() - behind.len()],
            attributes,
            tail,
        })
    }
}

impl<'a> Iterator for RawRecords<'a> {
    type Item = Result<RawRecord<'a>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.index >= self.header.records_count {
            self.done = true;
            let extra = self.rest.len();
            return (extra > 0).then_some(Err(RecordError::TrailingBytes { extra }));
        }
        match self.take() {
            Ok(record) => {
                self.index += 1;
                Some(Ok(record))
            }
            Err(fault) => {
                self.done = true;
                Some(Err(RecordError::Record { index: self.index, fault }))
            }
        }
    }
}

impl std::iter::FusedIterator for RawRecords<'_> {}
