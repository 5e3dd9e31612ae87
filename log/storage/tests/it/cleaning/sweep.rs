//! Crashes at every write, sync, rename and removal of a log's cleaning, in every way a crash can go.

use thalweg_protocol::{LeaderEpoch, Offset};
use thalweg_storage::testing::{Crash, OperationKind, Performed};
use thalweg_storage::{Error, LogConfig};

use super::chance::Life;
use super::{cleaner, compacted};
use crate::harness::{Make, TOPIC_ID, World, partition};
use crate::sweep::torn_seeds;

fn config() -> LogConfig {
    LogConfig { segment_bytes: 450, ..compacted() }
}

/// A life whose log lies in a data directory.
fn begin(world: World) -> Result<Life, Box<(Error, World)>> {
    let made = world.try_manager(&config()).and_then(|manager| {
        let log = manager.create(&partition("flights", 0), TOPIC_ID, config())?;
        if world.is_journaled() {
            let config = LogConfig { segment_bytes: 10_000, ..config() };
            manager.create(&partition("beside", 0), TOPIC_ID, config)?;
            manager.keep_up_journal()?;
        }
        Ok((manager, log))
    });
    match made {
        Ok((manager, log)) => Ok(Life::of(world, log, Some(manager), config())),
        Err(error) => Err(Box::new((error, world))),
    }
}

/// Everything that cleaning has to deal with, in a fixed order. `clean_to` is told up to where a cleaning that begins
/// may take something away.
fn work(life: &mut Life, clean_to: &mut Offset) -> Result<(), Error> {
    let keyed = |records: &[(&str, Option<&str>)]| Make::keyed(records);
    life.log.begin_leader_epoch(LeaderEpoch(0))?;
    life.append(keyed(&[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))]))?;
    life.append(keyed(&[("d", Some("gone soon"))]))?;
    life.commit()?;
    for n in 0..6 {
        let value = format!("{n}");
        life.produce(1, keyed(&[("a", Some(&value)), ("e", Some(&value))]))?;
        life.append(keyed(&[("d", if n % 2 == 0 { None } else { Some("back") })]))?;
    }
    life.commit()?;
    life.produce(3, keyed(&[("b", Some("aborted")), ("f", Some("aborted"))]))?;
    life.produce(4, keyed(&[("c", Some("committed"))]))?;
    life.end(3, false)?;
    life.produce(5, keyed(&[("g", None), ("b", None)]))?;
    life.end(4, true)?;
    life.end(5, true)?;
    life.append(keyed(&[("d", None)]))?;
    for n in 0..4 {
        life.append(keyed(&[("long", Some(&"x".repeat(40 * n)))]))?;
    }
    life.commit()?;
    // In a segment that is soon rolled and cleaned.
    for n in 0..3 {
        life.append(keyed(&[("a", Some(&format!("again {n}")))]))?;
        life.commit()?;
    }
    // A map of a few keys first: the rounds end within segments.
    clean(life, clean_to, 400)?;
    clean(life, clean_to, 400)?;
    clean(life, clean_to, 1 << 20)?;
    life.leader_epoch = LeaderEpoch(1);
    life.log.begin_leader_epoch(LeaderEpoch(1))?;
    life.produce(3, keyed(&[("c", None)]))?;
    for n in 0..5 {
        life.produce(2, keyed(&[("h", Some(&"y".repeat(30 * n)))]))?;
    }
    life.end(3, true)?;
    life.append(keyed(&[("a", None), ("e", Some("last"))]))?;
    life.commit()?;
    clean(life, clean_to, 1 << 20)?;
    // Tombstones and markers are due.
    life.world.clock.advance(1001);
    life.append(keyed(&[("long", Some(&"z".repeat(300)))]))?;
    life.append(keyed(&[("long", Some(&"z".repeat(300)))]))?;
    life.commit()?;
    clean(life, clean_to, 1 << 20)?;
    // Everything into one segment.
    life.log.set_config(LogConfig { segment_bytes: 100_000, ..config() });
    clean(life, clean_to, 1 << 20)
}

fn clean(life: &mut Life, clean_to: &mut Offset, memory_bytes: usize) -> Result<(), Error> {
    *clean_to = life.log.high_watermark();
    life.clean(memory_bytes)
}

