// Generated from messages.txt by generate/main.rs; do not edit.

//! The API CreateTopics.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `CreateTopics`, versions 2 to 7, flexible from 5.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTopicsRequest {
    pub topics: Vec<CreatableTopic>,
    pub timeout_ms: i32,
    pub validate_only: bool,
}

impl Default for CreateTopicsRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), timeout_ms: 60000, validate_only: false }
    }
}

impl Wire for CreateTopicsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topics: d.array()?, timeout_ms: d.i32()?, validate_only: d.bool()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.topics)?;
        e.i32(self.timeout_ms);
        e.bool(self.validate_only);
        e.no_tags();
        Ok(())
    }
}

/// See [`CreateTopicsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatableTopic {
    pub name: ByteString,
    pub num_partitions: i32,
    pub replication_factor: i16,
    pub assignments: Vec<CreatableReplicaAssignment>,
    pub configs: Vec<CreatableTopicConfig>,
}

impl Wire for CreatableTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 16,
            _ => 10,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            name: d.string()?,
            num_partitions: d.i32()?,
            replication_factor: d.i16()?,
            assignments: d.array()?,
            configs: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i32(self.num_partitions);
        e.i16(self.replication_factor);
        e.array(&self.assignments)?;
        e.array(&self.configs)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`CreatableTopic::assignments`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatableReplicaAssignment {
    pub partition_index: i32,
    pub broker_ids: Vec<i32>,
}

impl Wire for CreatableReplicaAssignment {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 8,
            _ => 6,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()?, broker_ids: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.array(&self.broker_ids)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`CreatableTopic::configs`].
#[derive(Clone, Debug, PartialEq)]
pub struct CreatableTopicConfig {
    pub name: ByteString,
    pub value: Option<ByteString>,
}

impl Default for CreatableTopicConfig {
    fn default() -> Self {
        Self { name: ByteString::new(), value: Some(ByteString::new()) }
    }
}

impl Wire for CreatableTopicConfig {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 4,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, value: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.option_string(self.value.as_deref(), true, "CreatableTopicConfig::value")?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `CreateTopics`, versions 2 to 7, flexible from 5.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateTopicsResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<CreatableTopicResult>,
}

impl Wire for CreateTopicsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, topics: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`CreateTopicsResponse::topics`].
#[derive(Clone, Debug, PartialEq)]
pub struct CreatableTopicResult {
    pub name: ByteString,
    /// From version 7. Left out of others.
    pub topic_id: Uuid,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    /// From version 5. Left out of others.
    pub topic_config_error_code: i16,
    /// From version 5. Left out of others.
    pub num_partitions: i32,
    /// From version 5. Left out of others.
    pub replication_factor: i16,
    /// From version 5. Left out of others.
    pub configs: Option<Vec<CreatableTopicConfigs>>,
}

impl Default for CreatableTopicResult {
    fn default() -> Self {
        Self {
            name: ByteString::new(),
            topic_id: Uuid::ZERO,
            error_code: 0,
            error_message: Some(ByteString::new()),
            topic_config_error_code: 0,
            num_partitions: -1,
            replication_factor: -1,
            configs: Some(Vec::new()),
        }
    }
}

impl Wire for CreatableTopicResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 6,
            5..=6 => 12,
            _ => 28,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value = Self {
            name: d.string()?,
            topic_id: if version >= 7 { d.uuid()? } else { Uuid::ZERO },
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            topic_config_error_code: 0,
            num_partitions: if version >= 5 { d.i32()? } else { -1 },
            replication_factor: if version >= 5 { d.i16()? } else { -1 },
            configs: if version >= 5 { d.option_array(true)? } else { Some(Vec::new()) },
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 5 => value.topic_config_error_code = d.i16()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.name)?;
        if version >= 7 {
            e.uuid(self.topic_id);
        }
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "CreatableTopicResult::error_message")?;
        if version >= 5 {
            e.i32(self.num_partitions);
            e.i16(self.replication_factor);
            e.option_array(self.configs.as_deref(), true, "CreatableTopicResult::configs")?;
        }
        let tags = e.tags();
        if version >= 5 && self.topic_config_error_code != 0 {
            e.tag(tags, 0, |e| {
                e.i16(self.topic_config_error_code);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// See [`CreatableTopicResult::configs`].
#[derive(Clone, Debug, PartialEq)]
pub struct CreatableTopicConfigs {
    pub name: ByteString,
    pub value: Option<ByteString>,
    pub read_only: bool,
    pub config_source: i8,
    pub is_sensitive: bool,
}

impl Default for CreatableTopicConfigs {
    fn default() -> Self {
        Self {
            name: ByteString::new(),
            value: Some(ByteString::new()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
        }
    }
}

impl Wire for CreatableTopicConfigs {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            name: d.string()?,
            value: d.option_string(true)?,
            read_only: d.bool()?,
            config_source: d.i8()?,
            is_sensitive: d.bool()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.option_string(self.value.as_deref(), true, "CreatableTopicConfigs::value")?;
        e.bool(self.read_only);
        e.i8(self.config_source);
        e.bool(self.is_sensitive);
        e.no_tags();
        Ok(())
    }
}
