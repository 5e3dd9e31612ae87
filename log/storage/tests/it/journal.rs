//! The journal of sync rounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thalweg_protocol::Offset;
use thalweg_storage::testing::{Crash, OperationKind};
use thalweg_storage::{Error, Log, LogConfig, LogManager};

use crate::harness::{Make, TOPIC_ID, World, append, partition, values};

const BLOCK: usize = 4096;

/// Logs in a directory with a journal, each with one record that is synced.
fn begin(world: &World, count: i32) -> (LogManager, Vec<Arc<Log>>) {
    let manager = world.manager(&LogConfig::default());
    let logs = (0..count).map(|n| {
        let log = manager.create(&partition("flights", n), TOPIC_ID, LogConfig::default()).expect("made");
        append(&log, Make::values(&["first"]));
        log
    });
    let logs = logs.collect();
    manager.sync_round().expect("synced");
    manager.keep_up_journal().expect("a file is made");
    (manager, logs)
}

/// A round with something of each log, and which syncs and writes it took.
fn round(world: &World, manager: &LogManager, logs: &[Arc<Log>], value: &str) -> (usize, usize) {
    let before = world.disk.performed().len();
    logs.iter().for_each(|log| {
        append(log, Make::values(&[value]));
    });
    manager.sync_round().expect("synced");
    logs.iter().for_each(|log| assert_eq!(log.synced_offset(), log.log_end_offset()));
    let performed = world.disk.performed().split_off(before);
    let count = |kind| performed.iter().filter(|operation| operation.kind == kind).count();
    (count(OperationKind::Sync), count(OperationKind::WriteThrough))
}

fn files(world: &World) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(world.path("journal")) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Flips a bit of the record with this number in a file, in its bytes.
fn damage(path: &Path, record: usize) {
    let mut bytes = std::fs::read(path).expect("there");
    let at = (2 + record) * BLOCK;
    assert!(bytes[at..].starts_with(b"TWJR"), "there is a record");
    bytes[at + 150] ^= 1;
    std::fs::write(path, bytes).expect("written");
}

fn all_values(manager: &LogManager) -> Vec<Vec<String>> {
    assert!(manager.offline_logs().is_empty(), "{:?}", manager.offline_logs());
    manager.logs().iter().map(|log| values(log)).collect()
}

#[test]
fn a_round_is_one_write() {
    let mut world = World::journaled();
    let (manager, logs) = begin(&world, 5);
    // The first one takes a file into use.
    assert_eq!(round(&world, &manager, &logs, "a"), (0, 3));
    assert_eq!(round(&world, &manager, &logs, "b"), (0, 1));
    // Also that of one alone.
    assert_eq!(round(&world, &manager, &logs[..1], "c"), (0, 1));
    drop((manager, logs));
    for crash in [Crash::Dropped, Crash::Kept, Crash::Dropped] {
        world.crash(crash);
        let manager = world.manager(&LogConfig::default());
        let mut found = all_values(&manager);
        assert_eq!(found.remove(0), ["first", "a", "b", "c"]);
        assert_eq!(found, vec![["first", "a", "b"]; 4]);
    }
}

#[test]
fn rounds_of_much_or_of_more_than_batches_go_without_it() {
    let world = World::journaled();
    let (manager, logs) = begin(&world, 3);
    let large = "x".repeat(200 << 10);
    assert_eq!(round(&world, &manager, &logs, &large), (3, 0));
    let epoch = thalweg_protocol::LeaderEpoch(9);
    for log in &logs[..2] {
        log.begin_leader_epoch(epoch).expect("a new leader");
    }
    let before = world.disk.performed().len();
    manager.sync_round().expect("synced");
    let performed = world.disk.performed().split_off(before);
    assert!(performed.iter().all(|operation| operation.kind != OperationKind::WriteThrough));
}

