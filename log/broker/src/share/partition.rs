//! A share-partition (KIP-932) as a pure state machine: which records of a partition a share group has before it, who has
//! acquired them, and how often each was delivered.
//!
//! Time is an argument. What is to last is a [`Transition`]: it is decided without changing anything, written, and then
//! applied. Acquiring is not written: after a crash nobody holds a record, and it may be delivered again.

mod acknowledge;
mod acquire;
mod narrow;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_protocol::Offset;

pub(crate) use acknowledge::{AckBatch, AckTerms, Acknowledgement};
pub(crate) use acquire::{AcquireMode, AcquireTerms, Acquired, Span};
pub(crate) use stored::{StoredBatch, StoredState};

/// The most runs of one share-partition. They take about 100 bytes each, and every one may be searched for one that is free.
/// There are more than twice the locks only where one record is held while many thousands after it are dealt with in
/// different ways; then nothing new is acquired until it is done.
pub(crate) const MAX_RUNS: usize = 32_768;

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordState {
    /// It waits for somebody to acquire it.
    Available,
    /// A member has it, for some time.
    Acquired(Lock),
    /// It has been dealt with.
    Acknowledged,
    /// It is given up: rejected, delivered too often, or not there to be delivered.
    Archived,
}

/// Who has a record, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) member: ByteString,
    /// In monotonic ms.
    pub(crate) until_ms: u64,
}

impl RecordState {
    /// Whether the group is done with the record.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Acknowledged | Self::Archived)
    }

    fn is_available(&self) -> bool {
        matches!(self, Self::Available)
    }
}

/// Records side by side that stand alike.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    last: Offset,
    state: RecordState,
    /// How often they were delivered, this time included while they are acquired.
    deliveries: i16,
}

impl Run {
    fn is_like(&self, other: &Self) -> bool {
        self.state == other.state && (self.deliveries == other.deliveries || self.state.is_done())
    }
}

/// What becomes of records side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) first: Offset,
    pub(crate) last: Offset,
    pub(crate) state: RecordState,
    pub(crate) deliveries: i16,
}

/// Changes that are decided together, in the order of their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) changes: Vec<Change>,
}

impl Transition {
    /// Of how many records something changes.
    pub(crate) fn count(&self) -> u64 {
        self.changes.iter().map(|change| count(change.first, change.last)).sum()
    }

    /// Whether nothing changes at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// The records that a share group has before it in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharePartition {
    /// The share-partition start offset: the group is done with everything before it.
    start: Offset,
    /// Nothing from here on was ever acquired.
    end: Offset,
    /// What lies between, without holes, by the first offset.
    runs: BTreeMap<Offset, Run>,
    /// How many records between the group is not done with.
    in_flight: u64,
    /// How many of them are available.
    available: u64,
}

fn count(first: Offset, last: Offset) -> u64 {
    u64::try_from(last.0 - first.0 + 1).unwrap_or(0)
}

impl SharePartition {
    /// A share-partition whose group begins to read at `start`.
    pub(crate) fn new(start: Offset) -> Self {
        Self { start, end: start, runs: BTreeMap::new(), in_flight: 0, available: 0 }
    }

    /// The share-partition start offset: the group is done with everything before it.
    pub(crate) fn start(&self) -> Offset {
        self.start
    }

    /// How many records after the start offset the group is done with already.
    pub(crate) fn done_count(&self) -> u64 {
        count(self.start, Offset(self.end.0 - 1)).saturating_sub(self.in_flight)
    }

    /// How many records members have, and how many wait to be delivered again.
    pub(crate) fn in_flight(&self) -> (u64, u64) {
        (self.in_flight.saturating_sub(self.available), self.available)
    }

    /// Where to read on for somebody who wants records; `None` when there is nothing to acquire before others are done with
    /// what they have.
    pub(crate) fn next_fetch(&self, max_locks: u64) -> Option<Offset> {
        if self.available > 0 {
            let found = self.runs.iter().find(|(_, run)| run.state.is_available());
            return found.map(|(first, _)| *first);
        }
        (self.in_flight < max_locks && self.runs.len() < MAX_RUNS).then_some(self.end)
    }

