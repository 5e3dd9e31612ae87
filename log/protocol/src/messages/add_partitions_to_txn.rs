// Generated from messages.txt by generate/main.rs; do not edit.

//! The API AddPartitionsToTxn.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `AddPartitionsToTxn`, versions 0 to 5, flexible from 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddPartitionsToTxnRequest {
    /// From version 4.
    pub transactions: Vec<AddPartitionsToTxnTransaction>,
    /// To version 3.
    pub v3_and_below_transactional_id: ByteString,
    /// To version 3.
    pub v3_and_below_producer_id: i64,
    /// To version 3.
    pub v3_and_below_producer_epoch: i16,
    /// To version 3.
    pub v3_and_below_topics: Vec<AddPartitionsToTxnTopic>,
}

impl Wire for AddPartitionsToTxnRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            transactions: if version >= 4 { d.array()? } else { Vec::new() },
            v3_and_below_transactional_id: if version <= 3 { d.string()? } else { ByteString::new() },
            v3_and_below_producer_id: if version <= 3 { d.i64()? } else { 0 },
            v3_and_below_producer_epoch: if version <= 3 { d.i16()? } else { 0 },
            v3_and_below_topics: if version <= 3 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 4 {
            e.array(&self.transactions)?;
        } else {
            e.absent(!self.transactions.is_empty(), "AddPartitionsToTxnRequest::transactions")?;
        }
        if version <= 3 {
            e.string(&self.v3_and_below_transactional_id)?;
            e.i64(self.v3_and_below_producer_id);
            e.i16(self.v3_and_below_producer_epoch);
            e.array(&self.v3_and_below_topics)?;
        } else {
            e.absent(
                !self.v3_and_below_transactional_id.is_empty(),
                "AddPartitionsToTxnRequest::v3_and_below_transactional_id",
            )?;
            e.absent(
                self.v3_and_below_producer_id != 0,
                "AddPartitionsToTxnRequest::v3_and_below_producer_id",
            )?;
            e.absent(
                self.v3_and_below_producer_epoch != 0,
                "AddPartitionsToTxnRequest::v3_and_below_producer_epoch",
            )?;
            e.absent(!self.v3_and_below_topics.is_empty(), "AddPartitionsToTxnRequest::v3_and_below_topics")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`AddPartitionsToTxnRequest::transactions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddPartitionsToTxnTransaction {
    pub transactional_id: ByteString,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub verify_only: bool,
    pub topics: Vec<AddPartitionsToTxnTopic>,
}

impl Wire for AddPartitionsToTxnTransaction {
    fn min_size(_: i16, _: bool) -> usize {
        14
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            transactional_id: d.string()?,
            producer_id: d.i64()?,
            producer_epoch: d.i16()?,
            verify_only: d.bool()?,
            topics: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.transactional_id)?;
        e.i64(self.producer_id);
        e.i16(self.producer_epoch);
        e.bool(self.verify_only);
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AddPartitionsToTxnRequest::v3_and_below_topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddPartitionsToTxnTopic {
    pub name: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for AddPartitionsToTxnTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `AddPartitionsToTxn`, versions 0 to 5, flexible from 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddPartitionsToTxnResponse {
    pub throttle_time_ms: i32,
    /// From version 4. Left out of others.
    pub error_code: i16,
    /// From version 4.
    pub results_by_transaction: Vec<AddPartitionsToTxnResult>,
    /// To version 3.
    pub results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult>,
}

impl Wire for AddPartitionsToTxnResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: if version >= 4 { d.i16()? } else { 0 },
            results_by_transaction: if version >= 4 { d.array()? } else { Vec::new() },
            results_by_topic_v3_and_below: if version <= 3 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        if version >= 4 {
            e.i16(self.error_code);
            e.array(&self.results_by_transaction)?;
        } else {
            e.absent(
                !self.results_by_transaction.is_empty(),
                "AddPartitionsToTxnResponse::results_by_transaction",
            )?;
        }
        if version <= 3 {
            e.array(&self.results_by_topic_v3_and_below)?;
        } else {
            e.absent(
                !self.results_by_topic_v3_and_below.is_empty(),
                "AddPartitionsToTxnResponse::results_by_topic_v3_and_below",
            )?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`AddPartitionsToTxnResponse::results_by_transaction`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddPartitionsToTxnResult {
    pub transactional_id: ByteString,
    pub topic_results: Vec<AddPartitionsToTxnTopicResult>,
}

impl Wire for AddPartitionsToTxnResult {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { transactional_id: d.string()?, topic_results: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.transactional_id)?;
        e.array(&self.topic_results)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AddPartitionsToTxnResponse::results_by_topic_v3_and_below`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddPartitionsToTxnTopicResult {
    pub name: ByteString,
    pub results_by_partition: Vec<AddPartitionsToTxnPartitionResult>,
}

impl Wire for AddPartitionsToTxnTopicResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, results_by_partition: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.array(&self.results_by_partition)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AddPartitionsToTxnTopicResult::results_by_partition`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddPartitionsToTxnPartitionResult {
    pub partition_index: i32,
    pub partition_error_code: i16,
}

impl Wire for AddPartitionsToTxnPartitionResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=2 => 6,
            _ => 7,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()?, partition_error_code: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i16(self.partition_error_code);
        e.no_tags();
        Ok(())
    }
}
