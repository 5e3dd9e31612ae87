//! Members acquire records.

use bytestring::ByteString;
use thalweg_protocol::Offset;

use super::{Lock, MAX_RUNS, RecordState, Run, SharePartition, count, narrow};

/// How exactly the number of records that a member wants is kept (KIP-1206).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcquireMode {
    /// Batches are acquired whole, so that there may be more records.
    BatchOptimized,
    /// There are never more.
    RecordLimit,
}

impl AcquireMode {
    /// The mode of this number in ShareFetch.
    pub(crate) fn from_number(number: i8) -> Option<Self> {
        match number {
            0 => Some(Self::BatchOptimized),
            1 => Some(Self::RecordLimit),
            _ => None,
        }
    }
}

/// What a member wants, and may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireTerms {
    pub(crate) mode: AcquireMode,
    /// How many records it wants.
    pub(crate) max_records: u64,
    /// From how many records on a range is told as one, so that it can be acknowledged as one.
    pub(crate) batch_size: u64,
    /// How many records of the partition the whole group may have before it.
    pub(crate) max_locks: u64,
    /// How often a record is delivered before it is given up.
    pub(crate) max_deliveries: i16,
    /// Until when it may have them, in monotonic ms.
    pub(crate) until_ms: u64,
}

/// The offsets of a batch of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: Offset,
    pub(crate) last: Offset,
    /// Whether its records are for consumers: those of transactions that were aborted, and their ends, are not.
    pub(crate) is_for_consumers: bool,
}

/// Records that a member has acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acquired {
    pub(crate) first: Offset,
    pub(crate) last: Offset,
    /// How often they were delivered, this time included.
    pub(crate) deliveries: i16,
}

/// Acquires for one member.
struct Acquiring<'a> {
    member: &'a ByteString,
    terms: AcquireTerms,
    taken: u64,
    /// Set once it has records that were delivered often: how often so far, and how many it may have of them at most. It gets
    /// nothing else then.
    narrowed: Option<(i16, u64)>,
    acquired: Vec<Acquired>,
}

impl Acquiring<'_> {
    /// How many records more it may have.
    fn left(&self) -> u64 {
        let wanted = match self.terms.mode {
            AcquireMode::RecordLimit => self.terms.max_records.saturating_sub(self.taken),
            AcquireMode::BatchOptimized if self.taken >= self.terms.max_records => 0,
            AcquireMode::BatchOptimized => u64::MAX,
        };
        wanted.min(self.narrow_left())
    }

    /// How many records more it may have of those that were delivered often.
    fn narrow_left(&self) -> u64 {
        self.narrowed.map_or(u64::MAX, |(_, most)| most.saturating_sub(self.taken))
    }

    /// Takes note that records come next that were delivered so often and begin a range of `length`. Whether it may have any.
    fn goes_on_with(&mut self, deliveries: i16, length: impl FnOnce(u64) -> u64) -> bool {
        if let Some((narrowed_to, _)) = self.narrowed {
            return deliveries == narrowed_to;
        }
        let terms = self.terms;
        // The length takes some searching.
        if narrow::most(terms.max_deliveries, deliveries, 1).is_none() {
            return true;
        }
        if self.taken > 0 {
            return false;
        }
        let most = narrow::most(terms.max_deliveries, deliveries, length(terms.batch_size));
        self.narrowed = most.map(|most| (deliveries, most));
        true
    }

    fn run(&self, last: Offset, deliveries: i16) -> Run {
        let lock = Lock { member: self.member.clone(), until_ms: self.terms.until_ms };
        Run { last, state: RecordState::Acquired(lock), deliveries }
    }

    fn note(&mut self, first: Offset, last: Offset, deliveries: i16) {
        self.taken += count(first, last);
        let goes_on = self.acquired.last_mut().filter(|range| {
            range.last.plus(1) == first
                && range.deliveries == deliveries
                && count(range.first, range.last) < self.terms.batch_size
        });
        match goes_on {
            Some(range) => range.last = last,
            None => self.acquired.push(Acquired { first, last, deliveries }),
        }
    }
}

