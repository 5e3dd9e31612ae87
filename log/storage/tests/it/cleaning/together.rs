//! Cleaning beside appends, reads and deletions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use thalweg_protocol::Offset;
use thalweg_protocol::record::Batches;
use thalweg_storage::testing::ManualClock;
use thalweg_storage::{
    Cleaner, CleanerConfig, DiskFilesystem, Environment, Log, LogConfig, ReadBound, Standing,
};

use super::compacted;
use super::model::records_in;
use crate::harness::{Make, NOW_MS, TOPIC_ID, World, append, commit, partition};

/// Reads everything, and then closes idle files so that the next reader has to open them.
fn last_values(log: &Log) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut last = BTreeMap::new();
    let mut next = Offset(0);
    // Up to where it ends by then: of a key that is written meanwhile the value before may go.
    while next < log.high_watermark() {
        let info = log.read(next, 3000, ReadBound::HighWatermark, true).expect("it can be read");
        let slice = info.records.expect("there is something before the end");
        let before = next;
        for batch in Batches::new(slice.read().expect("the file is there")) {
            let batch = batch.expect("batches from a boundary on");
            batch.verify().expect("good batches");
            assert!(batch.header().next_offset() > next, "in order");
            for record in records_in(&batch).into_iter().filter(|record| record.offset >= next) {
                let (key, value) = (record.key.expect("a key"), record.value.expect("a value"));
                last.insert(key.to_vec(), value.to_vec());
            }
            next = batch.header().next_offset();
        }
        assert!(next > before, "progress");
    }
    last
}

#[test]
fn readers_and_writers_notice_nothing() {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let environment = Environment::new(Arc::new(DiskFilesystem), ManualClock::new(NOW_MS), directory.path());
    let config = LogConfig { segment_bytes: 40_000, index_interval_bytes: 500, ..compacted() };
    let path = directory.path().join("flights-0");
    let log = Log::open(&path, partition("flights", 0), TOPIC_ID, config, Standing::default(), &environment);
    let log = log.expect("it opens");
    let is_over = AtomicBool::new(false);
    let (rounds, reads) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let config = CleanerConfig { memory_bytes: 1 << 20, io_bytes_per_second: u64::MAX };
            let mut cleaner = Cleaner::new(&config, 1);
            while !is_over.load(Ordering::SeqCst) {
                let report = cleaner.clean_log(&log).expect("cleaned").expect("compacted");
                rounds.fetch_add(usize::from(report.records_removed > 0), Ordering::SeqCst);
                log.apply_retention().expect("idle files are closed");
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut before = BTreeMap::new();
                while !is_over.load(Ordering::SeqCst) {
                    let now = last_values(&log);
                    for (key, value) in &before {
                        assert!(now.get(key) >= Some(value), "a value goes back");
                    }
                    before = now;
                    reads.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for n in 0..1_000_000 {
            append(&log, Make::keyed(&[(&format!("key {}", n % 41), Some(&format!("{n:08}")))]));
            if n % 10 == 0 {
                commit(&log);
            }
            if rounds.load(Ordering::SeqCst) > 5 && reads.load(Ordering::SeqCst) > 5 {
                break;
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let (rounds, reads) = (rounds.into_inner(), reads.into_inner());
    assert!(rounds > 5 && reads > 5, "{rounds} rounds, {reads} reads");
    assert_eq!(last_values(&log).len(), 41);
}

#[test]
fn a_log_that_changes_under_the_cleaner_is_left_alone() {
    for what in ["delete", "truncate", "retain", "stop"] {
        let world = World::new();
        let config = LogConfig { segment_bytes: 300_000, ..compacted() };
        let manager = world.manager(&config);
        let id = partition("flights", 0);
        let log = manager.create(&id, TOPIC_ID, config.clone()).expect("made");
        let large = "x".repeat(100_000);
        for n in 0..20 {
            append(&log, Make::keyed(&[(["a", "b"][n % 2], Some(&large))]));
        }
        commit(&log);
        let asked = AtomicUsize::new(0);
        let change = || {
            // In the middle of the copy: half of what is read is for the map.
            if asked.fetch_add(1, Ordering::SeqCst) == 9 {
                match what {
                    "delete" => {
                        manager.delete(&id).expect("deleted");
                        manager.create(&id, TOPIC_ID, config.clone()).expect("made anew");
                    }
                    "truncate" => log.restart_at(Offset(100)).expect("begun anew"),
                    "retain" => assert_eq!(log.delete_records(Offset(19)).expect("deleted"), Offset(19)),
                    _ => return true,
                }
            }
            false
        };
        let mut cleaner =
            Cleaner::new(&CleanerConfig { io_bytes_per_second: u64::MAX, ..Default::default() }, 1);
        assert_eq!(cleaner.run(&manager, &change), 0, "{what}");
        assert!(asked.load(Ordering::SeqCst) > 9, "{what}: it was asked {asked:?} times");
        let names = std::fs::read_dir(world.path("flights-0")).expect("a directory");
        for name in names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()) {
            assert!(!name.ends_with(".cleaned") && !name.ends_with(".swap"), "{what}: {name}");
        }
        let now = manager.log(&id).expect("there");
        let expected = match what {
            "delete" => (Offset(0), Offset(0)),
            "truncate" => (Offset(100), Offset(100)),
            "retain" => (Offset(19), Offset(20)),
            _ => (Offset(0), Offset(20)),
        };
        assert_eq!((now.log_start_offset(), now.log_end_offset()), expected, "{what}");
        drop((manager, log, now));
        let manager = world.manager(&config);
        assert_eq!(manager.offline_logs().len(), 0, "{what}");
        assert_eq!(manager.log(&id).expect("there").log_end_offset(), expected.1);
    }
}
