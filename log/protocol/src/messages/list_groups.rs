// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ListGroups.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ListGroups`, versions 0 to 5, flexible from 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListGroupsRequest {
    /// From version 4.
    pub states_filter: Vec<ByteString>,
    /// From version 5.
    pub types_filter: Vec<ByteString>,
}

impl Wire for ListGroupsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            states_filter: if version >= 4 { d.array()? } else { Vec::new() },
            types_filter: if version >= 5 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 4 {
            e.array(&self.states_filter)?;
        } else {
            e.absent(!self.states_filter.is_empty(), "ListGroupsRequest::states_filter")?;
        }
        if version >= 5 {
            e.array(&self.types_filter)?;
        } else {
            e.absent(!self.types_filter.is_empty(), "ListGroupsRequest::types_filter")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `ListGroups`, versions 0 to 5, flexible from 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListGroupsResponse {
    /// From version 1. Left out of others.
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub groups: Vec<ListedGroup>,
}

impl Wire for ListGroupsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: if version >= 1 { d.i32()? } else { 0 },
            error_code: d.i16()?,
            groups: d.array()?,
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
        e.array(&self.groups)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ListGroupsResponse::groups`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedGroup {
    pub group_id: ByteString,
    pub protocol_type: ByteString,
    /// From version 4. Left out of others.
    pub group_state: ByteString,
    /// From version 5. Left out of others.
    pub group_type: ByteString,
}

impl Wire for ListedGroup {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 4,
            3 => 3,
            4 => 4,
            _ => 5,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.string()?,
            protocol_type: d.string()?,
            group_state: if version >= 4 { d.string()? } else { ByteString::new() },
            group_type: if version >= 5 { d.string()? } else { ByteString::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.group_id)?;
        e.string(&self.protocol_type)?;
        if version >= 4 {
            e.string(&self.group_state)?;
        }
        if version >= 5 {
            e.string(&self.group_type)?;
        }
        e.no_tags();
        Ok(())
    }
}
