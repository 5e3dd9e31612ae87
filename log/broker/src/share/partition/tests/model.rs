//! A model that knows one record at a time, compared with the runs over random histories.

use proptest::prelude::*;

use super::narrow::most;
use super::*;

/// How many offsets the log of a history has, and how many records are in each batch.
const LOG_END: i64 = 60;
const BATCH: i64 = 4;
/// After so many deliveries a record is given up: after three it comes in halves, after four in quarters, after five alone.
const LIMIT: i16 = 6;
/// So many records at most are halved together.
const RANGE: u64 = 12;

#[derive(Clone, Debug, PartialEq, Eq)]
enum One {
    Free,
    Held { member: u8, until_ms: u64 },
    Done,
    Archived,
}

/// Every record of the log by itself.
struct Model {
    records: Vec<(One, i16)>,
    start: i64,
    end: i64,
}

#[derive(Clone, Debug)]
enum Event {
    Acquire {
        member: u8,
        limit: u64,
        is_exact: bool,
    },
    Ack {
        member: u8,
        first: i64,
        len: i64,
        types: Vec<i8>,
    },
    Release {
        member: u8,
    },
    Wait {
        ms: u64,
    },
    /// The node ends and comes back with what was written.
    Crash,
}

fn event() -> impl Strategy<Value = Event> {
    let member = 0u8..3;
    prop_oneof![
        4 => (member.clone(), 1u64..12, any::<bool>())
            .prop_map(|(member, limit, is_exact)| Event::Acquire { member, limit, is_exact }),
        5 => (member.clone(), 0i64..LOG_END, 1i64..9, prop::collection::vec(0i8..5, 8))
            .prop_map(|(member, first, len, types)| Event::Ack { member, first, len, types }),
        1 => member.prop_map(|member| Event::Release { member }),
        2 => (0u64..40).prop_map(|ms| Event::Wait { ms }),
        1 => Just(Event::Crash),
    ]
}

fn is_often(deliveries: i16) -> bool {
    deliveries >= LIMIT / 2
}

fn name(member: u8) -> ByteString {
    ByteString::from(format!("m{member}"))
}

/// Every fifth batch is the end of a transaction, and of every seventh the first two offsets are not there.
fn log() -> Vec<Span> {
    let batches = (0..LOG_END / BATCH).map(|index| {
        let (first, last) = (index * BATCH, index * BATCH + BATCH - 1);
        match index {
            index if index % 5 == 4 => hidden(first, last),
            index if index % 7 == 6 => span(first + 2, last),
            _ => span(first, last),
        }
    });
    batches.collect()
}

impl Model {
    fn new() -> Self {
        Self { records: vec![(One::Free, 0); LOG_END as usize], start: 0, end: 0 }
    }

    fn at(&mut self, offset: i64) -> &mut (One, i16) {
        &mut self.records[offset as usize]
    }

    /// What a member gets, decided record by record.
    fn acquire(
        &mut self,
        member: u8,
        from: i64,
        limit: u64,
        is_exact: bool,
        until_ms: u64,
        locks: u64,
    ) -> Vec<(i64, i16)> {
        let mut got = Vec::new();
        let mut next = from;
        // How often those were delivered that it may have only few of, and how many.
        let mut narrowed: Option<(i16, u64)> = None;
        for span in log().into_iter().filter(|span| span.last.0 >= from) {
            if got.len() as u64 >= limit.min(narrowed.map_or(u64::MAX, |(_, most)| most)) {
                break;
            }
            for offset in next..=span.last.0 {
                let is_there = span.first.0 <= offset && span.is_for_consumers;
                let is_new = offset >= self.end;
                let held = self.held();
                if is_there && is_exact && got.len() as u64 >= limit {
                    break;
                }
                if is_new && is_there && held >= locks {
                    self.advance();
                    return got;
                }
                let (one, deliveries) = self.at(offset).clone();
                if is_there && one == One::Free {
                    if narrowed.is_none() && is_often(deliveries) && got.is_empty() {
                        narrowed =
                            most(LIMIT, deliveries, self.often(offset, &span)).map(|most| (deliveries, most));
                    }
                    let is_barred = match narrowed {
                        Some((of, most)) => deliveries != of || got.len() as u64 >= most,
                        None => is_often(deliveries),
                    };
                    if is_barred {
                        self.advance();
                        return got;
                    }
                }
                self.end = self.end.max(offset + 1);
                let record = self.at(offset);
                if record.0 == One::Free && is_there {
                    *record = (One::Held { member, until_ms }, record.1 + 1);
                    got.push((offset, record.1));
                } else if record.0 == One::Free {
                    record.0 = One::Archived;
                }
            }
            next = span.last.0 + 1;
        }
        self.advance();
        got
    }

