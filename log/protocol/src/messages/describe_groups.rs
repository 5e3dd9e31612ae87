// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeGroups.

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeGroups`, versions 0 to 6, flexible from 5.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeGroupsRequest {
    pub groups: Vec<ByteString>,
    /// From version 3.
    pub include_authorized_operations: bool,
}

impl Wire for DescribeGroupsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            groups: d.array()?,
            include_authorized_operations: if version >= 3 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.array(&self.groups)?;
        if version >= 3 {
            e.bool(self.include_authorized_operations);
        } else {
            e.absent(
                self.include_authorized_operations,
                "DescribeGroupsRequest::include_authorized_operations",
            )?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeGroups`, versions 0 to 6, flexible from 5.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeGroupsResponse {
    /// From version 1. Left out of others.
    pub throttle_time_ms: i32,
    pub groups: Vec<DescribedGroup>,
}

impl Wire for DescribeGroupsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self { throttle_time_ms: if version >= 1 { d.i32()? } else { 0 }, groups: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 1 {
            e.i32(self.throttle_time_ms);
        }
        e.array(&self.groups)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeGroupsResponse::groups`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedGroup {
    pub error_code: i16,
    /// From version 6.
    pub error_message: Option<ByteString>,
    pub group_id: ByteString,
    pub group_state: ByteString,
    pub protocol_type: ByteString,
    pub protocol_data: ByteString,
    pub members: Vec<DescribedGroupMember>,
    /// From version 3.
    pub authorized_operations: i32,
}

impl Default for DescribedGroup {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: None,
            group_id: ByteString::new(),
            group_state: ByteString::new(),
            protocol_type: ByteString::new(),
            protocol_data: ByteString::new(),
            members: Vec::new(),
            authorized_operations: i32::MIN,
        }
    }
}

impl Wire for DescribedGroup {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 14,
            3..=4 => 18,
            5 => 12,
            _ => 13,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            error_code: d.i16()?,
            error_message: if version >= 6 { d.option_string(true)? } else { None },
            group_id: d.string()?,
            group_state: d.string()?,
            protocol_type: d.string()?,
            protocol_data: d.string()?,
            members: d.array()?,
            authorized_operations: if version >= 3 { d.i32()? } else { i32::MIN },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i16(self.error_code);
        if version >= 6 {
            e.option_string(self.error_message.as_deref(), true, "DescribedGroup::error_message")?;
        } else {
            e.absent(self.error_message.is_some(), "DescribedGroup::error_message")?;
        }
        e.string(&self.group_id)?;
        e.string(&self.group_state)?;
        e.string(&self.protocol_type)?;
        e.string(&self.protocol_data)?;
        e.array(&self.members)?;
        if version >= 3 {
            e.i32(self.authorized_operations);
        } else {
            e.absent(self.authorized_operations != i32::MIN, "DescribedGroup::authorized_operations")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribedGroup::members`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribedGroupMember {
    pub member_id: ByteString,
    /// From version 4. Left out of others.
    pub group_instance_id: Option<ByteString>,
    pub client_id: ByteString,
    pub client_host: ByteString,
    pub member_metadata: Bytes,
    pub member_assignment: Bytes,
}

impl Wire for DescribedGroupMember {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 14,
            4 => 16,
            _ => 7,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            member_id: d.string()?,
            group_instance_id: if version >= 4 { d.option_string(true)? } else { None },
            client_id: d.string()?,
            client_host: d.string()?,
            member_metadata: d.bytes()?,
            member_assignment: d.bytes()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.member_id)?;
        if version >= 4 {
            e.option_string(
                self.group_instance_id.as_deref(),
                true,
                "DescribedGroupMember::group_instance_id",
            )?;
        }
        e.string(&self.client_id)?;
        e.string(&self.client_host)?;
        e.bytes(&self.member_metadata)?;
        e.bytes(&self.member_assignment)?;
        e.no_tags();
        Ok(())
    }
}
