// Generated from messages.txt by generate/main.rs; do not edit.

//! The API OffsetFetch.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `OffsetFetch`, versions 1 to 10, flexible from 6.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchRequest {
    /// To version 7.
    pub group_id: ByteString,
    /// To version 7. Null from version 2.
    pub topics: Option<Vec<OffsetFetchRequestTopic>>,
    /// From version 8.
    pub groups: Vec<OffsetFetchRequestGroup>,
    /// From version 7.
    pub require_stable: bool,
}

impl Default for OffsetFetchRequest {
    fn default() -> Self {
        Self {
            group_id: ByteString::new(),
            topics: Some(Vec::new()),
            groups: Vec::new(),
            require_stable: false,
        }
    }
}

impl Wire for OffsetFetchRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: if version <= 7 { d.string()? } else { ByteString::new() },
            topics: if version <= 7 { d.option_array(version >= 2)? } else { Some(Vec::new()) },
            groups: if version >= 8 { d.array()? } else { Vec::new() },
            require_stable: if version >= 7 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 7 {
            e.string(&self.group_id)?;
            e.option_array(self.topics.as_deref(), version >= 2, "OffsetFetchRequest::topics")?;
        } else {
            e.absent(!self.group_id.is_empty(), "OffsetFetchRequest::group_id")?;
            e.absent(self.topics.as_ref().is_none_or(|all| !all.is_empty()), "OffsetFetchRequest::topics")?;
        }
        if version >= 8 {
            e.array(&self.groups)?;
        } else {
            e.absent(!self.groups.is_empty(), "OffsetFetchRequest::groups")?;
        }
        if version >= 7 {
            e.bool(self.require_stable);
        } else {
            e.absent(self.require_stable, "OffsetFetchRequest::require_stable")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetFetchRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchRequestTopic {
    pub name: ByteString,
    pub partition_indexes: Vec<i32>,
}

impl Wire for OffsetFetchRequestTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=5 => 6,
            _ => 3,
        }
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

/// See [`OffsetFetchRequest::groups`].
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchRequestGroup {
    pub group_id: ByteString,
    /// From version 9. Left out of others.
    pub member_id: Option<ByteString>,
    /// From version 9. Left out of others.
    pub member_epoch: i32,
    pub topics: Option<Vec<OffsetFetchRequestTopics>>,
}

impl Default for OffsetFetchRequestGroup {
    fn default() -> Self {
        Self { group_id: ByteString::new(), member_id: None, member_epoch: -1, topics: Some(Vec::new()) }
    }
}

