// Generated from messages.txt by generate/main.rs; do not edit.

//! The API AlterReplicaLogDirs.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `AlterReplicaLogDirs`, versions 1 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterReplicaLogDirsRequest {
    pub dirs: Vec<AlterReplicaLogDir>,
}

impl Wire for AlterReplicaLogDirsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { dirs: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.dirs)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterReplicaLogDirsRequest::dirs`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterReplicaLogDir {
    pub path: ByteString,
    pub topics: Vec<AlterReplicaLogDirTopic>,
}

impl Wire for AlterReplicaLogDir {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { path: d.string()?, topics: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.path)?;
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterReplicaLogDir::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterReplicaLogDirTopic {
    pub name: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for AlterReplicaLogDirTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
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

/// The response of `AlterReplicaLogDirs`, versions 1 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterReplicaLogDirsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<AlterReplicaLogDirTopicResult>,
}

impl Wire for AlterReplicaLogDirsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, results: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.results)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterReplicaLogDirsResponse::results`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterReplicaLogDirTopicResult {
    pub topic_name: ByteString,
    pub partitions: Vec<AlterReplicaLogDirPartitionResult>,
}

impl Wire for AlterReplicaLogDirTopicResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic_name: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic_name)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterReplicaLogDirTopicResult::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterReplicaLogDirPartitionResult {
    pub partition_index: i32,
    pub error_code: i16,
}

impl Wire for AlterReplicaLogDirPartitionResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
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
