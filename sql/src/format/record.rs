//! Decodes records into batches of the columns that a query wants, hidden ones included.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatchOptions};
use arrow::datatypes::{SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use thalweg_protocol::record::Record;

use super::column::ColumnBuffer;
use super::json::JsonDecoder;
use super::{ColumnType, DecodeError, Format, KeyFormat, TableDefinition};
use crate::hidden::HiddenColumn;

/// The timestamp of a record that has none.
const NO_TIMESTAMP: i64 = -1;

/// Decodes the records of one partition.
pub(crate) struct RecordDecoder {
    definition: Arc<TableDefinition>,
    /// The columns of a batch.
    schema: SchemaRef,
    /// Which column of the table each of them is: the declared ones first, the hidden ones behind them.
    projection: Vec<usize>,
    partition: i32,
    value: ValueDecoder,
    hidden: [Option<ColumnBuffer>; HiddenColumn::COUNT],
    rows: usize,
}

enum ValueDecoder {
    Json(JsonDecoder),
    /// The whole value is one column, which is only checked if it is not wanted.
    Whole {
        must_be_text: bool,
        is_nullable: bool,
        buffer: Option<ColumnBuffer>,
    },
}

impl RecordDecoder {
    /// A decoder of the records of `partition` into batches of `schema`, whose columns are those of the table that
    /// `projection` names.
    pub(crate) fn new(
        definition: Arc<TableDefinition>,
        schema: SchemaRef,
        projection: Vec<usize>,
        partition: i32,
    ) -> Self {
        let is_wanted = |at: usize| projection.contains(&at);
        let value = match definition.format {
            Format::Json => ValueDecoder::Json(JsonDecoder::new(&definition.columns, is_wanted)),
            Format::Text | Format::Bytes => ValueDecoder::Whole {
                must_be_text: definition.format == Format::Text,
                is_nullable: definition.columns[0].is_nullable,
                buffer: is_wanted(0).then(|| ColumnBuffer::new(definition.columns[0].column_type)),
            },
        };
        let first_hidden = definition.columns.len();
        let hidden = HiddenColumn::ALL.map(|column| {
            let column_type = match column {
                HiddenColumn::Partition => ColumnType::Int,
                HiddenColumn::Offset => ColumnType::BigInt,
                HiddenColumn::Timestamp => {
                    ColumnType::Timestamp { unit: TimeUnit::Millisecond, is_utc: true }
                }
                HiddenColumn::Key if definition.key == KeyFormat::Text => ColumnType::Text,
                HiddenColumn::Key => ColumnType::Bytes,
            };
            is_wanted(first_hidden + column as usize).then(|| ColumnBuffer::new(column_type))
        });
        Self { definition, schema, projection, partition, value, hidden, rows: 0 }
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// About how many bytes of text they hold.
    pub(crate) fn variable_bytes(&self) -> usize {
        let value = match &self.value {
            ValueDecoder::Json(decoder) => decoder.variable_bytes(),
            ValueDecoder::Whole { buffer, .. } => buffer.as_ref().map_or(0, ColumnBuffer::variable_bytes),
        };
        let hidden = self.hidden.iter().flatten().map(ColumnBuffer::variable_bytes);
        value + hidden.sum::<usize>()
    }

    /// Appends a row, or nothing when the record does not decode.
    pub(crate) fn push(&mut self, record: &Record<'_>) -> Result<(), DecodeError> {
        let is_text_key = self.definition.key == KeyFormat::Text;
        if is_text_key && record.key.is_some_and(|key| std::str::from_utf8(key).is_err()) {
            return Err(DecodeError::KeyIsNotText);
        }
        self.value.push(record.value)?;
        let [partition, offset, timestamp, key] = &mut self.hidden;
        if let Some(buffer) = partition {
            buffer.push_i32(self.partition);
        }
        if let Some(buffer) = offset {
            buffer.push_i64(record.offset.0);
        }
        if let Some(buffer) = timestamp {
            match record.timestamp {
                NO_TIMESTAMP => buffer.push_null(),
                timestamp => buffer.push_i64(timestamp),
            }
        }
        if let Some(buffer) = key {
            match record.key {
                Some(key) => buffer.push_bytes(key),
                None => buffer.push_null(),
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// The rows so far; there are none then.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<Option<ArrayRef>> = match &mut self.value {
            ValueDecoder::Json(decoder) => decoder.finish(),
            ValueDecoder::Whole { buffer, .. } => vec![buffer.as_mut().map(ColumnBuffer::finish)],
        };
        columns.extend(self.hidden.iter_mut().map(|buffer| buffer.as_mut().map(ColumnBuffer::finish)));
        let wanted = |at: &usize| columns[*at].clone().expect("what is wanted is built");
        let arrays = self.projection.iter().map(wanted).collect();
        let rows = std::mem::take(&mut self.rows);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

impl ValueDecoder {
    fn push(&mut self, value: Option<&[u8]>) -> Result<(), DecodeError> {
        match (self, value) {
            (Self::Json(decoder), Some(value)) => decoder.push(value),
            (Self::Json(_), None) => Err(DecodeError::NoValue),
            (Self::Whole { is_nullable: false, .. }, None) => Err(DecodeError::Missing { column: 0 }),
            (Self::Whole { buffer, .. }, None) => {
                if let Some(buffer) = buffer {
                    buffer.push_null();
                }
                Ok(())
            }
            (Self::Whole { must_be_text, buffer, .. }, Some(value)) => {
                if *must_be_text && std::str::from_utf8(value).is_err() {
                    return Err(DecodeError::ValueIsNotText);
                }
                if let Some(buffer) = buffer {
                    buffer.push_bytes(value);
                }
                Ok(())
            }
        }
    }
}
