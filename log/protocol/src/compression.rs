//! The compression codecs of record batches.
//!
//! [`Compressor`] and [`Scratch`] keep the codecs' contexts, so that a thread that has one of each allocates
//! them once. Decompression writes into a buffer that grows with what has really been decompressed and stops at
//! a limit: no claim in the compressed bytes can make it allocate. The window of a zstd frame is the exception: up to
//! 128 MiB of addresses, of which no more is used than is decompressed, until the frame's end.

mod gzip;
mod lz4;
mod output;
mod snappy;
mod zstd;

use std::fmt;

use bytes::Bytes;

use self::output::{Fault, Output};
use crate::record::RecordError;

/// How the records of a batch are compressed; the discriminant is the id in the batch's attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    #[default]
    None = 0,
    /// gzip (RFC 1952).
    Gzip = 1,
    /// Snappy, in Xerial's framing as Java writes it; raw Snappy is read too.
    Snappy = 2,
    /// LZ4 frames.
    Lz4 = 3,
    /// Zstandard (RFC 8878).
    Zstd = 4,
}

impl Compression {
    /// All of them, in the order of their ids.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec with this id in the attributes of a batch.
    pub fn from_id(id: i16) -> Option<Self> {
        Self::ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// The name that Kafka's configuration has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec with this name in Kafka's configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether every reader gets out of `input` what [`Scratch::decompress`] gets out of it. That one takes all that a format allows,
/// and Java's consumers do not.
pub(crate) fn is_read_by_all(compression: Compression, input: &[u8]) -> bool {
    match compression {
        Compression::Lz4 => lz4::is_read_by_all(input),
        Compression::Snappy => snappy::is_read_by_all(input),
        Compression::None | Compression::Gzip | Compression::Zstd => true,
    }
}

/// The contexts for compressing, made when a codec is first used.
#[derive(Default)]
pub struct Compressor {
    gzip: gzip::Compressor,
    snappy: snappy::Compressor,
    lz4: lz4::Compressor,
    zstd: zstd::Compressor,
}

impl Compressor {
    /// A compressor that has no context yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `input`, compressed, to `out`. `level` is gzip's 0–9 or zstd's −131072–22, brought into that
    /// range, and means nothing to the others; `None` is the codec's default (6 and 3).
    pub fn compress(
        &mut self,
        compression: Compression,
        level: Option<i32>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) {
        match compression {
            Compression::None => out.extend_from_slice(input),
            Compression::Gzip => self.gzip.compress(level, input, out),
            Compression::Snappy => self.snappy.compress(input, out),
            Compression::Lz4 => self.lz4.compress(input, out),
            Compression::Zstd => self.zstd.compress(level, input, out),
        }
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

/// The buffer and the contexts for decompressing batches, and the limit they are decompressed to.
///
/// One per thread is enough: it is used for one batch after the other.
pub struct Scratch {
    limit: usize,
    buffer: Vec<u8>,
    /// How large the buffer is made to begin with, in bytes: somewhat more than was needed last.
    expected_size: usize,
    gzip: gzip::Decompressor,
    zstd: zstd::Decompressor,
}

/// The buffer is given back when it has grown beyond this, in bytes, and the next batch needs less.
const KEPT_BUFFER: usize = 4 << 20;

impl Scratch {
    /// A scratch that decompresses a batch's records to at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            expected_size: 0,
            gzip: gzip::Decompressor::default(),
            zstd: zstd::Decompressor::default(),
        }
    }

    /// The most bytes that a batch's records may have decompressed.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Decompresses `input` into the scratch's buffer, where it stays until the next call.
    ///
    /// # Errors
    /// [`RecordError::Decompression`] when `input` is not what the codec writes or does not end with it, and
    /// [`RecordError::DecompressedTooLarge`] as soon as more than the limit comes out.
    pub fn decompress(&mut self, compression: Compression, input: &[u8]) -> Result<&[u8], RecordError> {
        let len = self.fill(compression, input)?;
        Ok(&self.buffer[..len])
    }

    /// Decompresses `input` into a buffer of its own.
    ///
    /// # Errors
    /// As [`Scratch::decompress`].
    pub fn decompress_owned(&mut self, compression: Compression, input: &[u8]) -> Result<Bytes, RecordError> {
        let len = self.fill(compression, input)?;
        if len < self.buffer.len() / 2 {
            return Ok(Bytes::copy_from_slice(&self.buffer[..len]));
        }
        let mut owned = std::mem::take(&mut self.buffer);
        owned.truncate(len);
        Ok(Bytes::from(owned))
    }

    fn fill(&mut self, compression: Compression, input: &[u8]) -> Result<usize, RecordError> {
        if self.buffer.len() > KEPT_BUFFER {
            self.buffer = Vec::new();
        }
        let mut out = Output::new(&mut self.buffer, self.expected_size, self.limit);
        let result = match compression {
            Compression::None => out.extend(input),
            Compression::Gzip => self.gzip.decompress(input, &mut out),
            Compression::Snappy => snappy::decompress(input, &mut out),
            Compression::Lz4 => lz4::decompress(input, &mut out),
            Compression::Zstd => self.zstd.decompress(input, &mut out),
        };
        let len = out.len();
        match result {
            Ok(()) => {
                self.expected_size = (len + len / 8).min(KEPT_BUFFER);
                Ok(len)
            }
            Err(Fault::Corrupt) => Err(RecordError::Decompression { compression }),
            Err(Fault::TooLarge) => Err(RecordError::DecompressedTooLarge { limit: self.limit }),
        }
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("limit", &self.limit).finish_non_exhaustive()
    }
}
