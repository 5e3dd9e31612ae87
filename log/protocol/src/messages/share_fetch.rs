// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ShareFetch.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};
use crate::{Records, Uuid};

/// The request of `ShareFetch`, versions 1 to 2, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareFetchRequest {
    pub group_id: Option<ByteString>,
    pub member_id: Option<ByteString>,
    pub share_session_epoch: i32,
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    pub max_records: i32,
    pub batch_size: i32,
    /// From version 2. Left out of others.
    pub share_acquire_mode: i8,
    /// From version 2.
    pub is_renew_ack: bool,
    pub topics: Vec<FetchTopic>,
    pub forgotten_topics_data: Vec<ForgottenTopic>,
}

impl Default for ShareFetchRequest {
    fn default() -> Self {
        Self {
            group_id: None,
            member_id: Some(ByteString::new()),
            share_session_epoch: 0,
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: i32::MAX,
            max_records: 0,
            batch_size: 0,
            share_acquire_mode: 0,
            is_renew_ack: false,
            topics: Vec::new(),
            forgotten_topics_data: Vec::new(),
        }
    }
}

impl Wire for ShareFetchRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.option_string(true)?,
            member_id: d.option_string(true)?,
            share_session_epoch: d.i32()?,
            max_wait_ms: d.i32()?,
            min_bytes: d.i32()?,
            max_bytes: d.i32()?,
            max_records: d.i32()?,
            batch_size: d.i32()?,
            share_acquire_mode: if version >= 2 { d.i8()? } else { 0 },
            is_renew_ack: if version >= 2 { d.bool()? } else { false },
            topics: d.array()?,
            forgotten_topics_data: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.option_string(self.group_id.as_deref(), true, "ShareFetchRequest::group_id")?;
        e.option_string(self.member_id.as_deref(), true, "ShareFetchRequest::member_id")?;
        e.i32(self.share_session_epoch);
        e.i32(self.max_wait_ms);
        e.i32(self.min_bytes);
        e.i32(self.max_bytes);
        e.i32(self.max_records);
        e.i32(self.batch_size);
        if version >= 2 {
            e.i8(self.share_acquire_mode);
            e.bool(self.is_renew_ack);
        } else {
            e.absent(self.is_renew_ack, "ShareFetchRequest::is_renew_ack")?;
        }
        e.array(&self.topics)?;
        e.array(&self.forgotten_topics_data)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ShareFetchRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchTopic {
    pub topic_id: Uuid,
    pub partitions: Vec<FetchPartition>,
}

impl Wire for FetchTopic {
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

/// See [`FetchTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchPartition {
    pub partition_index: i32,
    pub acknowledgement_batches: Vec<AcknowledgementBatch>,
}

impl Wire for FetchPartition {
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

/// See [`FetchPartition::acknowledgement_batches`].
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

/// See [`ShareFetchRequest::forgotten_topics_data`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForgottenTopic {
    pub topic_id: Uuid,
    pub partitions: Vec<i32>,
}

impl Wire for ForgottenTopic {
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

/// The response of `ShareFetch`, versions 1 to 2, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareFetchResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub acquisition_lock_timeout_ms: i32,
    pub responses: Vec<ShareFetchableTopicResponse>,
    pub node_endpoints: Vec<NodeEndpoint>,
}

impl Wire for ShareFetchResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            acquisition_lock_timeout_ms: d.i32()?,
            responses: d.array()?,
            node_endpoints: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "ShareFetchResponse::error_message")?;
        e.i32(self.acquisition_lock_timeout_ms);
        e.array(&self.responses)?;
        e.array(&self.node_endpoints)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ShareFetchResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareFetchableTopicResponse {
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionData>,
}

impl Wire for ShareFetchableTopicResponse {
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

/// See [`ShareFetchableTopicResponse::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionData {
    pub partition_index: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub acknowledge_error_code: i16,
    pub acknowledge_error_message: Option<ByteString>,
    pub current_leader: LeaderIdAndEpoch,
    pub records: Option<Records>,
    pub acquired_records: Vec<AcquiredRecords>,
}

impl Wire for PartitionData {
    fn min_size(_: i16, _: bool) -> usize {
        22
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            partition_index: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            acknowledge_error_code: d.i16()?,
            acknowledge_error_message: d.option_string(true)?,
            current_leader: LeaderIdAndEpoch::decode(d)?,
            records: d.records(false)?,
            acquired_records: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "PartitionData::error_message")?;
        e.i16(self.acknowledge_error_code);
        e.option_string(
            self.acknowledge_error_message.as_deref(),
            true,
            "PartitionData::acknowledge_error_message",
        )?;
        self.current_leader.encode(e)?;
        e.records(self.records.as_ref(), false, "PartitionData::records")?;
        e.array(&self.acquired_records)?;
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

/// See [`PartitionData::acquired_records`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcquiredRecords {
    pub first_offset: i64,
    pub last_offset: i64,
    pub delivery_count: i16,
}

impl Wire for AcquiredRecords {
    fn min_size(_: i16, _: bool) -> usize {
        19
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { first_offset: d.i64()?, last_offset: d.i64()?, delivery_count: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.first_offset);
        e.i64(self.last_offset);
        e.i16(self.delivery_count);
        e.no_tags();
        Ok(())
    }
}

/// See [`ShareFetchResponse::node_endpoints`].
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
