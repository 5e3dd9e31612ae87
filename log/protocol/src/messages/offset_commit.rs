// Generated from messages.txt by generate/main.rs; do not edit.

//! The API OffsetCommit.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `OffsetCommit`, versions 2 to 10, flexible from 8.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetCommitRequest {
    pub group_id: ByteString,
    pub generation_id_or_member_epoch: i32,
    pub member_id: ByteString,
    /// From version 7.
    pub group_instance_id: Option<ByteString>,
    /// To version 4. Left out of others.
    pub retention_time_ms: i64,
    pub topics: Vec<OffsetCommitRequestTopic>,
}

impl Default for OffsetCommitRequest {
    fn default() -> Self {
        Self {
            group_id: ByteString::new(),
            generation_id_or_member_epoch: -1,
            member_id: ByteString::new(),
            group_instance_id: None,
            retention_time_ms: -1,
            topics: Vec::new(),
        }
    }
}

impl Wire for OffsetCommitRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.string()?,
            generation_id_or_member_epoch: d.i32()?,
            member_id: d.string()?,
            group_instance_id: if version >= 7 { d.option_string(true)? } else { None },
            retention_time_ms: if version <= 4 { d.i64()? } else { -1 },
            topics: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.group_id)?;
        e.i32(self.generation_id_or_member_epoch);
        e.string(&self.member_id)?;
        if version >= 7 {
            e.option_string(
                self.group_instance_id.as_deref(),
                true,
                "OffsetCommitRequest::group_instance_id",
            )?;
        } else {
            e.absent(self.group_instance_id.is_some(), "OffsetCommitRequest::group_instance_id")?;
        }
        if version <= 4 {
            e.i64(self.retention_time_ms);
        }
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetCommitRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetCommitRequestTopic {
    /// To version 9. Left out of others.
    pub name: ByteString,
    /// From version 10. Left out of others.
    pub topic_id: Uuid,
    pub partitions: Vec<OffsetCommitRequestPartition>,
}

impl Wire for OffsetCommitRequestTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=7 => 6,
            8..=9 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: if version <= 9 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 10 { d.uuid()? } else { Uuid::ZERO },
            partitions: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 9 {
            e.string(&self.name)?;
        }
        if version >= 10 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetCommitRequestTopic::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetCommitRequestPartition {
    pub partition_index: i32,
    pub committed_offset: i64,
    /// From version 6. Left out of others.
    pub committed_leader_epoch: i32,
    pub committed_metadata: Option<ByteString>,
}

impl Default for OffsetCommitRequestPartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            committed_metadata: Some(ByteString::new()),
        }
    }
}

impl Wire for OffsetCommitRequestPartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=5 => 14,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            partition_index: d.i32()?,
            committed_offset: d.i64()?,
            committed_leader_epoch: if version >= 6 { d.i32()? } else { -1 },
            committed_metadata: d.option_string(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition_index);
        e.i64(self.committed_offset);
        if version >= 6 {
            e.i32(self.committed_leader_epoch);
        }
        e.option_string(
            self.committed_metadata.as_deref(),
            true,
            "OffsetCommitRequestPartition::committed_metadata",
        )?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `OffsetCommit`, versions 2 to 10, flexible from 8.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetCommitResponse {
    /// From version 3. Left out of others.
    pub throttle_time_ms: i32,
    pub topics: Vec<OffsetCommitResponseTopic>,
}

impl Wire for OffsetCommitResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self { throttle_time_ms: if version >= 3 { d.i32()? } else { 0 }, topics: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 3 {
            e.i32(self.throttle_time_ms);
        }
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetCommitResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetCommitResponseTopic {
    /// To version 9. Left out of others.
    pub name: ByteString,
    /// From version 10. Left out of others.
    pub topic_id: Uuid,
    pub partitions: Vec<OffsetCommitResponsePartition>,
}

impl Wire for OffsetCommitResponseTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=7 => 6,
            8..=9 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: if version <= 9 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 10 { d.uuid()? } else { Uuid::ZERO },
            partitions: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 9 {
            e.string(&self.name)?;
        }
        if version >= 10 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetCommitResponseTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetCommitResponsePartition {
    pub partition_index: i32,
    pub error_code: i16,
}

impl Wire for OffsetCommitResponsePartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=7 => 6,
            _ => 7,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()?, error_code: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}
