//! `CREATE TABLE … WITH (topic = …)`: a table over a topic with columns that are declared.

use arrow::datatypes::TimeUnit;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, CreateTableOptions, DataType as SqlType, ExactNumberInfo, Expr,
    SqlOption, TimezoneInfo, Value,
};

use crate::error::{Error, Result};
use crate::format::{Column, ColumnType, Format, KeyFormat};
use crate::hidden::HiddenColumn;
use crate::parser::normalized;

/// What a `CREATE TABLE` over a topic says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) table: String,
    pub(crate) topic: String,
    pub(crate) format: Format,
    /// `None` when the statement does not say it.
    pub(crate) key: Option<KeyFormat>,
    pub(crate) columns: Vec<Column>,
    pub(crate) if_not_exists: bool,
    pub(crate) or_replace: bool,
}

/// The options of a table over a topic.
const OPTIONS: &str = "topic, format (json, text, bytes) and key_format (text, bytes)";

/// The types of columns.
const TYPES: &str = "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, REAL, DOUBLE, DECIMAL(p, s), DATE, \
                     TIMESTAMP(p) [WITH TIME ZONE], VARCHAR (STRING, TEXT) and BYTEA";

/// Reads the statement.
pub(crate) fn declared(create: &CreateTable) -> Result<Declared> {
    let table = match create.name.0.as_slice() {
        [name] => name.as_ident().map(normalized),
        _ => None,
    };
    let table = table.ok_or_else(|| Error::Definition {
        table: create.name.to_string(),
        reason: "a table over a topic has a name of one part; names with dots need double quotes".to_owned(),
    })?;
    let wrong = |reason: String| Error::Definition { table: table.clone(), reason };
    if create.query.is_some() || create.temporary || create.external {
        return Err(wrong("a table over a topic is neither temporary nor made from a query".to_owned()));
    }
    if !create.constraints.is_empty() {
        return Err(wrong("tables over topics have no constraints but NOT NULL".to_owned()));
    }
    let Options { topic, format, key } = options(create).map_err(wrong)?;
    let columns: Vec<Column> = create.columns.iter().map(column).collect::<Result<_, _>>().map_err(wrong)?;
    check_columns(&columns, format).map_err(wrong)?;
    Ok(Declared {
        topic: topic.ok_or_else(|| wrong("WITH (topic = '…') must name the topic".to_owned()))?,
        format,
        key,
        columns,
        if_not_exists: create.if_not_exists,
        or_replace: create.or_replace,
        table,
    })
}

struct Options {
    topic: Option<String>,
    format: Format,
    key: Option<KeyFormat>,
}

fn options(create: &CreateTable) -> Result<Options, String> {
    let mut read = Options { topic: None, format: Format::Json, key: None };
    let CreateTableOptions::With(options) = &create.table_options else { return Ok(read) };
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(format!("`{option}` is not an option; there are {OPTIONS}"));
        };
        let Some(value) = text(value) else {
            return Err(format!("option {key} needs a text in single quotes"));
        };
        match (key.value.to_ascii_lowercase().as_str(), value.as_str()) {
            ("topic", topic) => read.topic = Some(topic.to_owned()),
            ("format", "json") => read.format = Format::Json,
            ("format", "text") => read.format = Format::Text,
            ("format", "bytes") => read.format = Format::Bytes,
            ("key_format", "text") => read.key = Some(KeyFormat::Text),
            ("key_format", "bytes") => read.key = Some(KeyFormat::Bytes),
            (name @ ("format" | "key_format"), value) => {
                return Err(format!("{name} = '{value}' is not one of the options: {OPTIONS}"));
            }
            (name, _) => return Err(format!("there is no option `{name}`; there are {OPTIONS}")),
        }
    }
    Ok(read)
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn column(definition: &ColumnDef) -> Result<Column, String> {
    let name = normalized(&definition.name);
    let mut column = Column::new(name, column_type(&definition.data_type)?);
    for option in &definition.options {
        match &option.option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => column.is_nullable = false,
            other => return Err(format!("column `{}`: `{other}` is not supported", column.name)),
        }
    }
    Ok(column)
}

fn check_columns(columns: &[Column], format: Format) -> Result<(), String> {
    for (at, column) in columns.iter().enumerate() {
        if HiddenColumn::of_name(&column.name).is_some() {
            return Err(format!("every table over a topic has a column `{}` already", column.name));
        }
        if columns[..at].iter().any(|other| other.name == column.name) {
            return Err(format!("column `{}` is declared twice", column.name));
        }
        if format == Format::Json && column.column_type == ColumnType::Bytes {
            return Err(format!("column `{}`: JSON holds no bytes; use VARCHAR", column.name));
        }
    }
    let types: Vec<ColumnType> = columns.iter().map(|column| column.column_type).collect();
    match (format, types.as_slice()) {
        (Format::Json, []) => Err("declare at least one column".to_owned()),
        (Format::Json, _) | (Format::Text, [ColumnType::Text]) | (Format::Bytes, [ColumnType::Bytes]) => {
            Ok(())
        }
        (Format::Text, _) => Err("a table of format text has one column, of type VARCHAR".to_owned()),
        (Format::Bytes, _) => Err("a table of format bytes has one column, of type BYTEA".to_owned()),
    }
}

