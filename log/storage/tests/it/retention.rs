//! Deleting old segments and records.

use thalweg_protocol::Offset;
use thalweg_storage::testing::{Crash, OperationKind};
use thalweg_storage::{CleanupPolicy, Error, Log, LogConfig};

use crate::harness::{Make, NOW_MS, TOPIC_ID, World, append, commit, partition, small, values};

/// Ten batches a ms apart, one a segment.
fn ten(log: &Log) {
    for n in 0..10 {
        append(log, Make::values(&["a", "b"]).at(NOW_MS + n));
    }
}

fn one_a_segment() -> LogConfig {
    LogConfig { segment_bytes: 1, file_delete_delay_ms: 500, ..small() }
}

#[test]
fn old_segments_go_by_time() {
    let world = World::new();
    let log = world.create(&LogConfig { retention_ms: 1000, ..one_a_segment() });
    ten(&log);
    world.clock.advance(1004);
    assert_eq!(log.apply_retention().expect("done"), 0, "nothing is committed");
    commit(&log);
    assert_eq!(log.apply_retention().expect("done"), 4, "those of before {NOW_MS} + 4");
    assert_eq!((log.log_start_offset(), log.segment_count()), (Offset(8), 6));
    world.clock.advance(1000);
    // All are due: the active one is rolled first.
    assert_eq!(log.apply_retention().expect("done"), 6);
    assert_eq!(
        (log.log_start_offset(), log.log_end_offset(), log.segment_count()),
        (Offset(20), Offset(20), 1)
    );
    assert_eq!(append(&log, Make::values(&["x"])).first_offset, Offset(20));
    // A clock that jumps back deletes nothing.
    commit(&log);
    world.clock.jump(-1_000_000);
    assert_eq!(log.apply_retention().expect("done"), 0);
}

#[test]
fn old_segments_go_by_size() {
    let world = World::new();
    let log = world.create(&LogConfig { retention_ms: -1, ..one_a_segment() });
    ten(&log);
    commit(&log);
    let each = log.size_in_bytes() / 10;
    for (most, expected) in [(10 * each, 10), (10 * each - 1, 10), (9 * each, 9), (3 * each + 1, 4), (0, 1)] {
        log.set_config(LogConfig { retention_bytes: most as i64, retention_ms: -1, ..one_a_segment() });
        log.apply_retention().expect("done");
        assert_eq!(log.segment_count(), expected, "{most} of {each} each");
    }
    assert_eq!(log.log_start_offset(), Offset(20));
}

#[test]
fn a_compacted_log_loses_nothing_to_age() {
    let world = World::new();
    let cleanup_policy = CleanupPolicy { delete: false, compact: true };
    let log = world.create(&LogConfig { retention_ms: 0, cleanup_policy, ..one_a_segment() });
    ten(&log);
    commit(&log);
    world.clock.advance(1_000_000);
    assert_eq!(log.apply_retention().expect("done"), 0);
}

#[test]
fn deleted_records_stay_deleted() {
    let mut world = World::new();
    let manager = world.manager(&one_a_segment());
    let log = manager.create(&partition("flights", 0), TOPIC_ID, one_a_segment()).expect("made");
    ten(&log);
    commit(&log);
    append(&log, Make::values(&["not committed"]));
    let error = log.delete_records(Offset(21)).expect_err("past the high watermark");
    assert!(matches!(error, Error::OffsetOutOfRange { .. }), "{error}");
    assert_eq!(log.delete_records(Offset(7)).expect("deleted"), Offset(7));
    assert_eq!(log.delete_records(Offset(3)).expect("no more than that"), Offset(7));
    assert_eq!(log.segment_count(), 8, "6 and 7 are in one batch");
    assert_eq!(values(&log)[..2], ["b", "a"]);
    drop((manager, log));
    world.crash(Crash::Dropped);
    let manager = world.manager(&one_a_segment());
    let log = manager.log(&partition("flights", 0)).expect("there");
    assert_eq!(log.log_start_offset(), Offset(7));
    assert!(matches!(
        log.read(Offset(6), 100, thalweg_storage::ReadBound::LogEnd, true),
        Err(Error::OffsetOutOfRange { log_start: Offset(7), .. })
    ));
    assert_eq!(log.delete_records(Offset(20)).expect("everything"), Offset(20));
}

#[test]
fn files_are_renamed_first_and_removed_later() {
    let world = World::new();
    let log = world.create(&one_a_segment());
    ten(&log);
    commit(&log);
    log.delete_records(Offset(8)).expect("deleted");
    let count = |suffix: &str| {
        let entries = std::fs::read_dir(world.path("flights-0")).expect("a directory");
        entries
            .filter(|e| e.as_ref().expect("an entry").file_name().to_string_lossy().ends_with(suffix))
            .count()
    };
    assert_eq!((count(".log"), count(".log.deleted"), count(".index.deleted")), (6, 4, 4));
    assert_eq!(count(".snapshot"), 6, "those before the first segment go, too");
    log.apply_retention().expect("done");
    assert_eq!(count(".log.deleted"), 4);
    world.clock.advance(500);
    log.apply_retention().expect("done");
    assert_eq!((count(".deleted"), count(".log")), (0, 6));
}

#[test]
fn what_cannot_be_renamed_is_removed_all_the_same() {
    let mut renames = 0;
    for at in 0..12 {
        let world = World::new();
        let log = world.create(&one_a_segment());
        ten(&log);
        commit(&log);
        let begun = world.disk.performed().len();
        // A directory may have no room for a longer name.
        world.disk.fail_at(begun + at, libc::ENOSPC);
        let result = log.delete_records(Offset(8));
        if world.disk.performed()[begun + at].kind != OperationKind::Rename {
            continue;
        }
        renames += 1;
        result.expect("deleted");
        assert_eq!((log.log_start_offset(), log.segment_count()), (Offset(8), 6));
        world.clock.advance(500);
        log.apply_retention().expect("done");
        let entries = std::fs::read_dir(world.path("flights-0")).expect("a directory");
        let names = entries.map(|e| e.expect("an entry").file_name().into_string().expect("text"));
        let bases = names.filter_map(|name| name.split('.').next()?.parse::<u64>().ok());
        assert_eq!(bases.min(), Some(8), "{at}: nothing is left of the others");
    }
    assert!(renames > 4, "{renames}");
}
