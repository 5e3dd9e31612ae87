//! What a broker refuses, case by case. Lengths, checksum and counts of the header are right unless the case is
//! about them.

use std::io::Write;

use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
use thalweg_protocol::record::{
    BatchHeader, RecordBatch, RecordError, RecordErrorKind, RecordFault, TransactionMarker, ValidBatch,
    ValidationRules, validate,
};
use thalweg_protocol::{Compression, Compressor, ProducerEpoch, ProducerId, Scratch};

use super::{PRODUCER, Plain, batch_of, build, rules, validated};

/// A record of null key and value at this delta; `bytes` are its fields from the timestamp delta on.
fn record(fields: &[u8]) -> Vec<u8> {
    let mut record = vec![2 * (fields.len() as u8 + 1), 0];
    record.extend_from_slice(fields);
    record
}

fn at_delta(delta: u8) -> Vec<u8> {
    record(&[0, delta * 2, 1, 1, 0])
}

/// A batch with these records, one after the other, in these codecs.
fn batch(
    records: &[Vec<u8>],
    compression: Compression,
    change: impl FnOnce(&mut BatchHeader),
) -> RecordBatch {
    let mut payload = Vec::new();
    Compressor::new().compress(compression, None, &records.concat(), &mut payload);
    batch_of(&payload, |header| {
        header.attributes = compression as i16;
        header.records_count = records.len() as i32;
        header.last_offset_delta = records.len() as i32 - 1;
        change(header);
    })
}

#[track_caller]
fn check(records: &[Vec<u8>], expected: Result<i32, RecordError>) {
    for compression in Compression::ALL {
        let result = validated(&batch(records, compression, |_| ()));
        assert_eq!(result.map(|valid| valid.record_count), expected, "{compression}");
    }
}

fn fault(index: i32, fault: RecordFault) -> Result<i32, RecordError> {
    Err(RecordError::Record { index, fault })
}

#[test]
fn offset_deltas_count_from_zero() {
    check(&[at_delta(0), at_delta(1), at_delta(2)], Ok(3));
    check(&[at_delta(1), at_delta(2)], fault(0, RecordFault::OffsetDelta { delta: 1 }));
    check(&[at_delta(0), at_delta(0)], fault(1, RecordFault::OffsetDelta { delta: 0 }));
    check(&[at_delta(0), at_delta(2)], fault(1, RecordFault::OffsetDelta { delta: 2 }));
    check(&[record(&[0, 1, 1, 1, 0])], fault(0, RecordFault::OffsetDelta { delta: -1 }));
}

#[test]
fn lengths_lie_within_their_record() {
    check(&[record(&[0, 0, 2, b'k', 2, b'v', 0])], Ok(1));
    check(&[record(&[0, 0, 3, 1, 0])], fault(0, RecordFault::KeyLength { length: -2 }));
    check(&[record(&[0, 0, 1, 3, 0])], fault(0, RecordFault::ValueLength { length: -2 }));
    check(&[at_delta(0), record(&[0, 2, 8, 1, 0])], fault(1, RecordFault::KeyLength { length: 4 }));
    check(&[record(&[0, 0, 1, 4, 0])], fault(0, RecordFault::ValueLength { length: 2 }));
    check(&[record(&[0, 0, 1, 1, 0, 0])], fault(0, RecordFault::TrailingBytes { extra: 1 }));
    check(&[record(&[0, 0, 1, 1, 1, 0])], fault(0, RecordFault::HeaderCount { count: -1 }));
    check(&[record(&[0, 0, 1, 1, 6, 0, 1])], fault(0, RecordFault::HeaderCount { count: 3 }));
    check(&[record(&[0, 0, 1, 1, 2, 1, 1])], fault(0, RecordFault::HeaderKeyLength { length: -1 }));
    check(&[record(&[0, 0, 1, 1, 2, 2, b'k', 3])], fault(0, RecordFault::HeaderValueLength { length: -2 }));
    check(&[record(&[0, 0, 1, 1, 2, 2, b'k', 1])], Ok(1));
    check(&[record(&[0, 0, 1, 1, 0x80])], fault(0, RecordFault::Varint));
    check(&[vec![1; 7]], fault(0, RecordFault::Length { length: -1, available: 6 }));
    check(&[vec![14, 0, 0, 0, 1, 1, 0]], fault(0, RecordFault::Length { length: 7, available: 6 }));
    check(&[vec![0; 7]], fault(0, RecordFault::Truncated));
    check(&[vec![0x80; 7]], fault(0, RecordFault::Varint));
}

