//! A record batch as a view over shared bytes, and an iterator over concatenated batches.

use bytes::{Bytes, BytesMut};

use super::builder::complete;
use super::error::RecordError;
use super::iter::{DecodedBatch, RecordIter};
use super::{BatchHeader, BatchProducer, patch, stamp_append_time, stamp_max_timestamp, stamp_producer};
use crate::compression::{Compression, Compressor, Scratch};
use crate::ids::{LeaderEpoch, Offset};

/// A whole record batch: its parsed header and its bytes, shared and not copied. Cheap to clone.
///
/// The header's magic and length are checked, nothing else: see [`RecordBatch::verify`] and
/// [`validate`](super::validate).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordBatch {
    header: BatchHeader,
    bytes: Bytes,
}

impl RecordBatch {
    /// The batch that `bytes` begins with; what follows it is left out.
    ///
    /// # Errors
    /// As [`BatchHeader::parse`], and [`RecordError::Truncated`] when the batch is longer than `bytes`.
    pub fn first(bytes: &Bytes) -> Result<Self, RecordError> {
        let header = BatchHeader::parse(bytes)?;
        let needed = header.size_in_bytes();
        if bytes.len() < needed {
            return Err(RecordError::Truncated { needed, available: bytes.len() });
        }
        Ok(Self { header, bytes: bytes.slice(..needed) })
    }

    /// The batch that `bytes` is, from the first to the last.
    ///
    /// # Errors
    /// As [`RecordBatch::first`], and [`RecordError::MoreThanOneBatch`] when anything follows the batch.
    pub fn only(bytes: Bytes) -> Result<Self, RecordError> {
        let batch = Self::first(&bytes)?;
        match bytes.len() - batch.bytes.len() {
            0 => Ok(batch),
            extra => Err(RecordError::MoreThanOneBatch { extra }),
        }
    }

    pub(super) fn from_parts(header: BatchHeader, bytes: Bytes) -> Self {
        debug_assert_eq!(header.size_in_bytes(), bytes.len());
        Self { header, bytes }
    }

    /// The header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch as it is on the wire and on disk.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole batch as it is on the wire and on disk.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The size of the whole batch in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The records as they stand in the batch, compressed or not.
    pub(super) fn payload(&self) -> &[u8] {
        &self.bytes[BatchHeader::SIZE..]
    }

    /// Checks the CRC-32C and that the counts in the header can be. It does not look at the records: this is
    /// for batches that a leader has already validated, on their way to a follower, a consumer or out of a file.
    /// A cleaned batch may hold fewer records than offsets, or none.
    ///
    /// # Errors
    /// [`RecordError::Checksum`], [`RecordError::UnknownCompression`] or [`RecordError::RecordCount`].
    pub fn verify(&self) -> Result<(), RecordError> {
        let computed = checksum(&self.bytes);
        if computed != self.header.crc {
            return Err(RecordError::Checksum { stored: self.header.crc, computed });
        }
        self.header.compression()?;
        let BatchHeader { records_count, last_offset_delta, .. } = self.header;
        if last_offset_delta < 0
            || records_count < 0
            || i64::from(records_count) > i64::from(last_offset_delta) + 1
        {
            return Err(RecordError::RecordCount { records_count, last_offset_delta });
        }
        Ok(())
    }

    /// The records as views: into the batch itself where it is not compressed, else into `scratch`, where they
    /// are decompressed in one go. A transaction's marker is a record, too: see [`BatchHeader::is_control`].
    ///
    /// # Errors
    /// When the records do not decompress, or to more bytes than `scratch` allows. The iterator yields an error
    /// when a record is malformed.
    pub fn records<'a>(&'a self, scratch: &'a mut Scratch) -> Result<RecordIter<'a>, RecordError> {
        let records = match self.compressed_with()? {
            Compression::None => self.payload(),
            compression => scratch.decompress(compression, self.payload())?,
        };
        Ok(RecordIter::new(&self.header, records))
    }

    /// The records for a consumer that keeps them: a slice of the batch where it is not compressed, else a
    /// buffer of their own.
    ///
    /// # Errors
    /// As [`RecordBatch::records`].
    pub fn decode(&self, scratch: &mut Scratch) -> Result<DecodedBatch, RecordError> {
        let records = match self.compressed_with()? {
            Compression::None => self.bytes.slice(BatchHeader::SIZE..),
            compression => scratch.decompress_owned(compression, self.payload())?,
        };
        Ok(DecodedBatch::new(self.header, records))
    }