/// Works until the crash at operation `n`, or to the end.
fn work_until(
    make: fn() -> World,
    n: Option<usize>,
    ignored_sync: Option<usize>,
) -> (Result<Life, World>, Offset, Vec<Performed>) {
    let world = make();
    if let Some(n) = n {
        world.disk.crash_at(n);
    }
    if let Some(n) = ignored_sync {
        world.disk.ignore_sync(n);
    }
    let mut clean_to = Offset(0);
    match begin(world) {
        Ok(mut life) => {
            let result = work(&mut life, &mut clean_to);
            let performed = life.world.disk.performed();
            assert_eq!(result.is_err(), n.is_some_and(|n| n < performed.len()), "{result:?}");
            (Ok(life), clean_to, performed)
        }
        Err(failed) => {
            let (error, world) = *failed;
            assert!(n.is_some(), "the day does not begin: {error}");
            let performed = world.disk.performed();
            (Err(world), clean_to, performed)
        }
    }
}

/// Opens the directory after a crash and compares the log with its history; goes on working a little.
fn check(life: &mut Life, clean_to: Offset) -> Result<(), String> {
    life.manager = None;
    let manager = life.world.try_manager(&config()).map_err(|error| format!("it does not open: {error}"))?;
    if let Some(offline) = manager.offline_logs().first() {
        return Err(format!("offline: {}", offline.error));
    }
    let Some(log) = manager.log(&partition("flights", 0)) else {
        return if life.model.committed > Offset(0) { Err("it is gone".to_owned()) } else { Ok(()) };
    };
    let names = std::fs::read_dir(life.world.path("flights-0")).expect("a directory");
    for name in names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()) {
        if [".cleaned", ".swap", ".tmp"].iter().any(|suffix| name.ends_with(suffix)) {
            return Err(format!("{name} is left behind"));
        }
    }
    life.model.truncate(log.log_end_offset())?;
    life.model.check(&log, life.clean_below, clean_to)?;
    let failed = |error: Error| format!("it does not go on: {error}");
    life.log = log;
    life.manager = Some(manager);
    life.leader_epoch = LeaderEpoch(life.log.latest_epoch().map_or(0, |epoch| epoch.0 + 1));
    for n in 0..4 {
        let (filler, value) = ("w".repeat(150), format!("after the crash {n}"));
        life.append(Make::keyed(&[("a", Some(&value)), ("d", None), ("i", Some(&filler))]))
            .map_err(failed)?;
    }
    life.commit().map_err(failed)?;
    cleaner().clean_log(&life.log).map_err(failed)?;
    let end = life.log.log_end_offset();
    life.model.check(&life.log, life.clean_below, end).map(|_| ())
}

/// Crashes, and then once more after having gone on, without the page cache.
fn crash_and_check(mut life: Life, clean_to: Offset, crash: Crash) -> Result<(), String> {
    life.world.crash(crash);
    check(&mut life, clean_to)?;
    let clean_to = life.log.log_end_offset();
    life.world.crash(Crash::Dropped);
    check(&mut life, clean_to)
}

#[test]
fn no_crash_of_a_cleaning_loses_a_value_or_brings_one_back() {
    crash_cleanings(World::new);
}

#[test]
fn no_crash_of_a_cleaning_makes_the_journal_bring_a_value_back() {
    crash_cleanings(World::journaled);
}

fn crash_cleanings(make: fn() -> World) {
    let (life, _, operations) = work_until(make, None, None);
    let life = life.ok().expect("a whole day");
    let swaps = operations.iter().filter(|operation| is_swap(operation)).count();
    assert!(swaps >= 8, "only {swaps} swaps in {} operations", operations.len());
    assert_eq!(life.log.segment_count(), 2, "everything that can be is in one");
    let first = operations.iter().position(is_cleaned).expect("something is cleaned");
    for (n, operation) in operations.iter().enumerate().skip(first) {
        let torn = (0..torn_seeds() / 2).map(|seed| Crash::Torn(1_000_000 * seed + n as u64));
        for crash in [Crash::Kept, Crash::Dropped].into_iter().chain(torn) {
            let (life, clean_to, _) = work_until(make, Some(n), None);
            let life = life.ok().expect("it was made long before");
            if let Err(broken) = crash_and_check(life, clean_to, crash) {
                panic!("{crash:?} at operation {n}, {operation}: {broken}");
            }
        }
    }
}

