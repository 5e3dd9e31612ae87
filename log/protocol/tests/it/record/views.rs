//! Views over batches, the builder's bookkeeping, and stamps.

use bytes::{Bytes, BytesMut};
use thalweg_protocol::record::{
    BatchBuilder, BatchHeader, BatchProducer, Batches, ControlRecord, DecodedBatch, Header, Record,
    RecordBatch, RecordError, RecordFault, stamp_append_time,
};
use thalweg_protocol::{Compression, Compressor, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Scratch};

use super::{PRODUCER, Plain, batch_of, build, records_of, validated};
use crate::allocations::allocations_of;

fn three() -> Vec<Plain> {
    vec![
        Plain::new(0, 1000, Some("a"), Some("one")).with_header("h", Some("1")).with_header("h", None),
        Plain::new(1, 999, None, Some("two")),
        Plain::new(2, 1000, Some("c"), None),
    ]
}

#[test]
fn a_record_is_not_copied_out_of_an_uncompressed_batch() {
    let batch = build(&three(), Compression::None, None);
    let within = batch.bytes().as_ptr_range();
    let mut scratch = Scratch::new(0);
    for record in batch.records(&mut scratch).expect("not compressed") {
        let record = record.expect("a record");
        for part in [record.key, record.value].into_iter().flatten() {
            assert!(within.contains(&part.as_ptr()));
        }
    }
    for record in batch.decode(&mut scratch).expect("not compressed") {
        let record = record.expect("a record");
        for part in [record.key, record.value].into_iter().flatten() {
            assert!(within.contains(&part.as_ptr()));
        }
    }
}

#[test]
fn neither_building_nor_reading_allocates_per_record() {
    for compression in Compression::ALL {
        let mut builder = BatchBuilder::new(compression, None, 256 << 10);
        let mut compressor = Compressor::new();
        let mut scratch = Scratch::new(1 << 20);
        let mut round = |records: i32| {
            let (batch, building) = allocations_of(|| {
                for index in 0..records {
                    let headers = [Header::new("h", Some(b"v")), Header::new("h", None)];
                    builder
                        .append(i64::from(index), Some(b"key"), Some(&[b'v'; 100]), headers)
                        .expect("fits");
                }
                builder.finish(&mut compressor, None)
            });
            let (count, reading) = allocations_of(|| {
                let records = batch.records(&mut scratch).expect("decompresses");
                records.map(|record| record.expect("a record").headers.iter().count()).sum::<usize>()
            });
            assert_eq!(count, 2 * records as usize);
            (building, reading)
        };
        round(1000);
        let (building, reading) = round(1000);
        assert!(building <= 4, "{compression}: {building} allocations in building 1000 records");
        assert_eq!(reading, 0, "{compression}: allocations in reading 1000 records");
    }
}

#[test]
fn contexts_and_batches_move_between_threads() {
    fn moves<T: Send + 'static>() {}
    moves::<Compressor>();
    moves::<Scratch>();
    moves::<BatchBuilder>();
    moves::<RecordBatch>();
    moves::<DecodedBatch>();
}

#[test]
fn the_last_of_repeated_headers_counts_and_all_are_kept() {
    let batch = build(&three(), Compression::Zstd, None);
    let mut scratch = Scratch::new(1 << 20);
    let record = batch.records(&mut scratch).expect("decompresses").next().expect("there").expect("a record");
    assert_eq!(record.headers.len(), 2);
    assert_eq!(record.headers.last("h"), Some(Header::new("h", None)));
    assert_eq!(record.headers.last("other"), None);
    assert_eq!(records_of(&batch), Ok(three()));
}

#[test]
fn batches_end_quietly_where_the_last_is_cut_off() {
    let batches = [
        build(&three(), Compression::None, None).at(Offset(10), LeaderEpoch(1)),
        build(&three(), Compression::Lz4, None).at(Offset(13), LeaderEpoch(1)),
    ];
    let first = batches[0].size_in_bytes();
    let all: Bytes = batches
        .iter()
        .fold(BytesMut::new(), |mut all, batch| {
            all.extend_from_slice(batch.bytes());
            all
        })
        .freeze();
    for cut in 0..=all.len() {
        let mut iter = Batches::new(all.slice(..cut));
        let whole = if cut == all.len() { 2 } else { usize::from(cut >= first) };
        let read: Vec<RecordBatch> = iter.by_ref().map(|batch| batch.expect("no error")).collect();
        assert_eq!(read, batches[..whole], "cut at {cut}");
        let end = [0, first, all.len()][whole];
        assert_eq!(iter.remainder()[..], all[end..cut]);
        assert_eq!(iter.is_truncated(), cut > end, "cut at {cut}");
        assert!(iter.next().is_none());
    }
}

