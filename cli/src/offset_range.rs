//! The offset grammar of `consume --offset`: where to begin and where to end, in one word.

use std::fmt;

use thalweg_connectors::{looks_like_date, parse_time};

/// A place in a partition, as a user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The first record that is still there.
    Start,
    /// Behind the last record.
    End,
    /// An offset.
    Offset(i64),
    /// So many records before the end.
    BeforeEnd(i64),
    /// So many records after the start.
    AfterStart(i64),
    /// The first record with this timestamp or a later one, in ms since 1970.
    Time(i64),
}

/// Where to begin and, if anywhere, where to stop (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetRange {
    /// The first record to read.
    pub from: Place,
    /// The record before which to stop; `None` reads on for ever.
    pub until: Option<Place>,
}

/// What is wrong with a word that should have been an offset range.
#[derive(Debug, PartialEq, Eq)]
pub struct OffsetRangeError {
    word: String,
    reason: &'static str,
}

impl fmt::Display for OffsetRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an offset: {}. Use start, end, 42, +10 (after the start), -5 (before the end), 10:20, \
             @2026-01-01T00:00:00Z, @1700000000000, @-1h or @FROM:@UNTIL",
            self.word, self.reason
        )
    }
}

impl std::error::Error for OffsetRangeError {}

impl OffsetRange {
    /// Reads the grammar; `now_ms` is what relative times (`@-1h`) count from.
    pub fn parse(word: &str, now_ms: i64) -> Result<Self, OffsetRangeError> {
        let fail = |reason| OffsetRangeError { word: word.to_string(), reason };
        let time = |text: &str, otherwise| {
            let year = "a year or a date is written with its dashes, 2013-01-01, and ms since 1970 in full";
            let unclear = || fail(if looks_like_date(text) { year } else { otherwise });
            parse_time(text, now_ms).ok_or_else(unclear)
        };
        if let Some(times) = word.strip_prefix('@') {
            let (from, until) = split_times(times);
            let from = time(from, "the time is not understood")?;
            let until = match until {
                None | Some("") => None,
                Some("end") => Some(Place::End),
                Some(text) => {
                    let text = text.strip_prefix('@').unwrap_or(text);
                    let until = time(text, "the end time is not understood")?;
                    if until < from {
                        return Err(fail("it ends before it begins"));
                    }
                    Some(Place::Time(until))
                }
            };
            return Ok(Self { from: Place::Time(from), until });
        }
        let (from, until) = match word.split_once(':') {
            None => (word, None),
            Some((from, until)) => (from, Some(until)),
        };
        let from = if from.is_empty() && until.is_some() { "start" } else { from };
        let place =
            |text, otherwise| parse_place(text).ok_or_else(|| fail(synonym(text).unwrap_or(otherwise)));
        let from = place(from, "the place is not understood")?;
        let until = match until {
            None | Some("") => None,
            Some(text) => Some(match text.strip_prefix('@') {
                Some(text) => Place::Time(time(text, "the end time is not understood")?),
                None => place(text, "the end is not understood")?,
            }),
        };
        if let (Place::Offset(from), Some(Place::Offset(until))) = (from, until)
            && until < from
        {
            return Err(fail("it ends before it begins"));
        }
        Ok(Self { from, until })
    }
}

/// What is wrong with a word that other tools have for a place.
fn synonym(text: &str) -> Option<&'static str> {
    match text {
        "earliest" | "beginning" | "oldest" | "smallest" => Some("it is called `start` here"),
        "latest" | "newest" | "largest" => Some("it is called `end` here"),
        _ => None,
    }
}

fn parse_place(text: &str) -> Option<Place> {
    match text {
        "start" => return Some(Place::Start),
        "end" => return Some(Place::End),
        _ => {}
    }
    let digits = |text: &str| {
        (!text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()))
            .then(|| text.parse::<i64>().ok())
            .flatten()
    };
    match text.as_bytes().first()? {
        b'-' => digits(&text[1..]).map(Place::BeforeEnd),
        b'+' => digits(&text[1..]).map(Place::AfterStart),
        _ => digits(text).map(Place::Offset),
    }
}

