// Generated from messages.txt by generate/main.rs; do not edit.

//! The API Metadata.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `Metadata`, versions 0 to 13, flexible from 9.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataRequest {
    /// Null from version 1.
    pub topics: Option<Vec<MetadataRequestTopic>>,
    /// From version 4.
    pub allow_auto_topic_creation: bool,
    /// In versions 8 to 10.
    pub include_cluster_authorized_operations: bool,
    /// From version 8.
    pub include_topic_authorized_operations: bool,
}

impl Default for MetadataRequest {
    fn default() -> Self {
        Self {
            topics: Some(Vec::new()),
            allow_auto_topic_creation: true,
            include_cluster_authorized_operations: false,
            include_topic_authorized_operations: false,
        }
    }
}

impl Wire for MetadataRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            topics: d.option_array(version >= 1)?,
            allow_auto_topic_creation: if version >= 4 { d.bool()? } else { true },
            include_cluster_authorized_operations: if (8..=10).contains(&version) {
                d.bool()?
            } else {
                false
            },
            include_topic_authorized_operations: if version >= 8 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.option_array(self.topics.as_deref(), version >= 1, "MetadataRequest::topics")?;
        if version >= 4 {
            e.bool(self.allow_auto_topic_creation);
        } else {
            e.absent(!self.allow_auto_topic_creation, "MetadataRequest::allow_auto_topic_creation")?;
        }
        if (8..=10).contains(&version) {
            e.bool(self.include_cluster_authorized_operations);
        } else {
            e.absent(
                self.include_cluster_authorized_operations,
                "MetadataRequest::include_cluster_authorized_operations",
            )?;
        }
        if version >= 8 {
            e.bool(self.include_topic_authorized_operations);
        } else {
            e.absent(
                self.include_topic_authorized_operations,
                "MetadataRequest::include_topic_authorized_operations",
            )?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`MetadataRequest::topics`].
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataRequestTopic {
    /// From version 10. Left out of others.
    pub topic_id: Uuid,
    /// Null from version 10.
    pub name: Option<ByteString>,
}

impl Default for MetadataRequestTopic {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, name: Some(ByteString::new()) }
    }
}

impl Wire for MetadataRequestTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=9 => 2,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            topic_id: if version >= 10 { d.uuid()? } else { Uuid::ZERO },
            name: d.option_string(version >= 10)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 10 {
            e.uuid(self.topic_id);
        }
        e.option_string(self.name.as_deref(), version >= 10, "MetadataRequestTopic::name")?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `Metadata`, versions 0 to 13, flexible from 9.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataResponse {
    /// From version 3. Left out of others.
    pub throttle_time_ms: i32,
    pub brokers: Vec<MetadataResponseBroker>,
    /// From version 2. Left out of others.
    pub cluster_id: Option<ByteString>,
    /// From version 1. Left out of others.
    pub controller_id: i32,
    pub topics: Vec<MetadataResponseTopic>,
    /// In versions 8 to 10.
    pub cluster_authorized_operations: i32,
    /// From version 13. Left out of others.
    pub error_code: i16,
}

impl Default for MetadataResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            brokers: Vec::new(),
            cluster_id: None,
            controller_id: -1,
            topics: Vec::new(),
            cluster_authorized_operations: i32::MIN,
            error_code: 0,
        }
    }
}

