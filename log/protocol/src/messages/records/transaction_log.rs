// Generated from messages.txt by generate/main.rs; do not edit.

//! The internal records `TransactionLogKey` and `TransactionLogValue`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{
    DecodeError, Decoder, EncodeError, Encoder, Trailing, Wire, decode_key, decode_versioned, encode_key,
    encode_versioned,
};

/// The key of a record, `TransactionLogKey`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransactionLogKey {
    pub transactional_id: ByteString,
}

impl Wire for TransactionLogKey {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { transactional_id: d.string()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.transactional_id)?;
        Ok(())
    }
}

impl TransactionLogKey {
    /// What the key begins with.
    pub const KIND: i16 = 0;

    /// Writes the key after its kind.
    ///
    /// # Errors
    /// Fails when a string is too long.
    pub fn to_bytes(&self) -> Result<Bytes, EncodeError> {
        encode_key(self, Self::KIND)
    }

    /// Reads a key that begins with its kind.
    ///
    /// # Errors
    /// Fails when the key is of another kind, or malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_key(bytes, Self::KIND)
    }
}

/// A record, `TransactionLogValue`, versions 0 to 1, flexible from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionLogValue {
    pub producer_id: i64,
    /// From version 1.
    pub previous_producer_id: i64,
    /// From version 1.
    pub next_producer_id: i64,
    pub producer_epoch: i16,
    /// From version 1.
    pub next_producer_epoch: i16,
    pub transaction_timeout_ms: i32,
    pub transaction_status: i8,
    pub transaction_partitions: Option<Vec<PartitionsSchema>>,
    pub transaction_last_update_timestamp_ms: i64,
    pub transaction_start_timestamp_ms: i64,
    /// From version 1.
    pub client_transaction_version: i16,
}

impl Default for TransactionLogValue {
    fn default() -> Self {
        Self {
            producer_id: 0,
            previous_producer_id: -1,
            next_producer_id: -1,
            producer_epoch: 0,
            next_producer_epoch: -1,
            transaction_timeout_ms: 0,
            transaction_status: 0,
            transaction_partitions: Some(Vec::new()),
            transaction_last_update_timestamp_ms: 0,
            transaction_start_timestamp_ms: 0,
            client_transaction_version: 0,
        }
    }
}

impl Wire for TransactionLogValue {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value = Self {
            producer_id: d.i64()?,
            previous_producer_id: -1,
            next_producer_id: -1,
            producer_epoch: d.i16()?,
            next_producer_epoch: -1,
            transaction_timeout_ms: d.i32()?,
            transaction_status: d.i8()?,
            transaction_partitions: d.option_array(true)?,
            transaction_last_update_timestamp_ms: d.i64()?,
            transaction_start_timestamp_ms: d.i64()?,
            client_transaction_version: 0,
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 1 => value.previous_producer_id = d.i64()?,
                1 if version >= 1 => value.next_producer_id = d.i64()?,
                3 if version >= 1 => value.next_producer_epoch = d.i16()?,
                2 if version >= 1 => value.client_transaction_version = d.i16()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i64(self.producer_id);
        e.i16(self.producer_epoch);
        e.i32(self.transaction_timeout_ms);
        e.i8(self.transaction_status);
        e.option_array(
            self.transaction_partitions.as_deref(),
            true,
            "TransactionLogValue::transaction_partitions",
        )?;
        e.i64(self.transaction_last_update_timestamp_ms);
        e.i64(self.transaction_start_timestamp_ms);
        let tags = e.tags();
        if version >= 1 {
            if self.previous_producer_id != -1 {
                e.tag(tags, 0, |e| {
                    e.i64(self.previous_producer_id);
                    Ok(())
                })?;
            }
            if self.next_producer_id != -1 {
                e.tag(tags, 1, |e| {
                    e.i64(self.next_producer_id);
                    Ok(())
                })?;
            }
            if self.client_transaction_version != 0 {
                e.tag(tags, 2, |e| {
                    e.i16(self.client_transaction_version);
                    Ok(())
                })?;
            }
            if self.next_producer_epoch != -1 {
                e.tag(tags, 3, |e| {
                    e.i16(self.next_producer_epoch);
                    Ok(())
                })?;
            }
        } else {
            e.absent(self.previous_producer_id != -1, "TransactionLogValue::previous_producer_id")?;
            e.absent(self.next_producer_id != -1, "TransactionLogValue::next_producer_id")?;
            e.absent(
                self.client_transaction_version != 0,
                "TransactionLogValue::client_transaction_version",
            )?;
            e.absent(self.next_producer_epoch != -1, "TransactionLogValue::next_producer_epoch")?;
        }
        Ok(())
    }
}

/// See [`TransactionLogValue::transaction_partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionsSchema {
    pub topic: ByteString,
    pub partition_ids: Vec<i32>,
}

impl Wire for PartitionsSchema {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 6,
            _ => 3,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topic: d.string()?, partition_ids: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.topic)?;
        e.array(&self.partition_ids)?;
        e.no_tags();
        Ok(())
    }
}

impl TransactionLogValue {
    /// The versions that can be written and read.
    pub const VERSIONS: RangeInclusive<i16> = 0..=1;

    /// Writes the record in `version`, which comes first.
    ///
    /// # Errors
    /// Fails when the version is unknown, or cannot carry what the record says.
    pub fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        encode_versioned(self, "TransactionLogValue", version, Self::VERSIONS, 1)
    }

    /// Reads a record that begins with its version.
    ///
    /// # Errors
    /// Fails when the version is unknown, or the record malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, DecodeError> {
        decode_versioned(bytes, Self::VERSIONS, 1, Trailing::Refused)
    }
}
