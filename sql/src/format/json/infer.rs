//! The columns of a topic's JSON, from a sample.

use std::collections::HashMap;

use super::cursor::{Cursor, Kind, Malformed, unescape};
use crate::format::{Column, ColumnType};

/// A sample with more keys than this is no table: its keys are data.
const COLUMN_LIMIT: usize = 1000;

/// What a sample of values looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Inferred {
    /// More than half of the values are JSON objects; the columns in the order in which they first occur.
    Json(Vec<Column>),
    /// All are UTF-8.
    Text,
    /// Some are not.
    Bytes,
}

/// What the values of a key have been.
#[derive(Default)]
struct Seen {
    integers: bool,
    floats: bool,
    booleans: bool,
    /// Strings, objects, arrays, and integers of more than 64 bits.
    others: bool,
}

impl Seen {
    fn note(&mut self, kind: Kind, text: &str) {
        match kind {
            Kind::Null => {}
            Kind::Boolean(_) => self.booleans = true,
            Kind::Number { is_integer: true } if text.parse::<i64>().is_ok() => self.integers = true,
            Kind::Number { is_integer: false } => self.floats = true,
            Kind::Number { .. } | Kind::String { .. } | Kind::Nested => self.others = true,
        }
    }

    fn column_type(&self) -> ColumnType {
        match (self.integers, self.floats, self.booleans, self.others) {
            (true, false, false, false) => ColumnType::BigInt,
            (_, true, false, false) => ColumnType::Double,
            (false, false, true, false) => ColumnType::Boolean,
            _ => ColumnType::Text,
        }
    }
}

/// Infers what the values of a topic are. Columns whose values are all integers are BIGINT, integers and other
/// numbers DOUBLE, booleans BOOLEAN; everything else, mixtures and keys that are only ever null are VARCHAR,
/// where an object or an array is its JSON text.
pub(crate) fn infer<'v>(values: impl Iterator<Item = Option<&'v [u8]>>) -> Inferred {
    let mut names: Vec<String> = Vec::new();
    let mut seen: HashMap<String, Seen> = HashMap::new();
    let (mut objects, mut others, mut is_text) = (0, 0, true);
    let mut unescaped = String::new();
    for value in values.flatten() {
        let Ok(text) = std::str::from_utf8(value) else {
            is_text = false;
            others += 1;
            continue;
        };
        let mut found = Vec::new();
        if read_object(text, &mut found).is_err() {
            others += 1;
            continue;
        }
        objects += 1;
        for (key, kind, raw) in found {
            let name = if key.contains('\\') { unescape(key, &mut unescaped) } else { key };
            match seen.get_mut(name) {
                Some(seen) => seen.note(kind, raw),
                None if names.len() < COLUMN_LIMIT => {
                    names.push(name.to_owned());
                    seen.entry(name.to_owned()).or_default().note(kind, raw);
                }
                None => return Inferred::Text,
            }
        }
    }
    if objects > others {
        let column = |name: String| {
            let column_type = seen.get(&name).map_or(ColumnType::Text, Seen::column_type);
            Column::new(name, column_type)
        };
        return Inferred::Json(names.into_iter().map(column).collect());
    }
    if is_text { Inferred::Text } else { Inferred::Bytes }
}

fn read_object<'t>(text: &'t str, found: &mut Vec<(&'t str, Kind, &'t str)>) -> Result<(), Malformed> {
    let mut cursor = Cursor::new(text);
    let mut has_more = cursor.enter_object()?;
    while has_more {
        let (key, _) = cursor.key()?;
        let (kind, range) = cursor.value()?;
        found.push((&text[key], kind, &text[range]));
        has_more = cursor.has_more()?;
    }
    cursor.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(values: &[&[u8]]) -> Inferred {
        infer(values.iter().map(|value| Some(*value)))
    }

    #[test]
    fn types_come_from_all_values_of_a_key() {
        let values: [&[u8]; 4] = [
            br#"{"i":1,"f":1,"b":true,"s":"x","n":null,"o":{"a":1},"m":1,"big":1}"#,
            br#"{"i":-2,"f":1.5,"b":null,"s":"y","n":null,"o":{},"m":"one","big":12345678901234567890}"#,
            br#"not json"#,
            br#"{"late":false}"#,
        ];
        let expected = [
            ("i", ColumnType::BigInt),
            ("f", ColumnType::Double),
            ("b", ColumnType::Boolean),
            ("s", ColumnType::Text),
            ("n", ColumnType::Text),
            ("o", ColumnType::Text),
            ("m", ColumnType::Text),
            ("big", ColumnType::Text),
            ("late", ColumnType::Boolean),
        ];
        let expected = expected.map(|(name, column_type)| Column::new(name, column_type)).to_vec();
        assert_eq!(inferred(&values), Inferred::Json(expected));
    }

    #[test]
    fn what_is_not_mostly_objects_is_one_column() {
        assert_eq!(inferred(&[]), Inferred::Text);
        assert_eq!(inferred(&[b"a,b", b"{}"]), Inferred::Text);
        assert_eq!(inferred(&[b"[1]", b"2"]), Inferred::Text);
        assert_eq!(inferred(&[b"\xff", b"text"]), Inferred::Bytes);
        assert_eq!(inferred(&[b"{}", b"{}", b"\xff"]), Inferred::Json(Vec::new()));
    }
}
