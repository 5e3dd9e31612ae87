// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DeleteGroups.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DeleteGroups`, versions 0 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteGroupsRequest {
    pub groups_names: Vec<ByteString>,
}

impl Wire for DeleteGroupsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { groups_names: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.groups_names)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `DeleteGroups`, versions 0 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteGroupsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<DeletableGroupResult>,
}

impl Wire for DeleteGroupsResponse {
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

/// See [`DeleteGroupsResponse::results`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeletableGroupResult {
    pub group_id: ByteString,
    pub error_code: i16,
    /// From version 3. Left out of others.
    pub error_message: Option<ByteString>,
}

impl Wire for DeletableGroupResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 4,
            _ => 5,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.string()?,
            error_code: d.i16()?,
            error_message: if version >= 3 { d.option_string(true)? } else { None },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.group_id)?;
        e.i16(self.error_code);
        if version >= 3 {
            e.option_string(self.error_message.as_deref(), true, "DeletableGroupResult::error_message")?;
        }
        e.no_tags();
        Ok(())
    }
}
