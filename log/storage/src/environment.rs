//! What the logs of one data directory share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::clock::Clock;
use crate::error::Error;
use crate::filesystem::Filesystem;

/// The disk, the clock and the health of a data directory, handed to every log in it.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where the files are.
    pub filesystem: Arc<dyn Filesystem>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Whether the directory can still be trusted.
    pub health: Arc<DirectoryHealth>,
}

/// Whether a data directory is online. An I/O error takes it offline for good: only opening it again, which
/// recovers it from the disk, brings it back.
#[derive(Debug)]
pub struct DirectoryHealth {
    path: PathBuf,
    failure: OnceLock<String>,
}

impl DirectoryHealth {
    /// A directory that is online.
    pub fn new(path: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self { path: path.into(), failure: OnceLock::new() })
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

    /// Takes the directory offline; the first reason stays.
    pub(crate) fn fail(&self, error: &Error) {
        if self.failure.set(error.to_string()).is_ok() {
            tracing::error!(directory = %self.path.display(), %error, "the directory goes offline");
        }
    }
}
