// Generated from messages.txt by generate/main.rs; do not edit.

//! The API AddRaftVoter.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `AddRaftVoter`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct AddRaftVoterRequest {
    pub cluster_id: Option<ByteString>,
    pub timeout_ms: i32,
    pub voter_id: i32,
    pub voter_directory_id: Uuid,
    pub listeners: Vec<Listener>,
    /// From version 1.
    pub ack_when_committed: bool,
}

impl Default for AddRaftVoterRequest {
    fn default() -> Self {
        Self {
            cluster_id: Some(ByteString::new()),
            timeout_ms: 0,
            voter_id: 0,
            voter_directory_id: Uuid::ZERO,
            listeners: Vec::new(),
            ack_when_committed: true,
        }
    }
}

impl Wire for AddRaftVoterRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            cluster_id: d.option_string(true)?,
            timeout_ms: d.i32()?,
            voter_id: d.i32()?,
            voter_directory_id: d.uuid()?,
            listeners: d.array()?,
            ack_when_committed: if version >= 1 { d.bool()? } else { true },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.option_string(self.cluster_id.as_deref(), true, "AddRaftVoterRequest::cluster_id")?;
        e.i32(self.timeout_ms);
        e.i32(self.voter_id);
        e.uuid(self.voter_directory_id);
        e.array(&self.listeners)?;
        if version >= 1 {
            e.bool(self.ack_when_committed);
        } else {
            e.absent(!self.ack_when_committed, "AddRaftVoterRequest::ack_when_committed")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`AddRaftVoterRequest::listeners`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listener {
    pub name: ByteString,
    pub host: ByteString,
    pub port: u16,
}

impl Wire for Listener {
    fn min_size(_: i16, _: bool) -> usize {
        5
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, host: d.string()?, port: d.u16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.string(&self.host)?;
        e.u16(self.port);
        e.no_tags();
        Ok(())
    }
}

/// The response of `AddRaftVoter`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct AddRaftVoterResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for AddRaftVoterResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, error_code: 0, error_message: Some(ByteString::new()) }
    }
}

impl Wire for AddRaftVoterResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { throttle_time_ms: d.i32()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "AddRaftVoterResponse::error_message")?;
        e.no_tags();
        Ok(())
    }
}
