// Generated from messages.txt by generate/main.rs; do not edit.

//! The API SyncGroup.

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `SyncGroup`, versions 0 to 5, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncGroupRequest {
    pub group_id: ByteString,
    pub generation_id: i32,
    pub member_id: ByteString,
    /// From version 3.
    pub group_instance_id: Option<ByteString>,
    /// From version 5. Left out of others.
    pub protocol_type: Option<ByteString>,
    /// From version 5. Left out of others.
    pub protocol_name: Option<ByteString>,
    pub assignments: Vec<SyncGroupRequestAssignment>,
}

impl Wire for SyncGroupRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.string()?,
            generation_id: d.i32()?,
            member_id: d.string()?,
            group_instance_id: if version >= 3 { d.option_string(true)? } else { None },
            protocol_type: if version >= 5 { d.option_string(true)? } else { None },
            protocol_name: if version >= 5 { d.option_string(true)? } else { None },
            assignments: d.array()?,
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
            e.option_string(self.group_instance_id.as_deref(), true, "SyncGroupRequest::group_instance_id")?;
        } else {
            e.absent(self.group_instance_id.is_some(), "SyncGroupRequest::group_instance_id")?;
        }
        if version >= 5 {
            e.option_string(self.protocol_type.as_deref(), true, "SyncGroupRequest::protocol_type")?;
            e.option_string(self.protocol_name.as_deref(), true, "SyncGroupRequest::protocol_name")?;
        }
        e.array(&self.assignments)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`SyncGroupRequest::assignments`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncGroupRequestAssignment {
    pub member_id: ByteString,
    pub assignment: Bytes,
}

impl Wire for SyncGroupRequestAssignment {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { member_id: d.string()?, assignment: d.bytes()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.member_id)?;
        e.bytes(&self.assignment)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `SyncGroup`, versions 0 to 5, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncGroupResponse {
    /// From version 1. Left out of others.
    pub throttle_time_ms: i32,
    pub error_code: i16,
    /// From version 5. Left out of others.
    pub protocol_type: Option<ByteString>,
    /// From version 5. Left out of others.
    pub protocol_name: Option<ByteString>,
    pub assignment: Bytes,
}

impl Wire for SyncGroupResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: if version >= 1 { d.i32()? } else { 0 },
            error_code: d.i16()?,
            protocol_type: if version >= 5 { d.option_string(true)? } else { None },
            protocol_name: if version >= 5 { d.option_string(true)? } else { None },
            assignment: d.bytes()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 1 {
            e.i32(self.throttle_time_ms);
        }
        e.i16(self.error_code);
        if version >= 5 {
            e.option_string(self.protocol_type.as_deref(), true, "SyncGroupResponse::protocol_type")?;
            e.option_string(self.protocol_name.as_deref(), true, "SyncGroupResponse::protocol_name")?;
        }
        e.bytes(&self.assignment)?;
        e.no_tags();
        Ok(())
    }
}
