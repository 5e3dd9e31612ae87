//! What stays of a log and what goes, rule by rule.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use thalweg_protocol::record::{BatchHeader, Batches, OwnedRecord};
use thalweg_protocol::{Compression, Offset};
use thalweg_storage::testing::Crash;
use thalweg_storage::{Cleaner, CleanerConfig, CleanupPolicy, Log, LogConfig, ReadBound, TransactionResult};

use super::model::{marker_of, read_all};
use super::{clean, cleaner, cleaner_with, compacted};
use crate::harness::{
    Make, NOW_MS, TOPIC_ID, World, append, commit, marker, partition, synced_to, try_append,
};

/// One batch a segment, and none are joined.
fn apart() -> LogConfig {
    LogConfig { segment_bytes: 1, ..compacted() }
}

fn put(log: &Log, records: &[(&str, Option<&str>)]) {
    append(log, Make::keyed(records));
}

/// The batches, as `first-last key=value …`; `-` is a tombstone, `~` a batch with a delete horizon.
fn shown(log: &Log) -> Vec<String> {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).expect("text");
    let one = |record: &OwnedRecord| {
        let value = record.value.as_ref().map_or("-".to_owned(), text);
        let value = if value.len() > 20 { format!("{}…", &value[..3]) } else { value };
        format!(" {}={value}", record.key.as_ref().map_or_else(String::new, text))
    };
    let batch = |header: &BatchHeader, records: &[OwnedRecord]| {
        let horizon = if header.has_delete_horizon() { "~" } else { "" };
        let offsets = format!("{}-{}{horizon}", header.base_offset, header.last_offset());
        match header.is_control() {
            true => format!("{offsets} marker of {}", header.producer_id),
            false => offsets + &records.iter().map(one).collect::<String>(),
        }
    };
    let found = read_all(log).expect("it can be read");
    found.iter().map(|found| batch(&found.header, &found.records)).collect()
}

#[test]
fn the_last_record_of_each_key_stays_where_it_was() {
    for compression in Compression::ALL {
        let world = World::new();
        let log = world.create(&LogConfig { segment_bytes: 10_000, ..compacted() });
        let long = "x".repeat(100);
        for records in [
            &[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))][..],
            &[("a", Some("2")), ("d", Some("1"))],
            &[("b", Some("2")), ("a", Some("3"))],
            &[("long", Some(&long)), ("c", Some("2")), ("long", Some(&long))],
            &[("e", Some("1"))],
            &[("long", Some(&long))],
            &[("e", Some("2"))],
        ] {
            append(&log, Make::keyed(records).compressed(compression));
        }
        log.set_config(apart());
        put(&log, &[("a", Some("active")), ("a", Some("active"))]);
        commit(&log);
        let report = clean(&log);
        let expected =
            ["3-4 d=1", "5-6 b=2 a=3", "7-9 c=2", "11-11 long=xxx…", "12-12 e=2", "13-14 a=active a=active"];
        assert_eq!(shown(&log), expected, "{compression}");
        assert_eq!((report.records_removed, report.keys, report.cleaned_to), (7, 6, Offset(13)));
        assert_eq!((report.bytes_after, log.log_end_offset()), (log.size_in_bytes(), Offset(15)));
    }
}

