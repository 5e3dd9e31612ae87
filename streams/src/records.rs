//! Records in memory: a flat arena of bytes and an index over it, filled and read without an allocation per
//! record.

use bytes::Bytes;
use thalweg_protocol::Offset;
use thalweg_protocol::record::{DecodedBatch, Header, Headers, Record as RawRecord, RecordError};

/// A stretch of the arena; `start == NULL` stands for "no bytes at all".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Span {
    pub(crate) const NULL: Self = Self { start: u32::MAX, len: 0 };

    /// Where `bytes` will lie once appended to `arena`, which this does.
    pub(crate) fn append(arena: &mut Vec<u8>, bytes: &[u8]) -> Self {
        let start = u32::try_from(arena.len()).expect("an arena is bounded far below 4 GiB");
        arena.extend_from_slice(bytes);
        Self { start, len: bytes.len() as u32 }
    }

    pub(crate) fn append_optional(arena: &mut Vec<u8>, bytes: Option<&[u8]>) -> Self {
        bytes.map_or(Self::NULL, |bytes| Self::append(arena, bytes))
    }

    pub(crate) fn is_null(self) -> bool {
        self.start == u32::MAX
    }

    pub(crate) fn of(self, arena: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &arena[start..start + self.len as usize]
    }

    pub(crate) fn optional(self, arena: &[u8]) -> Option<&[u8]> {
        if self.is_null() { None } else { Some(self.of(arena)) }
    }
}

/// Where one record's parts lie in the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordEntry {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) key: Span,
    pub(crate) value: Span,
    pub(crate) headers: Span,
    pub(crate) header_count: u32,
}

impl RecordEntry {
    #[inline]
    pub(crate) fn record<'a>(&self, arena: &'a [u8]) -> RawRecord<'a> {
        RawRecord {
            offset: Offset(self.offset),
            timestamp: self.timestamp,
            key: self.key.optional(arena),
            value: self.value.optional(arena),
            headers: if self.header_count == 0 { Headers::default() } else { self.headers(arena) },
        }
    }

    #[cold]
    fn headers<'a>(&self, arena: &'a [u8]) -> Headers<'a> {
        Headers::from_encoded(self.headers.of(arena), self.header_count as usize)
            .expect("headers were checked or encoded when they were put here")
    }
}

/// Appends a length as a zigzag varint (−1 for null), and the bytes.
fn put_prefixed(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let length = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).expect("a header is below 2 GiB"));
    let mut bits = ((length << 1) ^ (length >> 31)) as u32;
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
    out.extend_from_slice(bytes.unwrap_or_default());
}

/// Records being collected, for an output partition or by a test.
#[derive(Debug, Default)]
pub struct RecordBuffer {
    bytes: Vec<u8>,
    entries: Vec<RecordEntry>,
}

impl RecordBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a record; its offset stays −1. `headers` are `[]` for none.
    pub fn push<'h>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = Header<'h>>,
    ) {
        let key = Span::append_optional(&mut self.bytes, key);
        let value = Span::append_optional(&mut self.bytes, value);
        let start = self.bytes.len();
        let mut header_count = 0;
        for header in headers {
            header_count += 1;
            put_prefixed(&mut self.bytes, Some(header.key));
            put_prefixed(&mut self.bytes, header.value);
        }
        let headers = Span { start: start as u32, len: (self.bytes.len() - start) as u32 };
        self.entries.push(RecordEntry { offset: -1, timestamp, key, value, headers, header_count });
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The size of keys, values and headers in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the records out again and keeps the allocations.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = RawRecord<'_>> {
        self.entries.iter().map(|entry| entry.record(&self.bytes))
    }
}

/// A batch of records as it came from one partition: what a queue of an input holds.
///
/// The bytes are shared with the fetch response they came in; the index costs one entry a record.
#[derive(Debug)]
pub struct InputBatch {
    bytes: Bytes,
    entries: Vec<RecordEntry>,
    next_offset: i64,
    max_timestamp: i64,
}

impl InputBatch {
    /// A batch whose records lie in `bytes` as `entries` say; `next_offset` is where the batch after it
    /// begins, which may be past the last record (markers and cleaned records take offsets too).
    pub(crate) fn new(bytes: Bytes, entries: Vec<RecordEntry>, next_offset: i64) -> Self {
        let max_timestamp = entries.iter().map(|entry| entry.timestamp).max().unwrap_or(i64::MIN);
        Self { bytes, entries, next_offset, max_timestamp }
    }

