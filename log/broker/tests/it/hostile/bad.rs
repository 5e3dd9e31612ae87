//! Batches that are wrong in one thing each, with the code that says so.

use bytes::{Bytes, BytesMut};
use thalweg_protocol::{Compression, ErrorCode};

use super::bombs;
use crate::calls::{batch, batch_at};

/// What is wrong, the batch, and the error that it gets.
pub type Bad = (String, Bytes, ErrorCode);

/// All of them. Their lengths and checksums are right, unless that is what is wrong.
pub fn batches() -> Vec<Bad> {
    let valid = batch(["first", "second", "third"]);
    let mut bad = fields(&valid);
    bad.extend(records(&valid));
    bad.extend(frames(&valid));
    bad.extend(lz4(&valid));
    bad.extend(bombs::repeated(&valid));
    bad
}

/// A batch with other bytes at `at`.
fn with(valid: &Bytes, at: usize, bytes: &[u8]) -> BytesMut {
    let mut batch = BytesMut::from(&valid[..]);
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    batch
}

/// Makes length and checksum right.
pub fn sealed(mut batch: BytesMut) -> Bytes {
    let length = (batch.len() - 12) as u32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&checksum.to_be_bytes());
    batch.freeze()
}

/// Where each field begins is drawn at `BatchHeader`.
fn fields(valid: &Bytes) -> Vec<Bad> {
    let mut bad = Vec::new();
    for (at, field) in [(57, "records count"), (23, "last offset delta")] {
        for value in [-1, 0, 1, 2, 3, 4, 1000, i32::MIN, i32::MAX] {
            let batch = with(valid, at, &value.to_be_bytes());
            if batch[..] != valid[..] {
                bad.push((format!("{field} {value}"), sealed(batch), ErrorCode::InvalidRecord));
            }
        }
    }
    for (attributes, expected) in [
        (0x05_u16, ErrorCode::UnsupportedCompressionType),
        (0x07, ErrorCode::UnsupportedCompressionType),
        (0x08, ErrorCode::InvalidRecord),
        (0x20, ErrorCode::InvalidRecord),
        (0x30, ErrorCode::TransactionalIdAuthorizationFailed),
        (0x40, ErrorCode::InvalidRecord),
        (0x80, ErrorCode::InvalidRecord),
        (0x8000, ErrorCode::InvalidRecord),
        // There is nothing compressed behind it.
        (0x01, ErrorCode::InvalidRecord),
        (0x02, ErrorCode::InvalidRecord),
        (0x03, ErrorCode::InvalidRecord),
        (0x04, ErrorCode::InvalidRecord),
    ] {
        let batch = with(valid, 21, &attributes.to_be_bytes());
        bad.push((format!("attributes {attributes:#x}"), sealed(batch), expected));
    }
    for (producer_id, epoch, sequence) in [(-2_i64, 0_i16, 0_i32), (1, -1, 0), (1, 0, -1)] {
        let mut batch = with(valid, 43, &producer_id.to_be_bytes());
        batch[51..53].copy_from_slice(&epoch.to_be_bytes());
        batch[53..57].copy_from_slice(&sequence.to_be_bytes());
        let what = format!("producer {producer_id}, {epoch}, {sequence}");
        bad.push((what, sealed(batch), ErrorCode::InvalidRecord));
    }
    let in_transaction = sealed(with(valid, 21, &0x10_u16.to_be_bytes()));
    bad.push((
        "a transaction of nobody".to_owned(),
        in_transaction,
        ErrorCode::TransactionalIdAuthorizationFailed,
    ));
    for magic in [0, 1, 3, 0xff] {
        let batch = sealed(with(valid, 16, &[magic]));
        bad.push((format!("magic {magic}"), batch, ErrorCode::UnsupportedForMessageFormat));
    }
    for timestamp in [-2, i64::MIN] {
        let batch = batch_at(timestamp, ["before all time"]);
        bad.push((format!("timestamp {timestamp}"), batch, ErrorCode::InvalidTimestamp));
    }
    bad
}

/// The first record: length, attributes, timestamp delta, offset delta, key length −1, value length.
fn records(valid: &Bytes) -> Vec<Bad> {
    let mut bad = Vec::new();
    for (at, field) in [(61, "record length"), (64, "offset delta"), (65, "key length"), (66, "value length")]
    {
        for value in [0x03, 0x05, 0x7e, 0x7f] {
            let batch = sealed(with(valid, at, &[value]));
            bad.push((format!("{field} {value:#x}"), batch, ErrorCode::InvalidRecord));
        }
    }
    let mut longer = BytesMut::from(&valid[..]);
    longer.extend_from_slice(&[0]);
    bad.push(("a byte behind the last record".to_owned(), sealed(longer), ErrorCode::InvalidRecord));
    let shorter = BytesMut::from(&valid[..valid.len() - 1]);
    bad.push(("a byte too few".to_owned(), sealed(shorter), ErrorCode::InvalidRecord));
    bad
}

/// Lengths and checksums that are not right.
fn frames(valid: &Bytes) -> Vec<Bad> {
    let mut bad = Vec::new();
    for length in [-1, 0, 48, valid.len() as i32 - 11, i32::MAX, i32::MIN] {
        let batch = with(valid, 8, &length.to_be_bytes()).freeze();
        bad.push((format!("length {length}"), batch, ErrorCode::CorruptMessage));
    }
    bad.push(("half a batch".to_owned(), valid.slice(..valid.len() / 2), ErrorCode::CorruptMessage));
    bad.push(("half a header".to_owned(), valid.slice(..30), ErrorCode::CorruptMessage));
    let twice = Bytes::from([&valid[..], &valid[..]].concat());
    bad.push(("two batches".to_owned(), twice, ErrorCode::InvalidRecord));
    let last = valid.len() - 1;
    let flipped = with(valid, last, &[valid[last] ^ 1]).freeze();
    bad.push(("a flipped bit".to_owned(), flipped, ErrorCode::CorruptMessage));
    bad
}

/// Frames of LZ4 that are in order, and that Java's consumers do not read: those whose blocks refer to each other, and
/// all but the first of several.
fn lz4(valid: &Bytes) -> Vec<Bad> {
    let frame = |flags: u8, stored: &[u8]| {
        let descriptor = [flags, 0x40];
        let mut frame = vec![0x04, 0x22, 0x4d, 0x18];
        frame.extend_from_slice(&descriptor);
        frame.push((twox_hash::XxHash32::oneshot(0, &descriptor) >> 8) as u8);
        frame.extend_from_slice(&(stored.len() as u32 | 1 << 31).to_le_bytes());
        frame.extend_from_slice(stored);
        frame.extend_from_slice(&[0; 4]);
        frame
    };
    let records = &valid[61..];
    let (one, another) = records.split_at(10);
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 7], &frame(0x60, records)[..]].concat();
    let cases = [
        ("linked blocks", frame(0x40, records)),
        ("two frames", [frame(0x60, one), frame(0x60, another)].concat()),
        ("a skippable frame", skippable),
    ];
    let batches = cases.map(|(what, payload)| {
        let mut batch = with(valid, 22, &[Compression::Lz4 as u8]);
        batch.truncate(61);
        batch.extend_from_slice(&payload);
        (format!("{what} of LZ4"), sealed(batch), ErrorCode::InvalidRecord)
    });
    batches.into()
}
