// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeQuorum.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeQuorum`, versions 0 to 2, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeQuorumRequest {
    pub topics: Vec<TopicData>,
}

impl Wire for DescribeQuorumRequest {
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

/// See [`DescribeQuorumRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicData {
    pub topic_name: ByteString,
    pub partitions: Vec<PartitionData>,
}

impl Wire for TopicData {
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

/// See [`TopicData::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionData {
    pub partition_index: i32,
}

impl Wire for PartitionData {
    fn min_size(_: i16, _: bool) -> usize {
        5
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeQuorum`, versions 0 to 2, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeQuorumResponse {
    pub error_code: i16,
    /// From version 2. Left out of others.
    pub error_message: Option<ByteString>,
    pub topics: Vec<ResponseTopicData>,
    /// From version 2.
    pub nodes: Vec<Node>,
}

impl Default for DescribeQuorumResponse {
    fn default() -> Self {
        Self { error_code: 0, error_message: Some(ByteString::new()), topics: Vec::new(), nodes: Vec::new() }
    }
}

impl Wire for DescribeQuorumResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            error_code: d.i16()?,
            error_message: if version >= 2 { d.option_string(true)? } else { Some(ByteString::new()) },
            topics: d.array()?,
            nodes: if version >= 2 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i16(self.error_code);
        if version >= 2 {
            e.option_string(self.error_message.as_deref(), true, "DescribeQuorumResponse::error_message")?;
        }
        e.array(&self.topics)?;
        if version >= 2 {
            e.array(&self.nodes)?;
        } else {
            e.absent(!self.nodes.is_empty(), "DescribeQuorumResponse::nodes")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeQuorumResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseTopicData {
    pub topic_name: ByteString,
    pub partitions: Vec<ResponsePartitionData>,
}

impl Wire for ResponseTopicData {
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

/// See [`ResponseTopicData::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct ResponsePartitionData {
    pub partition_index: i32,
    pub error_code: i16,
    /// From version 2. Left out of others.
    pub error_message: Option<ByteString>,
    pub leader_id: i32,
    pub leader_epoch: i32,
    pub high_watermark: i64,
    pub current_voters: Vec<ReplicaState>,
    pub observers: Vec<ReplicaState>,
}

impl Default for ResponsePartitionData {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: 0,
            error_message: Some(ByteString::new()),
            leader_id: 0,
            leader_epoch: 0,
            high_watermark: 0,
            current_voters: Vec::new(),
            observers: Vec::new(),
        }
    }
}

impl Wire for ResponsePartitionData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 25,
            _ => 26,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            partition_index: d.i32()?,
            error_code: d.i16()?,
            error_message: if version >= 2 { d.option_string(true)? } else { Some(ByteString::new()) },
            leader_id: d.i32()?,
            leader_epoch: d.i32()?,
            high_watermark: d.i64()?,
            current_voters: d.array()?,
            observers: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition_index);
        e.i16(self.error_code);
        if version >= 2 {
            e.option_string(self.error_message.as_deref(), true, "ResponsePartitionData::error_message")?;
        }
        e.i32(self.leader_id);
        e.i32(self.leader_epoch);
        e.i64(self.high_watermark);
        e.array(&self.current_voters)?;
        e.array(&self.observers)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ResponsePartitionData::current_voters`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaState {
    pub replica_id: i32,
    /// From version 2.
    pub replica_directory_id: Uuid,
    pub log_end_offset: i64,
    /// From version 1. Left out of others.
    pub last_fetch_timestamp: i64,
    /// From version 1. Left out of others.
    pub last_caught_up_timestamp: i64,
}

impl Default for ReplicaState {
    fn default() -> Self {
        Self {
            replica_id: 0,
            replica_directory_id: Uuid::ZERO,
            log_end_offset: 0,
            last_fetch_timestamp: -1,
            last_caught_up_timestamp: -1,
        }
    }
}

impl Wire for ReplicaState {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 13,
            1 => 29,
            _ => 45,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            replica_id: d.i32()?,
            replica_directory_id: if version >= 2 { d.uuid()? } else { Uuid::ZERO },
            log_end_offset: d.i64()?,
            last_fetch_timestamp: if version >= 1 { d.i64()? } else { -1 },
            last_caught_up_timestamp: if version >= 1 { d.i64()? } else { -1 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.replica_id);
        if version >= 2 {
            e.uuid(self.replica_directory_id);
        } else {
            e.absent(!self.replica_directory_id.is_zero(), "ReplicaState::replica_directory_id")?;
        }
        e.i64(self.log_end_offset);
        if version >= 1 {
            e.i64(self.last_fetch_timestamp);
            e.i64(self.last_caught_up_timestamp);
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeQuorumResponse::nodes`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub node_id: i32,
    pub listeners: Vec<Listener>,
}

impl Wire for Node {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { node_id: d.i32()?, listeners: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.node_id);
        e.array(&self.listeners)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`Node::listeners`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listener {
    pub name: ByteString,
    pub host: ByteString,
    pub port: u16,
}

impl Wire for Listener {
    fn min_size(_: i16, _: bool) -> usize {
        5
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, host: d.string()?, port: d.u16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.string(&self.host)?;
        e.u16(self.port);
        e.no_tags();
        Ok(())
    }
}
