// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ApiVersions.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ApiVersions`, versions 0 to 5, flexible from 3.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiVersionsRequest {
    /// From version 3. Left out of others.
    pub client_software_name: ByteString,
    /// From version 3. Left out of others.
    pub client_software_version: ByteString,
    /// From version 5. Left out of others.
    pub cluster_id: Option<ByteString>,
    /// From version 5. Left out of others.
    pub node_id: i32,
}

impl Default for ApiVersionsRequest {
    fn default() -> Self {
        Self {
            client_software_name: ByteString::new(),
            client_software_version: ByteString::new(),
            cluster_id: None,
            node_id: -1,
        }
    }
}

impl Wire for ApiVersionsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            client_software_name: if version >= 3 { d.string()? } else { ByteString::new() },
            client_software_version: if version >= 3 { d.string()? } else { ByteString::new() },
            cluster_id: if version >= 5 { d.option_string(true)? } else { None },
            node_id: if version >= 5 { d.i32()? } else { -1 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 3 {
            e.string(&self.client_software_name)?;
            e.string(&self.client_software_version)?;
        }
        if version >= 5 {
            e.option_string(self.cluster_id.as_deref(), true, "ApiVersionsRequest::cluster_id")?;
            e.i32(self.node_id);
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `ApiVersions`, versions 0 to 5, flexible from 3.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiVersionsResponse {
    pub error_code: i16,
    pub api_keys: Vec<ApiVersion>,
    /// From version 1. Left out of others.
    pub throttle_time_ms: i32,
    /// From version 3. Left out of others.
    pub supported_features: Vec<SupportedFeatureKey>,
    /// From version 3. Left out of others.
    pub finalized_features_epoch: i64,
    /// From version 3. Left out of others.
    pub finalized_features: Vec<FinalizedFeatureKey>,
    /// From version 3. Left out of others.
    pub zk_migration_ready: bool,
}

impl Default for ApiVersionsResponse {
    fn default() -> Self {
        Self {
            error_code: 0,
            api_keys: Vec::new(),
            throttle_time_ms: 0,
            supported_features: Vec::new(),
            finalized_features_epoch: -1,
            finalized_features: Vec::new(),
            zk_migration_ready: false,
        }
    }
}

impl Wire for ApiVersionsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value = Self {
            error_code: d.i16()?,
            api_keys: d.array()?,
            throttle_time_ms: if version >= 1 { d.i32()? } else { 0 },
            supported_features: Vec::new(),
            finalized_features_epoch: -1,
            finalized_features: Vec::new(),
            zk_migration_ready: false,
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 3 => value.supported_features = d.array()?,
                1 if version >= 3 => value.finalized_features_epoch = d.i64()?,
                2 if version >= 3 => value.finalized_features = d.array()?,
                3 if version >= 3 => value.zk_migration_ready = d.bool()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i16(self.error_code);
        e.array(&self.api_keys)?;
        if version >= 1 {
            e.i32(self.throttle_time_ms);
        }
        let tags = e.tags();
        if version >= 3 {
            if !self.supported_features.is_empty() {
                e.tag(tags, 0, |e| e.array(&self.supported_features))?;
            }
            if self.finalized_features_epoch != -1 {
                e.tag(tags, 1, |e| {
                    e.i64(self.finalized_features_epoch);
                    Ok(())
                })?;
            }
            if !self.finalized_features.is_empty() {
                e.tag(tags, 2, |e| e.array(&self.finalized_features))?;
            }
            if self.zk_migration_ready {
                e.tag(tags, 3, |e| {
                    e.bool(self.zk_migration_ready);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

/// See [`ApiVersionsResponse::api_keys`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiVersion {
    pub api_key: i16,
    pub min_version: i16,
    pub max_version: i16,
}

impl Wire for ApiVersion {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 6,
            _ => 7,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { api_key: d.i16()?, min_version: d.i16()?, max_version: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.api_key);
        e.i16(self.min_version);
        e.i16(self.max_version);
        e.no_tags();
        Ok(())
    }
}

/// See [`ApiVersionsResponse::supported_features`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SupportedFeatureKey {
    pub name: ByteString,
    pub min_version: i16,
    pub max_version: i16,
}

impl Wire for SupportedFeatureKey {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, min_version: d.i16()?, max_version: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i16(self.min_version);
        e.i16(self.max_version);
        e.no_tags();
        Ok(())
    }
}

/// See [`ApiVersionsResponse::finalized_features`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinalizedFeatureKey {
    pub name: ByteString,
    pub max_version_level: i16,
    pub min_version_level: i16,
}

impl Wire for FinalizedFeatureKey {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, max_version_level: d.i16()?, min_version_level: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i16(self.max_version_level);
        e.i16(self.min_version_level);
        e.no_tags();
        Ok(())
    }
}
