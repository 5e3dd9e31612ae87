//! What `produce` reads: lines of text, JSON objects, whole records or CSV rows; each becomes what a record has.

use std::io::{BufRead, Chain, Read};

use super::csv_table::CsvTable;
use super::json_fields;
use super::record_line;
use super::source::{BYTE_ORDER_MARK, Source};
use crate::error::Error;
use crate::timestamp::parse_timestamp;

/// How the input is cut into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// One record a line; its bytes without the line feed are the value.
    Text,
    /// One JSON object a line; its bytes are the value.
    Json,
    /// One record a line, as `consume --format json` prints it: partition, timestamp, key, value and headers.
    Record,
    /// One record a row, as one JSON object named by the header row.
    Csv,
}

/// What columns mean, and how a missing value is spelled.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// The column that is the key.
    pub key: Option<String>,
    /// The column that is the timestamp: RFC 3339 or ms since 1970.
    pub timestamp: Option<String>,
    /// The CSV field that stands for null.
    pub null: Option<String>,
}

/// One record of the input, in buffers that the next one reuses.
#[derive(Debug, Default)]
pub struct InputRecord {
    /// The key, if there is one.
    pub key: Option<Vec<u8>>,
    /// The timestamp in ms since 1970, if a column gives it; -1 of a record that had none where it was read.
    pub timestamp: Option<i64>,
    /// The value, unless it is null.
    pub value: Vec<u8>,
    /// Whether the value is null: the record is a tombstone.
    pub is_null: bool,
    /// Names and values of headers.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// In which partition it was read.
    pub partition: Option<i32>,
    /// In which line of the input it begins, counted from 1.
    pub line: u64,
}

impl InputRecord {
    /// The value, `None` for null.
    pub fn value(&self) -> Option<&[u8]> {
        (!self.is_null).then_some(&self.value)
    }
}

/// The longest line that is read. No broker takes a record nearly as large; a file without line feeds should not be
/// read into memory as a whole to find that out.
const LONGEST_LINE: u64 = 64 << 20;

/// What is put behind CSV, to see whether a quote is open there: if not, it is a row of its own.
const END: &str = "\n\0no more rows\0";

/// Cuts the input into records.
pub struct Input(Cut);

enum Cut {
    Lines { reader: Source, format: InputFormat, key_delimiter: Option<String>, columns: Columns, line: u64 },
    Rows { rows: Box<csv::Reader<WithEnd>>, table: CsvTable, columns: usize, row: csv::StringRecord },
}

/// A source, and [`END`] behind it.
type WithEnd = Chain<Source, &'static [u8]>;

impl Input {
    /// Prepares to cut `reader` into records. `key_delimiter` splits the key off a line of text, which must have one.
    ///
    /// # Errors
    /// When the options don't go with the format, or a column is not in the header row.
    pub fn new(
        mut reader: Source,
        format: InputFormat,
        key_delimiter: Option<String>,
        columns: Columns,
    ) -> Result<Self, Error> {
        let wrong = |option, reason| Err(Error::Option { option, reason });
        if format == InputFormat::Text && columns.key.is_some() {
            return wrong(
                "--key",
                "text has no columns; use --input csv or json, or split lines with --key-delimiter",
            );
        }
        if format == InputFormat::Record && columns.key.is_some() {
            return wrong("--key", "a record of --input record says itself what its key is");
        }
        if format == InputFormat::Record && columns.timestamp.is_some() {
            return wrong("--timestamp", "a record of --input record says itself what its timestamp is");
        }
        if format == InputFormat::Text && columns.timestamp.is_some() {
            return wrong("--timestamp", "text has no columns; use --input csv or json");
        }
        if format != InputFormat::Text && key_delimiter.is_some() {
            return wrong(
                "--key-delimiter",
                "it splits lines of text; with csv and json name the column: --key COLUMN",
            );
        }
        if key_delimiter.as_deref() == Some("") {
            return wrong("--key-delimiter", "it must not be empty");
        }
        if format != InputFormat::Csv && columns.null.is_some() {
            return wrong("--null", "it says how CSV spells a missing value; use it with --input csv");
        }
        // It belongs neither to JSON nor to the name of the first column of CSV; text keeps its bytes.
        if format != InputFormat::Text && reader.fill_buf()?.starts_with(&BYTE_ORDER_MARK) {
            reader.consume(BYTE_ORDER_MARK.len());
        }
        if format != InputFormat::Csv {
            return Ok(Self(Cut::Lines { reader, format, key_delimiter, columns, line: 0 }));
        }
        let reader = reader.chain(END.as_bytes());
        let mut rows = csv::ReaderBuilder::new().flexible(true).from_reader(reader);
        let mut header = rows.headers().map_err(csv_error)?.clone();
        if has_ended(&mut rows, &header, 1)? {
            header.clear();
        }
        let (columns, table) = (header.len(), CsvTable::new(&header, columns)?);
        Ok(Self(Cut::Rows { rows: Box::new(rows), table, columns, row: csv::StringRecord::new() }))
    }

