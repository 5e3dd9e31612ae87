// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DeleteRecords.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DeleteRecords`, versions 0 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteRecordsRequest {
    pub topics: Vec<DeleteRecordsTopic>,
    pub timeout_ms: i32,
}

impl Wire for DeleteRecordsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topics: d.array()?, timeout_ms: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.topics)?;
        e.i32(self.timeout_ms);
        e.no_tags();
        Ok(())
    }
}

/// See [`DeleteRecordsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteRecordsTopic {
    pub name: ByteString,
    pub partitions: Vec<DeleteRecordsPartition>,
}

impl Wire for DeleteRecordsTopic {
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

/// See [`DeleteRecordsTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteRecordsPartition {
    pub partition_index: i32,
    pub offset: i64,
}

impl Wire for DeleteRecordsPartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 12,
            _ => 13,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()?, offset: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i64(self.offset);
        e.no_tags();
        Ok(())
    }
}

/// The response of `DeleteRecords`, versions 0 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteRecordsResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<DeleteRecordsTopicResult>,
}

impl Wire for DeleteRecordsResponse {
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

/// See [`DeleteRecordsResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteRecordsTopicResult {
    pub name: ByteString,
    pub partitions: Vec<DeleteRecordsPartitionResult>,
}

impl Wire for DeleteRecordsTopicResult {
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

/// See [`DeleteRecordsTopicResult::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteRecordsPartitionResult {
    pub partition_index: i32,
    pub low_watermark: i64,
    pub error_code: i16,
}

impl Wire for DeleteRecordsPartitionResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 14,
            _ => 15,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()?, low_watermark: d.i64()?, error_code: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i64(self.low_watermark);
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}
