//! The data directory: creating, deleting, closing, whose it is and who holds it.

use std::fs;
use std::sync::Arc;

use thalweg_protocol::{Offset, Uuid};
use thalweg_storage::testing::{Crash, OperationKind};
use thalweg_storage::{DataDirectory, Error, Identity, LogConfig, LogManager, ManagerConfig};

use crate::harness::{Make, TOPIC_ID, World, append, commit, partition, small, try_append, values};

const OURS: Identity = Identity { cluster_id: Uuid([1; 16]), node_uuid: Uuid([2; 16]) };

#[test]
fn logs_are_made_found_and_deleted() {
    let mut world = World::new();
    let manager = world.manager(&small());
    for n in [0, 1, 10] {
        let log = manager.create(&partition("a-b", n), TOPIC_ID, small()).expect("made");
        append(&log, Make::values(&[&format!("in {n}")]));
        commit(&log);
    }
    let again = manager.create(&partition("a-b", 1), TOPIC_ID, small()).expect_err("there");
    assert!(matches!(again, Error::LogExists { .. }), "{again}");
    let bad = manager.create(&partition("../a", 1), TOPIC_ID, small()).expect_err("no name");
    assert!(matches!(bad, Error::InvalidTopicName { .. }), "{bad}");
    let log = manager.log(&partition("a-b", 1)).expect("there");
    manager.delete(&partition("a-b", 1)).expect("deleted");
    assert!(manager.log(&partition("a-b", 1)).is_none());
    assert!(matches!(log.sync(), Err(Error::LogClosed { .. })));
    assert!(matches!(manager.delete(&partition("a-b", 1)), Err(Error::UnknownLog { .. })));
    // A new topic of the same name has nothing to do with the old one.
    let anew = manager.create(&partition("a-b", 1), Uuid([9; 16]), small()).expect("made anew");
    assert_eq!((anew.log_end_offset(), anew.topic_id()), (Offset(0), Uuid([9; 16])));
    drop((manager, log, anew));
    world.crash(Crash::Dropped);
    let manager = world.manager(&small());
    let found: Vec<String> = manager.logs().iter().map(|log| log.partition().to_string()).collect();
    assert_eq!(found, ["a-b-0", "a-b-1", "a-b-10"]);
    let log = manager.log(&partition("a-b", 1)).expect("there");
    assert_eq!((log.log_end_offset(), log.topic_id()), (Offset(0), Uuid([9; 16])));
    assert_eq!(values(&manager.log(&partition("a-b", 10)).expect("there")), ["in 10"]);
}

#[test]
fn batches_of_unknown_origin_are_not_overwritten() {
    let world = World::new();
    let manager = world.manager(&small());
    // Left by a creation that failed, and put there by somebody.
    fs::create_dir(world.path("a-0")).expect("made");
    fs::create_dir(world.path("b-0")).expect("made");
    fs::write(world.path("b-0/00000000000000000000.log"), b"batches").expect("written");
    let mut world = world;
    drop(manager);
    world.crash(Crash::Kept);
    let manager = world.manager(&small());
    fs::create_dir(world.path("c-0")).expect("made");
    fs::write(world.path("c-0/00000000000000000000.log"), b"batches").expect("written");
    manager.create(&partition("a", 0), TOPIC_ID, small()).expect("made");
    for topic in ["b", "c"] {
        let error = manager.create(&partition(topic, 0), TOPIC_ID, small()).expect_err("there");
        assert!(matches!(error, Error::LogExists { .. }), "{error}");
    }
    assert_eq!(fs::read(world.path("c-0/00000000000000000000.log")).expect("read"), b"batches");
}

#[test]
fn deleted_logs_are_removed_later() {
    let world = World::new();
    let manager = world.manager(&small());
    let (a, b) = (partition("a", 0), partition("b", 0));
    manager.create(&a, TOPIC_ID, LogConfig { file_delete_delay_ms: 60_000, ..small() }).expect("made");
    manager.create(&b, TOPIC_ID, LogConfig { file_delete_delay_ms: 500, ..small() }).expect("made");
    manager.delete_all(&[a, b]).expect("deleted");
    let directories = || {
        let entries = fs::read_dir(world.path("")).expect("a directory");
        entries.filter(|e| e.as_ref().expect("an entry").path().is_dir()).count()
    };
    for (after_ms, left) in [(0, 2), (499, 2), (1, 1), (59_499, 1), (1, 0)] {
        world.clock.advance(after_ms);
        manager.remove_deleted();
        assert_eq!(directories(), left);
    }
}

