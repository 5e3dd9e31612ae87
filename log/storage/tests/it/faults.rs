//! Full disks, exhausted descriptors, disks that fail.

use thalweg_protocol::Offset;
use thalweg_storage::testing::{Crash, OperationKind};
use thalweg_storage::{Error, LogConfig, Operation, ReadBound, Standing, TimeQuery};

use crate::harness::{
    Make, NOW_MS, TOPIC_ID, World, append, commit, partition, records, small, synced_to, try_append, values,
};

#[test]
fn a_full_disk_refuses_and_nothing_is_lost() {
    let mut world = World::new();
    let log = world.create(&small());
    let mut expected = Vec::new();
    for n in 0..40 {
        // Full in front of every append, also of those that roll.
        world.disk.set_full(true);
        let make = Make::values(&[&format!("{n}")]).by(1, 0, n);
        let before = (log.size_in_bytes(), log.log_end_offset(), log.segment_count());
        let error = try_append(&log, make.clone()).expect_err("full");
        assert!(matches!(error, Error::StorageFull { .. }) && error.is_retriable(), "{error}");
        assert_eq!((log.size_in_bytes(), log.log_end_offset(), log.segment_count()), before);
        assert_eq!(values(&log), expected, "reading goes on");
        world.disk.set_full(false);
        assert!(!append(&log, make).is_duplicate);
        expected.push(n.to_string());
    }
    commit(&log);
    // Deleting makes room, so it must work on a full disk.
    world.disk.set_full(true);
    log.delete_records(Offset(20)).expect("deleted");
    world.disk.set_full(false);
    drop(log);
    world.crash(Crash::Dropped);
    let log = world.open(&small(), Standing { log_start: Offset(20), ..synced_to(40) });
    assert_eq!(records(&log, Offset(20), ReadBound::LogEnd).len(), 20);
}

#[test]
fn a_sync_that_finds_the_disk_full_is_made_up_for() {
    let mut world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["a"]));
    // The file of the epochs cannot be written.
    world.disk.set_full(true);
    let error = log.sync().expect_err("full");
    assert!(error.is_retriable(), "{error}");
    assert_eq!(log.synced_offset(), Offset(0));
    world.disk.set_full(false);
    append(&log, Make::values(&["b"]));
    assert_eq!(log.sync().expect("now"), Offset(2));
    drop(log);
    world.crash(Crash::Dropped);
    assert_eq!(values(&world.open(&small(), synced_to(2))), ["a", "b"]);
}

#[test]
fn exhausted_descriptors_refuse_and_pass() {
    let world = World::new();
    let log = world.create(&small());
    let mut refused = 0;
    for n in 0..40 {
        world.disk.set_out_of_descriptors(true);
        let make = Make::values(&["x"]).by(1, 0, n);
        match try_append(&log, make.clone()) {
            Ok(_) => {}
            Err(error) => {
                assert!(matches!(error, Error::TooManyOpenFiles { .. }), "{error}");
                refused += 1;
                world.disk.set_out_of_descriptors(false);
                append(&log, make);
            }
        }
    }
    assert!(refused > 3, "every roll needs descriptors");
    world.disk.set_out_of_descriptors(false);
    commit(&log);
    assert_eq!(values(&log).len(), 40);
}

#[test]
fn segments_that_cannot_be_deleted_without_descriptors_are_deleted_later() {
    let world = World::new();
    let config = LogConfig { segment_bytes: 1, retention_ms: 1_000, file_delete_delay_ms: 0, ..small() };
    let log = world.create(&config);
    for n in 0..10 {
        append(&log, Make::values(&["x"]).at(NOW_MS + n));
    }
    commit(&log);
    world.clock.advance(1_004);
    world.disk.set_out_of_descriptors(true);
    let error = log.apply_retention().expect_err("the directory cannot be listed");
    assert!(matches!(error, Error::TooManyOpenFiles { .. }), "{error}");
    world.disk.set_out_of_descriptors(false);
    assert_eq!(log.apply_retention().expect("now"), 4);
    let entries = std::fs::read_dir(world.path("flights-0")).expect("there");
    let names = entries.map(|entry| entry.expect("there").file_name().into_string().expect("UTF-8"));
    let mut logs: Vec<String> = names.filter(|name| name.contains(".log")).collect();
    logs.sort();
    let expected: Vec<String> = (4..10).map(|base| format!("{base:020}.log")).collect();
    assert_eq!(logs, expected, "nothing of the others is left");
}

#[test]
fn without_descriptors_old_segments_cannot_be_read_for_the_moment() {
    let mut world = World::new();
    let log = world.create(&small());
    for n in 0..40 {
        append(&log, Make::values(&[&format!("{n}")]));
    }
    log.close().expect("closed");
    drop(log);
    world.crash(Crash::Dropped);
    let log = world.open(&small(), Standing { is_clean: true, ..synced_to(40) });
    commit(&log);
    for _ in 0..2 {
        log.apply_retention().expect("files that are idle from one time to the next are closed");
    }
    world.disk.set_out_of_descriptors(true);
    let error = log.read(Offset(0), 100, ReadBound::LogEnd, true).expect_err("its file is not open");
    assert!(matches!(error, Error::TooManyOpenFiles { .. }) && error.is_retriable(), "{error}");
    let error = log.offset_for_time(TimeQuery::At(NOW_MS)).expect_err("nor is its index");
    assert!(matches!(error, Error::TooManyOpenFiles { .. }), "{error}");
    world.disk.set_out_of_descriptors(false);
    assert_eq!(values(&log).len(), 40, "the log goes on");
    append(&log, Make::values(&["40"]));
    commit(&log);
    assert_eq!(values(&log).len(), 41);
}

