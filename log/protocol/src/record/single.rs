//! A single record: a view into its batch.

use bytes::Bytes;

use super::error::RecordFault;
use super::varint::{take_i32, take_i64};
use crate::ids::Offset;

/// A record, viewing the bytes of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its position in the partition.
    pub offset: Offset,
    /// In ms since 1970; −1 where the producer gave none.
    pub timestamp: i64,
    /// The key, or null.
    pub key: Option<&'a [u8]>,
    /// The value, or null: a tombstone in a compacted topic.
    pub value: Option<&'a [u8]>,
    /// The headers, in order, with duplicates.
    pub headers: Headers<'a>,
}

/// A header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header<'a> {
    /// The name; UTF-8 by convention, which nobody checks.
    pub key: &'a [u8],
    /// The value, or null.
    pub value: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// The header `key` = `value`.
    pub fn new(key: &'a str, value: Option<&'a [u8]>) -> Self {
        Self { key: key.as_bytes(), value }
    }
}

/// The headers of a record in their encoded form, already checked: nothing is decoded before it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    encoded: &'a [u8],
    count: usize,
}

impl<'a> Headers<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them in order, duplicates included.
    pub fn iter(&self) -> HeaderIter<'a> {
        HeaderIter { encoded: self.encoded, remaining: self.count }
    }

    /// The headers as they lie in the record: name and value of each, with their lengths before them, without
    /// the count of headers.
    pub fn encoded(&self) -> &'a [u8] {
        self.encoded
    }

    /// Reads back what [`Headers::encoded`] returned.
    ///
    /// # Errors
    /// When `encoded` is not `count` headers and nothing else.
    pub fn from_encoded(encoded: &'a [u8], count: usize) -> Result<Self, RecordFault> {
        let mut rest = encoded;
        for _ in 0..count {
            take_header(&mut rest)?;
        }
        match rest.is_empty() {
            true => Ok(Self { encoded, count }),
            false => Err(RecordFault::TrailingBytes { extra: rest.len() }),
        }
    }

    /// The last header with this key, which is the one that counts when it occurs twice (KIP-82).
    pub fn last(&self, key: &str) -> Option<Header<'a>> {
        self.iter().filter(|header| header.key == key.as_bytes()).last()
    }
}

impl<'a> IntoIterator for Headers<'a> {
    type Item = Header<'a>;
    type IntoIter = HeaderIter<'a>;

    fn into_iter(self) -> HeaderIter<'a> {
        self.iter()
    }
}

/// Iterates over the headers of a record.
#[derive(Clone, Debug)]
pub struct HeaderIter<'a> {
    encoded: &'a [u8],
    remaining: usize,
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        if self.remaining == 0 {
            return None;
        }
        self.remaining -= 1;
        Some(take_header(&mut self.encoded).expect("headers are checked when their record is read"))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for HeaderIter<'_> {}

/// A record that keeps its batch alive: key, value and headers are slices of it, nothing is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRecord {
    /// Its position in the partition.
    pub offset: Offset,
    /// In ms since 1970; −1 where the producer gave none.
    pub timestamp: i64,
    /// The key, or null.
    pub key: Option<Bytes>,
    /// The value, or null.
    pub value: Option<Bytes>,
    /// The headers.
    pub headers: OwnedHeaders,
}

impl OwnedRecord {
    /// The record as a view.
    pub fn as_record(&self) -> Record<'_> {
        Record {
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: self.headers.as_headers(),
        }
    }
}

/// The headers of an [`OwnedRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedHeaders {
    encoded: Bytes,
    count: usize,
}

impl OwnedHeaders {
    /// The headers as a view, which is how they are read.
    pub fn as_headers(&self) -> Headers<'_> {
        Headers { encoded: &self.encoded, count: self.count }
    }
}

impl<'a> Record<'a> {
    /// The record with slices of `batch`, of which it is a view.
    pub(super) fn to_owned_in(self, batch: &Bytes) -> OwnedRecord {
        OwnedRecord {
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key.map(|key| batch.slice_ref(key)),
            value: self.value.map(|value| batch.slice_ref(value)),
            headers: match self.headers.count {
                0 => OwnedHeaders::default(),
                count => OwnedHeaders { encoded: batch.slice_ref(self.headers.encoded), count },
            },
        }
    }
}

/// A record as it stands in the batch, its numbers relative to the batch's.
pub(super) struct RelativeRecord<'a> {
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: Headers<'a>,
}

/// The fewest bytes that a record takes, its length included.
pub(super) const SMALLEST: usize = 7;

/// Takes a record from the front of `records`; checks that every part lies within it and fills it.
#[inline(always)]
pub(super) fn take_record<'a>(records: &mut &'a [u8]) -> Result<RelativeRecord<'a>, RecordFault> {
    let length = take_i32(records).ok_or(RecordFault::Varint)?;
    let fits = usize::try_from(length).ok().and_then(|length| records.split_at_checked(length));
    let Some((mut rest, behind)) = fits else {
        return Err(RecordFault::Length { length, available: records.len() });
    };
    *records = behind;
    // The attributes of a record carry nothing; like Kafka we don't look at them.
    let Some((_, fields)) = rest.split_first() else {
        return Err(RecordFault::Truncated);
    };
    rest = fields;
    let timestamp_delta = take_i64(&mut rest).ok_or(RecordFault::Varint)?;
    let offset_delta = take_i32(&mut rest).ok_or(RecordFault::Varint)?;
    let key = take_nullable(&mut rest, |length| RecordFault::KeyLength { length })?;
    let value = take_nullable(&mut rest, |length| RecordFault::ValueLength { length })?;
    let headers = take_headers(rest)?;
    Ok(RelativeRecord { timestamp_delta, offset_delta, key, value, headers })
}

#[inline(always)]
fn take_nullable<'a>(
    rest: &mut &'a [u8],
    fault: impl Fn(i32) -> RecordFault,
) -> Result<Option<&'a [u8]>, RecordFault> {
    let length = take_i32(rest).ok_or(RecordFault::Varint)?;
    if length == -1 {
        return Ok(None);
    }
    let (taken, behind) = usize::try_from(length)
        .ok()
        .and_then(|length| rest.split_at_checked(length))
        .ok_or_else(|| fault(length))?;
    *rest = behind;
    Ok(Some(taken))
}

#[inline(always)]
fn take_headers(rest: &[u8]) -> Result<Headers<'_>, RecordFault> {
    if *rest == [0] {
        return Ok(Headers::default());
    }
    check_headers(rest)
}

#[inline(never)]
fn check_headers(mut rest: &[u8]) -> Result<Headers<'_>, RecordFault> {
    let found = take_i32(&mut rest).ok_or(RecordFault::Varint)?;
    let count = usize::try_from(found).map_err(|_| RecordFault::HeaderCount { count: found })?;
    if count > rest.len() {
        return Err(RecordFault::HeaderCount { count: found });
    }
    let encoded = rest;
    for _ in 0..count {
        take_header(&mut rest)?;
    }
    if !rest.is_empty() {
        return Err(RecordFault::TrailingBytes { extra: rest.len() });
    }
    Ok(Headers { encoded, count })
}

fn take_header<'a>(rest: &mut &'a [u8]) -> Result<Header<'a>, RecordFault> {
    let key = take_nullable(rest, |length| RecordFault::HeaderKeyLength { length })?
        .ok_or(RecordFault::HeaderKeyLength { length: -1 })?;
    let value = take_nullable(rest, |length| RecordFault::HeaderValueLength { length })?;
    Ok(Header { key, value })
}
