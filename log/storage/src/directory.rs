//! The data directory: its lock, and whose it is.

use std::path::{Path, PathBuf};

use thalweg_protocol::Uuid;

use crate::environment::Environment;
use crate::error::Error;

/// Whose a data directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster.
    pub cluster_id: Uuid,
    /// The node's own id: a wiped node comes back with another one.
    pub node_uuid: Uuid,
}

/// The process that holds a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id, 0 while it has not written it yet.
    pub pid: u32,
    /// `host:port` where it listens, once it does.
    pub address: Option<String>,
}

/// A data directory, held by this process as long as this lives. The operating system frees it when the
/// process ends, however it ends.
#[derive(Debug)]
pub struct DataDirectory {}

impl DataDirectory {
    /// Takes the directory, making it if it is missing; a fresh one gets the identity that `fresh` names.
    ///
    /// # Errors
    /// [`Error::DirectoryHeld`], [`Error::ForeignDirectory`] if it belongs to a cluster other than
    /// `expected_cluster`, [`Error::NewerFormat`], [`Error::Corrupt`], I/O errors.
    pub fn open(
        path: &Path,
        fresh: Identity,
        expected_cluster: Option<Uuid>,
        environment: Environment,
    ) -> Result<Self, Error> {
        unimplemented!()
    }

    /// Who holds the directory; `None` when nobody does or it does not exist.
    pub fn holder(path: &Path) -> Result<Option<Holder>, Error> {
        unimplemented!()
    }

    /// Writes into the lock file where this process listens, for other processes to find.
    pub fn announce(&self, address: &str) -> Result<(), Error> {
        unimplemented!()
    }

    /// The directory.
    pub fn path(&self) -> &PathBuf {
        unimplemented!()
    }

    /// Whose it is.
    pub fn identity(&self) -> Identity {
        unimplemented!()
    }

    /// The disk, the clock and the directory's health.
    pub fn environment(&self) -> &Environment {
        unimplemented!()
    }
}
