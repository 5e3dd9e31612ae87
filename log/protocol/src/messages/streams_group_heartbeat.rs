// Generated from messages.txt by generate/main.rs; do not edit.

//! The API StreamsGroupHeartbeat.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `StreamsGroupHeartbeat`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamsGroupHeartbeatRequest {
    pub group_id: ByteString,
    pub member_id: ByteString,
    pub member_epoch: i32,
    pub endpoint_information_epoch: i32,
    pub instance_id: Option<ByteString>,
    pub rack_id: Option<ByteString>,
    pub rebalance_timeout_ms: i32,
    pub topology: Option<Topology>,
    pub active_tasks: Option<Vec<TaskIds>>,
    pub standby_tasks: Option<Vec<TaskIds>>,
    pub warmup_tasks: Option<Vec<TaskIds>>,
    pub process_id: Option<ByteString>,
    pub user_endpoint: Option<Endpoint>,
    pub client_tags: Option<Vec<KeyValue>>,
    pub task_offsets: Option<Vec<TaskOffset>>,
    pub task_end_offsets: Option<Vec<TaskOffset>>,
    pub shutdown_application: bool,
}

impl Default for StreamsGroupHeartbeatRequest {
    fn default() -> Self {
        Self {
            group_id: ByteString::new(),
            member_id: ByteString::new(),
            member_epoch: 0,
            endpoint_information_epoch: 0,
            instance_id: None,
            rack_id: None,
            rebalance_timeout_ms: -1,
            topology: None,
            active_tasks: None,
            standby_tasks: None,
            warmup_tasks: None,
            process_id: None,
            user_endpoint: None,
            client_tags: None,
            task_offsets: None,
            task_end_offsets: None,
            shutdown_application: false,
        }
    }
}

impl Wire for StreamsGroupHeartbeatRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            group_id: d.string()?,
            member_id: d.string()?,
            member_epoch: d.i32()?,
            endpoint_information_epoch: d.i32()?,
            instance_id: d.option_string(true)?,
            rack_id: d.option_string(true)?,
            rebalance_timeout_ms: d.i32()?,
            topology: d.option_struct()?,
            active_tasks: d.option_array(true)?,
            standby_tasks: d.option_array(true)?,
            warmup_tasks: d.option_array(true)?,
            process_id: d.option_string(true)?,
            user_endpoint: d.option_struct()?,
            client_tags: d.option_array(true)?,
            task_offsets: d.option_array(true)?,
            task_end_offsets: d.option_array(true)?,
            shutdown_application: d.bool()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.group_id)?;
        e.string(&self.member_id)?;
        e.i32(self.member_epoch);
        e.i32(self.endpoint_information_epoch);
        e.option_string(self.instance_id.as_deref(), true, "StreamsGroupHeartbeatRequest::instance_id")?;
        e.option_string(self.rack_id.as_deref(), true, "StreamsGroupHeartbeatRequest::rack_id")?;
        e.i32(self.rebalance_timeout_ms);
        e.option_struct(self.topology.as_ref())?;
        e.option_array(self.active_tasks.as_deref(), true, "StreamsGroupHeartbeatRequest::active_tasks")?;
        e.option_array(self.standby_tasks.as_deref(), true, "StreamsGroupHeartbeatRequest::standby_tasks")?;
        e.option_array(self.warmup_tasks.as_deref(), true, "StreamsGroupHeartbeatRequest::warmup_tasks")?;
        e.option_string(self.process_id.as_deref(), true, "StreamsGroupHeartbeatRequest::process_id")?;
        e.option_struct(self.user_endpoint.as_ref())?;
        e.option_array(self.client_tags.as_deref(), true, "StreamsGroupHeartbeatRequest::client_tags")?;
        e.option_array(self.task_offsets.as_deref(), true, "StreamsGroupHeartbeatRequest::task_offsets")?;
        e.option_array(
            self.task_end_offsets.as_deref(),
            true,
            "StreamsGroupHeartbeatRequest::task_end_offsets",
        )?;
        e.bool(self.shutdown_application);
        e.no_tags();
        Ok(())
    }
}

/// See [`StreamsGroupHeartbeatRequest::topology`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    pub epoch: i32,
    pub subtopologies: Vec<Subtopology>,
}

