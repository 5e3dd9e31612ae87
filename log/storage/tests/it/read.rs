//! What a read returns: where it begins and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use thalweg_protocol::record::Batches;
use thalweg_protocol::{Compression, Offset};
use thalweg_storage::testing::Crash;
use thalweg_storage::{Error, Log, LogConfig, ReadBound};

use crate::harness::{Make, World, append, commit, records, small, synced_to};

/// Base offsets of the batches that a read returns, and the bytes left over.
fn read(log: &Log, offset: i64, max_bytes: u32, at_least_one: bool) -> (Vec<i64>, usize) {
    let info = log.read(Offset(offset), max_bytes, ReadBound::LogEnd, at_least_one).expect("read");
    let Some(slice) = info.records else { return (Vec::new(), 0) };
    assert!(slice.len > 0);
    let mut batches = Batches::new(slice.read().expect("read"));
    let offsets = batches.by_ref().map(|batch| batch.expect("good").header().base_offset.0).collect();
    (offsets, batches.remainder().len())
}

#[test]
fn a_read_begins_with_the_batch_that_holds_the_offset() {
    for config in [small(), LogConfig { index_interval_bytes: 100_000, ..LogConfig::default() }] {
        let mut world = World::new();
        let log = world.create(&config);
        for n in 0..100 {
            append(&log, Make::values(&["a", "b", &"c".repeat(n % 7)]));
        }
        let check = |log: &Log| {
            for offset in 0..300 {
                let (offsets, _) = read(log, offset, 1 << 20, true);
                assert_eq!(offsets[0], offset / 3 * 3);
                let (offsets, rest) = read(log, offset, 1, true);
                assert_eq!((offsets, rest), (vec![offset / 3 * 3], 0), "one whole batch, however large");
                assert_eq!(read(log, offset, 1, false), (vec![], 0), "or none");
            }
            assert_eq!(read(log, 300, 1 << 20, true), (vec![], 0), "at the end");
        };
        check(&log);
        commit(&log);
        drop(log);
        world.crash(Crash::Dropped);
        // Now nothing is known from appending.
        check(&world.open(&config, synced_to(300)));
    }
}

#[test]
fn a_read_ends_at_a_batch_where_the_index_knows_one() {
    let world = World::new();
    let log = world.create(&LogConfig { index_interval_bytes: 1, ..LogConfig::default() });
    let size = append(&log, Make::values(&["value"])).first_offset.0 as u64;
    assert_eq!(size, 0);
    let size = log.size_in_bytes() as u32;
    for _ in 1..20 {
        append(&log, Make::values(&["value"]));
    }
    for (max_bytes, expected) in
        [(size, 1), (size + 1, 1), (3 * size - 1, 2), (3 * size, 3), (100 * size, 20)]
    {
        let (offsets, rest) = read(&log, 0, max_bytes, false);
        assert_eq!((offsets.len(), rest), (expected, 0), "{max_bytes} bytes");
    }
}

#[test]
fn bounds_are_kept() {
    let world = World::new();
    let log = world.create(&small());
    for _ in 0..20 {
        append(&log, Make::values(&["a", "b"]));
    }
    log.sync().expect("synced");
    for high_watermark in [2, 4, 18, 40] {
        log.set_high_watermark(Offset(high_watermark));
        let found = records(&log, Offset(0), ReadBound::HighWatermark);
        assert_eq!(found.len() as i64, high_watermark);
        let info = log.read(Offset(high_watermark), 100, ReadBound::HighWatermark, true).expect("read");
        assert!(info.records.is_none() && info.high_watermark == Offset(high_watermark));
        assert_eq!(records(&log, Offset(0), ReadBound::LogEnd).len(), 40);
    }
    for offset in [-1, 41, i64::MAX] {
        let error = log.read(Offset(offset), 100, ReadBound::LogEnd, true).expect_err("out of range");
        assert!(matches!(error, Error::OffsetOutOfRange { log_end: Offset(40), .. }), "{error}");
    }
    assert_eq!(log.set_high_watermark(Offset(10)), Offset(40), "it never goes back");
    assert_eq!(log.set_high_watermark(Offset(1000)), Offset(40), "nor past the end");
}

#[test]
fn slices_outlive_their_segment() {
    let world = World::new();
    let log = world.create(&small());
    for _ in 0..20 {
        append(&log, Make::values(&["a", "b"]));
    }
    commit(&log);
    let slice =
        log.read(Offset(0), 1 << 20, ReadBound::HighWatermark, true).expect("read").records.expect("some");
    let before = slice.read().expect("read");
    log.delete_records(Offset(40)).expect("deleted");
    world.clock.advance(1 << 30);
    log.apply_retention().expect("done");
    assert_eq!(slice.read().expect("still there"), before);
}