    /// How many records that were delivered often are free from here on, or are in the batch if those are more.
    fn often(&self, offset: i64, span: &Span) -> u64 {
        let known = &self.records[offset as usize..self.end as usize];
        let often = known.iter().take_while(|(one, deliveries)| *one == One::Free && is_often(*deliveries));
        let batch = span.last.0 - span.first.0 + 1;
        (often.count() as u64).max(batch as u64).min(RANGE)
    }

    /// Records before the end that the group is not done with.
    fn held(&self) -> u64 {
        let known = &self.records[..self.end as usize];
        known.iter().filter(|(one, _)| !matches!(one, One::Done | One::Archived)).count() as u64
    }

    fn ack(&mut self, member: u8, first: i64, types: &[i8], until_ms: u64) -> bool {
        let holds =
            |(one, _): &(One, i16)| matches!(one, One::Held { member: holder, .. } if *holder == member);
        let last = first + types.len() as i64 - 1;
        if last < self.start {
            return true;
        }
        let wanted = first.max(self.start)..=last;
        if last >= self.end || !wanted.clone().all(|offset| holds(&self.records[offset as usize])) {
            return false;
        }
        for offset in wanted {
            let said = types[(offset - first) as usize];
            let record = self.at(offset);
            record.0 = match said {
                1 => One::Done,
                2 if record.1 < LIMIT => One::Free,
                4 => One::Held { member, until_ms },
                _ => One::Archived,
            };
        }
        self.advance();
        true
    }

    fn give_back(&mut self, is_over: impl Fn(u8, u64) -> bool, counts: bool) {
        for (one, deliveries) in &mut self.records {
            if let One::Held { member, until_ms } = *one
                && is_over(member, until_ms)
            {
                *one = if counts && *deliveries >= LIMIT { One::Archived } else { One::Free };
                *deliveries -= i16::from(!counts);
            }
        }
        self.advance();
    }

    fn advance(&mut self) {
        while self.start < self.end && matches!(self.at(self.start).0, One::Done | One::Archived) {
            self.start += 1;
        }
    }
}

/// Runs the same history through both, with the journal of the share-partition beside it.
struct Comparison {
    partition: SharePartition,
    model: Model,
    /// What was written last as a whole, and what has been written since.
    snapshot: (Offset, Vec<StoredBatch>),
    updates: Vec<(Offset, Vec<StoredBatch>)>,
    now_ms: u64,
}

const LOCKS: u64 = 15;

impl Comparison {
    fn write(&mut self, transition: Transition) {
        self.updates.push((self.partition.start_after(&transition), transition.stored()));
        apply(&mut self.partition, transition);
        if self.updates.len() == 3 {
            self.updates.clear();
            self.snapshot = (self.partition.start(), self.partition.stored());
        }
    }

    fn restored(&self) -> SharePartition {
        let mut restored = SharePartition::new(self.snapshot.0);
        restored.restore(self.snapshot.0, &self.snapshot.1);
        for (start, batches) in &self.updates {
            restored.restore(*start, batches);
        }
        restored
    }

