// Generated from messages.txt by generate/main.rs; do not edit.

//! The API AlterClientQuotas.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `AlterClientQuotas`, versions 0 to 1, flexible from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterClientQuotasRequest {
    pub entries: Vec<EntryData>,
    pub validate_only: bool,
}

impl Wire for AlterClientQuotasRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { entries: d.array()?, validate_only: d.bool()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.entries)?;
        e.bool(self.validate_only);
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterClientQuotasRequest::entries`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryData {
    pub entity: Vec<EntityData>,
    pub ops: Vec<OpData>,
}

impl Wire for EntryData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 8,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { entity: d.array()?, ops: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.entity)?;
        e.array(&self.ops)?;
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

/// See [`EntryData::ops`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpData {
    pub key: ByteString,
    pub value: f64,
    pub remove: bool,
}

impl Wire for OpData {
    fn min_size(_: i16, _: bool) -> usize {
        11
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { key: d.string()?, value: d.f64()?, remove: d.bool()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.key)?;
        e.f64(self.value);
        e.bool(self.remove);
        e.no_tags();
        Ok(())
    }
}

/// The response of `AlterClientQuotas`, versions 0 to 1, flexible from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterClientQuotasResponse {
    pub throttle_time_ms: i32,
    pub entries: Vec<ResponseEntryData>,
}

impl Wire for AlterClientQuotasResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, entries: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.entries)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterClientQuotasResponse::entries`].
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseEntryData {
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub entity: Vec<EntityData>,
}

impl Default for ResponseEntryData {
    fn default() -> Self {
        Self { error_code: 0, error_message: Some(ByteString::new()), entity: Vec::new() }
    }
}

impl Wire for ResponseEntryData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 8,
            _ => 5,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { error_code: d.i16()?, error_message: d.option_string(true)?, entity: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "ResponseEntryData::error_message")?;
        e.array(&self.entity)?;
        e.no_tags();
        Ok(())
    }
}
