//! One column being built: its type, its values so far, and how to take the last ones back.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, NullBufferBuilder, PrimitiveArray, StringArray,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::kernels::cast_utils::{Parser, parse_decimal, string_to_datetime};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use chrono::Utc;

/// The type of a column of a table over a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Real,
    Double,
    Decimal { precision: u8, scale: i8 },
    Date,
    Timestamp { unit: TimeUnit, is_utc: bool },
    Text,
    Bytes,
}

impl ColumnType {
    /// The type in Arrow.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::TinyInt => DataType::Int8,
            Self::SmallInt => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Real => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal { precision, scale } => DataType::Decimal128(precision, scale),
            Self::Date => DataType::Date32,
            Self::Timestamp { unit, is_utc } => DataType::Timestamp(unit, is_utc.then(|| "UTC".into())),
            Self::Text => DataType::Utf8,
            Self::Bytes => DataType::Binary,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Real => f.write_str("REAL"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal { precision, scale } => write!(f, "DECIMAL({precision}, {scale})"),
            Self::Date => f.write_str("DATE"),
            Self::Timestamp { unit, is_utc } => {
                let digits = match unit {
                    TimeUnit::Second => 0,
                    TimeUnit::Millisecond => 3,
                    TimeUnit::Microsecond => 6,
                    TimeUnit::Nanosecond => 9,
                };
                write!(f, "TIMESTAMP({digits})")?;
                f.write_str(if *is_utc { " WITH TIME ZONE" } else { "" })
            }
            Self::Text => f.write_str("VARCHAR"),
            Self::Bytes => f.write_str("BYTEA"),
        }
    }
}

