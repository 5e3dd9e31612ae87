// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `ProducerSnapshot`.

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, NEVER, Trailing, Wire, decode_versioned, encode_versioned,
};

/// A record, `ProducerSnapshot`, version 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProducerSnapshot {
    pub crc: u32,
    pub producer_entries: Vec<ProducerEntry>,
}

impl Wire for ProducerSnapshot {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { crc: d.u32()?, producer_entries: d.array()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.u32(self.crc);
        e.array(&self.producer_entries)?;
        Ok(())
    }
}

/// See [`ProducerSnapshot::producer_entries`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProducerEntry {
    pub producer_id: i64,
    pub epoch: i16,
    pub last_sequence: i32,
    pub last_offset: i64,
    pub offset_delta: i32,
    pub timestamp: i64,
    pub coordinator_epoch: i32,
    pub current_txn_first_offset: i64,
}

impl Wire for ProducerEntry {
    fn min_size(_: i16, _: bool) -> usize {
        46
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self {
            producer_id: d.i64()?,
            epoch: d.i16()?,
            last_sequence: d.i32()?,
            last_offset: d.i64()?,
            offset_delta: d.i32()?,
            timestamp: d.i64()?,
            coordinator_epoch: d.i32()?,
            current_txn_first_offset: d.i64()?,
        })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.producer_id);
        e.i16(self.epoch);
        e.i32(self.last_sequence);
        e.i64(self.last_offset);
        e.i32(self.offset_delta);
        e.i64(self.timestamp);
        e.i32(self.coordinator_epoch);
        e.i64(self.current_txn_first_offset);
        Ok(())
    }
}

impl ProducerSnapshot {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 1..=1;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "ProducerSnapshot", version, Self::VERSIONS, NEVER)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, NEVER, Trailing::Refused)
    }
}
