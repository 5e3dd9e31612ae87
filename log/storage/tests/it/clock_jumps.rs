//! A wall clock that is set to another day: it counts for timestamps and retention, and for nothing else.

use thalweg_protocol::Offset;
use thalweg_storage::testing::Crash;
use thalweg_storage::{CleanupPolicy, Log, LogConfig, ReadBound, TimeQuery, TimestampType};

use crate::harness::{
    Make, NOW_MS, TOPIC_ID, World, append, commit, partition, records, small, synced_to, try_append, values,
};

const DAY_MS: i64 = 24 * 3_600_000;
const JUMPS: [i64; 4] = [DAY_MS, -DAY_MS, 400 * DAY_MS, -400 * DAY_MS];

/// The names of the files in the log's directory that end so.
fn count(world: &World, suffix: &str) -> usize {
    let entries = std::fs::read_dir(world.path("flights-0")).expect("a directory");
    entries.filter(|e| e.as_ref().expect("an entry").file_name().to_string_lossy().ends_with(suffix)).count()
}

#[test]
fn a_producer_is_known_after_a_jump() {
    for by_ms in JUMPS {
        let world = World::new();
        // Producers have clocks of their own.
        let config = LogConfig { retention_ms: -1, timestamp_after_max_ms: i64::MAX, ..small() };
        let log = world.create(&config);
        let make = |sequence| Make::values(&["x"]).by(1, 0, sequence);
        append(&log, make(0));
        world.clock.advance(1_000);
        world.clock.jump(by_ms);
        log.apply_retention().expect("done");
        assert!(append(&log, make(0)).is_duplicate, "{by_ms} ms: a retry is still told from a new batch");
        assert!(try_append(&log, make(2)).is_err(), "{by_ms} ms: and so is a gap");
        append(&log, make(1));
        // It expires when it has really been silent for so long, not a moment earlier or later.
        let silent_ms = LogConfig::default().producer_expiration_ms;
        world.clock.advance(silent_ms - 1);
        world.clock.jump(-by_ms);
        log.apply_retention().expect("done");
        assert!(append(&log, make(1)).is_duplicate, "{by_ms} ms");
        world.clock.advance(1);
        log.apply_retention().expect("done");
        assert!(!append(&log, make(1)).is_duplicate, "{by_ms} ms: forgotten");
    }
}

#[test]
fn the_active_segment_is_never_deleted_and_offsets_go_on() {
    for by_ms in JUMPS {
        for is_clean in [false, true] {
            let mut world = World::new();
            let config = LogConfig { retention_ms: DAY_MS / 2, ..small() };
            let manager = world.manager(&config);
            let log = manager.create(&partition("flights", 0), TOPIC_ID, config.clone()).expect("made");
            for n in 0..20 {
                append(&log, Make::values(&[&format!("{n}")]));
            }
            commit(&log);
            world.clock.jump(by_ms);
            log.apply_retention().expect("done");
            let expected_start = if by_ms > 0 { 20 } else { 0 };
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(expected_start), Offset(20)));
            assert_eq!(append(&log, Make::values(&["after"]).at(NOW_MS + by_ms)).first_offset, Offset(20));
            commit(&log);
            log.apply_retention().expect("done");
            assert_eq!(values(&log).last().map(String::as_str), Some("after"), "{by_ms} ms");
            // The clock is put right, and the machine starts again.
            world.clock.jump(-by_ms);
            match is_clean {
                true => manager.close().expect("closed"),
                false => manager.sync_all().expect("synced"),
            }
            drop((manager, log));
            world.crash(Crash::Dropped);
            let manager = world.manager(&config);
            let log = manager.log(&partition("flights", 0)).expect("there");
            log.apply_retention().expect("done");
            assert_eq!(log.log_end_offset(), Offset(21), "{by_ms} ms");
            assert_eq!(append(&log, Make::values(&["again"])).first_offset, Offset(21), "{by_ms} ms");
        }
    }
}