    /// How the payload has to be decompressed; a cleaned batch without records has none.
    fn compressed_with(&self) -> Result<Compression, RecordError> {
        let compression = self.header.compression()?;
        if self.header.records_count == 0 && self.payload().is_empty() {
            return Ok(Compression::None);
        }
        Ok(compression)
    }

    /// The batch at another offset and leader epoch; copied only when its bytes are shared.
    #[must_use]
    pub fn at(self, base_offset: Offset, leader_epoch: LeaderEpoch) -> Self {
        self.changed(|bytes| patch(bytes, base_offset, leader_epoch))
    }

    /// The batch with another producer, epoch and sequence; copied only when its bytes are shared.
    #[must_use]
    pub fn from_producer(self, producer: &BatchProducer) -> Self {
        self.changed(|bytes| stamp_producer(bytes, producer))
    }

    /// The batch with its records' timestamps replaced by the time of the append (`message.timestamp.type =
    /// LogAppendTime`); copied only when its bytes are shared.
    #[must_use]
    pub fn appended_at(self, timestamp: i64) -> Self {
        self.changed(|bytes| stamp_append_time(bytes, timestamp))
    }

    /// The batch with another maximum of timestamps in its header; copied only when its bytes are shared.
    #[must_use]
    pub fn with_max_timestamp(self, timestamp: i64) -> Self {
        self.changed(|bytes| stamp_max_timestamp(bytes, timestamp))
    }

    /// The batch with its records compressed by `compression`, with `level` as for [`Compressor::compress`]. Everything else stays
    /// as it is, but for the length and the checksum.
    ///
    /// # Errors
    /// When the records do not decompress, or to more bytes than `scratch` allows.
    pub fn recompressed(
        &self,
        compression: Compression,
        level: Option<i32>,
        scratch: &mut Scratch,
        compressor: &mut Compressor,
    ) -> Result<Self, RecordError> {
        let records = match self.header.compression()? {
            Compression::None => &self.bytes[BatchHeader::SIZE..],
            codec => scratch.decompress(codec, &self.bytes[BatchHeader::SIZE..])?,
        };
        let attributes = self.header.attributes & !BatchHeader::COMPRESSION | compression as i16;
        let mut header = BatchHeader { attributes, ..self.header };
        let mut batch = Vec::with_capacity(BatchHeader::SIZE + records.len() / 2);
        batch.resize(BatchHeader::SIZE, 0);
        compressor.compress(compression, level, records, &mut batch);
        complete(&mut header, &mut batch);
        Ok(Self { header, bytes: Bytes::from(batch) })
    }

    fn changed(self, change: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = self.bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        change(&mut bytes);
        let header = BatchHeader::parse(&bytes).expect("a changed header is still a header");
        Self { header, bytes: bytes.freeze() }
    }
}

/// The CRC-32C that belongs into the header of `batch`, which has at least a header's size.
pub(super) fn checksum(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[BatchHeader::CHECKSUMMED..])
}

/// Iterates over batches that follow one another, as a fetch response or a segment holds them.
///
/// The last one may be cut off, since a read of the log ends at a number of bytes: that ends the iteration
/// without an error and leaves it in [`Batches::remainder`]. An error ends the iteration, too.
#[derive(Clone, Debug)]
pub struct Batches {
    rest: Bytes,
    failed: bool,
}

impl Batches {
    /// Iterates over the batches in `bytes`.
    pub fn new(bytes: Bytes) -> Self {
        Self { rest: bytes, failed: false }
    }

    /// What has not been returned as a batch: after the end of the iteration, a batch that was cut off, or the
    /// bytes from the one that is in error.
    pub fn remainder(&self) -> &Bytes {
        &self.rest
    }

    /// Whether bytes of an incomplete batch are left, once the iteration has ended without an error.
    pub fn is_truncated(&self) -> bool {
        !self.failed && !self.rest.is_empty()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.rest.is_empty() {
            return None;
        }
        match RecordBatch::first(&self.rest) {
            Ok(batch) => {
                // Not `split_to`: the batch already is a slice of its own.
                bytes::Buf::advance(&mut self.rest, batch.size_in_bytes());
                Some(Ok(batch))
            }
            Err(RecordError::Truncated { .. }) => None,
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for Batches {}
