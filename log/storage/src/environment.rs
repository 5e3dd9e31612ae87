//! What the logs of one data directory share.

use std::io::{self, ErrorKind, IoSlice};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::clock::Clock;
use crate::error::{Error, Operation};
use crate::filesystem::{
    CachedOnly, DirectoryEntry, Filesystem, OpenFiles, OpenMode, Reservation, StoredFile,
};
use crate::unwritten::UnwrittenMemory;

/// The disk, the clock and the health of a data directory, handed to every log in it.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where the files are.
    pub filesystem: Arc<dyn Filesystem>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Whether the directory can still be trusted.
    pub health: Arc<DirectoryHealth>,
    /// Which files of segments are open.
    pub open_files: Arc<OpenFiles>,
    /// What gathers batches before they are written.
    pub unwritten: Arc<UnwrittenMemory>,
}

/// How many files of segments are open at once where nothing else is said.
const MAX_OPEN_FILES: usize = 4096;

/// Whether a data directory is online. An I/O error takes it offline for good: only opening it again, which
/// recovers it from the disk, brings it back.
#[derive(Debug)]
pub struct DirectoryHealth {
    path: PathBuf,
    failure: OnceLock<String>,
    /// Whether the disk was full, and nothing has been removed for that since.
    is_short_of_space: AtomicBool,
    is_closing: AtomicBool,
}

impl DirectoryHealth {
    /// A directory that is online.
    pub fn new(path: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            path: path.into(),
            failure: OnceLock::new(),
            is_short_of_space: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
        })
    }

    /// The data directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why the directory is offline, if it is.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// # Errors
    /// [`Error::DirectoryOffline`] once it is.
    pub fn check(&self) -> Result<(), Error> {
        match self.failure.get() {
            None => Ok(()),
            Some(reason) => Err(Error::DirectoryOffline { path: self.path.clone(), reason: reason.clone() }),
        }
    }

    /// Whether the disk was full, and nothing has been removed for that since.
    pub(crate) fn is_short_of_space(&self) -> bool {
        self.is_short_of_space.load(Ordering::Relaxed)
    }

    /// Whether the directory is about to be closed: what takes its time does not any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    pub(crate) fn set_closing(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// What could be removed has been.
    pub(crate) fn space_was_made(&self) {
        self.is_short_of_space.store(false, Ordering::Relaxed);
    }

    /// Takes the directory offline; the first reason stays.
    pub(crate) fn fail(&self, error: &Error) {
        if self.failure.set(error.to_string()).is_ok() {
            tracing::error!(directory = %self.path.display(), %error, "the directory goes offline");
        }
    }
}

impl Environment {
    /// That of the data directory `directory`, with at most about 4,096 files of segments open.
    pub fn new(
        filesystem: Arc<dyn Filesystem>,
        clock: Arc<dyn Clock>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        let health = DirectoryHealth::new(directory);
        let open_files = OpenFiles::new(MAX_OPEN_FILES);
        Self { filesystem, clock, health, open_files, unwritten: Arc::default() }
    }

    /// The same with at most about `most` files of segments open. Before it is used.
    pub fn with_max_open_files(self, most: usize) -> Self {
        Self { open_files: OpenFiles::new(most), ..self }
    }

    /// The same for reading what needs no disk; see [`CachedOnly`].
    pub(crate) fn cached_only(&self) -> Self {
        Self { filesystem: Arc::new(CachedOnly(Arc::clone(&self.filesystem))), ..self.clone() }
    }
}

/// The file system's calls with this crate's errors: an error that will not pass takes the directory offline.
impl Environment {
    pub(crate) fn open(&self, path: &Path, mode: OpenMode) -> Result<StoredFile, Error> {
        self.filesystem.open(path, mode).map_err(|e| self.failed(Operation::Open, path, e))
    }

