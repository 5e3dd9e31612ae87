//! Walks over a JSON text (RFC 8259) and cuts it into values, without building a tree.

use std::ops::Range;

/// How deep objects and arrays may lie in one another.
const DEPTH_LIMIT: usize = 128;

/// What is wrong with a text, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) expected: &'static str,
    pub(super) at: usize,
}

/// What kind of value was read; where it lies, its range says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean(bool),
    Number {
        is_integer: bool,
    },
    /// The range is without the quotes.
    String {
        is_escaped: bool,
    },
    Nested,
}

/// A place in a JSON text.
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0 }
    }

    fn malformed<T>(&self, expected: &'static str) -> Result<T, Malformed> {
        Err(Malformed { expected, at: self.at })
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Enters the object that the text is; false if it is empty.
    pub(super) fn enter_object(&mut self) -> Result<bool, Malformed> {
        self.skip_space();
        if !self.take(b'{') {
            return self.malformed("an object");
        }
        self.skip_space();
        Ok(!self.take(b'}'))
    }

    /// Reads a key, up to the value behind it: its range without quotes, and whether it has escapes.
    #[inline]
    pub(super) fn key(&mut self) -> Result<(Range<usize>, bool), Malformed> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return self.malformed("a key in quotes");
        }
        let key = self.string()?;
        self.skip_space();
        if !self.take(b':') {
            return self.malformed("`:`");
        }
        Ok(key)
    }

    /// Whether another key follows in the object, or it ends.
    #[inline]
    pub(super) fn has_more(&mut self) -> Result<bool, Malformed> {
        self.skip_space();
        if self.take(b',') {
            return Ok(true);
        }
        if self.take(b'}') { Ok(false) } else { self.malformed("`,` or `}`") }
    }

    /// Makes sure that nothing follows.
    pub(super) fn end(&mut self) -> Result<(), Malformed> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { self.malformed("the end") }
    }

    /// Reads a value of any kind.
    #[inline]
    pub(super) fn value(&mut self) -> Result<(Kind, Range<usize>), Malformed> {
        self.skip_space();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'"') => {
                let (range, is_escaped) = self.string()?;
                return Ok((Kind::String { is_escaped }, range));
            }
            Some(b'-' | b'0'..=b'9') => Kind::Number { is_integer: self.number()? },
            Some(b'{' | b'[') => {
                self.nested()?;
                Kind::Nested
            }
            Some(b't') => self.literal("true", Kind::Boolean(true))?,
            Some(b'f') => self.literal("false", Kind::Boolean(false))?,
            Some(b'n') => self.literal("null", Kind::Null)?,
            _ => return self.malformed("a value"),
        };
        Ok((kind, start..self.at))
    }

    fn literal(&mut self, literal: &'static str, kind: Kind) -> Result<Kind, Malformed> {
        if !self.text[self.at..].starts_with(literal.as_bytes()) {
            return self.malformed(literal);
        }
        self.at += literal.len();
        Ok(kind)
    }

    /// Reads a string from its opening to behind its closing quote.
    #[inline]
    fn string(&mut self) -> Result<(Range<usize>, bool), Malformed> {
        self.at += 1;
        let start = self.at;
        let mut is_escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    self.escape()?;
                }
                Some(0..=0x1f) | None => return self.malformed("the end of a string"),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok((start..self.at - 1, is_escaped))
    }

    fn escape(&mut self) -> Result<(), Malformed> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let unit = self.code_unit()?;
                match unit {
                    0xd800..=0xdbff => match self.code_unit() {
                        Ok(0xdc00..=0xdfff) => Ok(()),
                        _ => self.malformed("the second half of a surrogate pair"),
                    },
                    0xdc00..=0xdfff => self.malformed("the first half of a surrogate pair"),
                    _ => Ok(()),
                }
            }
            _ => self.malformed("an escape"),
        }
    }

    /// Reads `\uXXXX`.
    fn code_unit(&mut self) -> Result<u16, Malformed> {
        match code_unit(&self.text[self.at..]) {
            Some(unit) => {
                self.at += 6;
                Ok(unit)
            }
            None => self.malformed("\\u and four hexadecimal digits"),
        }
    }

    /// Reads a number; whether it has neither fraction nor exponent.
    #[inline]
    fn number(&mut self) -> Result<bool, Malformed> {
        self.take(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.malformed("a digit"),
        }
        let mut is_integer = true;
        if self.take(b'.') {
            is_integer = false;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            is_integer = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(is_integer)
    }

    #[inline]
    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { self.malformed("a digit") }
    }

    /// Reads an object or array with all that is in it, without recursion.
    fn nested(&mut self) -> Result<(), Malformed> {
        let mut open = [false; DEPTH_LIMIT];
        let mut depth = 0;
        loop {
            // At the beginning of a value.
            self.skip_space();
            let is_entered = match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    if depth == DEPTH_LIMIT {
                        return self.malformed("less nesting");
                    }
                    let is_object = bracket == b'{';
                    open[depth] = is_object;
                    depth += 1;
                    self.at += 1;
                    self.skip_space();
                    if self.take(if is_object { b'}' } else { b']' }) {
                        depth -= 1;
                        false
                    } else {
                        if is_object {
                            self.key()?;
                        }
                        true
                    }
                }
                _ => {
                    self.value()?;
                    false
                }
            };
            if is_entered {
                continue;
            }
            // Behind a value: what was open closes, or goes on.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                self.skip_space();
                let is_object = open[depth - 1];
                if self.take(b',') {
                    if is_object {
                        self.key()?;
                    }
                    break;
                }
                if !self.take(if is_object { b'}' } else { b']' }) {
                    return self.malformed(if is_object { "`,` or `}`" } else { "`,` or `]`" });
                }
                depth -= 1;
            }
        }
    }
}

