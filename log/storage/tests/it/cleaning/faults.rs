//! Cleaning when the disk is full, failing or damaged.

use std::sync::Arc;

use thalweg_protocol::Offset;
use thalweg_storage::testing::{Crash, OperationKind};
use thalweg_storage::{Error, Log, Standing};

use super::chance::Life;
use super::{clean, cleaner, compacted};
use crate::harness::{Make, TOPIC_ID, World, append, commit, partition, synced_to};

/// A life with much to clean and a log that is synced.
fn life() -> Life {
    let mut life = Life::new(compacted());
    let mut random = fastrand::Rng::with_seed(5);
    for n in 0..60 {
        let value = "x".repeat(random.usize(0..100));
        let records = [(["a", "b", "c"][n % 3], Some(value.as_str())), (["d", "e"][n % 2], None)];
        let make = Make::keyed(&records);
        if n % 4 == 0 { life.produce(1, make) } else { life.append(make) }.expect("appended");
    }
    life.commit().expect("synced");
    life
}

#[test]
fn whatever_fails_the_log_goes_on_and_the_next_round_makes_up_for_it() {
    let mut whole = life();
    let before = whole.world.disk.performed().len();
    whole.clean(1 << 20).expect("cleaned");
    let operations = whole.world.disk.performed()[before..].to_vec();
    assert!(operations.len() > 40);
    for (n, operation) in operations.iter().enumerate() {
        let passing: &[i32] = match operation.kind {
            OperationKind::Sync => &[],
            OperationKind::SyncDirectory => &[libc::EMFILE],
            _ => &[libc::ENOSPC, libc::EMFILE],
        };
        for errno in passing.iter().copied().chain([libc::EIO]) {
            let mut life = life();
            life.world.disk.fail_at(before + n, errno);
            let result = life.clean(1 << 20);
            let at = format!("{errno} at {n}, {operation}: {result:?}");
            let is_passing = errno != libc::EIO;
            // What removes files may fail and be made up for within the round.
            assert!(
                result.is_ok() || result.as_ref().is_err_and(|error| error.is_retriable() == is_passing),
                "{at}"
            );
            let end = life.log.log_end_offset();
            if is_passing {
                life.append(Make::keyed(&[("a", Some("goes on"))])).expect("appended");
                life.commit().expect("synced");
                life.clean_below = Offset(0);
                let end = life.log.log_end_offset();
                life.model.check(&life.log, Offset(0), end).unwrap_or_else(|broken| panic!("{at}: {broken}"));
                life.clean(1 << 20).unwrap_or_else(|error| panic!("{at}: then {error}"));
                life.model
                    .check(&life.log, life.clean_below, end)
                    .unwrap_or_else(|broken| panic!("{at}: {broken}"));
                let names = std::fs::read_dir(life.world.path("flights-0")).expect("a directory");
                let names: Vec<String> = names
                    .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                    .collect();
                let is_left = |name: &String| name.ends_with(".cleaned") || name.ends_with(".swap");
                assert!(!names.iter().any(is_left), "{at}: {names:?}");
            } else {
                assert!(
                    result.is_err() && matches!(life.clean(1 << 20), Err(Error::DirectoryOffline { .. })),
                    "{at}"
                );
            }
            life.world.crash(Crash::Dropped);
            let standing = Standing { high_watermark: end, ..synced_to(end.0) };
            let log = life.world.open(&life.config, standing);
            life.model.check(&log, Offset(0), end.plus(1)).unwrap_or_else(|broken| panic!("{at}: {broken}"));
        }
    }
}

#[test]
fn damage_is_not_spread() {
    let life = life();
    let path = life.world.path("flights-0/00000000000000000000.log");
    let good = std::fs::read(&path).expect("read");
    for at in [5, 25, 70, good.len() - 1] {
        let mut damaged = good.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).expect("written");
        let error = cleaner().clean_log(&life.log).expect_err("it is damaged");
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert_eq!(std::fs::read(&path).expect("read"), damaged, "it is left as it is");
    }
    std::fs::write(&path, good).expect("written");
    clean(&life.log);
}

#[test]
fn a_damaged_log_does_not_keep_the_others_from_being_cleaned() {
    let world = World::new();
    let manager = world.manager(&compacted());
    let logs: Vec<Arc<Log>> = (0..3)
        .map(|n| {
            let log = manager.create(&partition("many", n), TOPIC_ID, compacted()).expect("made");
            for at in 0..30 {
                append(&log, Make::keyed(&[("a", Some(&format!("value {at}")))]));
            }
            commit(&log);
            log
        })
        .collect();
    let path = world.path("many-1/00000000000000000000.log");
    let mut damaged = std::fs::read(&path).expect("read");
    damaged[100] ^= 1;
    std::fs::write(&path, damaged).expect("written");
    let mut cleaner = cleaner();
    assert_eq!(cleaner.run(&manager, &|| false), 2);
    assert_eq!(cleaner.run(&manager, &|| false), 0, "it is not tried again");
    assert!(logs[1].size_in_bytes() > 2 * logs[0].size_in_bytes());
}

#[test]
fn a_damaged_note_of_how_far_it_was_cleaned_costs_another_round() {
    let mut life = life();
    life.clean(1 << 20).expect("cleaned");
    let end = life.log.log_end_offset();
    life.log.close().expect("closed");
    let path = life.world.path("flights-0/cleaned-to");
    let good = std::fs::read(&path).expect("there is one");
    for at in 0..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 4;
        std::fs::write(&path, damaged).expect("written");
        let standing = Standing { high_watermark: end, is_clean: at % 2 == 0, ..synced_to(end.0) };
        let log = life.world.open(&life.config, standing);
        life.model.check(&log, life.clean_below, end).unwrap_or_else(|broken| panic!("byte {at}: {broken}"));
        if at == 0 {
            assert!(clean(&log).bytes_read > log.size_in_bytes() / 2, "from the start");
        }
    }
    std::fs::write(&path, b"").expect("written");
    let log = life.world.open(&life.config, synced_to(end.0));
    life.model.check(&log, life.clean_below, end).expect("as before");
}
