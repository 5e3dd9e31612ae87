// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `ConsumerGroupMemberMetadataKey` and `ConsumerGroupMemberMetadataValue`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, Trailing, Wire, decode_key, decode_versioned, encode_key,
    encode_versioned,
};

/// The key of a record, `ConsumerGroupMemberMetadataKey`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumerGroupMemberMetadataKey {
    pub group_id: ByteString,
    pub member_id: ByteString,
}

impl Wire for ConsumerGroupMemberMetadataKey {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { group_id: d.string()?, member_id: d.string()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.string(&self.member_id)?;
        Ok(())
    }
}

impl ConsumerGroupMemberMetadataKey {
    /// What the key begins with.
    pub const KIND: i16 = 5;

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

/// A record, `ConsumerGroupMemberMetadataValue`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerGroupMemberMetadataValue {
    pub instance_id: Option<ByteString>,
    pub rack_id: Option<ByteString>,
    pub client_id: ByteString,
    pub client_host: ByteString,
    pub subscribed_topic_names: Vec<ByteString>,
    pub subscribed_topic_regex: Option<ByteString>,
    pub rebalance_timeout_ms: i32,
    pub server_assignor: Option<ByteString>,
    pub classic_member_metadata: Option<ClassicMemberMetadata>,
}

impl Default for ConsumerGroupMemberMetadataValue {
    fn default() -> Self {
        Self {
            instance_id: Some(ByteString::new()),
            rack_id: Some(ByteString::new()),
            client_id: ByteString::new(),
            client_host: ByteString::new(),
            subscribed_topic_names: Vec::new(),
            subscribed_topic_regex: Some(ByteString::new()),
            rebalance_timeout_ms: -1,
            server_assignor: Some(ByteString::new()),
            classic_member_metadata: None,
        }
    }
}

impl Wire for ConsumerGroupMemberMetadataValue {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let mut value = Self {
            instance_id: d.option_string(true)?,
            rack_id: d.option_string(true)?,
            client_id: d.string()?,
            client_host: d.string()?,
            subscribed_topic_names: d.array()?,
            subscribed_topic_regex: d.option_string(true)?,
            rebalance_timeout_ms: d.i32()?,
            server_assignor: d.option_string(true)?,
            classic_member_metadata: None,
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 => value.classic_member_metadata = d.option_struct()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.option_string(self.instance_id.as_deref(), true, "ConsumerGroupMemberMetadataValue::instance_id")?;
        e.option_string(self.rack_id.as_deref(), true, "ConsumerGroupMemberMetadataValue::rack_id")?;
        e.string(&self.client_id)?;
        e.string(&self.client_host)?;
        e.array(&self.subscribed_topic_names)?;
        e.option_string(
            self.subscribed_topic_regex.as_deref(),
            true,
            "ConsumerGroupMemberMetadataValue::subscribed_topic_regex",
        )?;
        e.i32(self.rebalance_timeout_ms);
        e.option_string(
            self.server_assignor.as_deref(),
            true,
            "ConsumerGroupMemberMetadataValue::server_assignor",
        )?;
        let tags = e.tags();
        if self.classic_member_metadata.is_some() {
            e.tag(tags, 0, |e| e.option_struct(self.classic_member_metadata.as_ref()))?;
        }
        Ok(())
    }
}

/// See [`ConsumerGroupMemberMetadataValue::classic_member_metadata`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassicMemberMetadata {
    pub session_timeout_ms: i32,
    pub supported_protocols: Vec<ClassicProtocol>,
}

impl Wire for ClassicMemberMetadata {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { session_timeout_ms: d.i32()?, supported_protocols: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.session_timeout_ms);
        e.array(&self.supported_protocols)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ClassicMemberMetadata::supported_protocols`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassicProtocol {
    pub name: ByteString,
    pub metadata: Bytes,
}

impl Wire for ClassicProtocol {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, metadata: d.bytes()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.bytes(&self.metadata)?;
        e.no_tags();
        Ok(())
    }
}

impl ConsumerGroupMemberMetadataValue {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=0;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "ConsumerGroupMemberMetadataValue", version, Self::VERSIONS, 0)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, 0, Trailing::Refused)
    }
}
