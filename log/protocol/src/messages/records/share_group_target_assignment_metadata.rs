// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `ShareGroupTargetAssignmentMetadataKey` and `ShareGroupTargetAssignmentMetadataValue`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, Trailing, Wire, decode_key, decode_versioned, encode_key,
    encode_versioned,
};

/// The key of a record, `ShareGroupTargetAssignmentMetadataKey`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareGroupTargetAssignmentMetadataKey {
    pub group_id: ByteString,
}

impl Wire for ShareGroupTargetAssignmentMetadataKey {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { group_id: d.string()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        Ok(())
    }
}

impl ShareGroupTargetAssignmentMetadataKey {
    /// What the key begins with.
    pub const KIND: i16 = 12;

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

/// A record, `ShareGroupTargetAssignmentMetadataValue`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareGroupTargetAssignmentMetadataValue {
    pub assignment_epoch: i32,
    pub assignment_timestamp: i64,
}

impl Wire for ShareGroupTargetAssignmentMetadataValue {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let mut value = Self { assignment_epoch: d.i32()?, assignment_timestamp: 0 };
        d.tags(&mut |d, tag| {
            match tag {
                0 => value.assignment_timestamp = d.i64()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.assignment_epoch);
        let tags = e.tags();
        if self.assignment_timestamp != 0 {
            e.tag(tags, 0, |e| {
                e.i64(self.assignment_timestamp);
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl ShareGroupTargetAssignmentMetadataValue {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=0;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "ShareGroupTargetAssignmentMetadataValue", version, Self::VERSIONS, 0)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, 0, Trailing::Refused)
    }
}
