// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ConsumerGroupDescribe.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ConsumerGroupDescribe`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumerGroupDescribeRequest {
    pub group_ids: Vec<ByteString>,
    pub include_authorized_operations: bool,
}

impl Wire for ConsumerGroupDescribeRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { group_ids: d.array()?, include_authorized_operations: d.bool()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.group_ids)?;
        e.bool(self.include_authorized_operations);
        e.no_tags();
        Ok(())
    }
}

/// The response of `ConsumerGroupDescribe`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumerGroupDescribeResponse {
    pub throttle_time_ms: i32,
    pub groups: Vec<DescribedGroup>,
}

impl Wire for ConsumerGroupDescribeResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, groups: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.groups)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ConsumerGroupDescribeResponse::groups`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedGroup {
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub group_id: ByteString,
    pub group_state: ByteString,
    pub group_epoch: i32,
    pub assignment_epoch: i32,
    pub assignor_name: ByteString,
    pub members: Vec<Member>,
    pub authorized_operations: i32,
}

impl Default for DescribedGroup {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: None,
            group_id: ByteString::new(),
            group_state: ByteString::new(),
            group_epoch: 0,
            assignment_epoch: 0,
            assignor_name: ByteString::new(),
            members: Vec::new(),
            authorized_operations: i32::MIN,
        }
    }
}

impl Wire for DescribedGroup {
    fn min_size(_: i16, _: bool) -> usize {
        20
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            group_id: d.string()?,
            group_state: d.string()?,
            group_epoch: d.i32()?,
            assignment_epoch: d.i32()?,
            assignor_name: d.string()?,
            members: d.array()?,
            authorized_operations: d.i32()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "DescribedGroup::error_message")?;
        e.string(&self.group_id)?;
        e.string(&self.group_state)?;
        e.i32(self.group_epoch);
        e.i32(self.assignment_epoch);
        e.string(&self.assignor_name)?;
        e.array(&self.members)?;
        e.i32(self.authorized_operations);
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribedGroup::members`].
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub member_id: ByteString,
    pub instance_id: Option<ByteString>,
    pub rack_id: Option<ByteString>,
    pub member_epoch: i32,
    pub client_id: ByteString,
    pub client_host: ByteString,
    pub subscribed_topic_names: Vec<ByteString>,
    pub subscribed_topic_regex: Option<ByteString>,
    pub assignment: Assignment,
    pub target_assignment: Assignment,
    /// From version 1. Left out of others.
    pub member_type: i8,
}

impl Default for Member {
    fn default() -> Self {
        Self {
            member_id: ByteString::new(),
            instance_id: None,
            rack_id: None,
            member_epoch: 0,
            client_id: ByteString::new(),
            client_host: ByteString::new(),
            subscribed_topic_names: Vec::new(),
            subscribed_topic_regex: None,
            assignment: Assignment::default(),
            target_assignment: Assignment::default(),
            member_type: -1,
        }
    }
}

impl Wire for Member {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 16,
            _ => 17,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            member_id: d.string()?,
            instance_id: d.option_string(true)?,
            rack_id: d.option_string(true)?,
            member_epoch: d.i32()?,
            client_id: d.string()?,
            client_host: d.string()?,
            subscribed_topic_names: d.array()?,
            subscribed_topic_regex: d.option_string(true)?,
            assignment: Assignment::decode(d)?,
            target_assignment: Assignment::decode(d)?,
            member_type: if version >= 1 { d.i8()? } else { -1 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.member_id)?;
        e.option_string(self.instance_id.as_deref(), true, "Member::instance_id")?;
        e.option_string(self.rack_id.as_deref(), true, "Member::rack_id")?;
        e.i32(self.member_epoch);
        e.string(&self.client_id)?;
        e.string(&self.client_host)?;
        e.array(&self.subscribed_topic_names)?;
        e.option_string(self.subscribed_topic_regex.as_deref(), true, "Member::subscribed_topic_regex")?;
        self.assignment.encode(e)?;
        self.target_assignment.encode(e)?;
        if version >= 1 {
            e.i8(self.member_type);
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`Member::assignment`].
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
    pub topic_name: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for TopicPartitions {
    fn min_size(_: i16, _: bool) -> usize {
        19
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic_id: d.uuid()?, topic_name: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.uuid(self.topic_id);
        e.string(&self.topic_name)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}
