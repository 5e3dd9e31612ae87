//! Writing a batch anew with some of its records, as a log's cleaner does (KIP-534).

use super::BatchHeader;
use super::header::DELETE_HORIZON;
use super::raw::RawRecord;
use super::stamp::stamp_checksum;
use super::varint::{self, put_i32, put_i64, size_i64};
use crate::compression::{Compression, Compressor};

/// Writes batches of which some records are left out. Reuses its buffer from batch to batch.
///
/// Of the header stay base offset, last offset delta, leader epoch, the producer's fields, base timestamp,
/// compression and attributes: so the last sequence number stays, too.
#[derive(Debug, Default)]
pub struct BatchRewriter {
    records: Vec<u8>,
    compressor: Compressor,
}

/// A batch that is being written.
#[derive(Debug)]
pub struct Rewriting<'a> {
    rewriter: &'a mut BatchRewriter,
    header: BatchHeader,
    /// Whether timestamp deltas have to be computed anew.
    is_rebased: bool,
    max_timestamp: i64,
}

impl BatchRewriter {
    /// A rewriter that has no buffer yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to write the batch with this header anew. With a delete horizon, in ms since 1970, the batch gets
    /// that one in place of its base timestamp.
    pub fn begin(&mut self, header: &BatchHeader, delete_horizon_ms: Option<i64>) -> Rewriting<'_> {
        self.records.clear();
        let mut header = BatchHeader { records_count: 0, ..*header };
        if let Some(horizon) = delete_horizon_ms {
            header.base_timestamp = horizon;
            header.attributes |= DELETE_HORIZON;
        }
        let is_rebased = delete_horizon_ms.is_some();
        Rewriting { rewriter: self, header, is_rebased, max_timestamp: -1 }
    }
}

impl Rewriting<'_> {
    /// Keeps a record of the batch; to be called in their order.
    #[inline]
    pub fn keep(&mut self, record: &RawRecord<'_>) {
        self.header.records_count += 1;
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        let out = &mut self.rewriter.records;
        if !self.is_rebased {
            out.extend_from_slice(record.bytes);
            return;
        }
        let delta = record.timestamp.wrapping_sub(self.header.base_timestamp);
        let length = 1 + size_i64(delta) + record.tail.len();
        let mut head = [0; varint::MAX_I32 + 1 + varint::MAX_I64];
        // A record of a batch is shorter than 2 GiB, and grows by a few bytes.
        let mut end = put_i32(&mut head, 0, i32::try_from(length).unwrap_or(i32::MAX));
        head[end] = record.attributes;
        end = put_i64(&mut head, end + 1, delta);
        out.extend_from_slice(&head[..end]);
        out.extend_from_slice(record.tail);
    }

    /// Appends the batch to `out` and returns its header.
    ///
    /// # Panics
    /// When no record was kept: see [`write_without_records`].
    pub fn finish(self, out: &mut Vec<u8>) -> BatchHeader {
        let Self { rewriter, mut header, max_timestamp, .. } = self;
        assert!(header.records_count > 0, "a batch without records is written otherwise");
        if !header.is_log_append_time() {
            header.max_timestamp = max_timestamp;
        }
        let from = out.len();
        out.resize(from + BatchHeader::SIZE, 0);
        // What was read has a codec that is known.
        let compression = header.compression().unwrap_or(Compression::None);
        rewriter.compressor.compress(compression, None, &rewriter.records, out);
        complete(header, &mut out[from..])
    }
}

/// Appends to `out` what remains of a batch that has lost all of its records: a header that says who produced it, with
/// which sequence numbers, and which offsets it had.
pub fn write_without_records(header: &BatchHeader, out: &mut Vec<u8>) -> BatchHeader {
    let attributes = header.attributes & !(DELETE_HORIZON | BatchHeader::COMPRESSION);
    let header = BatchHeader { attributes, base_timestamp: -1, records_count: 0, ..*header };
    let from = out.len();
    out.resize(from + BatchHeader::SIZE, 0);
    complete(header, &mut out[from..])
}

/// Writes the header, with length and checksum, over the room for it.
fn complete(mut header: BatchHeader, batch: &mut [u8]) -> BatchHeader {
    header.batch_length = i32::try_from(batch.len() - BatchHeader::OVERHEAD)
        .expect("a batch that has lost records is not much larger than it was");
    let room = batch.first_chunk_mut::<{ BatchHeader::SIZE }>().expect("room was made for the header");
    header.write(room);
    stamp_checksum(batch);
    header.crc = u32::from_be_bytes([batch[17], batch[18], batch[19], batch[20]]);
    header
}
