// Generated from messages.txt by generate/main.rs; do not edit.

//! The API CreateDelegationToken.

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `CreateDelegationToken`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateDelegationTokenRequest {
    /// From version 3.
    pub owner_principal_type: Option<ByteString>,
    /// From version 3.
    pub owner_principal_name: Option<ByteString>,
    pub renewers: Vec<CreatableRenewers>,
    pub max_lifetime_ms: i64,
}

impl Default for CreateDelegationTokenRequest {
    fn default() -> Self {
        Self {
            owner_principal_type: Some(ByteString::new()),
            owner_principal_name: Some(ByteString::new()),
            renewers: Vec::new(),
            max_lifetime_ms: 0,
        }
    }
}

impl Wire for CreateDelegationTokenRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            owner_principal_type: if version >= 3 { d.option_string(true)? } else { Some(ByteString::new()) },
            owner_principal_name: if version >= 3 { d.option_string(true)? } else { Some(ByteString::new()) },
            renewers: d.array()?,
            max_lifetime_ms: d.i64()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 3 {
            e.option_string(
                self.owner_principal_type.as_deref(),
                true,
                "CreateDelegationTokenRequest::owner_principal_type",
            )?;
            e.option_string(
                self.owner_principal_name.as_deref(),
                true,
                "CreateDelegationTokenRequest::owner_principal_name",
            )?;
        } else {
            e.absent(
                self.owner_principal_type.as_deref() != Some(""),
                "CreateDelegationTokenRequest::owner_principal_type",
            )?;
            e.absent(
                self.owner_principal_name.as_deref() != Some(""),
                "CreateDelegationTokenRequest::owner_principal_name",
            )?;
        }
        e.array(&self.renewers)?;
        e.i64(self.max_lifetime_ms);
        e.no_tags();
        Ok(())
    }
}

/// See [`CreateDelegationTokenRequest::renewers`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatableRenewers {
    pub principal_type: ByteString,
    pub principal_name: ByteString,
}

impl Wire for CreatableRenewers {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 4,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { principal_type: d.string()?, principal_name: d.string()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.principal_type)?;
        e.string(&self.principal_name)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `CreateDelegationToken`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateDelegationTokenResponse {
    pub error_code: i16,
    pub principal_type: ByteString,
    pub principal_name: ByteString,
    /// From version 3.
    pub token_requester_principal_type: ByteString,
    /// From version 3.
    pub token_requester_principal_name: ByteString,
    pub issue_timestamp_ms: i64,
    pub expiry_timestamp_ms: i64,
    pub max_timestamp_ms: i64,
    pub token_id: ByteString,
    pub hmac: Bytes,
    pub throttle_time_ms: i32,
}

impl Wire for CreateDelegationTokenResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            error_code: d.i16()?,
            principal_type: d.string()?,
            principal_name: d.string()?,
            token_requester_principal_type: if version >= 3 { d.string()? } else { ByteString::new() },
            token_requester_principal_name: if version >= 3 { d.string()? } else { ByteString::new() },
            issue_timestamp_ms: d.i64()?,
            expiry_timestamp_ms: d.i64()?,
            max_timestamp_ms: d.i64()?,
            token_id: d.string()?,
            hmac: d.bytes()?,
            throttle_time_ms: d.i32()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i16(self.error_code);
        e.string(&self.principal_type)?;
        e.string(&self.principal_name)?;
        if version >= 3 {
            e.string(&self.token_requester_principal_type)?;
            e.string(&self.token_requester_principal_name)?;
        } else {
            e.absent(
                !self.token_requester_principal_type.is_empty(),
                "CreateDelegationTokenResponse::token_requester_principal_type",
            )?;
            e.absent(
                !self.token_requester_principal_name.is_empty(),
                "CreateDelegationTokenResponse::token_requester_principal_name",
            )?;
        }
        e.i64(self.issue_timestamp_ms);
        e.i64(self.expiry_timestamp_ms);
        e.i64(self.max_timestamp_ms);
        e.string(&self.token_id)?;
        e.bytes(&self.hmac)?;
        e.i32(self.throttle_time_ms);
        e.no_tags();
        Ok(())
    }
}
