// Generated from messages.txt by generate/main.rs; do not edit.

//! The API Produce.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};
use crate::{Records, Uuid};

/// The request of `Produce`, versions 3 to 13, flexible from 9.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProduceRequest {
    pub transactional_id: Option<ByteString>,
    pub acks: i16,
    pub timeout_ms: i32,
    pub topic_data: Vec<TopicProduceData>,
}

impl Wire for ProduceRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            transactional_id: d.option_string(true)?,
            acks: d.i16()?,
            timeout_ms: d.i32()?,
            topic_data: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.option_string(self.transactional_id.as_deref(), true, "ProduceRequest::transactional_id")?;
        e.i16(self.acks);
        e.i32(self.timeout_ms);
        e.array(&self.topic_data)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ProduceRequest::topic_data`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicProduceData {
    /// To version 12. Left out of others.
    pub name: ByteString,
    /// From version 13. Left out of others.
    pub topic_id: Uuid,
    pub partition_data: Vec<PartitionProduceData>,
}

impl Wire for TopicProduceData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=8 => 6,
            9..=12 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: if version <= 12 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 13 { d.uuid()? } else { Uuid::ZERO },
            partition_data: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 12 {
            e.string(&self.name)?;
        }
        if version >= 13 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partition_data)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TopicProduceData::partition_data`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionProduceData {
    pub index: i32,
    pub records: Option<Records>,
}

impl Wire for PartitionProduceData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=8 => 8,
            _ => 6,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { index: d.i32()?, records: d.records(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.index);
        e.records(self.records.as_ref(), true, "PartitionProduceData::records")?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `Produce`, versions 3 to 13, flexible from 9.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProduceResponse {
    pub responses: Vec<TopicProduceResponse>,
    pub throttle_time_ms: i32,
    /// From version 10.
    pub node_endpoints: Vec<NodeEndpoint>,
}

impl Wire for ProduceResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value =
            Self { responses: d.array()?, throttle_time_ms: d.i32()?, node_endpoints: Vec::new() };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 10 => value.node_endpoints = d.array()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.array(&self.responses)?;
        e.i32(self.throttle_time_ms);
        let tags = e.tags();
        if version >= 10 {
            if !self.node_endpoints.is_empty() {
                e.tag(tags, 0, |e| e.array(&self.node_endpoints))?;
            }
        } else {
            e.absent(!self.node_endpoints.is_empty(), "ProduceResponse::node_endpoints")?;
        }
        Ok(())
    }
}

/// See [`ProduceResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicProduceResponse {
    /// To version 12. Left out of others.
    pub name: ByteString,
    /// From version 13. Left out of others.
    pub topic_id: Uuid,
    pub partition_responses: Vec<PartitionProduceResponse>,
}

impl Wire for TopicProduceResponse {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=8 => 6,
            9..=12 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: if version <= 12 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 13 { d.uuid()? } else { Uuid::ZERO },
            partition_responses: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 12 {
            e.string(&self.name)?;
        }
        if version >= 13 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partition_responses)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TopicProduceResponse::partition_responses`].
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionProduceResponse {
    pub index: i32,
    pub error_code: i16,
    pub base_offset: i64,
    pub log_append_time_ms: i64,
    /// From version 5. Left out of others.
    pub log_start_offset: i64,
    /// From version 8. Left out of others.
    pub record_errors: Vec<BatchIndexAndErrorMessage>,
    /// From version 8. Left out of others.
    pub error_message: Option<ByteString>,
    /// From version 10.
    pub current_leader: LeaderIdAndEpoch,
}

impl Default for PartitionProduceResponse {
    fn default() -> Self {
        Self {
            index: 0,
            error_code: 0,
            base_offset: 0,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: LeaderIdAndEpoch::default(),
        }
    }
}

impl Wire for PartitionProduceResponse {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 22,
            5..=7 => 30,
            8 => 36,
            _ => 33,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value = Self {
            index: d.i32()?,
            error_code: d.i16()?,
            base_offset: d.i64()?,
            log_append_time_ms: d.i64()?,
            log_start_offset: if version >= 5 { d.i64()? } else { -1 },
            record_errors: if version >= 8 { d.array()? } else { Vec::new() },
            error_message: if version >= 8 { d.option_string(true)? } else { None },
            current_leader: LeaderIdAndEpoch::default(),
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 10 => value.current_leader = LeaderIdAndEpoch::decode(d)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.index);
        e.i16(self.error_code);
        e.i64(self.base_offset);
        e.i64(self.log_append_time_ms);
        if version >= 5 {
            e.i64(self.log_start_offset);
        }
        if version >= 8 {
            e.array(&self.record_errors)?;
            e.option_string(self.error_message.as_deref(), true, "PartitionProduceResponse::error_message")?;
        }
        let tags = e.tags();
        if version >= 10 {
            if self.current_leader != LeaderIdAndEpoch::default() {
                e.tag(tags, 0, |e| self.current_leader.encode(e))?;
            }
        } else {
            e.absent(
                self.current_leader != LeaderIdAndEpoch::default(),
                "PartitionProduceResponse::current_leader",
            )?;
        }
        Ok(())
    }
}

/// See [`PartitionProduceResponse::record_errors`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchIndexAndErrorMessage {
    pub batch_index: i32,
    pub batch_index_error_message: Option<ByteString>,
}

impl Wire for BatchIndexAndErrorMessage {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { batch_index: d.i32()?, batch_index_error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.batch_index);
        e.option_string(
            self.batch_index_error_message.as_deref(),
            true,
            "BatchIndexAndErrorMessage::batch_index_error_message",
        )?;
        e.no_tags();
        Ok(())
    }
}

/// See [`PartitionProduceResponse::current_leader`].
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderIdAndEpoch {
    pub leader_id: i32,
    pub leader_epoch: i32,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self { leader_id: -1, leader_epoch: -1 }
    }
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

/// See [`ProduceResponse::node_endpoints`].
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
