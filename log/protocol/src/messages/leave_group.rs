// Generated from messages.txt by generate/main.rs; do not edit.

//! The API LeaveGroup.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `LeaveGroup`, versions 0 to 5, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaveGroupRequest {
    pub group_id: ByteString,
    /// To version 2.
    pub member_id: ByteString,
    /// From version 3.
    pub members: Vec<MemberIdentity>,
}

impl Wire for LeaveGroupRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.string()?,
            member_id: if version <= 2 { d.string()? } else { ByteString::new() },
            members: if version >= 3 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.group_id)?;
        if version <= 2 {
            e.string(&self.member_id)?;
        } else {
            e.absent(!self.member_id.is_empty(), "LeaveGroupRequest::member_id")?;
        }
        if version >= 3 {
            e.array(&self.members)?;
        } else {
            e.absent(!self.members.is_empty(), "LeaveGroupRequest::members")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`LeaveGroupRequest::members`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberIdentity {
    pub member_id: ByteString,
    pub group_instance_id: Option<ByteString>,
    /// From version 5. Left out of others.
    pub reason: Option<ByteString>,
}

impl Wire for MemberIdentity {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 4,
            4 => 3,
            _ => 4,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            member_id: d.string()?,
            group_instance_id: d.option_string(true)?,
            reason: if version >= 5 { d.option_string(true)? } else { None },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.member_id)?;
        e.option_string(self.group_instance_id.as_deref(), true, "MemberIdentity::group_instance_id")?;
        if version >= 5 {
            e.option_string(self.reason.as_deref(), true, "MemberIdentity::reason")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `LeaveGroup`, versions 0 to 5, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaveGroupResponse {
    /// From version 1. Left out of others.
    pub throttle_time_ms: i32,
    pub error_code: i16,
    /// From version 3.
    pub members: Vec<MemberResponse>,
}

impl Wire for LeaveGroupResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: if version >= 1 { d.i32()? } else { 0 },
            error_code: d.i16()?,
            members: if version >= 3 { d.array()? } else { Vec::new() },
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
        if version >= 3 {
            e.array(&self.members)?;
        } else {
            e.absent(!self.members.is_empty(), "LeaveGroupResponse::members")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`LeaveGroupResponse::members`].
#[derive(Clone, Debug, PartialEq)]
pub struct MemberResponse {
    pub member_id: ByteString,
    pub group_instance_id: Option<ByteString>,
    pub error_code: i16,
}

impl Default for MemberResponse {
    fn default() -> Self {
        Self { member_id: ByteString::new(), group_instance_id: Some(ByteString::new()), error_code: 0 }
    }
}

impl Wire for MemberResponse {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 6,
            _ => 5,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { member_id: d.string()?, group_instance_id: d.option_string(true)?, error_code: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.member_id)?;
        e.option_string(self.group_instance_id.as_deref(), true, "MemberResponse::group_instance_id")?;
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}
