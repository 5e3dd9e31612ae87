//! The seam to the disk.

mod cached_only;
mod disk;
mod on_demand;
mod open_files;

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

pub(crate) use cached_only::CachedOnly;
pub use disk::DiskFilesystem;
pub(crate) use on_demand::OnDemandFile;
pub use open_files::OpenFiles;

/// A file opened through a [`Filesystem`]. Cloning shares the open file.
#[derive(Clone, Debug)]
pub struct StoredFile {
    /// The open file: for reads and `sendfile` only. Whoever changes it goes through the file system, which
    /// would otherwise not know of it.
    pub file: Arc<File>,
    /// What the file system knows the file by; means nothing to others.
    pub id: u64,
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A file that is made if it is missing, and emptied if it is not; for reading and writing.
    Create,
    /// An existing file for writing alone: a write has reached the disk when it returns (`O_DSYNC`), and goes past the page
    /// cache (`O_DIRECT`), for which its memory, position and length must be multiples of 4096. Where the file system
    /// cannot do that the error is `EINVAL`.
    Through,
}

/// What became of the wish to [reserve](Filesystem::reserve) space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// Writing there will find space.
    Made,
    /// There is not enough. Some of it may have been taken, until the file's length is set.
    NoSpace,
    /// The file system cannot promise it.
    Unsupported,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name; names that are not UTF-8 are none of ours and are not listed.
    pub name: String,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// A file's size in bytes.
    pub len: u64,
}

/// What storage asks of a disk: real ([`DiskFilesystem`]), or simulated with crashes and faults
/// ([`SimulatedFilesystem`](crate::testing::SimulatedFilesystem)).
///
/// Writes reach the page cache, but for [`OpenMode::Through`]; [`sync`](Self::sync) and [`sync_directory`](Self::sync_directory) make them
/// last. A file's name lasts only once the directory is synced.
pub trait Filesystem: fmt::Debug + Send + Sync + 'static {
    /// Opens or creates a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<StoredFile>;
    /// Fills `out` from `position`; an end of file before that is an error.
    fn read_at(&self, file: &StoredFile, out: &mut [u8], position: u64) -> io::Result<()>;
    /// The same, if that need not wait for a device; says whether it did. Where this cannot be told it is done.
    fn read_cached_at(&self, file: &StoredFile, out: &mut [u8], position: u64) -> io::Result<bool> {
        self.read_at(file, out, position).map(|()| true)
    }
    /// Writes the parts one after the other from `position`. After an error any prefix may have been written.
    fn write_at(&self, file: &StoredFile, parts: &mut [IoSlice<'_>], position: u64) -> io::Result<()>;
    /// Sees to it that writing from `from` up to `to` will find space, without making the file longer.
    fn reserve(&self, _file: &StoredFile, _from: u64, _to: u64) -> io::Result<Reservation> {
        Ok(Reservation::Unsupported)
    }
    /// Cuts the file to `len` bytes, which gives back what is reserved after it, or extends it with zeros.
    fn set_len(&self, file: &StoredFile, len: u64) -> io::Result<()>;
    /// Makes the file's contents last (`fdatasync`).
    fn sync(&self, file: &StoredFile) -> io::Result<()>;
    /// Makes the names in a directory last: creations, renames and removals.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Renames a file or directory, replacing a file of the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file, or an empty directory.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory whose parent exists.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Lists a directory, sorted by name.
    fn list(&self, path: &Path) -> io::Result<Vec<DirectoryEntry>>;
}
