// Generated from messages.txt by generate/main.rs; do not edit.

//! The API AlterShareGroupOffsets.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `AlterShareGroupOffsets`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterShareGroupOffsetsRequest {
    pub group_id: ByteString,
    pub topics: Vec<AlterShareGroupOffsetsRequestTopic>,
}

impl Wire for AlterShareGroupOffsetsRequest {
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

/// See [`AlterShareGroupOffsetsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterShareGroupOffsetsRequestTopic {
    pub topic_name: ByteString,
    pub partitions: Vec<AlterShareGroupOffsetsRequestPartition>,
}

impl Wire for AlterShareGroupOffsetsRequestTopic {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic_name: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic_name)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterShareGroupOffsetsRequestTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterShareGroupOffsetsRequestPartition {
    pub partition_index: i32,
    pub start_offset: i64,
}

impl Wire for AlterShareGroupOffsetsRequestPartition {
    fn min_size(_: i16, _: bool) -> usize {
        13
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()?, start_offset: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i64(self.start_offset);
        e.no_tags();
        Ok(())
    }
}

/// The response of `AlterShareGroupOffsets`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterShareGroupOffsetsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub responses: Vec<AlterShareGroupOffsetsResponseTopic>,
}

impl Wire for AlterShareGroupOffsetsResponse {
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
            "AlterShareGroupOffsetsResponse::error_message",
        )?;
        e.array(&self.responses)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterShareGroupOffsetsResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterShareGroupOffsetsResponseTopic {
    pub topic_name: ByteString,
    pub topic_id: Uuid,
    pub partitions: Vec<AlterShareGroupOffsetsResponsePartition>,
}

impl Wire for AlterShareGroupOffsetsResponseTopic {
    fn min_size(_: i16, _: bool) -> usize {
        19
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic_name: d.string()?, topic_id: d.uuid()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic_name)?;
        e.uuid(self.topic_id);
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterShareGroupOffsetsResponseTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterShareGroupOffsetsResponsePartition {
    pub partition_index: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Wire for AlterShareGroupOffsetsResponsePartition {
    fn min_size(_: i16, _: bool) -> usize {
        8
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { partition_index: d.i32()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "AlterShareGroupOffsetsResponsePartition::error_message",
        )?;
        e.no_tags();
        Ok(())
    }
}
