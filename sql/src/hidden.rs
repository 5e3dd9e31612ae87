//! The columns that every table over a topic has besides its own, and that `*` does not name.

use arrow::datatypes::{DataType, Field, TimeUnit};

use crate::format::KeyFormat;

/// A column that says where a record lies and what came with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HiddenColumn {
    /// `_partition INT`.
    Partition,
    /// `_offset BIGINT`.
    Offset,
    /// `_timestamp TIMESTAMP(3) WITH TIME ZONE`, in UTC; null for a record without one.
    Timestamp,
    /// `_key`: VARCHAR or BYTEA.
    Key,
}

impl HiddenColumn {
    pub(crate) const COUNT: usize = 4;
    pub(crate) const ALL: [Self; Self::COUNT] = [Self::Partition, Self::Offset, Self::Timestamp, Self::Key];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Partition => "_partition",
            Self::Offset => "_offset",
            Self::Timestamp => "_timestamp",
            Self::Key => "_key",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    pub(crate) fn field(self, key: KeyFormat) -> Field {
        let (data_type, is_nullable) = match self {
            Self::Partition => (DataType::Int32, false),
            Self::Offset => (DataType::Int64, false),
            Self::Timestamp => (DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())), true),
            Self::Key if key == KeyFormat::Text => (DataType::Utf8, true),
            Self::Key => (DataType::Binary, true),
        };
        Field::new(self.name(), data_type, is_nullable)
    }
}
