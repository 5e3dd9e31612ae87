// Generated from messages.txt by generate/main.rs; do not edit.

//! The API StreamsGroupDescribe.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `StreamsGroupDescribe`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamsGroupDescribeRequest {
    pub group_ids: Vec<ByteString>,
    pub include_authorized_operations: bool,
    /// From version 1.
    pub include_topology_description: bool,
}

impl Wire for StreamsGroupDescribeRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            group_ids: d.array()?,
            include_authorized_operations: d.bool()?,
            include_topology_description: if version >= 1 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.array(&self.group_ids)?;
        e.bool(self.include_authorized_operations);
        if version >= 1 {
            e.bool(self.include_topology_description);
        } else {
            e.absent(
                self.include_topology_description,
                "StreamsGroupDescribeRequest::include_topology_description",
            )?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `StreamsGroupDescribe`, versions 0 to 1, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamsGroupDescribeResponse {
    pub throttle_time_ms: i32,
    pub groups: Vec<DescribedGroup>,
}

impl Wire for StreamsGroupDescribeResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, groups: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.groups)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`StreamsGroupDescribeResponse::groups`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedGroup {
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub group_id: ByteString,
    pub group_state: ByteString,
    pub group_epoch: i32,
    pub assignment_epoch: i32,
    pub topology: Option<Topology>,
    pub members: Vec<Member>,
    pub authorized_operations: i32,
    /// From version 1.
    pub topology_description: Option<TopologyDescription>,
    /// From version 1.
    pub topology_description_status: i8,
    /// From version 1. Left out of others.
    pub assignor_name: Option<ByteString>,
}

impl Default for DescribedGroup {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: None,
            group_id: ByteString::new(),
            group_state: ByteString::new(),
            group_epoch: 0,
            assignment_epoch: 0,
            topology: None,
            members: Vec::new(),
            authorized_operations: i32::MIN,
            topology_description: None,
            topology_description_status: 0,
            assignor_name: None,
        }
    }
}

