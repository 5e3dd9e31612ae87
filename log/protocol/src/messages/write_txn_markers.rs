// Generated from messages.txt by generate/main.rs; do not edit.

//! The API WriteTxnMarkers.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `WriteTxnMarkers`, versions 1 to 2, flexible from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteTxnMarkersRequest {
    pub markers: Vec<WritableTxnMarker>,
}

impl Wire for WriteTxnMarkersRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { markers: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.markers)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`WriteTxnMarkersRequest::markers`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WritableTxnMarker {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub transaction_result: bool,
    pub topics: Vec<WritableTxnMarkerTopic>,
    pub coordinator_epoch: i32,
    /// From version 2. Left out of others.
    pub transaction_version: i8,
}

impl Wire for WritableTxnMarker {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 17,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            producer_id: d.i64()?,
            producer_epoch: d.i16()?,
            transaction_result: d.bool()?,
            topics: d.array()?,
            coordinator_epoch: d.i32()?,
            transaction_version: if version >= 2 { d.i8()? } else { 0 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i64(self.producer_id);
        e.i16(self.producer_epoch);
        e.bool(self.transaction_result);
        e.array(&self.topics)?;
        e.i32(self.coordinator_epoch);
        if version >= 2 {
            e.i8(self.transaction_version);
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`WritableTxnMarker::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WritableTxnMarkerTopic {
    pub name: ByteString,
    pub partition_indexes: Vec<i32>,
}

impl Wire for WritableTxnMarkerTopic {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, partition_indexes: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.array(&self.partition_indexes)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `WriteTxnMarkers`, versions 1 to 2, flexible from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteTxnMarkersResponse {
    pub markers: Vec<WritableTxnMarkerResult>,
}

impl Wire for WriteTxnMarkersResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { markers: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.markers)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`WriteTxnMarkersResponse::markers`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WritableTxnMarkerResult {
    pub producer_id: i64,
    pub topics: Vec<WritableTxnMarkerTopicResult>,
}

impl Wire for WritableTxnMarkerResult {
    fn min_size(_: i16, _: bool) -> usize {
        10
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { producer_id: d.i64()?, topics: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.producer_id);
        e.array(&self.topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`WritableTxnMarkerResult::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WritableTxnMarkerTopicResult {
    pub name: ByteString,
    pub partitions: Vec<WritableTxnMarkerPartitionResult>,
}

impl Wire for WritableTxnMarkerTopicResult {
    fn min_size(_: i16, _: bool) -> usize {
        3
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

/// See [`WritableTxnMarkerTopicResult::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WritableTxnMarkerPartitionResult {
    pub partition_index: i32,
    pub error_code: i16,
}

impl Wire for WritableTxnMarkerPartitionResult {
    fn min_size(_: i16, _: bool) -> usize {
        7
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { partition_index: d.i32()?, error_code: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}
