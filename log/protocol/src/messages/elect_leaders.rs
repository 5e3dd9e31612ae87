// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ElectLeaders.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ElectLeaders`, versions 0 to 2, flexible from 2.
#[derive(Clone, Debug, PartialEq)]
pub struct ElectLeadersRequest {
    /// From version 1.
    pub election_type: i8,
    pub topic_partitions: Option<Vec<TopicPartitions>>,
    pub timeout_ms: i32,
}

impl Default for ElectLeadersRequest {
    fn default() -> Self {
        Self { election_type: 0, topic_partitions: Some(Vec::new()), timeout_ms: 60000 }
    }
}

impl Wire for ElectLeadersRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            election_type: if version >= 1 { d.i8()? } else { 0 },
            topic_partitions: d.option_array(true)?,
            timeout_ms: d.i32()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 1 {
            e.i8(self.election_type);
        } else {
            e.absent(self.election_type != 0, "ElectLeadersRequest::election_type")?;
        }
        e.option_array(self.topic_partitions.as_deref(), true, "ElectLeadersRequest::topic_partitions")?;
        e.i32(self.timeout_ms);
        e.no_tags();
        Ok(())
    }
}

/// See [`ElectLeadersRequest::topic_partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicPartitions {
    pub topic: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for TopicPartitions {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
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

/// The response of `ElectLeaders`, versions 0 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElectLeadersResponse {
    pub throttle_time_ms: i32,
    /// From version 1.
    pub error_code: i16,
    pub replica_election_results: Vec<ReplicaElectionResult>,
}

impl Wire for ElectLeadersResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: if version >= 1 { d.i16()? } else { 0 },
            replica_election_results: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        if version >= 1 {
            e.i16(self.error_code);
        } else {
            e.absent(self.error_code != 0, "ElectLeadersResponse::error_code")?;
        }
        e.array(&self.replica_election_results)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ElectLeadersResponse::replica_election_results`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaElectionResult {
    pub topic: ByteString,
    pub partition_result: Vec<PartitionResult>,
}

impl Wire for ReplicaElectionResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic: d.string()?, partition_result: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic)?;
        e.array(&self.partition_result)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ReplicaElectionResult::partition_result`].
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionResult {
    pub partition_id: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for PartitionResult {
    fn default() -> Self {
        Self { partition_id: 0, error_code: 0, error_message: Some(ByteString::new()) }
    }
}

impl Wire for PartitionResult {
    fn min_size(_: i16, _: bool) -> usize {
        8
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { partition_id: d.i32()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_id);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "PartitionResult::error_message")?;
        e.no_tags();
        Ok(())
    }
}
