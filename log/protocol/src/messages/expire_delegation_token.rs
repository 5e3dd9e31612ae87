// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ExpireDelegationToken.

use bytes::Bytes;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ExpireDelegationToken`, versions 1 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpireDelegationTokenRequest {
    pub hmac: Bytes,
    pub expiry_time_period_ms: i64,
}

impl Wire for ExpireDelegationTokenRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { hmac: d.bytes()?, expiry_time_period_ms: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.bytes(&self.hmac)?;
        e.i64(self.expiry_time_period_ms);
        e.no_tags();
        Ok(())
    }
}

/// The response of `ExpireDelegationToken`, versions 1 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpireDelegationTokenResponse {
    pub error_code: i16,
    pub expiry_timestamp_ms: i64,
    pub throttle_time_ms: i32,
}

impl Wire for ExpireDelegationTokenResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { error_code: d.i16()?, expiry_timestamp_ms: d.i64()?, throttle_time_ms: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.i64(self.expiry_timestamp_ms);
        e.i32(self.throttle_time_ms);
        e.no_tags();
        Ok(())
    }
}
