//! Decodes JSON objects into columns.

use std::collections::HashMap;
use std::ops::Range;

use arrow::array::ArrayRef;

use super::cursor::{Cursor, Kind, Malformed, unescape};
use crate::format::column::{ColumnBuffer, Scalar, fits};
use crate::format::{Column, ColumnType, DecodeError};

/// How many keys of an object are remembered to find the column of the same key in the next one at once.
const REMEMBERED_KEYS: usize = 1024;

/// Decodes one object after the other into the columns of a table. Objects mostly name their keys in the same
/// order, which is made use of.
pub(in crate::format) struct JsonDecoder {
    columns: Vec<ColumnState>,
    by_name: HashMap<String, usize>,
    /// The keys of the first object in their order, with their columns.
    keys: Vec<(Box<str>, Option<usize>)>,
    /// Tells the columns that the present record has filled from those it has not.
    record: u64,
    rows: usize,
    unescaped: String,
    unescaped_key: String,
}

struct ColumnState {
    column_type: ColumnType,
    is_nullable: bool,
    filled_by: u64,
    /// `None` for a column that is only checked.
    buffer: Option<ColumnBuffer>,
}

impl From<Malformed> for DecodeError {
    fn from(Malformed { expected, at }: Malformed) -> Self {
        Self::Json { expected, at }
    }
}

impl JsonDecoder {
    /// A decoder for these columns, which builds those that `is_wanted` names.
    pub(in crate::format) fn new(columns: &[Column], is_wanted: impl Fn(usize) -> bool) -> Self {
        let state = |(at, column): (usize, &Column)| ColumnState {
            column_type: column.column_type,
            is_nullable: column.is_nullable,
            filled_by: 0,
            buffer: is_wanted(at).then(|| ColumnBuffer::new(column.column_type)),
        };
        Self {
            by_name: columns.iter().enumerate().map(|(at, column)| (column.name.clone(), at)).collect(),
            columns: columns.iter().enumerate().map(state).collect(),
            keys: Vec::new(),
            record: 0,
            rows: 0,
            unescaped: String::new(),
            unescaped_key: String::new(),
        }
    }

    /// Appends a row, or nothing when `value` does not decode. A key that occurs twice has its last value; keys
    /// that are no column are checked to be JSON and dropped.
    pub(in crate::format) fn push(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        self.record += 1;
        let decoded = self.decode(value);
        match decoded {
            Ok(()) => self.rows += 1,
            Err(_) => {
                for column in &mut self.columns {
                    if let Some(buffer) = &mut column.buffer {
                        buffer.truncate(self.rows);
                    }
                }
            }
        }
        decoded
    }

    fn decode(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        let text = std::str::from_utf8(value).map_err(|_| DecodeError::ValueIsNotText)?;
        let mut cursor = Cursor::new(text);
        let mut has_more = cursor.enter_object()?;
        let mut place = 0;
        while has_more {
            let (key, is_escaped) = cursor.key()?;
            let column = self.column_of(text, key, is_escaped, place);
            let (kind, range) = cursor.value()?;
            if let Some(column) = column {
                self.fill(column, text, kind, range)?;
            }
            place += 1;
            has_more = cursor.has_more()?;
        }
        cursor.end()?;
        for (at, column) in self.columns.iter_mut().enumerate() {
            if column.filled_by == self.record {
                continue;
            }
            if !column.is_nullable {
                return Err(DecodeError::Missing { column: at });
            }
            if let Some(buffer) = &mut column.buffer {
                buffer.push_null();
            }
        }
        Ok(())
    }

    /// The column of a key, which is the `place`th of its object.
    #[inline]
    fn column_of(&mut self, text: &str, key: Range<usize>, is_escaped: bool, place: usize) -> Option<usize> {
        let raw = &text[key];
        let key = if is_escaped { unescape(raw, &mut self.unescaped_key) } else { raw };
        match self.keys.get(place) {
            Some((remembered, column)) if **remembered == *key => *column,
            Some(_) => self.by_name.get(key).copied(),
            None => {
                let column = self.by_name.get(key).copied();
                if place == self.keys.len() && place < REMEMBERED_KEYS {
                    self.keys.push((key.into(), column));
                }
                column
            }
        }
    }

    #[inline]
    fn fill(&mut self, at: usize, text: &str, kind: Kind, range: Range<usize>) -> Result<(), DecodeError> {
        let column = &mut self.columns[at];
        if column.filled_by == self.record
            && let Some(buffer) = &mut column.buffer
        {
            buffer.truncate(self.rows);
        }
        column.filled_by = self.record;
        let raw = &text[range.clone()];
        let scalar = match kind {
            Kind::Null if !column.is_nullable => return Err(DecodeError::Missing { column: at }),
            Kind::Null => {
                if let Some(buffer) = &mut column.buffer {
                    buffer.push_null();
                }
                return Ok(());
            }
            Kind::Boolean(value) => Scalar::Boolean(value),
            Kind::Number { is_integer } => Scalar::Number { text: raw, is_integer },
            Kind::String { is_escaped: false } => Scalar::Text(raw),
            Kind::String { is_escaped: true } => Scalar::Text(unescape(raw, &mut self.unescaped)),
            Kind::Nested => Scalar::Nested(raw),
        };
        let is_of_type = match &mut column.buffer {
            Some(buffer) => buffer.push_scalar(scalar),
            None => fits(column.column_type, scalar),
        };
        if is_of_type {
            return Ok(());
        }
        // Show a string with its quotes, so that "12" is told from 12.
        let quotes = usize::from(matches!(kind, Kind::String { .. }));
        Err(DecodeError::Mismatch { column: at, start: range.start - quotes, end: range.end + quotes })
    }

    /// The size of the text in the rows so far, in bytes.
    pub(in crate::format) fn variable_bytes(&self) -> usize {
        self.columns
            .iter()
            .filter_map(|column| column.buffer.as_ref())
            .map(ColumnBuffer::variable_bytes)
            .sum()
    }

    /// The columns that are built, in their order; `None` for those that are not. There are no rows then.
    pub(in crate::format) fn finish(&mut self) -> Vec<Option<ArrayRef>> {
        self.rows = 0;
        self.columns.iter_mut().map(|column| column.buffer.as_mut().map(ColumnBuffer::finish)).collect()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
