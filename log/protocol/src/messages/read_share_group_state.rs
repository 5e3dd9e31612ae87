// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ReadShareGroupState.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ReadShareGroupState`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadShareGroupStateRequest {
    pub group_id: ByteString,
    pub topics: Vec<ReadStateData>,
}

impl Wire for ReadShareGroupStateRequest {
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

/// See [`ReadShareGroupStateRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadStateData {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionData>,
}

impl Wire for ReadStateData {
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

/// See [`ReadStateData::partitions`].
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

/// The response of `ReadShareGroupState`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadShareGroupStateResponse {
    pub results: Vec<ReadStateResult>,
}

impl Wire for ReadShareGroupStateResponse {
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

/// See [`ReadShareGroupStateResponse::results`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadStateResult {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionResult>,
}

impl Wire for ReadStateResult {
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

/// See [`ReadStateResult::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionResult {
    pub partition: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub state_epoch: i32,
    pub start_offset: i64,
    pub state_batches: Vec<StateBatch>,
}

impl Wire for PartitionResult {
    fn min_size(_: i16, _: bool) -> usize {
        21
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            partition: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            state_epoch: d.i32()?,
            start_offset: d.i64()?,
            state_batches: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "PartitionResult::error_message")?;
        e.i32(self.state_epoch);
        e.i64(self.start_offset);
        e.array(&self.state_batches)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`PartitionResult::state_batches`].
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
