// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeTopicPartitions.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeTopicPartitions`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeTopicPartitionsRequest {
    pub topics: Vec<TopicRequest>,
    pub response_partition_limit: i32,
    pub cursor: Option<Cursor>,
}

impl Default for DescribeTopicPartitionsRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), response_partition_limit: 2000, cursor: None }
    }
}

impl Wire for DescribeTopicPartitionsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { topics: d.array()?, response_partition_limit: d.i32()?, cursor: d.option_struct()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.topics)?;
        e.i32(self.response_partition_limit);
        e.option_struct(self.cursor.as_ref())?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeTopicPartitionsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicRequest {
    pub name: ByteString,
}

impl Wire for TopicRequest {
    fn min_size(_: i16, _: bool) -> usize {
        2
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeTopicPartitionsRequest::cursor`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cursor {
    pub topic_name: ByteString,
    pub partition_index: i32,
}

impl Wire for Cursor {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic_name: d.string()?, partition_index: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic_name)?;
        e.i32(self.partition_index);
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeTopicPartitions`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeTopicPartitionsResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<DescribeTopicPartitionsResponseTopic>,
    pub next_cursor: Option<Cursor>,
}

impl Wire for DescribeTopicPartitionsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, topics: d.array()?, next_cursor: d.option_struct()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.topics)?;
        e.option_struct(self.next_cursor.as_ref())?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeTopicPartitionsResponse::topics`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeTopicPartitionsResponseTopic {
    pub error_code: i16,
    pub name: Option<ByteString>,
    pub topic_id: Uuid,
    pub is_internal: bool,
    pub partitions: Vec<DescribeTopicPartitionsResponsePartition>,
    pub topic_authorized_operations: i32,
}

impl Default for DescribeTopicPartitionsResponseTopic {
    fn default() -> Self {
        Self {
            error_code: 0,
            name: Some(ByteString::new()),
            topic_id: Uuid::ZERO,
            is_internal: false,
            partitions: Vec::new(),
            topic_authorized_operations: i32::MIN,
        }
    }
}

impl Wire for DescribeTopicPartitionsResponseTopic {
    fn min_size(_: i16, _: bool) -> usize {
        26
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            error_code: d.i16()?,
            name: d.option_string(true)?,
            topic_id: d.uuid()?,
            is_internal: d.bool()?,
            partitions: d.array()?,
            topic_authorized_operations: d.i32()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.option_string(self.name.as_deref(), true, "DescribeTopicPartitionsResponseTopic::name")?;
        e.uuid(self.topic_id);
        e.bool(self.is_internal);
        e.array(&self.partitions)?;
        e.i32(self.topic_authorized_operations);
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeTopicPartitionsResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeTopicPartitionsResponsePartition {
    pub error_code: i16,
    pub partition_index: i32,
    pub leader_id: i32,
    pub leader_epoch: i32,
    pub replica_nodes: Vec<i32>,
    pub isr_nodes: Vec<i32>,
    pub eligible_leader_replicas: Option<Vec<i32>>,
    pub last_known_elr: Option<Vec<i32>>,
    pub offline_replicas: Vec<i32>,
}

impl Default for DescribeTopicPartitionsResponsePartition {
    fn default() -> Self {
        Self {
            error_code: 0,
            partition_index: 0,
            leader_id: 0,
            leader_epoch: -1,
            replica_nodes: Vec::new(),
            isr_nodes: Vec::new(),
            eligible_leader_replicas: None,
            last_known_elr: None,
            offline_replicas: Vec::new(),
        }
    }
}

impl Wire for DescribeTopicPartitionsResponsePartition {
    fn min_size(_: i16, _: bool) -> usize {
        20
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            error_code: d.i16()?,
            partition_index: d.i32()?,
            leader_id: d.i32()?,
            leader_epoch: d.i32()?,
            replica_nodes: d.array()?,
            isr_nodes: d.array()?,
            eligible_leader_replicas: d.option_array(true)?,
            last_known_elr: d.option_array(true)?,
            offline_replicas: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.i32(self.partition_index);
        e.i32(self.leader_id);
        e.i32(self.leader_epoch);
        e.array(&self.replica_nodes)?;
        e.array(&self.isr_nodes)?;
        e.option_array(
            self.eligible_leader_replicas.as_deref(),
            true,
            "DescribeTopicPartitionsResponsePartition::eligible_leader_replicas",
        )?;
        e.option_array(
            self.last_known_elr.as_deref(),
            true,
            "DescribeTopicPartitionsResponsePartition::last_known_elr",
        )?;
        e.array(&self.offline_replicas)?;
        e.no_tags();
        Ok(())
    }
}
