//! Building a record batch.

use bytes::{Bytes, BytesMut};

use super::error::RecordError;
use super::header::TRANSACTIONAL;
use super::stamp::{BatchProducer, stamp_checksum};
use super::varint::{self, put_i32, put_i64, size_i32, size_i64};
use super::{BatchHeader, Header, RecordBatch};
use crate::compression::{Compression, Compressor};
use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};

/// Collects records and makes a batch of them. Reuses its buffer from batch to batch; nothing is allocated for
/// a record as long as the buffer is large enough.
#[derive(Debug)]
pub struct BatchBuilder {
    /// Room for a header, then the records.
    buffer: BytesMut,
    compression: Compression,
    level: Option<i32>,
    /// How large the next batch is expected to be, in bytes: as large as the last.
    expected_size: usize,
    records_count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// The largest batch that is built, in bytes uncompressed: half of what the format can hold, so that it
    /// still fits when a codec makes it larger.
    pub const MAX_SIZE: usize = 1 << 30;

    /// A builder of batches with this compression; `level` is the codec's, or its default. `capacity` is how
    /// many bytes a batch will have uncompressed, as a hint.
    pub fn new(compression: Compression, level: Option<i32>, capacity: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            expected_size: capacity.clamp(BatchHeader::SIZE, Self::MAX_SIZE),
            compression,
            level,
            records_count: 0,
            base_timestamp: -1,
            max_timestamp: -1,
        }
    }

    /// Adds a record. `timestamp` is in ms since 1970, or −1 for none; `headers` keep their order and their
    /// duplicates, and are iterated twice: `[]` for none.
    ///
    /// # Errors
    /// [`RecordError::BatchFull`] when the batch would be larger than [`BatchBuilder::MAX_SIZE`]; the record is
    /// not added.
    pub fn append<'h, H>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<(), RecordError>
    where
        H: IntoIterator<Item = Header<'h>>,
        H::IntoIter: Clone,
    {
        let headers = headers.into_iter();
        if self.records_count == 0 {
            self.base_timestamp = timestamp;
            self.max_timestamp = timestamp;
            self.buffer.clear();
            self.buffer.reserve(self.expected_size);
            self.buffer.extend_from_slice(&[0; BatchHeader::SIZE]);
        }
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        let (header_count, headers_size) = measure_headers(headers.clone());
        let length = body_size(timestamp_delta, self.records_count, key, value, headers_size);
        let size = self.buffer.len() + varint::MAX_I32 + length;
        let Ok(length) = i32::try_from(length) else {
            return Err(RecordError::BatchFull { size });
        };
        if size > Self::MAX_SIZE {
            return Err(RecordError::BatchFull { size });
        }

        self.buffer.reserve(varint::MAX_I32 + length as usize);
        // The numbers before the key, in one piece: length, attributes, both deltas and the key's length.
        let mut head = [0; 4 * varint::MAX_I32 + varint::MAX_I64];
        let mut end = put_i32(&mut head, 0, length) + 1;
        end = put_i64(&mut head, end, timestamp_delta);
        end = put_i32(&mut head, end, self.records_count);
        end = put_i32(&mut head, end, length_of(key));
        self.buffer.extend_from_slice(&head[..end]);
        self.buffer.extend_from_slice(key.unwrap_or_default());
        end = put_i32(&mut head, 0, length_of(value));
        self.buffer.extend_from_slice(&head[..end]);
        self.buffer.extend_from_slice(value.unwrap_or_default());
        end = put_i32(&mut head, 0, header_count);
        self.buffer.extend_from_slice(&head[..end]);
        if header_count > 0 {
            self.append_headers(headers);
        }
        self.records_count += 1;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        Ok(())
    }

    fn append_headers<'h>(&mut self, headers: impl Iterator<Item = Header<'h>>) {
        let mut number = [0; varint::MAX_I32];
        for header in headers {
            let end = put_i32(&mut number, 0, header.key.len() as i32);
            self.buffer.extend_from_slice(&number[..end]);
            self.buffer.extend_from_slice(header.key);
            let end = put_i32(&mut number, 0, length_of(header.value));
            self.buffer.extend_from_slice(&number[..end]);
            self.buffer.extend_from_slice(header.value.unwrap_or_default());
        }
    }

    /// How many records have been added.
    pub fn records_count(&self) -> i32 {
        self.records_count
    }

    /// Whether no record has been added.
    pub fn is_empty(&self) -> bool {
        self.records_count == 0
    }

    /// The size the batch would have now, in bytes, if it is not compressed.
    pub fn size_in_bytes(&self) -> usize {
        if self.is_empty() { BatchHeader::SIZE } else { self.buffer.len() }
    }

    /// At most how many bytes a record with `headers` takes uncompressed, in any batch.
    pub fn record_size_at_most<'h>(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = Header<'h>>,
    ) -> usize {
        let (_, headers_size) = measure_headers(headers.into_iter());
        varint::MAX_I32 + body_size(i64::MIN, i32::MIN, key, value, headers_size)
    }

    /// Forgets the records that have been added.
    pub fn clear(&mut self) {
        self.records_count = 0;
        self.buffer.clear();
    }

    /// Makes a batch of the records, at offset 0 and without a leader epoch, and starts afresh.
    ///
    /// # Panics
    /// When no record has been added: there are no empty batches.
    pub fn finish(&mut self, compressor: &mut Compressor, producer: Option<&BatchProducer>) -> RecordBatch {
        self.take(compressor, producer, complete)
    }

    /// As [`finish`](Self::finish), for a batch that is yet given a [producer](RecordBatch::from_producer) before anyone
    /// sees it: it has no checksum until then, so that none is computed in vain.
    ///
    /// # Panics
    /// When no record has been added.
    pub fn finish_unsummed(&mut self, compressor: &mut Compressor) -> RecordBatch {
        self.take(compressor, None, complete_unsummed)
    }

    fn take(
        &mut self,
        compressor: &mut Compressor,
        producer: Option<&BatchProducer>,
        complete: impl FnOnce(&mut BatchHeader, &mut [u8]),
    ) -> RecordBatch {
        assert!(self.records_count > 0, "a batch has at least one record");
        // The last record of a full batch asks for a little more than it takes.
        self.expected_size = self.buffer.len() + self.buffer.len() / 16;
        let mut header = self.header(producer);
        if self.compression == Compression::None {
            // All of it: what shared its memory with the next batch would be copied when it is changed.
            let mut batch = std::mem::take(&mut self.buffer);
            self.records_count = 0;
            complete(&mut header, &mut batch);
            return RecordBatch::from_parts(header, batch.freeze());
        }
        let mut batch = Vec::with_capacity(BatchHeader::SIZE + self.buffer.len() / 2);
        batch.resize(BatchHeader::SIZE, 0);
        compressor.compress(self.compression, self.level, &self.buffer[BatchHeader::SIZE..], &mut batch);
        self.clear();
        complete(&mut header, &mut batch);
        RecordBatch::from_parts(header, Bytes::from(batch))
    }

    fn header(&self, producer: Option<&BatchProducer>) -> BatchHeader {
        let transactional = producer.is_some_and(|producer| producer.transactional);
        BatchHeader {
            base_offset: Offset(0),
            batch_length: 0,
            partition_leader_epoch: LeaderEpoch::UNKNOWN,
            crc: 0,
            attributes: self.compression as i16 | if transactional { TRANSACTIONAL } else { 0 },
            last_offset_delta: self.records_count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: producer.map_or(ProducerId::NONE, |producer| producer.id),
            producer_epoch: producer.map_or(ProducerEpoch::NONE, |producer| producer.epoch),
            base_sequence: producer.map_or(-1, |producer| producer.base_sequence),
            records_count: self.records_count,
        }
    }
}

