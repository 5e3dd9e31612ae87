// Generated from messages.txt by generate/main.rs; do not edit.

//! The API JoinGroup.

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `JoinGroup`, versions 0 to 9, flexible from 6.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinGroupRequest {
    pub group_id: ByteString,
    pub session_timeout_ms: i32,
    /// From version 1. Left out of others.
    pub rebalance_timeout_ms: i32,
    pub member_id: ByteString,
    /// From version 5.
    pub group_instance_id: Option<ByteString>,
    pub protocol_type: ByteString,
    pub protocols: Vec<JoinGroupRequestProtocol>,
    /// From version 8. Left out of others.
    pub reason: Option<ByteString>,
}

impl Default for JoinGroupRequest {
    fn default() -> Self {
        Self {
            group_id: ByteString::new(),
            session_timeout_ms: 0,
            rebalance_timeout_ms: -1,
            member_id: ByteString::new(),
            group_instance_id: None,
            protocol_type: ByteString::new(),
            protocols: Vec::new(),
            reason: None,
        }
    }
}

impl Wire for JoinGroupRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.string()?,
            session_timeout_ms: d.i32()?,
            rebalance_timeout_ms: if version >= 1 { d.i32()? } else { -1 },
            member_id: d.string()?,
            group_instance_id: if version >= 5 { d.option_string(true)? } else { None },
            protocol_type: d.string()?,
            protocols: d.array()?,
            reason: if version >= 8 { d.option_string(true)? } else { None },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.group_id)?;
        e.i32(self.session_timeout_ms);
        if version >= 1 {
            e.i32(self.rebalance_timeout_ms);
        }
        e.string(&self.member_id)?;
        if version >= 5 {
            e.option_string(self.group_instance_id.as_deref(), true, "JoinGroupRequest::group_instance_id")?;
        } else {
            e.absent(self.group_instance_id.is_some(), "JoinGroupRequest::group_instance_id")?;
        }
        e.string(&self.protocol_type)?;
        e.array(&self.protocols)?;
        if version >= 8 {
            e.option_string(self.reason.as_deref(), true, "JoinGroupRequest::reason")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`JoinGroupRequest::protocols`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinGroupRequestProtocol {
    pub name: ByteString,
    pub metadata: Bytes,
}

impl Wire for JoinGroupRequestProtocol {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=5 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, metadata: d.bytes()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.bytes(&self.metadata)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `JoinGroup`, versions 0 to 9, flexible from 6.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinGroupResponse {
    /// From version 2. Left out of others.
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub generation_id: i32,
    /// From version 7. Left out of others.
    pub protocol_type: Option<ByteString>,
    /// Null from version 7.
    pub protocol_name: Option<ByteString>,
    pub leader: ByteString,
    /// From version 9.
    pub skip_assignment: bool,
    pub member_id: ByteString,
    pub members: Vec<JoinGroupResponseMember>,
}

impl Default for JoinGroupResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            generation_id: -1,
            protocol_type: None,
            protocol_name: Some(ByteString::new()),
            leader: ByteString::new(),
            skip_assignment: false,
            member_id: ByteString::new(),
            members: Vec::new(),
        }
    }
}

impl Wire for JoinGroupResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: if version >= 2 { d.i32()? } else { 0 },
            error_code: d.i16()?,
            generation_id: d.i32()?,
            protocol_type: if version >= 7 { d.option_string(true)? } else { None },
            protocol_name: d.option_string(version >= 7)?,
            leader: d.string()?,
            skip_assignment: if version >= 9 { d.bool()? } else { false },
            member_id: d.string()?,
            members: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 2 {
            e.i32(self.throttle_time_ms);
        }
        e.i16(self.error_code);
        e.i32(self.generation_id);
        if version >= 7 {
            e.option_string(self.protocol_type.as_deref(), true, "JoinGroupResponse::protocol_type")?;
        }
        e.option_string(self.protocol_name.as_deref(), version >= 7, "JoinGroupResponse::protocol_name")?;
        e.string(&self.leader)?;
        if version >= 9 {
            e.bool(self.skip_assignment);
        } else {
            e.absent(self.skip_assignment, "JoinGroupResponse::skip_assignment")?;
        }
        e.string(&self.member_id)?;
        e.array(&self.members)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`JoinGroupResponse::members`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinGroupResponseMember {
    pub member_id: ByteString,
    /// From version 5. Left out of others.
    pub group_instance_id: Option<ByteString>,
    pub metadata: Bytes,
}

impl Wire for JoinGroupResponseMember {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 6,
            5 => 8,
            _ => 4,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            member_id: d.string()?,
            group_instance_id: if version >= 5 { d.option_string(true)? } else { None },
            metadata: d.bytes()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.member_id)?;
        if version >= 5 {
            e.option_string(
                self.group_instance_id.as_deref(),
                true,
                "JoinGroupResponseMember::group_instance_id",
            )?;
        }
        e.bytes(&self.metadata)?;
        e.no_tags();
        Ok(())
    }
}
