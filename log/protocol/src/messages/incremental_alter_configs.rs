// Generated from messages.txt by generate/main.rs; do not edit.

//! The API IncrementalAlterConfigs.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `IncrementalAlterConfigs`, versions 0 to 1, flexible from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IncrementalAlterConfigsRequest {
    pub resources: Vec<AlterConfigsResource>,
    pub validate_only: bool,
}

impl Wire for IncrementalAlterConfigsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { resources: d.array()?, validate_only: d.bool()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.resources)?;
        e.bool(self.validate_only);
        e.no_tags();
        Ok(())
    }
}

/// See [`IncrementalAlterConfigsRequest::resources`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterConfigsResource {
    pub resource_type: i8,
    pub resource_name: ByteString,
    pub configs: Vec<AlterableConfig>,
}

impl Wire for AlterConfigsResource {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 7,
            _ => 4,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { resource_type: d.i8()?, resource_name: d.string()?, configs: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i8(self.resource_type);
        e.string(&self.resource_name)?;
        e.array(&self.configs)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterConfigsResource::configs`].
#[derive(Clone, Debug, PartialEq)]
pub struct AlterableConfig {
    pub name: ByteString,
    pub config_operation: i8,
    pub value: Option<ByteString>,
}

impl Default for AlterableConfig {
    fn default() -> Self {
        Self { name: ByteString::new(), config_operation: 0, value: Some(ByteString::new()) }
    }
}

impl Wire for AlterableConfig {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 5,
            _ => 4,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, config_operation: d.i8()?, value: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i8(self.config_operation);
        e.option_string(self.value.as_deref(), true, "AlterableConfig::value")?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `IncrementalAlterConfigs`, versions 0 to 1, flexible from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IncrementalAlterConfigsResponse {
    pub throttle_time_ms: i32,
    pub responses: Vec<AlterConfigsResourceResponse>,
}

impl Wire for IncrementalAlterConfigsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, responses: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.responses)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`IncrementalAlterConfigsResponse::responses`].
#[derive(Clone, Debug, PartialEq)]
pub struct AlterConfigsResourceResponse {
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub resource_type: i8,
    pub resource_name: ByteString,
}

impl Default for AlterConfigsResourceResponse {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: Some(ByteString::new()),
            resource_type: 0,
            resource_name: ByteString::new(),
        }
    }
}

impl Wire for AlterConfigsResourceResponse {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 7,
            _ => 6,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            resource_type: d.i8()?,
            resource_name: d.string()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "AlterConfigsResourceResponse::error_message")?;
        e.i8(self.resource_type);
        e.string(&self.resource_name)?;
        e.no_tags();
        Ok(())
    }
}
