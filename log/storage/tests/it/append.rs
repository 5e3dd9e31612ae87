//! Appending and reading back.

use bytes::BytesMut;
use thalweg_protocol::record::{Batches, RecordBatch, RecordErrorKind};
use thalweg_protocol::{Compression, LeaderEpoch, Offset};
use thalweg_storage::testing::Crash;
use thalweg_storage::{AppendOrigin, CleanupPolicy, Error, LogConfig, ReadBound, Standing, TimeQuery};

use crate::harness::{EPOCH, Make, NOW_MS, World, append, commit, records, small, try_append, values};

#[test]
fn what_is_appended_is_read() {
    let world = World::new();
    let log = world.create(&small());
    let mut expected = Vec::new();
    for n in 0..100 {
        let (a, b) = (format!("value {n}"), format!("another {n}"));
        let info = append(&log, Make::values(&[&a, &b]));
        assert_eq!((info.first_offset, info.last_offset), (Offset(2 * n), Offset(2 * n + 1)));
        expected.extend([a, b]);
    }
    assert!(log.segment_count() > 5);
    assert_eq!(values(&log), expected);
    assert!(records(&log, Offset(0), ReadBound::HighWatermark).is_empty());
    commit(&log);
    for from in [0, 1, 77, 198, 199] {
        let found = records(&log, Offset(from), ReadBound::HighWatermark);
        let offsets: Vec<i64> = found.iter().map(|record| record.offset.0).collect();
        assert_eq!(offsets, (from..200).collect::<Vec<_>>());
    }
}

/// Appends a batch whose bytes were changed, and returns why it is refused.
fn refusal(config: LogConfig, make: Make, change: impl Fn(&mut [u8])) -> Error {
    let world = World::new();
    let log = world.create(&config);
    append(&log, Make::values(&["before"]));
    let size = log.size_in_bytes();
    let mut bytes = BytesMut::from(&make.batch().bytes()[..]);
    change(&mut bytes);
    let batch = RecordBatch::only(bytes.freeze()).expect("a batch");
    let origin = AppendOrigin::Client { guard: None, awaits_sync: true };
    let error = log.append_as_leader(&batch, EPOCH, origin).expect_err("refused");
    assert_eq!((log.size_in_bytes(), log.log_end_offset()), (size, Offset(1)), "nothing is appended");
    error
}

/// `compression.type`: whatever codec a batch comes with, the topic's is what is stored, and everything else stays as it was.
#[test]
fn a_topic_with_a_codec_of_its_own_stores_all_batches_with_it() {
    let value = "a".repeat(10_000);
    for stored in Compression::ALL {
        let world = World::new();
        let config = LogConfig { compression: Some((stored, None)), ..LogConfig::default() };
        let log = world.create(&config);
        for (sequence, sent) in Compression::ALL.into_iter().enumerate() {
            let make = Make::values(&[&value, "b"]).compressed(sent).by(7, 0, 2 * sequence as i32);
            let info = append(&log, make.clone());
            assert_eq!(info.first_offset, Offset(2 * sequence as i64));
            assert!(append(&log, make).is_duplicate, "a retry is known, however it is stored");
        }
        commit(&log);
        assert_eq!(values(&log), [&value[..], "b"].repeat(Compression::ALL.len()));
        let slice = log.read(Offset(0), 1 << 20, ReadBound::HighWatermark, true).expect("read").records;
        let bytes = slice.expect("records").read().expect("the file is there");
        for batch in Batches::new(bytes) {
            let batch = batch.expect("a batch");
            batch.verify().expect("its checksum is right");
            assert_eq!(batch.header().compression(), Ok(stored));
            assert_eq!((batch.header().producer_id.0, batch.header().max_timestamp), (7, NOW_MS));
        }
        let size = log.size_in_bytes();
        assert_eq!(stored == Compression::None, size > 5 * 10_000, "{stored}: {size} bytes");
    }
}