    /// Indexes the records of `batch`, whose bytes are shared, into the allocation of `entries`.
    pub(crate) fn decode(batch: &DecodedBatch, mut entries: Vec<RecordEntry>) -> Result<Self, RecordError> {
        entries.clear();
        let bytes = batch.bytes();
        let base = bytes.as_ptr() as usize;
        let span =
            |part: &[u8]| Span { start: (part.as_ptr() as usize - base) as u32, len: part.len() as u32 };
        for record in batch.iter() {
            let record = record?;
            let header_count = record.headers.len() as u32;
            entries.push(RecordEntry {
                offset: record.offset.0,
                timestamp: record.timestamp,
                key: record.key.map_or(Span::NULL, span),
                value: record.value.map_or(Span::NULL, span),
                headers: if header_count == 0 { Span::NULL } else { span(record.headers.encoded()) },
                header_count,
            });
        }
        Ok(Self::new(bytes.clone(), entries, batch.header().next_offset().0))
    }

    /// A batch of the records of `buffer`, the first of which has `base_offset`.
    pub fn from_buffer(buffer: &RecordBuffer, base_offset: i64) -> Self {
        let mut entries = buffer.entries.clone();
        for (at, entry) in entries.iter_mut().enumerate() {
            entry.offset = base_offset + at as i64;
        }
        let next_offset = base_offset + entries.len() as i64;
        Self::new(Bytes::copy_from_slice(&buffer.bytes), entries, next_offset)
    }

    /// A batch without records: only the position moves, to `next_offset`.
    pub(crate) fn marker(next_offset: i64) -> Self {
        Self::new(Bytes::new(), Vec::new(), next_offset)
    }

    /// Takes out the records before `position`: a fetch begins with the whole batch that holds it.
    pub(crate) fn skip_before(&mut self, position: i64) {
        if self.entries.first().is_some_and(|entry| entry.offset < position) {
            self.entries.retain(|entry| entry.offset >= position);
        }
    }

    /// The same with the records at `offsets`.
    pub(crate) fn from_buffer_at(buffer: &RecordBuffer, offsets: &[i64], next_offset: i64) -> Self {
        let mut entries = buffer.entries.clone();
        for (entry, &offset) in entries.iter_mut().zip(offsets) {
            entry.offset = offset;
        }
        Self::new(Bytes::copy_from_slice(&buffer.bytes), entries, next_offset)
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none: such a batch only moves the position on.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The offset at which the batch after this one begins.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// The largest timestamp of its records; `i64::MIN` when it has none.
    pub fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// The record at `at`, counted from 0.
    ///
    /// # Panics
    /// When there are not that many.
    pub fn record(&self, at: usize) -> RawRecord<'_> {
        self.entries[at].record(&self.bytes)
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = RawRecord<'_>> {
        self.entries.iter().map(|entry| entry.record(&self.bytes))
    }

    pub(crate) fn timestamp(&self, at: usize) -> i64 {
        self.entries[at].timestamp
    }

    pub(crate) fn offset(&self, at: usize) -> i64 {
        self.entries[at].offset
    }

    /// Gives the index's allocation back for the next batch.
    pub(crate) fn into_entries(self) -> Vec<RecordEntry> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::record::BatchBuilder;
    use thalweg_protocol::{Compression, Scratch};

    use super::*;

    #[test]
    fn a_buffer_gives_back_what_was_put_in() {
        let headers = [Header::new("reason", Some(b"late")), Header::new("none", None)];
        let mut buffer = RecordBuffer::new();
        buffer.push(1, Some(b"k"), None, []);
        buffer.push(2, None, Some(b""), headers);

        let batch = InputBatch::from_buffer(&buffer, 40);
        assert_eq!((batch.len(), batch.next_offset(), batch.max_timestamp()), (2, 42, 2));
        let first = batch.record(0);
        assert_eq!((first.offset, first.timestamp), (Offset(40), 1));
        assert_eq!((first.key, first.value, first.headers.len()), (Some(&b"k"[..]), None, 0));
        let second = batch.record(1);
        assert_eq!((second.key, second.value), (None, Some(&b""[..])));
        assert_eq!(second.headers.iter().collect::<Vec<_>>(), headers);
    }

    #[test]
    fn a_batch_from_the_wire_is_indexed() {
        let mut builder = BatchBuilder::new(Compression::None, None, 0);
        builder.append(5, Some(b"a"), Some(b"1"), [Header::new("h", Some(b"x"))]).expect("small");
        builder.append(3, None, None, []).expect("small");
        let batch = builder.finish(&mut Default::default(), None);
        let decoded = batch.decode(&mut Scratch::new(1 << 20)).expect("well-formed");
        let indexed = InputBatch::decode(&decoded, Vec::new()).expect("well-formed");
        let expected: Vec<_> = decoded.iter().map(|record| record.expect("well-formed")).collect();
        assert_eq!(indexed.iter().collect::<Vec<_>>(), expected);
        assert_eq!((indexed.next_offset(), indexed.max_timestamp()), (2, 5));
    }
}
