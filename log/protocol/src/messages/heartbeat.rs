// Generated from messages.txt by generate/main.rs; do not edit.

//! The API Heartbeat.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `Heartbeat`, versions 0 to 4, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeartbeatRequest {
    pub group_id: ByteString,
    pub generation_id: i32,
    pub member_id: ByteString,
    /// From version 3.
    pub group_instance_id: Option<ByteString>,
}

impl Wire for HeartbeatRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.string()?,
            generation_id: d.i32()?,
            member_id: d.string()?,
            group_instance_id: if version >= 3 { d.option_string(true)? } else { None },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.group_id)?;
        e.i32(self.generation_id);
        e.string(&self.member_id)?;
        if version >= 3 {
            e.option_string(self.group_instance_id.as_deref(), true, "HeartbeatRequest::group_instance_id")?;
        } else {
            e.absent(self.group_instance_id.is_some(), "HeartbeatRequest::group_instance_id")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `Heartbeat`, versions 0 to 4, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeartbeatResponse {
    /// From version 1. Left out of others.
    pub throttle_time_ms: i32,
    pub error_code: i16,
}

impl Wire for HeartbeatResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self { throttle_time_ms: if version >= 1 { d.i32()? } else { 0 }, error_code: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 1 {
            e.i32(self.throttle_time_ms);
        }
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}
