// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `ShareGroupMemberMetadataKey` and `ShareGroupMemberMetadataValue`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, Trailing, Wire, decode_key, decode_versioned, encode_key,
    encode_versioned,
};

/// The key of a record, `ShareGroupMemberMetadataKey`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareGroupMemberMetadataKey {
    pub group_id: ByteString,
    pub member_id: ByteString,
}

impl Wire for ShareGroupMemberMetadataKey {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { group_id: d.string()?, member_id: d.string()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.string(&self.member_id)?;
        Ok(())
    }
}

impl ShareGroupMemberMetadataKey {
    /// What the key begins with.
    pub const KIND: i16 = 10;

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

/// A record, `ShareGroupMemberMetadataValue`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareGroupMemberMetadataValue {
    pub rack_id: Option<ByteString>,
    pub client_id: ByteString,
    pub client_host: ByteString,
    pub subscribed_topic_names: Vec<ByteString>,
}

impl Default for ShareGroupMemberMetadataValue {
    fn default() -> Self {
        Self {
            rack_id: Some(ByteString::new()),
            client_id: ByteString::new(),
            client_host: ByteString::new(),
            subscribed_topic_names: Vec::new(),
        }
    }
}

impl Wire for ShareGroupMemberMetadataValue {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            rack_id: d.option_string(true)?,
            client_id: d.string()?,
            client_host: d.string()?,
            subscribed_topic_names: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.option_string(self.rack_id.as_deref(), true, "ShareGroupMemberMetadataValue::rack_id")?;
        e.string(&self.client_id)?;
        e.string(&self.client_host)?;
        e.array(&self.subscribed_topic_names)?;
        e.no_tags();
        Ok(())
    }
}

impl ShareGroupMemberMetadataValue {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=0;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "ShareGroupMemberMetadataValue", version, Self::VERSIONS, 0)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, 0, Trailing::Refused)
    }
}
