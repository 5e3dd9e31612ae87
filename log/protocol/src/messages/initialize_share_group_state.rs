// Generated from messages.txt by generate/main.rs; do not edit.

//! The API InitializeShareGroupState.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `InitializeShareGroupState`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitializeShareGroupStateRequest {
    pub group_id: ByteString,
    pub topics: Vec<InitializeStateData>,
}

impl Wire for InitializeShareGroupStateRequest {
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

/// See [`InitializeShareGroupStateRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitializeStateData {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionData>,
}

impl Wire for InitializeStateData {
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

/// See [`InitializeStateData::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionData {
    pub partition: i32,
    pub state_epoch: i32,
    pub start_offset: i64,
}

impl Wire for PartitionData {
    fn min_size(_: i16, _: bool) -> usize {
        17
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition: d.i32()?, state_epoch: d.i32()?, start_offset: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition);
        e.i32(self.state_epoch);
        e.i64(self.start_offset);
        e.no_tags();
        Ok(())
    }
}

/// The response of `InitializeShareGroupState`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitializeShareGroupStateResponse {
    pub results: Vec<InitializeStateResult>,
}

impl Wire for InitializeShareGroupStateResponse {
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

/// See [`InitializeShareGroupStateResponse::results`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitializeStateResult {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionResult>,
}

impl Wire for InitializeStateResult {
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

/// See [`InitializeStateResult::partitions`].
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