#[test]
fn when_no_file_is_free_each_log_is_synced() {
    let mut world = World::journaled();
    let (manager, logs) = begin(&world, 2);
    for n in 0..8 {
        assert_eq!(round(&world, &manager, &logs, "x").0, 0, "{n}");
    }
    assert_eq!(files(&world).len(), 2);
    assert_eq!(round(&world, &manager, &logs, "x"), (2, 0), "both files are full");
    // They are drained, and a third one is made, as one was missing.
    manager.keep_up_journal().expect("kept up");
    assert_eq!(files(&world).len(), 3);
    for n in 0..12 {
        assert_eq!(round(&world, &manager, &logs, "x").0, 0, "{n}");
    }
    assert_eq!(round(&world, &manager, &logs, "x"), (2, 0), "all files are full");
    drop(manager);
    world.crash(Crash::Dropped);
    let manager = world.manager(&LogConfig::default());
    for found in all_values(&manager) {
        assert_eq!((found.len(), &*found[22]), (23, "x"));
    }
    drop(logs);
}

#[test]
fn an_orderly_stop_leaves_nothing_to_replay() {
    let mut world = World::journaled();
    let (manager, logs) = begin(&world, 2);
    for value in ["a", "b", "c"] {
        round(&world, &manager, &logs, value);
    }
    manager.close().expect("closed");
    drop((manager, logs));
    // Whatever the journal says by now.
    damage(&files(&world)[0], 0);
    world.crash(Crash::Dropped);
    let manager = world.manager(&LogConfig::default());
    assert_eq!(all_values(&manager), vec![["first", "a", "b", "c"]; 2]);
    // Nor do its entries count when the next stop is not orderly.
    let logs = manager.logs();
    logs[0].truncate_to(Offset(1)).expect("truncated");
    append(&logs[0], Make::values(&["other"]));
    logs[0].sync().expect("synced");
    drop((manager, logs));
    world.crash(Crash::Dropped);
    assert_eq!(all_values(&world.manager(&LogConfig::default()))[0], ["first", "other"]);
}

#[test]
fn damage_before_later_records_is_told_and_a_torn_end_is_none() {
    for (record, is_damage) in [(0, true), (1, true), (2, false)] {
        let mut world = World::journaled();
        let (manager, logs) = begin(&world, 2);
        for value in ["a", "b", "c"] {
            round(&world, &manager, &logs, value);
        }
        drop((manager, logs));
        world.crash(Crash::Dropped);
        let path = &files(&world)[0];
        damage(path, record);
        let before = std::fs::read(path).expect("there");
        world.crash(Crash::Kept);
        match world.try_manager(&LogConfig::default()) {
            Ok(manager) => {
                assert!(!is_damage, "record {record}");
                assert_eq!(all_values(&manager), vec![["first", "a", "b"]; 2]);
            }
            Err(Error::Corrupt { path: named, position, .. }) => {
                assert!(is_damage, "record {record}");
                assert_eq!((&named, position), (path, ((2 + record) * BLOCK) as u64));
                assert_eq!(std::fs::read(path).expect("there"), before, "it is left as it is");
            }
            Err(other) => panic!("record {record}: {other}"),
        }
    }
}

#[test]
fn damage_in_a_file_before_a_later_one_is_told() {
    let mut world = World::journaled();
    let (manager, logs) = begin(&world, 2);
    for n in 0..9 {
        round(&world, &manager, &logs, "x");
        if n == 4 {
            manager.keep_up_journal().expect("kept up");
        }
    }
    drop((manager, logs));
    world.crash(Crash::Dropped);
    let first_round = |path: &PathBuf| std::fs::read(path).expect("there")[24..32].to_vec();
    let mut used = files(&world);
    used.sort_by_key(first_round);
    used.retain(|path| first_round(path) != [0; 8]);
    assert!(used.len() >= 2, "{used:?}");
    // The last record of the file before the last.
    damage(&used[used.len() - 2], 3);
    world.crash(Crash::Kept);
    let error = world.try_manager(&LogConfig::default()).expect_err("it is damaged");
    assert!(matches!(&error, Error::Corrupt { path, .. } if *path == used[used.len() - 2]), "{error}");
}