/// A value of a record, not yet of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Boolean(bool),
    /// The text of a number as JSON writes it.
    Number {
        text: &'a str,
        is_integer: bool,
    },
    /// A string, its escapes undone.
    Text(&'a str),
    /// An object or an array, as it is written.
    Nested(&'a str),
}

/// The values of a column, one a row. A row is first appended and may be taken back by [`Self::truncate`].
pub(super) struct ColumnBuffer {
    column_type: ColumnType,
    values: Values,
    nulls: NullBufferBuilder,
}

enum Values {
    Boolean(BooleanBufferBuilder),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    I128(Vec<i128>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes { offsets: Vec<i32>, bytes: Vec<u8> },
}

/// A value of a column's type.
enum Typed<'a> {
    Boolean(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    I128(i128),
    F32(f32),
    F64(f64),
    Bytes(&'a [u8]),
}

impl Values {
    fn of(column_type: ColumnType) -> Self {
        match column_type {
            ColumnType::Boolean => Self::Boolean(BooleanBufferBuilder::new(0)),
            ColumnType::TinyInt => Self::I8(Vec::new()),
            ColumnType::SmallInt => Self::I16(Vec::new()),
            ColumnType::Int | ColumnType::Date => Self::I32(Vec::new()),
            ColumnType::BigInt | ColumnType::Timestamp { .. } => Self::I64(Vec::new()),
            ColumnType::Decimal { .. } => Self::I128(Vec::new()),
            ColumnType::Real => Self::F32(Vec::new()),
            ColumnType::Double => Self::F64(Vec::new()),
            ColumnType::Text | ColumnType::Bytes => Self::Bytes { offsets: vec![0], bytes: Vec::new() },
        }
    }

    fn push(&mut self, value: Typed<'_>) {
        match (self, value) {
            (Self::Boolean(values), Typed::Boolean(value)) => values.append(value),
            (Self::I8(values), Typed::I8(value)) => values.push(value),
            (Self::I16(values), Typed::I16(value)) => values.push(value),
            (Self::I32(values), Typed::I32(value)) => values.push(value),
            (Self::I64(values), Typed::I64(value)) => values.push(value),
            (Self::I128(values), Typed::I128(value)) => values.push(value),
            (Self::F32(values), Typed::F32(value)) => values.push(value),
            (Self::F64(values), Typed::F64(value)) => values.push(value),
            (Self::Bytes { offsets, bytes }, Typed::Bytes(value)) => {
                bytes.extend_from_slice(value);
                offsets.push(end_of(bytes));
            }
            _ => unreachable!("a value was made for another column's type"),
        }
    }

    fn push_placeholder(&mut self) {
        match self {
            Self::Boolean(values) => values.append(false),
            Self::I8(values) => values.push(0),
            Self::I16(values) => values.push(0),
            Self::I32(values) => values.push(0),
            Self::I64(values) => values.push(0),
            Self::I128(values) => values.push(0),
            Self::F32(values) => values.push(0.0),
            Self::F64(values) => values.push(0.0),
            Self::Bytes { offsets, bytes } => offsets.push(end_of(bytes)),
        }
    }

    fn truncate(&mut self, rows: usize) {
        match self {
            Self::Boolean(values) => values.truncate(rows),
            Self::I8(values) => values.truncate(rows),
            Self::I16(values) => values.truncate(rows),
            Self::I32(values) => values.truncate(rows),
            Self::I64(values) => values.truncate(rows),
            Self::I128(values) => values.truncate(rows),
            Self::F32(values) => values.truncate(rows),
            Self::F64(values) => values.truncate(rows),
            Self::Bytes { offsets, bytes } => {
                offsets.truncate(rows + 1);
                bytes.truncate(offsets.last().map_or(0, |end| *end as usize));
            }
        }
    }
}

fn end_of(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).expect("a batch is closed far below 2 GiB of text")
}

impl ColumnBuffer {
    pub(super) fn new(column_type: ColumnType) -> Self {
        Self { column_type, values: Values::of(column_type), nulls: NullBufferBuilder::new(0) }
    }

    pub(super) fn push_null(&mut self) {
        self.values.push_placeholder();
        self.nulls.append_null();
    }

    pub(super) fn push_bytes(&mut self, value: &[u8]) {
        self.values.push(Typed::Bytes(value));
        self.nulls.append_non_null();
    }

    pub(super) fn push_i32(&mut self, value: i32) {
        self.values.push(Typed::I32(value));
        self.nulls.append_non_null();
    }

    pub(super) fn push_i64(&mut self, value: i64) {
        self.values.push(Typed::I64(value));
        self.nulls.append_non_null();
    }

    /// Appends a value of a record; false, and nothing appended, when it is not of the column's type.
    pub(super) fn push_scalar(&mut self, value: Scalar<'_>) -> bool {
        let Some(typed) = typed(self.column_type, value) else { return false };
        self.values.push(typed);
        self.nulls.append_non_null();
        true
    }

    /// Takes rows back, so that `rows` are left.
    pub(super) fn truncate(&mut self, rows: usize) {
        if self.nulls.len() > rows {
            self.values.truncate(rows);
            self.nulls.truncate(rows);
        }
    }

    /// The size of the values in bytes, where they are of variable size.
    pub(super) fn variable_bytes(&self) -> usize {
        if let Values::Bytes { bytes, .. } = &self.values { bytes.len() } else { 0 }
    }

    /// The values so far as an array; the buffer is empty then.
    pub(super) fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish();
        let column_type = self.column_type;
        match std::mem::replace(&mut self.values, Values::of(column_type)) {
            Values::Boolean(mut values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::I8(values) => primitive::<Int8Type>(values, nulls, column_type),
            Values::I16(values) => primitive::<Int16Type>(values, nulls, column_type),
            Values::I32(values) if column_type == ColumnType::Date => {
                primitive::<Date32Type>(values, nulls, column_type)
            }
            Values::I32(values) => primitive::<Int32Type>(values, nulls, column_type),
            Values::I64(values) => match column_type {
                ColumnType::Timestamp { unit: TimeUnit::Second, .. } => {
                    primitive::<TimestampSecondType>(values, nulls, column_type)
                }
                ColumnType::Timestamp { unit: TimeUnit::Millisecond, .. } => {
                    primitive::<TimestampMillisecondType>(values, nulls, column_type)
                }
                ColumnType::Timestamp { unit: TimeUnit::Microsecond, .. } => {
                    primitive::<TimestampMicrosecondType>(values, nulls, column_type)
                }
                ColumnType::Timestamp { unit: TimeUnit::Nanosecond, .. } => {
                    primitive::<TimestampNanosecondType>(values, nulls, column_type)
                }
                _ => primitive::<Int64Type>(values, nulls, column_type),
            },
            Values::I128(values) => primitive::<Decimal128Type>(values, nulls, column_type),
            Values::F32(values) => primitive::<Float32Type>(values, nulls, column_type),
            Values::F64(values) => primitive::<Float64Type>(values, nulls, column_type),
            Values::Bytes { offsets, bytes } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                let bytes = Buffer::from_vec(bytes);
                if column_type == ColumnType::Text {
                    let array = StringArray::try_new(offsets, bytes, nulls);
                    Arc::new(array.expect("text columns are only given UTF-8"))
                } else {
                    Arc::new(BinaryArray::new(offsets, bytes, nulls))
                }
            }
        }
    }
}

fn primitive<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<arrow::buffer::NullBuffer>,
    column_type: ColumnType,
) -> ArrayRef {
    let array = PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls);
    Arc::new(array.with_data_type(column_type.data_type()))
}