    /// Whether [`next`](Self::next) may wait for somebody who writes standard input.
    pub fn may_wait(&self) -> bool {
        match &self.0 {
            Cut::Lines { reader, .. } => reader.may_wait(),
            Cut::Rows { rows, .. } => rows.get_ref().get_ref().0.may_wait(),
        }
    }

    /// Reads the next record into `record`; false at the end of the input.
    ///
    /// # Errors
    /// Names the line that is not what it should be.
    pub fn next(&mut self, record: &mut InputRecord) -> Result<bool, Error> {
        match &mut self.0 {
            Cut::Lines { reader, format, key_delimiter, columns, line } => {
                record.key = None;
                record.timestamp = None;
                // A blank line is an empty text, and no JSON.
                loop {
                    if !next_line(reader, line, &mut record.value)? {
                        return Ok(false);
                    }
                    if *format == InputFormat::Text || !record.value.iter().all(u8::is_ascii_whitespace) {
                        break;
                    }
                }
                record.line = *line;
                if let Some(delimiter) = key_delimiter
                    && !split_key(record, delimiter.as_bytes())
                {
                    let reason = format!(
                        "it has no {delimiter:?}, which --key-delimiter says stands behind the key. A record with an empty key is \
                         written {delimiter:?} and the value; with --empty-as-null that key is null"
                    );
                    return Err(Error::Line { line: *line, reason });
                }
                match format {
                    InputFormat::Json => json_columns(record, columns, *line)?,
                    InputFormat::Record => {
                        let wrong = |reason| Error::Line { line: *line, reason };
                        record_line::read(record).map_err(wrong)?;
                    }
                    InputFormat::Text | InputFormat::Csv => {}
                }
                Ok(true)
            }
            Cut::Rows { rows, table, columns, row } => {
                let is_there = rows.read_record(row).map_err(csv_error)?;
                let line = row.position().map_or(0, csv::Position::line);
                if !is_there || has_ended(rows, row, line)? {
                    return Ok(false);
                }
                if row.len() != *columns {
                    let fields = if row.len() == 1 { "field" } else { "fields" };
                    let reason = format!("the row has {} {fields}, the header {columns}", row.len());
                    return Err(Error::Line { line, reason });
                }
                record.line = line;
                table.write(row, line, record)?;
                Ok(true)
            }
        }
    }
}

/// Reads a line without its line feed, and counts it; false at the end.
fn next_line(reader: &mut Source, line: &mut u64, text: &mut Vec<u8>) -> Result<bool, Error> {
    text.clear();
    if reader.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', text)? == 0 {
        return Ok(false);
    }
    *line += 1;
    if text.last() == Some(&b'\n') {
        text.pop();
    } else if text.len() as u64 > LONGEST_LINE {
        let reason = format!("it is longer than {} MiB", LONGEST_LINE >> 20);
        return Err(Error::Line { line: *line, reason });
    }
    Ok(true)
}

fn csv_error(error: csv::Error) -> Error {
    Error::Line { line: error.position().map_or(0, csv::Position::line), reason: error.to_string() }
}

