//! The compression codecs of record batches.

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
    /// The codec with this id in the attributes of a batch.
    pub fn from_id(id: i16) -> Option<Self> {
        match id {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }
}