#[test]
fn a_full_disk_gets_the_space_of_deleted_logs_at_once() {
    let world = World::new();
    let manager = world.manager(&small());
    for topic in ["a", "b", "c"] {
        manager.create(&partition(topic, 0), TOPIC_ID, small()).expect("made");
    }
    let is_there = |topic: &str| {
        let entries = fs::read_dir(world.path("")).expect("a directory");
        let name = |e: Result<fs::DirEntry, _>| e.expect("an entry").file_name().into_string().expect("text");
        entries.map(name).any(|name| name.starts_with(topic) && name.ends_with("-delete"))
    };
    manager.delete(&partition("a", 0)).expect("deleted");
    world.disk.set_full(true);
    manager.remove_deleted();
    assert!(is_there("a"), "nobody has needed the space");
    try_append(&manager.log(&partition("b", 0)).expect("there"), Make::values(&["x"])).expect_err("full");
    manager.delete(&partition("b", 0)).expect("deleted");
    manager.remove_deleted();
    assert!(!is_there("a") && !is_there("b"));
    manager.delete(&partition("c", 0)).expect("deleted");
    manager.remove_deleted();
    assert!(is_there("c"), "the space has come back");
}

#[test]
fn a_full_disk_gets_the_space_of_deleted_segments_at_once() {
    let world = World::new();
    let manager = world.manager(&small());
    let config = LogConfig { segment_bytes: 1, file_delete_delay_ms: i64::MAX, ..small() };
    let log = manager.create(&partition("a", 0), TOPIC_ID, config).expect("made");
    for _ in 0..10 {
        append(&log, Make::values(&["x"]));
    }
    commit(&log);
    let count = |suffix: &str| {
        let entries = fs::read_dir(world.path("a-0")).expect("a directory");
        let name = |e: Result<fs::DirEntry, _>| e.expect("an entry").file_name().into_string().expect("text");
        entries.map(name).filter(|name| name.ends_with(suffix)).count()
    };
    log.delete_records(Offset(4)).expect("deleted");
    manager.remove_deleted();
    assert_eq!((count(".log"), count(".log.deleted")), (6, 4), "nobody has needed the space");
    world.disk.set_full(true);
    try_append(&log, Make::values(&["x"])).expect_err("full");
    // There is space kept for what has to be written down for that.
    assert_eq!(log.delete_records(Offset(6)).expect("deleted"), Offset(6));
    manager.remove_deleted();
    assert_eq!((count(".log"), count(".deleted")), (4, 0));
    // Not for any number of them: then the segments stay until there is room.
    let error = (0..).find_map(|_| log.delete_records(Offset(6)).err()).expect("full at last");
    assert!(matches!(error, Error::StorageFull { .. }), "{error}");
    log.delete_records(Offset(7)).expect_err("full");
    assert_eq!(count(".log"), 4);
    world.disk.set_full(false);
    manager.run_retention();
    assert_eq!((log.log_start_offset(), count(".log"), count(".log.deleted")), (Offset(7), 3, 0));
}

#[test]
fn a_log_that_cannot_be_deleted_without_descriptors_goes_on_and_is_deleted_later() {
    let world = World::new();
    let manager = world.manager(&small());
    let a = partition("a", 0);
    let log = manager.create(&a, TOPIC_ID, small()).expect("made");
    append(&log, Make::values(&["x"]));
    world.disk.set_out_of_descriptors(true);
    let error = manager.delete(&a).expect_err("nobody can tell which name is free");
    assert!(matches!(error, Error::TooManyOpenFiles { .. }), "{error}");
    world.disk.set_out_of_descriptors(false);
    append(&log, Make::values(&["y"]));
    manager.delete(&a).expect("deleted");
    assert!(manager.log(&a).is_none() && !world.path("a-0").exists());
}

