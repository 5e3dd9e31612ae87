//! Why bytes are not the record batch they claim to be.

use crate::compression::Compression;

/// Why bytes are not the record batch they claim to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end before the batch does.
    #[error("{needed} bytes are needed but {available} are there")]
    Truncated {
        /// How many bytes the batch claims or needs at least.
        needed: usize,
        /// How many there are.
        available: usize,
    },
    /// A format version other than 2.
    #[error("record format version {magic} is not supported; only version 2 is")]
    UnsupportedMagic {
        /// The version that was found.
        magic: i8,
    },
    /// A batch length that not even a header fits in.
    #[error("batch length {length} is smaller than a batch header")]
    BatchLength {
        /// The length that was found.
        length: i32,
    },
    /// Bytes follow where exactly one batch is wanted.
    #[error("{extra} bytes follow the batch where exactly one batch is allowed")]
    MoreThanOneBatch {
        /// How many bytes follow.
        extra: usize,
    },
    /// The batch is larger than the limit that was given.
    #[error("the batch has {size} bytes where {limit} are allowed")]
    BatchTooLarge {
        /// The size of the whole batch in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The CRC-32C in the header is not that of the bytes.
    #[error("the checksum is {stored:#010x} in the header but {computed:#010x} over the bytes")]
    Checksum {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A compression id that no codec has.
    #[error("compression id {id} is unknown")]
    UnknownCompression {
        /// The id that was found.
        id: i8,
    },
    /// The compressed records are not what the codec writes, or what not every reader of it takes.
    #[error("the records do not decompress with {compression}")]
    Decompression {
        /// The codec of the batch.
        compression: Compression,
    },
    /// The records grow beyond the limit when decompressed.
    #[error("the records have more than {limit} bytes when decompressed")]
    DecompressedTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// Attribute bits that a producer may not set.
    #[error("attributes {attributes:#06x} are not a producer's")]
    Attributes {
        /// The attributes that were found.
        attributes: i16,
    },
    /// A control batch from a producer.
    #[error("only brokers write control batches")]
    ControlBatch,
    /// A control batch whose record is not a control record.
    #[error("a control record needs a key of 4 bytes and a value that fits its type")]
    ControlRecord,
    /// Producer id, epoch and sequence number do not fit each other.
    #[error(
        "producer id {producer_id}, epoch {producer_epoch} and sequence {base_sequence} do not fit together"
    )]
    ProducerFields {
        /// The producer id that was found.
        producer_id: i64,
        /// The producer epoch that was found.
        producer_epoch: i16,
        /// The sequence number that was found.
        base_sequence: i32,
    },
    /// A record count that cannot be, or does not fit the offsets.
    #[error("{records_count} records do not fit a last offset delta of {last_offset_delta}")]
    RecordCount {
        /// The count in the header.
        records_count: i32,
        /// The last offset delta in the header.
        last_offset_delta: i32,
    },
    /// Bytes follow the last record.
    #[error("{extra} bytes follow the last record")]
    TrailingBytes {
        /// How many bytes follow.
        extra: usize,
    },
    /// A record that is not well formed.
    #[error("record {index} of the batch: {fault}")]
    Record {
        /// The record's place in the batch, from 0.
        index: i32,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// A timestamp outside of what the topic takes.
    #[error("record {index} of the batch: timestamp {timestamp} is not between {earliest} and {latest}")]
    Timestamp {
        /// The record's place in the batch, from 0.
        index: i32,
        /// The timestamp in ms since 1970.
        timestamp: i64,
        /// The earliest timestamp taken.
        earliest: i64,
        /// The latest timestamp taken.
        latest: i64,
    },
    /// A record that would make a batch larger than the format allows.
    #[error("a batch cannot hold {size} bytes")]
    BatchFull {
        /// The size the batch would have.
        size: usize,
    },
}

/// What is wrong with a single record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// A variable-length integer that does not end, or does not fit its type.
    #[error("a variable-length integer is malformed")]
    Varint,
    /// The record's length is negative or beyond the bytes that remain.
    #[error("its length {length} does not fit the {available} bytes that remain")]
    Length {
        /// The length that was found.
        length: i32,
        /// The bytes that remain in the batch.
        available: usize,
    },
    /// The record ends inside of a field.
    #[error("it ends inside of a field")]
    Truncated,
    /// A key length below −1 or beyond the record.
    #[error("its key length {length} does not fit the record")]
    KeyLength {
        /// The length that was found.
        length: i32,
    },
    /// A value length below −1 or beyond the record.
    #[error("its value length {length} does not fit the record")]
    ValueLength {
        /// The length that was found.
        length: i32,
    },
    /// A negative header count, or more than the record has bytes for.
    #[error("its header count {count} does not fit the record")]
    HeaderCount {
        /// The count that was found.
        count: i32,
    },
    /// A header key length that is negative or beyond the record.
    #[error("a header key length of {length} does not fit the record")]
    HeaderKeyLength {
        /// The length that was found.
        length: i32,
    },
    /// A header value length below −1 or beyond the record.
    #[error("a header value length of {length} does not fit the record")]
    HeaderValueLength {
        /// The length that was found.
        length: i32,
    },
    /// An offset delta out of order or beyond the batch.
    #[error("its offset delta {delta} is out of order")]
    OffsetDelta {
        /// The delta that was found.
        delta: i32,
    },
    /// The record's length is more than its fields take.
    #[error("{extra} bytes follow its last field")]
    TrailingBytes {
        /// How many bytes are left over.
        extra: usize,
    },
}

/// The kinds of [`RecordError`] that a broker answers differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordErrorKind {
    /// The bytes were damaged on the way: worth another try.
    Corrupt,
    /// The producer wrote what no log takes.
    Invalid,
    /// A timestamp is out of range.
    Timestamp,
    /// The batch is too large, as it is or decompressed.
    TooLarge,
    /// No codec has this id.
    UnsupportedCompression,
    /// A format version other than 2.
    UnsupportedFormat,
}

impl RecordError {
    /// Which kind of error this is.
    pub fn kind(&self) -> RecordErrorKind {
        match self {
            Self::Truncated { .. } | Self::BatchLength { .. } | Self::Checksum { .. } => {
                RecordErrorKind::Corrupt
            }
            Self::UnsupportedMagic { .. } => RecordErrorKind::UnsupportedFormat,
            Self::UnknownCompression { .. } => RecordErrorKind::UnsupportedCompression,
            Self::BatchTooLarge { .. } | Self::DecompressedTooLarge { .. } | Self::BatchFull { .. } => {
                RecordErrorKind::TooLarge
            }
            Self::Timestamp { .. } => RecordErrorKind::Timestamp,
            Self::MoreThanOneBatch { .. }
            | Self::Decompression { .. }
            | Self::Attributes { .. }
            | Self::ControlBatch
            | Self::ControlRecord
            | Self::ProducerFields { .. }
            | Self::RecordCount { .. }
            | Self::TrailingBytes { .. }
            | Self::Record { .. } => RecordErrorKind::Invalid,
        }
    }

    /// The place in the batch of the record at fault, where it is a single one.
    pub fn record_index(&self) -> Option<i32> {
        match self {
            Self::Record { index, .. } | Self::Timestamp { index, .. } => Some(*index),
            _ => None,
        }
    }
}