#[test]
fn counts_and_records_agree() {
    let two = [at_delta(0), at_delta(1)];
    for compression in Compression::ALL {
        for (records_count, last_offset_delta) in
            [(2, 2), (1, 1), (0, 1), (0, -1), (-1, -2), (i32::MIN, i32::MAX)]
        {
            let batch = batch(&two, compression, |header| {
                header.records_count = records_count;
                header.last_offset_delta = last_offset_delta;
            });
            let expected = Err(RecordError::RecordCount { records_count, last_offset_delta });
            assert_eq!(validated(&batch), expected, "{compression}");
        }
        let counted = |count: i32| {
            validated(&batch(&two, compression, |header| {
                header.records_count = count;
                header.last_offset_delta = count - 1;
            }))
        };
        assert_eq!(counted(1), Err(RecordError::TrailingBytes { extra: 7 }), "{compression}");
        let too_many = RecordError::RecordCount { records_count: 3, last_offset_delta: 2 };
        assert_eq!(counted(3), Err(too_many), "{compression}");
        let too_many = RecordError::RecordCount { records_count: i32::MAX, last_offset_delta: i32::MAX - 1 };
        assert_eq!(counted(i32::MAX), Err(too_many), "{compression}");
    }
}

/// A batch of one record whose records are compressed to `payload`.
fn compressed(compression: Compression, payload: &[u8]) -> Result<i32, RecordError> {
    let batch = batch_of(payload, |header| {
        header.attributes = compression as i16;
        header.records_count = 1;
        header.last_offset_delta = 0;
    });
    validated(&batch).map(|valid| valid.record_count)
}

#[test]
fn what_not_every_reader_takes_is_not_taken() {
    let records = record(&[0, 0, 1, 1, 0]);
    let lz4 = |mode: BlockMode, input: &[u8]| {
        let info = FrameInfo::new().block_mode(mode).block_checksums(true).content_checksum(true);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(input).expect("into memory");
        encoder.finish().expect("into memory")
    };
    let frame = lz4(BlockMode::Independent, &records);
    let refused = Err(RecordError::Decompression { compression: Compression::Lz4 });
    let skippable = [0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9];
    let (one, another) = records.split_at(3);
    let parts = [one, another].map(|part| lz4(BlockMode::Independent, part)).concat();
    for (what, payload, expected) in [
        ("a frame", frame.clone(), Ok(1)),
        ("linked blocks", lz4(BlockMode::Linked, &records), refused.clone()),
        ("two frames", parts, refused.clone()),
        (
            "an empty frame behind",
            [frame.clone(), lz4(BlockMode::Independent, &[])].concat(),
            refused.clone(),
        ),
        ("a skippable frame before", [&skippable, &frame[..]].concat(), refused.clone()),
        ("a skippable frame behind", [&frame[..], &skippable].concat(), refused),
    ] {
        assert_eq!(compressed(Compression::Lz4, &payload), expected, "{what}");
    }
    let mut snappy = Vec::new();
    Compressor::new().compress(Compression::Snappy, None, &records, &mut snappy);
    assert_eq!(compressed(Compression::Snappy, &snappy), Ok(1));
    snappy[11] = 0;
    let refused = Err(RecordError::Decompression { compression: Compression::Snappy });
    assert_eq!(compressed(Compression::Snappy, &snappy), refused, "version 0 of Xerial's header");
}

#[test]
fn attributes_are_a_producers() {
    let attributes = |attributes: i16| {
        validated(&batch(&[at_delta(0)], Compression::None, |header| {
            header.attributes = attributes;
        }))
        .map(|valid| valid.record_count)
    };
    assert_eq!(attributes(0), Ok(1));
    for id in 5..=7 {
        assert_eq!(attributes(id), Err(RecordError::UnknownCompression { id: id as i8 }));
    }
    for refused in [1 << 3, 1 << 6, 1 << 7, 1 << 14, i16::MIN] {
        assert_eq!(attributes(refused), Err(RecordError::Attributes { attributes: refused }));
    }
    assert_eq!(attributes(1 << 5), Err(RecordError::ControlBatch));
}

#[test]
fn only_a_coordinator_writes_markers() {
    let marker = TransactionMarker { commit: true, coordinator_epoch: 1 };
    let batch = marker.to_batch(ProducerId(7), ProducerEpoch(0), 5);
    assert_eq!(validated(&batch), Err(RecordError::ControlBatch));
    let rules = ValidationRules { allow_control: true, ..rules() };
    let valid = validate(&batch, &rules, &mut Scratch::new(0)).expect("a coordinator's");
    assert_eq!((valid.record_count, valid.max_timestamp, valid.first_keyless), (1, 5, None));
}