#[test]
fn one_damaged_header_does_no_harm_and_two_are_told() {
    for (damaged, is_told) in [(&[0][..], false), (&[BLOCK][..], false), (&[0, BLOCK][..], true)] {
        let mut world = World::journaled();
        let (manager, logs) = begin(&world, 2);
        round(&world, &manager, &logs, "a");
        drop((manager, logs));
        world.crash(Crash::Dropped);
        let path = &files(&world)[0];
        let mut bytes = std::fs::read(path).expect("there");
        damaged.iter().for_each(|at| bytes[at + 20] ^= 1);
        std::fs::write(path, bytes).expect("written");
        world.crash(Crash::Kept);
        match world.try_manager(&LogConfig::default()) {
            Ok(manager) => {
                assert!(!is_told);
                assert_eq!(all_values(&manager), vec![["first", "a"]; 2]);
            }
            Err(error) => assert!(is_told && matches!(error, Error::Corrupt { .. }), "{error}"),
        }
    }
}

#[test]
fn a_segment_that_lacks_what_comes_before_is_not_filled() {
    let mut world = World::journaled();
    let (manager, logs) = begin(&world, 2);
    manager.sync_all().expect("told");
    round(&world, &manager, &logs, "a");
    drop((manager, logs));
    world.crash(Crash::Dropped);
    let path = world.path("flights-0/00000000000000000000.log");
    std::fs::write(&path, b"").expect("emptied");
    world.crash(Crash::Kept);
    let manager = world.manager(&LogConfig::default());
    let offline = manager.offline_logs();
    assert_eq!((offline.len(), &offline[0].partition), (1, &partition("flights", 0)));
    assert_eq!(std::fs::read(&path).expect("there"), b"");
    assert_eq!(values(&manager.log(&partition("flights", 1)).expect("there")), ["first", "a"]);
}

#[test]
fn a_failing_write_takes_the_directory_offline() {
    let mut world = World::journaled();
    let (manager, logs) = begin(&world, 2);
    round(&world, &manager, &logs, "a");
    logs.iter().for_each(|log| {
        append(log, Make::values(&["b"]));
    });
    world.disk.fail_at(world.disk.performed().len(), libc::EIO);
    let error = manager.sync_round().expect_err("the disk fails");
    assert!(matches!(error, Error::DirectoryOffline { .. }), "{error}");
    logs.iter().for_each(|log| assert_eq!(log.synced_offset(), Offset(2)));
    assert!(matches!(manager.sync_round(), Err(Error::DirectoryOffline { .. })));
    drop((manager, logs));
    world.crash(Crash::Dropped);
    assert_eq!(all_values(&world.manager(&LogConfig::default())), vec![["first", "a"]; 2]);
}

#[test]
fn a_full_disk_leaves_the_present_way() {
    let mut world = World::journaled();
    let manager = world.manager(&LogConfig::default());
    let logs = [0, 1].map(|n| manager.create(&partition("flights", n), TOPIC_ID, LogConfig::default()));
    let logs = logs.map(|log| log.expect("made"));
    logs.iter().for_each(|log| {
        append(log, Make::values(&["first"]));
    });
    manager.sync_round().expect("synced");
    world.disk.set_full(true);
    manager.keep_up_journal().expect("without a file");
    assert_eq!(files(&world), Vec::<PathBuf>::new());
    world.disk.set_full(false);
    assert_eq!(round(&world, &manager, &logs, "a"), (2, 0));
    // So does a write that finds it full: there may be file systems that do not overwrite in place.
    drop((manager, logs));
    world.crash(Crash::Dropped);
    let manager = world.manager(&LogConfig::default());
    manager.keep_up_journal().expect("a file is made");
    let logs = manager.logs();
    round(&world, &manager, &logs, "b");
    logs.iter().for_each(|log| {
        append(log, Make::values(&["c"]));
    });
    world.disk.fail_at(world.disk.performed().len(), libc::ENOSPC);
    manager.sync_round().expect("synced one by one");
    assert_eq!(round(&world, &manager, &logs, "d"), (2, 0));
    drop((manager, logs));
    world.crash(Crash::Dropped);
    assert_eq!(all_values(&world.manager(&LogConfig::default())), vec![["first", "a", "b", "c", "d"]; 2]);
}

