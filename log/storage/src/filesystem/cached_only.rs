//! Reading only what needs no disk.

use std::io::{self, ErrorKind, IoSlice};
use std::path::Path;
use std::sync::Arc;

use super::{DirectoryEntry, Filesystem, OpenMode, StoredFile};

/// A file system that reads what is in memory, and says [`ErrorKind::WouldBlock`] of everything else.
#[derive(Debug)]
pub(crate) struct CachedOnly(pub(crate) Arc<dyn Filesystem>);

fn would_block<T>() -> io::Result<T> {
    Err(ErrorKind::WouldBlock.into())
}

impl Filesystem for CachedOnly {
    fn open(&self, _: &Path, _: OpenMode) -> io::Result<StoredFile> {
        would_block()
    }

    fn read_at(&self, file: &StoredFile, out: &mut [u8], position: u64) -> io::Result<()> {
        if self.0.read_cached_at(file, out, position)? { Ok(()) } else { would_block() }
    }

    /// Into the page cache, as every append does: what is gathered is written for a reader.
    fn write_at(&self, file: &StoredFile, parts: &mut [IoSlice<'_>], position: u64) -> io::Result<()> {
        self.0.write_at(file, parts, position)
    }

    fn set_len(&self, _: &StoredFile, _: u64) -> io::Result<()> {
        would_block()
    }

    fn sync(&self, _: &StoredFile) -> io::Result<()> {
        would_block()
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        would_block()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        would_block()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        would_block()
    }

    fn create_directory(&self, _: &Path) -> io::Result<()> {
        would_block()
    }

    fn list(&self, _: &Path) -> io::Result<Vec<DirectoryEntry>> {
        would_block()
    }
}