/// Whether `value` can be of the column's type.
pub(super) fn fits(column_type: ColumnType, value: Scalar<'_>) -> bool {
    match (column_type, value) {
        // What needs no look at the value's text.
        (ColumnType::Text, _) | (ColumnType::Double | ColumnType::Real, Scalar::Number { .. }) => true,
        _ => typed(column_type, value).is_some(),
    }
}

/// The value as one of the column's type, or nothing when it is not one. Numbers of integer columns are written
/// without fraction or exponent and fit the column's width; nothing is rounded but floats and decimals. Text
/// takes any value: strings as they are, everything else as it is written.
fn typed(column_type: ColumnType, value: Scalar<'_>) -> Option<Typed<'_>> {
    Some(match (column_type, value) {
        (ColumnType::Text, Scalar::Text(text) | Scalar::Nested(text) | Scalar::Number { text, .. }) => {
            Typed::Bytes(text.as_bytes())
        }
        (ColumnType::Text, Scalar::Boolean(value)) => Typed::Bytes(if value { b"true" } else { b"false" }),
        (ColumnType::Boolean, Scalar::Boolean(value)) => Typed::Boolean(value),
        (ColumnType::TinyInt, Scalar::Number { text, is_integer: true }) => Typed::I8(text.parse().ok()?),
        (ColumnType::SmallInt, Scalar::Number { text, is_integer: true }) => Typed::I16(text.parse().ok()?),
        (ColumnType::Int, Scalar::Number { text, is_integer: true }) => Typed::I32(text.parse().ok()?),
        (ColumnType::BigInt, Scalar::Number { text, is_integer: true }) => Typed::I64(text.parse().ok()?),
        (ColumnType::Real, Scalar::Number { text, .. }) => Typed::F32(text.parse().ok()?),
        (ColumnType::Double, Scalar::Number { text, .. }) => Typed::F64(text.parse().ok()?),
        (ColumnType::Decimal { precision, scale }, Scalar::Number { text, .. } | Scalar::Text(text)) => {
            Typed::I128(parse_decimal::<Decimal128Type>(text, precision, scale).ok()?)
        }
        (ColumnType::Date, Scalar::Text(text)) => Typed::I32(Date32Type::parse(text)?),
        (ColumnType::Timestamp { unit, .. }, Scalar::Text(text)) => {
            let time = string_to_datetime(&Utc, text).ok()?;
            Typed::I64(match unit {
                TimeUnit::Second => time.timestamp(),
                TimeUnit::Millisecond => time.timestamp_millis(),
                TimeUnit::Microsecond => time.timestamp_micros(),
                TimeUnit::Nanosecond => time.timestamp_nanos_opt()?,
            })
        }
        (ColumnType::Timestamp { unit, .. }, Scalar::Number { text, is_integer: true }) => {
            let milliseconds: i64 = text.parse().ok()?;
            let nanoseconds = i128::from(milliseconds) * 1_000_000;
            Typed::I64(i64::try_from(nanoseconds.div_euclid(nanoseconds_in(unit).into())).ok()?)
        }
        _ => return None,
    })
}

fn nanoseconds_in(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
