// Generated from messages.txt by generate/main.rs; do not edit.

//! The API CreateAcls.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `CreateAcls`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateAclsRequest {
    pub creations: Vec<AclCreation>,
}

impl Wire for CreateAclsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { creations: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.creations)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`CreateAclsRequest::creations`].
#[derive(Clone, Debug, PartialEq)]
pub struct AclCreation {
    pub resource_type: i8,
    pub resource_name: ByteString,
    pub resource_pattern_type: i8,
    pub principal: ByteString,
    pub host: ByteString,
    pub operation: i8,
    pub permission_type: i8,
}

impl Default for AclCreation {
    fn default() -> Self {
        Self {
            resource_type: 0,
            resource_name: ByteString::new(),
            resource_pattern_type: 3,
            principal: ByteString::new(),
            host: ByteString::new(),
            operation: 0,
            permission_type: 0,
        }
    }
}

impl Wire for AclCreation {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 10,
            _ => 8,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            resource_type: d.i8()?,
            resource_name: d.string()?,
            resource_pattern_type: d.i8()?,
            principal: d.string()?,
            host: d.string()?,
            operation: d.i8()?,
            permission_type: d.i8()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i8(self.resource_type);
        e.string(&self.resource_name)?;
        e.i8(self.resource_pattern_type);
        e.string(&self.principal)?;
        e.string(&self.host)?;
        e.i8(self.operation);
        e.i8(self.permission_type);
        e.no_tags();
        Ok(())
    }
}

/// The response of `CreateAcls`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateAclsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<AclCreationResult>,
}

impl Wire for CreateAclsResponse {
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

/// See [`CreateAclsResponse::results`].
#[derive(Clone, Debug, PartialEq)]
pub struct AclCreationResult {
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for AclCreationResult {
    fn default() -> Self {
        Self { error_code: 0, error_message: Some(ByteString::new()) }
    }
}

impl Wire for AclCreationResult {
    fn min_size(_: i16, _: bool) -> usize {
        4
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "AclCreationResult::error_message")?;
        e.no_tags();
        Ok(())
    }
}
