// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ConsumerGroupHeartbeat.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ConsumerGroupHeartbeat`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerGroupHeartbeatRequest {
    pub group_id: ByteString,
    pub member_id: ByteString,
    pub member_epoch: i32,
    pub instance_id: Option<ByteString>,
    pub rack_id: Option<ByteString>,
    pub rebalance_timeout_ms: i32,
    pub subscribed_topic_names: Option<Vec<ByteString>>,
    /// From version 1.
    pub subscribed_topic_regex: Option<ByteString>,
    pub server_assignor: Option<ByteString>,
    pub topic_partitions: Option<Vec<TopicPartitions>>,
}

impl Default for ConsumerGroupHeartbeatRequest {
    fn default() -> Self {
        Self {
            group_id: ByteString::new(),
            member_id: ByteString::new(),
            member_epoch: 0,
            instance_id: None,
            rack_id: None,
            rebalance_timeout_ms: -1,
            subscribed_topic_names: None,
            subscribed_topic_regex: None,
            server_assignor: None,
            topic_partitions: None,
        }
    }
}

impl Wire for ConsumerGroupHeartbeatRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.string()?,
            member_id: d.string()?,
            member_epoch: d.i32()?,
            instance_id: d.option_string(true)?,
            rack_id: d.option_string(true)?,
            rebalance_timeout_ms: d.i32()?,
            subscribed_topic_names: d.option_array(true)?,
            subscribed_topic_regex: if version >= 1 { d.option_string(true)? } else { None },
            server_assignor: d.option_string(true)?,
            topic_partitions: d.option_array(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.group_id)?;
        e.string(&self.member_id)?;
        e.i32(self.member_epoch);
        e.option_string(self.instance_id.as_deref(), true, "ConsumerGroupHeartbeatRequest::instance_id")?;
        e.option_string(self.rack_id.as_deref(), true, "ConsumerGroupHeartbeatRequest::rack_id")?;
        e.i32(self.rebalance_timeout_ms);
        e.option_array(
            self.subscribed_topic_names.as_deref(),
            true,
            "ConsumerGroupHeartbeatRequest::subscribed_topic_names",
        )?;
        if version >= 1 {
            e.option_string(
                self.subscribed_topic_regex.as_deref(),
                true,
                "ConsumerGroupHeartbeatRequest::subscribed_topic_regex",
            )?;
        } else {
            e.absent(
                self.subscribed_topic_regex.is_some(),
                "ConsumerGroupHeartbeatRequest::subscribed_topic_regex",
            )?;
        }
        e.option_string(
            self.server_assignor.as_deref(),
            true,
            "ConsumerGroupHeartbeatRequest::server_assignor",
        )?;
        e.option_array(
            self.topic_partitions.as_deref(),
            true,
            "ConsumerGroupHeartbeatRequest::topic_partitions",
        )?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ConsumerGroupHeartbeatRequest::topic_partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicPartitions {
    pub topic_id: Uuid,
    pub partitions: Vec<i32>,
}

impl Wire for TopicPartitions {
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

/// The response of `ConsumerGroupHeartbeat`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumerGroupHeartbeatResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub member_id: Option<ByteString>,
    pub member_epoch: i32,
    pub heartbeat_interval_ms: i32,
    pub assignment: Option<Assignment>,
}

impl Wire for ConsumerGroupHeartbeatResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            member_id: d.option_string(true)?,
            member_epoch: d.i32()?,
            heartbeat_interval_ms: d.i32()?,
            assignment: d.option_struct()?,
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
            "ConsumerGroupHeartbeatResponse::error_message",
        )?;
        e.option_string(self.member_id.as_deref(), true, "ConsumerGroupHeartbeatResponse::member_id")?;
        e.i32(self.member_epoch);
        e.i32(self.heartbeat_interval_ms);
        e.option_struct(self.assignment.as_ref())?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ConsumerGroupHeartbeatResponse::assignment`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    pub topic_partitions: Vec<TopicPartitions>,
}

impl Wire for Assignment {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic_partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.topic_partitions)?;
        e.no_tags();
        Ok(())
    }
}