#[test]
fn a_tombstone_stays_for_its_time_and_no_longer() {
    let world = World::new();
    let log = world.create(&apart());
    put(&log, &[("a", Some("1")), ("b", Some("1"))]);
    put(&log, &[("a", None), ("c", Some("1"))]);
    put(&log, &[("b", None)]);
    put(&log, &[("d", Some("active"))]);
    commit(&log);
    clean(&log);
    let with_tombstones = ["0-1", "2-3~ a=- c=1", "4-4~ b=-", "5-5 d=active"];
    assert_eq!(shown(&log), with_tombstones);
    let times = |log: &Log| -> Vec<i64> {
        let found = read_all(log).expect("read");
        found.iter().flat_map(|found| &found.records).map(|record| record.timestamp).collect()
    };
    assert_eq!(times(&log), [NOW_MS; 4], "timestamps are what they were");
    world.clock.advance(999);
    assert_eq!(clean(&log).bytes_written, 0, "nothing to do");
    assert_eq!(shown(&log), with_tombstones);
    world.clock.advance(1);
    assert_eq!(clean(&log).records_removed, 2);
    assert_eq!(
        shown(&log),
        ["0-1", "2-3~ c=1", "4-4", "5-5 d=active"],
        "one at the end of each segment stays"
    );
    assert_eq!(times(&log), [NOW_MS; 2]);
    // With segments that are joined even those go.
    log.set_config(compacted());
    clean(&log);
    assert_eq!(shown(&log), ["2-3~ c=1", "4-4", "5-5 d=active"]);
}

#[test]
fn a_tombstone_that_was_not_mapped_has_no_horizon_yet() {
    let world = World::new();
    let log = world.create(&LogConfig { segment_bytes: 10_000, ..compacted() });
    let keys: Vec<String> = (0..30).map(|n| format!("key {n:02}")).collect();
    keys.iter().for_each(|key| put(&log, &[(key, None)]));
    log.set_config(apart());
    put(&log, &[("b", Some("1"))]);
    commit(&log);
    // Twelve keys at a time.
    for (round, horizons) in [12, 24, 30].into_iter().enumerate() {
        let report = cleaner_with(16 * 24).clean_log(&log).expect("cleaned").expect("compacted");
        let count = shown(&log).iter().filter(|batch| batch.contains('~')).count();
        assert_eq!(count, horizons, "after round {round}");
        assert_eq!((report.cleaned_to, report.is_complete), (Offset(horizons as i64), horizons == 30));
    }
}

#[test]
fn what_is_not_certain_is_left_alone() {
    let world = World::new();
    let log = world.create(&LogConfig { min_compaction_lag_ms: 500, ..apart() });
    for n in 0..6 {
        put(&log, &[("a", Some(&n.to_string()))]);
    }
    assert_eq!(clean(&log).cleaned_to, Offset(0), "nothing is synced");
    log.sync().expect("synced");
    assert_eq!(clean(&log).cleaned_to, Offset(0), "nothing is committed");
    log.set_high_watermark(Offset(6));
    assert_eq!(clean(&log).cleaned_to, Offset(0), "all of it is too young");
    world.clock.advance(500);
    append(&log, Make::keyed(&[("a", Some("young"))]).at(NOW_MS + 500));
    put(&log, &[("a", Some("active"))]);
    append(&log, Make::keyed(&[("b", Some("open"))]).by(1, 0, 0).in_transaction());
    commit(&log);
    assert_eq!(clean(&log).cleaned_to, Offset(6), "up to the young one");
    assert_eq!(shown(&log)[5..], ["5-5 a=5", "6-6 a=young", "7-7 a=active", "8-8 b=open"]);
    world.clock.advance(1000);
    put(&log, &[("a", Some("later"))]);
    put(&log, &[("a", Some("active"))]);
    commit(&log);
    assert_eq!(clean(&log).cleaned_to, Offset(8), "up to the open transaction");
    append_end(&log, 1, TransactionResult::Commit);
    put(&log, &[("c", Some("active"))]);
    commit(&log);
    world.clock.advance(500);
    assert_eq!(clean(&log).cleaned_to, Offset(12), "up to the active segment");
    let uncompacted = world.try_open(&LogConfig::default(), synced_to(13)).expect("opened");
    assert_eq!(cleaner().clean_log(&uncompacted).expect("asked"), None);
}

fn append_end(log: &Log, producer: i64, result: TransactionResult) {
    log.append_marker(marker(producer, 0, result)).expect("appended");
}

