// Generated from messages.txt by generate/main.rs; do not edit.

//! The API RenewDelegationToken.

use bytes::Bytes;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `RenewDelegationToken`, versions 1 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenewDelegationTokenRequest {
    pub hmac: Bytes,
    pub renew_period_ms: i64,
}

impl Wire for RenewDelegationTokenRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { hmac: d.bytes()?, renew_period_ms: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.bytes(&self.hmac)?;
        e.i64(self.renew_period_ms);
        e.no_tags();
        Ok(())
    }
}

/// The response of `RenewDelegationToken`, versions 1 to 2, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenewDelegationTokenResponse {
    pub error_code: i16,
    pub expiry_timestamp_ms: i64,
    pub throttle_time_ms: i32,
}

impl Wire for RenewDelegationTokenResponse {
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
