//! Why the metadata cannot be opened.

use std::io;
use std::path::{Path, PathBuf};

use thalweg_protocol::Uuid;

/// Why the metadata cannot be opened. None of these is repaired by starting with empty metadata: the records
/// of topics that the metadata no longer knows would be out of reach.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was to be done.
        action: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// What the operating system said.
        r#source: io::Error,
    },
    /// A file holds what was never written to it.
    #[error(
        "the metadata file {} is corrupt at byte {position}: {what}. It was not changed; restore it from a copy",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where, in bytes from its beginning.
        position: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file was written by a newer version.
    #[error(
        "{} has format version {found}, and this version of Thalweg reads {supported} at most: \
         start the newer version again",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that can be read.
        supported: u32,
    },
    /// A file belongs to another cluster.
    #[error("{} belongs to the cluster {found}, and this is the cluster {expected}", path.display())]
    ForeignCluster {
        /// The file.
        path: PathBuf,
        /// The cluster it belongs to.
        found: Uuid,
        /// The cluster that was to be opened.
        expected: Uuid,
    },
    /// There is no metadata in the directory, although there should be.
    #[error(
        "there is no metadata in {}, although the node has run before: restore the directory from a copy",
        dir.display()
    )]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// There is metadata in the directory already.
    #[error("there is metadata in {} already", dir.display())]
    AlreadyFormatted {
        /// The directory.
        dir: PathBuf,
    },
    /// A part of the log is missing.
    #[error("the metadata in {} lacks the commands from {from} to {until}: a file is missing", dir.display())]
    Gap {
        /// The directory.
        dir: PathBuf,
        /// The offset of the first one.
        from: i64,
        /// The offset of the first one that is there again.
        until: i64,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}