#[test]
fn what_was_deleted_is_removed_after_its_time_whatever_the_clock_shows() {
    for by_ms in JUMPS {
        let world = World::new();
        let config = LogConfig { segment_bytes: 1, file_delete_delay_ms: 500, ..small() };
        let manager = world.manager(&config);
        let log = manager.create(&partition("flights", 0), TOPIC_ID, config.clone()).expect("made");
        manager.create(&partition("gone", 0), TOPIC_ID, config.clone()).expect("made");
        for _ in 0..10 {
            append(&log, Make::values(&["x"]));
        }
        commit(&log);
        log.delete_records(Offset(8)).expect("deleted");
        manager.delete(&partition("gone", 0)).expect("deleted");
        let is_gone = || {
            let entries = std::fs::read_dir(world.path("")).expect("a directory");
            let mut names = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
            !names.any(|name| name.starts_with("gone-0"))
        };
        let upkeep = || {
            log.set_config(LogConfig { retention_ms: -1, ..config.clone() });
            log.apply_retention().expect("done");
            manager.remove_deleted();
        };
        world.clock.advance(499);
        world.clock.jump(by_ms);
        upkeep();
        assert_eq!((count(&world, ".log.deleted"), is_gone()), (8, false), "{by_ms} ms: not before its time");
        world.clock.advance(1);
        upkeep();
        assert_eq!(count(&world, ".deleted"), 0, "{by_ms} ms");
        world.clock.advance(60_000);
        upkeep();
        assert!(is_gone(), "{by_ms} ms");
    }
}

/// What `offset_for_time` gives for a time.
fn at(log: &Log, timestamp: i64) -> Option<i64> {
    log.offset_for_time(TimeQuery::At(timestamp)).expect("read").map(|found| found.offset.0)
}

#[test]
fn append_times_follow_the_clock_and_are_found() {
    for by_ms in JUMPS {
        let mut world = World::new();
        let config = LogConfig { timestamp_type: TimestampType::LogAppendTime, retention_ms: -1, ..small() };
        let log = world.create(&config);
        for _ in 0..8 {
            world.clock.advance(10);
            append(&log, Make::values(&["before"]));
        }
        world.clock.jump(by_ms);
        for _ in 0..8 {
            world.clock.advance(10);
            append(&log, Make::values(&["after"]));
        }
        commit(&log);
        let (first, last) = (NOW_MS + 10, NOW_MS + by_ms + 160);
        let check = |log: &Log| {
            let stamps: Vec<i64> =
                records(log, Offset(0), ReadBound::LogEnd).iter().map(|r| r.timestamp).collect();
            assert_eq!((stamps[0], stamps[15]), (first, last), "{by_ms} ms");
            // The first record of this time or a later one, wherever it stands.
            for asked in stamps.iter().flat_map(|&stamp| [stamp - 1, stamp, stamp + 1]) {
                let expected = stamps.iter().position(|&stamp| stamp >= asked).map(|at| at as i64);
                assert_eq!(at(log, asked), expected, "{by_ms} ms: {asked}");
            }
        };
        check(&log);
        log.close().expect("closed");
        drop(log);
        world.crash(Crash::Dropped);
        for is_clean in [true, false] {
            let standing = thalweg_storage::Standing { is_clean, ..synced_to(16) };
            check(&world.open(&config, standing));
        }
    }
}

#[test]
fn a_tombstone_that_is_kept_for_a_day_outlives_a_jump_back() {
    let world = World::new();
    let config = LogConfig {
        cleanup_policy: CleanupPolicy { delete: false, compact: true },
        delete_retention_ms: DAY_MS,
        segment_bytes: 1,
        ..small()
    };
    let log = world.create(&config);
    append(&log, Make::keyed(&[("a", Some("1"))]));
    append(&log, Make::keyed(&[("a", None)]));
    append(&log, Make::keyed(&[("b", Some("1"))]));
    append(&log, Make::keyed(&[("active", Some("1"))]));
    commit(&log);
    let keys = || {
        // The first round gives the tombstone its horizon, which stands in its batch.
        for _ in 0..2 {
            crate::cleaning::clean(&log);
        }
        let text =
            |bytes: Option<bytes::Bytes>| String::from_utf8(bytes.expect("a key").to_vec()).expect("text");
        records(&log, Offset(0), ReadBound::LogEnd)
            .into_iter()
            .map(|record| text(record.key))
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(), ["a", "b", "active"]);
    world.clock.jump(-2 * DAY_MS);
    assert_eq!(keys(), ["a", "b", "active"]);
    world.clock.jump(2 * DAY_MS);
    world.clock.advance(DAY_MS);
    assert_eq!(keys(), ["b", "active"]);
}
