// Generated from messages.txt by generate/main.rs; do not edit.

//! The API Fetch.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};
use crate::{Records, Uuid};

/// The request of `Fetch`, versions 4 to 18, flexible from 12.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchRequest {
    /// From version 12. Left out of others.
    pub cluster_id: Option<ByteString>,
    /// To version 14.
    pub replica_id: i32,
    /// From version 15.
    pub replica_state: ReplicaState,
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    pub isolation_level: i8,
    /// From version 7. Left out of others.
    pub session_id: i32,
    /// From version 7. Left out of others.
    pub session_epoch: i32,
    pub topics: Vec<FetchTopic>,
    /// From version 7.
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    /// From version 11. Left out of others.
    pub rack_id: ByteString,
}

impl Default for FetchRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            replica_id: -1,
            replica_state: ReplicaState::default(),
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: i32::MAX,
            isolation_level: 0,
            session_id: 0,
            session_epoch: -1,
            topics: Vec::new(),
            forgotten_topics_data: Vec::new(),
            rack_id: ByteString::new(),
        }
    }
}

impl Wire for FetchRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value = Self {
            cluster_id: None,
            replica_id: if version <= 14 { d.i32()? } else { -1 },
            replica_state: ReplicaState::default(),
            max_wait_ms: d.i32()?,
            min_bytes: d.i32()?,
            max_bytes: d.i32()?,
            isolation_level: d.i8()?,
            session_id: if version >= 7 { d.i32()? } else { 0 },
            session_epoch: if version >= 7 { d.i32()? } else { -1 },
            topics: d.array()?,
            forgotten_topics_data: if version >= 7 { d.array()? } else { Vec::new() },
            rack_id: if version >= 11 { d.string()? } else { ByteString::new() },
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 12 => value.cluster_id = d.option_string(true)?,
                1 if version >= 15 => value.replica_state = ReplicaState::decode(d)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 14 {
            e.i32(self.replica_id);
        } else {
            e.absent(self.replica_id != -1, "FetchRequest::replica_id")?;
        }
        e.i32(self.max_wait_ms);
        e.i32(self.min_bytes);
        e.i32(self.max_bytes);
        e.i8(self.isolation_level);
        if version >= 7 {
            e.i32(self.session_id);
            e.i32(self.session_epoch);
        }
        e.array(&self.topics)?;
        if version >= 7 {
            e.array(&self.forgotten_topics_data)?;
        } else {
            e.absent(!self.forgotten_topics_data.is_empty(), "FetchRequest::forgotten_topics_data")?;
        }
        if version >= 11 {
            e.string(&self.rack_id)?;
        }
        let tags = e.tags();
        if version >= 12 && self.cluster_id.is_some() {
            e.tag(tags, 0, |e| {
                e.option_string(self.cluster_id.as_deref(), true, "FetchRequest::cluster_id")
            })?;
        }
        if version >= 15 {
            if self.replica_state != ReplicaState::default() {
                e.tag(tags, 1, |e| self.replica_state.encode(e))?;
            }
        } else {
            e.absent(self.replica_state != ReplicaState::default(), "FetchRequest::replica_state")?;
        }
        Ok(())
    }
}

/// See [`FetchRequest::replica_state`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaState {
    pub replica_id: i32,
    pub replica_epoch: i64,
}

impl Default for ReplicaState {
    fn default() -> Self {
        Self { replica_id: -1, replica_epoch: -1 }
    }
}

impl Wire for ReplicaState {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { replica_id: d.i32()?, replica_epoch: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.replica_id);
        e.i64(self.replica_epoch);
        e.no_tags();
        Ok(())
    }
}

/// See [`FetchRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchTopic {
    /// To version 12. Left out of others.
    pub topic: ByteString,
    /// From version 13. Left out of others.
    pub topic_id: Uuid,
    pub partitions: Vec<FetchPartition>,
}