#[test]
fn a_failed_sync_takes_the_directory_offline_and_is_not_tried_again() {
    let mut world = World::new();
    let environment = world.environment();
    let log = world.create(&small());
    append(&log, Make::values(&["a"]));
    commit(&log);
    append(&log, Make::values(&["b"]));
    world.disk.fail_at(world.disk.performed().len(), libc::EIO);
    let error = log.sync().expect_err("the disk fails");
    assert!(
        matches!(error, Error::Io { operation: Operation::Sync, .. }) && !error.is_retriable(),
        "{error}"
    );
    let syncs =
        |world: &World| world.disk.performed().iter().filter(|o| o.kind == OperationKind::Sync).count();
    let before = syncs(&world);
    for error in [
        log.sync().expect_err("offline"),
        try_append(&log, Make::values(&["c"])).expect_err("offline"),
        log.read(Offset(0), 100, ReadBound::LogEnd, true).expect_err("offline"),
        log.delete_records(Offset(1)).expect_err("offline"),
        log.truncate_to(Offset(0)).expect_err("offline"),
    ] {
        assert!(matches!(error, Error::DirectoryOffline { .. }), "{error}");
    }
    assert_eq!((log.synced_offset(), syncs(&world)), (Offset(1), before));
    assert!(environment.health.failure().is_none(), "another environment is another directory");
    drop(log);
    world.crash(Crash::Dropped);
    assert_eq!(values(&world.open(&small(), synced_to(1))), ["a"]);
}

#[test]
fn a_failed_write_takes_the_directory_offline() {
    let mut world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["a"]));
    commit(&log);
    world.disk.fail_at(world.disk.performed().len(), libc::EIO);
    let error = try_append(&log, Make::values(&["b"])).expect_err("the disk fails");
    assert!(matches!(error, Error::Io { operation: Operation::Write, .. }), "{error}");
    assert!(matches!(try_append(&log, Make::values(&["b"])), Err(Error::DirectoryOffline { .. })));
    drop(log);
    // Half of the batch is there.
    world.crash(Crash::Kept);
    let log = world.open(&small(), synced_to(1));
    assert_eq!(values(&log), ["a"]);
    append(&log, Make::values(&["b"]));
    assert_eq!(values(&log), ["a", "b"]);
}

#[test]
fn a_failed_read_takes_the_directory_offline_and_takes_nothing_back() {
    let mut world = World::new();
    let log = world.create(&small());
    for n in 0..40 {
        append(&log, Make::values(&[&format!("{n}")]).at(NOW_MS + n));
    }
    log.close().expect("closed");
    drop(log);
    // Whoever reads first, a read or a look-up.
    for query in [None, Some(TimeQuery::At(NOW_MS + 7))] {
        world.crash(Crash::Kept);
        let log = world.open(&small(), Standing { is_clean: true, ..synced_to(40) });
        world.disk.set_unreadable(true);
        let error = match query {
            None => log.read(Offset(0), 100, ReadBound::LogEnd, true).map(|_| ()),
            Some(query) => log.offset_for_time(query).map(|_| ()),
        };
        let error = error.expect_err("the disk cannot");
        assert!(matches!(error, Error::Io { operation: Operation::Read, .. }), "{error}");
        assert!(!error.is_retriable(), "{error}");
        world.disk.set_unreadable(false);
        let error = try_append(&log, Make::values(&["x"])).expect_err("offline");
        assert!(
            matches!(&error, Error::DirectoryOffline { reason, .. } if reason.contains("flights-0")),
            "{error}"
        );
    }
    world.crash(Crash::Kept);
    let log = world.open(&small(), synced_to(40));
    assert_eq!(values(&log).len(), 40);
    append(&log, Make::values(&["40"]));
}

#[test]
fn a_log_that_cannot_be_read_is_neither_empty_nor_cut() {
    let mut world = World::new();
    let manager = world.manager(&small());
    let log = manager.create(&partition("flights", 0), TOPIC_ID, small()).expect("made");
    for n in 0..40 {
        append(&log, Make::values(&[&format!("{n}")]));
    }
    manager.sync_all().expect("synced");
    drop((manager, log));
    world.crash(Crash::Kept);
    world.disk.set_unreadable(true);
    let error = world.try_manager(&small()).expect_err("the disk cannot");
    assert!(matches!(error, Error::Io { operation: Operation::Read, .. }), "{error}");
    assert!(world.disk.performed().is_empty(), "{:?}", world.disk.performed());
    world.crash(Crash::Kept);
    let manager = world.manager(&small());
    assert_eq!(values(&manager.log(&partition("flights", 0)).expect("there")).len(), 40);
}

#[test]
fn a_directory_whose_sync_fails_is_offline_whatever_the_reason() {
    for errno in [libc::EIO, libc::ENOSPC, libc::EDQUOT] {
        let mut world = World::new();
        let log = world.create(&small());
        append(&log, Make::values(&["a"]));
        // Before it the batches are synced, and the file of the epochs is made, written, synced and renamed.
        let at = world.disk.performed().len() + 5;
        world.disk.fail_at(at, errno);
        let error = log.sync().expect_err("the disk fails");
        assert_eq!(world.disk.performed()[at].kind, OperationKind::SyncDirectory);
        assert!(matches!(error, Error::Io { operation: Operation::Sync, .. }), "{error}");
        assert!(!error.is_retriable(), "{error}");
        assert!(matches!(log.sync(), Err(Error::DirectoryOffline { .. })));
        assert_eq!(log.synced_offset(), Offset(0));
        drop(log);
        world.crash(Crash::Dropped);
        assert_eq!(values(&world.open(&small(), synced_to(0))), ["a"]);
    }
}
