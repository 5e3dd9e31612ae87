// Generated from messages.txt by generate/main.rs; do not edit.

//! The API RemoveRaftVoter.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `RemoveRaftVoter`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoveRaftVoterRequest {
    pub cluster_id: Option<ByteString>,
    pub voter_id: i32,
    pub voter_directory_id: Uuid,
}

impl Default for RemoveRaftVoterRequest {
    fn default() -> Self {
        Self { cluster_id: Some(ByteString::new()), voter_id: 0, voter_directory_id: Uuid::ZERO }
    }
}

impl Wire for RemoveRaftVoterRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { cluster_id: d.option_string(true)?, voter_id: d.i32()?, voter_directory_id: d.uuid()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.option_string(self.cluster_id.as_deref(), true, "RemoveRaftVoterRequest::cluster_id")?;
        e.i32(self.voter_id);
        e.uuid(self.voter_directory_id);
        e.no_tags();
        Ok(())
    }
}

/// The response of `RemoveRaftVoter`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoveRaftVoterResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for RemoveRaftVoterResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, error_code: 0, error_message: Some(ByteString::new()) }
    }
}

impl Wire for RemoveRaftVoterResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { throttle_time_ms: d.i32()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "RemoveRaftVoterResponse::error_message")?;
        e.no_tags();
        Ok(())
    }
}
