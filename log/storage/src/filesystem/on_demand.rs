//! A file that is opened when it is first needed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{OpenMode, StoredFile};
use crate::environment::Environment;
use crate::error::Error;

/// An existing file that holds a descriptor only while it is in use: a data directory has more files than
/// a process may open.
#[derive(Debug)]
pub(crate) struct OnDemandFile {
    path: PathBuf,
    /// Guards the open file, nothing else; held over the open so that two threads do not open it twice.
    open: Mutex<Option<StoredFile>>,
    was_used: AtomicBool,
    /// Whether the file is to stay open as long as this lives.
    is_pinned: AtomicBool,
}

impl OnDemandFile {
    pub(crate) fn new(path: PathBuf, open: Option<StoredFile>) -> Self {
        Self {
            path,
            open: Mutex::new(open),
            was_used: AtomicBool::new(true),
            is_pinned: AtomicBool::new(false),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn get(&self, environment: &Environment) -> Result<StoredFile, Error> {
        self.was_used.store(true, Ordering::Relaxed);
        let mut open = self.open.lock();
        if let Some(file) = &*open {
            return Ok(file.clone());
        }
        let file = environment.open(&self.path, OpenMode::Write)?;
        *open = Some(file.clone());
        Ok(file)
    }

    pub(crate) fn sync(&self, environment: &Environment) -> Result<(), Error> {
        environment.sync(&self.get(environment)?, &self.path)
    }

    /// Opens the file and keeps it open: its name is about to be another file's.
    pub(crate) fn pin(&self, environment: &Environment) -> Result<(), Error> {
        // Before it is opened, so that nobody closes it in between.
        self.is_pinned.store(true, Ordering::SeqCst);
        self.get(environment).map(|_| ())
    }

    /// Takes [`pin`](Self::pin) back.
    pub(crate) fn unpin(&self) {
        self.is_pinned.store(false, Ordering::SeqCst);
    }

    /// Gives the descriptor back, unless the file is pinned; whoever still reads the file keeps it open. Only for files whose bytes are
    /// synced: the kernel tells of failed writes only those who have the file open.
    pub(crate) fn close(&self) {
        let mut open = self.open.lock();
        if !self.is_pinned.load(Ordering::SeqCst) {
            *open = None;
        }
    }

    /// Closes the file when it has not been used since this was last called.
    pub(crate) fn close_if_idle(&self) {
        if !self.was_used.swap(false, Ordering::Relaxed) {
            self.close();
        }
    }
}