impl Wire for DescribedGroup {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 20,
            _ => 23,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            group_id: d.string()?,
            group_state: d.string()?,
            group_epoch: d.i32()?,
            assignment_epoch: d.i32()?,
            topology: d.option_struct()?,
            members: d.array()?,
            authorized_operations: d.i32()?,
            topology_description: if version >= 1 { d.option_struct()? } else { None },
            topology_description_status: if version >= 1 { d.i8()? } else { 0 },
            assignor_name: if version >= 1 { d.option_string(true)? } else { None },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "DescribedGroup::error_message")?;
        e.string(&self.group_id)?;
        e.string(&self.group_state)?;
        e.i32(self.group_epoch);
        e.i32(self.assignment_epoch);
        e.option_struct(self.topology.as_ref())?;
        e.array(&self.members)?;
        e.i32(self.authorized_operations);
        if version >= 1 {
            e.option_struct(self.topology_description.as_ref())?;
            e.i8(self.topology_description_status);
            e.option_string(self.assignor_name.as_deref(), true, "DescribedGroup::assignor_name")?;
        } else {
            e.absent(self.topology_description.is_some(), "DescribedGroup::topology_description")?;
            e.absent(self.topology_description_status != 0, "DescribedGroup::topology_description_status")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribedGroup::topology`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    pub epoch: i32,
    pub subtopologies: Option<Vec<Subtopology>>,
}

impl Wire for Topology {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { epoch: d.i32()?, subtopologies: d.option_array(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.epoch);
        e.option_array(self.subtopologies.as_deref(), true, "Topology::subtopologies")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`Topology::subtopologies`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subtopology {
    pub subtopology_id: ByteString,
    pub source_topics: Vec<ByteString>,
    pub repartition_sink_topics: Vec<ByteString>,
    pub state_changelog_topics: Vec<TopicInfo>,
    pub repartition_source_topics: Vec<TopicInfo>,
}

impl Wire for Subtopology {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            subtopology_id: d.string()?,
            source_topics: d.array()?,
            repartition_sink_topics: d.array()?,
            state_changelog_topics: d.array()?,
            repartition_source_topics: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.subtopology_id)?;
        e.array(&self.source_topics)?;
        e.array(&self.repartition_sink_topics)?;
        e.array(&self.state_changelog_topics)?;
        e.array(&self.repartition_source_topics)?;
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

/// See [`TopicInfo::topic_configs`].
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

/// See [`DescribedGroup::members`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    pub member_id: ByteString,
    pub member_epoch: i32,
    pub instance_id: Option<ByteString>,
    pub rack_id: Option<ByteString>,
    pub client_id: ByteString,
    pub client_host: ByteString,
    pub topology_epoch: i32,
    pub process_id: ByteString,
    pub user_endpoint: Option<Endpoint>,
    pub client_tags: Vec<KeyValue>,
    pub task_offsets: Vec<TaskOffset>,
    pub task_end_offsets: Vec<TaskOffset>,
    pub assignment: Assignment,
    pub target_assignment: Assignment,
    pub is_classic: bool,
}

impl Wire for Member {
    fn min_size(_: i16, _: bool) -> usize {
        28
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            member_id: d.string()?,
            member_epoch: d.i32()?,
            instance_id: d.option_string(true)?,
            rack_id: d.option_string(true)?,
            client_id: d.string()?,
            client_host: d.string()?,
            topology_epoch: d.i32()?,
            process_id: d.string()?,
            user_endpoint: d.option_struct()?,
            client_tags: d.array()?,
            task_offsets: d.array()?,
            task_end_offsets: d.array()?,
            assignment: Assignment::decode(d)?,
            target_assignment: Assignment::decode(d)?,
            is_classic: d.bool()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.member_id)?;
        e.i32(self.member_epoch);
        e.option_string(self.instance_id.as_deref(), true, "Member::instance_id")?;
        e.option_string(self.rack_id.as_deref(), true, "Member::rack_id")?;
        e.string(&self.client_id)?;
        e.string(&self.client_host)?;
        e.i32(self.topology_epoch);
        e.string(&self.process_id)?;
        e.option_struct(self.user_endpoint.as_ref())?;
        e.array(&self.client_tags)?;
        e.array(&self.task_offsets)?;
        e.array(&self.task_end_offsets)?;
        self.assignment.encode(e)?;
        self.target_assignment.encode(e)?;
        e.bool(self.is_classic);
        e.no_tags();
        Ok(())
    }
}

/// See [`Member::user_endpoint`].
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

/// See [`Member::task_offsets`].
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

/// See [`Member::assignment`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    pub active_tasks: Vec<TaskIds>,
    pub standby_tasks: Vec<TaskIds>,
    pub warmup_tasks: Vec<TaskIds>,
}

impl Wire for Assignment {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { active_tasks: d.array()?, standby_tasks: d.array()?, warmup_tasks: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.active_tasks)?;
        e.array(&self.standby_tasks)?;
        e.array(&self.warmup_tasks)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`Assignment::active_tasks`].
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

/// See [`DescribedGroup::topology_description`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyDescription {
    pub subtopologies: Vec<TopologyDescriptionSubtopology>,
    pub global_stores: Vec<TopologyDescriptionGlobalStore>,
}

impl Wire for TopologyDescription {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { subtopologies: d.array()?, global_stores: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.subtopologies)?;
        e.array(&self.global_stores)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TopologyDescription::subtopologies`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyDescriptionSubtopology {
    pub subtopology_id: ByteString,
    pub nodes: Vec<TopologyDescriptionNode>,
}

impl Wire for TopologyDescriptionSubtopology {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { subtopology_id: d.string()?, nodes: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.subtopology_id)?;
        e.array(&self.nodes)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TopologyDescriptionSubtopology::nodes`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyDescriptionNode {
    pub name: ByteString,
    pub node_type: i8,
    pub source_topics: Vec<ByteString>,
    pub sink_topic: Option<ByteString>,
    pub stores: Vec<ByteString>,
    pub successors: Vec<ByteString>,
}

impl Wire for TopologyDescriptionNode {
    fn min_size(_: i16, _: bool) -> usize {
        7
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            name: d.string()?,
            node_type: d.i8()?,
            source_topics: d.array()?,
            sink_topic: d.option_string(true)?,
            stores: d.array()?,
            successors: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i8(self.node_type);
        e.array(&self.source_topics)?;
        e.option_string(self.sink_topic.as_deref(), true, "TopologyDescriptionNode::sink_topic")?;
        e.array(&self.stores)?;
        e.array(&self.successors)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`TopologyDescription::global_stores`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyDescriptionGlobalStore {
    pub source: TopologyDescriptionNode,
    pub processor: TopologyDescriptionNode,
}

impl Wire for TopologyDescriptionGlobalStore {
    fn min_size(_: i16, _: bool) -> usize {
        15
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            source: TopologyDescriptionNode::decode(d)?,
            processor: TopologyDescriptionNode::decode(d)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.source.encode(e)?;
        self.processor.encode(e)?;
        e.no_tags();
        Ok(())
    }
}
