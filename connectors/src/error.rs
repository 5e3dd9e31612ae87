//! What can go wrong with a file.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a file could not be read as records, or written. Its text tells the cause, too; so it has no `source()`.
#[derive(thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        r#source: io::Error,
    },
    /// The input broke off or is not compressed as its first bytes say.
    #[error("cannot read the input: {0}")]
    Input(io::Error),
    /// An option that does not go with the format.
    #[error("{option}: {reason}")]
    Option {
        /// The option.
        option: &'static str,
        /// Why it does not fit, and what does.
        reason: &'static str,
    },
    /// The CSV file has no such column.
    #[error("there is no column `{column}`; the columns are {}", columns.join(", "))]
    UnknownColumn {
        /// The name that was asked for.
        column: String,
        /// The names in the header row.
        columns: Vec<String>,
    },
    /// A line that is not what it should be.
    #[error("line {line} of the input: {reason}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Arrow or Parquet refused the data.
    #[error("cannot write Parquet to {}: {reason}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the library said.
        reason: String,
    },
}

/// As it reads for people: an error that `main` returns is printed with this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Input(error)
    }
}

impl Error {
    /// Wraps an I/O error with what was tried on which path.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