impl Wire for FetchTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=11 => 6,
            12 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            topic: if version <= 12 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 13 { d.uuid()? } else { Uuid::ZERO },
            partitions: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 12 {
            e.string(&self.topic)?;
        }
        if version >= 13 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`FetchTopic::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct FetchPartition {
    pub partition: i32,
    /// From version 9. Left out of others.
    pub current_leader_epoch: i32,
    pub fetch_offset: i64,
    /// From version 12.
    pub last_fetched_epoch: i32,
    /// From version 5. Left out of others.
    pub log_start_offset: i64,
    pub partition_max_bytes: i32,
    /// From version 17. Left out of others.
    pub replica_directory_id: Uuid,
    /// From version 18. Left out of others.
    pub high_watermark: i64,
}

impl Default for FetchPartition {
    fn default() -> Self {
        Self {
            partition: 0,
            current_leader_epoch: -1,
            fetch_offset: 0,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: 0,
            replica_directory_id: Uuid::ZERO,
            high_watermark: i64::MAX,
        }
    }
}

impl Wire for FetchPartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 16,
            5..=8 => 24,
            9..=11 => 28,
            _ => 33,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value = Self {
            partition: d.i32()?,
            current_leader_epoch: if version >= 9 { d.i32()? } else { -1 },
            fetch_offset: d.i64()?,
            last_fetched_epoch: if version >= 12 { d.i32()? } else { -1 },
            log_start_offset: if version >= 5 { d.i64()? } else { -1 },
            partition_max_bytes: d.i32()?,
            replica_directory_id: Uuid::ZERO,
            high_watermark: i64::MAX,
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 17 => value.replica_directory_id = d.uuid()?,
                1 if version >= 18 => value.high_watermark = d.i64()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition);
        if version >= 9 {
            e.i32(self.current_leader_epoch);
        }
        e.i64(self.fetch_offset);
        if version >= 12 {
            e.i32(self.last_fetched_epoch);
        } else {
            e.absent(self.last_fetched_epoch != -1, "FetchPartition::last_fetched_epoch")?;
        }
        if version >= 5 {
            e.i64(self.log_start_offset);
        }
        e.i32(self.partition_max_bytes);
        let tags = e.tags();
        if version >= 17 && !self.replica_directory_id.is_zero() {
            e.tag(tags, 0, |e| {
                e.uuid(self.replica_directory_id);
                Ok(())
            })?;
        }
        if version >= 18 && self.high_watermark != i64::MAX {
            e.tag(tags, 1, |e| {
                e.i64(self.high_watermark);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// See [`FetchRequest::forgotten_topics_data`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForgottenTopic {
    /// To version 12. Left out of others.
    pub topic: ByteString,
    /// From version 13. Left out of others.
    pub topic_id: Uuid,
    pub partitions: Vec<i32>,
}

impl Wire for ForgottenTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=11 => 6,
            12 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            topic: if version <= 12 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 13 { d.uuid()? } else { Uuid::ZERO },
            partitions: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 12 {
            e.string(&self.topic)?;
        }
        if version >= 13 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `Fetch`, versions 4 to 18, flexible from 12.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchResponse {
    pub throttle_time_ms: i32,
    /// From version 7. Left out of others.
    pub error_code: i16,
    /// From version 7.
    pub session_id: i32,
    pub responses: Vec<FetchableTopicResponse>,
    /// From version 16.
    pub node_endpoints: Vec<NodeEndpoint>,
}

impl Wire for FetchResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value = Self {
            throttle_time_ms: d.i32()?,
            error_code: if version >= 7 { d.i16()? } else { 0 },
            session_id: if version >= 7 { d.i32()? } else { 0 },
            responses: d.array()?,
            node_endpoints: Vec::new(),
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 16 => value.node_endpoints = d.array()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        if version >= 7 {
            e.i16(self.error_code);
            e.i32(self.session_id);
        } else {
            e.absent(self.session_id != 0, "FetchResponse::session_id")?;
        }
        e.array(&self.responses)?;
        let tags = e.tags();
        if version >= 16 {
            if !self.node_endpoints.is_empty() {
                e.tag(tags, 0, |e| e.array(&self.node_endpoints))?;
            }
        } else {
            e.absent(!self.node_endpoints.is_empty(), "FetchResponse::node_endpoints")?;
        }
        Ok(())
    }
}

/// See [`FetchResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchableTopicResponse {
    /// To version 12. Left out of others.
    pub topic: ByteString,
    /// From version 13. Left out of others.
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionData>,
}

