//! What cannot be, decided from a history alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use super::{Fate, History, Reading, Sent, Value};

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// An offset had two values, or an acknowledged one another value than its own.
    InconsistentOffset,
    /// A value is in the log twice.
    Duplicate,
    /// What was acknowledged is not in the log.
    LostWrite,
    /// What was refused, aborted or never sent is in the log, or was read.
    AbortedRead,
    /// Of a transaction whose end is not known a part is in the log.
    TornTransaction,
    /// A producer's records are in a partition in another order than they were sent.
    Reordered,
    /// A consumer went over a record.
    PollSkip,
    /// A consumer went back within an assignment.
    NonmonotonicPoll,
    /// A group, or a consumer that read to the end, never saw a record.
    Unseen,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::InconsistentOffset,
        Self::Duplicate,
        Self::LostWrite,
        Self::AbortedRead,
        Self::TornTransaction,
        Self::Reordered,
        Self::PollSkip,
        Self::NonmonotonicPoll,
        Self::Unseen,
    ];
}

/// Something that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which kind.
    pub kind: FaultKind,
    /// Where, and what.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

/// All faults of a history.
pub fn check(history: &History) -> Vec<Fault> {
    let mut faults = Faults::default();
    let log = Log::of(history);
    offsets_have_one_value(history, &mut faults);
    values_are_there_once(history, &mut faults);
    groups_are_whole(history, &log, &mut faults);
    nothing_else_was_read(history, &mut faults);
    producers_are_in_order(history, &mut faults);
    for reading in &history.readings {
        reading_is_in_order(reading, &log, &mut faults);
    }
    groups_have_seen_all(history, &log, &mut faults);
    faults.found
}

#[derive(Default)]
struct Faults {
    found: Vec<Fault>,
}

impl Faults {
    fn add(&mut self, kind: FaultKind, what: String) {
        self.found.push(Fault { kind, what });
    }
}

/// The log, for looking up.
struct Log<'a> {
    by_partition: &'a BTreeMap<i32, Vec<(i64, Value)>>,
    places: HashMap<Value, (i32, i64)>,
}

impl<'a> Log<'a> {
    fn of(history: &'a History) -> Self {
        let mut places = HashMap::new();
        for (&partition, records) in &history.log {
            places.extend(records.iter().map(|&(offset, value)| (value, (partition, offset))));
        }
        Self { by_partition: &history.log, places }
    }

    fn partition(&self, partition: i32) -> &'a [(i64, Value)] {
        self.by_partition.get(&partition).map_or(&[], Vec::as_slice)
    }

    /// The records between two offsets, both excluded.
    fn between(&self, partition: i32, after: i64, before: i64) -> &'a [(i64, Value)] {
        let records = self.partition(partition);
        let from = records.partition_point(|(offset, _)| *offset <= after);
        let to = records.partition_point(|(offset, _)| *offset < before).max(from);
        &records[from..to]
    }
}

fn offsets_have_one_value(history: &History, faults: &mut Faults) {
    let mut known: HashMap<(i32, i64), Value> = HashMap::new();
    let read = history.readings.iter().flat_map(|reading| {
        reading.records.iter().map(|&(offset, value)| (reading.partition, offset, value))
    });
    let acknowledged = history.sent.iter().filter(|group| group.fate == Fate::Done).flat_map(|group| {
        group.records.iter().filter_map(|sent| Some((sent.partition, sent.offset?, sent.value)))
    });
    let log = history.log.iter().flat_map(|(&partition, records)| {
        records.iter().map(move |&(offset, value)| (partition, offset, value))
    });
    for (partition, offset, value) in log.chain(read).chain(acknowledged) {
        let first = *known.entry((partition, offset)).or_insert(value);
        if first != value {
            faults.add(
                FaultKind::InconsistentOffset,
                format!("offset {offset} of partition {partition} is {first} and {value}"),
            );
        }
    }
}

fn values_are_there_once(history: &History, faults: &mut Faults) {
    let mut seen: HashMap<Value, (i32, i64)> = HashMap::new();
    for (&partition, records) in &history.log {
        for &(offset, value) in records {
            if let Some((other, at)) = seen.insert(value, (partition, offset)) {
                let what = format!("{value} is at {at} of partition {other} and at {offset} of {partition}");
                faults.add(FaultKind::Duplicate, what);
            }
        }
    }
}