impl SharePartition {
    /// Acquires for `member` what is free of `spans`: the batches that a read from `from` found, in their order. Returns the
    /// ranges that it has now. Offsets that the log does not have are given up.
    pub(crate) fn acquire(
        &mut self,
        member: &ByteString,
        from: Offset,
        spans: &[Span],
        terms: AcquireTerms,
    ) -> Vec<Acquired> {
        let mut acquiring = Acquiring { member, terms, taken: 0, narrowed: None, acquired: Vec::new() };
        // The group has been set back since the read: what lies between is not known.
        if from > self.end {
            return acquiring.acquired;
        }
        let mut next = from.max(self.start);
        for span in spans.iter().filter(|span| span.last.0 >= span.first.0) {
            if acquiring.left() == 0 {
                break;
            }
            if span.last < next {
                continue;
            }
            let first = span.first.max(next);
            self.give_up(next, Offset(first.0 - 1));
            if !span.is_for_consumers {
                self.give_up(first, span.last);
            } else if !self.acquire_span(&mut acquiring, first, *span) {
                break;
            }
            next = span.last.plus(1);
        }
        self.advance_start();
        acquiring.acquired
    }

    /// Acquires what is free of a batch; whether it came to its end.
    fn acquire_span(&mut self, acquiring: &mut Acquiring<'_>, first: Offset, span: Span) -> bool {
        let last = span.last;
        // One batch is taken whole, whatever of it reaches the number of records.
        let mut left = acquiring.left();
        let max_deliveries = acquiring.terms.max_deliveries;
        let known_last = last.min(Offset(self.end.0 - 1));
        let free: Vec<(Offset, Offset, i16)> = self
            .cut(first, known_last)
            .filter(|(_, _, run)| run.state.is_available())
            .map(|(first, last, run)| (first, last, run.deliveries))
            .collect();
        for (first, last, deliveries) in free {
            // By what the batch holds, so that the rest of it does not shrink with every part that has gone; small batches count
            // together.
            let length = |most: u64| {
                let side_by_side = self.often_delivered(first, most, max_deliveries);
                side_by_side.max(count(span.first, span.last)).min(most)
            };
            if !acquiring.goes_on_with(deliveries, length) {
                return false;
            }
            let size = count(first, last).min(left).min(acquiring.narrow_left());
            if size == 0 {
                return false;
            }
            let (last, deliveries) = (first.plus(size as i64 - 1), deliveries.saturating_add(1));
            self.set(first, acquiring.run(last, deliveries));
            acquiring.note(first, last, deliveries);
            left -= size;
        }
        if last < self.end {
            return true;
        }
        // Fresh records do not go with those that somebody may perish of.
        if acquiring.narrowed.is_some() {
            return false;
        }
        let first = self.end;
        let room = if self.runs.len() < MAX_RUNS {
            acquiring.terms.max_locks.saturating_sub(self.in_flight)
        } else {
            0
        };
        let wanted = count(first, last);
        let size = wanted.min(left).min(room);
        if size > 0 {
            let last = first.plus(size as i64 - 1);
            self.set(first, acquiring.run(last, 1));
            acquiring.note(first, last, 1);
        }
        size == wanted
    }

    /// How many records that were delivered often are free from `first` on, side by side; `most` at most.
    fn often_delivered(&self, first: Offset, most: u64, max_deliveries: i16) -> u64 {
        let mut next = first;
        for (begin, last, run) in self.cut(first, Offset(self.end.0 - 1)) {
            let is_often = narrow::most(max_deliveries, run.deliveries, 1).is_some();
            if begin != next || !run.state.is_available() || !is_often || count(first, next) > most {
                break;
            }
            next = last.plus(1);
        }
        count(first, Offset(next.0 - 1)).min(most)
    }

    /// Gives up what is free from `first` to `last`: there is nothing to deliver.
    fn give_up(&mut self, first: Offset, last: Offset) {
        if last < first {
            return;
        }
        let known_last = last.min(Offset(self.end.0 - 1));
        let free: Vec<(Offset, Offset, i16)> = self
            .cut(first, known_last)
            .filter(|(_, _, run)| run.state.is_available())
            .map(|(first, last, run)| (first, last, run.deliveries))
            .collect();
        for (first, last, deliveries) in free {
            self.set(first, Run { last, state: RecordState::Archived, deliveries });
        }
        if last >= self.end {
            let first = self.end;
            self.set(first, Run { last, state: RecordState::Archived, deliveries: 0 });
        }
    }
}
