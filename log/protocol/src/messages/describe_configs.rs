// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeConfigs.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeConfigs`, versions 1 to 4, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeConfigsRequest {
    pub resources: Vec<DescribeConfigsResource>,
    pub include_synonyms: bool,
    /// From version 3.
    pub include_documentation: bool,
}

impl Wire for DescribeConfigsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            resources: d.array()?,
            include_synonyms: d.bool()?,
            include_documentation: if version >= 3 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.array(&self.resources)?;
        e.bool(self.include_synonyms);
        if version >= 3 {
            e.bool(self.include_documentation);
        } else {
            e.absent(self.include_documentation, "DescribeConfigsRequest::include_documentation")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeConfigsRequest::resources`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsResource {
    pub resource_type: i8,
    pub resource_name: ByteString,
    pub configuration_keys: Option<Vec<ByteString>>,
}

impl Default for DescribeConfigsResource {
    fn default() -> Self {
        Self { resource_type: 0, resource_name: ByteString::new(), configuration_keys: Some(Vec::new()) }
    }
}

impl Wire for DescribeConfigsResource {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 7,
            _ => 4,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            resource_type: d.i8()?,
            resource_name: d.string()?,
            configuration_keys: d.option_array(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i8(self.resource_type);
        e.string(&self.resource_name)?;
        e.option_array(
            self.configuration_keys.as_deref(),
            true,
            "DescribeConfigsResource::configuration_keys",
        )?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeConfigs`, versions 1 to 4, flexible from 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeConfigsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<DescribeConfigsResult>,
}

impl Wire for DescribeConfigsResponse {
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

/// See [`DescribeConfigsResponse::results`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsResult {
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub resource_type: i8,
    pub resource_name: ByteString,
    pub configs: Vec<DescribeConfigsResourceResult>,
}

impl Default for DescribeConfigsResult {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: Some(ByteString::new()),
            resource_type: 0,
            resource_name: ByteString::new(),
            configs: Vec::new(),
        }
    }
}

impl Wire for DescribeConfigsResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 11,
            _ => 7,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            resource_type: d.i8()?,
            resource_name: d.string()?,
            configs: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "DescribeConfigsResult::error_message")?;
        e.i8(self.resource_type);
        e.string(&self.resource_name)?;
        e.array(&self.configs)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeConfigsResult::configs`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsResourceResult {
    pub name: ByteString,
    pub value: Option<ByteString>,
    pub read_only: bool,
    pub config_source: i8,
    pub is_sensitive: bool,
    pub synonyms: Vec<DescribeConfigsSynonym>,
    /// From version 3. Left out of others.
    pub config_type: i8,
    /// From version 3. Left out of others.
    pub documentation: Option<ByteString>,
}

impl Default for DescribeConfigsResourceResult {
    fn default() -> Self {
        Self {
            name: ByteString::new(),
            value: Some(ByteString::new()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
            synonyms: Vec::new(),
            config_type: 0,
            documentation: Some(ByteString::new()),
        }
    }
}

impl Wire for DescribeConfigsResourceResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 11,
            3 => 14,
            _ => 9,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: d.string()?,
            value: d.option_string(true)?,
            read_only: d.bool()?,
            config_source: d.i8()?,
            is_sensitive: d.bool()?,
            synonyms: d.array()?,
            config_type: if version >= 3 { d.i8()? } else { 0 },
            documentation: if version >= 3 { d.option_string(true)? } else { Some(ByteString::new()) },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.name)?;
        e.option_string(self.value.as_deref(), true, "DescribeConfigsResourceResult::value")?;
        e.bool(self.read_only);
        e.i8(self.config_source);
        e.bool(self.is_sensitive);
        e.array(&self.synonyms)?;
        if version >= 3 {
            e.i8(self.config_type);
            e.option_string(
                self.documentation.as_deref(),
                true,
                "DescribeConfigsResourceResult::documentation",
            )?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeConfigsResourceResult::synonyms`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsSynonym {
    pub name: ByteString,
    pub value: Option<ByteString>,
    pub source: i8,
}

impl Default for DescribeConfigsSynonym {
    fn default() -> Self {
        Self { name: ByteString::new(), value: Some(ByteString::new()), source: 0 }
    }
}

impl Wire for DescribeConfigsSynonym {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=3 => 5,
            _ => 4,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, value: d.option_string(true)?, source: d.i8()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.option_string(self.value.as_deref(), true, "DescribeConfigsSynonym::value")?;
        e.i8(self.source);
        e.no_tags();
        Ok(())
    }
}
