//! The 61-byte header of a record batch, format version 2 (KIP-98).

use super::RecordError;
use crate::compression::Compression;
use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};

/// The fixed part of a record batch. Layout, big-endian, with byte positions:
///
/// ```text
///  0 base_offset i64 · 8 batch_length i32 · 12 partition_leader_epoch i32 · 16 magic i8 (2) · 17 crc u32
/// 21 attributes i16 · 23 last_offset_delta i32 · 27 base_timestamp i64 · 35 max_timestamp i64
/// 43 producer_id i64 · 51 producer_epoch i16 · 53 base_sequence i32 · 57 records_count i32 · 61 records…
/// ```
///
/// `batch_length` counts the bytes after itself; the CRC-32C covers everything from `attributes` on, so the
/// base offset and the leader epoch can be patched without touching it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// The offset of the batch's first record.
    pub base_offset: Offset,
    /// The size of the batch in bytes, less the 12 of `base_offset` and of itself.
    pub batch_length: i32,
    /// The leader epoch in which the batch was appended; −1 in a producer's batch.
    pub partition_leader_epoch: LeaderEpoch,
    /// CRC-32C of the bytes from `attributes` on.
    pub crc: u32,
    /// Bits 0–2 compression, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon (KIP-534).
    pub attributes: i16,
    /// The last record's offset less the base offset. A cleaned batch keeps it when records are removed.
    pub last_offset_delta: i32,
    /// What the records' timestamp deltas are added to, in ms since 1970.
    pub base_timestamp: i64,
    /// The largest timestamp in the batch, or the append time, in ms since 1970.
    pub max_timestamp: i64,
    /// The idempotent producer's id, or −1.
    pub producer_id: ProducerId,
    /// The idempotent producer's epoch, or −1.
    pub producer_epoch: ProducerEpoch,
    /// The sequence number of the first record, or −1.
    pub base_sequence: i32,
    /// How many records the batch holds.
    pub records_count: i32,
}

pub(super) const TIMESTAMP_TYPE: i16 = 1 << 3;
pub(super) const TRANSACTIONAL: i16 = 1 << 4;
pub(super) const CONTROL: i16 = 1 << 5;
pub(super) const DELETE_HORIZON: i16 = 1 << 6;

impl BatchHeader {
    /// The bits of `attributes` that say how the records are compressed.
    pub(super) const COMPRESSION: i16 = 0x07;
    /// The size of the header in bytes.
    pub const SIZE: usize = 61;
    /// The bytes before the part that `batch_length` counts.
    pub const OVERHEAD: usize = 12;
    /// Where the bytes begin that the checksum covers.
    pub(super) const CHECKSUMMED: usize = 21;

