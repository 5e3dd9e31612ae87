// Generated from messages.txt by generate/main.rs; do not edit.

//! The API UpdateFeatures.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `UpdateFeatures`, versions 0 to 2, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateFeaturesRequest {
    pub timeout_ms: i32,
    pub feature_updates: Vec<FeatureUpdateKey>,
    /// From version 1.
    pub validate_only: bool,
}

impl Default for UpdateFeaturesRequest {
    fn default() -> Self {
        Self { timeout_ms: 60000, feature_updates: Vec::new(), validate_only: false }
    }
}

impl Wire for UpdateFeaturesRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            timeout_ms: d.i32()?,
            feature_updates: d.array()?,
            validate_only: if version >= 1 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.timeout_ms);
        e.array(&self.feature_updates)?;
        if version >= 1 {
            e.bool(self.validate_only);
        } else {
            e.absent(self.validate_only, "UpdateFeaturesRequest::validate_only")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`UpdateFeaturesRequest::feature_updates`].
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureUpdateKey {
    pub feature: ByteString,
    pub max_version_level: i16,
    /// To version 0.
    pub allow_downgrade: bool,
    /// From version 1.
    pub upgrade_type: i8,
}

impl Default for FeatureUpdateKey {
    fn default() -> Self {
        Self { feature: ByteString::new(), max_version_level: 0, allow_downgrade: false, upgrade_type: 1 }
    }
}

impl Wire for FeatureUpdateKey {
    fn min_size(_: i16, _: bool) -> usize {
        5
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            feature: d.string()?,
            max_version_level: d.i16()?,
            allow_downgrade: if version <= 0 { d.bool()? } else { false },
            upgrade_type: if version >= 1 { d.i8()? } else { 1 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.feature)?;
        e.i16(self.max_version_level);
        if version <= 0 {
            e.bool(self.allow_downgrade);
        } else {
            e.absent(self.allow_downgrade, "FeatureUpdateKey::allow_downgrade")?;
        }
        if version >= 1 {
            e.i8(self.upgrade_type);
        } else {
            e.absent(self.upgrade_type != 1, "FeatureUpdateKey::upgrade_type")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `UpdateFeatures`, versions 0 to 2, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateFeaturesResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    /// To version 1. Left out of others.
    pub results: Vec<UpdatableFeatureResult>,
}

impl Default for UpdateFeaturesResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: Some(ByteString::new()),
            results: Vec::new(),
        }
    }
}

impl Wire for UpdateFeaturesResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            results: if version <= 1 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "UpdateFeaturesResponse::error_message")?;
        if version <= 1 {
            e.array(&self.results)?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`UpdateFeaturesResponse::results`].
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatableFeatureResult {
    pub feature: ByteString,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for UpdatableFeatureResult {
    fn default() -> Self {
        Self { feature: ByteString::new(), error_code: 0, error_message: Some(ByteString::new()) }
    }
}

impl Wire for UpdatableFeatureResult {
    fn min_size(_: i16, _: bool) -> usize {
        5
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { feature: d.string()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.feature)?;
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "UpdatableFeatureResult::error_message")?;
        e.no_tags();
        Ok(())
    }
}