#[test]
fn a_batch_in_error_ends_the_iteration() {
    let mut bytes = BytesMut::from(&build(&three(), Compression::None, None).bytes()[..]);
    let second = bytes.len();
    bytes.extend_from_slice(&bytes.clone());
    bytes[second + 16] = 1;
    let mut iter = Batches::new(bytes.freeze());
    assert!(iter.next().expect("the first").is_ok());
    assert_eq!(iter.next(), Some(Err(RecordError::UnsupportedMagic { magic: 1 })));
    assert_eq!(iter.next(), None);
    assert!(!iter.is_truncated());
    assert_eq!(iter.remainder().len(), second);
}

#[test]
fn only_takes_exactly_one_batch() {
    let batch = build(&three(), Compression::None, None);
    let mut two = BytesMut::from(&batch.bytes()[..]);
    two.extend_from_slice(b"x");
    let two = two.freeze();
    assert_eq!(RecordBatch::only(two.clone()), Err(RecordError::MoreThanOneBatch { extra: 1 }));
    assert_eq!(RecordBatch::first(&two), Ok(batch.clone()));
    for cut in 0..batch.size_in_bytes() {
        let error = RecordBatch::only(batch.bytes().slice(..cut)).expect_err("cut off");
        assert!(matches!(error, RecordError::Truncated { available, .. } if available == cut));
    }
}

#[test]
fn stamps_change_what_they_say_and_keep_the_checksum_right() {
    for compression in [Compression::None, Compression::Gzip] {
        let batch = build(&three(), compression, Some(&PRODUCER));
        let other = BatchProducer {
            id: ProducerId(9),
            epoch: ProducerEpoch(0),
            base_sequence: 0,
            transactional: false,
        };
        assert_eq!(batch.clone().from_producer(&other), build(&three(), compression, Some(&other)));

        let stamped = batch.clone().appended_at(5000);
        stamped.verify().expect("its checksum is right");
        assert!(stamped.header().is_log_append_time());
        assert_eq!(stamped.header().max_timestamp, 5000);
        let times: Vec<i64> =
            records_of(&stamped).expect("its records").into_iter().map(|record| record.timestamp).collect();
        assert_eq!(times, [5000; 3]);

        let wrong = batch.clone().with_max_timestamp(-1);
        wrong.verify().expect("its checksum is right");
        let valid = validated(&wrong).expect("valid all the same");
        assert_eq!((valid.max_timestamp, valid.max_timestamp_delta), (1000, 0));
        assert_eq!(wrong.with_max_timestamp(valid.max_timestamp), batch);
    }
}

#[test]
fn a_shared_batch_is_copied_before_it_changes() {
    let batch = build(&three(), Compression::None, None);
    let moved = batch.clone().at(Offset(77), LeaderEpoch(3));
    assert_eq!(batch.header().base_offset, Offset(0));
    assert_eq!((moved.header().base_offset, moved.header().next_offset()), (Offset(77), Offset(80)));
    moved.verify().expect("offset and epoch lie outside of the checksum");
    let at = moved.bytes().as_ptr();
    let again = moved.at(Offset(78), LeaderEpoch(3));
    assert_eq!(again.bytes().as_ptr(), at, "an unshared batch changes in place");
}

#[test]
#[should_panic(expected = "only checked batches are stamped")]
fn half_a_header_is_not_stamped() {
    stamp_append_time(&mut [0; BatchHeader::SIZE - 1], 0);
}

#[test]
fn a_batch_that_is_given_its_producer_later_is_the_same_and_not_copied() {
    for compression in Compression::ALL {
        let mut builder = BatchBuilder::new(compression, None, 0);
        for _ in 0..2 {
            for record in three() {
                builder
                    .append(
                        record.timestamp,
                        record.key.as_deref(),
                        record.value.as_deref(),
                        record.headers(),
                    )
                    .expect("fits");
            }
            let unsummed = builder.finish_unsummed(&mut Compressor::new());
            assert!(unsummed.verify().is_err(), "{compression}: it has no checksum");
            let before = unsummed.bytes().as_ptr();
            let batch = unsummed.from_producer(&PRODUCER);
            assert_eq!(batch.bytes().as_ptr(), before, "{compression}");
            assert_eq!(batch, build(&three(), compression, Some(&PRODUCER)));
        }
    }
}