#[test]
fn a_full_disk_is_closed_and_opened() {
    let mut world = World::new();
    let manager = world.manager(&small());
    for topic in ["a", "b"] {
        let log = manager.create(&partition(topic, 0), TOPIC_ID, small()).expect("made");
        append(&log, Make::values(&["x"]));
        commit(&log);
    }
    world.disk.set_full(true);
    manager.close().expect("nothing is lost");
    assert!(!world.path("clean-shutdown").exists() && !world.path("clean-shutdown.tmp").exists());
    drop(manager);
    world.crash(Crash::Dropped);
    world.disk.set_full(true);
    let manager = world.manager(&small());
    assert!(!world.path("synced-to.tmp").exists(), "the space is needed elsewhere");
    // What recovery would write cannot be written.
    let b = partition("b", 0);
    assert!(manager.offline_log(&b).expect("offline").error.is_retriable());
    assert!(manager.reopen(&b, small()).expect_err("still full").is_retriable());
    manager.delete(&partition("a", 0)).expect("deleting goes on");
    manager.remove_deleted();
    world.disk.set_full(false);
    assert_eq!(values(&manager.reopen(&b, small()).expect("room")), ["x"]);
    assert!(manager.offline_logs().is_empty());
    assert!(matches!(manager.reopen(&b, small()), Err(Error::UnknownLog { .. })));
    assert_eq!(values(&manager.log(&b).expect("there")), ["x"]);
}

/// Who a log belongs to is said twice: by a file in its directory, and by the checkpoint.
#[test]
fn one_damaged_file_does_not_give_a_log_to_another_topic() {
    let mut world = World::new();
    let manager = world.manager(&small());
    for topic in ["lost", "changed", "alone"] {
        let log = manager.create(&partition(topic, 0), TOPIC_ID, small()).expect("made");
        append(&log, Make::values(&["x"]));
        commit(&log);
    }
    manager.close().expect("closed");
    drop(manager);
    world.crash(Crash::Kept);
    let metadata = |world: &World, topic: &str| world.path(&format!("{topic}-0/partition.metadata"));
    fs::remove_file(metadata(&world, "lost")).expect("there");
    let other = Uuid([0xee; 16]);
    fs::write(metadata(&world, "changed"), format!("version: 0\ntopic_id: {other}\n")).expect("written");
    let manager = world.manager(&small());
    let lost = manager.log(&partition("lost", 0)).expect("the checkpoint knows whose it is");
    assert_eq!((lost.topic_id(), &*values(&lost)), (TOPIC_ID, &["x".to_owned()][..]));
    let changed = manager.offline_log(&partition("changed", 0)).expect("offline");
    assert_eq!(changed.topic_id, None, "nobody knows");
    assert!(changed.error.to_string().contains("names another topic"), "{}", changed.error);
    manager.close().expect("closed");
    drop((manager, lost));
    world.crash(Crash::Kept);
    // Without the checkpoint, too.
    fs::remove_file(world.path("synced-to")).expect("there");
    fs::remove_file(metadata(&world, "alone")).expect("there");
    let manager = world.manager(&small());
    let alone = manager.offline_log(&partition("alone", 0)).expect("offline");
    assert!(alone.error.to_string().contains("nothing else names the topic"), "{}", alone.error);
    assert!(world.path("alone-0").exists());
}

