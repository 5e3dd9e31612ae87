// Generated from messages.txt by generate/main.rs; do not edit.

//! The API WriteShareGroupState.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `WriteShareGroupState`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteShareGroupStateRequest {
    pub group_id: ByteString,
    pub topics: Vec<WriteStateData>,
}

impl Wire for WriteShareGroupStateRequest {
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

/// See [`WriteShareGroupStateRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteStateData {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionData>,
}

impl Wire for WriteStateData {
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

/// See [`WriteStateData::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionData {
    pub partition: i32,
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub start_offset: i64,
    /// From version 1. Left out of others.
    pub delivery_complete_count: i32,
    pub state_batches: Vec<StateBatch>,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self {
            partition: 0,
            state_epoch: 0,
            leader_epoch: 0,
            start_offset: 0,
            delivery_complete_count: -1,
            state_batches: Vec::new(),
        }
    }
}

impl Wire for PartitionData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 22,
            _ => 26,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            partition: d.i32()?,
            state_epoch: d.i32()?,
            leader_epoch: d.i32()?,
            start_offset: d.i64()?,
            delivery_complete_count: if version >= 1 { d.i32()? } else { -1 },
            state_batches: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition);
        e.i32(self.state_epoch);
        e.i32(self.leader_epoch);
        e.i64(self.start_offset);
        if version >= 1 {
            e.i32(self.delivery_complete_count);
        }
        e.array(&self.state_batches)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`PartitionData::state_batches`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateBatch {
    pub first_offset: i64,
    pub last_offset: i64,
    pub delivery_state: i8,
    pub delivery_count: i16,
}

impl Wire for StateBatch {
    fn min_size(_: i16, _: bool) -> usize {
        20
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            first_offset: d.i64()?,
            last_offset: d.i64()?,
            delivery_state: d.i8()?,
            delivery_count: d.i16()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.first_offset);
        e.i64(self.last_offset);
        e.i8(self.delivery_state);
        e.i16(self.delivery_count);
        e.no_tags();
        Ok(())
    }
}

/// The response of `WriteShareGroupState`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteShareGroupStateResponse {
    pub results: Vec<WriteStateResult>,
}

impl Wire for WriteShareGroupStateResponse {
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

/// See [`WriteShareGroupStateResponse::results`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteStateResult {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionResult>,
}

impl Wire for WriteStateResult {
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

/// See [`WriteStateResult::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionResult {
    pub partition: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Wire for PartitionResult {
    fn min_size(_: i16, _: bool) -> usize {
        8
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition: d.i32()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "PartitionResult::error_message")?;
        e.no_tags();
        Ok(())
    }
}
