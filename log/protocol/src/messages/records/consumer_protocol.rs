// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `ConsumerProtocolAssignment` and `ConsumerProtocolSubscription`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, NEVER, Trailing, Wire, decode_versioned, encode_versioned,
};

/// A record, `ConsumerProtocolAssignment`, versions 0 to 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumerProtocolAssignment {
    pub assigned_partitions: Vec<TopicPartition>,
    pub user_data: Option<Bytes>,
}

impl Wire for ConsumerProtocolAssignment {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { assigned_partitions: d.array()?, user_data: d.option_bytes(true)? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.assigned_partitions)?;
        e.option_bytes(self.user_data.as_deref(), true, "ConsumerProtocolAssignment::user_data")?;
        Ok(())
    }
}

/// See [`ConsumerProtocolAssignment::assigned_partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicPartition {
    pub topic: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for TopicPartition {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { topic: d.string()?, partitions: d.array()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic)?;
        e.array(&self.partitions)?;
        Ok(())
    }
}

impl ConsumerProtocolAssignment {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=3;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "ConsumerProtocolAssignment", version, Self::VERSIONS, NEVER)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, NEVER, Trailing::Ignored)
    }
}

/// A record, `ConsumerProtocolSubscription`, versions 0 to 3.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerProtocolSubscription {
    pub topics: Vec<ByteString>,
    pub user_data: Option<Bytes>,
    /// From version 1. Left out of others.
    pub owned_partitions: Vec<TopicPartition>,
    /// From version 2. Left out of others.
    pub generation_id: i32,
    /// From version 3. Left out of others.
    pub rack_id: Option<ByteString>,
}

impl Default for ConsumerProtocolSubscription {
    fn default() -> Self {
        Self {
            topics: Vec::new(),
            user_data: None,
            owned_partitions: Vec::new(),
            generation_id: -1,
            rack_id: None,
        }
    }
}

impl Wire for ConsumerProtocolSubscription {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        Ok(Self {
            topics: d.array()?,
            user_data: d.option_bytes(true)?,
            owned_partitions: if version >= 1 { d.array()? } else { Vec::new() },
            generation_id: if version >= 2 { d.i32()? } else { -1 },
            rack_id: if version >= 3 { d.option_string(true)? } else { None },
        })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.array(&self.topics)?;
        e.option_bytes(self.user_data.as_deref(), true, "ConsumerProtocolSubscription::user_data")?;
        if version >= 1 {
            e.array(&self.owned_partitions)?;
        }
        if version >= 2 {
            e.i32(self.generation_id);
        }
        if version >= 3 {
            e.option_string(self.rack_id.as_deref(), true, "ConsumerProtocolSubscription::rack_id")?;
        }
        Ok(())
    }
}

impl ConsumerProtocolSubscription {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=3;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "ConsumerProtocolSubscription", version, Self::VERSIONS, NEVER)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, NEVER, Trailing::Ignored)
    }
}