#[test]
fn a_record_that_waits_too_long_rolls_its_segment() {
    let world = World::new();
    let log = world.create(&LogConfig { max_compaction_lag_ms: 2000, segment_bytes: 100_000, ..compacted() });
    put(&log, &[("a", Some("1"))]);
    put(&log, &[("a", Some("2"))]);
    commit(&log);
    world.clock.advance(2000);
    assert_eq!((clean(&log).cleaned_to, log.segment_count()), (Offset(0), 1));
    world.clock.advance(1);
    assert_eq!((clean(&log).cleaned_to, log.segment_count()), (Offset(2), 2));
    assert_eq!(shown(&log), ["1-1 a=2"]);
    // A batch that comes late rolls, too.
    append(&log, Make::keyed(&[("a", Some("3"))]).at(NOW_MS));
    append(&log, Make::keyed(&[("a", Some("4"))]).at(NOW_MS + 2001));
    assert_eq!(log.segment_count(), 3);
}

#[test]
fn transactions_leave_nothing_behind() {
    let world = World::new();
    let log = world.create(&LogConfig { producer_expiration_ms: 5000, ..apart() });
    append(&log, Make::keyed(&[("a", Some("aborted")), ("b", Some("aborted"))]).by(1, 0, 0).in_transaction());
    append(&log, Make::keyed(&[("a", Some("committed"))]).by(2, 0, 0).in_transaction());
    append(&log, Make::keyed(&[("c", Some("superseded"))]).by(3, 0, 0).in_transaction());
    append_end(&log, 1, TransactionResult::Abort);
    append_end(&log, 2, TransactionResult::Commit);
    append_end(&log, 3, TransactionResult::Commit);
    put(&log, &[("c", Some("last"))]);
    put(&log, &[("d", Some("active"))]);
    commit(&log);
    let end = log.log_end_offset();
    let aborted = |log: &Log| log.aborted_transactions(Offset(0), end).expect("found").len();
    clean(&log);
    let active = [
        "0-1",
        "2-2 a=committed",
        "3-3",
        "4-4 marker of 1",
        "5-5 marker of 2",
        "6-6 marker of 3",
        "7-7 c=last",
    ];
    assert_eq!(shown(&log)[..7], active, "the producers are known by their batches");
    assert_eq!(aborted(&log), 1);
    // The producers are forgotten: their batches go as soon as segments are joined.
    world.clock.advance(5000);
    log.apply_retention().expect("done");
    log.set_config(LogConfig { segment_bytes: 100_000, ..apart() });
    clean(&log);
    assert_eq!(
        shown(&log)[..4],
        ["2-2 a=committed", "4-4~ marker of 1", "5-5 marker of 2", "6-6~ marker of 3"],
        "a marker whose data is gone waits, one whose data is there stays"
    );
    assert_eq!(aborted(&log), 0);
    world.clock.advance(1000);
    assert_eq!(clean(&log).records_removed, 2);
    assert_eq!(shown(&log), ["2-2 a=committed", "5-5 marker of 2", "7-7 c=last", "8-8 d=active"]);
    assert_eq!(log.last_stable_offset(), end);
    // Only the batches tell it now.
    std::fs::remove_file(world.path("flights-0/00000000000000000008.snapshot")).expect("there was one");
    let reopened = world.open(&compacted(), synced_to(end.0));
    assert!(reopened.open_transactions().is_empty());
}

#[test]
fn the_marker_that_gave_an_epoch_stays_while_its_producer_is_known() {
    let world = World::new();
    let config = LogConfig { producer_expiration_ms: 5000, ..apart() };
    let log = world.create(&LogConfig { segment_bytes: 100_000, ..config.clone() });
    append(&log, Make::keyed(&[("a", Some("1"))]).by(1, 0, 0).in_transaction());
    let bumped =
        thalweg_storage::MarkerAppend { epoch_is_bumped: true, ..marker(1, 1, TransactionResult::Commit) };
    log.append_marker(bumped).expect("appended");
    put(&log, &[("a", Some("2"))]);
    log.set_config(config);
    put(&log, &[("b", Some("active"))]);
    commit(&log);
    for (time, expected) in [
        (0, &["1-1~ marker of 1", "2-2 a=2", "3-3 b=active"][..]),
        (2000, &["1-1~ marker of 1", "2-2 a=2", "3-3 b=active"]),
        (3000, &["2-2 a=2", "3-3 b=active"]),
    ] {
        world.clock.advance(time);
        log.apply_retention().expect("done");
        clean(&log);
        assert_eq!(shown(&log), expected);
        let is_fenced = try_append(&log, Make::keyed(&[("a", Some("zombie"))]).by(1, 0, 1)).is_err();
        assert_eq!(is_fenced, time < 3000);
    }
}

