//! Full disks, exhausted descriptors, disks that fail.

use thalweg_protocol::Offset;
use thalweg_storage::testing::{Crash, OperationKind};
use thalweg_storage::{Error, Operation, ReadBound, Standing};

use crate::harness::{Make, World, append, commit, records, small, synced_to, try_append, values};

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
