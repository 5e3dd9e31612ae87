//! Batches that are written with others, since whoever appended them waits until they are synced.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_protocol::Offset;
use thalweg_storage::testing::{Crash, ManualClock, OperationKind};
use thalweg_storage::{
    DiskFilesystem, Durability, Environment, Error, Log, LogConfig, LogManager, Standing, TimeQuery,
};

use crate::harness::{
    Make, NOW_MS, TOPIC_ID, World, append, partition, small, synced_to, try_append, values,
};

const FILE: &str = "flights-0/00000000000000000000.log";

/// A log in a directory with a journal, with one record that is synced.
fn begin(world: &World, config: LogConfig) -> (LogManager, Arc<Log>) {
    let manager = world.manager(&LogConfig::default());
    let log = manager.create(&partition("flights", 0), TOPIC_ID, config).expect("made");
    append(&log, Make::values(&["first"]));
    manager.sync_round().expect("synced");
    manager.keep_up_journal().expect("files are made");
    (manager, log)
}

fn waiting(value: &str) -> Make {
    Make::values(&[value]).awaiting()
}

/// How often its batches were written, and what the file has.
fn written(world: &World) -> (usize, u64) {
    let performed = world.disk.performed();
    let writes = performed.iter().filter(|o| o.kind == OperationKind::Write && o.path.ends_with(FILE));
    (writes.count(), std::fs::metadata(world.path(FILE)).expect("there").len())
}

#[test]
fn batches_are_synced_from_memory_and_written_at_once_for_the_first_reader() {
    let world = World::journaled();
    let (manager, log) = begin(&world, LogConfig::default());
    let before = written(&world);
    for n in 0..20 {
        append(&log, waiting(&format!("{n}")));
        if n % 3 == 0 {
            manager.sync_round().expect("synced");
            assert_eq!(log.synced_offset(), log.log_end_offset());
        }
    }
    assert_eq!(written(&world), before, "nothing of it is in the file");
    assert_eq!(values(&log).len(), 21);
    assert_eq!(written(&world), (before.0 + 1, log.size_in_bytes()));
}

#[test]
fn what_was_synced_survives_whatever_the_file_lacks() {
    for crash in [Crash::Kept, Crash::Dropped, Crash::Torn(1), Crash::Torn(2)] {
        let mut world = World::journaled();
        let (manager, log) = begin(&world, LogConfig::default());
        let mut expected = vec!["first".to_owned()];
        for n in 0..7 {
            append(&log, waiting(&format!("{n}")));
            expected.push(n.to_string());
            manager.sync_round().expect("synced");
            if n == 4 {
                // Some of it is in the file.
                assert_eq!(values(&log), expected);
            }
        }
        let len = written(&world).1;
        assert!(len < log.size_in_bytes());
        append(&log, waiting("nobody was told of this"));
        drop((manager, log));
        world.crash(crash);
        let manager = world.manager(&LogConfig::default());
        assert_eq!(values(&manager.log(&partition("flights", 0)).expect("there")), expected, "{crash:?}");
    }
}

#[test]
fn who_does_not_wait_finds_it_in_the_file() {
    // Also what others left in memory before it.
    for (config, make) in [
        (LogConfig::default(), Make::values(&["second"])),
        (LogConfig { durability: Durability::Relaxed, ..LogConfig::default() }, waiting("second")),
    ] {
        let mut world = World::new();
        let (manager, log) = begin(&world, config.clone());
        log.set_config(LogConfig::default());
        append(&log, waiting("left in memory"));
        log.set_config(config.clone());
        append(&log, make);
        assert_eq!(written(&world).1, log.size_in_bytes());
        drop((manager, log));
        world.crash(Crash::Kept);
        let log = world.manager(&config).log(&partition("flights", 0)).expect("there");
        assert_eq!(values(&log), ["first", "left in memory", "second"]);
    }
}

#[test]
fn a_full_disk_takes_nothing_back_that_waits_in_memory() {
    let mut world = World::journaled();
    let (manager, log) = begin(&world, LogConfig::default());
    let before = written(&world);
    append(&log, waiting("in memory"));
    manager.sync_round().expect("synced");
    assert_eq!(written(&world), before);
    world.disk.set_full(true);
    // Beyond what is reserved nothing is taken, and what is there stays as it is.
    let large = "x".repeat(400_000);
    let error = try_append(&log, waiting(&large)).expect_err("full");
    assert!(matches!(error, Error::StorageFull { .. }), "{error}");
    assert_eq!(values(&log), ["first", "in memory"]);
    let error = try_append(&log, waiting("not reserved any more")).expect_err("full");
    assert!(matches!(error, Error::StorageFull { .. }), "{error}");
    assert_eq!(written(&world).1, log.size_in_bytes());
    world.disk.set_full(false);
    append(&log, waiting("last"));
    manager.sync_round().expect("synced");
    drop((manager, log));
    world.crash(Crash::Kept);
    let log = world.manager(&LogConfig::default()).log(&partition("flights", 0)).expect("there");
    assert_eq!(values(&log), ["first", "in memory", "last"]);
}

#[test]
fn a_file_system_that_promises_no_space_gets_every_batch_at_once() {
    let world = World::journaled();
    let (_manager, log) = begin(&world, LogConfig::default());
    world.disk.promise_no_space();
    append(&log, waiting("second"));
    assert_eq!(written(&world).1, log.size_in_bytes());
}