impl Wire for Topology {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { epoch: d.i32()?, subtopologies: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.epoch);
        e.array(&self.subtopologies)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`Topology::subtopologies`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subtopology {
    pub subtopology_id: ByteString,
    pub source_topics: Vec<ByteString>,
    pub source_topic_regex: Vec<ByteString>,
    pub state_changelog_topics: Vec<TopicInfo>,
    pub repartition_sink_topics: Vec<ByteString>,
    pub repartition_source_topics: Vec<TopicInfo>,
    pub copartition_groups: Vec<CopartitionGroup>,
}

impl Wire for Subtopology {
    fn min_size(_: i16, _: bool) -> usize {
        8
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            subtopology_id: d.string()?,
            source_topics: d.array()?,
            source_topic_regex: d.array()?,
            state_changelog_topics: d.array()?,
            repartition_sink_topics: d.array()?,
            repartition_source_topics: d.array()?,
            copartition_groups: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.subtopology_id)?;
        e.array(&self.source_topics)?;
        e.array(&self.source_topic_regex)?;
        e.array(&self.state_changelog_topics)?;
        e.array(&self.repartition_sink_topics)?;
        e.array(&self.repartition_source_topics)?;
        e.array(&self.copartition_groups)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`Subtopology::state_changelog_topics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicInfo {
    pub name: ByteString,
    pub partitions: i32,
    pub replication_factor: i16,
    pub topic_configs: Vec<KeyValue>,
}

impl Wire for TopicInfo {
    fn min_size(_: i16, _: bool) -> usize {
        9
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            name: d.string()?,
            partitions: d.i32()?,
            replication_factor: d.i16()?,
            topic_configs: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i32(self.partitions);
        e.i16(self.replication_factor);
        e.array(&self.topic_configs)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`StreamsGroupHeartbeatRequest::client_tags`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyValue {
    pub key: ByteString,
    pub value: ByteString,
}

impl Wire for KeyValue {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { key: d.string()?, value: d.string()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.key)?;
        e.string(&self.value)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`Subtopology::copartition_groups`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CopartitionGroup {
    pub source_topics: Vec<i16>,
    pub source_topic_regex: Vec<i16>,
    pub repartition_source_topics: Vec<i16>,
}

impl Wire for CopartitionGroup {
    fn min_size(_: i16, _: bool) -> usize {
        4
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            source_topics: d.array()?,
            source_topic_regex: d.array()?,
            repartition_source_topics: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.source_topics)?;
        e.array(&self.source_topic_regex)?;
        e.array(&self.repartition_source_topics)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`StreamsGroupHeartbeatRequest::active_tasks`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskIds {
    pub subtopology_id: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for TaskIds {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { subtopology_id: d.string()?, partitions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.subtopology_id)?;
        e.array(&self.partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`StreamsGroupHeartbeatRequest::user_endpoint`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Endpoint {
    pub host: ByteString,
    pub port: u16,
}

impl Wire for Endpoint {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { host: d.string()?, port: d.u16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.host)?;
        e.u16(self.port);
        e.no_tags();
        Ok(())
    }
}

/// See [`StreamsGroupHeartbeatRequest::task_offsets`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskOffset {
    pub subtopology_id: ByteString,
    pub partition: i32,
    pub offset: i64,
}

impl Wire for TaskOffset {
    fn min_size(_: i16, _: bool) -> usize {
        14
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { subtopology_id: d.string()?, partition: d.i32()?, offset: d.i64()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.subtopology_id)?;
        e.i32(self.partition);
        e.i64(self.offset);
        e.no_tags();
        Ok(())
    }
}

/// The response of `StreamsGroupHeartbeat`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamsGroupHeartbeatResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub member_id: ByteString,
    pub member_epoch: i32,
    pub heartbeat_interval_ms: i32,
    /// To version 0.
    pub acceptable_recovery_lag_legacy: i32,
    pub task_offset_interval_ms: i32,
    /// From version 1. Left out of others.
    pub acceptable_recovery_lag: i64,
    pub status: Option<Vec<Status>>,
    pub active_tasks: Option<Vec<TaskIds>>,
    pub standby_tasks: Option<Vec<TaskIds>>,
    pub warmup_tasks: Option<Vec<TaskIds>>,
    /// From version 1.
    pub topology_description_required: bool,
    pub endpoint_information_epoch: i32,
    pub partitions_by_user_endpoint: Option<Vec<EndpointToPartitions>>,
}

impl Default for StreamsGroupHeartbeatResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: None,
            member_id: ByteString::new(),
            member_epoch: 0,
            heartbeat_interval_ms: 0,
            acceptable_recovery_lag_legacy: 0,
            task_offset_interval_ms: 0,
            acceptable_recovery_lag: -1,
            status: Some(Vec::new()),
            active_tasks: None,
            standby_tasks: None,
            warmup_tasks: None,
            topology_description_required: false,
            endpoint_information_epoch: 0,
            partitions_by_user_endpoint: None,
        }
    }
}

impl Wire for StreamsGroupHeartbeatResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            member_id: d.string()?,
            member_epoch: d.i32()?,
            heartbeat_interval_ms: d.i32()?,
            acceptable_recovery_lag_legacy: if version <= 0 { d.i32()? } else { 0 },
            task_offset_interval_ms: d.i32()?,
            acceptable_recovery_lag: if version >= 1 { d.i64()? } else { -1 },
            status: d.option_array(true)?,
            active_tasks: d.option_array(true)?,
            standby_tasks: d.option_array(true)?,
            warmup_tasks: d.option_array(true)?,
            topology_description_required: if version >= 1 { d.bool()? } else { false },
            endpoint_information_epoch: d.i32()?,
            partitions_by_user_endpoint: d.option_array(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "StreamsGroupHeartbeatResponse::error_message")?;
        e.string(&self.member_id)?;
        e.i32(self.member_epoch);
        e.i32(self.heartbeat_interval_ms);
        if version <= 0 {
            e.i32(self.acceptable_recovery_lag_legacy);
        } else {
            e.absent(
                self.acceptable_recovery_lag_legacy != 0,
                "StreamsGroupHeartbeatResponse::acceptable_recovery_lag_legacy",
            )?;
        }
        e.i32(self.task_offset_interval_ms);
        if version >= 1 {
            e.i64(self.acceptable_recovery_lag);
        }
        e.option_array(self.status.as_deref(), true, "StreamsGroupHeartbeatResponse::status")?;
        e.option_array(self.active_tasks.as_deref(), true, "StreamsGroupHeartbeatResponse::active_tasks")?;
        e.option_array(self.standby_tasks.as_deref(), true, "StreamsGroupHeartbeatResponse::standby_tasks")?;
        e.option_array(self.warmup_tasks.as_deref(), true, "StreamsGroupHeartbeatResponse::warmup_tasks")?;
        if version >= 1 {
            e.bool(self.topology_description_required);
        } else {
            e.absent(
                self.topology_description_required,
                "StreamsGroupHeartbeatResponse::topology_description_required",
            )?;
        }
        e.i32(self.endpoint_information_epoch);
        e.option_array(
            self.partitions_by_user_endpoint.as_deref(),
            true,
            "StreamsGroupHeartbeatResponse::partitions_by_user_endpoint",
        )?;
        e.no_tags();
        Ok(())
    }
}

/// See [`StreamsGroupHeartbeatResponse::status`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    pub status_code: i8,
    pub status_detail: ByteString,
}

impl Wire for Status {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { status_code: d.i8()?, status_detail: d.string()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i8(self.status_code);
        e.string(&self.status_detail)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`StreamsGroupHeartbeatResponse::partitions_by_user_endpoint`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointToPartitions {
    pub user_endpoint: Endpoint,
    pub active_partitions: Vec<TopicPartition>,
    pub standby_partitions: Vec<TopicPartition>,
}

impl Wire for EndpointToPartitions {
    fn min_size(_: i16, _: bool) -> usize {
        7
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            user_endpoint: Endpoint::decode(d)?,
            active_partitions: d.array()?,
            standby_partitions: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.user_endpoint.encode(e)?;
        e.array(&self.active_partitions)?;
        e.array(&self.standby_partitions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`EndpointToPartitions::active_partitions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicPartition {
    pub topic: ByteString,
    pub partitions: Vec<i32>,
}

impl Wire for TopicPartition {
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
