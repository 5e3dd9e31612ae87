// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ShareGroupHeartbeat.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ShareGroupHeartbeat`, version 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareGroupHeartbeatRequest {
    pub group_id: ByteString,
    pub member_id: ByteString,
    pub member_epoch: i32,
    pub rack_id: Option<ByteString>,
    pub subscribed_topic_names: Option<Vec<ByteString>>,
}

impl Wire for ShareGroupHeartbeatRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            group_id: d.string()?,
            member_id: d.string()?,
            member_epoch: d.i32()?,
            rack_id: d.option_string(true)?,
            subscribed_topic_names: d.option_array(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.string(&self.member_id)?;
        e.i32(self.member_epoch);
        e.option_string(self.rack_id.as_deref(), true, "ShareGroupHeartbeatRequest::rack_id")?;
        e.option_array(
            self.subscribed_topic_names.as_deref(),
            true,
            "ShareGroupHeartbeatRequest::subscribed_topic_names",
        )?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `ShareGroupHeartbeat`, version 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareGroupHeartbeatResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub member_id: Option<ByteString>,
    pub member_epoch: i32,
    pub heartbeat_interval_ms: i32,
    pub assignment: Option<Assignment>,
}

impl Wire for ShareGroupHeartbeatResponse {
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
        e.option_string(self.error_message.as_deref(), true, "ShareGroupHeartbeatResponse::error_message")?;
        e.option_string(self.member_id.as_deref(), true, "ShareGroupHeartbeatResponse::member_id")?;
        e.i32(self.member_epoch);
        e.i32(self.heartbeat_interval_ms);
        e.option_struct(self.assignment.as_ref())?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ShareGroupHeartbeatResponse::assignment`].
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

/// See [`Assignment::topic_partitions`].
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
