// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `GroupMetadataKey` and `GroupMetadataValue`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, Trailing, Wire, decode_key, decode_versioned, encode_key,
    encode_versioned,
};

/// The key of a record, `GroupMetadataKey`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupMetadataKey {
    pub group: ByteString,
}

impl Wire for GroupMetadataKey {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { group: d.string()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group)?;
        Ok(())
    }
}

impl GroupMetadataKey {
    /// What the key begins with.
    pub const KIND: i16 = 2;

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

/// A record, `GroupMetadataValue`, versions 0 to 4, flexible from 4.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupMetadataValue {
    pub protocol_type: ByteString,
    pub generation: i32,
    pub protocol: Option<ByteString>,
    pub leader: Option<ByteString>,
    /// From version 2. Left out of others.
    pub current_state_timestamp: i64,
    pub members: Vec<MemberMetadata>,
}

impl Default for GroupMetadataValue {
    fn default() -> Self {
        Self {
            protocol_type: ByteString::new(),
            generation: 0,
            protocol: Some(ByteString::new()),
            leader: Some(ByteString::new()),
            current_state_timestamp: -1,
            members: Vec::new(),
        }
    }
}

impl Wire for GroupMetadataValue {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            protocol_type: d.string()?,
            generation: d.i32()?,
            protocol: d.option_string(true)?,
            leader: d.option_string(true)?,
            current_state_timestamp: if version >= 2 { d.i64()? } else { -1 },
            members: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.protocol_type)?;
        e.i32(self.generation);
        e.option_string(self.protocol.as_deref(), true, "GroupMetadataValue::protocol")?;
        e.option_string(self.leader.as_deref(), true, "GroupMetadataValue::leader")?;
        if version >= 2 {
            e.i64(self.current_state_timestamp);
        }
        e.array(&self.members)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`GroupMetadataValue::members`].
#[derive(Clone, Debug, PartialEq)]
pub struct MemberMetadata {
    pub member_id: ByteString,
    /// From version 3. Left out of others.
    pub group_instance_id: Option<ByteString>,
    pub client_id: ByteString,
    pub client_host: ByteString,
    /// From version 1. Left out of others.
    pub rebalance_timeout: i32,
    pub session_timeout: i32,
    pub subscription: Bytes,
    pub assignment: Bytes,
}

impl Default for MemberMetadata {
    fn default() -> Self {
        Self {
            member_id: ByteString::new(),
            group_instance_id: None,
            client_id: ByteString::new(),
            client_host: ByteString::new(),
            rebalance_timeout: -1,
            session_timeout: 0,
            subscription: Bytes::new(),
            assignment: Bytes::new(),
        }
    }
}

impl Wire for MemberMetadata {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 18,
            1..=2 => 22,
            3 => 24,
            _ => 15,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            member_id: d.string()?,
            group_instance_id: if version >= 3 { d.option_string(true)? } else { None },
            client_id: d.string()?,
            client_host: d.string()?,
            rebalance_timeout: if version >= 1 { d.i32()? } else { -1 },
            session_timeout: d.i32()?,
            subscription: d.bytes()?,
            assignment: d.bytes()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.member_id)?;
        if version >= 3 {
            e.option_string(self.group_instance_id.as_deref(), true, "MemberMetadata::group_instance_id")?;
        }
        e.string(&self.client_id)?;
        e.string(&self.client_host)?;
        if version >= 1 {
            e.i32(self.rebalance_timeout);
        }
        e.i32(self.session_timeout);
        e.bytes(&self.subscription)?;
        e.bytes(&self.assignment)?;
        e.no_tags();
        Ok(())
    }
}

impl GroupMetadataValue {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=4;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "GroupMetadataValue", version, Self::VERSIONS, 4)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, 4, Trailing::Refused)
    }
}
