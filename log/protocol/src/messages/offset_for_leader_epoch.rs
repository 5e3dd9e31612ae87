// Generated from messages.txt by generate/main.rs; do not edit.

//! The API OffsetForLeaderEpoch.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `OffsetForLeaderEpoch`, versions 2 to 4, flexible from 4.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetForLeaderEpochRequest {
    /// From version 3. Left out of others.
    pub replica_id: i32,
    pub topics: Vec<OffsetForLeaderTopic>,
}

impl Default for OffsetForLeaderEpochRequest {
    fn default() -> Self {
        Self { replica_id: -2, topics: Vec::new() }
    }
}

impl Wire for OffsetForLeaderEpochRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self { replica_id: if version >= 3 { d.i32()? } else { -2 }, topics: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 3 {
            e.i32(self.replica_id);
        }
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetForLeaderEpochRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetForLeaderTopic {
    pub topic: ByteString,
    pub partitions: Vec<OffsetForLeaderPartition>,
}

impl Wire for OffsetForLeaderTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetForLeaderTopic::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetForLeaderPartition {
    pub partition: i32,
    pub current_leader_epoch: i32,
    pub leader_epoch: i32,
}

impl Default for OffsetForLeaderPartition {
    fn default() -> Self {
        Self { partition: 0, current_leader_epoch: -1, leader_epoch: 0 }
    }
}

impl Wire for OffsetForLeaderPartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 12,
            _ => 13,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition: d.i32()?, current_leader_epoch: d.i32()?, leader_epoch: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition);
        e.i32(self.current_leader_epoch);
        e.i32(self.leader_epoch);
        e.no_tags();
        Ok(())
    }
}

/// The response of `OffsetForLeaderEpoch`, versions 2 to 4, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetForLeaderEpochResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<OffsetForLeaderTopicResult>,
}

impl Wire for OffsetForLeaderEpochResponse {
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

/// See [`OffsetForLeaderEpochResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetForLeaderTopicResult {
    pub topic: ByteString,
    pub partitions: Vec<EpochEndOffset>,
}

impl Wire for OffsetForLeaderTopicResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetForLeaderTopicResult::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct EpochEndOffset {
    pub error_code: i16,
    pub partition: i32,
    pub leader_epoch: i32,
    pub end_offset: i64,
}

impl Default for EpochEndOffset {
    fn default() -> Self {
        Self { error_code: 0, partition: 0, leader_epoch: -1, end_offset: -1 }
    }
}

impl Wire for EpochEndOffset {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 18,
            _ => 19,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { error_code: d.i16()?, partition: d.i32()?, leader_epoch: d.i32()?, end_offset: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.i32(self.partition);
        e.i32(self.leader_epoch);
        e.i64(self.end_offset);
        e.no_tags();
        Ok(())
    }
}