#[test]
fn what_a_full_disk_keeps_from_being_replayed_waits() {
    let mut world = World::journaled();
    let (manager, logs) = begin(&world, 2);
    round(&world, &manager, &logs, "a");
    drop((manager, logs));
    world.crash(Crash::Dropped);
    for _ in 0..2 {
        world.disk.set_full(true);
        let manager = world.manager(&LogConfig::default());
        let offline = manager.offline_logs();
        assert!(offline.len() == 2 && offline.iter().all(|log| log.error.is_retriable()), "{offline:?}");
        drop(manager);
        world.crash(Crash::Dropped);
    }
    world.disk.set_full(true);
    let manager = world.manager(&LogConfig::default());
    let reopen = |n| manager.reopen(&partition("flights", n), LogConfig::default());
    assert!(reopen(0).expect_err("still full").is_retriable());
    world.disk.set_full(false);
    assert_eq!(values(&reopen(0).expect("room")), ["first", "a"]);
    drop(manager);
    world.crash(Crash::Dropped);
    assert_eq!(all_values(&world.manager(&LogConfig::default())), vec![["first", "a"]; 2]);
}

#[test]
fn a_directory_without_a_journal_takes_over_one() {
    let mut world = World::journaled();
    let (manager, logs) = begin(&world, 2);
    round(&world, &manager, &logs, "a");
    drop((manager, logs));
    world.crash(Crash::Dropped);
    world.config.journal_files = 0;
    let manager = world.manager(&LogConfig::default());
    assert_eq!(all_values(&manager), vec![["first", "a"]; 2]);
    assert!(!world.path("journal").exists());
    drop(manager);
    // Its files are of another size now.
    world.config.journal_files = 2;
    world.crash(Crash::Dropped);
    let (manager, _) = (world.manager(&LogConfig::default()), ());
    manager.keep_up_journal().expect("made");
    round(&world, &manager, &manager.logs(), "b");
    drop(manager);
    world.crash(Crash::Dropped);
    world.config.journal_file_bytes = 8 * 4096;
    let manager = world.manager(&LogConfig::default());
    assert_eq!(all_values(&manager), vec![["first", "a", "b"]; 2]);
    manager.keep_up_journal().expect("made");
    round(&world, &manager, &manager.logs(), "c");
    let sizes: Vec<u64> =
        files(&world).iter().map(|path| std::fs::metadata(path).expect("there").len()).collect();
    assert!(sizes.iter().all(|&size| size == 8 * 4096), "{sizes:?}");
    drop(manager);
    world.crash(Crash::Dropped);
    assert_eq!(all_values(&world.manager(&LogConfig::default())), vec![["first", "a", "b", "c"]; 2]);
}

#[test]
fn a_lost_line_of_the_checkpoint_does_not_bring_anything_back() {
    let mut world = World::journaled();
    let (manager, logs) = begin(&world, 2);
    round(&world, &manager, &logs, "a");
    drop((manager, logs));
    world.crash(Crash::Dropped);
    let path = world.path("synced-to");
    let text = std::fs::read_to_string(&path).expect("there");
    let others: String =
        text.lines().filter(|line| !line.contains("flights 0")).map(|l| l.to_owned() + "\n").collect();
    std::fs::write(&path, others).expect("written");
    world.crash(Crash::Kept);
    let manager = world.manager(&LogConfig::default());
    let offline = manager.offline_logs();
    assert_eq!((offline.len(), &offline[0].partition), (1, &partition("flights", 0)));
    assert!(matches!(&*offline[0].error, Error::Corrupt { path: named, .. } if *named == path));
    assert_eq!(values(&manager.log(&partition("flights", 1)).expect("there")), ["first", "a"]);
}