#[test]
fn no_crash_while_a_swap_is_finished_loses_anything() {
    crash_recoveries(World::new, 17);
}

#[test]
fn no_crash_while_the_journal_of_a_cleaned_log_is_replayed_loses_anything() {
    crash_recoveries(World::journaled, 43);
}

fn crash_recoveries(make: fn() -> World, step: usize) {
    let operations = work_until(make, None, None).2;
    let first = operations.iter().position(is_swap).expect("something is swapped");
    for n in (first..operations.len()).step_by(step) {
        for second in 0..200 {
            let (life, clean_to, _) = work_until(make, Some(n), None);
            let mut life = life.ok().expect("it was made long before");
            life.manager = None;
            life.world.crash([Crash::Kept, Crash::Dropped, Crash::Torn(n as u64)][n % 3]);
            life.world.disk.crash_at(second);
            let opened = life.world.try_manager(&config());
            let was_whole = opened.is_ok();
            drop(opened);
            let crash = [Crash::Dropped, Crash::Torn(second as u64), Crash::Kept][second % 3];
            if let Err(broken) = crash_and_check(life, clean_to, crash) {
                panic!("at {n}, {}, then {crash:?} at {second} of the recovery: {broken}", operations[n]);
            }
            if was_whole {
                break;
            }
        }
    }
}

/// A segment of which the journal has entries is cleaned and keeps its name.
fn clean_what_is_in_the_journal(ignored_sync: Option<usize>) -> (Life, Offset, Vec<Performed>) {
    let world = World::journaled();
    if let Some(n) = ignored_sync {
        world.disk.ignore_sync(n);
    }
    let mut life = begin(world).unwrap_or_else(|failed| panic!("{}", failed.0));
    let mut append = |key, value: &str| {
        life.append(Make::keyed(&[(key, Some(value))])).expect("appended");
        life.commit().expect("synced");
    };
    append("a", "1");
    append("a", "2");
    append("b", "1");
    append("c", &"x".repeat(200));
    append("d", &"x".repeat(200));
    let mut clean_to = Offset(0);
    clean(&mut life, &mut clean_to, 1 << 20).expect("cleaned");
    let performed = life.world.disk.performed();
    (life, clean_to, performed)
}

#[test]
fn entries_that_are_not_void_before_a_swap_are_noticed() {
    let (life, clean_to, operations) = clean_what_is_in_the_journal(None);
    crash_and_check(life, clean_to, Crash::Dropped).expect("nothing is brought back");
    let is_told = |pair: &[Performed]| {
        pair[0].kind == OperationKind::Sync && pair[0].path.ends_with("synced-to") && is_swap(&pair[1])
    };
    let skipped = operations.windows(2).position(is_told).expect("the checkpoint is told before the swap");
    let (life, clean_to, _) = clean_what_is_in_the_journal(Some(skipped));
    crash_and_check(life, clean_to, Crash::Dropped).expect_err("stale entries have been replayed");
}

#[test]
fn a_cleaned_segment_that_is_not_synced_is_noticed() {
    let operations = work_until(World::new, None, None).2;
    let mut caught = 0;
    for (skipped, operation) in operations.iter().enumerate() {
        let is_batches = operation.path.to_string_lossy().ends_with(".log.cleaned");
        if operation.kind != OperationKind::Sync || !is_batches || !operation.was_needed {
            continue;
        }
        let is_noticed = (skipped + 1..operations.len().min(skipped + 30)).any(|n| {
            let (life, clean_to, _) = work_until(World::new, Some(n), Some(skipped));
            crash_and_check(life.ok().expect("made long before"), clean_to, Crash::Dropped).is_err()
        });
        assert!(is_noticed, "nobody noticed that {skipped}, {operation}, was not done");
        caught += 1;
    }
    assert!(caught >= 8, "only {caught} syncs");
}

fn is_swap(operation: &Performed) -> bool {
    operation.kind == OperationKind::Rename && operation.path.extension() == Some("swap".as_ref())
}

fn is_cleaned(operation: &Performed) -> bool {
    operation.path.extension() == Some("cleaned".as_ref())
}