/// What was acknowledged is there, what was not is not, and what may be is there wholly or not at all.
fn groups_are_whole(history: &History, log: &Log<'_>, faults: &mut Faults) {
    for group in &history.sent {
        let is_there =
            |sent: &&Sent| log.places.get(&sent.value).is_some_and(|(at, _)| *at == sent.partition);
        let there = group.records.iter().filter(is_there).count();
        match group.fate {
            Fate::Done => {
                for sent in group.records.iter().filter(|sent| !is_there(sent)) {
                    let what = format!("{} is not in partition {}", sent.value, sent.partition);
                    faults.add(FaultKind::LostWrite, what);
                }
            }
            Fate::NotDone => {
                for sent in group.records.iter().filter(is_there) {
                    faults.add(FaultKind::AbortedRead, format!("{} is in the log", sent.value));
                }
            }
            Fate::Unknown if there > 0 && there < group.records.len() => {
                let first = group.records.first().map(|sent| sent.value);
                let what = format!("{there} of {} records from {first:?} on are there", group.records.len());
                faults.add(FaultKind::TornTransaction, what);
            }
            Fate::Unknown => {}
        }
    }
}

fn nothing_else_was_read(history: &History, faults: &mut Faults) {
    let possible = history.sent.iter().filter(|group| group.fate != Fate::NotDone);
    let possible: HashSet<Value> = possible.flat_map(|group| &group.records).map(|sent| sent.value).collect();
    let read = history.readings.iter().flat_map(|reading| &reading.records);
    for (offset, value) in read.chain(history.log.values().flatten()) {
        if !possible.contains(value) {
            faults.add(FaultKind::AbortedRead, format!("{value} was read at {offset}"));
        }
    }
}

fn producers_are_in_order(history: &History, faults: &mut Faults) {
    for (partition, records) in &history.log {
        let mut last: HashMap<u32, (u64, i64)> = HashMap::new();
        for &(offset, value) in records {
            let before = last.insert(value.producer, (value.number, offset));
            if let Some((number, at)) = before
                && number >= value.number
            {
                let first = Value { number, ..value };
                let what = format!("{first} is at {at} of partition {partition}, {value} at {offset}");
                faults.add(FaultKind::Reordered, what);
            }
        }
    }
}

fn reading_is_in_order(reading: &Reading, log: &Log<'_>, faults: &mut Faults) {
    let mut last = reading.from.map(|from| from - 1);
    for &(offset, value) in &reading.records {
        if let Some(last) = last {
            if offset <= last {
                let what =
                    format!("{value} at {offset} of partition {} came after {last}", reading.partition);
                faults.add(FaultKind::NonmonotonicPoll, what);
            } else if let Some((skipped, value)) = log.between(reading.partition, last, offset).first() {
                let what = format!("{value} at {skipped} of partition {} was gone over", reading.partition);
                faults.add(FaultKind::PollSkip, what);
            }
        }
        last = Some(offset);
    }
    // One outside of any group has read to the end.
    if reading.group.is_none()
        && let Some(last) = last
        && let Some((offset, value)) = log.between(reading.partition, last, i64::MAX).first()
    {
        let what = format!("{value} at {offset} of partition {} never came", reading.partition);
        faults.add(FaultKind::Unseen, what);
    }
}

fn groups_have_seen_all(history: &History, log: &Log<'_>, faults: &mut Faults) {
    let mut seen: BTreeMap<&str, HashSet<(i32, i64)>> = BTreeMap::new();
    for reading in &history.readings {
        if let Some(group) = &reading.group {
            let offsets = reading.records.iter().map(|(offset, _)| (reading.partition, *offset));
            seen.entry(group).or_default().extend(offsets);
        }
    }
    for (group, seen) in seen {
        for (&partition, records) in log.by_partition {
            for (offset, value) in records.iter().filter(|(offset, _)| !seen.contains(&(partition, *offset)))
            {
                let what = format!("group {group} never saw {value} at {offset} of partition {partition}");
                faults.add(FaultKind::Unseen, what);
            }
        }
    }
}