#[test]
fn a_producer_goes_on_where_it_was() {
    let world = World::new();
    let log = world.create(&LogConfig { segment_bytes: 10_000, ..compacted() });
    let five =
        |n: i32| Make::keyed(&[("a", Some(&n.to_string())), ("b", Some(&n.to_string()))]).by(1, 0, 2 * n);
    for n in 0..8 {
        append(&log, five(n));
    }
    log.set_config(apart());
    put(&log, &[("a", Some("another's")), ("b", Some("another's"))]);
    put(&log, &[("c", Some("active"))]);
    commit(&log);
    clean(&log);
    assert_eq!(shown(&log)[..6], ["6-7", "8-9", "10-11", "12-13", "14-15", "16-17 a=another's b=another's"]);
    // Without a snapshot, and with nothing but these.
    let directory = world.path("flights-0");
    for entry in
        std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path())
    {
        if entry.extension() == Some("snapshot".as_ref()) {
            std::fs::remove_file(entry).expect("removed");
        }
    }
    let log = world.open(&compacted(), synced_to(19));
    for n in 3..8 {
        let again = append(&log, five(n));
        assert!(again.is_duplicate, "{n}");
        assert_eq!(again.first_offset, Offset(2 * i64::from(n)));
    }
    assert!(try_append(&log, five(2)).is_err(), "five are remembered");
    assert!(try_append(&log, five(9)).is_err(), "a gap");
    assert_eq!(append(&log, five(8)).first_offset, Offset(19));
}

#[test]
fn records_without_a_key_go() {
    let world = World::new();
    let log = world.create(&LogConfig { cleanup_policy: CleanupPolicy::default(), ..apart() });
    append(&log, Make::values(&["no", "key"]).keyless());
    put(&log, &[("a", Some("1"))]);
    log.set_config(apart());
    put(&log, &[("a", Some("active"))]);
    commit(&log);
    clean(&log);
    assert_eq!(shown(&log), ["0-1", "2-2 a=1", "3-3 a=active"]);
}

#[test]
fn small_segments_are_joined_and_large_ones_left_alone() {
    let world = World::new();
    let log = world.create(&LogConfig { segment_bytes: 1, index_interval_bytes: 100, ..compacted() });
    for n in 0..60 {
        put(&log, &[(&format!("key {n:02}"), Some("value"))]);
    }
    commit(&log);
    let before = shown(&log);
    let bytes = log.size_in_bytes() / 60;
    log.set_config(LogConfig {
        segment_bytes: (10 * bytes) as u32,
        index_interval_bytes: 100,
        ..compacted()
    });
    let report = clean(&log);
    assert_eq!((report.segments_before, report.segments_after), (60, 7));
    assert_eq!(shown(&log), before, "all keys are different");
    assert_eq!(report.records_removed, 0);
    assert_eq!(clean(&log).bytes_written, 0, "they are as large as they may be");
    // As large as half of what is allowed now: not worth it.
    log.set_config(LogConfig {
        segment_bytes: (20 * bytes) as u32 - 10,
        index_interval_bytes: 100,
        ..compacted()
    });
    assert_eq!((clean(&log).bytes_written, log.segment_count()), (0, 7));
    log.set_config(LogConfig {
        segment_bytes: (21 * bytes) as u32,
        index_interval_bytes: 100,
        ..compacted()
    });
    assert_eq!((clean(&log).segments_after, log.segment_count()), (4, 4), "two in one");
    // At most 32 at a time are replaced, so that their files can be kept open.
    let many = World::new();
    let log = many.create(&apart());
    (0..100).for_each(|n| put(&log, &[(&format!("key {n}"), Some("value"))]));
    commit(&log);
    log.set_config(LogConfig { segment_bytes: 1 << 20, ..compacted() });
    for expected in [5, 2, 2] {
        assert_eq!(clean(&log).segments_after, expected);
    }
}