#[test]
fn the_builder_knows_its_size_and_starts_afresh() {
    let mut builder = BatchBuilder::new(Compression::None, None, 1024);
    let mut compressor = Compressor::new();
    let mut bound = BatchHeader::SIZE;
    for round in 0..3 {
        assert!(builder.is_empty());
        assert_eq!(builder.size_in_bytes(), BatchHeader::SIZE);
        for record in three() {
            bound += BatchBuilder::record_size_at_most(
                record.key.as_deref(),
                record.value.as_deref(),
                record.headers(),
            );
            builder
                .append(
                    record.timestamp + round,
                    record.key.as_deref(),
                    record.value.as_deref(),
                    record.headers(),
                )
                .expect("fits");
            assert!(builder.size_in_bytes() <= bound);
        }
        assert_eq!(builder.records_count(), 3);
        let size = builder.size_in_bytes();
        if round == 1 {
            builder.clear();
            continue;
        }
        let batch = builder.finish(&mut compressor, None);
        assert_eq!(batch.size_in_bytes(), size);
        assert_eq!(batch.header().base_timestamp, 1000 + round);
        assert_eq!(RecordBatch::only(batch.bytes().clone()), Ok(batch));
    }
}

#[test]
fn a_cleaned_batch_has_gaps_or_no_records() {
    let mut payload = Vec::new();
    // Two records of seven bytes at deltas 1 and 4 of 6 offsets.
    payload.extend_from_slice(&[12, 0, 0, 2, 1, 1, 0]);
    payload.extend_from_slice(&[12, 0, 0, 8, 1, 1, 0]);
    let cleaned = batch_of(&payload, |header| {
        header.base_offset = Offset(100);
        header.last_offset_delta = 5;
        header.records_count = 2;
    });
    cleaned.verify().expect("fewer records than offsets");
    let offsets: Vec<i64> =
        records_of(&cleaned).expect("its records").into_iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [101, 104]);
    assert!(validated(&cleaned).is_err(), "but no producer sends it");

    for compression in Compression::ALL {
        let empty = batch_of(&[], |header| {
            header.attributes = compression as i16;
            header.last_offset_delta = 5;
            header.records_count = 0;
        });
        empty.verify().expect("no records");
        assert_eq!(records_of(&empty), Ok(Vec::new()), "{compression}");
    }
}

#[test]
fn a_reader_never_goes_back() {
    for (second, refused) in [(0, true), (1, true), (2, false), (5, false), (6, true)] {
        // The first record is at delta 1 of 6 offsets.
        let payload = [[12, 0, 0, 2, 1, 1, 0], [12, 0, 0, 2 * second as u8, 1, 1, 0]].concat();
        let batch = batch_of(&payload, |header| {
            header.last_offset_delta = 5;
            header.records_count = 2;
        });
        let fault = RecordFault::OffsetDelta { delta: second };
        let expected = if refused { Err(RecordError::Record { index: 1, fault }) } else { Ok(2) };
        assert_eq!(records_of(&batch).map(|records| records.len()), expected, "delta {second}");
    }
}

#[test]
fn control_records_of_other_types_are_told_apart_from_malformed_ones() {
    let parse = |key: Option<&[u8]>, value: Option<&[u8]>| {
        let headers = thalweg_protocol::record::Headers::default();
        ControlRecord::parse(&Record { offset: Offset(0), timestamp: 0, key, value, headers })
    };
    assert_eq!(parse(Some(&[0, 0, 0, 3]), None), Ok(ControlRecord::Other(3)));
    for (key, value) in [
        (None, None),
        (Some(&[0, 0, 0][..]), None),
        (Some(&[0xff, 0xff, 0, 1]), Some(&[0; 6][..])),
        (Some(&[0, 0, 0, 1]), None),
        (Some(&[0, 0, 0, 0]), Some(&[0; 5])),
    ] {
        assert_eq!(parse(key, value), Err(RecordError::ControlRecord));
    }
}
