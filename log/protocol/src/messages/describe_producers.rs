// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeProducers.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeProducers`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeProducersRequest {
    pub topics: Vec<TopicRequest>,
}

impl Wire for DescribeProducersRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topics: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeProducersRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicRequest {
    pub name: ByteString,
    pub partition_indexes: Vec<i32>,
}

impl Wire for TopicRequest {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, partition_indexes: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.array(&self.partition_indexes)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeProducers`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeProducersResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<TopicResponse>,
}

impl Wire for DescribeProducersResponse {
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

/// See [`DescribeProducersResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicResponse {
    pub name: ByteString,
    pub partitions: Vec<PartitionResponse>,
}

impl Wire for TopicResponse {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TopicResponse::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionResponse {
    pub partition_index: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub active_producers: Vec<ProducerState>,
}

impl Wire for PartitionResponse {
    fn min_size(_: i16, _: bool) -> usize {
        9
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            partition_index: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            active_producers: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "PartitionResponse::error_message")?;
        e.array(&self.active_producers)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`PartitionResponse::active_producers`].
#[derive(Clone, Debug, PartialEq)]
pub struct ProducerState {
    pub producer_id: i64,
    pub producer_epoch: i32,
    pub last_sequence: i32,
    pub last_timestamp: i64,
    pub coordinator_epoch: i32,
    pub current_txn_start_offset: i64,
}

impl Default for ProducerState {
    fn default() -> Self {
        Self {
            producer_id: 0,
            producer_epoch: 0,
            last_sequence: -1,
            last_timestamp: -1,
            coordinator_epoch: 0,
            current_txn_start_offset: -1,
        }
    }
}

impl Wire for ProducerState {
    fn min_size(_: i16, _: bool) -> usize {
        37
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            producer_id: d.i64()?,
            producer_epoch: d.i32()?,
            last_sequence: d.i32()?,
            last_timestamp: d.i64()?,
            coordinator_epoch: d.i32()?,
            current_txn_start_offset: d.i64()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.producer_id);
        e.i32(self.producer_epoch);
        e.i32(self.last_sequence);
        e.i64(self.last_timestamp);
        e.i32(self.coordinator_epoch);
        e.i64(self.current_txn_start_offset);
        e.no_tags();
        Ok(())
    }
}