#[test]
fn offsets_that_are_far_apart_stay_in_segments_of_their_own() {
    const FAR: i64 = i32::MAX as i64;
    let world = World::new();
    let log = world.create(&apart());
    let mut at = 0;
    // What a leader has left after compaction.
    for (n, gap) in [0, 10, FAR - 100, 50, 300, FAR, FAR + 10, 1, 2 * FAR, 7].into_iter().enumerate() {
        at += gap;
        let batch = Make::keyed(&[(&format!("key {n}"), Some("value"))]).batch();
        let batch = batch.at(Offset(at), crate::harness::EPOCH);
        log.append_as_follower(batch.bytes()).expect("appended");
        at += 1;
    }
    commit(&log);
    let before = shown(&log);
    log.set_config(LogConfig { segment_bytes: 1 << 20, ..compacted() });
    let report = clean(&log);
    assert!(report.segments_after < report.segments_before, "{report:?}");
    assert_eq!(shown(&log), before);
    for standing in [synced_to(at), synced_to(0)] {
        let reopened = world.open(&compacted(), standing);
        assert_eq!(shown(&reopened), before);
    }
    let directory = world.path("flights-0");
    for entry in
        std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path())
    {
        if entry.to_string_lossy().ends_with("index") {
            std::fs::remove_file(entry).expect("removed");
        }
    }
    let rebuilt = world.open(&compacted(), synced_to(at));
    assert_eq!(shown(&rebuilt), before);
    assert_eq!(append(&rebuilt, Make::keyed(&[("b", Some("2"))])).first_offset, Offset(at));
}

#[test]
fn a_follower_of_a_cleaned_log_has_the_same() {
    let world = World::new();
    let log = world.create(&compacted());
    for n in 0..40 {
        put(&log, &[(&format!("key {}", n % 3), Some(&n.to_string())), ("x", None)]);
    }
    commit(&log);
    clean(&log);
    let mut bytes = BytesMut::new();
    let mut next = Offset(0);
    while let Some(slice) = log.read(next, 400, ReadBound::LogEnd, true).expect("read").records {
        for batch in Batches::new(slice.read().expect("read")) {
            let batch = batch.expect("a batch");
            next = batch.header().next_offset();
            bytes.extend_from_slice(batch.bytes());
        }
    }
    let mut other = World::new();
    let follower = other.create(&compacted());
    follower.append_as_follower(&bytes.freeze()).expect("appended");
    assert_eq!(shown(&follower), shown(&log));
    let end = follower.sync().expect("synced");
    for crash in [Crash::Dropped, Crash::Kept] {
        other.crash(crash);
        for entry in std::fs::read_dir(other.path("flights-0")).expect("a directory") {
            let path = entry.expect("an entry").path();
            if crash == Crash::Kept && path.to_string_lossy().ends_with("index") {
                std::fs::remove_file(path).expect("removed");
            }
        }
        let config = LogConfig { cleanup_policy: CleanupPolicy::default(), ..compacted() };
        let reopened = other.open(&config, synced_to(end.0));
        assert_eq!(shown(&reopened), shown(&log), "whatever the policy is by now");
    }
}

