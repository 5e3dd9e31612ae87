//! Bytes that were damaged or made up: never a panic, never more memory than the limits allow.

use bytes::{Bytes, BytesMut};
use thalweg_protocol::record::{
    BatchHeader, Batches, RecordBatch, RecordError, stamp_max_timestamp, validate,
};
use thalweg_protocol::{Compression, Scratch};

use super::{PRODUCER, Plain, batch_of, build, records_of, rules, validated};
use crate::allocations::peak_of;

fn records() -> Vec<Plain> {
    vec![
        Plain::new(0, 1_357_016_400_000, Some("N14228"), Some("{\"carrier\":\"UA\",\"flight\":1545}"))
            .with_header("trace", Some("one"))
            .with_header("trace", None),
        Plain::new(1, 1_357_016_400_500, None, Some("")),
        Plain::new(2, 1_357_016_399_000, Some("tombstone"), None),
        Plain::new(3, 1_357_016_399_000, Some("N14228"), Some(&"the same again ".repeat(12))),
    ]
}

/// What may be done with bytes that claim to be a batch; if they pass, all of it agrees.
fn exercise(bytes: &Bytes, scratch: &mut Scratch) -> bool {
    let Ok(batch) = RecordBatch::first(bytes) else {
        return false;
    };
    let _ = batch.verify();
    let valid = validate(&batch, &rules(), scratch);
    let records = batch.records(scratch).and_then(|records| {
        records.map(|record| record.map(|r| r.headers.iter().count())).collect::<Result<Vec<_>, _>>()
    });
    let header = batch.header();
    let _ = (header.last_offset(), header.next_offset(), header.last_sequence(), header.size_in_bytes());
    if let Ok(valid) = valid {
        let records = records.expect("what was validated is read");
        assert_eq!(records.len(), valid.record_count as usize);
    }
    valid.is_ok()
}

#[test]
fn every_byte_may_be_wrong() {
    let mut scratch = Scratch::new(64 << 10);
    for compression in Compression::ALL {
        let good = build(&records(), compression, Some(&PRODUCER));
        assert!(exercise(good.bytes(), &mut scratch));
        let ((), peak) = peak_of(|| {
            for at in 0..good.size_in_bytes() {
                for flip in [0x01, 0x02, 0x10, 0x40, 0x80, 0x7f, 0xff] {
                    let mut bytes = BytesMut::from(&good.bytes()[..]);
                    bytes[at] ^= flip;
                    let damaged = bytes.clone().freeze();
                    let passes = exercise(&damaged, &mut scratch);
                    // Base offset and leader epoch are the broker's to set and lie outside of the checksum.
                    let free = at < 8 || (12..16).contains(&at);
                    assert_eq!(passes, free, "{compression}: byte {at} flipped by {flip:#x}");
                    // The same with a checksum that is right, as a hostile producer would send it.
                    let max_timestamp = i64::from_be_bytes(bytes[35..43].try_into().expect("eight bytes"));
                    stamp_max_timestamp(&mut bytes, max_timestamp);
                    exercise(&bytes.freeze(), &mut scratch);
                }
            }
        });
        assert!(peak < 512 << 10, "{compression}: {peak} bytes");
    }
}

#[test]
fn every_batch_that_is_cut_off_is_refused() {
    for compression in Compression::ALL {
        let good = build(&records(), compression, None);
        let payload = &good.bytes()[BatchHeader::SIZE..];
        for cut in 0..payload.len() {
            // Length and checksum fit what is left.
            let batch = batch_of(&payload[..cut], |header| {
                header.attributes = compression as i16;
                header.last_offset_delta = 3;
                header.records_count = 4;
            });
            batch.verify().expect("the header is right");
            validated(&batch).expect_err("records are missing");
            records_of(&batch).expect_err("records are missing");
        }
    }
}

#[test]
fn made_up_records_do_no_harm() {
    let mut random = fastrand::Rng::with_seed(2013);
    let mut scratch = Scratch::new(64 << 10);
    let ((), peak) = peak_of(|| {
        for _ in 0..60_000 {
            let len = random.usize(..200);
            // Small numbers lead deeper than large ones.
            let most = [4, 32, 255][random.usize(..3)];
            let payload: Vec<u8> = std::iter::repeat_with(|| random.u8(..=most)).take(len).collect();
            let batch = batch_of(&payload, |header| {
                header.attributes = random.i16(..8);
                header.records_count = random.i32(-1..5);
                header.last_offset_delta = random.i32(-1..5);
                header.base_timestamp = [0, i64::MAX, i64::MIN][random.usize(..3)];
                header.base_offset.0 = [0, i64::MAX, i64::MIN][random.usize(..3)];
            });
            exercise(batch.bytes(), &mut scratch);
        }
    });
    assert!(peak < 512 << 10, "{peak} bytes");
}

#[test]
fn made_up_bytes_are_no_batches() {
    let mut random = fastrand::Rng::with_seed(1113);
    for _ in 0..20_000 {
        let len = random.usize(..300);
        let mut bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(len).collect();
        if len > 16 {
            bytes[16] = 2;
            bytes[8..11].fill(0);
        }
        for batch in Batches::new(Bytes::from(bytes)).flatten() {
            batch.verify().expect_err("a checksum does not come about by chance");
        }
    }
}

#[test]
fn messages_of_the_old_formats_are_named() {
    for magic in [0, 1, 3, -1] {
        // The smallest message of format 0 has 26 bytes.
        let mut message = [0; 26];
        message[16] = magic as u8;
        let refused = Err(RecordError::UnsupportedMagic { magic });
        assert_eq!(RecordBatch::only(Bytes::copy_from_slice(&message)), refused);
    }
}

#[test]
fn extreme_headers_do_not_overflow() {
    let batch = batch_of(&[12, 0, 0, 0, 1, 1, 0], |header| {
        header.base_offset.0 = i64::MAX;
        header.last_offset_delta = i32::MAX;
        header.base_timestamp = i64::MAX;
        header.base_sequence = i32::MAX;
        header.records_count = i32::MAX;
    });
    assert_eq!(batch.header().next_offset().0, i64::MAX);
    let mut bytes = batch.bytes().to_vec();
    bytes[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    let needed = i32::MAX as usize + BatchHeader::OVERHEAD;
    assert_eq!(
        RecordBatch::first(&Bytes::from(bytes.clone())),
        Err(RecordError::Truncated { needed, available: 68 })
    );
    for length in [-1, 0, 48, i32::MIN] {
        bytes[8..12].copy_from_slice(&i32::to_be_bytes(length));
        assert_eq!(RecordBatch::first(&Bytes::from(bytes.clone())), Err(RecordError::BatchLength { length }));
    }
}