fn column_type(sql: &SqlType) -> Result<ColumnType, String> {
    Ok(match sql {
        SqlType::Boolean | SqlType::Bool => ColumnType::Boolean,
        SqlType::TinyInt(_) => ColumnType::TinyInt,
        SqlType::SmallInt(_) | SqlType::Int2(_) => ColumnType::SmallInt,
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::Int4(_) => ColumnType::Int,
        SqlType::BigInt(_) | SqlType::Int8(_) => ColumnType::BigInt,
        SqlType::Real | SqlType::Float4 => ColumnType::Real,
        SqlType::Float(_) | SqlType::Double(_) | SqlType::DoublePrecision | SqlType::Float8 => {
            ColumnType::Double
        }
        SqlType::Decimal(size) | SqlType::Numeric(size) | SqlType::Dec(size) => decimal(size)?,
        SqlType::Date => ColumnType::Date,
        SqlType::Timestamp(precision, zone) => {
            let is_utc = matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz);
            ColumnType::Timestamp { unit: time_unit(*precision)?, is_utc }
        }
        SqlType::Datetime(precision) => ColumnType::Timestamp { unit: time_unit(*precision)?, is_utc: false },
        SqlType::Varchar(_)
        | SqlType::CharacterVarying(_)
        | SqlType::Char(_)
        | SqlType::String(_)
        | SqlType::Text => ColumnType::Text,
        SqlType::Bytea
        | SqlType::Bytes(_)
        | SqlType::Binary(_)
        | SqlType::Varbinary(_)
        | SqlType::Blob(_) => ColumnType::Bytes,
        other => return Err(format!("type {other} is not supported; there are {TYPES}")),
    })
}

/// The type of `DECIMAL(precision, scale)`; without them it is (38, 10), as in DataFusion.
fn decimal(size: &ExactNumberInfo) -> Result<ColumnType, String> {
    let (precision, scale) = match size {
        ExactNumberInfo::None => (38, 10),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let precision = u8::try_from(precision).ok().filter(|precision| (1..=38).contains(precision));
    let scale = i8::try_from(scale).ok().filter(|scale| *scale >= 0);
    match (precision, scale) {
        (Some(precision), Some(scale)) if scale as u8 <= precision => {
            Ok(ColumnType::Decimal { precision, scale })
        }
        _ => Err("DECIMAL(p, s) has from 1 to 38 digits, and s of them behind the point".to_owned()),
    }
}

/// The coarsest unit with so many digits behind the second; 6 by default, as in Postgres and Flink.
fn time_unit(precision: Option<u64>) -> Result<TimeUnit, String> {
    match precision.unwrap_or(6) {
        0 => Ok(TimeUnit::Second),
        1..=3 => Ok(TimeUnit::Millisecond),
        4..=6 => Ok(TimeUnit::Microsecond),
        7..=9 => Ok(TimeUnit::Nanosecond),
        digits => Err(format!("TIMESTAMP({digits}): there are at most 9 digits")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::{Parsed, parse};

    fn read(sql: &str) -> Result<Declared> {
        let mut statements = parse(sql, 50).expect("SQL");
        match statements.pop().map(|statement| statement.0) {
            Some(Parsed::CreateTable(create)) => declared(&create),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn a_table_is_declared() {
        let sql = "CREATE TABLE \"My.Bids\" (Auction BIGINT NOT NULL, price DECIMAL(10, 2), ok BOOLEAN, i INT,
                   d DOUBLE, t TEXT, v VARCHAR, s STRING, day DATE, ts TIMESTAMP(3), tz TIMESTAMP WITH TIME ZONE)
                   WITH (topic = 'bids', format = 'json', 'key_format' = 'bytes')";
        let declared = read(sql).expect("valid");
        assert_eq!((declared.table.as_str(), declared.topic.as_str()), ("My.Bids", "bids"));
        assert_eq!((declared.format, declared.key), (Format::Json, Some(KeyFormat::Bytes)));
        let shown: Vec<String> =
            declared.columns.iter().map(|column| format!("{} {}", column.name, column.column_type)).collect();
        let expected = "auction BIGINT, price DECIMAL(10, 2), ok BOOLEAN, i INT, d DOUBLE, t VARCHAR, \
                        v VARCHAR, s VARCHAR, day DATE, ts TIMESTAMP(3), tz TIMESTAMP(6) WITH TIME ZONE";
        assert_eq!(shown.join(", "), expected);
        assert!(!declared.columns[0].is_nullable && declared.columns[1].is_nullable);
    }

    #[test]
    fn what_cannot_be_says_what_can() {
        let cases = [
            ("(a BIGINT) WITH (format = 'json')", "must name the topic"),
            ("(a BIGINT) WITH (topic = 't', fromat = 'json')", "no option `fromat`"),
            ("(a BIGINT) WITH (topic = 't', format = 'avro')", "format = 'avro' is not one of"),
            ("(a UUID) WITH (topic = 't')", "type UUID is not supported; there are BOOLEAN"),
            ("(a INT, a INT) WITH (topic = 't')", "`a` is declared twice"),
            ("(_offset INT) WITH (topic = 't')", "has a column `_offset` already"),
            ("(a INT) WITH (topic = 't', format = 'text')", "one column, of type VARCHAR"),
            ("(a INT UNIQUE) WITH (topic = 't')", "`UNIQUE` is not supported"),
            ("(a TIMESTAMP(10)) WITH (topic = 't')", "at most 9 digits"),
            ("(a DECIMAL(40)) WITH (topic = 't')", "from 1 to 38 digits"),
        ];
        for (tail, expected) in cases {
            let error = read(&format!("CREATE TABLE t {tail}")).expect_err(expected).to_string();
            assert!(error.starts_with("table `t`: ") && error.contains(expected), "{error}");
        }
    }
}