    fn step(&mut self, event: Event) -> Result<(), TestCaseError> {
        match event {
            Event::Acquire { member, limit, is_exact } => {
                let Some(from) = self.partition.next_fetch(LOCKS) else { return Ok(()) };
                let spans: Vec<_> = log().into_iter().filter(|span| span.last >= from).collect();
                let until_ms = self.now_ms + 30;
                let mode = if is_exact { RecordLimit } else { BatchOptimized };
                let terms = AcquireTerms {
                    mode,
                    max_records: limit,
                    batch_size: RANGE,
                    max_locks: LOCKS,
                    max_deliveries: LIMIT,
                    until_ms,
                };
                let acquired = self.partition.acquire(&name(member), from, &spans, terms);
                let ranges = acquired.iter();
                let got: Vec<_> = ranges
                    .flat_map(|range| (range.first.0..=range.last.0).map(|offset| (offset, range.deliveries)))
                    .collect();
                prop_assert_eq!(got, self.model.acquire(member, from.0, limit, is_exact, until_ms, LOCKS));
            }
            Event::Ack { member, first, len, types } => {
                let types = &types[..(len as usize).min(types.len()).min((LOG_END - first) as usize)];
                let batch = AckBatch::new(first, first + types.len() as i64 - 1, types, true).expect("sound");
                let until_ms = self.now_ms + 30;
                let terms = AckTerms { max_deliveries: LIMIT, until_ms };
                let decided = self.partition.acknowledge(&name(member), &[batch], terms);
                prop_assert_eq!(decided.is_ok(), self.model.ack(member, first, types, until_ms));
                self.write(decided.unwrap_or_default());
            }
            Event::Release { member } => {
                let released = self.partition.release(&name(member), LIMIT);
                self.write(released);
                self.model.give_back(|holder, _| holder == member, true);
            }
            Event::Wait { ms } => {
                self.now_ms += ms;
                let expired = self.partition.expire(self.now_ms, LIMIT);
                self.write(expired);
                let now_ms = self.now_ms;
                self.model.give_back(|_, until_ms| until_ms <= now_ms, true);
            }
            Event::Crash => {
                self.partition = self.restored();
                // Nobody holds anything, and what nobody ever gave back was never given.
                self.model.give_back(|_, _| true, false);
                self.forget_gaps();
            }
        }
        Ok(())
    }

    /// That something was not there is not written: it is noticed anew.
    fn forget_gaps(&mut self) {
        (self.model.start, self.model.end) = (self.partition.start().0, self.partition.end.0);
        for offset in self.model.start..LOG_END {
            let run = self.partition.run_at(Offset(offset));
            let is_free = run.is_none_or(|(_, run)| run.state == RecordState::Available);
            let record = self.model.at(offset);
            if is_free && record.0 == One::Archived {
                record.0 = One::Free;
            }
        }
    }

    /// Both say the same of every record.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        let start = self.partition.start().0;
        prop_assert_eq!((start, self.partition.end.0), (self.model.start, self.model.end));
        for offset in start..self.partition.end.0 {
            let (_, run) = self.partition.run_at(Offset(offset)).expect("no holes");
            let (one, deliveries) = self.model.at(offset).clone();
            let is_same = match (&run.state, one) {
                (RecordState::Available, One::Free) => run.deliveries == deliveries,
                (RecordState::Acquired(lock), One::Held { member, until_ms }) => {
                    lock.member == name(member) && lock.until_ms == until_ms && run.deliveries == deliveries
                }
                (RecordState::Acknowledged, One::Done) | (RecordState::Archived, One::Archived) => true,
                _ => false,
            };
            prop_assert!(is_same, "offset {}: {:?} {:?}", offset, run, self.model.at(offset));
        }
        let done = (start..self.partition.end.0).filter(|offset| {
            self.partition.run_at(Offset(*offset)).is_some_and(|(_, run)| run.state.is_done())
        });
        prop_assert_eq!(self.partition.done_count(), done.count() as u64);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn runs_say_the_same_as_single_records(events in prop::collection::vec(event(), 1..80)) {
        let mut comparison = Comparison {
            partition: SharePartition::new(Offset(0)),
            model: Model::new(),
            snapshot: (Offset(0), Vec::new()),
            updates: Vec::new(),
            now_ms: 0,
        };
        for event in events {
            comparison.step(event)?;
            comparison.compare()?;
        }
        // In the end everything is acknowledged or archived, and delivered no more often than it may be.
        for _ in 0..1000 {
            if comparison.partition.start() >= Offset(LOG_END) {
                break;
            }
            comparison.step(Event::Acquire { member: 0, limit: 7, is_exact: false })?;
            comparison.step(Event::Wait { ms: 31 })?;
            comparison.compare()?;
        }
        prop_assert_eq!(comparison.partition.start(), Offset(LOG_END));
        for (one, deliveries) in &comparison.model.records {
            let is_over = matches!(one, One::Done | One::Archived) && *deliveries <= LIMIT;
            prop_assert!(is_over, "{:?} after {} deliveries", one, deliveries);
        }
    }
}
