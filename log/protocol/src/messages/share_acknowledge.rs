// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ShareAcknowledge.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ShareAcknowledge`, versions 1 to 2, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareAcknowledgeRequest {
    pub group_id: Option<ByteString>,
    pub member_id: Option<ByteString>,
    pub share_session_epoch: i32,
    /// From version 2.
    pub is_renew_ack: bool,
    pub topics: Vec<AcknowledgeTopic>,
}

impl Default for ShareAcknowledgeRequest {
    fn default() -> Self {
        Self {
            group_id: None,
            member_id: Some(ByteString::new()),
            share_session_epoch: 0,
            is_renew_ack: false,
            topics: Vec::new(),
        }
    }
}

impl Wire for ShareAcknowledgeRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.option_string(true)?,
            member_id: d.option_string(true)?,
            share_session_epoch: d.i32()?,
            is_renew_ack: if version >= 2 { d.bool()? } else { false },
            topics: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.option_string(self.group_id.as_deref(), true, "ShareAcknowledgeRequest::group_id")?;
        e.option_string(self.member_id.as_deref(), true, "ShareAcknowledgeRequest::member_id")?;
        e.i32(self.share_session_epoch);
        if version >= 2 {
            e.bool(self.is_renew_ack);
        } else {
            e.absent(self.is_renew_ack, "ShareAcknowledgeRequest::is_renew_ack")?;
        }
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ShareAcknowledgeRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcknowledgeTopic {
    pub topic_id: Uuid,
    pub partitions: Vec<AcknowledgePartition>,
}

impl Wire for AcknowledgeTopic {
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

/// See [`AcknowledgeTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcknowledgePartition {
    pub partition_index: i32,
    pub acknowledgement_batches: Vec<AcknowledgementBatch>,
}

impl Wire for AcknowledgePartition {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()?, acknowledgement_batches: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.array(&self.acknowledgement_batches)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AcknowledgePartition::acknowledgement_batches`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcknowledgementBatch {
    pub first_offset: i64,
    pub last_offset: i64,
    pub acknowledge_types: Vec<i8>,
}

impl Wire for AcknowledgementBatch {
    fn min_size(_: i16, _: bool) -> usize {
        18
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { first_offset: d.i64()?, last_offset: d.i64()?, acknowledge_types: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.first_offset);
        e.i64(self.last_offset);
        e.array(&self.acknowledge_types)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `ShareAcknowledge`, versions 1 to 2, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareAcknowledgeResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    /// From version 2. Left out of others.
    pub acquisition_lock_timeout_ms: i32,
    pub responses: Vec<ShareAcknowledgeTopicResponse>,
    pub node_endpoints: Vec<NodeEndpoint>,
}

impl Wire for ShareAcknowledgeResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            acquisition_lock_timeout_ms: if version >= 2 { d.i32()? } else { 0 },
            responses: d.array()?,
            node_endpoints: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "ShareAcknowledgeResponse::error_message")?;
        if version >= 2 {
            e.i32(self.acquisition_lock_timeout_ms);
        }
        e.array(&self.responses)?;
        e.array(&self.node_endpoints)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ShareAcknowledgeResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareAcknowledgeTopicResponse {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionData>,
}

impl Wire for ShareAcknowledgeTopicResponse {
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

/// See [`ShareAcknowledgeTopicResponse::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionData {
    pub partition_index: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub current_leader: LeaderIdAndEpoch,
}

impl Wire for PartitionData {
    fn min_size(_: i16, _: bool) -> usize {
        17
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            partition_index: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            current_leader: LeaderIdAndEpoch::decode(d)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "PartitionData::error_message")?;
        self.current_leader.encode(e)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`PartitionData::current_leader`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaderIdAndEpoch {
    pub leader_id: i32,
    pub leader_epoch: i32,
}

impl Wire for LeaderIdAndEpoch {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { leader_id: d.i32()?, leader_epoch: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.leader_id);
        e.i32(self.leader_epoch);
        e.no_tags();
        Ok(())
    }
}

/// See [`ShareAcknowledgeResponse::node_endpoints`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeEndpoint {
    pub node_id: i32,
    pub host: ByteString,
    pub port: i32,
    pub rack: Option<ByteString>,
}

impl Wire for NodeEndpoint {
    fn min_size(_: i16, _: bool) -> usize {
        11
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { node_id: d.i32()?, host: d.string()?, port: d.i32()?, rack: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.node_id);
        e.string(&self.host)?;
        e.i32(self.port);
        e.option_string(self.rack.as_deref(), true, "NodeEndpoint::rack")?;
        e.no_tags();
        Ok(())
    }
}
