// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `AbortedTxn`.

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, NEVER, Trailing, Wire, decode_versioned, encode_versioned,
};

/// A record, `AbortedTxn`, version 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AbortedTxn {
    pub producer_id: i64,
    pub first_offset: i64,
    pub last_offset: i64,
    pub last_stable_offset: i64,
}

impl Wire for AbortedTxn {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self {
            producer_id: d.i64()?,
            first_offset: d.i64()?,
            last_offset: d.i64()?,
            last_stable_offset: d.i64()?,
        })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.producer_id);
        e.i64(self.first_offset);
        e.i64(self.last_offset);
        e.i64(self.last_stable_offset);
        Ok(())
    }
}

impl AbortedTxn {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=0;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "AbortedTxn", version, Self::VERSIONS, NEVER)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, NEVER, Trailing::Refused)
    }
}
