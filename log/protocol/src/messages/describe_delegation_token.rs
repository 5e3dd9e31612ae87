// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeDelegationToken.

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeDelegationToken`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeDelegationTokenRequest {
    pub owners: Option<Vec<DescribeDelegationTokenOwner>>,
}

impl Default for DescribeDelegationTokenRequest {
    fn default() -> Self {
        Self { owners: Some(Vec::new()) }
    }
}

impl Wire for DescribeDelegationTokenRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { owners: d.option_array(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.option_array(self.owners.as_deref(), true, "DescribeDelegationTokenRequest::owners")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeDelegationTokenRequest::owners`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeDelegationTokenOwner {
    pub principal_type: ByteString,
    pub principal_name: ByteString,
}

impl Wire for DescribeDelegationTokenOwner {
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

/// The response of `DescribeDelegationToken`, versions 1 to 3, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeDelegationTokenResponse {
    pub error_code: i16,
    pub tokens: Vec<DescribedDelegationToken>,
    pub throttle_time_ms: i32,
}

impl Wire for DescribeDelegationTokenResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { error_code: d.i16()?, tokens: d.array()?, throttle_time_ms: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.array(&self.tokens)?;
        e.i32(self.throttle_time_ms);
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeDelegationTokenResponse::tokens`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribedDelegationToken {
    pub principal_type: ByteString,
    pub principal_name: ByteString,
    /// From version 3.
    pub token_requester_principal_type: ByteString,
    /// From version 3.
    pub token_requester_principal_name: ByteString,
    pub issue_timestamp: i64,
    pub expiry_timestamp: i64,
    pub max_timestamp: i64,
    pub token_id: ByteString,
    pub hmac: Bytes,
    pub renewers: Vec<DescribedDelegationTokenRenewer>,
}

impl Wire for DescribedDelegationToken {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 38,
            2 => 30,
            _ => 32,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            principal_type: d.string()?,
            principal_name: d.string()?,
            token_requester_principal_type: if version >= 3 { d.string()? } else { ByteString::new() },
            token_requester_principal_name: if version >= 3 { d.string()? } else { ByteString::new() },
            issue_timestamp: d.i64()?,
            expiry_timestamp: d.i64()?,
            max_timestamp: d.i64()?,
            token_id: d.string()?,
            hmac: d.bytes()?,
            renewers: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.principal_type)?;
        e.string(&self.principal_name)?;
        if version >= 3 {
            e.string(&self.token_requester_principal_type)?;
            e.string(&self.token_requester_principal_name)?;
        } else {
            e.absent(
                !self.token_requester_principal_type.is_empty(),
                "DescribedDelegationToken::token_requester_principal_type",
            )?;
            e.absent(
                !self.token_requester_principal_name.is_empty(),
                "DescribedDelegationToken::token_requester_principal_name",
            )?;
        }
        e.i64(self.issue_timestamp);
        e.i64(self.expiry_timestamp);
        e.i64(self.max_timestamp);
        e.string(&self.token_id)?;
        e.bytes(&self.hmac)?;
        e.array(&self.renewers)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribedDelegationToken::renewers`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribedDelegationTokenRenewer {
    pub principal_type: ByteString,
    pub principal_name: ByteString,
}

impl Wire for DescribedDelegationTokenRenewer {
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
