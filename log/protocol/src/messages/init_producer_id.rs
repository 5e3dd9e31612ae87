// Generated from messages.txt by generate/main.rs; do not edit.

//! The API InitProducerId.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `InitProducerId`, versions 0 to 6, flexible from 2.
#[derive(Clone, Debug, PartialEq)]
pub struct InitProducerIdRequest {
    pub transactional_id: Option<ByteString>,
    pub transaction_timeout_ms: i32,
    /// From version 3.
    pub producer_id: i64,
    /// From version 3.
    pub producer_epoch: i16,
    /// From version 6.
    pub enable2_pc: bool,
    /// From version 6.
    pub keep_prepared_txn: bool,
}

impl Default for InitProducerIdRequest {
    fn default() -> Self {
        Self {
            transactional_id: Some(ByteString::new()),
            transaction_timeout_ms: 0,
            producer_id: -1,
            producer_epoch: -1,
            enable2_pc: false,
            keep_prepared_txn: false,
        }
    }
}

impl Wire for InitProducerIdRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            transactional_id: d.option_string(true)?,
            transaction_timeout_ms: d.i32()?,
            producer_id: if version >= 3 { d.i64()? } else { -1 },
            producer_epoch: if version >= 3 { d.i16()? } else { -1 },
            enable2_pc: if version >= 6 { d.bool()? } else { false },
            keep_prepared_txn: if version >= 6 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.option_string(self.transactional_id.as_deref(), true, "InitProducerIdRequest::transactional_id")?;
        e.i32(self.transaction_timeout_ms);
        if version >= 3 {
            e.i64(self.producer_id);
            e.i16(self.producer_epoch);
        } else {
            e.absent(self.producer_id != -1, "InitProducerIdRequest::producer_id")?;
            e.absent(self.producer_epoch != -1, "InitProducerIdRequest::producer_epoch")?;
        }
        if version >= 6 {
            e.bool(self.enable2_pc);
            e.bool(self.keep_prepared_txn);
        } else {
            e.absent(self.enable2_pc, "InitProducerIdRequest::enable2_pc")?;
            e.absent(self.keep_prepared_txn, "InitProducerIdRequest::keep_prepared_txn")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `InitProducerId`, versions 0 to 6, flexible from 2.
#[derive(Clone, Debug, PartialEq)]
pub struct InitProducerIdResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// From version 6.
    pub ongoing_txn_producer_id: i64,
    /// From version 6.
    pub ongoing_txn_producer_epoch: i16,
}

impl Default for InitProducerIdResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            producer_id: -1,
            producer_epoch: 0,
            ongoing_txn_producer_id: -1,
            ongoing_txn_producer_epoch: -1,
        }
    }
}

impl Wire for InitProducerIdResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            producer_id: d.i64()?,
            producer_epoch: d.i16()?,
            ongoing_txn_producer_id: if version >= 6 { d.i64()? } else { -1 },
            ongoing_txn_producer_epoch: if version >= 6 { d.i16()? } else { -1 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.i64(self.producer_id);
        e.i16(self.producer_epoch);
        if version >= 6 {
            e.i64(self.ongoing_txn_producer_id);
            e.i16(self.ongoing_txn_producer_epoch);
        } else {
            e.absent(self.ongoing_txn_producer_id != -1, "InitProducerIdResponse::ongoing_txn_producer_id")?;
            e.absent(
                self.ongoing_txn_producer_epoch != -1,
                "InitProducerIdResponse::ongoing_txn_producer_epoch",
            )?;
        }
        e.no_tags();
        Ok(())
    }
}