#[test]
fn readers_see_whole_appends_only() {
    let world = World::new();
    let log = world.create(&LogConfig { segment_bytes: 20_000, ..LogConfig::default() });
    let is_done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (log, is_done) = (Arc::clone(&log), Arc::clone(&is_done));
            thread::spawn(move || {
                let mut next = Offset(0);
                loop {
                    let was_done = is_done.load(Ordering::SeqCst);
                    let info = log.read(next, 5000, ReadBound::HighWatermark, true).expect("read");
                    let Some(slice) = info.records else {
                        if was_done {
                            return next;
                        }
                        continue;
                    };
                    for batch in Batches::new(slice.read().expect("read")) {
                        let batch = batch.expect("good");
                        batch.verify().expect("good");
                        assert_eq!(batch.header().base_offset, next, "nothing twice, nothing left out");
                        next = batch.header().next_offset();
                    }
                    assert!(next <= info.high_watermark);
                }
            })
        })
        .collect();
    for n in 0..2000 {
        let codec = if n % 3 == 0 { Compression::Lz4 } else { Compression::None };
        append(&log, Make::values(&["a", &"b".repeat(n % 300)]).compressed(codec));
        if n % 5 == 0 {
            log.set_high_watermark(log.log_end_offset());
        }
    }
    log.set_high_watermark(log.log_end_offset());
    is_done.store(true, Ordering::SeqCst);
    for reader in readers {
        assert_eq!(reader.join().expect("no panic"), Offset(4000));
    }
}

#[test]
fn a_damaged_index_costs_time_and_nothing_else() {
    for byte in [0x00, 0x01, 0x7f, 0xff] {
        let world = World::new();
        let log = world.create(&LogConfig { segment_bytes: 3000, ..small() });
        for n in 0..100 {
            append(&log, Make::values(&["a", "b", &"c".repeat(n % 7)]));
        }
        commit(&log);
        for entry in std::fs::read_dir(world.path("flights-0")).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.extension() == Some("index".as_ref()) {
                let len = std::fs::metadata(&path).expect("there").len() as usize;
                std::fs::write(&path, vec![byte; len]).expect("written");
            }
        }
        for offset in 0..300 {
            assert_eq!(read(&log, offset, 1, true).0, [offset / 3 * 3], "index of {byte:#x}");
        }
        assert_eq!(records(&log, Offset(0), ReadBound::HighWatermark).len(), 300);
    }
}

#[test]
fn no_flipped_bit_of_a_header_is_a_panic_or_believed() {
    let mut world = World::new();
    let log = world.create(&LogConfig::default());
    for _ in 0..3 {
        append(&log, Make::values(&["a", "b"]));
    }
    commit(&log);
    drop(log);
    let path = world.path("flights-0/00000000000000000000.log");
    let good = std::fs::read(&path).expect("read");
    let start = good.len() / 3;
    for bit in 0..61 * 8 {
        let mut flipped = good.clone();
        flipped[start + bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &flipped).expect("written");
        world.crash(Crash::Kept);
        let opened = world.try_open(&LogConfig::default(), synced_to(6));
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "bit {bit}: {opened:?}");
        let clean = thalweg_storage::Standing { is_clean: true, ..synced_to(6) };
        if let Ok(log) = world.try_open(&LogConfig::default(), clean) {
            for offset in 0..6 {
                // Without the checksums damage may pass, but never as something else than bytes.
                let _ = log.read(Offset(offset), 1000, ReadBound::LogEnd, true);
            }
        }
    }
}

#[test]
fn a_read_that_may_not_wait_finds_what_is_in_memory_and_says_so_of_the_rest() {
    let world = World::new();
    let log = world.create(&small());
    for n in 0..40 {
        append(&log, Make::values(&["x"]).by(1, 0, n));
    }
    commit(&log);
    assert!(log.segment_count() > 3);
    let bound = ReadBound::LastStableOffset;
    let cached = |offset| {
        let info = log.read_cached(Offset(offset), 300, bound, true).expect("nothing is wrong");
        info.and_then(|info| info.records).map(|slice| (slice.position, slice.len))
    };
    let anyway = |offset| {
        let slice = log.read(Offset(offset), 300, bound, true).expect("read").records.expect("a batch");
        (slice.position, slice.len)
    };
    for offset in 0..40 {
        assert_eq!(cached(offset), Some(anyway(offset)), "{offset}, warm");
    }
    world.disk.set_cold(true);
    let last = log.log_end_offset().0 - 1;
    assert_eq!(cached(last), Some(anyway(last)), "the newest batches are remembered");
    assert_eq!(cached(0), None);
    assert_eq!(anyway(0).0, 0, "whoever waits gets it");
    world.disk.set_cold(false);
    assert_eq!(cached(0), Some(anyway(0)));
    // Opening a file may have to wait, too.
    for _ in 0..2 {
        log.apply_retention().expect("idle files are closed");
    }
    assert_eq!(cached(0), None);
    let found = anyway(0);
    assert_eq!(cached(0), Some(found), "now it is open");
    let error = log.read_cached(Offset(100), 300, bound, true).expect_err("beyond the end");
    assert!(matches!(error, Error::OffsetOutOfRange { .. }), "{error}");
    assert!(world.environment().health.failure().is_none());
}
