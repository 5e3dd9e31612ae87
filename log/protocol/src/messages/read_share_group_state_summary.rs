// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ReadShareGroupStateSummary.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ReadShareGroupStateSummary`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadShareGroupStateSummaryRequest {
    pub group_id: ByteString,
    pub topics: Vec<ReadStateSummaryData>,
}

impl Wire for ReadShareGroupStateSummaryRequest {
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

/// See [`ReadShareGroupStateSummaryRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadStateSummaryData {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionData>,
}

impl Wire for ReadStateSummaryData {
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

/// See [`ReadStateSummaryData::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionData {
    pub partition: i32,
    pub leader_epoch: i32,
}

impl Wire for PartitionData {
    fn min_size(_: i16, _: bool) -> usize {
        9
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition: d.i32()?, leader_epoch: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition);
        e.i32(self.leader_epoch);
        e.no_tags();
        Ok(())
    }
}

/// The response of `ReadShareGroupStateSummary`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadShareGroupStateSummaryResponse {
    pub results: Vec<ReadStateSummaryResult>,
}

impl Wire for ReadShareGroupStateSummaryResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { results: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.results)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ReadShareGroupStateSummaryResponse::results`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadStateSummaryResult {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionResult>,
}

impl Wire for ReadStateSummaryResult {
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

/// See [`ReadStateSummaryResult::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionResult {
    pub partition: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub start_offset: i64,
    /// From version 1. Left out of others.
    pub delivery_complete_count: i32,
}

impl Default for PartitionResult {
    fn default() -> Self {
        Self {
            partition: 0,
            error_code: 0,
            error_message: None,
            state_epoch: 0,
            leader_epoch: 0,
            start_offset: 0,
            delivery_complete_count: -1,
        }
    }
}

impl Wire for PartitionResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 24,
            _ => 28,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            partition: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            state_epoch: d.i32()?,
            leader_epoch: d.i32()?,
            start_offset: d.i64()?,
            delivery_complete_count: if version >= 1 { d.i32()? } else { -1 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "PartitionResult::error_message")?;
        e.i32(self.state_epoch);
        e.i32(self.leader_epoch);
        e.i64(self.start_offset);
        if version >= 1 {
            e.i32(self.delivery_complete_count);
        }
        e.no_tags();
        Ok(())
    }
}
