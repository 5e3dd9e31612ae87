//! Finding offsets by time.

use thalweg_protocol::{Compression, Offset};
use thalweg_storage::testing::Crash;
use thalweg_storage::{Log, LogConfig, Standing, TimeQuery, TimestampType};

use crate::harness::{EPOCH, Make, NOW_MS, World, append, commit, small, synced_to};

fn at(log: &Log, time: i64) -> Option<(i64, i64)> {
    let found = log.offset_for_time(TimeQuery::At(time)).expect("read")?;
    Some((found.offset.0, found.timestamp))
}

#[test]
fn the_first_record_that_is_late_enough_is_found() {
    let mut random = fastrand::Rng::with_seed(11);
    for config in
        [small(), LogConfig { index_interval_bytes: 300, segment_bytes: 3000, ..LogConfig::default() }]
    {
        for jitter in [0, 5, 400] {
            let mut world = World::new();
            let log = world.create(&config);
            let mut times = Vec::new();
            for n in 0..150_i64 {
                let batch: Vec<i64> =
                    (0..random.i64(1..5)).map(|_| NOW_MS + 10 * n + random.i64(-jitter..=jitter)).collect();
                let codec = Compression::ALL[random.usize(0..5)];
                append(&log, Make::times(&batch).compressed(codec));
                times.extend(batch);
            }
            commit(&log);
            let check = |log: &Log| {
                let start = log.log_start_offset().0 as usize;
                for time in (NOW_MS - 500..NOW_MS + 2500).step_by(7).chain(times.iter().copied().step_by(9)) {
                    let first = times.iter().enumerate().skip(start).find(|&(_, &t)| t >= time);
                    assert_eq!(
                        at(log, time),
                        first.map(|(offset, &t)| (offset as i64, t)),
                        "at {time}, jitter {jitter}"
                    );
                }
                let newest = times[start..].iter().copied().max().expect("some");
                let first =
                    times.iter().enumerate().skip(start).find(|&(_, &t)| t == newest).expect("some").0;
                let found = log.offset_for_time(TimeQuery::MaxTimestamp).expect("read").expect("some");
                assert_eq!((found.timestamp, found.offset.0), (newest, first as i64));
                assert_eq!(found.leader_epoch, EPOCH);
            };
            check(&log);
            // In the middle of a batch.
            log.delete_records(Offset(101)).expect("deleted");
            check(&log);
            let standing = Standing { log_start: Offset(101), ..synced_to(log.log_end_offset().0) };
            drop(log);
            world.crash(Crash::Dropped);
            let log = world.open(&config, standing);
            check(&log);
        }
    }
}

#[test]
fn the_ends_and_an_empty_log() {
    let world = World::new();
    let log = world.create(&small());
    let end = |query| log.offset_for_time(query).expect("read").expect("always").offset;
    assert_eq!((end(TimeQuery::Earliest), end(TimeQuery::Latest)), (Offset(0), Offset(0)));
    assert_eq!(at(&log, 0), None);
    assert_eq!(log.offset_for_time(TimeQuery::MaxTimestamp).expect("read"), None);
    append(&log, Make::values(&["no timestamp"]).at(-1));
    assert_eq!(log.offset_for_time(TimeQuery::MaxTimestamp).expect("read"), None);
    append(&log, Make::values(&["a"]));
    assert_eq!((end(TimeQuery::Earliest), end(TimeQuery::Latest)), (Offset(0), Offset(2)));
    assert_eq!(at(&log, 0), Some((1, NOW_MS)));
}

#[test]
fn the_append_time_is_stamped_where_the_topic_wants_it() {
    let mut world = World::new();
    let config = LogConfig { timestamp_type: TimestampType::LogAppendTime, ..small() };
    let log = world.create(&config);
    for codec in [Compression::None, Compression::Zstd] {
        world.clock.advance(10);
        let info = append(&log, Make::times(&[5, i64::MAX / 2, 7]).compressed(codec));
        let now = NOW_MS + (info.first_offset.0 / 3 + 1) * 10;
        assert_eq!(info.log_append_time_ms, now);
        assert_eq!(at(&log, now), Some((info.first_offset.0, now)), "the record's own time does not count");
    }
    commit(&log);
    drop(log);
    world.crash(Crash::Dropped);
    let log = world.open(&config, synced_to(6));
    assert_eq!(at(&log, NOW_MS + 11), Some((3, NOW_MS + 20)), "re-stamped batches have good checksums");
}
