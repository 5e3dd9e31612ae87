// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ListPartitionReassignments.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ListPartitionReassignments`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPartitionReassignmentsRequest {
    pub timeout_ms: i32,
    pub topics: Option<Vec<ListPartitionReassignmentsTopics>>,
}

impl Default for ListPartitionReassignmentsRequest {
    fn default() -> Self {
        Self { timeout_ms: 60000, topics: None }
    }
}

impl Wire for ListPartitionReassignmentsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { timeout_ms: d.i32()?, topics: d.option_array(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.timeout_ms);
        e.option_array(self.topics.as_deref(), true, "ListPartitionReassignmentsRequest::topics")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ListPartitionReassignmentsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListPartitionReassignmentsTopics {
    pub name: ByteString,
    pub partition_indexes: Vec<i32>,
}

impl Wire for ListPartitionReassignmentsTopics {
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

/// The response of `ListPartitionReassignments`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPartitionReassignmentsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub topics: Vec<OngoingTopicReassignment>,
}

impl Default for ListPartitionReassignmentsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: Some(ByteString::new()),
            topics: Vec::new(),
        }
    }
}

impl Wire for ListPartitionReassignmentsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            topics: d.array()?,
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
            "ListPartitionReassignmentsResponse::error_message",
        )?;
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ListPartitionReassignmentsResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OngoingTopicReassignment {
    pub name: ByteString,
    pub partitions: Vec<OngoingPartitionReassignment>,
}

impl Wire for OngoingTopicReassignment {
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

/// See [`OngoingTopicReassignment::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OngoingPartitionReassignment {
    pub partition_index: i32,
    pub replicas: Vec<i32>,
    pub adding_replicas: Vec<i32>,
    pub removing_replicas: Vec<i32>,
}

impl Wire for OngoingPartitionReassignment {
    fn min_size(_: i16, _: bool) -> usize {
        8
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            partition_index: d.i32()?,
            replicas: d.array()?,
            adding_replicas: d.array()?,
            removing_replicas: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.array(&self.replicas)?;
        e.array(&self.adding_replicas)?;
        e.array(&self.removing_replicas)?;
        e.no_tags();
        Ok(())
    }
}
