// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DeleteShareGroupOffsets.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DeleteShareGroupOffsets`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteShareGroupOffsetsRequest {
    pub group_id: ByteString,
    pub topics: Vec<DeleteShareGroupOffsetsRequestTopic>,
}

impl Wire for DeleteShareGroupOffsetsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { group_id: d.string()?, topics: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DeleteShareGroupOffsetsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteShareGroupOffsetsRequestTopic {
    pub topic_name: ByteString,
}

impl Wire for DeleteShareGroupOffsetsRequestTopic {
    fn min_size(_: i16, _: bool) -> usize {
        2
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic_name: d.string()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic_name)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `DeleteShareGroupOffsets`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteShareGroupOffsetsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub responses: Vec<DeleteShareGroupOffsetsResponseTopic>,
}

impl Wire for DeleteShareGroupOffsetsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            responses: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "DeleteShareGroupOffsetsResponse::error_message",
        )?;
        e.array(&self.responses)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DeleteShareGroupOffsetsResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteShareGroupOffsetsResponseTopic {
    pub topic_name: ByteString,
    pub topic_id: Uuid,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Wire for DeleteShareGroupOffsetsResponseTopic {
    fn min_size(_: i16, _: bool) -> usize {
        21
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            topic_name: d.string()?,
            topic_id: d.uuid()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic_name)?;
        e.uuid(self.topic_id);
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "DeleteShareGroupOffsetsResponseTopic::error_message",
        )?;
        e.no_tags();
        Ok(())
    }
}
