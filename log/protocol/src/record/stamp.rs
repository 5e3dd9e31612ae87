//! The changes to a finished batch that need a new checksum.

use super::BatchHeader;
use super::batch::checksum;
use super::header::{TIMESTAMP_TYPE, TRANSACTIONAL};
use crate::ids::{ProducerEpoch, ProducerId};

/// What an idempotent or transactional producer writes into the header of a batch (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchProducer {
    /// The producer's id.
    pub id: ProducerId,
    /// The producer's epoch.
    pub epoch: ProducerEpoch,
    /// The sequence number of the batch's first record; −1 in a transaction's marker.
    pub base_sequence: i32,
    /// Whether the batch belongs to a transaction.
    pub transactional: bool,
}

/// Sets a batch's timestamps to the time of its append, in ms since 1970, as a topic with log-append time
/// does: every record then has this timestamp, whatever its delta says.
///
/// # Panics
/// When `batch` is shorter than a header, which the caller has checked.
pub fn stamp_append_time(batch: &mut [u8], timestamp: i64) {
    assert_whole(batch);
    batch[22] |= TIMESTAMP_TYPE as u8;
    stamp_max_timestamp(batch, timestamp);
}

/// Sets the maximum of timestamps in a batch's header, for producers that write another than their records have.
///
/// # Panics
/// When `batch` is shorter than a header, which the caller has checked.
pub fn stamp_max_timestamp(batch: &mut [u8], timestamp: i64) {
    assert_whole(batch);
    batch[35..43].copy_from_slice(&timestamp.to_be_bytes());
    stamp_checksum(batch);
}

/// Sets a batch's producer, for a batch that is sent again under another epoch.
///
/// # Panics
/// When `batch` is shorter than a header, which the caller has checked.
pub fn stamp_producer(batch: &mut [u8], producer: &BatchProducer) {
    assert_whole(batch);
    if producer.transactional {
        batch[22] |= TRANSACTIONAL as u8;
    } else {
        batch[22] &= !(TRANSACTIONAL as u8);
    }
    batch[43..51].copy_from_slice(&producer.id.0.to_be_bytes());
    batch[51..53].copy_from_slice(&producer.epoch.0.to_be_bytes());
    batch[53..57].copy_from_slice(&producer.base_sequence.to_be_bytes());
    stamp_checksum(batch);
}

/// Computes a batch's checksum anew.
pub(super) fn stamp_checksum(batch: &mut [u8]) {
    let crc = checksum(batch);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

fn assert_whole(batch: &[u8]) {
    assert!(batch.len() >= BatchHeader::SIZE, "only checked batches are stamped");
}
