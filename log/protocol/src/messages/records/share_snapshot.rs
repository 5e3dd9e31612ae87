// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `ShareSnapshotKey` and `ShareSnapshotValue`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, Trailing, Wire, decode_key, decode_versioned, encode_key,
    encode_versioned,
};

/// The key of a record, `ShareSnapshotKey`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareSnapshotKey {
    pub group_id: ByteString,
    pub topic_id: Uuid,
    pub partition: i32,
}

impl Wire for ShareSnapshotKey {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { group_id: d.string()?, topic_id: d.uuid()?, partition: d.i32()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.uuid(self.topic_id);
        e.i32(self.partition);
        Ok(())
    }
}

impl ShareSnapshotKey {
    /// What the key begins with.
    pub const KIND: i16 = 0;

    /// Writes the key after its kind.
    ///
    /// # Errors
    /// Fails when a string is too long.
    pub fn to_bytes(&self) -> Result<Bytes, EncodeError> {
        encode_key(self, Self::KIND)
    }

    /// Reads a key that begins with its kind.
    ///
    /// # Errors
    /// Fails when the key is of another kind, or malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_key(bytes, Self::KIND)
    }
}

/// A record, `ShareSnapshotValue`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareSnapshotValue {
    pub snapshot_epoch: i32,
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub start_offset: i64,
    pub delivery_complete_count: i32,
    pub create_timestamp: i64,
    pub write_timestamp: i64,
    pub state_batches: Vec<ShareStateBatch>,
}

impl Default for ShareSnapshotValue {
    fn default() -> Self {
        Self {
            snapshot_epoch: 0,
            state_epoch: 0,
            leader_epoch: 0,
            start_offset: 0,
            delivery_complete_count: -1,
            create_timestamp: 0,
            write_timestamp: 0,
            state_batches: Vec::new(),
        }
    }
}

impl Wire for ShareSnapshotValue {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let mut value = Self {
            snapshot_epoch: d.i32()?,
            state_epoch: d.i32()?,
            leader_epoch: d.i32()?,
            start_offset: d.i64()?,
            delivery_complete_count: -1,
            create_timestamp: d.i64()?,
            write_timestamp: d.i64()?,
            state_batches: d.array()?,
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 => value.delivery_complete_count = d.i32()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.snapshot_epoch);
        e.i32(self.state_epoch);
        e.i32(self.leader_epoch);
        e.i64(self.start_offset);
        e.i64(self.create_timestamp);
        e.i64(self.write_timestamp);
        e.array(&self.state_batches)?;
        let tags = e.tags();
        if self.delivery_complete_count != -1 {
            e.tag(tags, 0, |e| {
                e.i32(self.delivery_complete_count);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// See [`ShareSnapshotValue::state_batches`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareStateBatch {
    pub first_offset: i64,
    pub last_offset: i64,
    pub delivery_state: i8,
    pub delivery_count: i16,
}

impl Wire for ShareStateBatch {
    fn min_size(_: i16, _: bool) -> usize {
        20
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            first_offset: d.i64()?,
            last_offset: d.i64()?,
            delivery_state: d.i8()?,
            delivery_count: d.i16()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.first_offset);
        e.i64(self.last_offset);
        e.i8(self.delivery_state);
        e.i16(self.delivery_count);
        e.no_tags();
        Ok(())
    }
}

impl ShareSnapshotValue {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=0;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "ShareSnapshotValue", version, Self::VERSIONS, 0)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, 0, Trailing::Refused)
    }
}