    /// Opens a file whose writes reach the disk by themselves; `None` where the file system has no such files.
    pub(crate) fn open_through(&self, path: &Path) -> Result<Option<StoredFile>, Error> {
        match self.filesystem.open(path, OpenMode::Through) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
            other => other.map(Some).map_err(|e| self.failed(Operation::Open, path, e)),
        }
    }

    pub(crate) fn read_at(
        &self,
        file: &StoredFile,
        path: &Path,
        out: &mut [u8],
        position: u64,
    ) -> Result<(), Error> {
        self.filesystem.read_at(file, out, position).map_err(|e| self.failed(Operation::Read, path, e))
    }

    pub(crate) fn write_at(
        &self,
        file: &StoredFile,
        path: &Path,
        parts: &mut [IoSlice<'_>],
        position: u64,
    ) -> Result<(), Error> {
        self.filesystem.write_at(file, parts, position).map_err(|e| self.failed(Operation::Write, path, e))
    }

    /// See [`Filesystem::reserve`].
    pub(crate) fn reserve(
        &self,
        file: &StoredFile,
        path: &Path,
        from: u64,
        to: u64,
    ) -> Result<Reservation, Error> {
        self.filesystem.reserve(file, from, to).map_err(|e| self.failed(Operation::Write, path, e))
    }

    /// Whether a file takes space beyond its end.
    pub(crate) fn has_space_beyond(&self, file: &StoredFile, path: &Path) -> Result<bool, Error> {
        let metadata = file.file.metadata().map_err(|e| self.failed(Operation::Read, path, e))?;
        // Blocks are counted in 512 bytes; a file takes whole ones of its file system.
        Ok(metadata.blocks() * 512 >= metadata.len() + 2 * metadata.blksize())
    }

    pub(crate) fn set_len(&self, file: &StoredFile, path: &Path, len: u64) -> Result<(), Error> {
        self.filesystem.set_len(file, len).map_err(|e| self.failed(Operation::Truncate, path, e))
    }

    /// A failed sync takes the directory offline whatever the reason: the kernel may have dropped the pages, so
    /// that a second try would succeed and prove nothing.
    pub(crate) fn sync(&self, file: &StoredFile, path: &Path) -> Result<(), Error> {
        self.filesystem.sync(file).map_err(|source| {
            let error = Error::Io { operation: Operation::Sync, path: path.to_owned(), source };
            self.health.fail(&error);
            error
        })
    }

    /// As [`sync`](Self::sync), but for the directory's opening, which comes before anything is synced: that there are no
    /// descriptors left passes.
    pub(crate) fn sync_directory(&self, path: &Path) -> Result<(), Error> {
        self.filesystem.sync_directory(path).map_err(|e| self.failed(Operation::Sync, path, e))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), Error> {
        self.filesystem.rename(from, to).map_err(|e| self.failed(Operation::Rename, from, e))
    }

    /// Removes a file or empty directory; one that is not there counts as removed.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), Error> {
        match self.filesystem.remove(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            other => other.map_err(|e| self.failed(Operation::Remove, path, e)),
        }
    }

    pub(crate) fn create_directory(&self, path: &Path) -> Result<(), Error> {
        self.filesystem.create_directory(path).map_err(|e| self.failed(Operation::CreateDirectory, path, e))
    }

    pub(crate) fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>, Error> {
        self.filesystem.list(path).map_err(|e| self.failed(Operation::List, path, e))
    }

    /// The whole content of a small file; `None` when there is no such file.
    pub(crate) fn read_whole(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        let file = match self.open(path, OpenMode::Read) {
            Err(error) if error.is_not_found() => return Ok(None),
            other => other?,
        };
        let mut bytes = vec![0; usize::try_from(self.len(&file, path)?).unwrap_or(usize::MAX)];
        self.read_at(&file, path, &mut bytes, 0)?;
        Ok(Some(bytes))
    }

    /// The size of a file in bytes.
    pub(crate) fn len(&self, file: &StoredFile, path: &Path) -> Result<u64, Error> {
        let metadata = file.file.metadata().map_err(|e| self.failed(Operation::Read, path, e))?;
        Ok(metadata.len())
    }

    /// Replaces a small file so that a crash leaves the old one or the new one: written beside it, synced,
    /// renamed. It lasts once the directory is synced. Gives the file back, open to be written to.
    pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> Result<StoredFile, Error> {
        let temporary = temporary_of(path);
        let file = self.open(&temporary, OpenMode::Create)?;
        self.write_at(&file, &temporary, &mut [IoSlice::new(content)], 0)?;
        self.sync(&file, &temporary)?;
        self.rename(&temporary, path)?;
        Ok(file)
    }

    /// Writes a file, in the place of one that is there; none of this lasts.
    pub(crate) fn overwrite(&self, path: &Path, content: &[u8]) -> Result<(), Error> {
        let file = self.open(path, OpenMode::Create)?;
        self.write_at(&file, path, &mut [IoSlice::new(content)], 0)
    }

    /// As [`replace`](Self::replace), and leaves nothing beside it where the disk is full: others need the space more.
    pub(crate) fn replace_or_clear(&self, path: &Path, content: &[u8]) -> Result<StoredFile, Error> {
        let result = self.replace(path, content);
        if matches!(result, Err(Error::StorageFull { .. })) {
            self.remove(&temporary_of(path))?;
        }
        result
    }

    fn failed(&self, operation: Operation, path: &Path, source: io::Error) -> Error {
        let passes = matches!(
            source.kind(),
            ErrorKind::NotFound | ErrorKind::AlreadyExists | ErrorKind::UnexpectedEof | ErrorKind::WouldBlock
        );
        let error = Error::io(operation, path, source);
        if matches!(error, Error::StorageFull { .. }) {
            self.health.is_short_of_space.store(true, Ordering::Relaxed);
        }
        if matches!(error, Error::Io { .. }) && !passes {
            self.health.fail(&error);
        }
        error
    }
}

fn temporary_of(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    PathBuf::from(temporary)
}