    /// The earliest time at which a lock ends, in monotonic ms.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let until = |run: &Run| match &run.state {
            RecordState::Acquired(lock) => Some(lock.until_ms),
            _ => None,
        };
        self.runs.values().filter_map(until).min()
    }

    /// Whether `member` has acquired anything.
    #[cfg(test)]
    pub(crate) fn holds(&self, member: &str) -> bool {
        self.runs
            .values()
            .any(|run| matches!(&run.state, RecordState::Acquired(lock) if lock.member == member))
    }

    /// Takes note that the log begins at `log_start` now: the group is done with what was before.
    pub(crate) fn log_starts_at(&mut self, log_start: Offset) {
        if log_start <= self.start {
            return;
        }
        self.split_at(log_start);
        while let Some(entry) = self.runs.first_entry()
            && *entry.key() < log_start
        {
            let (first, run) = entry.remove_entry();
            self.uncount(first, &run);
        }
        self.start = log_start;
        self.end = self.end.max(log_start);
        self.advance_start();
    }

    /// Takes note that the log ends at `log_end`. Whether that is before what was acquired: the log has lost its tail then,
    /// and what gets those offsets now are other records.
    pub(crate) fn log_ends_at(&mut self, log_end: Offset) -> bool {
        if log_end >= self.end {
            return false;
        }
        self.split_at(log_end);
        while let Some(entry) = self.runs.last_entry()
            && *entry.key() >= log_end
        {
            let (first, run) = entry.remove_entry();
            self.uncount(first, &run);
        }
        self.end = log_end;
        self.start = self.start.min(log_end);
        true
    }

    /// Carries out what has been decided.
    pub(crate) fn apply(&mut self, transition: Transition) {
        for Change { first, last, state, deliveries } in transition.changes {
            self.set(first, Run { last, state, deliveries });
        }
        self.advance_start();
    }

    /// The start offset that `transition` leads to.
    pub(crate) fn start_after(&self, transition: &Transition) -> Offset {
        let mut changes = transition.changes.iter().peekable();
        let mut at = self.start;
        while at < self.end {
            while changes.next_if(|change| change.last < at).is_some() {}
            let next = changes.peek();
            match next.filter(|change| change.first <= at) {
                Some(change) if change.state.is_done() => at = change.last.plus(1),
                Some(_) => break,
                None => match self.run_at(at) {
                    Some((_, run)) if run.state.is_done() => {
                        let last = next.map_or(run.last, |change| run.last.min(Offset(change.first.0 - 1)));
                        at = last.plus(1);
                    }
                    _ => break,
                },
            }
        }
        at
    }

    /// How many records after the new start offset the group is done with after `transition`.
    pub(crate) fn done_count_after(&self, transition: &Transition) -> u64 {
        // Only records that somebody has acquired change, so that those that are done are newly so.
        let done = transition.changes.iter().filter(|change| change.state.is_done());
        let newly: u64 = done.map(|change| count(change.first, change.last)).sum();
        let all = count(self.start_after(transition), Offset(self.end.0 - 1));
        all.saturating_sub(self.in_flight.saturating_sub(newly))
    }

    fn run_at(&self, offset: Offset) -> Option<(Offset, &Run)> {
        let (first, run) = self.runs.range(..=offset).next_back()?;
        (run.last >= offset).then_some((*first, run))
    }

    /// The runs that have to do with the offsets from `first` to `last`, cut to them.
    fn cut(&self, first: Offset, last: Offset) -> impl Iterator<Item = (Offset, Offset, &Run)> {
        let begin = self.run_at(first).map_or(first, |(begin, _)| begin);
        let touching = (first <= last).then(|| self.runs.range(begin..=last));
        touching.into_iter().flatten().map(move |(at, run)| ((*at).max(first), run.last.min(last), run))
    }

    /// Has the records from `first` on stand as `run` says. They lie between start and end, or right after the end.
    fn set(&mut self, first: Offset, run: Run) {
        let last = run.last;
        self.split_at(first);
        self.split_at(last.plus(1));
        while let Some((&at, _)) = self.runs.range(first..=last).next() {
            if let Some(old) = self.runs.remove(&at) {
                self.uncount(at, &old);
            }
        }
        let size = count(first, last);
        if !run.state.is_done() {
            self.in_flight += size;
        }
        if run.state.is_available() {
            self.available += size;
        }
        self.end = self.end.max(last.plus(1));
        self.runs.insert(first, run);
        self.join_at(last.plus(1));
        self.join_at(first);
    }

    fn uncount(&mut self, first: Offset, run: &Run) {
        let size = count(first, run.last);
        if !run.state.is_done() {
            self.in_flight -= size;
        }
        if run.state.is_available() {
            self.available -= size;
        }
    }

    /// Has a run begin at `offset`, if one reaches over it.
    fn split_at(&mut self, offset: Offset) {
        let Some((_, run)) = self.runs.range_mut(..offset).next_back() else { return };
        if run.last >= offset {
            let rest = run.clone();
            run.last = Offset(offset.0 - 1);
            self.runs.insert(offset, rest);
        }
    }

    /// Makes one run of those on both sides of `offset` if they are alike.
    fn join_at(&mut self, offset: Offset) {
        let Some(right) = self.runs.get(&offset) else { return };
        let Some((&first, left)) = self.runs.range(..offset).next_back() else { return };
        if !left.is_like(right) {
            return;
        }
        let (last, deliveries) = (right.last, right.deliveries.max(left.deliveries));
        self.runs.remove(&offset);
        if let Some(left) = self.runs.get_mut(&first) {
            left.last = last;
            left.deliveries = deliveries;
        }
    }

    /// Moves the start offset over everything that is done.
    fn advance_start(&mut self) {
        while let Some(entry) = self.runs.first_entry()
            && entry.get().state.is_done()
        {
            self.start = entry.remove().last.plus(1);
        }
        if self.runs.is_empty() {
            self.start = self.end;
        }
    }
}
