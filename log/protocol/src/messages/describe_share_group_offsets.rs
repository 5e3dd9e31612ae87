// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeShareGroupOffsets.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeShareGroupOffsets`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeShareGroupOffsetsRequest {
    pub groups: Vec<DescribeShareGroupOffsetsRequestGroup>,
}

impl Wire for DescribeShareGroupOffsetsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { groups: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.groups)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeShareGroupOffsetsRequest::groups`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeShareGroupOffsetsRequestGroup {
    pub group_id: ByteString,
    pub topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>>,
}

impl Default for DescribeShareGroupOffsetsRequestGroup {
    fn default() -> Self {
        Self { group_id: ByteString::new(), topics: Some(Vec::new()) }
    }
}

impl Wire for DescribeShareGroupOffsetsRequestGroup {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { group_id: d.string()?, topics: d.option_array(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.option_array(self.topics.as_deref(), true, "DescribeShareGroupOffsetsRequestGroup::topics")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeShareGroupOffsetsRequestGroup::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeShareGroupOffsetsRequestTopic {
    pub topic_name: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for DescribeShareGroupOffsetsRequestTopic {
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

/// The response of `DescribeShareGroupOffsets`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeShareGroupOffsetsResponse {
    pub throttle_time_ms: i32,
    pub groups: Vec<DescribeShareGroupOffsetsResponseGroup>,
}

impl Wire for DescribeShareGroupOffsetsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, groups: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.groups)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeShareGroupOffsetsResponse::groups`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeShareGroupOffsetsResponseGroup {
    pub group_id: ByteString,
    pub topics: Vec<DescribeShareGroupOffsetsResponseTopic>,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Wire for DescribeShareGroupOffsetsResponseGroup {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            group_id: d.string()?,
            topics: d.array()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.array(&self.topics)?;
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "DescribeShareGroupOffsetsResponseGroup::error_message",
        )?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeShareGroupOffsetsResponseGroup::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeShareGroupOffsetsResponseTopic {
    pub topic_name: ByteString,
    pub topic_id: Uuid,
    pub partitions: Vec<DescribeShareGroupOffsetsResponsePartition>,
}

impl Wire for DescribeShareGroupOffsetsResponseTopic {
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

/// See [`DescribeShareGroupOffsetsResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeShareGroupOffsetsResponsePartition {
    pub partition_index: i32,
    pub start_offset: i64,
    pub leader_epoch: i32,
    /// From version 1. Left out of others.
    pub lag: i64,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for DescribeShareGroupOffsetsResponsePartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            start_offset: 0,
            leader_epoch: 0,
            lag: -1,
            error_code: 0,
            error_message: None,
        }
    }
}

impl Wire for DescribeShareGroupOffsetsResponsePartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 20,
            _ => 28,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            partition_index: d.i32()?,
            start_offset: d.i64()?,
            leader_epoch: d.i32()?,
            lag: if version >= 1 { d.i64()? } else { -1 },
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition_index);
        e.i64(self.start_offset);
        e.i32(self.leader_epoch);
        if version >= 1 {
            e.i64(self.lag);
        }
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "DescribeShareGroupOffsetsResponsePartition::error_message",
        )?;
        e.no_tags();
        Ok(())
    }
}
