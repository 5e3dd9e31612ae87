// Generated from messages.txt by generate/main.rs; do not edit.

//! The API EndTxn.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `EndTxn`, versions 0 to 5, flexible from 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndTxnRequest {
    pub transactional_id: ByteString,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub committed: bool,
}

impl Wire for EndTxnRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            transactional_id: d.string()?,
            producer_id: d.i64()?,
            producer_epoch: d.i16()?,
            committed: d.bool()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.transactional_id)?;
        e.i64(self.producer_id);
        e.i16(self.producer_epoch);
        e.bool(self.committed);
        e.no_tags();
        Ok(())
    }
}

/// The response of `EndTxn`, versions 0 to 5, flexible from 3.
#[derive(Clone, Debug, PartialEq)]
pub struct EndTxnResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    /// From version 5. Left out of others.
    pub producer_id: i64,
    /// From version 5. Left out of others.
    pub producer_epoch: i16,
}

impl Default for EndTxnResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, error_code: 0, producer_id: -1, producer_epoch: -1 }
    }
}

impl Wire for EndTxnResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            producer_id: if version >= 5 { d.i64()? } else { -1 },
            producer_epoch: if version >= 5 { d.i16()? } else { -1 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        if version >= 5 {
            e.i64(self.producer_id);
            e.i16(self.producer_epoch);
        }
        e.no_tags();
        Ok(())
    }
}