#[test]
fn the_index_of_aborted_transactions_is_what_the_batches_say() {
    let world = World::new();
    let log = world.create(&LogConfig { segment_bytes: 700, ..compacted() });
    for n in 0..30_i32 {
        let id = i64::from(n % 7);
        append(
            &log,
            Make::keyed(&[(&format!("key {}", n % 4), Some("value"))]).by(id, 0, n / 7).in_transaction(),
        );
        append_end(&log, id, if n % 3 == 0 { TransactionResult::Abort } else { TransactionResult::Commit });
    }
    commit(&log);
    clean(&log);
    let end = log.log_end_offset();
    let aborted = log.aborted_transactions(Offset(0), end).expect("found");
    assert!(aborted.len() > 3, "{aborted:?}");
    for entry in std::fs::read_dir(world.path("flights-0")).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.to_string_lossy().ends_with("index") || path.to_string_lossy().ends_with(".snapshot") {
            std::fs::remove_file(path).expect("removed");
        }
    }
    let rebuilt = world.open(&compacted(), synced_to(end.0));
    assert_eq!(rebuilt.aborted_transactions(Offset(0), end).expect("found"), aborted);
}

#[test]
fn deletion_and_compaction_go_together() {
    let world = World::new();
    let cleanup_policy = CleanupPolicy { delete: true, compact: true };
    let log = world.create(&LogConfig { cleanup_policy, retention_ms: 1000, ..apart() });
    for n in 0..10 {
        append(&log, Make::keyed(&[(["a", "b"][n as usize % 2], Some("value"))]).at(NOW_MS + 100 * n));
    }
    commit(&log);
    clean(&log);
    assert_eq!(
        shown(&log)[6..],
        ["6-6", "7-7 b=value", "8-8 a=value", "9-9 b=value"],
        "one of each but the active"
    );
    world.clock.advance(1000 + 750);
    // Those without records go with the first that is old enough.
    assert_eq!(log.apply_retention().expect("done"), 8);
    assert_eq!(shown(&log), ["8-8 a=value", "9-9 b=value"]);
    assert_eq!(clean(&log).cleaned_to, Offset(9));
}

#[test]
fn the_dirtiest_log_comes_first_and_a_horizon_is_kept() {
    let world = World::new();
    let manager = world.manager(&apart());
    let logs: Vec<Arc<Log>> = ["x", "y", "z"]
        .iter()
        .map(|topic| manager.create(&partition(topic, 0), TOPIC_ID, apart()).expect("made"))
        .collect();
    let fill = |at: usize, count: usize| {
        (0..count).for_each(|n| put(&logs[at], &[("a", Some(&format!("value {n}")))]));
        commit(&logs[at]);
    };
    let mut cleaner =
        Cleaner::new(&CleanerConfig { io_bytes_per_second: u64::MAX, ..CleanerConfig::default() }, 1);
    let mut rounds = || cleaner.run(&manager, &|| false);
    assert_eq!(rounds(), 0, "there is nothing");
    fill(0, 10);
    fill(1, 2);
    assert_eq!(rounds(), 2);
    assert_eq!(rounds(), 0, "all is clean");
    // 9 are clean but for their sizes, of which nothing is left to go.
    fill(0, 1);
    fill(1, 40);
    assert_eq!(rounds(), 1, "a little dirt is left alone");
    logs[0].set_config(LogConfig { min_cleanable_dirty_ratio: 0.0, ..apart() });
    assert_eq!(rounds(), 1);
    put(&logs[2], &[("a", None)]);
    put(&logs[2], &[("b", Some("active"))]);
    commit(&logs[2]);
    assert_eq!(rounds(), 1);
    assert_eq!(shown(&logs[2]), ["0-0~ a=-", "1-1 b=active"]);
    assert_eq!(rounds(), 0);
    world.clock.advance(1000);
    assert_eq!(rounds(), 1, "a tombstone is due");
    assert_eq!(shown(&logs[2]), ["0-0", "1-1 b=active"]);
    assert_eq!(rounds(), 0);
    assert_eq!(cleaner.run(&manager, &|| true), 0);
    assert!(marker_of(&Make::values(&["no marker"]).batch()).is_none());
}
