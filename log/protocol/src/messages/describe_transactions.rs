// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeTransactions.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeTransactions`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeTransactionsRequest {
    pub transactional_ids: Vec<ByteString>,
}

impl Wire for DescribeTransactionsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { transactional_ids: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.transactional_ids)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeTransactions`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeTransactionsResponse {
    pub throttle_time_ms: i32,
    pub transaction_states: Vec<TransactionState>,
}

impl Wire for DescribeTransactionsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, transaction_states: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.transaction_states)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeTransactionsResponse::transaction_states`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransactionState {
    pub error_code: i16,
    pub transactional_id: ByteString,
    pub transaction_state: ByteString,
    pub transaction_timeout_ms: i32,
    pub transaction_start_time_ms: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub topics: Vec<TopicData>,
}

impl Wire for TransactionState {
    fn min_size(_: i16, _: bool) -> usize {
        28
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            error_code: d.i16()?,
            transactional_id: d.string()?,
            transaction_state: d.string()?,
            transaction_timeout_ms: d.i32()?,
            transaction_start_time_ms: d.i64()?,
            producer_id: d.i64()?,
            producer_epoch: d.i16()?,
            topics: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.string(&self.transactional_id)?;
        e.string(&self.transaction_state)?;
        e.i32(self.transaction_timeout_ms);
        e.i64(self.transaction_start_time_ms);
        e.i64(self.producer_id);
        e.i16(self.producer_epoch);
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TransactionState::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicData {
    pub topic: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for TopicData {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}
