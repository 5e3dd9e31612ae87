// Generated from messages.txt by generate/main.rs; do not edit.

//! The API AlterPartitionReassignments.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `AlterPartitionReassignments`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterPartitionReassignmentsRequest {
    pub timeout_ms: i32,
    /// From version 1.
    pub allow_replication_factor_change: bool,
    pub topics: Vec<ReassignableTopic>,
}

impl Default for AlterPartitionReassignmentsRequest {
    fn default() -> Self {
        Self { timeout_ms: 60000, allow_replication_factor_change: true, topics: Vec::new() }
    }
}

impl Wire for AlterPartitionReassignmentsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            timeout_ms: d.i32()?,
            allow_replication_factor_change: if version >= 1 { d.bool()? } else { true },
            topics: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.timeout_ms);
        if version >= 1 {
            e.bool(self.allow_replication_factor_change);
        } else {
            e.absent(
                !self.allow_replication_factor_change,
                "AlterPartitionReassignmentsRequest::allow_replication_factor_change",
            )?;
        }
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterPartitionReassignmentsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReassignableTopic {
    pub name: ByteString,
    pub partitions: Vec<ReassignablePartition>,
}

impl Wire for ReassignableTopic {
    fn min_size(_: i16, _: bool) -> usize {
        3
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

/// See [`ReassignableTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReassignablePartition {
    pub partition_index: i32,
    pub replicas: Option<Vec<i32>>,
}

impl Wire for ReassignablePartition {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()?, replicas: d.option_array(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.option_array(self.replicas.as_deref(), true, "ReassignablePartition::replicas")?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `AlterPartitionReassignments`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterPartitionReassignmentsResponse {
    pub throttle_time_ms: i32,
    /// From version 1. Left out of others.
    pub allow_replication_factor_change: bool,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub responses: Vec<ReassignableTopicResponse>,
}

impl Default for AlterPartitionReassignmentsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            allow_replication_factor_change: true,
            error_code: 0,
            error_message: Some(ByteString::new()),
            responses: Vec::new(),
        }
    }
}

impl Wire for AlterPartitionReassignmentsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            allow_replication_factor_change: if version >= 1 { d.bool()? } else { true },
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            responses: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        if version >= 1 {
            e.bool(self.allow_replication_factor_change);
        }
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "AlterPartitionReassignmentsResponse::error_message",
        )?;
        e.array(&self.responses)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterPartitionReassignmentsResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReassignableTopicResponse {
    pub name: ByteString,
    pub partitions: Vec<ReassignablePartitionResponse>,
}

impl Wire for ReassignableTopicResponse {
    fn min_size(_: i16, _: bool) -> usize {
        3
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

/// See [`ReassignableTopicResponse::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReassignablePartitionResponse {
    pub partition_index: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for ReassignablePartitionResponse {
    fn default() -> Self {
        Self { partition_index: 0, error_code: 0, error_message: Some(ByteString::new()) }
    }
}

impl Wire for ReassignablePartitionResponse {
    fn min_size(_: i16, _: bool) -> usize {
        8
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { partition_index: d.i32()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "ReassignablePartitionResponse::error_message")?;
        e.no_tags();
        Ok(())
    }
}
