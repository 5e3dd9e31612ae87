//! From the bytes of records to columns of Arrow.
//!
//! Whether a record decodes never depends on what a query selects: every column of the table is checked in every
//! record, and only those that are wanted are built.

mod column;
mod json;
mod record;

use bytestring::ByteString;

pub(crate) use column::ColumnType;
pub(crate) use json::{Inferred, infer};
pub(crate) use record::RecordDecoder;

/// How the values of a topic are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON object a record; its keys are the columns.
    Json,
    /// One column of text: the whole value.
    Text,
    /// One column of bytes: the whole value.
    Bytes,
}

/// What a record's key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyFormat {
    /// UTF-8.
    Text,
    /// Anything.
    Bytes,
}

/// Where the columns of a table come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A `CREATE TABLE`.
    Declared,
    /// A sample of so many records: the first of each partition.
    Inferred {
        /// How many.
        records: usize,
        /// From how many partitions.
        partitions: usize,
    },
}

/// A column of a table over a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
    pub(crate) is_nullable: bool,
}

impl Column {
    pub(crate) fn new(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self { name: name.into(), column_type, is_nullable: true }
    }
}

/// What a table over a topic is: which topic, which columns, and how they are encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableDefinition {
    pub(crate) topic: ByteString,
    pub(crate) format: Format,
    pub(crate) key: KeyFormat,
    pub(crate) columns: Vec<Column>,
    pub(crate) origin: Origin,
}

/// Why a record does not decode; small, because most are only counted. Places are in the record's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    NoValue,
    ValueIsNotText,
    KeyIsNotText,
    Json { expected: &'static str, at: usize },
    Mismatch { column: usize, start: usize, end: usize },
    Missing { column: usize },
}

/// How much of a value is shown in a reason, in characters.
const SHOWN_CHARS: usize = 40;

impl DecodeError {
    /// The reason in words.
    pub(crate) fn describe(self, definition: &TableDefinition, value: Option<&[u8]>) -> String {
        let column = |at: usize| &definition.columns[at];
        match self {
            Self::NoValue => "it has no value (a tombstone)".to_owned(),
            Self::ValueIsNotText => "its value is not UTF-8".to_owned(),
            Self::KeyIsNotText => {
                "its key is not UTF-8; declare the table with key_format = 'bytes'".to_owned()
            }
            Self::Json { expected, at } => format!("its value is not JSON: expected {expected} at byte {at}"),
            Self::Missing { column: at } => {
                format!("column `{}` is NOT NULL, and the value is missing or null", column(at).name)
            }
            Self::Mismatch { column: at, start, end } => {
                let found = value.and_then(|value| value.get(start..end)).unwrap_or_default();
                let found = String::from_utf8_lossy(found);
                let cut = found.char_indices().nth(SHOWN_CHARS).map_or(found.len(), |(at, _)| at);
                let (found, more) = found.split_at(cut);
                let ellipsis = if more.is_empty() { "" } else { "…" };
                let Column { name, column_type, .. } = column(at);
                let advice = match definition.origin {
                    Origin::Declared => "",
                    Origin::Inferred { .. } => {
                        " (the type was inferred from the first records; CREATE TABLE declares another)"
                    }
                };
                format!("column `{name}` is {column_type}, and the value is {found}{ellipsis}{advice}")
            }
        }
    }
}
