//! A file that is opened when it is first needed.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{OpenMode, Reservation, StoredFile};
use crate::environment::Environment;
use crate::error::Error;

/// An existing file that holds a descriptor only while it is in use: a data directory has more files than
/// a process may open. Cloning shares the descriptor.
#[derive(Clone, Debug)]
pub(crate) struct OnDemandFile {
    handle: Arc<Handle>,
}

/// What [`OpenFiles`](super::OpenFiles) knows of such a file.
#[derive(Debug)]
pub(super) struct Handle {
    path: PathBuf,
    /// Guards the open file, nothing else; held over the open so that two threads do not open it twice.
    open: Mutex<Option<StoredFile>>,
    was_used: AtomicBool,
    /// Whether the file is to stay open as long as this lives.
    is_pinned: AtomicBool,
    /// Whether there may be bytes that are not synced. The kernel tells of writes that failed only those who have the file
    /// open.
    is_unsynced: AtomicBool,
    /// Whether [`OpenFiles`](super::OpenFiles) has it in its queue.
    pub(super) is_queued: AtomicBool,
}

impl OnDemandFile {
    /// A file that exists.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self::with(path, None, false)
    }

    /// A file that has just been made, and is empty.
    pub(crate) fn created(path: PathBuf, file: StoredFile, environment: &Environment) -> Self {
        let created = Self::with(path, Some(file), false);
        environment.open_files.enter(&created.handle);
        created
    }

    /// A file that has just been written and is not synced.
    pub(crate) fn written(path: PathBuf, file: StoredFile) -> Self {
        Self::with(path, Some(file), true)
    }

    fn with(path: PathBuf, open: Option<StoredFile>, is_unsynced: bool) -> Self {
        let handle = Handle {
            path,
            open: Mutex::new(open),
            was_used: AtomicBool::new(true),
            is_pinned: AtomicBool::new(false),
            is_unsynced: AtomicBool::new(is_unsynced),
            is_queued: AtomicBool::new(false),
        };
        Self { handle: Arc::new(handle) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.handle.path
    }

    pub(crate) fn get(&self, environment: &Environment) -> Result<StoredFile, Error> {
        let handle = &self.handle;
        handle.was_used.store(true, Ordering::Relaxed);
        let mut open = handle.open.lock();
        if let Some(file) = &*open {
            return Ok(file.clone());
        }
        let file = environment.open(&handle.path, OpenMode::Write)?;
        *open = Some(file.clone());
        environment.open_files.enter(handle);
        Ok(file)
    }

    /// Writes the parts one after the other from `position`.
    pub(crate) fn write_at(
        &self,
        parts: &mut [IoSlice<'_>],
        position: u64,
        environment: &Environment,
    ) -> Result<(), Error> {
        self.change(environment, |file| environment.write_at(file, self.path(), parts, position))
    }

    /// See [`Environment::reserve`].
    pub(crate) fn reserve(
        &self,
        from: u64,
        to: u64,
        environment: &Environment,
    ) -> Result<Reservation, Error> {
        environment.reserve(&self.get(environment)?, self.path(), from, to)
    }

    /// Cuts the file to `len` bytes.
    pub(crate) fn set_len(&self, len: u64, environment: &Environment) -> Result<(), Error> {
        self.change(environment, |file| environment.set_len(file, self.path(), len))
    }

    /// The file stays open while it is borrowed here, and afterwards because it is unsynced. Noted behind the change: a sync that
    /// goes on meanwhile may or may not have it.
    fn change(
        &self,
        environment: &Environment,
        change: impl FnOnce(&StoredFile) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let file = self.get(environment)?;
        let result = change(&file);
        self.handle.is_unsynced.store(true, Ordering::Release);
        result
    }

    pub(crate) fn sync(&self, environment: &Environment) -> Result<(), Error> {
        let file = self.get(environment)?;
        self.handle.is_unsynced.store(false, Ordering::Release);
        environment.sync(&file, self.path())
    }

    /// Opens the file and keeps it open: its name is about to be another file's.
    pub(crate) fn pin(&self, environment: &Environment) -> Result<(), Error> {
        // Before it is opened, so that nobody closes it in between.
        self.handle.is_pinned.store(true, Ordering::SeqCst);
        self.get(environment).map(|_| ())
    }

    /// Takes [`pin`](Self::pin) back.
    pub(crate) fn unpin(&self) {
        self.handle.is_pinned.store(false, Ordering::SeqCst);
    }

    /// Gives the descriptor back, unless the file is pinned; whoever still reads the file keeps it open. Only for files whose bytes are
    /// synced, or do not matter any more.
    pub(crate) fn close(&self) {
        let mut open = self.handle.open.lock();
        if !self.handle.is_pinned.load(Ordering::SeqCst) {
            *open = None;
        }
    }

    /// Closes the file when it has not been used since this was last called, unless it has bytes that are not synced.
    pub(crate) fn close_if_idle(&self) {
        self.handle.close_if_unused();
    }
}

impl Handle {
    /// Closes a file that has not been used since this was last called, that nobody holds and that has no unsynced bytes. Returns
    /// whether it is closed now. Does not wait for whoever opens it just then.
    pub(super) fn close_if_unused(&self) -> bool {
        let Some(mut open) = self.open.try_lock() else { return false };
        let Some(file) = &*open else { return true };
        let is_needed = self.was_used.swap(false, Ordering::Relaxed)
            || self.is_pinned.load(Ordering::SeqCst)
            // Whoever has it may be writing; and it would stay open all the same.
            || Arc::strong_count(&file.file) > 1
            || self.is_unsynced.load(Ordering::Acquire);
        if !is_needed {
            *open = None;
        }
        !is_needed
    }
}