/// Splits `T1:T2`, where a time may itself contain colons: what is one time is not split; else the split is behind a
/// time that ends in `Z`, or at the first colon behind a number, a date or a relative time.
fn split_times(text: &str) -> (&str, Option<&str>) {
    let is_time = |text| parse_time(text, 0).is_some() || looks_like_date(text);
    if is_time(text) {
        return (text, None);
    }
    for (at, _) in text.match_indices(':') {
        let (from, until) = (&text[..at], &text[at + 1..]);
        if is_time(from) && (from.ends_with('Z') || !from.contains('T') || until.starts_with('@')) {
            return (from, Some(until));
        }
    }
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    #[test]
    fn every_form_of_the_grammar_is_read() {
        let time = |text| Place::Time(parse_time(text, NOW).expect("a time"));
        let cases: &[(&str, Place, Option<Place>)] = &[
            ("start", Place::Start, None),
            ("end", Place::End, None),
            ("42", Place::Offset(42), None),
            ("+10", Place::AfterStart(10), None),
            ("-5", Place::BeforeEnd(5), None),
            ("10:20", Place::Offset(10), Some(Place::Offset(20))),
            ("10:", Place::Offset(10), None),
            (":20", Place::Start, Some(Place::Offset(20))),
            ("-5:end", Place::BeforeEnd(5), Some(Place::End)),
            ("@1700000000000", Place::Time(NOW), None),
            ("@-1h", Place::Time(NOW - 3_600_000), None),
            ("@-2d:@-1d", Place::Time(NOW - 172_800_000), Some(Place::Time(NOW - 86_400_000))),
            (":@-1h", Place::Start, Some(Place::Time(NOW - 3_600_000))),
            ("42:@2013-01-01T10:00:00Z", Place::Offset(42), Some(time("2013-01-01T10:00:00Z"))),
            ("start:@2013-01-01 10:00", Place::Start, Some(time("2013-01-01T10:00:00Z"))),
            ("-5:@1700000000000", Place::BeforeEnd(5), Some(Place::Time(NOW))),
            ("@2013-01-01T10:00:00Z", time("2013-01-01T10:00:00Z"), None),
            (
                "@2013-01-01T10:00:00Z:2013-02-01T00:00:00Z",
                time("2013-01-01T10:00:00Z"),
                Some(time("2013-02-01")),
            ),
            ("@2013-01-01:end", time("2013-01-01"), Some(Place::End)),
            ("@2013-01-01 10:00:00", time("2013-01-01T10:00:00Z"), None),
            ("@2013-01-01T10:00", time("2013-01-01T10:00:00Z"), None),
            ("@2013-01-01 10:00:2013-01-02", time("2013-01-01T10:00:00Z"), Some(time("2013-01-02"))),
        ];
        for (word, from, until) in cases {
            assert_eq!(
                OffsetRange::parse(word, NOW),
                Ok(OffsetRange { from: *from, until: *until }),
                "{word}"
            );
        }
        for word in [
            "",
            "x",
            "--5",
            "1.5",
            "@",
            "@yesterday",
            "20:10",
            "@2013-13-01",
            "@2013-02-29",
            "-",
            "+",
            "@-1d:@-2d",
            ":@",
            ":@end",
        ] {
            assert!(OffsetRange::parse(word, NOW).is_err(), "{word}");
        }
        for word in ["@2013", "@20130101", "@2013:@2014", "@2013-01-01:@2014", ":@2014"] {
            let error = OffsetRange::parse(word, NOW).expect_err(word).to_string();
            assert!(error.contains("with its dashes"), "{word}: {error}");
        }
        for (word, said) in [("earliest", "`start`"), ("beginning:5", "`start`"), ("5:latest", "`end`")] {
            let error = OffsetRange::parse(word, NOW).expect_err(word).to_string();
            assert!(error.contains(&format!("it is called {said} here")), "{word}: {error}");
        }
    }
}