impl Wire for FetchableTopicResponse {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=11 => 6,
            12 => 3,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            topic: if version <= 12 { d.string()? } else { ByteString::new() },
            topic_id: if version >= 13 { d.uuid()? } else { Uuid::ZERO },
            partitions: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 12 {
            e.string(&self.topic)?;
        }
        if version >= 13 {
            e.uuid(self.topic_id);
        }
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`FetchableTopicResponse::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionData {
    pub partition_index: i32,
    pub error_code: i16,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    /// From version 5. Left out of others.
    pub log_start_offset: i64,
    /// From version 12.
    pub diverging_epoch: EpochEndOffset,
    /// From version 12.
    pub current_leader: LeaderIdAndEpoch,
    /// From version 12.
    pub snapshot_id: SnapshotId,
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// From version 11.
    pub preferred_read_replica: i32,
    pub records: Option<Records>,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: 0,
            high_watermark: 0,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: EpochEndOffset::default(),
            current_leader: LeaderIdAndEpoch::default(),
            snapshot_id: SnapshotId::default(),
            aborted_transactions: Some(Vec::new()),
            preferred_read_replica: -1,
            records: None,
        }
    }
}

impl Wire for PartitionData {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 30,
            5..=10 => 38,
            11 => 42,
            _ => 37,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let mut value = Self {
            partition_index: d.i32()?,
            error_code: d.i16()?,
            high_watermark: d.i64()?,
            last_stable_offset: d.i64()?,
            log_start_offset: if version >= 5 { d.i64()? } else { -1 },
            diverging_epoch: EpochEndOffset::default(),
            current_leader: LeaderIdAndEpoch::default(),
            snapshot_id: SnapshotId::default(),
            aborted_transactions: d.option_array(true)?,
            preferred_read_replica: if version >= 11 { d.i32()? } else { -1 },
            records: d.records(true)?,
        };
        d.tags(&mut |d, tag| {
            match tag {
                0 if version >= 12 => value.diverging_epoch = EpochEndOffset::decode(d)?,
                1 if version >= 12 => value.current_leader = LeaderIdAndEpoch::decode(d)?,
                2 if version >= 12 => value.snapshot_id = SnapshotId::decode(d)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.partition_index);
        e.i16(self.error_code);
        e.i64(self.high_watermark);
        e.i64(self.last_stable_offset);
        if version >= 5 {
            e.i64(self.log_start_offset);
        }
        e.option_array(self.aborted_transactions.as_deref(), true, "PartitionData::aborted_transactions")?;
        if version >= 11 {
            e.i32(self.preferred_read_replica);
        } else {
            e.absent(self.preferred_read_replica != -1, "PartitionData::preferred_read_replica")?;
        }
        e.records(self.records.as_ref(), true, "PartitionData::records")?;
        let tags = e.tags();
        if version >= 12 {
            if self.diverging_epoch != EpochEndOffset::default() {
                e.tag(tags, 0, |e| self.diverging_epoch.encode(e))?;
            }
            if self.current_leader != LeaderIdAndEpoch::default() {
                e.tag(tags, 1, |e| self.current_leader.encode(e))?;
            }
            if self.snapshot_id != SnapshotId::default() {
                e.tag(tags, 2, |e| self.snapshot_id.encode(e))?;
            }
        } else {
            e.absent(self.diverging_epoch != EpochEndOffset::default(), "PartitionData::diverging_epoch")?;
            e.absent(self.current_leader != LeaderIdAndEpoch::default(), "PartitionData::current_leader")?;
            e.absent(self.snapshot_id != SnapshotId::default(), "PartitionData::snapshot_id")?;
        }
        Ok(())
    }
}

/// See [`PartitionData::diverging_epoch`].
#[derive(Clone, Debug, PartialEq)]
pub struct EpochEndOffset {
    pub epoch: i32,
    pub end_offset: i64,
}

impl Default for EpochEndOffset {
    fn default() -> Self {
        Self { epoch: -1, end_offset: -1 }
    }
}

impl Wire for EpochEndOffset {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { epoch: d.i32()?, end_offset: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.epoch);
        e.i64(self.end_offset);
        e.no_tags();
        Ok(())
    }
}

/// See [`PartitionData::current_leader`].
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderIdAndEpoch {
    pub leader_id: i32,
    pub leader_epoch: i32,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self { leader_id: -1, leader_epoch: -1 }
    }
}

impl Wire for LeaderIdAndEpoch {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { leader_id: d.i32()?, leader_epoch: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.leader_id);
        e.i32(self.leader_epoch);
        e.no_tags();
        Ok(())
    }
}

/// See [`PartitionData::snapshot_id`].
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotId {
    pub end_offset: i64,
    pub epoch: i32,
}

impl Default for SnapshotId {
    fn default() -> Self {
        Self { end_offset: -1, epoch: -1 }
    }
}

impl Wire for SnapshotId {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { end_offset: d.i64()?, epoch: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.end_offset);
        e.i32(self.epoch);
        e.no_tags();
        Ok(())
    }
}

/// See [`PartitionData::aborted_transactions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
}

impl Wire for AbortedTransaction {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=11 => 16,
            _ => 17,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { producer_id: d.i64()?, first_offset: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i64(self.producer_id);
        e.i64(self.first_offset);
        e.no_tags();
        Ok(())
    }
}

/// See [`FetchResponse::node_endpoints`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeEndpoint {
    pub node_id: i32,
    pub host: ByteString,
    pub port: i32,
    pub rack: Option<ByteString>,
}

impl Wire for NodeEndpoint {
    fn min_size(_: i16, _: bool) -> usize {
        11
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { node_id: d.i32()?, host: d.string()?, port: d.i32()?, rack: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.node_id);
        e.string(&self.host)?;
        e.i32(self.port);
        e.option_string(self.rack.as_deref(), true, "NodeEndpoint::rack")?;
        e.no_tags();
        Ok(())
    }
}
