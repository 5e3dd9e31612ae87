//! Record batches, format version 2: header, view and builder.

mod header;

pub use header::{BatchHeader, patch};

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
    /// A compression id that no codec has.
    #[error("compression id {id} is unknown")]
    UnknownCompression {
        /// The id that was found.
        id: i8,
    },
}
