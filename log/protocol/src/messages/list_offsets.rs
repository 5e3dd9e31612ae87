// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ListOffsets.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ListOffsets`, versions 1 to 11, flexible from 6.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOffsetsRequest {
    pub replica_id: i32,
    /// From version 2.
    pub isolation_level: i8,
    pub topics: Vec<ListOffsetsTopic>,
    /// From version 10. Left out of others.
    pub timeout_ms: i32,
}

impl Wire for ListOffsetsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            replica_id: d.i32()?,
            isolation_level: if version >= 2 { d.i8()? } else { 0 },
            topics: d.array()?,
            timeout_ms: if version >= 10 { d.i32()? } else { 0 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.replica_id);
        if version >= 2 {
            e.i8(self.isolation_level);
        } else {
            e.absent(self.isolation_level != 0, "ListOffsetsRequest::isolation_level")?;
        }
        e.array(&self.topics)?;
        if version >= 10 {
            e.i32(self.timeout_ms);
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`ListOffsetsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOffsetsTopic {
    pub name: ByteString,
    pub partitions: Vec<ListOffsetsPartition>,
}

impl Wire for ListOffsetsTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=5 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ListOffsetsTopic::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct ListOffsetsPartition {
    pub partition_index: i32,
    /// From version 4. Left out of others.
    pub current_leader_epoch: i32,
    pub timestamp: i64,
}

impl Default for ListOffsetsPartition {
    fn default() -> Self {
        Self { partition_index: 0, current_leader_epoch: -1, timestamp: 0 }
    }
}

impl Wire for ListOffsetsPartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 12,
            4..=5 => 16,
            _ => 17,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            partition_index: d.i32()?,
            current_leader_epoch: if version >= 4 { d.i32()? } else { -1 },
            timestamp: d.i64()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition_index);
        if version >= 4 {
            e.i32(self.current_leader_epoch);
        }
        e.i64(self.timestamp);
        e.no_tags();
        Ok(())
    }
}

/// The response of `ListOffsets`, versions 1 to 11, flexible from 6.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOffsetsResponse {
    /// From version 2. Left out of others.
    pub throttle_time_ms: i32,
    pub topics: Vec<ListOffsetsTopicResponse>,
}

impl Wire for ListOffsetsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self { throttle_time_ms: if version >= 2 { d.i32()? } else { 0 }, topics: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 2 {
            e.i32(self.throttle_time_ms);
        }
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ListOffsetsResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOffsetsTopicResponse {
    pub name: ByteString,
    pub partitions: Vec<ListOffsetsPartitionResponse>,
}

impl Wire for ListOffsetsTopicResponse {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=5 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ListOffsetsTopicResponse::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct ListOffsetsPartitionResponse {
    pub partition_index: i32,
    pub error_code: i16,
    pub timestamp: i64,
    pub offset: i64,
    /// From version 4.
    pub leader_epoch: i32,
}

impl Default for ListOffsetsPartitionResponse {
    fn default() -> Self {
        Self { partition_index: 0, error_code: 0, timestamp: -1, offset: -1, leader_epoch: -1 }
    }
}

impl Wire for ListOffsetsPartitionResponse {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 22,
            4..=5 => 26,
            _ => 27,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            partition_index: d.i32()?,
            error_code: d.i16()?,
            timestamp: d.i64()?,
            offset: d.i64()?,
            leader_epoch: if version >= 4 { d.i32()? } else { -1 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition_index);
        e.i16(self.error_code);
        e.i64(self.timestamp);
        e.i64(self.offset);
        if version >= 4 {
            e.i32(self.leader_epoch);
        } else {
            e.absent(self.leader_epoch != -1, "ListOffsetsPartitionResponse::leader_epoch")?;
        }
        e.no_tags();
        Ok(())
    }
}