/// Whether this row, which begins in this line, is what was put behind the last one.
///
/// # Errors
/// When it is in a field instead, with all that stands before it and perhaps was to be many rows.
fn is_end(row: &csv::StringRecord, line: u64) -> Result<bool, Error> {
    match row.iter().next_back() {
        Some(last) if last == END.trim_start() && row.len() == 1 => Ok(true),
        Some(last) if last.ends_with(END) => {
            let reason =
                "a quote is opened in this row and never closed, so that all after it would be one field";
            Err(Error::Line { line, reason: reason.to_owned() })
        }
        _ => Ok(false),
    }
}

/// Whether the row that was just read is the one behind all others.
///
/// # Errors
/// As for [`is_end`], and where the input has such a row itself.
fn has_ended(rows: &mut csv::Reader<WithEnd>, row: &csv::StringRecord, line: u64) -> Result<bool, Error> {
    let is_end = is_end(row, line)?;
    if is_end && rows.read_record(&mut csv::StringRecord::new()).map_err(csv_error)? {
        let reason =
            format!("{:?} is what marks the end of the input here: no row can be that", END.trim_start());
        return Err(Error::Line { line, reason });
    }
    Ok(is_end)
}

/// Splits the key off the value; false where there is no delimiter.
fn split_key(record: &mut InputRecord, delimiter: &[u8]) -> bool {
    let at = record.value.windows(delimiter.len()).position(|window| window == delimiter);
    let Some(at) = at else { return false };
    record.key = Some(record.value[..at].to_vec());
    record.value.drain(..at + delimiter.len());
    true
}

fn json_columns(record: &mut InputRecord, columns: &Columns, line: u64) -> Result<(), Error> {
    let wrong = |reason: String| Error::Line { line, reason };
    let names = [columns.key.as_deref(), columns.timestamp.as_deref()];
    let [key, time] = json_fields::find(&record.value, names).map_err(wrong)?;
    let text = |name: &str, value: Option<&str>| match value {
        None => Err(wrong(format!("the object has no field `{name}`"))),
        Some(value) => json_fields::as_text(value).map_err(wrong),
    };
    if let Some(name) = &columns.key {
        record.key = text(name, key)?.map(String::into_bytes);
    }
    if let Some(name) = &columns.timestamp {
        record.timestamp = text(name, time)?.map(|text| timestamp(name, &text, line)).transpose()?;
    }
    Ok(())
}