/// The four hexadecimal digits behind `\u`.
fn code_unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | (*digit as char).to_digit(16)? as u16))
}

/// Undoes the escapes of a string that was read, into `out`.
pub(super) fn unescape<'o>(string: &str, out: &'o mut String) -> &'o str {
    out.clear();
    let mut rest = string;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (unescaped, length) = match rest.as_bytes()[1] {
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            b'u' => {
                let first = code_unit(rest.as_bytes());
                let second = rest.as_bytes().get(6..).and_then(code_unit);
                let units = [first.unwrap_or_default(), second.unwrap_or_default()];
                let decoded = char::decode_utf16(units).next();
                let decoded = decoded.and_then(Result::ok).expect("surrogates come in pairs: it was read");
                (decoded, 6 * decoded.len_utf16())
            }
            verbatim => (verbatim as char, 2),
        };
        out.push(unescaped);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Kind, Range<usize>), Malformed> {
        let mut cursor = Cursor::new(text);
        let value = cursor.value()?;
        cursor.end()?;
        Ok(value)
    }

    #[test]
    fn what_is_json_is_read_as_serde_does() {
        let deep = "[".repeat(DEPTH_LIMIT + 1) + &"]".repeat(DEPTH_LIMIT + 1);
        let texts = [
            "null",
            "true",
            "false",
            "nul",
            "truee",
            "0",
            "-0",
            "00",
            "-",
            "1.",
            ".5",
            "1.5e+3",
            "1e",
            "1E5",
            "12345678901234567890",
            "\"\"",
            "\"a\\n\\u00e9\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\ude00\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"a",
            "\"\u{1}\"",
            "[]",
            "[ ]",
            "[1,]",
            "[1 2]",
            "[1, [2, {\"a\": [] , \"b\":{}}]]",
            "{}",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "{\"a\":{\"b\":[1]}}",
            "[}",
            "{]",
            "[1",
            "{\"a\":1",
            "",
            " 1 ",
            "1 1",
            "\u{e9}",
            "[\"\u{e9}\"]",
            "NaN",
            "+1",
        ];
        for text in texts.into_iter().chain([deep.as_str()]) {
            let expected = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(read(text).is_ok(), expected, "{text}");
        }
    }

    #[test]
    fn values_are_cut_out_and_strings_unescaped() {
        let (kind, range) = read(" -12.50 ").expect("a number");
        assert_eq!((kind, range), (Kind::Number { is_integer: false }, 1..7));
        let text = r#""a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00!""#;
        let (kind, range) = read(text).expect("a string");
        assert_eq!(kind, Kind::String { is_escaped: true });
        let mut out = String::new();
        let expected: String = serde_json::from_str(text).expect("a string");
        assert_eq!(unescape(&text[range], &mut out), expected);
    }

    #[test]
    fn a_fault_has_a_place() {
        let fault = read(r#"{"a": 1, "b" 2}"#).expect_err("no colon");
        assert_eq!(fault, Malformed { expected: "`:`", at: 13 });
    }
}