#[test]
fn producer_fields_fit_together() {
    let fields = |id: i64, epoch: i16, sequence: i32, transactional: bool| {
        validated(&batch(&[at_delta(0)], Compression::None, |header| {
            header.producer_id = ProducerId(id);
            header.producer_epoch = ProducerEpoch(epoch);
            header.base_sequence = sequence;
            header.attributes = if transactional { 1 << 4 } else { 0 };
        }))
        .is_ok()
    };
    for (id, epoch, sequence, transactional, taken) in [
        (-1, -1, -1, false, true),
        (-1, 0, 0, false, true),
        (-1, -1, -1, true, false),
        (0, 0, 0, false, true),
        (7, 3, i32::MAX, true, true),
        (7, -1, 0, false, false),
        (7, 3, -1, false, false),
        (7, 3, -1, true, false),
        (-2, 0, 0, false, false),
        (i64::MIN, 0, 0, true, false),
    ] {
        assert_eq!(fields(id, epoch, sequence, transactional), taken, "{id}, {epoch}, {sequence}");
    }
}

#[test]
fn timestamps_lie_in_the_range() {
    let times = |times: &[i64], rules: &ValidationRules| {
        let records: Vec<Plain> = times.iter().map(|&time| Plain::new(0, time, None, None)).collect();
        validate(&build(&records, Compression::None, None), rules, &mut Scratch::new(0))
            .map(|valid| (valid.max_timestamp, valid.max_timestamp_delta))
    };
    let year = ValidationRules { timestamps: Some(1000..=2000), ..rules() };
    assert_eq!(times(&[1000, 2000, 1500, 2000], &year), Ok((2000, 1)));
    assert_eq!(times(&[-1, -1], &year), Ok((-1, 0)), "no timestamp is always taken");
    let refused =
        |index, timestamp| Err(RecordError::Timestamp { index, timestamp, earliest: 1000, latest: 2000 });
    assert_eq!(times(&[1000, 999], &year), refused(1, 999));
    assert_eq!(times(&[2001], &year), refused(0, 2001));
    assert_eq!(
        times(&[1000, 1000 + 100 * 365 * 86_400_000], &year),
        refused(1, 1000 + 100 * 365 * 86_400_000)
    );

    let any = ValidationRules { timestamps: None, ..rules() };
    assert_eq!(times(&[-1, 0, i64::MAX], &any), Ok((i64::MAX, 2)));
    let negative = RecordError::Timestamp { index: 0, timestamp: -2, earliest: i64::MIN, latest: i64::MAX };
    assert_eq!(times(&[-2], &any), Err(negative));

    // A delta that takes the sum beyond what an i64 holds.
    let overflowing = batch(&[record(&[2, 0, 1, 1, 0])], Compression::None, |header| {
        header.base_timestamp = i64::MAX;
    });
    let negative = RecordError::Timestamp { index: 0, timestamp: i64::MIN, earliest: 0, latest: i64::MAX };
    assert_eq!(validated(&overflowing), Err(negative));
}

#[test]
fn sizes_stay_within_their_limits() {
    let records = vec![Plain::new(0, 0, Some("k"), Some(&"value ".repeat(1000))); 10];
    for compression in Compression::ALL {
        let batch = build(&records, compression, Some(&PRODUCER));
        let size = batch.size_in_bytes();
        let uncompressed = build(&records, Compression::None, None).size_in_bytes() - BatchHeader::SIZE;
        let with = |max_batch_bytes: usize, limit: usize| {
            validate(&batch, &ValidationRules { max_batch_bytes, ..rules() }, &mut Scratch::new(limit))
        };
        let valid = ValidBatch {
            record_count: 10,
            max_timestamp: 0,
            max_timestamp_delta: 0,
            first_keyless: None,
            uncompressed_bytes: uncompressed,
        };
        assert_eq!(with(size, uncompressed), Ok(valid), "{compression}");
        let too_large = with(size - 1, uncompressed).expect_err("too large");
        assert_eq!(too_large, RecordError::BatchTooLarge { size, limit: size - 1 });
        assert_eq!(too_large.kind(), RecordErrorKind::TooLarge);
        if compression != Compression::None {
            let limit = uncompressed - 1;
            assert_eq!(with(size, limit), Err(RecordError::DecompressedTooLarge { limit }), "{compression}");
        }
    }
}
