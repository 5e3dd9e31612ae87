// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeLogDirs.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeLogDirs`, versions 1 to 5, flexible from 2.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeLogDirsRequest {
    pub topics: Option<Vec<DescribableLogDirTopic>>,
}

impl Default for DescribeLogDirsRequest {
    fn default() -> Self {
        Self { topics: Some(Vec::new()) }
    }
}

impl Wire for DescribeLogDirsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { topics: d.option_array(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.option_array(self.topics.as_deref(), true, "DescribeLogDirsRequest::topics")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeLogDirsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribableLogDirTopic {
    pub topic: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for DescribableLogDirTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
            _ => 3,
        }
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

/// The response of `DescribeLogDirs`, versions 1 to 5, flexible from 2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeLogDirsResponse {
    pub throttle_time_ms: i32,
    /// From version 3. Left out of others.
    pub error_code: i16,
    pub results: Vec<DescribeLogDirsResult>,
}

impl Wire for DescribeLogDirsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: if version >= 3 { d.i16()? } else { 0 },
            results: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        if version >= 3 {
            e.i16(self.error_code);
        }
        e.array(&self.results)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeLogDirsResponse::results`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeLogDirsResult {
    pub error_code: i16,
    pub log_dir: ByteString,
    pub topics: Vec<DescribeLogDirsTopic>,
    /// From version 4. Left out of others.
    pub total_bytes: i64,
    /// From version 4. Left out of others.
    pub usable_bytes: i64,
    /// From version 5. Left out of others.
    pub is_cordoned: bool,
}

impl Default for DescribeLogDirsResult {
    fn default() -> Self {
        Self {
            error_code: 0,
            log_dir: ByteString::new(),
            topics: Vec::new(),
            total_bytes: -1,
            usable_bytes: -1,
            is_cordoned: false,
        }
    }
}

impl Wire for DescribeLogDirsResult {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 8,
            2..=3 => 5,
            4 => 21,
            _ => 22,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            error_code: d.i16()?,
            log_dir: d.string()?,
            topics: d.array()?,
            total_bytes: if version >= 4 { d.i64()? } else { -1 },
            usable_bytes: if version >= 4 { d.i64()? } else { -1 },
            is_cordoned: if version >= 5 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i16(self.error_code);
        e.string(&self.log_dir)?;
        e.array(&self.topics)?;
        if version >= 4 {
            e.i64(self.total_bytes);
            e.i64(self.usable_bytes);
        }
        if version >= 5 {
            e.bool(self.is_cordoned);
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeLogDirsResult::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeLogDirsTopic {
    pub name: ByteString,
    pub partitions: Vec<DescribeLogDirsPartition>,
}

impl Wire for DescribeLogDirsTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 6,
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

/// See [`DescribeLogDirsTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeLogDirsPartition {
    pub partition_index: i32,
    pub partition_size: i64,
    pub offset_lag: i64,
    pub is_future_key: bool,
}

impl Wire for DescribeLogDirsPartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 21,
            _ => 22,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            partition_index: d.i32()?,
            partition_size: d.i64()?,
            offset_lag: d.i64()?,
            is_future_key: d.bool()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i64(self.partition_size);
        e.i64(self.offset_lag);
        e.bool(self.is_future_key);
        e.no_tags();
        Ok(())
    }
}