#[test]
fn a_log_that_vanished_is_told_and_not_begun_anew() {
    let mut world = World::new();
    let manager = world.manager(&small());
    for (topic, id) in [("a", TOPIC_ID), ("b", TOPIC_ID), ("empty", TOPIC_ID), ("emptied", TOPIC_ID)] {
        let log = manager.create(&partition(topic, 0), id, small()).expect("made");
        if topic != "empty" {
            append(&log, Make::values(&["x", "y"]));
            commit(&log);
        }
    }
    manager.sync_all().expect("synced");
    manager.close().expect("closed");
    drop(manager);
    world.crash(Crash::Kept);
    for topic in ["a", "empty", "emptied"] {
        fs::remove_dir_all(world.path(&format!("{topic}-0"))).expect("there");
    }
    fs::create_dir(world.path("emptied-0")).expect("made");
    // It is told for as long as it is so.
    for _ in 0..2 {
        let manager = world.manager(&small());
        for topic in ["a", "emptied"] {
            let offline = manager.offline_log(&partition(topic, 0)).expect("offline");
            assert_eq!(offline.topic_id, Some(TOPIC_ID));
            assert!(matches!(&*offline.error, Error::Vanished { end: Offset(2), .. }), "{}", offline.error);
            let error = manager.create(&partition(topic, 0), TOPIC_ID, small()).expect_err("not anew");
            assert!(matches!(error, Error::LogExists { .. }), "{error}");
            assert!(!world.path("a-0").exists());
        }
        assert_eq!(manager.offline_logs().len(), 2, "it had no records");
        assert_eq!(values(&manager.log(&partition("b", 0)).expect("there")), ["x", "y"]);
        manager.close().expect("closed");
        drop(manager);
        world.crash(Crash::Kept);
    }
    let manager = world.manager(&small());
    manager.create(&partition("empty", 0), TOPIC_ID, small()).expect("genuinely new");
    manager.create(&partition("new", 0), TOPIC_ID, small()).expect("genuinely new");
    manager.delete(&partition("a", 0)).expect("given up");
    manager.create(&partition("a", 0), Uuid([9; 16]), small()).expect("another topic");
    manager.sync_all().expect("synced");
    drop(manager);
    world.crash(Crash::Kept);
    let manager = world.manager(&small());
    assert_eq!(manager.log(&partition("a", 0)).expect("there").log_end_offset(), Offset(0));
}

#[test]
fn a_clean_stop_is_trusted_once() {
    let mut world = World::new();
    let manager = world.manager(&small());
    let log = manager.create(&partition("a", 0), TOPIC_ID, small()).expect("made");
    for n in 0..30 {
        append(&log, Make::values(&["x"]).by(1, 0, n));
    }
    manager.close().expect("closed");
    drop((manager, log));
    world.crash(Crash::Dropped);
    assert!(world.path("clean-shutdown").exists());
    let manager = world.manager(&small());
    assert!(!world.path("clean-shutdown").exists());
    let log = manager.log(&partition("a", 0)).expect("there");
    assert_eq!(log.log_end_offset(), Offset(30));
    let rebuilt = world.disk.performed().into_iter().filter(|o| o.path.starts_with("a-0")).count();
    assert_eq!(rebuilt, 0, "nothing was rebuilt");
    assert!(append(&log, Make::values(&["x"]).by(1, 0, 29)).is_duplicate);
    drop((manager, log));
    world.crash(Crash::Dropped);
    let manager = world.manager(&small());
    let rebuilt = world.disk.performed().into_iter().filter(|o| o.path.starts_with("a-0")).count();
    assert!(rebuilt > 0, "this time it was not closed");
    assert_eq!(manager.log(&partition("a", 0)).expect("there").log_end_offset(), Offset(30));
}

#[test]
fn a_corrupt_log_stays_offline_and_the_others_go_on() {
    let mut world = World::new();
    let manager = world.manager(&small());
    for topic in ["a", "b"] {
        let log = manager.create(&partition(topic, 0), TOPIC_ID, small()).expect("made");
        append(&log, Make::values(&["x"]));
    }
    manager.sync_all().expect("synced");
    drop(manager);
    world.crash(Crash::Dropped);
    let path = world.path("a-0/00000000000000000000.log");
    let mut bytes = fs::read(&path).expect("read");
    bytes[65] ^= 1;
    fs::write(&path, &bytes).expect("written");
    for _ in 0..2 {
        world.crash(Crash::Kept);
        let manager = world.manager(&small());
        let offline = manager.offline_logs();
        assert_eq!(offline.len(), 1);
        assert_eq!(offline[0].partition, partition("a", 0));
        assert!(
            offline[0].error.to_string().contains("a-0/00000000000000000000.log"),
            "{}",
            offline[0].error
        );
        assert_eq!(values(&manager.log(&partition("b", 0)).expect("there")), ["x"]);
        let error = manager.create(&partition("a", 0), TOPIC_ID, small()).expect_err("it is there");
        assert!(matches!(error, Error::LogExists { .. }), "{error}");
        // An orderly stop must not make the next start trust it.
        manager.close().expect("closed");
        assert!(!world.path("clean-shutdown").exists());
    }
    assert_eq!(fs::read(&path).expect("read"), bytes, "left as it is");
    world.crash(Crash::Kept);
    let manager = world.manager(&small());
    manager.delete(&partition("a", 0)).expect("deleted");
    manager.create(&partition("a", 0), TOPIC_ID, small()).expect("made anew");
}

