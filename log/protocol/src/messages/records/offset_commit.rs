// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `OffsetCommitKey` and `OffsetCommitValue`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, Trailing, Wire, decode_key, decode_versioned, encode_key,
    encode_versioned,
};

/// The key of a record, `OffsetCommitKey`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetCommitKey {
    pub group: ByteString,
    pub topic: ByteString,
    pub partition: i32,
}

impl Wire for OffsetCommitKey {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { group: d.string()?, topic: d.string()?, partition: d.i32()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group)?;
        e.string(&self.topic)?;
        e.i32(self.partition);
        Ok(())
    }
}

impl OffsetCommitKey {
    /// What the key begins with.
    pub const KIND: i16 = 1;

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

/// A record, `OffsetCommitValue`, versions 0 to 4, flexible from 4.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetCommitValue {
    pub offset: i64,
    /// From version 3. Left out of others.
    pub leader_epoch: i32,
    pub metadata: ByteString,
    pub commit_timestamp: i64,
    /// In version 1 only. Left out of others.
    pub expire_timestamp: i64,
    /// From version 4. Left out of others.
    pub topic_id: Uuid,
}

impl Default for OffsetCommitValue {
    fn default() -> Self {
        Self {
            offset: 0,
            leader_epoch: -1,
            metadata: ByteString::new(),
            commit_timestamp: 0,
            expire_timestamp: -1,
            topic_id: Uuid::ZERO,
        }
    }
}

impl Wire for OffsetCommitValue {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value = Self {
            offset: d.i64()?,
            leader_epoch: if version >= 3 { d.i32()? } else { -1 },
            metadata: d.string()?,
            commit_timestamp: d.i64()?,
            expire_timestamp: if version == 1 { d.i64()? } else { -1 },
            topic_id: Uuid::ZERO,
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 4 => value.topic_id = d.uuid()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i64(self.offset);
        if version >= 3 {
            e.i32(self.leader_epoch);
        }
        e.string(&self.metadata)?;
        e.i64(self.commit_timestamp);
        if version == 1 {
            e.i64(self.expire_timestamp);
        }
        let tags = e.tags();
        if version >= 4 && !self.topic_id.is_zero() {
            e.tag(tags, 0, |e| {
                e.uuid(self.topic_id);
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl OffsetCommitValue {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=4;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "OffsetCommitValue", version, Self::VERSIONS, 4)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, 4, Trailing::Refused)
    }
}