/// What is small enough as it comes may not be so as it would be stored.
#[test]
fn a_batch_that_its_topic_would_make_too_large_is_refused() {
    let world = World::new();
    let config = LogConfig {
        compression: Some((Compression::None, None)),
        max_message_bytes: 1_000,
        ..LogConfig::default()
    };
    let log = world.create(&config);
    let make = Make::values(&[&"a".repeat(10_000)]).compressed(Compression::Gzip);
    assert!(make.batch().size_in_bytes() < 1_000);
    let error = try_append(&log, make).expect_err("refused");
    assert!(
        matches!(&error, Error::InvalidBatch(problem) if problem.kind() == RecordErrorKind::TooLarge),
        "{error}"
    );
    assert_eq!(log.log_end_offset(), Offset(0));
}

/// Makes the checksum right again, so that only what it covers is wrong.
fn with_checksum(change: impl Fn(&mut [u8])) -> impl Fn(&mut [u8]) {
    move |bytes| {
        change(bytes);
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
}

/// A batch whose checksum is zero. Each bit of the value changes the checksum in a way of its own, whatever the others
/// are (it is linear): 64 of them are enough to choose from.
fn batch_with_checksum_zero() -> RecordBatch {
    let whole = Make::values(&["12345678"]).batch().into_bytes();
    let at = whole.windows(8).position(|window| window == b"12345678").expect("its value");
    let checksum = |bytes: &[u8]| crc32c::crc32c(&bytes[21..]);
    let original = checksum(&whole);
    // Which bits lead to which change; reduced as they come, by the highest bit of the change.
    let mut by_highest = [(0_u32, 0_u64); 32];
    let reduce = |mut change: u32, mut bits: u64, by_highest: &[(u32, u64); 32]| {
        while change != 0 {
            let (other, others) = by_highest[change.ilog2() as usize];
            if other == 0 {
                break;
            }
            (change, bits) = (change ^ other, bits ^ others);
        }
        (change, bits)
    };
    for bit in 0..64 {
        let mut flipped = whole.to_vec();
        flipped[at + bit / 8] ^= 1 << (bit % 8);
        let (change, bits) = reduce(checksum(&flipped) ^ original, 1 << bit, &by_highest);
        if change != 0 {
            by_highest[change.ilog2() as usize] = (change, bits);
        }
    }
    let (rest, bits) = reduce(original, 0, &by_highest);
    assert_eq!(rest, 0, "every change can be had");
    let mut forged = BytesMut::from(&whole[..]);
    for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
        forged[at + bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(checksum(&forged), 0);
    forged[17..21].fill(0);
    RecordBatch::only(forged.freeze()).expect("a batch")
}

#[test]
fn a_checksum_of_zero_is_as_good_as_any() {
    let mut world = World::new();
    let log = world.create(&small());
    let batch = batch_with_checksum_zero();
    for _ in 0..2 {
        log.append_as_leader(&batch, EPOCH, AppendOrigin::Client { guard: None, awaits_sync: true })
            .expect("it is appended");
    }
    commit(&log);
    assert_eq!(records(&log, Offset(0), ReadBound::HighWatermark).len(), 2);
    drop(log);
    world.crash(Crash::Kept);
    let log = world.open(&small(), Standing { synced_to: Some(Offset(1)), ..Standing::default() });
    assert_eq!(records(&log, Offset(0), ReadBound::LogEnd).len(), 2, "recovery takes it for what it is");
}

#[test]
fn what_no_log_takes_is_refused() {
    let make = || Make::values(&["a", "b", "c"]);
    let kind = |error: Error| match error {
        Error::InvalidBatch(problem) => problem.kind(),
        other => panic!("{other}"),
    };
    let flipped = refusal(small(), make(), |bytes| bytes[70] ^= 1);
    assert_eq!(kind(flipped), RecordErrorKind::Corrupt);
    for count in [-1, 0, 2, 4, i32::MAX] {
        let change = with_checksum(|bytes| bytes[57..61].copy_from_slice(&i32::to_be_bytes(count)));
        assert_eq!(kind(refusal(small(), make(), change)), RecordErrorKind::Invalid, "{count} records");
    }
    let control = with_checksum(|bytes| bytes[22] |= 0x20);
    assert_eq!(kind(refusal(small(), make().by(1, 0, 0), control)), RecordErrorKind::Invalid);
    let transactional = with_checksum(|bytes| bytes[22] |= 0x10);
    assert_eq!(kind(refusal(small(), make(), transactional)), RecordErrorKind::Invalid, "without a producer");
    let large = LogConfig { max_message_bytes: 90, ..small() };
    assert_eq!(kind(refusal(large, make(), |_| ())), RecordErrorKind::TooLarge);
    let hour = 60 * 60 * 1000;
    let future = refusal(small(), make().at(NOW_MS + hour + 1), |_| ());
    assert_eq!(kind(future), RecordErrorKind::Timestamp);
    let compact = CleanupPolicy { delete: false, compact: true };
    let keyless = refusal(LogConfig { cleanup_policy: compact, ..small() }, make().keyless(), |_| ());
    assert!(matches!(&keyless, Error::KeylessRecords { indexes } if indexes[..] == [0, 1, 2]), "{keyless}");
}

#[test]
fn a_wrong_maximum_of_timestamps_is_corrected() {
    let world = World::new();
    let log = world.create(&small());
    let mut bytes = BytesMut::from(&Make::times(&[5, 9, 7]).batch().bytes()[..]);
    with_checksum(|bytes| bytes[35..43].copy_from_slice(&77_i64.to_be_bytes()))(&mut bytes);
    let batch = RecordBatch::only(bytes.freeze()).expect("a batch");
    log.append_as_leader(&batch, EPOCH, AppendOrigin::Client { guard: None, awaits_sync: true })
        .expect("appended");
    let newest = log.offset_for_time(TimeQuery::MaxTimestamp).expect("read").expect("some");
    assert_eq!((newest.timestamp, newest.offset), (9, Offset(1)));
    assert_eq!(log.offset_for_time(TimeQuery::At(10)).expect("read"), None);
}

#[test]
fn only_offset_and_epoch_of_a_batch_are_changed() {
    let world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["before"]));
    let make = Make::values(&["a", "b"]).compressed(Compression::Zstd);
    let sent = make.batch();
    append(&log, make);
    let info = log.read(Offset(1), 1000, ReadBound::LogEnd, true).expect("read");
    let stored = info.records.expect("some").read().expect("read");
    assert_eq!(stored, sent.at(Offset(1), EPOCH).into_bytes());
}

