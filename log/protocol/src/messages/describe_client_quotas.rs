// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeClientQuotas.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeClientQuotas`, versions 0 to 1, flexible from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeClientQuotasRequest {
    pub components: Vec<ComponentData>,
    pub strict: bool,
}

impl Wire for DescribeClientQuotasRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { components: d.array()?, strict: d.bool()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.components)?;
        e.bool(self.strict);
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeClientQuotasRequest::components`].
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentData {
    pub entity_type: ByteString,
    pub match_type: i8,
    pub r#match: Option<ByteString>,
}

impl Default for ComponentData {
    fn default() -> Self {
        Self { entity_type: ByteString::new(), match_type: 0, r#match: Some(ByteString::new()) }
    }
}

impl Wire for ComponentData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 5,
            _ => 4,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { entity_type: d.string()?, match_type: d.i8()?, r#match: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.entity_type)?;
        e.i8(self.match_type);
        e.option_string(self.r#match.as_deref(), true, "ComponentData::match")?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeClientQuotas`, versions 0 to 1, flexible from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeClientQuotasResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub entries: Option<Vec<EntryData>>,
}

impl Default for DescribeClientQuotasResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: Some(ByteString::new()),
            entries: Some(Vec::new()),
        }
    }
}

impl Wire for DescribeClientQuotasResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            entries: d.option_array(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "DescribeClientQuotasResponse::error_message")?;
        e.option_array(self.entries.as_deref(), true, "DescribeClientQuotasResponse::entries")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeClientQuotasResponse::entries`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryData {
    pub entity: Vec<EntityData>,
    pub values: Vec<ValueData>,
}

impl Wire for EntryData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 8,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { entity: d.array()?, values: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.entity)?;
        e.array(&self.values)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`EntryData::entity`].
#[derive(Clone, Debug, PartialEq)]
pub struct EntityData {
    pub entity_type: ByteString,
    pub entity_name: Option<ByteString>,
}

impl Default for EntityData {
    fn default() -> Self {
        Self { entity_type: ByteString::new(), entity_name: Some(ByteString::new()) }
    }
}

impl Wire for EntityData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 4,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { entity_type: d.string()?, entity_name: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.entity_type)?;
        e.option_string(self.entity_name.as_deref(), true, "EntityData::entity_name")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`EntryData::values`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueData {
    pub key: ByteString,
    pub value: f64,
}

impl Wire for ValueData {
    fn min_size(_: i16, _: bool) -> usize {
        10
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { key: d.string()?, value: d.f64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.key)?;
        e.f64(self.value);
        e.no_tags();
        Ok(())
    }
}