/// Writes the header over the room for it, with the length and the checksum of what follows.
pub(super) fn complete(header: &mut BatchHeader, batch: &mut [u8]) {
    complete_unsummed(header, batch);
    stamp_checksum(batch);
    header.crc = u32::from_be_bytes([batch[17], batch[18], batch[19], batch[20]]);
}

fn complete_unsummed(header: &mut BatchHeader, batch: &mut [u8]) {
    header.batch_length = i32::try_from(batch.len() - BatchHeader::OVERHEAD)
        .expect("append keeps batches below 2 GiB and codecs do not double them");
    let room = batch.first_chunk_mut::<{ BatchHeader::SIZE }>().expect("room was made for the header");
    header.write(room);
}

#[inline(always)]
fn length_of(bytes: Option<&[u8]>) -> i32 {
    // A length that does not fit was refused together with the whole record's.
    bytes.map_or(-1, |bytes| bytes.len() as i32)
}

/// The size of a record less its length field.
#[inline(always)]
fn body_size(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers_size: usize,
) -> usize {
    1 + size_i64(timestamp_delta)
        + size_i32(offset_delta)
        + nullable_size(key)
        + nullable_size(value)
        + headers_size
}

#[inline(always)]
fn nullable_size(bytes: Option<&[u8]>) -> usize {
    size_i32(length_of(bytes)) + bytes.map_or(0, <[u8]>::len)
}

/// How many headers there are, and the bytes they take together with their count.
#[inline(always)]
fn measure_headers<'h>(headers: impl Iterator<Item = Header<'h>>) -> (i32, usize) {
    let mut count = 0;
    let mut size = 0;
    for header in headers {
        count += 1;
        size += size_i32(header.key.len() as i32) + header.key.len() + nullable_size(header.value);
    }
    (count, size + size_i32(count))
}
