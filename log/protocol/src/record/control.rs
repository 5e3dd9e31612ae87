//! Control records: the markers that end a transaction in a partition (KIP-98).

use bytes::{Bytes, BytesMut};

use super::error::RecordError;
use super::header::{CONTROL, TRANSACTIONAL};
use super::stamp::stamp_checksum;
use super::{BatchHeader, Record, RecordBatch};
use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};

/// What a control record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// The producer's transaction in this partition ends here.
    EndTransaction(TransactionMarker),
    /// A type that only Kafka's own metadata quorum writes, or one of the future: skipped by readers.
    Other(i16),
}

/// The end of a transaction in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionMarker {
    /// Whether it was committed; aborted otherwise.
    pub commit: bool,
    /// The epoch of the transaction coordinator that wrote the marker: older ones are fenced.
    pub coordinator_epoch: i32,
}

const ABORT: i16 = 0;
const COMMIT: i16 = 1;

impl ControlRecord {
    /// Reads the record of a control batch.
    ///
    /// # Errors
    /// [`RecordError::ControlRecord`] when the key, or the value of a transaction's end, is too short.
    pub fn parse(record: &Record<'_>) -> Result<Self, RecordError> {
        // Key: version i16, type i16. Value of a marker: version i16, coordinator epoch i32. Later versions may
        // only add to them, so that what follows is not looked at.
        let key = record.key.and_then(|key| key.first_chunk::<4>()).ok_or(RecordError::ControlRecord)?;
        let version = i16::from_be_bytes([key[0], key[1]]);
        if version < 0 {
            return Err(RecordError::ControlRecord);
        }
        let commit = match i16::from_be_bytes([key[2], key[3]]) {
            COMMIT => true,
            ABORT => false,
            other => return Ok(Self::Other(other)),
        };
        let value =
            record.value.and_then(|value| value.first_chunk::<6>()).ok_or(RecordError::ControlRecord)?;
        let coordinator_epoch = i32::from_be_bytes([value[2], value[3], value[4], value[5]]);
        Ok(Self::EndTransaction(TransactionMarker { commit, coordinator_epoch }))
    }
}

impl TransactionMarker {
    /// The control batch that ends the transaction of this producer, at offset 0 and with `timestamp` in ms since
    /// 1970.
    pub fn to_batch(self, producer_id: ProducerId, epoch: ProducerEpoch, timestamp: i64) -> RecordBatch {
        // Length, attributes, timestamp delta, offset delta; key; value; no headers. All but one byte fields.
        const RECORD: usize = 17;
        let control_type = if self.commit { COMMIT } else { ABORT };
        let mut header = BatchHeader {
            base_offset: Offset(0),
            batch_length: (BatchHeader::SIZE - BatchHeader::OVERHEAD + RECORD) as i32,
            partition_leader_epoch: LeaderEpoch::UNKNOWN,
            crc: 0,
            attributes: TRANSACTIONAL | CONTROL,
            last_offset_delta: 0,
            base_timestamp: timestamp,
            max_timestamp: timestamp,
            producer_id,
            producer_epoch: epoch,
            base_sequence: -1,
            records_count: 1,
        };
        let mut bytes = BytesMut::zeroed(BatchHeader::SIZE + RECORD);
        let (head, record) = bytes.split_at_mut(BatchHeader::SIZE);
        header.write(head.try_into().expect("split at a header's size"));
        record[0] = 2 * (RECORD as u8 - 1);
        record[4] = 2 * 4;
        record[7..9].copy_from_slice(&control_type.to_be_bytes());
        record[9] = 2 * 6;
        record[12..16].copy_from_slice(&self.coordinator_epoch.to_be_bytes());
        stamp_checksum(&mut bytes);
        header.crc = u32::from_be_bytes([bytes[17], bytes[18], bytes[19], bytes[20]]);
        RecordBatch::from_parts(header, Bytes::from(bytes))
    }
}
