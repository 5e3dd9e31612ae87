//! A stretch of a segment file that stands for the bytes in it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

/// `len` bytes of a segment file from `position`: what a read of the log returns instead of the bytes
/// themselves, so that a plaintext connection can hand them to `sendfile` and never copy them.
///
/// The file stays readable while a slice holds it, even when retention has unlinked it.
#[derive(Clone, Debug)]
pub struct LogSlice {
    /// The open segment file.
    pub file: Arc<File>,
    /// Where the slice begins, in bytes from the start of the file.
    pub position: u64,
    /// How many bytes it spans.
    pub len: u32,
}

impl LogSlice {
    /// Reads the slice into memory with one `pread`.
    ///
    /// # Errors
    /// Fails when the file cannot be read or ends before the slice does.
    pub fn read(&self) -> io::Result<Bytes> {
        let mut bytes = BytesMut::zeroed(self.len as usize);
        self.file.read_exact_at(&mut bytes, self.position)?;
        Ok(bytes.freeze())
    }
}

/// The record batches of one partition in a message: bytes, or a stretch of a segment file.
#[derive(Clone, Debug)]
pub enum Records {
    /// Batches in memory.
    Bytes(Bytes),
    /// Batches in a segment file.
    Slice(LogSlice),
}

impl Records {
    /// The size of the batches in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Slice(slice) => slice.len as usize,
        }
    }

    /// Whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The batches in memory, read from the file where they lie in one.
    ///
    /// # Errors
    /// Fails when the segment file cannot be read.
    pub fn into_bytes(self) -> io::Result<Bytes> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Slice(slice) => slice.read(),
        }
    }
}

impl PartialEq for Records {
    /// Equal when the bytes are; two slices only when they are the same stretch of the same open file.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Slice(a), Self::Slice(b)) => {
                Arc::ptr_eq(&a.file, &b.file) && a.position == b.position && a.len == b.len
            }
            _ => false,
        }
    }
}
