// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `ShareGroupTargetAssignmentMemberKey` and `ShareGroupTargetAssignmentMemberValue`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, Trailing, Wire, decode_key, decode_versioned, encode_key,
    encode_versioned,
};

/// The key of a record, `ShareGroupTargetAssignmentMemberKey`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareGroupTargetAssignmentMemberKey {
    pub group_id: ByteString,
    pub member_id: ByteString,
}

impl Wire for ShareGroupTargetAssignmentMemberKey {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { group_id: d.string()?, member_id: d.string()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.string(&self.member_id)?;
        Ok(())
    }
}

impl ShareGroupTargetAssignmentMemberKey {
    /// What the key begins with.
    pub const KIND: i16 = 13;

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

/// A record, `ShareGroupTargetAssignmentMemberValue`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareGroupTargetAssignmentMemberValue {
    pub topic_partitions: Vec<SharedTargetPartitions>,
}

impl Wire for ShareGroupTargetAssignmentMemberValue {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic_partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.topic_partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ShareGroupTargetAssignmentMemberValue::topic_partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedTargetPartitions {
    pub topic_id: Uuid,
    pub partitions: Vec<i32>,
}

impl Wire for SharedTargetPartitions {
    fn min_size(_: i16, _: bool) -> usize {
        18
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic_id: d.uuid()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.uuid(self.topic_id);
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

impl ShareGroupTargetAssignmentMemberValue {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=0;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "ShareGroupTargetAssignmentMemberValue", version, Self::VERSIONS, 0)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, 0, Trailing::Refused)
    }
}
