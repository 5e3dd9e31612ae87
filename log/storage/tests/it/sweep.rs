//! Crashes at every write, sync, rename, creation and removal of a working day, in every way a crash can go, and
//! looks whether anything was lost that had been promised; without the journal of sync rounds and with it.

mod chance;
mod day;
mod journal;
mod promises;

use thalweg_storage::testing::{Crash, OperationKind, Performed};

use self::day::work;
use self::promises::Promises;
use crate::harness::World;

/// In how many ways unsynced writes are torn apart at each crash point; more in a soak.
pub fn torn_seeds() -> u64 {
    let asked = std::env::var("THALWEG_TORN_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    asked.unwrap_or(2)
}

/// Works until the crash at operation `n`, or to the end. Returns what was promised and all operations.
fn work_until(world: &World, n: Option<usize>) -> (Promises, Vec<Performed>) {
    if let Some(n) = n {
        world.disk.crash_at(n);
    }
    let mut promises = Promises::default();
    match work(world, &mut promises) {
        Ok(()) => {
            assert!(n.is_none_or(|n| n >= world.disk.performed().len()), "the crash at {n:?} was not felt")
        }
        Err(error) => assert!(n.is_some(), "the day fails without a crash: {error}"),
    }
    (promises, world.disk.performed())
}

fn all_operations(make: fn() -> World) -> Vec<Performed> {
    work_until(&make(), None).1
}

#[test]
fn no_crash_takes_back_a_promise() {
    crash_everywhere(World::new);
}

#[test]
fn no_crash_takes_back_a_promise_that_the_journal_keeps() {
    let operations = all_operations(World::journaled);
    let written = operations.iter().filter(|operation| operation.kind == OperationKind::WriteThrough).count();
    assert!(written >= 25, "only {written} writes of the journal");
    crash_everywhere(World::journaled);
}

fn crash_everywhere(make: fn() -> World) {
    let operations = all_operations(make);
    for kind in [
        OperationKind::Create,
        OperationKind::Write,
        OperationKind::SetLen,
        OperationKind::Sync,
        OperationKind::SyncDirectory,
        OperationKind::Rename,
        OperationKind::Remove,
    ] {
        assert!(operations.iter().any(|operation| operation.kind == kind), "no {kind:?} in the day");
    }
    for (n, operation) in operations.iter().enumerate() {
        let torn = (0..torn_seeds()).map(|seed| Crash::Torn(1_000_000 * seed + n as u64));
        for crash in [Crash::Kept, Crash::Dropped].into_iter().chain(torn) {
            let mut world = make();
            let (mut promises, _) = work_until(&world, Some(n));
            world.crash(crash);
            let result = promises.check(&world).and_then(|()| {
                // What recovery found and what came after must survive, too.
                world.crash(Crash::Dropped);
                promises.check(&world)
            });
            if let Err(broken) = result {
                panic!("{crash:?} at operation {n}, {operation}: {broken}");
            }
        }
    }
}

#[test]
fn no_operation_that_fails_takes_back_a_promise() {
    fail_everywhere(World::new);
}

#[test]
fn no_operation_that_fails_takes_back_a_promise_that_the_journal_keeps() {
    fail_everywhere(World::journaled);
}

/// Each operation fails once, and the work is given up there; then the process ends, with the power or without.
fn fail_everywhere(make: fn() -> World) {
    let operations = all_operations(make);
    for (n, operation) in operations.iter().enumerate() {
        for (errno, crash) in
            [(libc::EIO, Crash::Dropped), (libc::EIO, Crash::Kept), (libc::ENOSPC, Crash::Dropped)]
        {
            let mut world = make();
            world.disk.fail_at(n, errno);
            let mut promises = Promises::default();
            let result = work(&world, &mut promises);
            let performed = world.disk.performed();
            let is_sync = matches!(operation.kind, OperationKind::Sync | OperationKind::SyncDirectory);
            if errno == libc::EIO && result.is_err() {
                // Nothing is tried that an operation which has failed for good may have made void.
                let after = performed[n + 1..].iter().filter(|after| after.kind == OperationKind::Sync);
                assert_eq!(after.count(), 0, "syncs after {n}, {operation}, has failed");
            }
            assert!(!is_sync || result.is_err(), "{errno} at {n}, {operation}, was passed over");
            world.crash(crash);
            let result = promises.check(&world).and_then(|()| {
                world.crash(Crash::Dropped);
                promises.check(&world)
            });
            if let Err(broken) = result {
                panic!("{errno} at operation {n}, {operation}, then {crash:?}: {broken}");
            }
        }
    }
}

#[test]
fn no_crash_of_the_recovery_takes_back_a_promise() {
    crash_recoveries(World::new, 11);
}

#[test]
fn no_crash_while_the_journal_is_replayed_takes_back_a_promise() {
    crash_recoveries(World::journaled, 31);
}

fn crash_recoveries(make: fn() -> World, step: usize) {
    let operations = all_operations(make);
    for n in (5..operations.len()).step_by(step) {
        let first = [Crash::Kept, Crash::Dropped, Crash::Torn(n as u64)][n % 3];
        for second in 0.. {
            let mut world = make();
            let (mut promises, _) = work_until(&world, Some(n));
            world.crash(first);
            world.disk.crash_at(second);
            let opened = world.try_manager(&day::config());
            let was_whole = opened.is_ok();
            drop(opened);
            world.crash([Crash::Dropped, Crash::Torn(second as u64), Crash::Kept][second % 3]);
            if let Err(broken) = promises.check(&world) {
                panic!(
                    "{first:?} at {n}, {}, then a crash at {second} of the recovery: {broken}",
                    operations[n]
                );
            }
            if was_whole {
                break;
            }
        }
    }
}

#[test]
fn a_skipped_sync_is_caught() {
    let operations = all_operations(World::new);
    let mut caught = 0;
    let mut missed = Vec::new();
    for (skipped, operation) in operations.iter().enumerate() {
        // Of the other log some is synced that is promised to nobody.
        let is_batches =
            operation.path.starts_with("a-0") && operation.path.extension() == Some("log".as_ref());
        if operation.kind != OperationKind::Sync || !is_batches || !operation.was_needed {
            continue;
        }
        // A promise that depends on it is given soon after.
        let is_noticed = (skipped + 1..operations.len().min(skipped + 25)).any(|n| {
            let mut world = World::new();
            world.disk.ignore_sync(skipped);
            let (mut promises, _) = work_until(&world, Some(n));
            world.crash(Crash::Dropped);
            promises.check(&world).is_err()
        });
        if is_noticed {
            caught += 1;
        } else {
            missed.push(format!("{skipped}: {operation}"));
        }
    }
    assert!(caught >= 12, "only {caught} skipped syncs were caught");
    assert!(missed.is_empty(), "not caught:\n{}", missed.join("\n"));
}

#[test]
fn whatever_happens_on_five_days_promises_are_kept() {
    five_days(World::new);
}

#[test]
fn whatever_happens_on_five_days_the_journal_keeps_promises() {
    five_days(World::journaled);
}

fn five_days(make: fn() -> World) {
    for seed in 0..40 * torn_seeds() {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = make();
        let mut promises = Promises::default();
        for day in 1..=5 {
            // Most days end with a crash at some operation, some with one when all work is done.
            world.disk.crash_at(random.usize(0..300));
            let result = chance::work(&world, &mut promises, day, &mut random);
            let operations = world.disk.performed().len();
            let crash = match random.u8(0..3) {
                0 => Crash::Kept,
                1 => Crash::Dropped,
                _ => Crash::Torn(random.u64(..)),
            };
            world.crash(crash);
            if let Err(broken) = promises.check(&world) {
                panic!(
                    "seed {seed}, day {day}, {crash:?} after {operations} operations ({result:?}): {broken}"
                );
            }
            world.crash(Crash::Dropped);
        }
    }
}