#[test]
fn a_segment_ends_by_size_time_and_full_indexes() {
    let cases: [(&str, LogConfig, i64, usize); 4] = [
        ("size", LogConfig { segment_bytes: 800, ..LogConfig::default() }, 0, 2),
        ("time", LogConfig { segment_ms: 25, ..LogConfig::default() }, 10, 4),
        (
            "offset index",
            LogConfig { segment_index_bytes: 4 * 12, index_interval_bytes: 1, ..LogConfig::default() },
            0,
            2,
        ),
        (
            "time index",
            LogConfig { segment_index_bytes: 4 * 12, index_interval_bytes: 1, ..LogConfig::default() },
            1,
            3,
        ),
    ];
    for (case, config, step, at_least) in cases {
        let world = World::new();
        let log = world.create(&config);
        for n in 0..12 {
            append(&log, Make::values(&["a value"]).at(NOW_MS + step * n));
        }
        assert!(log.segment_count() >= at_least, "{case}: {} segments", log.segment_count());
        assert_eq!(values(&log).len(), 12, "{case}");
    }
    // A batch that is larger than a segment has one of its own.
    let world = World::new();
    let log = world.create(&small());
    for _ in 0..3 {
        append(&log, Make::values(&[&"x".repeat(2000)]));
    }
    assert_eq!((log.segment_count(), values(&log).len()), (3, 3));
}

#[test]
fn an_older_leader_cannot_append() {
    let world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["a"]));
    let batch = Make::values(&["b"]).batch();
    let error = log.append_as_leader(&batch, LeaderEpoch(2), AppendOrigin::Coordinator).expect_err("older");
    assert!(matches!(error, Error::StaleLeaderEpoch { current: EPOCH, found: LeaderEpoch(2) }), "{error}");
}
