//! Records that do not decode: left out, counted, and told with place and reason.

use std::collections::HashSet;
use std::fmt;

use bytestring::ByteString;
use parking_lot::Mutex;

/// How many places are remembered so that a record which two scans of one statement meet counts once. Past it,
/// it counts twice.
const REMEMBERED_PLACES: usize = 1 << 16;

/// The records of a statement's topics that did not decode and are therefore in no row, whatever the query
/// selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecodable {
    /// How many there were.
    pub count: u64,
    /// The first of them, as they were met.
    pub first: Vec<UndecodableRecord>,
}

/// A record that does not decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecodableRecord {
    /// The topic it is in.
    pub topic: ByteString,
    /// The partition it is in.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Why it does not decode.
    pub reason: String,
}

impl fmt::Display for UndecodableRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} offset {}: {}", self.topic, self.partition, self.offset, self.reason)
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, verb) = if self.count == 1 { ("record", "does") } else { ("records", "do") };
        write!(f, "{} {noun} left out because {} {verb} not decode", self.count, pronoun(self.count))?;
        for record in &self.first {
            write!(f, "\n  {record}")?;
        }
        let more = self.count.saturating_sub(self.first.len() as u64);
        if more > 0 && !self.first.is_empty() {
            write!(f, "\n  and {more} more")?;
        }
        Ok(())
    }
}

fn pronoun(count: u64) -> &'static str {
    if count == 1 { "it" } else { "they" }
}

/// Collects what the scans of a statement leave out.
#[derive(Debug)]
pub(crate) struct UndecodableCollector {
    shown: usize,
    /// What was met so far.
    met: Mutex<Met>,
}

#[derive(Debug, Default)]
struct Met {
    report: Undecodable,
    places: HashSet<(ByteString, i32, i64)>,
}

impl UndecodableCollector {
    pub(crate) fn new(shown: usize) -> Self {
        Self { shown, met: Mutex::default() }
    }

    /// Counts a record; `reason` is asked for only if it will be shown.
    pub(crate) fn add(
        &self,
        topic: &ByteString,
        partition: i32,
        offset: i64,
        reason: impl FnOnce() -> String,
    ) {
        let mut met = self.met.lock();
        if met.places.len() < REMEMBERED_PLACES && !met.places.insert((topic.clone(), partition, offset)) {
            return;
        }
        met.report.count += 1;
        if met.report.first.len() < self.shown {
            let record = UndecodableRecord { topic: topic.clone(), partition, offset, reason: reason() };
            met.report.first.push(record);
        }
    }

    pub(crate) fn report(&self) -> Undecodable {
        self.met.lock().report.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_once_and_the_first_are_told() {
        let collector = UndecodableCollector::new(2);
        let topic = ByteString::from("t");
        for offset in [7, 9, 7, 11] {
            collector.add(&topic, 0, offset, || format!("reason {offset}"));
        }
        let report = collector.report();
        assert_eq!(report.count, 3);
        let told = report.to_string();
        let expected = "3 records left out because they do not decode\n  t-0 offset 7: reason 7\n  \
                        t-0 offset 9: reason 9\n  and 1 more";
        assert_eq!(told, expected);
    }
}
