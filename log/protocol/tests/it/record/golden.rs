//! Batches as Kafka 4.4's own `MemoryRecordsBuilder` writes them: with base offset 1000, leader epoch 5,
//! producer 7, epoch 3, sequence 40, transactional; three special records and, where compressed, 600 like a
//! flight's.

use bytes::Bytes;
use thalweg_protocol::record::{ControlRecord, RecordBatch, TransactionMarker};
use thalweg_protocol::{Compression, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Scratch};

use super::{PRODUCER, Plain, build, records_of, validated};

fn special() -> Vec<Plain> {
    vec![
        Plain::new(1000, 1_357_016_400_000, Some("N14228"), Some("first"))
            .with_header("trace", Some("one"))
            .with_header("trace", Some("two"))
            .with_header("empty", None),
        Plain::new(1001, 1_357_016_400_500, None, Some("")),
        Plain::new(1002, 1_357_016_399_000, Some("tombstone"), None),
    ]
}

fn flights() -> impl Iterator<Item = Plain> {
    (0..600).map(|i| {
        let value = format!(
            "{{\"carrier\":\"UA\",\"flight\":{i},\"origin\":\"EWR\",\"dest\":\"IAH\",\"dep_delay\":{},\
             \"time_hour\":\"2013-01-01T05:00:00Z\"}}",
            i * 31 % 97 - 10
        );
        Plain::new(
            1003 + i,
            1_357_016_400_000 + i * 60_000,
            Some(&format!("N{}", i * 7919 % 997)),
            Some(&value),
        )
    })
}

fn check(java: &'static [u8], compression: Compression, records: &[Plain]) {
    let batch = RecordBatch::only(Bytes::from_static(java)).expect("one batch");
    batch.verify().expect("Java's checksum");
    assert_eq!(records_of(&batch), Ok(records.to_vec()), "{compression}");
    let header = batch.header();
    assert_eq!(header.compression(), Ok(compression));
    assert_eq!(
        (header.base_offset, header.last_offset()),
        (Offset(1000), Offset(999 + records.len() as i64))
    );
    assert_eq!((header.producer_id, header.producer_epoch), (ProducerId(7), ProducerEpoch(3)));
    assert_eq!((header.base_sequence, header.last_sequence()), (40, 39 + records.len() as i32));
    assert!(header.is_transactional() && !header.is_control() && !header.is_log_append_time());
    let valid = validated(&batch).expect("a producer may send it");
    assert_eq!(valid.record_count, records.len() as i32);
    assert_eq!(valid.max_timestamp, header.max_timestamp);
    assert_eq!(valid.first_keyless, Some(1));

    let ours = build(records, compression, Some(&PRODUCER)).at(Offset(1000), LeaderEpoch(5));
    assert_eq!(records_of(&ours), Ok(records.to_vec()), "{compression}");
    match compression {
        // Compressors may differ, and Java's builder takes the first timestamp for the base as we do.
        Compression::None => assert_eq!(ours.bytes()[..], *java, "the same bytes as Java's"),
        _ => assert!(ours.size_in_bytes() < java.len() * 3 / 2, "{compression}: {}", ours.size_in_bytes()),
    }
}

#[test]
fn batches_of_java_are_read_and_built() {
    check(include_bytes!("golden/java-none.batch"), Compression::None, &special());
    let all: Vec<Plain> = special().into_iter().chain(flights()).collect();
    check(include_bytes!("golden/java-gzip.batch"), Compression::Gzip, &all);
    check(include_bytes!("golden/java-snappy.batch"), Compression::Snappy, &all);
    check(include_bytes!("golden/java-lz4.batch"), Compression::Lz4, &all);
    check(include_bytes!("golden/java-zstd.batch"), Compression::Zstd, &all);
}

#[test]
fn markers_of_java_are_read_and_built() {
    let commit: &'static [u8] = include_bytes!("golden/java-commit.batch");
    let abort: &'static [u8] = include_bytes!("golden/java-abort.batch");
    for (java, commit) in [(commit, true), (abort, false)] {
        let marker = TransactionMarker { commit, coordinator_epoch: 11 };
        let ours = marker.to_batch(ProducerId(7), ProducerEpoch(3), 1_357_016_400_000);
        assert_eq!(ours.bytes()[..], *java, "commit: {commit}");
        let batch = RecordBatch::only(Bytes::from_static(java)).expect("one batch");
        assert_eq!(batch, ours);
        batch.verify().expect("Java's checksum");
        assert!(batch.header().is_control() && batch.header().is_transactional());
        let mut scratch = Scratch::new(0);
        let mut records = batch.records(&mut scratch).expect("not compressed");
        let record = records.next().expect("one record").expect("a record");
        assert_eq!(ControlRecord::parse(&record), Ok(ControlRecord::EndTransaction(marker)));
        assert!(records.next().is_none());
    }
}
