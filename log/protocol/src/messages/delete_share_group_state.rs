// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DeleteShareGroupState.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DeleteShareGroupState`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteShareGroupStateRequest {
    pub group_id: ByteString,
    pub topics: Vec<DeleteStateData>,
}

impl Wire for DeleteShareGroupStateRequest {
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

/// See [`DeleteShareGroupStateRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteStateData {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionData>,
}

impl Wire for DeleteStateData {
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

/// See [`DeleteStateData::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionData {
    pub partition: i32,
}

impl Wire for PartitionData {
    fn min_size(_: i16, _: bool) -> usize {
        5
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition);
        e.no_tags();
        Ok(())
    }
}

/// The response of `DeleteShareGroupState`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteShareGroupStateResponse {
    pub results: Vec<DeleteStateResult>,
}

impl Wire for DeleteShareGroupStateResponse {
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

/// See [`DeleteShareGroupStateResponse::results`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteStateResult {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionResult>,
}

impl Wire for DeleteStateResult {
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

/// See [`DeleteStateResult::partitions`].
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
