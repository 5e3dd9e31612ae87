//! A record as `consume --format json` prints it: a JSON object a line, with all that a record has.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use super::input::InputRecord;

/// The object. What it says of offsets is read and passed over: the log that a record is written to gives it one of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordLine<'l> {
    partition: Option<i32>,
    #[serde(rename = "offset")]
    _offset: Option<i64>,
    timestamp: Option<i64>,
    #[serde(borrow, default)]
    key: Bytes<'l>,
    /// Must be there, if only as null: a value that was left out by mistake would delete what its key stands for.
    #[serde(borrow)]
    value: Bytes<'l>,
    #[serde(borrow, default)]
    headers: Vec<(Bytes<'l>, Bytes<'l>)>,
}

/// A string for UTF-8, `{"base64": …}` for any other bytes, null for none.
#[derive(Default)]
struct Bytes<'l>(Option<Cow<'l, [u8]>>);

/// So much of what is wrong is shown.
const SHOWN: usize = 40;

/// The time of a record that has none.
const NO_TIMESTAMP: i64 = -1;

/// Reads the line that `record.value` holds into all of `record`.
///
/// # Errors
/// With what is wrong with the line as text.
pub(super) fn read(record: &mut InputRecord) -> Result<(), String> {
    let no_record =
        |error: &dyn fmt::Display| format!("this is no record as `consume --format json` prints it: {error}");
    // An array of all that would do for the decoder, too.
    if record.value.trim_ascii_start().first() != Some(&b'{') {
        return Err(no_record(&"it is not a JSON object"));
    }
    let line: RecordLine<'_> = serde_json::from_slice(&record.value).map_err(|error| no_record(&error))?;
    if line.timestamp.is_some_and(|time| time < NO_TIMESTAMP) {
        return Err("its timestamp is before 1970: no record can have such a time".to_owned());
    }
    record.headers.clear();
    for (name, value) in line.headers {
        let name = name.0.ok_or("a header has null for its name")?;
        record.headers.push((name.into_owned(), value.0.map(Cow::into_owned)));
    }
    record.partition = line.partition;
    record.timestamp = line.timestamp;
    record.key = line.key.0.map(Cow::into_owned);
    record.is_null = line.value.0.is_none();
    record.value = line.value.0.map(Cow::into_owned).unwrap_or_default();
    Ok(())
}

impl<'de: 'l, 'l> Deserialize<'de> for Bytes<'l> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BytesVisitor)
    }
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Bytes<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, {\"base64\": …} or null")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Bytes<'de>, E> {
        Ok(Bytes(Some(Cow::Borrowed(text.as_bytes()))))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes<'de>, E> {
        Ok(Bytes(Some(Cow::Owned(text.as_bytes().to_vec()))))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Bytes<'de>, E> {
        Ok(Bytes(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Bytes<'de>, A::Error> {
        if map.next_key::<Cow<'de, str>>()?.as_deref() != Some("base64") {
            return Err(de::Error::custom("bytes that are no text are written {\"base64\": …}"));
        }
        let text = map.next_value::<Cow<'de, str>>()?;
        let bytes = STANDARD.decode(&*text).map_err(|_| {
            let begin: String = text.chars().take(SHOWN).collect();
            let rest = if begin.len() < text.len() { "…" } else { "" };
            de::Error::custom(format!("`{}{rest}` is not base64 with its padding", begin.escape_debug()))
        })?;
        match map.next_key::<Cow<'de, str>>()? {
            None => Ok(Bytes(Some(Cow::Owned(bytes)))),
            Some(key) => Err(de::Error::custom(format!("`{key}` stands beside base64"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<InputRecord, String> {
        let mut record = InputRecord { value: text.as_bytes().to_vec(), ..InputRecord::default() };
        read(&mut record).map(|()| record)
    }

    #[test]
    fn a_record_is_read_with_all_that_it_has() {
        let record = line(
            r#"{"partition":3,"offset":42,"timestamp":7,"key":"k\n","value":{"base64":"/wA="},"headers":[["a","1"],["a",null],["b",{"base64":"/w=="}]]}"#,
        )
        .expect("a record");
        assert_eq!((record.partition, record.timestamp), (Some(3), Some(7)));
        assert_eq!(
            (record.key.as_deref(), record.value(), record.line),
            (Some(&b"k\n"[..]), Some(&b"\xff\0"[..]), 0)
        );
        let headers: Vec<(&[u8], Option<&[u8]>)> =
            record.headers.iter().map(|(name, value)| (name.as_slice(), value.as_deref())).collect();
        assert_eq!(headers, [(&b"a"[..], Some(&b"1"[..])), (b"a", None), (b"b", Some(b"\xff"))]);
        let record = line(r#" {"value":null,"timestamp":-1} "#).expect("a tombstone");
        assert_eq!((record.value(), record.key.as_ref(), record.timestamp), (None, None, Some(-1)));
        assert_eq!(line(r#"{"value":""}"#).expect("an empty value").value(), Some(&b""[..]));
    }

    #[test]
    fn what_is_no_record_is_told() {
        for (text, said) in [
            ("x", "no record as `consume --format json` prints it: it is not a JSON object"),
            (r#"[0,0,0,"key","value",[]]"#, "it is not a JSON object"),
            (r#"{"key":"a"}"#, "missing field `value`"),
            (r#"{"value":"a","vlaue":"b"}"#, "unknown field `vlaue`"),
            (r#"{"value":{"a":1}}"#, "{\"base64\": …}"),
            (r#"{"value":1}"#, "a string, {\"base64\": …} or null"),
            (r#"{"value":{"base64":"/w"}}"#, "`/w` is not base64"),
            (r#"{"value":{"base64":"/x=="}}"#, "`/x==` is not base64"),
            (r#"{"value":{"base64":"===="}}"#, "`====` is not base64"),
            (r#"{"value":{"base64":"a b="}}"#, "`a b=` is not base64"),
            (r#"{"value":{"base64":"/w==","a":1}}"#, "`a` stands beside base64"),
            (r#"{"value":"a","timestamp":-2}"#, "before 1970"),
            (r#"{"value":"a","headers":[[null,"a"]]}"#, "null for its name"),
            (r#"{"value":"a"}{"value":"b"}"#, "trailing characters"),
        ] {
            let error = line(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
