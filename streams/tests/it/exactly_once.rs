//! A crash at every point of the commit, in memory: results, state and offsets stay together. And wrong
//! orders of the commit do not, so that these tests are known to notice.

use std::collections::BTreeMap;

use thalweg_streams::testing::{NextEnd, StateAfterCrash, TestDriver};
use thalweg_streams::{
    BigEndian, CommitOrder, CommitStep, Emit, Error, Failpoint, Fault, Grouped, Materialized, Moment,
    StreamsBuilder, StreamsConfig, Text, Topology,
};

const RECORDS: usize = 1200;
const KEYS: usize = 7;

/// Counts by a changed key, so that the work passes through a repartition topic.
fn counting(emit: Emit) -> Topology {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, String>("in", Text, Text)
        .group_by(Grouped::new("by-value", Text, Text), |record| record.value.clone())
        .count(Materialized::new("counts").emit(emit))
        .to_stream()
        .to("out", Text, BigEndian);
    builder.build().expect("valid")
}

fn driver(emit: Emit, order: CommitOrder, failpoint: Option<Failpoint>) -> TestDriver {
    let mut config = StreamsConfig::new("test", "unused");
    config.test_hooks.commit_order = order;
    config.test_hooks.failpoint = failpoint;
    TestDriver::with_config(counting(emit), &[("in", 3), ("out", 1)], config).expect("started")
}

fn produce(driver: &mut TestDriver) {
    for at in 0..RECORDS {
        let (key, value) = (format!("key {at}"), format!("carrier {}", at % KEYS));
        driver.produce("in", Some(key.as_bytes()), Some(value.as_bytes()), at as i64).expect("it exists");
    }
}

/// Runs to the end; whatever stops it is a crash, after which it goes on.
fn run(driver: &mut TestDriver, state: StateAfterCrash) -> usize {
    let mut crashes = 0;
    loop {
        match driver.run() {
            Ok(()) => return crashes,
            Err(Error::Failpoint { .. } | Error::Aborted { .. }) => {
                crashes += 1;
                assert!(crashes < 10, "it goes on after a crash");
                driver.crash(state).expect("opened again");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// What is wrong with the results; `None` when each key's counts are exactly 1, 2, …, n (per record), or
/// rise strictly to n (per commit), the store agrees, and no state was ever found ahead of the log.
fn fault(driver: &TestDriver, emit: Emit) -> Option<String> {
    let mut counts: BTreeMap<Vec<u8>, Vec<i64>> = BTreeMap::new();
    for record in driver.records("out") {
        let count = i64::from_be_bytes(record.value?.try_into().ok()?);
        counts.entry(record.key?).or_default().push(count);
    }
    for key in 0..KEYS {
        let n = (RECORDS / KEYS + usize::from(key < RECORDS % KEYS)) as i64;
        let key = format!("carrier {key}");
        let found = counts.remove(key.as_bytes()).unwrap_or_default();
        let right = match emit {
            Emit::PerRecord => found.iter().copied().eq(1..=n),
            Emit::PerCommit => found.is_sorted_by(|a, b| a < b) && found.last() == Some(&n),
        };
        if !right {
            return Some(format!("{key} has {found:?} where {n} is the end"));
        }
        let stored = driver.store("counts").get(key.as_bytes()).expect("readable").map(|stored| stored.value);
        if stored != Some(n.to_be_bytes().to_vec()) {
            return Some(format!("{key} has {stored:?} in the store where {n} is right"));
        }
    }
    let dropped = driver.dropped_states();
    (!dropped.is_empty()).then(|| format!("the state of {dropped:?} was ahead of the log"))
}

fn failpoints() -> impl Iterator<Item = Failpoint> {
    let passings = [1, 2, 5];
    CommitStep::ALL.into_iter().flat_map(move |step| {
        [Moment::Before, Moment::After].into_iter().flat_map(move |moment| {
            passings.into_iter().map(move |passing| Failpoint { moment, step, passing, fault: Fault::Fail })
        })
    })
}

/// How many crashes out of all leave a fault, and one of them.
fn sweep(emit: Emit, order: CommitOrder) -> (usize, Option<String>) {
    let mut faults = Vec::new();
    for failpoint in failpoints() {
        for state in [StateAfterCrash::Kept, StateAfterCrash::Lost] {
            let mut driver = driver(emit, order, Some(failpoint));
            produce(&mut driver);
            assert_eq!(run(&mut driver, state), 1, "{failpoint:?} is reached");
            if let Some(fault) = fault(&driver, emit) {
                faults.push(format!("{failpoint:?}, {state:?}: {fault}"));
            }
        }
    }
    (faults.len(), faults.pop())
}

#[test]
fn without_a_crash_the_results_are_right() {
    for emit in [Emit::PerRecord, Emit::PerCommit] {
        let mut driver = driver(emit, CommitOrder::Sound, None);
        produce(&mut driver);
        assert_eq!(run(&mut driver, StateAfterCrash::Kept), 0);
        assert_eq!(fault(&driver, emit), None);
    }
}

#[test]
fn a_crash_at_any_point_of_the_commit_changes_nothing() {
    for emit in [Emit::PerRecord, Emit::PerCommit] {
        assert_eq!(sweep(emit, CommitOrder::Sound), (0, None));
    }
}

#[test]
fn every_wrong_order_is_noticed() {
    for order in CommitOrder::ALL.into_iter().filter(|order| *order != CommitOrder::Sound) {
        let (faults, _) = sweep(Emit::PerRecord, order);
        assert!(faults > 0, "{order:?} passes for sound");
    }
}

#[test]
fn an_unknown_outcome_is_looked_up() {
    for end in [NextEnd::CommittedUnanswered, NextEnd::Lost] {
        for emit in [Emit::PerRecord, Emit::PerCommit] {
            for commits_before in 0..4 {
                let mut driver = driver(emit, CommitOrder::Sound, None);
                produce(&mut driver);
                for _ in 0..commits_before {
                    driver.round().expect("processed");
                }
                driver.next_end(end);
                let crashes = run(&mut driver, StateAfterCrash::Kept);
                assert_eq!(crashes, usize::from(end == NextEnd::Lost), "{end:?}");
                assert_eq!(fault(&driver, emit), None);
            }
        }
    }
}