#[test]
fn the_threads_write_the_journal_and_keep_every_answer() {
    const PATIENCE: Duration = Duration::from_secs(120);
    let mut world = World::new();
    world.config.journal_files = 3;
    world.config.journal_file_bytes = 64 * 4096;
    let manager = world.manager(&LogConfig::default());
    let logs: Vec<Arc<Log>> = (0..20)
        .map(|n| manager.create(&partition("flights", n), TOPIC_ID, LogConfig::default()).expect("made"))
        .collect();
    // On a machine that is busy with other things rounds may be too slow for files to pay.
    manager.keep_up_journal().expect("files are made");
    let (sender, answers) = channel();
    let sender = Mutex::new(sender);
    manager.start_sync_rounds(
        2,
        Arc::new(move |log, result| {
            let _ = sender.lock().send((log.partition().clone(), result.map_err(|error| error.to_string())));
        }),
    );
    let begun = Instant::now();
    let mut rounds = 0;
    let written = || {
        let performed = world.disk.performed();
        performed.iter().filter(|operation| operation.kind == OperationKind::WriteThrough).count()
    };
    // Long enough to use files again.
    while written() < 400 {
        assert!(begun.elapsed() < PATIENCE, "{} writes in {rounds} rounds", written());
        rounds += 1;
        for log in &logs {
            append(log, Make::values(&[&format!("{rounds}")]));
        }
        while logs.iter().any(|log| log.synced_offset() < log.log_end_offset()) {
            let (_, answer) = answers.recv_timeout(PATIENCE).expect("an answer");
            answer.expect("synced");
        }
    }
    let held = Arc::downgrade(&logs[0]);
    drop((manager, logs));
    assert!(held.upgrade().is_none(), "the logs are not let go");
    world.crash(Crash::Dropped);
    let manager = world.manager(&LogConfig::default());
    let expected: Vec<String> = (1..=rounds).map(|n: i32| n.to_string()).collect();
    for found in all_values(&manager) {
        assert_eq!(found, expected);
    }
}

#[test]
fn who_appends_carries_out_the_round_where_the_disk_is_swift() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let mut world = World::new();
    world.config.journal_files = 3;
    let manager = world.manager(&LogConfig::default());
    let logs: Vec<Arc<Log>> = (0..3)
        .map(|n| manager.create(&partition("flights", n), TOPIC_ID, LogConfig::default()).expect("made"))
        .collect();
    manager.keep_up_journal().expect("files are made");
    let (me, here) = (std::thread::current().id(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&here);
    manager.start_sync_rounds(
        2,
        Arc::new(move |_log, result| {
            result.expect("synced");
            counted.fetch_add(usize::from(std::thread::current().id() == me), Ordering::SeqCst);
        }),
    );
    let begun = Instant::now();
    let mut rounds = 0;
    // Swiftness shows only after some rounds, and on a busy machine later.
    while here.load(Ordering::SeqCst) < 60 {
        assert!(begun.elapsed() < PATIENCE, "{here:?} in {rounds} rounds");
        rounds += 1;
        let hold = manager.hold_round();
        for log in &logs {
            append(log, Make::values(&[&format!("{rounds}")]));
        }
        drop(hold);
        while logs.iter().any(|log| log.synced_offset() < log.log_end_offset()) {
            assert!(begun.elapsed() < PATIENCE, "a round is lost");
            std::thread::yield_now();
        }
    }
    drop((manager, logs));
    world.crash(Crash::Dropped);
    let manager = world.manager(&LogConfig::default());
    let expected: Vec<String> = (1..=rounds).map(|n: i32| n.to_string()).collect();
    for found in all_values(&manager) {
        assert_eq!(found, expected);
    }
}
