// Generated from messages.txt by generate/main.rs; do not edit.

//! The API CreatePartitions.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `CreatePartitions`, versions 0 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatePartitionsRequest {
    pub topics: Vec<CreatePartitionsTopic>,
    pub timeout_ms: i32,
    pub validate_only: bool,
}

impl Wire for CreatePartitionsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topics: d.array()?, timeout_ms: d.i32()?, validate_only: d.bool()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.topics)?;
        e.i32(self.timeout_ms);
        e.bool(self.validate_only);
        e.no_tags();
        Ok(())
    }
}

/// See [`CreatePartitionsRequest::topics`].
#[derive(Clone, Debug, PartialEq)]
pub struct CreatePartitionsTopic {
    pub name: ByteString,
    pub count: i32,
    pub assignments: Option<Vec<CreatePartitionsAssignment>>,
}

impl Default for CreatePartitionsTopic {
    fn default() -> Self {
        Self { name: ByteString::new(), count: 0, assignments: Some(Vec::new()) }
    }
}

impl Wire for CreatePartitionsTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 10,
            _ => 7,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, count: d.i32()?, assignments: d.option_array(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i32(self.count);
        e.option_array(self.assignments.as_deref(), true, "CreatePartitionsTopic::assignments")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`CreatePartitionsTopic::assignments`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatePartitionsAssignment {
    pub broker_ids: Vec<i32>,
}

impl Wire for CreatePartitionsAssignment {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 4,
            _ => 2,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { broker_ids: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.broker_ids)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `CreatePartitions`, versions 0 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatePartitionsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<CreatePartitionsTopicResult>,
}

impl Wire for CreatePartitionsResponse {
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

/// See [`CreatePartitionsResponse::results`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatePartitionsTopicResult {
    pub name: ByteString,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Wire for CreatePartitionsTopicResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
            _ => 5,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "CreatePartitionsTopicResult::error_message")?;
        e.no_tags();
        Ok(())
    }
}
