//! What a broker checks before it appends a producer's batch.

use std::ops::RangeInclusive;

use super::error::{RecordError, RecordFault};
use super::header::{DELETE_HORIZON, TIMESTAMP_TYPE};
use super::single::{SMALLEST, take_record};
use super::{BatchHeader, RecordBatch};
use crate::compression::{Compression, Scratch, is_read_by_all};
use crate::ids::ProducerId;

/// What a topic takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationRules {
    /// The largest batch in bytes, as it is sent (`max.message.bytes`).
    pub max_batch_bytes: usize,
    /// The timestamps taken, in ms since 1970 (`message.timestamp.before.max.ms` and `.after.max.ms`); −1, no
    /// timestamp, is always taken and anything below it never. `None` on topics with log-append time, which
    /// overwrites them.
    pub timestamps: Option<RangeInclusive<i64>>,
    /// Whether control batches are taken: only from the broker's own coordinators.
    pub allow_control: bool,
}

/// What was learned about a batch while validating it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidBatch {
    /// How many records there are, at least one; their offset deltas are 0, 1, 2, ….
    pub record_count: i32,
    /// The largest timestamp of the records, in ms since 1970; −1 where none has one. Some old clients write
    /// another into the header: where it differs, correct the header with
    /// [`stamp_max_timestamp`](super::stamp_max_timestamp), since the time index is rebuilt from headers.
    pub max_timestamp: i64,
    /// The offset delta of the first record with the largest timestamp.
    pub max_timestamp_delta: i32,
    /// The offset delta of the first record without a key, which a compacted topic refuses.
    pub first_keyless: Option<i32>,
    /// The size of the records in bytes when decompressed.
    pub uncompressed_bytes: usize,
}

/// Checks a producer's batch through and through, strictly: size, checksum, attributes, producer fields, counts,
/// and every record, decompressing into `scratch` up to its limit. What passes can be appended as it is and
/// will be read by every consumer.
///
/// # Errors
/// The first fault that is found; [`RecordError::kind`] says how to answer it.
pub fn validate(
    batch: &RecordBatch,
    rules: &ValidationRules,
    scratch: &mut Scratch,
) -> Result<ValidBatch, RecordError> {
    let header = batch.header();
    let size = batch.size_in_bytes();
    if size > rules.max_batch_bytes {
        return Err(RecordError::BatchTooLarge { size, limit: rules.max_batch_bytes });
    }
    batch.verify()?;
    check_attributes(header, rules)?;
    check_producer(header)?;
    let BatchHeader { records_count, last_offset_delta, .. } = *header;
    if records_count < 1 || records_count - 1 != last_offset_delta {
        return Err(RecordError::RecordCount { records_count, last_offset_delta });
    }
    let records = match header.compression()? {
        Compression::None => batch.payload(),
        compression => {
            let records = scratch.decompress(compression, batch.payload())?;
            if !is_read_by_all(compression, batch.payload()) {
                return Err(RecordError::Decompression { compression });
            }
            records
        }
    };
    check_records(header, records, rules)
}

fn check_attributes(header: &BatchHeader, rules: &ValidationRules) -> Result<(), RecordError> {
    const UNUSED: i16 = !0x7f;
    if header.is_control() && !rules.allow_control {
        return Err(RecordError::ControlBatch);
    }
    if header.attributes & (UNUSED | DELETE_HORIZON | TIMESTAMP_TYPE) != 0 {
        return Err(RecordError::Attributes { attributes: header.attributes });
    }
    Ok(())
}

/// A producer with an id has an epoch and a sequence. Without one only a transaction is contradictory: KafkaJS
/// sends epoch and sequence 0 where others send −1.
fn check_producer(header: &BatchHeader) -> Result<(), RecordError> {
    let consistent = if header.is_idempotent() {
        header.producer_id > ProducerId::NONE
            && header.producer_epoch.0 >= 0
            && (header.base_sequence >= 0 || header.is_control())
    } else {
        !header.is_transactional()
    };
    if consistent {
        return Ok(());
    }
    Err(RecordError::ProducerFields {
        producer_id: header.producer_id.0,
        producer_epoch: header.producer_epoch.0,
        base_sequence: header.base_sequence,
    })
}

fn check_records(
    header: &BatchHeader,
    records: &[u8],
    rules: &ValidationRules,
) -> Result<ValidBatch, RecordError> {
    let count = header.records_count;
    if records.len() / SMALLEST < count as usize {
        return Err(RecordError::RecordCount {
            records_count: count,
            last_offset_delta: header.last_offset_delta,
        });
    }
    let (earliest, latest) = match &rules.timestamps {
        Some(range) => (*range.start(), *range.end()),
        None => (i64::MIN, i64::MAX),
    };
    let mut valid = ValidBatch {
        record_count: count,
        max_timestamp: i64::MIN,
        max_timestamp_delta: 0,
        first_keyless: None,
        uncompressed_bytes: records.len(),
    };
    let mut rest = records;
    for index in 0..count {
        let record = take_record(&mut rest).map_err(|fault| RecordError::Record { index, fault })?;
        if record.offset_delta != index {
            let fault = RecordFault::OffsetDelta { delta: record.offset_delta };
            return Err(RecordError::Record { index, fault });
        }
        // As every reader adds them, Java's included: what overflows comes out negative and is refused.
        let timestamp = header.base_timestamp.wrapping_add(record.timestamp_delta);
        if timestamp != NO_TIMESTAMP && (timestamp < earliest.max(0) || timestamp > latest) {
            return Err(RecordError::Timestamp { index, timestamp, earliest, latest });
        }
        if timestamp > valid.max_timestamp {
            valid.max_timestamp = timestamp;
            valid.max_timestamp_delta = index;
        }
        if record.key.is_none() && valid.first_keyless.is_none() {
            valid.first_keyless = Some(index);
        }
    }
    if !rest.is_empty() {
        return Err(RecordError::TrailingBytes { extra: rest.len() });
    }
    Ok(valid)
}

/// The timestamp of a record whose producer gave none.
const NO_TIMESTAMP: i64 = -1;
