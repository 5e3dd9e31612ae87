// Generated from messages.txt by generate/main.rs; do not edit.

//! The API TxnOffsetCommit.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `TxnOffsetCommit`, versions 0 to 6, flexible from 3.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnOffsetCommitRequest {
    pub transactional_id: ByteString,
    pub group_id: ByteString,
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// From version 3.
    pub generation_id_or_member_epoch: i32,
    /// From version 3.
    pub member_id: ByteString,
    /// From version 3.
    pub group_instance_id: Option<ByteString>,
    pub topics: Vec<TxnOffsetCommitRequestTopic>,
}

impl Default for TxnOffsetCommitRequest {
    fn default() -> Self {
        Self {
            transactional_id: ByteString::new(),
            group_id: ByteString::new(),
            producer_id: 0,
            producer_epoch: 0,
            generation_id_or_member_epoch: -1,
            member_id: ByteString::new(),
            group_instance_id: None,
            topics: Vec::new(),
        }
    }
}

impl Wire for TxnOffsetCommitRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            transactional_id: d.string()?,
            group_id: d.string()?,
            producer_id: d.i64()?,
            producer_epoch: d.i16()?,
            generation_id_or_member_epoch: if version >= 3 { d.i32()? } else { -1 },
            member_id: if version >= 3 { d.string()? } else { ByteString::new() },
            group_instance_id: if version >= 3 { d.option_string(true)? } else { None },
            topics: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.transactional_id)?;
        e.string(&self.group_id)?;
        e.i64(self.producer_id);
        e.i16(self.producer_epoch);
        if version >= 3 {
            e.i32(self.generation_id_or_member_epoch);
            e.string(&self.member_id)?;
            e.option_string(
                self.group_instance_id.as_deref(),
                true,
                "TxnOffsetCommitRequest::group_instance_id",
            )?;
        } else {
            e.absent(
                self.generation_id_or_member_epoch != -1,
                "TxnOffsetCommitRequest::generation_id_or_member_epoch",
            )?;
            e.absent(!self.member_id.is_empty(), "TxnOffsetCommitRequest::member_id")?;
            e.absent(self.group_instance_id.is_some(), "TxnOffsetCommitRequest::group_instance_id")?;
        }
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TxnOffsetCommitRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TxnOffsetCommitRequestTopic {
    /// To version 5. Left out of others.
    pub name: ByteString,
    /// From version 6. Left out of others.
    pub topic_id: Uuid,
    pub partitions: Vec<TxnOffsetCommitRequestPartition>,
}

impl Wire for TxnOffsetCommitRequestTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 6,
            3..=5 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: if version <= 5 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 6 { d.uuid()? } else { Uuid::ZERO },
            partitions: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 5 {
            e.string(&self.name)?;
        }
        if version >= 6 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TxnOffsetCommitRequestTopic::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct TxnOffsetCommitRequestPartition {
    pub partition_index: i32,
    pub committed_offset: i64,
    /// From version 2. Left out of others.
    pub committed_leader_epoch: i32,
    pub committed_metadata: Option<ByteString>,
}

impl Default for TxnOffsetCommitRequestPartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            committed_metadata: Some(ByteString::new()),
        }
    }
}

impl Wire for TxnOffsetCommitRequestPartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 14,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            partition_index: d.i32()?,
            committed_offset: d.i64()?,
            committed_leader_epoch: if version >= 2 { d.i32()? } else { -1 },
            committed_metadata: d.option_string(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition_index);
        e.i64(self.committed_offset);
        if version >= 2 {
            e.i32(self.committed_leader_epoch);
        }
        e.option_string(
            self.committed_metadata.as_deref(),
            true,
            "TxnOffsetCommitRequestPartition::committed_metadata",
        )?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `TxnOffsetCommit`, versions 0 to 6, flexible from 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TxnOffsetCommitResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<TxnOffsetCommitResponseTopic>,
}

impl Wire for TxnOffsetCommitResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, topics: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TxnOffsetCommitResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TxnOffsetCommitResponseTopic {
    /// To version 5. Left out of others.
    pub name: ByteString,
    /// From version 6. Left out of others.
    pub topic_id: Uuid,
    pub partitions: Vec<TxnOffsetCommitResponsePartition>,
}

impl Wire for TxnOffsetCommitResponseTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 6,
            3..=5 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: if version <= 5 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 6 { d.uuid()? } else { Uuid::ZERO },
            partitions: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 5 {
            e.string(&self.name)?;
        }
        if version >= 6 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TxnOffsetCommitResponseTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TxnOffsetCommitResponsePartition {
    pub partition_index: i32,
    pub error_code: i16,
}

impl Wire for TxnOffsetCommitResponsePartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 6,
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