impl Wire for OffsetFetchRequestGroup {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=8 => 3,
            _ => 8,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_id: d.string()?,
            member_id: if version >= 9 { d.option_string(true)? } else { None },
            member_epoch: if version >= 9 { d.i32()? } else { -1 },
            topics: d.option_array(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.string(&self.group_id)?;
        if version >= 9 {
            e.option_string(self.member_id.as_deref(), true, "OffsetFetchRequestGroup::member_id")?;
            e.i32(self.member_epoch);
        }
        e.option_array(self.topics.as_deref(), true, "OffsetFetchRequestGroup::topics")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetFetchRequestGroup::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchRequestTopics {
    /// To version 9. Left out of others.
    pub name: ByteString,
    /// From version 10. Left out of others.
    pub topic_id: Uuid,
    pub partition_indexes: Vec<i32>,
}

impl Wire for OffsetFetchRequestTopics {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=9 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: if version <= 9 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 10 { d.uuid()? } else { Uuid::ZERO },
            partition_indexes: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 9 {
            e.string(&self.name)?;
        }
        if version >= 10 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partition_indexes)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `OffsetFetch`, versions 1 to 10, flexible from 6.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchResponse {
    /// From version 3. Left out of others.
    pub throttle_time_ms: i32,
    /// To version 7.
    pub topics: Vec<OffsetFetchResponseTopic>,
    /// In versions 2 to 7. Left out of others.
    pub error_code: i16,
    /// From version 8.
    pub groups: Vec<OffsetFetchResponseGroup>,
}

impl Wire for OffsetFetchResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: if version >= 3 { d.i32()? } else { 0 },
            topics: if version <= 7 { d.array()? } else { Vec::new() },
            error_code: if (2..=7).contains(&version) { d.i16()? } else { 0 },
            groups: if version >= 8 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 3 {
            e.i32(self.throttle_time_ms);
        }
        if version <= 7 {
            e.array(&self.topics)?;
        } else {
            e.absent(!self.topics.is_empty(), "OffsetFetchResponse::topics")?;
        }
        if (2..=7).contains(&version) {
            e.i16(self.error_code);
        }
        if version >= 8 {
            e.array(&self.groups)?;
        } else {
            e.absent(!self.groups.is_empty(), "OffsetFetchResponse::groups")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetFetchResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchResponseTopic {
    pub name: ByteString,
    pub partitions: Vec<OffsetFetchResponsePartition>,
}

impl Wire for OffsetFetchResponseTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=5 => 6,
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

/// See [`OffsetFetchResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchResponsePartition {
    pub partition_index: i32,
    pub committed_offset: i64,
    /// From version 5. Left out of others.
    pub committed_leader_epoch: i32,
    pub metadata: Option<ByteString>,
    pub error_code: i16,
}

impl Default for OffsetFetchResponsePartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            metadata: Some(ByteString::new()),
            error_code: 0,
        }
    }
}

impl Wire for OffsetFetchResponsePartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 16,
            _ => 20,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            partition_index: d.i32()?,
            committed_offset: d.i64()?,
            committed_leader_epoch: if version >= 5 { d.i32()? } else { -1 },
            metadata: d.option_string(true)?,
            error_code: d.i16()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition_index);
        e.i64(self.committed_offset);
        if version >= 5 {
            e.i32(self.committed_leader_epoch);
        }
        e.option_string(self.metadata.as_deref(), true, "OffsetFetchResponsePartition::metadata")?;
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetFetchResponse::groups`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchResponseGroup {
    pub group_id: ByteString,
    pub topics: Vec<OffsetFetchResponseTopics>,
    pub error_code: i16,
}

impl Wire for OffsetFetchResponseGroup {
    fn min_size(_: i16, _: bool) -> usize {
        5
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { group_id: d.string()?, topics: d.array()?, error_code: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.array(&self.topics)?;
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetFetchResponseGroup::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchResponseTopics {
    /// To version 9. Left out of others.
    pub name: ByteString,
    /// From version 10. Left out of others.
    pub topic_id: Uuid,
    pub partitions: Vec<OffsetFetchResponsePartitions>,
}

impl Wire for OffsetFetchResponseTopics {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=9 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            name: if version <= 9 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 10 { d.uuid()? } else { Uuid::ZERO },
            partitions: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 9 {
            e.string(&self.name)?;
        }
        if version >= 10 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`OffsetFetchResponseTopics::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchResponsePartitions {
    pub partition_index: i32,
    pub committed_offset: i64,
    pub committed_leader_epoch: i32,
    pub metadata: Option<ByteString>,
    pub error_code: i16,
}

impl Default for OffsetFetchResponsePartitions {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            metadata: Some(ByteString::new()),
            error_code: 0,
        }
    }
}

impl Wire for OffsetFetchResponsePartitions {
    fn min_size(_: i16, _: bool) -> usize {
        20
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            partition_index: d.i32()?,
            committed_offset: d.i64()?,
            committed_leader_epoch: d.i32()?,
            metadata: d.option_string(true)?,
            error_code: d.i16()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.partition_index);
        e.i64(self.committed_offset);
        e.i32(self.committed_leader_epoch);
        e.option_string(self.metadata.as_deref(), true, "OffsetFetchResponsePartitions::metadata")?;
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}
