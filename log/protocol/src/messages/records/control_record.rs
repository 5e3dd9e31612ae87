// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `ControlRecordTypeSchema` and `EndTxnMarker`.

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, NEVER, Trailing, Wire, decode_versioned, encode_versioned,
};

/// A record, `ControlRecordTypeSchema`, version 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControlRecordTypeSchema {
    pub r#type: i16,
}

impl Wire for ControlRecordTypeSchema {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { r#type: d.i16()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.r#type);
        Ok(())
    }
}

impl ControlRecordTypeSchema {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=0;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "ControlRecordTypeSchema", version, Self::VERSIONS, NEVER)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, NEVER, Trailing::Refused)
    }
}

/// A record, `EndTxnMarker`, version 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndTxnMarker {
    pub coordinator_epoch: i32,
}

impl Wire for EndTxnMarker {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { coordinator_epoch: d.i32()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.coordinator_epoch);
        Ok(())
    }
}

impl EndTxnMarker {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=0;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "EndTxnMarker", version, Self::VERSIONS, NEVER)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, NEVER, Trailing::Refused)
    }
}
