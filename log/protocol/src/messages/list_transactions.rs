// Generated from messages.txt by generate/main.rs; do not edit.

//! The API ListTransactions.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `ListTransactions`, versions 0 to 2, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ListTransactionsRequest {
    pub state_filters: Vec<ByteString>,
    pub producer_id_filters: Vec<i64>,
    /// From version 1.
    pub duration_filter: i64,
    /// From version 2.
    pub transactional_id_pattern: Option<ByteString>,
}

impl Default for ListTransactionsRequest {
    fn default() -> Self {
        Self {
            state_filters: Vec::new(),
            producer_id_filters: Vec::new(),
            duration_filter: -1,
            transactional_id_pattern: None,
        }
    }
}

impl Wire for ListTransactionsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            state_filters: d.array()?,
            producer_id_filters: d.array()?,
            duration_filter: if version >= 1 { d.i64()? } else { -1 },
            transactional_id_pattern: if version >= 2 { d.option_string(true)? } else { None },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.array(&self.state_filters)?;
        e.array(&self.producer_id_filters)?;
        if version >= 1 {
            e.i64(self.duration_filter);
        } else {
            e.absent(self.duration_filter != -1, "ListTransactionsRequest::duration_filter")?;
        }
        if version >= 2 {
            e.option_string(
                self.transactional_id_pattern.as_deref(),
                true,
                "ListTransactionsRequest::transactional_id_pattern",
            )?;
        } else {
            e.absent(
                self.transactional_id_pattern.is_some(),
                "ListTransactionsRequest::transactional_id_pattern",
            )?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `ListTransactions`, versions 0 to 2, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListTransactionsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub unknown_state_filters: Vec<ByteString>,
    pub transaction_states: Vec<TransactionState>,
}

impl Wire for ListTransactionsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            unknown_state_filters: d.array()?,
            transaction_states: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.array(&self.unknown_state_filters)?;
        e.array(&self.transaction_states)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`ListTransactionsResponse::transaction_states`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransactionState {
    pub transactional_id: ByteString,
    pub producer_id: i64,
    pub transaction_state: ByteString,
}

impl Wire for TransactionState {
    fn min_size(_: i16, _: bool) -> usize {
        11
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { transactional_id: d.string()?, producer_id: d.i64()?, transaction_state: d.string()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.transactional_id)?;
        e.i64(self.producer_id);
        e.string(&self.transaction_state)?;
        e.no_tags();
        Ok(())
    }
}
