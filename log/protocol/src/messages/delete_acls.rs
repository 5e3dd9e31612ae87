// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DeleteAcls.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DeleteAcls`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteAclsRequest {
    pub filters: Vec<DeleteAclsFilter>,
}

impl Wire for DeleteAclsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { filters: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.filters)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DeleteAclsRequest::filters`].
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteAclsFilter {
    pub resource_type_filter: i8,
    pub resource_name_filter: Option<ByteString>,
    pub pattern_type_filter: i8,
    pub principal_filter: Option<ByteString>,
    pub host_filter: Option<ByteString>,
    pub operation: i8,
    pub permission_type: i8,
}

impl Default for DeleteAclsFilter {
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

impl Wire for DeleteAclsFilter {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 10,
            _ => 8,
        }
    }

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
            "DeleteAclsFilter::resource_name_filter",
        )?;
        e.i8(self.pattern_type_filter);
        e.option_string(self.principal_filter.as_deref(), true, "DeleteAclsFilter::principal_filter")?;
        e.option_string(self.host_filter.as_deref(), true, "DeleteAclsFilter::host_filter")?;
        e.i8(self.operation);
        e.i8(self.permission_type);
        e.no_tags();
        Ok(())
    }
}

/// The response of `DeleteAcls`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteAclsResponse {
    pub throttle_time_ms: i32,
    pub filter_results: Vec<DeleteAclsFilterResult>,
}

impl Wire for DeleteAclsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, filter_results: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.filter_results)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DeleteAclsResponse::filter_results`].
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteAclsFilterResult {
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub matching_acls: Vec<DeleteAclsMatchingAcl>,
}

impl Default for DeleteAclsFilterResult {
    fn default() -> Self {
        Self { error_code: 0, error_message: Some(ByteString::new()), matching_acls: Vec::new() }
    }
}

impl Wire for DeleteAclsFilterResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 8,
            _ => 5,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { error_code: d.i16()?, error_message: d.option_string(true)?, matching_acls: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "DeleteAclsFilterResult::error_message")?;
        e.array(&self.matching_acls)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DeleteAclsFilterResult::matching_acls`].
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteAclsMatchingAcl {
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub resource_type: i8,
    pub resource_name: ByteString,
    pub pattern_type: i8,
    pub principal: ByteString,
    pub host: ByteString,
    pub operation: i8,
    pub permission_type: i8,
}

impl Default for DeleteAclsMatchingAcl {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: Some(ByteString::new()),
            resource_type: 0,
            resource_name: ByteString::new(),
            pattern_type: 3,
            principal: ByteString::new(),
            host: ByteString::new(),
            operation: 0,
            permission_type: 0,
        }
    }
}

impl Wire for DeleteAclsMatchingAcl {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 14,
            _ => 11,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            resource_type: d.i8()?,
            resource_name: d.string()?,
            pattern_type: d.i8()?,
            principal: d.string()?,
            host: d.string()?,
            operation: d.i8()?,
            permission_type: d.i8()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "DeleteAclsMatchingAcl::error_message")?;
        e.i8(self.resource_type);
        e.string(&self.resource_name)?;
        e.i8(self.pattern_type);
        e.string(&self.principal)?;
        e.string(&self.host)?;
        e.i8(self.operation);
        e.i8(self.permission_type);
        e.no_tags();
        Ok(())
    }
}
