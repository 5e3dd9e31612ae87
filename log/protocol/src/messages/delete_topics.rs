// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DeleteTopics.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DeleteTopics`, versions 1 to 6, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteTopicsRequest {
    /// From version 6.
    pub topics: Vec<DeleteTopicState>,
    /// To version 5. Left out of others.
    pub topic_names: Vec<ByteString>,
    pub timeout_ms: i32,
}

impl Wire for DeleteTopicsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            topics: if version >= 6 { d.array()? } else { Vec::new() },
            topic_names: if version <= 5 { d.array()? } else { Vec::new() },
            timeout_ms: d.i32()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 6 {
            e.array(&self.topics)?;
        } else {
            e.absent(!self.topics.is_empty(), "DeleteTopicsRequest::topics")?;
        }
        if version <= 5 {
            e.array(&self.topic_names)?;
        }
        e.i32(self.timeout_ms);
        e.no_tags();
        Ok(())
    }
}

/// See [`DeleteTopicsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteTopicState {
    pub name: Option<ByteString>,
    pub topic_id: Uuid,
}

impl Wire for DeleteTopicState {
    fn min_size(_: i16, _: bool) -> usize {
        18
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.option_string(true)?, topic_id: d.uuid()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.option_string(self.name.as_deref(), true, "DeleteTopicState::name")?;
        e.uuid(self.topic_id);
        e.no_tags();
        Ok(())
    }
}

/// The response of `DeleteTopics`, versions 1 to 6, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteTopicsResponse {
    pub throttle_time_ms: i32,
    pub responses: Vec<DeletableTopicResult>,
}

impl Wire for DeleteTopicsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, responses: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.responses)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DeleteTopicsResponse::responses`].
#[derive(Clone, Debug, PartialEq)]
pub struct DeletableTopicResult {
    /// Null from version 6.
    pub name: Option<ByteString>,
    /// From version 6. Left out of others.
    pub topic_id: Uuid,
    pub error_code: i16,
    /// From version 5. Left out of others.
    pub error_message: Option<ByteString>,
}

impl Default for DeletableTopicResult {
    fn default() -> Self {
        Self { name: Some(ByteString::new()), topic_id: Uuid::ZERO, error_code: 0, error_message: None }
    }
}

impl Wire for DeletableTopicResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 4,
            5 => 5,
            _ => 21,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: d.option_string(version >= 6)?,
            topic_id: if version >= 6 { d.uuid()? } else { Uuid::ZERO },
            error_code: d.i16()?,
            error_message: if version >= 5 { d.option_string(true)? } else { None },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.option_string(self.name.as_deref(), version >= 6, "DeletableTopicResult::name")?;
        if version >= 6 {
            e.uuid(self.topic_id);
        }
        e.i16(self.error_code);
        if version >= 5 {
            e.option_string(self.error_message.as_deref(), true, "DeletableTopicResult::error_message")?;
        }
        e.no_tags();
        Ok(())
    }
}
