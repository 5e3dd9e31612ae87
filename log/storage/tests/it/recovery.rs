//! Opening a log that was not closed, or was damaged.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use thalweg_protocol::Offset;
use thalweg_storage::testing::Crash;
use thalweg_storage::{Corruption, Error, LogConfig, ReadBound, Standing, TimeQuery, TransactionResult};

use crate::harness::{
    Make, NOW_MS, World, append, commit, marker, partition, records, small, synced_to, try_append, values,
};

/// A log of 60 records, two a batch, in several segments, all synced.
fn sixty() -> World {
    let world = World::new();
    let log = world.create(&small());
    for n in 0..30 {
        append(
            &log,
            Make::values(&[&format!("{}", 2 * n), &format!("{}", 2 * n + 1)]).at(NOW_MS + n).by(
                1,
                0,
                2 * n as i32,
            ),
        );
    }
    commit(&log);
    assert!(log.segment_count() > 3);
    world
}

fn files(world: &World, suffix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(world.path("flights-0"))
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect();
    found.sort();
    found
}

fn damage(path: &PathBuf, position: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).expect("the file");
    file.write_all_at(bytes, position).expect("written");
}

fn numbers(range: std::ops::Range<i64>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

/// Restarts the machine, so that what the test did to the files counts as what the disk has.
fn restart(world: &mut World) {
    world.crash(Crash::Kept);
}

#[test]
fn a_torn_tail_is_cut_at_the_first_bad_batch() {
    // What happens to the last segment's bytes from the last batch on.
    type Damage = fn(&PathBuf, u64, u64);
    let cases: [(&str, Damage); 6] = [
        ("cut in the records", |path, _, end| cut(path, end - 3)),
        ("cut in the header", |path, start, _| cut(path, start + 30)),
        ("cut after a byte", |path, start, _| cut(path, start + 1)),
        ("zeroed", |path, start, end| damage(path, start, &vec![0; (end - start) as usize])),
        ("a bit flipped", |path, start, _| damage(path, start + 70, &[0xff])),
        ("zeros follow the cut", |path, start, end| {
            cut(path, start);
            cut(path, end + 4096);
        }),
    ];
    for (case, damage) in cases {
        let mut world = sixty();
        let last = files(&world, ".log").pop().expect("a segment");
        let (start, end) = last_batch(&last);
        damage(&last, start, end);
        restart(&mut world);
        // The last batch was above what the checkpoint knew.
        let log = world.open(&small(), synced_to(58));
        assert_eq!(log.log_end_offset(), Offset(58), "{case}");
        assert_eq!(values(&log), numbers(0..58), "{case}");
        assert_eq!(fs::metadata(&last).expect("there").len(), start, "{case}");
        assert_eq!(log.synced_offset(), Offset(58), "{case}");
        let info = append(&log, Make::values(&["58", "59"]).by(1, 0, 58));
        assert_eq!(info.first_offset, Offset(58), "{case}: sequence and offset go on");
        assert_eq!(values(&log), numbers(0..60), "{case}");
    }
}

fn cut(path: &PathBuf, len: u64) {
    File::options().write(true).open(path).expect("the file").set_len(len).expect("cut");
}

/// Where the last batch of a segment begins and ends.
fn last_batch(path: &PathBuf) -> (u64, u64) {
    let bytes = fs::read(path).expect("the file");
    let mut start = 0;
    loop {
        let length = i32::from_be_bytes(bytes[start + 8..start + 12].try_into().expect("four bytes"));
        let end = start + 12 + length as usize;
        if end == bytes.len() {
            return (start as u64, end as u64);
        }
        start = end;
    }
}

#[test]
fn damage_below_the_synced_offset_is_corruption_and_changes_nothing() {
    type Damage = fn(&PathBuf);
    let cases: [(&str, Damage); 4] = [
        ("a bit flipped", |path| damage(path, 65, &[0xff])),
        ("a zeroed region", |path| damage(path, 0, &[0; 300])),
        ("a zeroed end", |path| {
            let (start, end) = last_batch(path);
            damage(path, start, &vec![0; (end - start) as usize]);
        }),
        ("the end is gone", |path| {
            let (start, _) = last_batch(path);
            cut(path, start);
        }),
    ];
    for (case, damage) in cases {
        let mut world = sixty();
        let last = files(&world, ".log").pop().expect("a segment");
        damage(&last);
        restart(&mut world);
        let before: Vec<_> =
            files(&world, "").iter().map(|path| (path.clone(), fs::read(path).expect("read"))).collect();
        let error = world.try_open(&small(), synced_to(60)).expect_err(case);
        match &error {
            Error::Corrupt { path, .. } => assert_eq!(path, &last, "{case}"),
            other => panic!("{case}: {other}"),
        }
        let after: Vec<_> =
            files(&world, "").iter().map(|path| (path.clone(), fs::read(path).expect("read"))).collect();
        assert!(before == after, "{case}: files were changed");
        assert!(world.disk.performed().is_empty(), "{case}: {:?}", world.disk.performed());
    }
}

#[test]
fn damage_in_an_older_segment_is_found_when_it_is_above_the_synced_offset() {
    let mut world = sixty();
    let second = files(&world, ".log").remove(1);
    let base: i64 =
        second.file_stem().and_then(|stem| stem.to_str()).expect("a name").parse().expect("an offset");
    damage(&second, 65, &[0xff]);
    restart(&mut world);
    let log = world.open(&small(), synced_to(base));
    assert_eq!(log.log_end_offset(), Offset(base), "the segments behind the torn one are gone, too");
    assert_eq!(values(&log), numbers(0..base));
    assert_eq!(files(&world, ".log").len(), 2);
    assert_eq!(append(&log, Make::values(&["x"]).by(1, 0, base as i32)).first_offset, Offset(base));
}

#[test]
fn without_a_checkpoint_only_the_last_segment_may_be_torn() {
    let mut world = sixty();
    let logs = files(&world, ".log");
    damage(&logs[logs.len() - 1], 65, &[0xff]);
    restart(&mut world);
    let log = world.open(&small(), Standing::default());
    assert!(log.log_end_offset() < Offset(60) && log.log_end_offset() > Offset(0));

    let mut world = sixty();
    let first = files(&world, ".log").remove(0);
    let (start, _) = last_batch(&first);
    damage(&first, start + 65, &[0xff]);
    fs::remove_file(first.with_extension("index")).expect("removed");
    restart(&mut world);
    let error = world.try_open(&small(), Standing::default()).expect_err("the first segment was rolled");
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn missing_segments_are_noticed() {
    for (which, expected_at) in [(0, 0), (1, 1)] {
        let mut world = sixty();
        let gone = files(&world, ".log").remove(which);
        let found = files(&world, ".log").remove(which + 1);
        fs::remove_file(gone).expect("removed");
        restart(&mut world);
        for is_clean in [false, true] {
            let error = world.try_open(&small(), Standing { is_clean, ..synced_to(60) }).expect_err("a gap");
            let Error::Corrupt { path, corruption: Corruption::Gap { .. }, .. } = &error else {
                panic!("{error}")
            };
            let named = if expected_at == 0 { &found } else { &files(&world, ".log")[0] };
            assert_eq!(path, named);
        }
    }
    let mut world = sixty();
    let last = files(&world, ".log").pop().expect("a segment");
    fs::remove_file(last).expect("removed");
    restart(&mut world);
    let error = world.try_open(&small(), synced_to(60)).expect_err("the end is gone");
    assert!(matches!(error, Error::Corrupt { corruption: Corruption::EndsEarly { .. }, .. }), "{error}");
    for path in files(&world, ".log") {
        fs::remove_file(path).expect("removed");
    }
    restart(&mut world);
    let error = world.try_open(&small(), synced_to(60)).expect_err("everything is gone");
    assert!(matches!(error, Error::Corrupt { corruption: Corruption::EndsEarly { .. }, .. }), "{error}");
}

#[test]
fn missing_and_damaged_indexes_are_rebuilt() {
    type Damage = fn(&PathBuf);
    let damages: [(&str, Damage); 6] = [
        ("missing", |path| fs::remove_file(path).expect("removed")),
        ("empty", |path| fs::write(path, []).expect("emptied")),
        ("cut", |path| cut(path, fs::metadata(path).expect("there").len().saturating_sub(1).max(1))),
        ("zeroed", |path| {
            let len = fs::metadata(path).expect("there").len() as usize;
            fs::write(path, vec![0; len]).expect("zeroed");
        }),
        ("zeros appended", |path| cut(path, fs::metadata(path).expect("there").len() + 8 * 12 * 34)),
        ("nonsense", |path| fs::write(path, [0x5a; 8 * 12 * 34]).expect("written")),
    ];
    for suffix in [".index", ".timeindex", ".txnindex"] {
        for (case, damage) in damages {
            for standing in [synced_to(62), Standing { is_clean: true, ..synced_to(62) }] {
                let mut world = World::new();
                let log = world.create(&small());
                for n in 0..20 {
                    append(&log, Make::values(&["plain"]).at(NOW_MS + n));
                    append(
                        &log,
                        Make::values(&["aborted"]).at(NOW_MS + n).by(9, 0, n as i32).in_transaction(),
                    );
                    log.append_marker(marker(9, 0, TransactionResult::Abort)).expect("appended");
                }
                append(&log, Make::values(&["the", "end"]).at(NOW_MS + 20));
                log.close().expect("closed");
                files(&world, suffix).iter().for_each(damage);
                restart(&mut world);
                let case = format!("{suffix} {case}, {standing:?}");
                let log = world.open(&small(), standing);
                assert_eq!(log.log_end_offset(), Offset(62), "{case}");
                assert_eq!(records(&log, Offset(0), ReadBound::LogEnd).len(), 62, "{case}");
                let aborted = log.aborted_transactions(Offset(0), Offset(62)).expect("read");
                let expected: Vec<i64> = (0..20).map(|n| 3 * n + 1).collect();
                let found: Vec<i64> = aborted.iter().map(|aborted| aborted.first_offset.0).collect();
                // An empty index of aborted transactions is as good as any: only a missing one is missed.
                if !(suffix == ".txnindex" && case.contains("empty")) {
                    assert_eq!(found, expected, "{case}");
                }
                for n in 0..20 {
                    let found = log.offset_for_time(TimeQuery::At(NOW_MS + n)).expect("read").expect("found");
                    assert_eq!(found.offset, Offset(3 * n), "{case}");
                }
            }
        }
    }
}

#[test]
fn damaged_snapshots_are_passed_over() {
    for damaged in [1, 100] {
        let mut world = sixty();
        let snapshots = files(&world, ".snapshot");
        assert!(snapshots.len() > 2);
        for path in snapshots.iter().rev().take(damaged) {
            damage(path, 12, &[0x55]);
        }
        restart(&mut world);
        let log = world.open(&small(), synced_to(60));
        assert!(append(&log, Make::values(&["58", "59"]).at(NOW_MS + 29).by(1, 0, 58)).is_duplicate);
        assert!(try_append(&log, Make::values(&["x"]).by(1, 0, 61)).is_err());
        append(&log, Make::values(&["x"]).by(1, 0, 60));
    }
}

#[test]
fn a_clean_log_is_opened_without_reading_its_batches() {
    let mut world = World::new();
    let config = LogConfig { index_interval_bytes: 100, ..LogConfig::default() };
    let log = world.create(&config);
    for n in 0..50 {
        append(&log, Make::values(&["value"]).by(1, 0, n));
    }
    log.close().expect("closed");
    assert!(matches!(try_append(&log, Make::values(&["x"])), Err(Error::LogClosed { .. })));
    // Damage that only reading would find shows that it is not read.
    damage(&files(&world, ".log")[0], 65, &[0xff]);
    restart(&mut world);
    let log = world.open(&config, Standing { is_clean: true, ..synced_to(50) });
    assert_eq!(log.log_end_offset(), Offset(50));
    assert!(append(&log, Make::values(&["value"]).by(1, 0, 49)).is_duplicate);
    assert!(world.disk.performed().is_empty(), "nothing to write: {:?}", world.disk.performed());
}

/// The last batch of a log, whose records are older than others, claims more offsets than it has: no index entry and no
/// batch after it says otherwise.
#[test]
fn after_an_orderly_stop_a_log_ends_where_it_was_synced_to() {
    const LAST_OFFSET_DELTA: u64 = 23;
    let mut world = World::new();
    let config = LogConfig::default();
    let log = world.create(&config);
    append(&log, Make::values(&["newer"]));
    let position = log.size_in_bytes();
    append(&log, Make::values(&["older"]).at(NOW_MS - 1));
    log.close().expect("closed");
    drop(log);
    damage(&files(&world, ".log")[0], position + LAST_OFFSET_DELTA + 3, &[64]);
    restart(&mut world);
    let error = world.try_open(&config, Standing { is_clean: true, ..synced_to(2) }).expect_err("damaged");
    let is_named =
        matches!(&error, Error::Corrupt { path, .. } if path.ends_with("00000000000000000000.log"));
    assert!(is_named, "{error}");
}

#[test]
fn three_boots_do_not_give_an_offset_away_twice() {
    let config = LogConfig::default();
    let mut world = World::new();
    let manager = world.manager(&config);
    let log =
        manager.create(&partition("flights", 0), crate::harness::TOPIC_ID, config.clone()).expect("made");
    append(&log, Make::values(&["first"]));
    // Killed before anything was synced: the page cache lives on.
    drop((manager, log));
    world.crash(Crash::Kept);
    let manager = world.manager(&config);
    let log = manager.log(&partition("flights", 0)).expect("there");
    assert_eq!(values(&log), ["first"]);
    let second = append(&log, Make::values(&["second"]));
    assert_eq!(second.first_offset, Offset(1));
    // The first could be read since the second boot; so a power cut must not take it back.
    assert_eq!(log.synced_offset(), Offset(1));
    drop((manager, log));
    world.crash(Crash::Kept);
    let manager = world.manager(&config);
    let log = manager.log(&partition("flights", 0)).expect("there");
    assert_eq!(values(&log), ["first", "second"]);
    drop((manager, log));
    world.crash(Crash::Dropped);
    let manager = world.manager(&config);
    let log = manager.log(&partition("flights", 0)).expect("there");
    assert_eq!(values(&log), ["first", "second"]);
    assert_eq!(append(&log, Make::values(&["third"])).first_offset, Offset(2));
}

#[test]
fn leftovers_are_removed() {
    let mut world = sixty();
    let directory = world.path("flights-0");
    let names = [
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.tmp",
        "00000000000000000777.index",
        "00000000000000000777.snapshot",
        "leader-epoch-checkpoint.tmp",
    ];
    for name in names {
        fs::write(directory.join(name), b"left over").expect("written");
    }
    // A roll that failed.
    fs::write(directory.join("00000000000000000003.log"), []).expect("written");
    restart(&mut world);
    let log = world.open(&small(), synced_to(60));
    assert_eq!(values(&log), numbers(0..60));
    for name in names.into_iter().chain(["00000000000000000003.log"]) {
        assert!(!directory.join(name).exists(), "{name}");
    }
}

#[test]
fn a_lost_epoch_file_is_rebuilt_from_the_batches() {
    for content in [None, Some("0\nnonsense")] {
        let mut world = sixty();
        let path = world.path("flights-0/leader-epoch-checkpoint");
        match content {
            Some(content) => fs::write(&path, content).expect("written"),
            None => fs::remove_file(&path).expect("removed"),
        }
        restart(&mut world);
        let log = world.open(&small(), Standing { is_clean: true, ..synced_to(60) });
        assert_eq!(log.latest_epoch(), Some(crate::harness::EPOCH));
        assert_eq!(log.epoch_of_offset(Offset(0)), Some(crate::harness::EPOCH));
        assert_eq!(fs::read_to_string(&path).expect("written anew"), "0\n1\n3 0\n");
    }
}

#[test]
fn indexes_that_were_not_synced_with_their_segment_are_not_trusted() {
    let mut world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["aborted"]).by(2, 0, 0).in_transaction());
    log.append_marker(marker(2, 0, TransactionResult::Abort)).expect("appended");
    // All of the first segment is synced while it is the active one: without its indexes.
    let mut synced = Offset(0);
    while log.segment_count() == 1 {
        synced = log.sync().expect("synced");
        append(&log, Make::values(&["x"]));
    }
    drop(log);
    world.crash(Crash::Kept);
    std::fs::write(world.path("flights-0/00000000000000000000.txnindex"), b"").expect("emptied");
    world.crash(Crash::Kept);
    let log = world.open(&small(), synced_to(synced.0));
    let aborted = log.aborted_transactions(Offset(0), synced).expect("read");
    assert_eq!(aborted.len(), 1, "{aborted:?}");
}