#[test]
fn settings_come_from_outside() {
    let mut world = World::new();
    let manager = world.manager(&small());
    manager.create(&partition("a", 0), TOPIC_ID, small()).expect("made");
    manager.close().expect("closed");
    drop(manager);
    world.crash(Crash::Kept);
    let directory = DataDirectory::open(&world.path(""), OURS, None, world.environment()).expect("opened");
    let manager = LogManager::open(Arc::new(directory), ManagerConfig::default(), &|partition, topic_id| {
        assert_eq!((partition.to_string().as_str(), topic_id), ("a-0", Some(TOPIC_ID)));
        LogConfig { retention_ms: 77, ..small() }
    });
    assert_eq!(manager.expect("opened").logs()[0].config().retention_ms, 77);
}

#[test]
fn a_directory_is_held_by_one() {
    let world = World::new();
    let path = world.path("");
    let open = || DataDirectory::open(&path, OURS, None, world.environment());
    assert_eq!(DataDirectory::holder(&path).expect("read"), None);
    let held = open().expect("free");
    let holder = DataDirectory::holder(&path).expect("read").expect("held");
    assert_eq!((holder.pid, holder.address), (std::process::id(), None));
    held.announce("127.0.0.1:4242").expect("written");
    let holder = DataDirectory::holder(&path).expect("read").expect("held");
    assert_eq!(holder.address.as_deref(), Some("127.0.0.1:4242"));
    let error = open().expect_err("held");
    assert!(
        matches!(&error, Error::DirectoryHeld { pid, address, .. }
            if *pid == std::process::id() && address.as_deref() == Some("127.0.0.1:4242")),
        "{error}"
    );
    drop(held);
    assert_eq!(DataDirectory::holder(&path).expect("read"), None);
    let held = open().expect("free again");
    let holder = DataDirectory::holder(&path).expect("read").expect("held");
    assert_eq!(holder.address, None, "the address is not that of the one before");
    drop(held);
}

#[test]
fn a_directory_is_held_though_its_lock_file_is_removed() {
    let world = World::new();
    let path = world.path("");
    let open = || DataDirectory::open(&path, OURS, None, world.environment());
    let held = open().expect("free");
    held.announce("127.0.0.1:4242").expect("written");
    std::fs::remove_file(path.join("lock")).expect("it is there");
    let holder = DataDirectory::holder(&path).expect("read").expect("held");
    assert_eq!((holder.pid, holder.address), (0, None), "nothing says whose it is");
    // However often it is tried, and whatever is put in its place.
    for content in [None, Some(""), Some("pid: 4711\naddress: 127.0.0.1:1\n")] {
        if let Some(content) = content {
            std::fs::write(path.join("lock"), content).expect("it can be written");
        }
        let error = open().expect_err("held");
        assert!(matches!(&error, Error::DirectoryHeld { .. }), "{content:?}: {error}");
        let expected = match content {
            Some(content) if !content.is_empty() => "is in use by process 4711 at 127.0.0.1:1",
            _ => "is in use by another process",
        };
        assert!(error.to_string().ends_with(expected), "{content:?}: {error}");
        assert!(DataDirectory::holder(&path).expect("read").is_some());
    }
    drop(held);
    assert_eq!(DataDirectory::holder(&path).expect("read"), None);
    drop(open().expect("free again"));
}

#[test]
fn foreign_newer_and_nameless_directories_are_refused() {
    let world = World::new();
    let path = world.path("data/below");
    let open = |expected| DataDirectory::open(&path, OURS, expected, world.environment());
    let expected = Uuid([3; 16]);
    let identity = open(Some(expected)).expect("fresh").identity();
    assert_eq!(identity, Identity { cluster_id: expected, node_uuid: OURS.node_uuid });
    assert_eq!(open(None).expect("ours").identity(), identity);
    let error = open(Some(Uuid([4; 16]))).expect_err("foreign");
    assert!(matches!(error, Error::ForeignDirectory { found, .. } if found == expected), "{error}");
    let meta = path.join("meta");
    let text = fs::read_to_string(&meta).expect("read");
    fs::write(&meta, text.replace("format: 1", "format: 2")).expect("written");
    let error = open(None).expect_err("newer");
    assert!(matches!(error, Error::NewerFormat { found: 2, supported: 1, .. }), "{error}");
    for broken in ["", "format: 1\n", "nonsense", "format: 1\ncluster_id: x\nnode_uuid: y\n"] {
        fs::write(&meta, broken).expect("written");
        assert!(matches!(open(None).expect_err("broken"), Error::Corrupt { .. }), "{broken:?}");
    }
    fs::remove_file(&meta).expect("removed");
    fs::create_dir(path.join("a-0")).expect("made");
    assert!(matches!(open(None).expect_err("whose?"), Error::Corrupt { .. }));
    assert!(path.join("a-0").exists() && !meta.exists(), "nothing was changed");
    fs::remove_dir(path.join("a-0")).expect("removed");
    open(None).expect("what a first start left behind is taken over");
}

