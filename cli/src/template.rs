//! The output of `consume`: raw values, JSON lines, or a template such as `%p %o %k %v\n`.

use std::io::Write;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use thalweg_protocol::record::Record;

/// How one record is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordFormat {
    /// One JSON object a line: partition, offset, timestamp, key, value, headers.
    Json,
    /// Literal text and fields in turn.
    Template(Vec<Piece>),
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text that stands for itself.
    Literal(Vec<u8>),
    /// `%t`
    Topic,
    /// `%p`
    Partition,
    /// `%o`
    Offset,
    /// `%k`
    Key,
    /// `%v`
    Value,
    /// `%h`: headers as name=value, separated by commas
    Headers,
    /// `%d`: timestamp in ms since 1970
    Timestamp,
    /// `%K`, `%V`: length in bytes, −1 for null
    KeyLength,
    /// See [`Piece::KeyLength`].
    ValueLength,
}

impl RecordFormat {
    /// Reads `json` or a template. A template that does not end in an escape or newline of its own gets none.
    ///
    /// # Errors
    /// Says which escape is unknown.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "json" {
            return Ok(Self::Json);
        }
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let piece = match c {
                '%' => match chars.next() {
                    Some('%') => None,
                    Some('t') => Some(Piece::Topic),
                    Some('p') => Some(Piece::Partition),
                    Some('o') => Some(Piece::Offset),
                    Some('k') => Some(Piece::Key),
                    Some('v') => Some(Piece::Value),
                    Some('h') => Some(Piece::Headers),
                    Some('d') => Some(Piece::Timestamp),
                    Some('K') => Some(Piece::KeyLength),
                    Some('V') => Some(Piece::ValueLength),
                    other => {
                        return Err(format!(
                            "the template has an unknown field `%{}`; fields are %t topic, %p partition, %o offset, %k key, \
                             %v value, %h headers, %d timestamp, %K and %V lengths, %% a percent sign",
                            other.map(String::from).unwrap_or_default()
                        ));
                    }
                },
                '\\' => {
                    literal.push(match chars.next() {
                        Some('n') => b'\n',
                        Some('t') => b'\t',
                        Some('0') => 0,
                        Some('r') => b'\r',
                        Some('\\') => b'\\',
                        other => {
                            return Err(format!(
                                "the template has an unknown escape `\\{}`; there are \\n, \\t, \\r, \\0 and \\\\",
                                other.map(String::from).unwrap_or_default()
                            ));
                        }
                    });
                    continue;
                }
                c => {
                    literal.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
            };
            match piece {
                None => literal.push(b'%'),
                Some(piece) => {
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(piece);
                }
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        if pieces.iter().all(|piece| matches!(piece, Piece::Literal(_))) {
            return Err(format!(
                "the template `{text}` shows nothing of a record; it is json, or has fields such as %v in it"
            ));
        }
        Ok(Self::Template(pieces))
    }
}

impl RecordFormat {
    /// Appends `record` of `topic` and `partition` to `out`.
    pub fn print(&self, topic: &str, partition: i32, record: &Record<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Json => print_json(partition, record, out),
            Self::Template(pieces) => {
                for piece in pieces {
                    print_piece(piece, topic, partition, record, out);
                }
            }
        }
    }
}

fn print_piece(piece: &Piece, topic: &str, partition: i32, record: &Record<'_>, out: &mut Vec<u8>) {
    let length = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| bytes.len() as i64);
    match piece {
        Piece::Literal(text) => out.extend_from_slice(text),
        Piece::Topic => out.extend_from_slice(topic.as_bytes()),
        Piece::Partition => print_number(i64::from(partition), out),
        Piece::Offset => print_number(record.offset.0, out),
        Piece::Timestamp => print_number(record.timestamp, out),
        Piece::Key => out.extend_from_slice(record.key.unwrap_or_default()),
        Piece::Value => out.extend_from_slice(record.value.unwrap_or_default()),
        Piece::KeyLength => print_number(length(record.key), out),
        Piece::ValueLength => print_number(length(record.value), out),
        Piece::Headers => {
            for (at, header) in record.headers.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(header.key);
                out.push(b'=');
                out.extend_from_slice(header.value.unwrap_or_default());
            }
        }
    }
}

fn print_number(number: i64, out: &mut Vec<u8>) {
    write!(out, "{number}").expect("a Vec takes every write");
}

fn print_json(partition: i32, record: &Record<'_>, out: &mut Vec<u8>) {
    write!(
        out,
        "{{\"partition\":{},\"offset\":{},\"timestamp\":{},\"key\":",
        partition, record.offset, record.timestamp
    )
    .expect("a Vec takes every write");
    print_json_bytes(record.key, out);
    out.extend_from_slice(b",\"value\":");
    print_json_bytes(record.value, out);
    out.extend_from_slice(b",\"headers\":[");
    for (at, header) in record.headers.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.push(b'[');
        print_json_bytes(Some(header.key), out);
        out.push(b',');
        print_json_bytes(header.value, out);
        out.push(b']');
    }
    out.extend_from_slice(b"]}\n");
}

/// A JSON string where the bytes are UTF-8, else `{"base64": …}`; null for null.
fn print_json_bytes(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => out.extend_from_slice(b"null"),
        Some((_, Ok(text))) => serde_json::to_writer(&mut *out, text).expect("a Vec takes every write"),
        Some((bytes, Err(_))) => {
            let text = Base64Display::new(bytes, &STANDARD);
            write!(out, "{{\"base64\":\"{text}\"}}").expect("a Vec takes every write");
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::record::{BatchBuilder, Header};
    use thalweg_protocol::{Compression, Compressor, LeaderEpoch, Offset, Scratch};

    use super::*;

    fn printed(format: &str, key: Option<&[u8]>, value: Option<&[u8]>) -> String {
        let mut builder = BatchBuilder::new(Compression::None, None, 1024);
        let headers = [Header::new("a", Some(b"1")), Header::new("a", Some(b"2")), Header::new("b", None)];
        builder.append(7, key, value, headers).expect("it fits");
        let batch = builder.finish(&mut Compressor::new(), None).at(Offset(42), LeaderEpoch(0));
        let mut scratch = Scratch::new(1024);
        let record = batch.records(&mut scratch).expect("readable").next().expect("one").expect("readable");
        let mut out = Vec::new();
        RecordFormat::parse(format).expect("a format").print("t", 3, &record, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn templates_name_every_field() {
        assert_eq!(
            printed("%t/%p/%o %k=%v\\t%h %d %K %V 100%%\\n", Some(b"k"), None),
            "t/3/42 k=\ta=1,a=2,b= 7 1 -1 100%\n"
        );
        for wrong in ["%x", "%", "\\q", ""] {
            assert!(RecordFormat::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_lines_hold_everything() {
        let expected = "{\"partition\":3,\"offset\":42,\"timestamp\":7,\"key\":null,\"value\":\"x\\\"\\n\",\
                        \"headers\":[[\"a\",\"1\"],[\"a\",\"2\"],[\"b\",null]]}\n";
        assert_eq!(printed("json", None, Some(b"x\"\n")), expected);
        for (bytes, text) in [
            (&b"\xff"[..], "/w=="),
            (b"\xff\x00", "/wA="),
            (b"\xff\x00\x10", "/wAQ"),
            (b"\xff123", "/zEyMw=="),
        ] {
            assert!(
                printed("json", Some(bytes), None).contains(&format!("\"key\":{{\"base64\":\"{text}\"}}")),
                "{text}"
            );
        }
    }
}
