// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeAcls.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeAcls`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeAclsRequest {
    pub resource_type_filter: i8,
    pub resource_name_filter: Option<ByteString>,
    pub pattern_type_filter: i8,
    pub principal_filter: Option<ByteString>,
    pub host_filter: Option<ByteString>,
    pub operation: i8,
    pub permission_type: i8,
}

impl Default for DescribeAclsRequest {
    fn default() -> Self {
        Self {
            resource_type_filter: 0,
            resource_name_filter: Some(ByteString::new()),
            pattern_type_filter: 3,
            principal_filter: Some(ByteString::new()),
            host_filter: Some(ByteString::new()),
            operation: 0,
            permission_type: 0,
        }
    }
}

impl Wire for DescribeAclsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            resource_type_filter: d.i8()?,
            resource_name_filter: d.option_string(true)?,
            pattern_type_filter: d.i8()?,
            principal_filter: d.option_string(true)?,
            host_filter: d.option_string(true)?,
            operation: d.i8()?,
            permission_type: d.i8()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i8(self.resource_type_filter);
        e.option_string(
            self.resource_name_filter.as_deref(),
            true,
            "DescribeAclsRequest::resource_name_filter",
        )?;
        e.i8(self.pattern_type_filter);
        e.option_string(self.principal_filter.as_deref(), true, "DescribeAclsRequest::principal_filter")?;
        e.option_string(self.host_filter.as_deref(), true, "DescribeAclsRequest::host_filter")?;
        e.i8(self.operation);
        e.i8(self.permission_type);
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeAcls`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeAclsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub resources: Vec<DescribeAclsResource>,
}

impl Default for DescribeAclsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: Some(ByteString::new()),
            resources: Vec::new(),
        }
    }
}

impl Wire for DescribeAclsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            resources: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "DescribeAclsResponse::error_message")?;
        e.array(&self.resources)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeAclsResponse::resources`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeAclsResource {
    pub resource_type: i8,
    pub resource_name: ByteString,
    pub pattern_type: i8,
    pub acls: Vec<AclDescription>,
}

impl Default for DescribeAclsResource {
    fn default() -> Self {
        Self { resource_type: 0, resource_name: ByteString::new(), pattern_type: 3, acls: Vec::new() }
    }
}

impl Wire for DescribeAclsResource {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 8,
            _ => 5,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            resource_type: d.i8()?,
            resource_name: d.string()?,
            pattern_type: d.i8()?,
            acls: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i8(self.resource_type);
        e.string(&self.resource_name)?;
        e.i8(self.pattern_type);
        e.array(&self.acls)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeAclsResource::acls`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AclDescription {
    pub principal: ByteString,
    pub host: ByteString,
    pub operation: i8,
    pub permission_type: i8,
}

impl Wire for AclDescription {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
            _ => 5,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { principal: d.string()?, host: d.string()?, operation: d.i8()?, permission_type: d.i8()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.principal)?;
        e.string(&self.host)?;
        e.i8(self.operation);
        e.i8(self.permission_type);
        e.no_tags();
        Ok(())
    }
}
