//! Single fields of a JSON object, as they stand in its text.

use serde::de::IgnoredAny;

/// The text of the value of each of `names` in the object that `line` is; `None` where the object has no such field. Of a
/// name that occurs twice the last one counts.
///
/// # Errors
/// When the line is not a JSON object; with what is wrong as text.
pub(super) fn find<'l, const N: usize>(
    line: &'l [u8],
    names: [Option<&str>; N],
) -> Result<[Option<&'l str>; N], String> {
    let not_an_object = |error: serde_json::Error| format!("this is not a JSON object: {error}");
    let text = std::str::from_utf8(line).map_err(|error| format!("this is not a JSON object: {error}"))?;
    let Object = serde_json::from_str(text).map_err(not_an_object)?;
    let mut found = [None; N];
    if names.iter().all(Option::is_none) {
        return Ok(found);
    }
    // Only what is known to be one JSON object comes here.
    let mut at = text.find('{').map_or(text.len(), |brace| brace + 1);
    while let Some(name_at) = text[at..].find('"').map(|quote| at + quote) {
        let name_end = name_at + end_of_value(&text[name_at..]);
        let name: String = serde_json::from_str(&text[name_at..name_end]).map_err(not_an_object)?;
        let after_colon = name_end + text[name_end..].find(':').map_or(0, |colon| colon + 1);
        let value_at =
            after_colon + text[after_colon..].find(|c: char| !c.is_ascii_whitespace()).unwrap_or(0);
        at = value_at + end_of_value(&text[value_at..]);
        for (wanted, found) in names.iter().zip(&mut found) {
            if *wanted == Some(name.as_str()) {
                *found = Some(text[value_at..at].trim_ascii_end());
            }
        }
    }
    Ok(found)
}

/// Where the value ends that the text begins with.
fn end_of_value(text: &str) -> usize {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    in_string = false;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b',' if depth == 0 => return at,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Any object; nothing of it is kept.
struct Object;

impl<'de> serde::Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counting;
        impl<'de> serde::de::Visitor<'de> for Counting {
            type Value = Object;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Object)
            }
        }
        deserializer.deserialize_map(Counting)
    }
}

/// What the text of a value stands for where text is wanted: a string for what is in it, null for nothing, and anything
/// else for itself, so that a number loses no digit.
///
/// # Errors
/// When a string's escapes are no characters.
pub(super) fn as_text(value: &str) -> Result<Option<String>, String> {
    match value.as_bytes().first() {
        Some(b'"') => serde_json::from_str(value).map(Some).map_err(|error| error.to_string()),
        Some(b'n') => Ok(None),
        _ => Ok(Some(value.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_as_it_stands() {
        let cases: &[(&str, Option<&str>)] = &[
            (r#"{"k":1}"#, Some("1")),
            (r#" { "a" : {"k":2} , "k" : [1, {"k":3}] } "#, Some(r#"[1, {"k":3}]"#)),
            (r#"{"k":1,"k":2}"#, Some("2")),
            (r#"{"\u006b":12345678901234567890123}"#, Some("12345678901234567890123")),
            (r#"{"a":"\"k\":5,}","k":"x\\"}"#, Some(r#""x\\""#)),
            (r#"{"k":-1.50e3 }"#, Some("-1.50e3")),
            (r#"{"a":[[],{}],"k":{}}"#, Some("{}")),
            (r#"{"k":null,"a":1}"#, Some("null")),
            (r#"{"K":1}"#, None),
            ("{}", None),
        ];
        for (line, expected) in cases {
            let [found, _] = find(line.as_bytes(), [Some("k"), None]).expect("an object");
            assert_eq!(found, *expected, "{line}");
        }
        for wrong in ["", "1", "[]", "{", r#"{"k":}"#, r#"{"k":1}x"#, r#"{"k":01}"#] {
            assert!(find(wrong.as_bytes(), [Some("k")]).is_err(), "{wrong}");
        }
    }
}