impl Wire for MetadataResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: if version >= 3 { d.i32()? } else { 0 },
            brokers: d.array()?,
            cluster_id: if version >= 2 { d.option_string(true)? } else { None },
            controller_id: if version >= 1 { d.i32()? } else { -1 },
            topics: d.array()?,
            cluster_authorized_operations: if (8..=10).contains(&version) { d.i32()? } else { i32::MIN },
            error_code: if version >= 13 { d.i16()? } else { 0 },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 3 {
            e.i32(self.throttle_time_ms);
        }
        e.array(&self.brokers)?;
        if version >= 2 {
            e.option_string(self.cluster_id.as_deref(), true, "MetadataResponse::cluster_id")?;
        }
        if version >= 1 {
            e.i32(self.controller_id);
        }
        e.array(&self.topics)?;
        if (8..=10).contains(&version) {
            e.i32(self.cluster_authorized_operations);
        } else {
            e.absent(
                self.cluster_authorized_operations != i32::MIN,
                "MetadataResponse::cluster_authorized_operations",
            )?;
        }
        if version >= 13 {
            e.i16(self.error_code);
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`MetadataResponse::brokers`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetadataResponseBroker {
    pub node_id: i32,
    pub host: ByteString,
    pub port: i32,
    /// From version 1. Left out of others.
    pub rack: Option<ByteString>,
}

impl Wire for MetadataResponseBroker {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 10,
            1..=8 => 12,
            _ => 11,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            node_id: d.i32()?,
            host: d.string()?,
            port: d.i32()?,
            rack: if version >= 1 { d.option_string(true)? } else { None },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.node_id);
        e.string(&self.host)?;
        e.i32(self.port);
        if version >= 1 {
            e.option_string(self.rack.as_deref(), true, "MetadataResponseBroker::rack")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`MetadataResponse::topics`].
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataResponseTopic {
    pub error_code: i16,
    /// Null from version 12.
    pub name: Option<ByteString>,
    /// From version 10. Left out of others.
    pub topic_id: Uuid,
    /// From version 1. Left out of others.
    pub is_internal: bool,
    pub partitions: Vec<MetadataResponsePartition>,
    /// From version 8.
    pub topic_authorized_operations: i32,
}

impl Default for MetadataResponseTopic {
    fn default() -> Self {
        Self {
            error_code: 0,
            name: Some(ByteString::new()),
            topic_id: Uuid::ZERO,
            is_internal: false,
            partitions: Vec::new(),
            topic_authorized_operations: i32::MIN,
        }
    }
}

impl Wire for MetadataResponseTopic {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=0 => 8,
            1..=7 => 9,
            8 => 13,
            9 => 10,
            _ => 26,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            error_code: d.i16()?,
            name: d.option_string(version >= 12)?,
            topic_id: if version >= 10 { d.uuid()? } else { Uuid::ZERO },
            is_internal: if version >= 1 { d.bool()? } else { false },
            partitions: d.array()?,
            topic_authorized_operations: if version >= 8 { d.i32()? } else { i32::MIN },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i16(self.error_code);
        e.option_string(self.name.as_deref(), version >= 12, "MetadataResponseTopic::name")?;
        if version >= 10 {
            e.uuid(self.topic_id);
        }
        if version >= 1 {
            e.bool(self.is_internal);
        }
        e.array(&self.partitions)?;
        if version >= 8 {
            e.i32(self.topic_authorized_operations);
        } else {
            e.absent(
                self.topic_authorized_operations != i32::MIN,
                "MetadataResponseTopic::topic_authorized_operations",
            )?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`MetadataResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataResponsePartition {
    pub error_code: i16,
    pub partition_index: i32,
    pub leader_id: i32,
    /// From version 7. Left out of others.
    pub leader_epoch: i32,
    pub replica_nodes: Vec<i32>,
    pub isr_nodes: Vec<i32>,
    /// From version 5. Left out of others.
    pub offline_replicas: Vec<i32>,
}

impl Default for MetadataResponsePartition {
    fn default() -> Self {
        Self {
            error_code: 0,
            partition_index: 0,
            leader_id: 0,
            leader_epoch: -1,
            replica_nodes: Vec::new(),
            isr_nodes: Vec::new(),
            offline_replicas: Vec::new(),
        }
    }
}

impl Wire for MetadataResponsePartition {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=4 => 18,
            5..=6 => 22,
            7..=8 => 26,
            _ => 18,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            error_code: d.i16()?,
            partition_index: d.i32()?,
            leader_id: d.i32()?,
            leader_epoch: if version >= 7 { d.i32()? } else { -1 },
            replica_nodes: d.array()?,
            isr_nodes: d.array()?,
            offline_replicas: if version >= 5 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i16(self.error_code);
        e.i32(self.partition_index);
        e.i32(self.leader_id);
        if version >= 7 {
            e.i32(self.leader_epoch);
        }
        e.array(&self.replica_nodes)?;
        e.array(&self.isr_nodes)?;
        if version >= 5 {
            e.array(&self.offline_replicas)?;
        }
        e.no_tags();
        Ok(())
    }
}
