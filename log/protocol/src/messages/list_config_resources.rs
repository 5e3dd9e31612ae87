// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ListConfigResources.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ListConfigResources`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListConfigResourcesRequest {
    /// From version 1.
    pub resource_types: Vec<i8>,
}

impl Wire for ListConfigResourcesRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self { resource_types: if version >= 1 { d.array()? } else { Vec::new() } };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 1 {
            e.array(&self.resource_types)?;
        } else {
            e.absent(!self.resource_types.is_empty(), "ListConfigResourcesRequest::resource_types")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `ListConfigResources`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListConfigResourcesResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub config_resources: Vec<ConfigResource>,
}

impl Wire for ListConfigResourcesResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, error_code: d.i16()?, config_resources: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.array(&self.config_resources)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ListConfigResourcesResponse::config_resources`].
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigResource {
    pub resource_name: ByteString,
    /// From version 1. Left out of others.
    pub resource_type: i8,
}

impl Default for ConfigResource {
    fn default() -> Self {
        Self { resource_name: ByteString::new(), resource_type: 16 }
    }
}

impl Wire for ConfigResource {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 2,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value =
            Self { resource_name: d.string()?, resource_type: if version >= 1 { d.i8()? } else { 16 } };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.resource_name)?;
        if version >= 1 {
            e.i8(self.resource_type);
        }
        e.no_tags();
        Ok(())
    }
}