#[test]
fn a_segment_that_ends_is_whole() {
    let mut world = World::journaled();
    let (manager, log) = begin(&world, small());
    let mut expected = vec!["first".to_owned()];
    while log.segment_count() < 3 {
        append(&log, waiting(&format!("{}", expected.len())));
        expected.push(expected.len().to_string());
    }
    manager.sync_round().expect("synced");
    let whole = |log: &Log| {
        let entries = std::fs::read_dir(log.directory()).expect("there").map(|e| e.expect("an entry"));
        let files = entries.filter(|e| e.path().extension() == Some("log".as_ref()));
        files.map(|e| e.metadata().expect("there").len()).sum::<u64>() == log.size_in_bytes()
    };
    append(&log, waiting("in memory"));
    expected.push("in memory".to_owned());
    assert!(!whole(&log));
    log.close().expect("closed");
    assert!(whole(&log));
    drop((manager, log));
    world.crash(Crash::Kept);
    assert_eq!(values(&world.open(&small(), synced_to(expected.len() as i64))), expected);
}

#[test]
fn what_is_cut_off_in_memory_does_not_come_back() {
    for crash in [Crash::Kept, Crash::Dropped] {
        let mut world = World::journaled();
        let (manager, log) = begin(&world, LogConfig::default());
        for value in ["kept", "cut", "cut, too"] {
            append(&log, waiting(value));
            manager.sync_round().expect("synced");
        }
        log.truncate_to(Offset(2)).expect("cut");
        append(&log, waiting("new"));
        manager.sync_round().expect("synced");
        assert_eq!(values(&log), ["first", "kept", "new"]);
        drop((manager, log));
        world.crash(crash);
        let log = world.manager(&LogConfig::default()).log(&partition("flights", 0)).expect("there");
        assert_eq!(values(&log), ["first", "kept", "new"], "{crash:?}");
    }
}

#[test]
fn memory_for_it_is_bounded() {
    let world = World::new();
    let manager = world.manager(&LogConfig::default());
    let logs: Vec<Arc<Log>> = (0..140)
        .map(|n| manager.create(&partition("flights", n), TOPIC_ID, LogConfig::default()).expect("made"))
        .collect();
    logs.iter().for_each(|log| {
        append(log, waiting("a"));
    });
    let in_file =
        |log: &Log| std::fs::metadata(log.directory().join("00000000000000000000.log")).expect("there").len();
    let in_memory = || logs.iter().filter(|log| in_file(log) == 0).count();
    assert_eq!(in_memory(), 128);
    for log in &logs[..10] {
        assert_eq!(log.sync().expect("synced"), Offset(1));
    }
    logs[130..].iter().for_each(|log| {
        append(log, waiting("b"));
        assert_eq!(values(log), ["a", "b"]);
    });
    assert_eq!(in_memory(), 118);
    // Deleted logs hold none.
    for log in &logs[20..30] {
        manager.delete(log.partition()).expect("deleted");
    }
    let mut logs = logs;
    logs.drain(20..30);
    let log = &logs[0];
    append(log, waiting("c"));
    assert!(in_file(log) < log.size_in_bytes());
}

#[test]
fn reserved_space_is_given_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let environment = Environment::new(Arc::new(DiskFilesystem), ManualClock::new(NOW_MS), path);
    let config = LogConfig { segment_bytes: 1 << 20, ..LogConfig::default() };
    let open = || {
        let (partition, config, standing) = (partition("flights", 0), config.clone(), Standing::default());
        Log::open(path, partition, TOPIC_ID, config, standing, &environment).expect("it opens")
    };
    let log = open();
    let value = "x".repeat(10_000);
    while log.segment_count() < 3 {
        append(&log, waiting(&value));
    }
    append(&log, waiting(&value));
    // Bytes that files take beyond their ends.
    let beyond = || -> u64 {
        let entries = std::fs::read_dir(path).expect("there").map(|entry| entry.expect("an entry"));
        let files = entries.filter(|entry| entry.path().extension() == Some("log".as_ref()));
        let files = files.map(|entry| entry.metadata().expect("there"));
        files.map(|file| (file.blocks() * 512).saturating_sub(file.len())).sum()
    };
    assert!((8 << 10..2 << 20).contains(&beyond()), "{} bytes are reserved", beyond());
    // As after a kill.
    drop(log);
    let log = open();
    assert!(beyond() < 3 * 4096, "{} bytes are still reserved", beyond());
    append(&log, waiting(&value));
    assert!(beyond() >= 8 << 10, "{} bytes are reserved", beyond());
    log.close().expect("closed");
    assert!(beyond() < 3 * 4096, "{} bytes are still reserved", beyond());
}

#[test]
fn who_looks_up_times_beside_appends_finds_the_file_whole() {
    let world = World::new();
    let log = world.create(&LogConfig::default());
    for n in 0..200 {
        append(&log, waiting(&format!("{n}")).at(NOW_MS + n));
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                append(&log, waiting("more").at(NOW_MS + 200));
            }
        });
        let wrong = (0..20_000).find_map(|n| {
            let end = log.set_high_watermark(log.log_end_offset());
            // Where the log begins within a segment the newest is looked for in the file.
            let deleted = if n % 20 == 0 { log.delete_records(Offset(end.0 - 10)) } else { Ok(end) };
            let found = deleted.and_then(|_| log.offset_for_time(TimeQuery::MaxTimestamp));
            (!matches!(found, Ok(Some(_)))).then_some(found)
        });
        is_done.store(true, Ordering::SeqCst);
        assert!(wrong.is_none(), "{wrong:?}");
    });
}
