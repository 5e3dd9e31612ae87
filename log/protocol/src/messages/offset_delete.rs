// Generated from messages.txt by generate/main.rs; do not edit.

//! The API OffsetDelete.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `OffsetDelete`, version 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetDeleteRequest {
    pub group_id: ByteString,
    pub topics: Vec<OffsetDeleteRequestTopic>,
}

impl Wire for OffsetDeleteRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { group_id: d.string()?, topics: d.array()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.array(&self.topics)?;
        Ok(())
    }
}

/// See [`OffsetDeleteRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetDeleteRequestTopic {
    pub name: ByteString,
    pub partitions: Vec<OffsetDeleteRequestPartition>,
}

impl Wire for OffsetDeleteRequestTopic {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { name: d.string()?, partitions: d.array()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.array(&self.partitions)?;
        Ok(())
    }
}

/// See [`OffsetDeleteRequestTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetDeleteRequestPartition {
    pub partition_index: i32,
}

impl Wire for OffsetDeleteRequestPartition {
    fn min_size(_: i16, _: bool) -> usize {
        4
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { partition_index: d.i32()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        Ok(())
    }
}

/// The response of `OffsetDelete`, version 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetDeleteResponse {
    pub error_code: i16,
    pub throttle_time_ms: i32,
    pub topics: Vec<OffsetDeleteResponseTopic>,
}

impl Wire for OffsetDeleteResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { error_code: d.i16()?, throttle_time_ms: d.i32()?, topics: d.array()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.i32(self.throttle_time_ms);
        e.array(&self.topics)?;
        Ok(())
    }
}

/// See [`OffsetDeleteResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetDeleteResponseTopic {
    pub name: ByteString,
    pub partitions: Vec<OffsetDeleteResponsePartition>,
}

impl Wire for OffsetDeleteResponseTopic {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { name: d.string()?, partitions: d.array()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.array(&self.partitions)?;
        Ok(())
    }
}

/// See [`OffsetDeleteResponseTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetDeleteResponsePartition {
    pub partition_index: i32,
    pub error_code: i16,
}

impl Wire for OffsetDeleteResponsePartition {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { partition_index: d.i32()?, error_code: d.i16()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i16(self.error_code);
        Ok(())
    }
}
