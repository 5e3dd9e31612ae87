//! What can go wrong with a statement.

use std::fmt;
use std::path::PathBuf;

use datafusion::common::DataFusionError;

/// Where in a statement list something is, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// Why a statement could not be run. Its text tells the causes, too; so they are not its `source()`.
#[derive(thiserror::Error)]
pub enum Error {
    /// The text is not SQL.
    #[error("{reason}{}", shown_at(*at))]
    Syntax {
        /// What was found, and what was expected.
        reason: String,
        /// Where.
        at: Option<Position>,
    },
    /// There is neither a topic nor a table of that name.
    #[error("there is no topic or table `{name}`{}", guess(similar.as_deref()))]
    UnknownTable {
        /// The name, as it was resolved.
        name: String,
        /// The topic or table that is spelt most alike.
        similar: Option<String>,
    },
    /// A file that a statement names cannot be found.
    #[error("there is no file `{path}`; the path is relative to the directory of the program")]
    UnknownFile {
        /// The path, as it was written.
        path: String,
    },
    /// A file is there, but what it holds cannot be told from its name.
    #[error(
        "`{path}` is there, but whether it holds CSV, JSON or Parquet cannot be told from its name: only .csv, .json and .parquet \
         say so. CREATE EXTERNAL TABLE name STORED AS CSV LOCATION '{path}' makes a table of it"
    )]
    UnknownFormat {
        /// The path, as it was written.
        path: String,
    },
    /// A directory holds no file itself, and those further down are not looked for.
    #[error("`{directory}` holds no files{}", instead(within.as_deref()))]
    NoFiles {
        /// The directory, as it was written.
        directory: String,
        /// One of the directories in it, as a statement would name it.
        within: Option<String>,
    },
    /// A file is compressed as a whole.
    #[error(
        "`{path}` is compressed, and SQL reads CSV and JSON only as they are. Decompress it first (`{command} {path}`), or write it \
         into a topic: `thalweg produce TOPIC --file` reads gzip and Zstandard"
    )]
    Compressed {
        /// The file, or the pattern that stands for it.
        path: String,
        /// What decompresses it.
        command: &'static str,
    },
    /// The statement makes no sense: a column does not exist, types do not fit.
    #[error("{reason}{}", shown_at(*at))]
    Plan {
        /// What is wrong.
        reason: String,
        /// Where, if that is known.
        at: Option<Position>,
    },
    /// A `CREATE TABLE` over a topic that cannot be.
    #[error("table `{table}`: {reason}")]
    Definition {
        /// The table.
        table: String,
        /// What is wrong, and what would do.
        reason: String,
    },
    /// SQL that is not supported.
    #[error("{what} is not supported; {instead}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// What does it.
        instead: &'static str,
    },
    /// `COPY` was to write into a directory that holds something.
    #[error("{} is not empty; name an empty or a new directory", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system said.
        r#source: std::io::Error,
    },
    /// The log could not be read.
    #[error(transparent)]
    Client(#[from] thalweg_client::Error),
    /// A file could not be written.
    #[error(transparent)]
    Connector(#[from] thalweg_connectors::Error),
    /// The query failed while it ran.
    #[error("{}", without_backtrace(.0))]
    Execution(DataFusionError),
    /// The result could not be written out.
    #[error("the result cannot be written: {0}")]
    Output(std::io::Error),
}

/// As it reads for people: an error that `main` returns is printed with this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The result of statements.
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn shown_at(at: Option<Position>) -> String {
    at.map(|at| format!(" (line {}, column {})", at.line, at.column)).unwrap_or_default()
}

fn guess(similar: Option<&str>) -> String {
    similar.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn instead(within: Option<&str>) -> String {
    match within {
        Some(within) => {
            format!(
                ", only directories, which are not looked into: name one of them, such as '{within}', or a file"
            )
        }
        None => String::new(),
    }
}

fn without_backtrace(error: &DataFusionError) -> String {
    let text = error.strip_backtrace();
    uncompressed(&text).unwrap_or_else(|| without_blame(&text).to_owned())
}

/// The text without DataFusion's request to be told of it.
fn without_blame(text: &str) -> &str {
    text.split("\nThis issue was likely caused by a bug in DataFusion").next().unwrap_or(text)
}

/// What is wrong with the types of a function's arguments: DataFusion puts all its attempts before it.
fn mismatch(text: &str) -> Option<String> {
    let at = text.find("No function matches the given name and argument types")?;
    let mut reason = text[at..].trim_end().to_owned();
    if reason.lines().next().is_some_and(|line| line.contains("Utf8")) {
        reason.push_str(
            "\nUtf8 is text: a column of a CSV file is text when one of its values is no number, such as NA. CREATE EXTERNAL TABLE … \
             STORED AS CSV LOCATION '…' OPTIONS ('null_value' 'NA') reads that as null; try_cast(column AS DOUBLE) does, too",
        );
    }
    Some(reason)
}

/// What DataFusion says of every compressed file: it is built without the libraries for them.
const NO_COMPRESSION: &str = "Compression feature is not enabled";

/// What that means, where it is said: an option called the file compressed.
fn uncompressed(text: &str) -> Option<String> {
    let meant = "SQL reads CSV and JSON only as they are, and this file is compressed: decompress it first";
    text.contains(NO_COMPRESSION).then(|| meant.to_owned())
}

/// Whether it is said that a file is compressed.
pub(crate) fn is_about_compression(error: &DataFusionError) -> bool {
    error.to_string().contains(NO_COMPRESSION)
}

impl Error {
    /// Takes our own error out of DataFusion's wrapping, or tells the errors of planning from those of running.
    pub(crate) fn from_datafusion(error: DataFusionError) -> Self {
        let at = error
            .diagnostic()
            .and_then(|diagnostic| diagnostic.span)
            .map(|span| Position { line: span.start.line, column: span.start.column });
        Self::at(error, at)
    }

    fn at(error: DataFusionError, at: Option<Position>) -> Self {
        match error {
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
                Self::at(*inner, at)
            }
            DataFusionError::External(inner) => match inner.downcast::<Self>() {
                Ok(ours) => *ours,
                Err(inner) => Self::caused(DataFusionError::External(inner)),
            },
            DataFusionError::SQL(error, _) => Self::syntax(&error.to_string()),
            error @ (DataFusionError::Plan(_)
            | DataFusionError::SchemaError(..)
            | DataFusionError::NotImplemented(_)
            | DataFusionError::Configuration(_)) => Self::Plan { reason: said(&error), at },
            error => Self::caused(error),
        }
    }

    /// The error of the log's client that lies below an error of DataFusion, if there is one.
    fn caused(error: DataFusionError) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(found) = cause {
            if let Some(client) = found.downcast_ref::<thalweg_client::Error>() {
                return Self::Client(client.clone());
            }
            cause = found.source();
        }
        Self::Execution(error)
    }

    /// What the parser said; it puts the position at the end of its text.
    fn syntax(text: &str) -> Self {
        let text = text.strip_prefix("sql parser error: ").unwrap_or(text);
        let parsed = text.rsplit_once(" at Line: ").and_then(|(reason, at)| {
            let (line, column) = at.split_once(", Column: ")?;
            Some((reason, Position { line: line.parse().ok()?, column: column.parse().ok()? }))
        });
        let (reason, at) = parsed.map_or((text, None), |(reason, at)| (reason, Some(at)));
        let mut reason = reason.to_owned();
        if reason.ends_with("found: -") {
            reason.push_str("; the name of a topic with a dash in it needs double quotes: \"my-topic\"");
        }
        Self::Syntax { reason, at }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        Self::from_datafusion(error)
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}

/// The text of an error without its kind before it and its backtrace behind it.
fn said(error: &DataFusionError) -> String {
    let text = error.message().into_owned();
    let text = text.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or_default();
    uncompressed(text).or_else(|| mismatch(text)).unwrap_or_else(|| without_blame(text).trim_end().to_owned())
}
