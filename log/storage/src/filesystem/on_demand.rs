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
}

impl OnDemandFile {
    pub(crate) fn new(path: PathBuf, open: Option<StoredFile>) -> Self {
        Self { path, open: Mutex::new(open), was_used: AtomicBool::new(true) }
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

    /// Gives the descriptor back; whoever still reads the file keeps it open. Only for files whose bytes are
    /// synced: the kernel tells of failed writes only those who have the file open.
    pub(crate) fn close(&self) {
        *self.open.lock() = None;
    }

    /// Closes the file when it has not been used since this was last called.
    pub(crate) fn close_if_idle(&self) {
        if !self.was_used.swap(false, Ordering::Relaxed) {
            self.close();
        }
    }
}