#[test]
fn what_is_somebody_elses_is_told_by_exact_names_and_contents() {
    let foreign =
        ["letter", "lock", "meta.tmp", "meta.properties", "metal-prices.csv", "synced-to", "clean-shutdown"];
    for name in foreign {
        let world = World::new();
        let path = world.path("");
        fs::write(path.join(name), "dear reader").expect("written");
        fs::create_dir(path.join("flights-0")).expect("made");
        let error = DataDirectory::open(&path, OURS, None, world.environment()).expect_err("not ours");
        assert!(matches!(&error, Error::NotADataDirectory { found, .. } if found == name), "{name}: {error}");
        assert_eq!(fs::read_dir(&path).expect("a directory").count(), 2, "{name}: nothing was left there");
        assert_eq!(fs::read(path.join(name)).expect("there"), b"dear reader");
    }
    for name in ["metadata", "metadata-of-mine", "lock"] {
        let world = World::new();
        fs::create_dir_all(world.path(name)).expect("made");
        let error =
            DataDirectory::open(&world.path(""), OURS, None, world.environment()).expect_err("not ours");
        assert!(matches!(&error, Error::NotADataDirectory { found, .. } if found == name), "{name}: {error}");
    }
}

#[test]
fn a_directory_of_ours_that_has_lost_its_name_is_called_so() {
    for is_clean in [false, true] {
        let mut world = World::new();
        let manager = world.manager(&small());
        if is_clean {
            manager.close().expect("closed");
        }
        drop(manager);
        world.crash(Crash::Kept);
        fs::create_dir(world.path("metadata")).expect("made");
        fs::remove_file(world.path("meta")).expect("there");
        let error = world.try_manager(&small()).expect_err("whose?");
        assert!(
            error.to_string().contains("meta is corrupt") && error.to_string().contains("restore"),
            "{error}"
        );
        assert!(!world.path("meta").exists());
    }
}

#[test]
fn a_newer_checkpoint_is_refused() {
    let mut world = World::new();
    drop(world.manager(&small()));
    let content = "thalweg synced-to 2";
    let line = format!("{:08x} {content}\n", crc32c::crc32c(content.as_bytes()));
    fs::write(world.path("synced-to"), line).expect("written");
    world.crash(Crash::Kept);
    let error = world.try_manager(&small()).expect_err("newer");
    assert!(matches!(error, Error::NewerFormat { found: 2, .. }), "{error}");
}

#[test]
fn the_checkpoint_is_shortened_when_it_has_grown() {
    let mut world = World::new();
    let manager = world.manager(&small());
    let log = manager.create(&partition("a", 0), TOPIC_ID, LogConfig::default()).expect("made");
    let config = LogConfig { retention_ms: -1, ..LogConfig::default() };
    log.set_config(config);
    let mut longest = 0;
    for _ in 0..4000 {
        append(&log, Make::values(&["x"]));
        manager.sync_all().expect("synced");
        longest = longest.max(fs::metadata(world.path("synced-to")).expect("there").len());
    }
    assert!(longest < 70_000, "{longest} bytes");
    let renamed = |o: &&thalweg_storage::testing::Performed| {
        o.kind == OperationKind::Rename && o.path.ends_with("synced-to")
    };
    assert!(world.disk.performed().iter().filter(renamed).count() >= 2, "it was written anew");
    drop((manager, log));
    world.crash(Crash::Dropped);
    let manager = world.manager(&small());
    assert_eq!(manager.logs()[0].log_end_offset(), Offset(4000));
}