    /// Reads the header at the start of `bytes`; checks the magic and that `batch_length` is not smaller than
    /// a header, nothing else.
    ///
    /// # Errors
    /// [`RecordError::Truncated`], [`RecordError::UnsupportedMagic`] or [`RecordError::BatchLength`].
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        // The magic comes first: a message of the old formats may be shorter than a header.
        if let Some(&magic) = bytes.get(16).filter(|&&magic| magic != 2) {
            return Err(RecordError::UnsupportedMagic { magic: magic as i8 });
        }
        let Some(head) = bytes.first_chunk::<{ Self::SIZE }>() else {
            return Err(RecordError::Truncated { needed: Self::SIZE, available: bytes.len() });
        };
        let header = Self {
            base_offset: Offset(i64_at(head, 0)),
            batch_length: i32_at(head, 8),
            partition_leader_epoch: LeaderEpoch(i32_at(head, 12)),
            crc: i32_at(head, 17) as u32,
            attributes: i16_at(head, 21),
            last_offset_delta: i32_at(head, 23),
            base_timestamp: i64_at(head, 27),
            max_timestamp: i64_at(head, 35),
            producer_id: ProducerId(i64_at(head, 43)),
            producer_epoch: ProducerEpoch(i16_at(head, 51)),
            base_sequence: i32_at(head, 53),
            records_count: i32_at(head, 57),
        };
        if header.batch_length < (Self::SIZE - Self::OVERHEAD) as i32 {
            return Err(RecordError::BatchLength { length: header.batch_length });
        }
        Ok(header)
    }

    /// Writes the header's 61 bytes into `out`.
    pub fn write(&self, out: &mut [u8; Self::SIZE]) {
        out[0..8].copy_from_slice(&self.base_offset.0.to_be_bytes());
        out[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        out[12..16].copy_from_slice(&self.partition_leader_epoch.0.to_be_bytes());
        out[16] = 2;
        out[17..21].copy_from_slice(&self.crc.to_be_bytes());
        out[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        out[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        out[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        out[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        out[43..51].copy_from_slice(&self.producer_id.0.to_be_bytes());
        out[51..53].copy_from_slice(&self.producer_epoch.0.to_be_bytes());
        out[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        out[57..61].copy_from_slice(&self.records_count.to_be_bytes());
    }

    /// The size of the whole batch in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.batch_length as usize + Self::OVERHEAD
    }

    /// The offset of the batch's last record.
    pub fn last_offset(&self) -> Offset {
        Offset(self.base_offset.0.saturating_add(i64::from(self.last_offset_delta)))
    }

    /// The offset after the batch's last record.
    pub fn next_offset(&self) -> Offset {
        Offset(self.last_offset().0.saturating_add(1))
    }

    /// The sequence number of the last record; sequence numbers wrap from `i32::MAX` to 0.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            -1
        } else {
            self.base_sequence.wrapping_add(self.last_offset_delta) & i32::MAX
        }
    }

    /// The largest timestamp of the batch's records, −1 where it has none left: a cleaned batch keeps its
    /// `max_timestamp` when its records go.
    pub fn newest_record_timestamp(&self) -> i64 {
        if self.records_count == 0 { -1 } else { self.max_timestamp }
    }

    /// How the records are compressed.
    ///
    /// # Errors
    /// [`RecordError::UnknownCompression`] for the ids that no codec has.
    pub fn compression(&self) -> Result<Compression, RecordError> {
        let id = self.attributes & Self::COMPRESSION;
        Compression::from_id(id).ok_or(RecordError::UnknownCompression { id: id as i8 })
    }

    /// Whether `max_timestamp` is the time of the append and stands for every record's.
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & TIMESTAMP_TYPE != 0
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether the batch is a marker that ends a transaction, or another control record.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Whether `base_timestamp` holds the time after which the batch's tombstones may go (KIP-534).
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON != 0
    }

    /// Whether the batch carries a producer id and sequence numbers.
    pub fn is_idempotent(&self) -> bool {
        self.producer_id != ProducerId::NONE
    }
}

/// Patches the two fields that a leader sets when it appends a batch; both lie outside the CRC.
///
/// # Panics
/// When `batch` is shorter than a header, which the caller has checked.
pub fn patch(batch: &mut [u8], base_offset: Offset, leader_epoch: LeaderEpoch) {
    assert!(batch.len() >= BatchHeader::SIZE, "only checked batches are patched");
    batch[0..8].copy_from_slice(&base_offset.0.to_be_bytes());
    batch[12..16].copy_from_slice(&leader_epoch.0.to_be_bytes());
}

fn i16_at(head: &[u8; BatchHeader::SIZE], at: usize) -> i16 {
    i16::from_be_bytes([head[at], head[at + 1]])
}

fn i32_at(head: &[u8; BatchHeader::SIZE], at: usize) -> i32 {
    i32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

fn i64_at(head: &[u8; BatchHeader::SIZE], at: usize) -> i64 {
    (i64::from(i32_at(head, at)) << 32) | i64::from(i32_at(head, at + 4) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let header = BatchHeader {
            base_offset: Offset(0x0102_0304_0506_0708),
            batch_length: 0x1112_1314,
            partition_leader_epoch: LeaderEpoch(7),
            crc: 0xfedc_ba98,
            attributes: 0x35,
            last_offset_delta: 4,
            base_timestamp: -1,
            max_timestamp: 1_357_016_400_000,
            producer_id: ProducerId(9),
            producer_epoch: ProducerEpoch(3),
            base_sequence: i32::MAX - 1,
            records_count: 5,
        };
        let mut bytes = [0; BatchHeader::SIZE];
        header.write(&mut bytes);
        assert_eq!(BatchHeader::parse(&bytes), Ok(header));
        assert_eq!(header.last_sequence(), 2, "sequence numbers wrap to zero");
        patch(&mut bytes, Offset(42), LeaderEpoch(8));
        let patched = BatchHeader::parse(&bytes).expect("still a header");
        assert_eq!((patched.base_offset, patched.partition_leader_epoch), (Offset(42), LeaderEpoch(8)));
        assert_eq!(patched.crc, header.crc);
    }
}