pub(super) fn timestamp(column: &str, text: &str, line: u64) -> Result<i64, Error> {
    let wrong =
        |what: &str| Error::Line { line, reason: format!("column `{column}` has `{text}`, which is {what}") };
    let timestamp = parse_timestamp(text).ok_or_else(|| wrong("neither RFC 3339 nor ms since 1970"))?;
    // Brokers and clients take negative numbers for times that are not known.
    if timestamp < 0 {
        return Err(wrong("before 1970: no record can have such a time"));
    }
    Ok(timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key, timestamp and value.
    type Parts = (Option<String>, Option<i64>, String);

    fn read(text: &'static [u8], format: InputFormat, columns: Columns) -> Result<Vec<Parts>, Error> {
        let mut input = Input::new(Source::new(text)?, format, None, columns)?;
        let mut record = InputRecord::default();
        let mut all = Vec::new();
        while input.next(&mut record)? {
            all.push((
                record.key.clone().map(|key| String::from_utf8(key).expect("UTF-8")),
                record.timestamp,
                String::from_utf8_lossy(&record.value).into_owned(),
            ));
        }
        Ok(all)
    }

    #[test]
    fn text_keeps_every_byte_but_the_line_feed() {
        let all = read(b"a\r\n\n\xffb", InputFormat::Text, Columns::default()).expect("readable");
        let values: Vec<&str> = all.iter().map(|(_, _, value)| value.as_str()).collect();
        assert_eq!(values, ["a\r", "", "\u{fffd}b"]);
    }

    #[test]
    fn a_line_without_its_delimiter_is_refused() {
        for (text, keys, refused) in [
            (&b"a:1\n:2\nb::\nc\nd:4\n"[..], &["a=1", "=2", "b=:"][..], Some(4)),
            (b"a:1\n\n", &["a=1"], Some(2)),
            (b"a:1", &["a=1"], None),
        ] {
            let source = Source::new(text).expect("readable");
            let mut input = Input::new(source, InputFormat::Text, Some(":".to_owned()), Columns::default())
                .expect("text");
            let (mut record, mut found) = (InputRecord::default(), Vec::new());
            let ended = loop {
                match input.next(&mut record) {
                    Ok(true) => {
                        found.push([record.key.as_deref().unwrap_or(b"?"), &record.value].join(&b'='))
                    }
                    ended => break ended,
                }
            };
            let found: Vec<_> = found.iter().map(|record| String::from_utf8_lossy(record)).collect();
            assert_eq!(found, keys);
            let said = refused
                .map(|line| format!("line {line} of the input: it has no \":\", which --key-delimiter"));
            match (ended, said) {
                (Ok(false), None) => {}
                (Err(error), Some(said)) => assert!(error.to_string().starts_with(&said), "{error}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_csv_row_becomes_one_json_object() {
        let columns =
            Columns { key: Some("tail".into()), timestamp: Some("at".into()), null: Some("NA".into()) };
        let csv =
            b"tail,n,delay,at\nN1,007,-2.5,2013-01-01T10:00:00Z\nNA,12,NA,2013-01-01\n\"a\"\"b\",1e5,,1\n";
        let all = read(csv, InputFormat::Csv, columns).expect("readable");
        assert_eq!(all[0].2, r#"{"tail":"N1","n":"007","delay":-2.5,"at":"2013-01-01T10:00:00Z"}"#);
        assert_eq!(all[1].2, r#"{"tail":null,"n":12,"delay":null,"at":"2013-01-01"}"#);
        assert_eq!(all[2].2, r#"{"tail":"a\"b","n":"1e5","delay":"","at":1}"#);
        let keys: Vec<Option<&str>> = all.iter().map(|(key, _, _)| key.as_deref()).collect();
        assert_eq!(keys, [Some("N1"), None, Some("a\"b")]);
        assert_eq!(all[0].1, Some(1_357_034_400_000));
        assert_eq!(all[2].1, Some(1));
    }

    #[test]
    fn wrong_columns_and_rows_say_what_is_wrong() {
        let key = |name: &str| Columns { key: Some(name.into()), ..Columns::default() };
        let error = read(b"carrier,n\nUA,1\n", InputFormat::Csv, key("carier")).expect_err("no such column");
        assert_eq!(error.to_string(), "there is no column `carier`; the columns are carrier, n");
        let error = read(b"a,b,a\n1,2,3\n", InputFormat::Csv, Columns::default()).expect_err("twice a");
        assert!(error.to_string().starts_with("line 1 of the input: two columns are called `a`"), "{error}");
        let error = read(b"a,b\n1\n", InputFormat::Csv, Columns::default()).expect_err("a short row");
        assert_eq!(error.to_string(), "line 2 of the input: the row has 1 field, the header 2");
        let error = read(b"{\"a\":1}\n[]\n", InputFormat::Json, key("a")).expect_err("not an object");
        assert!(error.to_string().starts_with("line 2 of the input: this is not a JSON object"), "{error}");
        for open in ["a,b\n1,\"2\n3,4\n", "a,b\n1,\"2", "a,b\n\"1,2\"\"\n", "a,\"b\n1,2\n", "a\n\""] {
            let error =
                read(open.as_bytes(), InputFormat::Csv, Columns::default()).expect_err("an open quote");
            assert!(error.to_string().contains("a quote is opened in this row and never closed"), "{error}");
        }
        let values = |csv: &'static str| -> Vec<String> {
            let all = read(csv.as_bytes(), InputFormat::Csv, Columns::default()).expect("readable");
            all.into_iter().map(|(_, _, value)| value).collect()
        };
        let (one, inch) = (r#"{"a":"1\n","b":2}"#, r#"{"a":"5\" pipe","b":2}"#);
        assert_eq!(values("a,b\n\"1\n\",2"), [one]);
        assert_eq!(values("a,b\n\"1\n\",\"2\"\n\n"), [one]);
        assert_eq!(values("a,b\n5\" pipe,2"), [inch], "a quote within a field opens nothing");
        assert_eq!((values("a,b"), values("")), (Vec::new(), Vec::new()));
        assert!(read(b"x", InputFormat::Text, key("a")).is_err());
        let at = Columns { timestamp: Some("at".into()), ..Columns::default() };
        let error = read(b"at\n-5m\n", InputFormat::Csv, at).expect_err("relative to what?");
        assert!(error.to_string().contains("`-5m`, which is neither"), "{error}");
        let at = Columns { timestamp: Some("at".into()), ..Columns::default() };
        for (text, format) in [
            (&b"at\n1969-12-31T23:59:59.999Z\n"[..], InputFormat::Csv),
            (b"{\"at\":\"0001-01-01\"}", InputFormat::Json),
        ] {
            let error = read(text, format, at.clone()).expect_err("no record is so old");
            assert!(error.to_string().contains("which is before 1970"), "{error}");
        }
    }

    #[test]
    fn a_key_keeps_every_digit_of_a_number() {
        let columns = Columns { key: Some("id".into()), timestamp: Some("at".into()), null: None };
        let json = b"{\"id\":12345678901234567890123,\"at\":1}\n{\"at\":2,\"id\":1.10}\n{\"id\":\"a\\\"b\",\"at\":null}\n";
        let all = read(json, InputFormat::Json, columns).expect("readable");
        let keys: Vec<Option<&str>> = all.iter().map(|(key, _, _)| key.as_deref()).collect();
        assert_eq!(keys, [Some("12345678901234567890123"), Some("1.10"), Some("a\"b")]);
        assert_eq!(all.iter().map(|(_, time, _)| *time).collect::<Vec<_>>(), [Some(1), Some(2), None]);
    }

    #[test]
    fn a_row_that_looks_like_the_end_does_not_end_the_input() {
        for text in
            ["a\n1\n\0no more rows\0\n2\n", "a,b\n1,2\n\0no more rows\0\n3,4\n", "\0no more rows\0\n1\n"]
        {
            let error = read(text.as_bytes(), InputFormat::Csv, Columns::default()).expect_err(text);
            assert!(error.to_string().contains("marks the end"), "{text}: {error}");
        }
    }

    #[test]
    fn blank_lines_between_json_are_passed_over_and_counted() {
        let all = read(b"\n{\"a\":1}\n \r\n\n{\"a\":2}\n\n", InputFormat::Json, Columns::default());
        let values: Vec<String> = all.expect("readable").into_iter().map(|(_, _, value)| value).collect();
        assert_eq!(values, [r#"{"a":1}"#, r#"{"a":2}"#]);
        let all = read(b"{\"value\":\"x\"}\n\n", InputFormat::Record, Columns::default());
        assert_eq!(all.expect("readable"), [(None, None, "x".to_owned())]);
        let error = read(b"{\"a\":1}\n\n\nx\n", InputFormat::Json, Columns::default()).expect_err("no JSON");
        assert!(error.to_string().starts_with("line 4 of the input: this is not a JSON object"), "{error}");
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_record() {
        let key = || Columns { key: Some("a".into()), ..Columns::default() };
        let all = read(b"\xef\xbb\xbfa,b\n1,2\n", InputFormat::Csv, key()).expect("readable");
        assert_eq!((all[0].0.as_deref(), all[0].2.as_str()), (Some("1"), r#"{"a":1,"b":2}"#));
        let all = read(b"\xef\xbb\xbf{\"a\":1}\n{\"a\":2}\n", InputFormat::Json, key()).expect("readable");
        assert_eq!(
            all.iter().map(|(_, _, value)| value.as_str()).collect::<Vec<_>>(),
            [r#"{"a":1}"#, r#"{"a":2}"#]
        );
    }

    #[test]
    fn a_line_without_an_end_is_not_read_for_ever() {
        let endless = Source::new(std::io::repeat(b'x')).expect("readable");
        let mut input = Input::new(endless, InputFormat::Text, None, Columns::default()).expect("text");
        let error = input.next(&mut InputRecord::default()).expect_err("too long");
        assert_eq!(error.to_string(), "line 1 of the input: it is longer than 64 MiB");
    }
}
