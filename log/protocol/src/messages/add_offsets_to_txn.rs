// Generated from messages.txt by generate/main.rs; do not edit.

//! The API AddOffsetsToTxn.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `AddOffsetsToTxn`, versions 0 to 4, flexible from 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddOffsetsToTxnRequest {
    pub transactional_id: ByteString,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub group_id: ByteString,
}

impl Wire for AddOffsetsToTxnRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            transactional_id: d.string()?,
            producer_id: d.i64()?,
            producer_epoch: d.i16()?,
            group_id: d.string()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.transactional_id)?;
        e.i64(self.producer_id);
        e.i16(self.producer_epoch);
        e.string(&self.group_id)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `AddOffsetsToTxn`, versions 0 to 4, flexible from 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddOffsetsToTxnResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
}

impl Wire for AddOffsetsToTxnResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, error_code: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}
