//! CSV rows as JSON objects.

use super::input::{Columns, InputRecord, timestamp};
use crate::error::Error;

/// The header of a CSV file, ready to turn rows into JSON.
#[derive(Debug)]
pub(super) struct CsvTable {
    /// `"name":` of each column, as JSON.
    names: Vec<Vec<u8>>,
    key: Option<usize>,
    timestamp: Option<(usize, String)>,
    null: Option<String>,
}

impl CsvTable {
    /// Looks the columns up in the header row.
    pub(super) fn new(header: &csv::StringRecord, columns: Columns) -> Result<Self, Error> {
        let find = |name: &str| {
            header.iter().position(|column| column == name).ok_or_else(|| Error::UnknownColumn {
                column: name.to_string(),
                columns: header.iter().map(String::from).collect(),
            })
        };
        for (at, name) in header.iter().enumerate() {
            if header.iter().take(at).any(|other| other == name) {
                let reason = format!("two columns are called `{name}`; a record can hold only one of them");
                return Err(Error::Line { line: 1, reason });
            }
        }
        let key = columns.key.as_deref().map(find).transpose()?;
        let timestamp = match columns.timestamp {
            None => None,
            Some(name) => Some((find(&name)?, name)),
        };
        let names =
            header.iter().map(|name| format!("{}:", serde_json::Value::from(name)).into_bytes()).collect();
        Ok(Self { names, key, timestamp, null: columns.null })
    }

    fn is_null(&self, field: &str) -> bool {
        self.null.as_deref() == Some(field)
    }

    /// Writes `row` as a JSON object; numbers stay numbers where JSON can hold them unchanged.
    pub(super) fn write(
        &self,
        row: &csv::StringRecord,
        line: u64,
        record: &mut InputRecord,
    ) -> Result<(), Error> {
        record.value.clear();
        record.value.push(b'{');
        for (at, (name, field)) in self.names.iter().zip(row.iter()).enumerate() {
            if at > 0 {
                record.value.push(b',');
            }
            record.value.extend_from_slice(name);
            if self.is_null(field) {
                record.value.extend_from_slice(b"null");
            } else if is_plain_number(field) {
                record.value.extend_from_slice(field.as_bytes());
            } else {
                serde_json::to_writer(&mut record.value, field)
                    .map_err(|error| Error::Line { line, reason: error.to_string() })?;
            }
        }
        record.value.push(b'}');
        let field = |at: usize| row.get(at).filter(|field| !self.is_null(field));
        record.key = self.key.and_then(field).map(|field| field.as_bytes().to_vec());
        record.timestamp = match &self.timestamp {
            None => None,
            Some((at, name)) => field(*at).map(|text| timestamp(name, text, line)).transpose()?,
        };
        Ok(())
    }
}

/// Whether JSON can hold the field as a number without changing a character of it: an integer or a decimal
/// fraction, no exponent, no leading zeros or plus, and few enough digits that no reader rounds it.
fn is_plain_number(field: &str) -> bool {
    let digits = field.strip_prefix('-').unwrap_or(field);
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    all_digits(whole)
        && fraction.is_none_or(all_digits)
        && (whole == "0" || !whole.starts_with('0'))
        && field != "-0"
        && whole.len() + fraction.map_or(0, str::len) <= if fraction.is_some() { 15 } else { 18 }
}
