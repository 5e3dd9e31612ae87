// Generated from messages.txt by generate/main.rs; do not edit.

//! The API SaslAuthenticate.

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `SaslAuthenticate`, versions 0 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SaslAuthenticateRequest {
    pub auth_bytes: Bytes,
}

impl Wire for SaslAuthenticateRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { auth_bytes: d.bytes()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.bytes(&self.auth_bytes)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `SaslAuthenticate`, versions 0 to 2, flexible from 2.
#[derive(Clone, Debug, PartialEq)]
pub struct SaslAuthenticateResponse {
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub auth_bytes: Bytes,
    /// From version 1. Left out of others.
    pub session_lifetime_ms: i64,
}

impl Default for SaslAuthenticateResponse {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: Some(ByteString::new()),
            auth_bytes: Bytes::new(),
            session_lifetime_ms: 0,
        }
    }
}

impl Wire for SaslAuthenticateResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            auth_bytes: d.bytes()?,
            session_lifetime_ms: if version >= 1 { d.i64()? } else { 0 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "SaslAuthenticateResponse::error_message")?;
        e.bytes(&self.auth_bytes)?;
        if version >= 1 {
            e.i64(self.session_lifetime_ms);
        }
        e.no_tags();
        Ok(())
    }
}
