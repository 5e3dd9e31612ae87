//! From the configs of a topic to the settings of its logs.

use std::collections::BTreeMap;

use thalweg_controller::{
    self as controller, ClusterState, ConfigResource, NodeConfig, Topic, TopicCompression, TopicConfig,
};
use thalweg_protocol::{Compression, NodeId};
use thalweg_storage::{CleanupPolicy, Durability, LogConfig, TimestampType};

use crate::error::Error;

/// What a node uses for the configs that a topic does not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TopicDefaults {
    /// What the node was started with.
    fixed: BTreeMap<String, String>,
    /// What it has been given while it runs.
    of_node: BTreeMap<String, String>,
    /// What all nodes have been given.
    of_all: BTreeMap<String, String>,
    /// Of the three, what counts.
    overrides: BTreeMap<String, String>,
}

/// The values that a config has been given for a node, by who has given them; the first that is there counts.
pub(crate) struct DefaultLayers<'a> {
    pub(crate) of_node: Option<&'a str>,
    pub(crate) of_all: Option<&'a str>,
    pub(crate) fixed: Option<&'a str>,
}

impl TopicDefaults {
    /// Checks the defaults of a node.
    ///
    /// # Errors
    /// [`Error::Config`] for an unknown name or a bad value.
    pub(crate) fn new(overrides: BTreeMap<String, String>) -> Result<Self, Error> {
        TopicConfig::default()
            .with_overrides(&overrides)
            .map_err(|error| Error::Config { name: "topic_defaults", reason: error.to_string() })?;
        Ok(Self { fixed: overrides.clone(), overrides, ..Self::default() })
    }

    /// The same with what `node` has been given while it runs.
    pub(crate) fn at(&self, state: &ClusterState, node: NodeId) -> Self {
        let configs =
            |resource| state.configs_of(&resource).map(NodeConfig::topic_defaults).unwrap_or_default();
        let (of_node, of_all) = (configs(ConfigResource::Node(node)), configs(ConfigResource::AllNodes));
        let mut overrides = self.fixed.clone();
        overrides.extend(of_all.clone());
        overrides.extend(of_node.clone());
        Self { fixed: self.fixed.clone(), of_node, of_all, overrides }
    }

    /// Who has given what value to a config.
    pub(crate) fn layers(&self, name: &str) -> DefaultLayers<'_> {
        let [of_node, of_all, fixed] =
            [&self.of_node, &self.of_all, &self.fixed].map(|configs| configs.get(name).map(String::as_str));
        DefaultLayers { of_node, of_all, fixed }
    }

    /// All configs of `topic` as this node uses them.
    pub(crate) fn resolve(&self, topic: &Topic) -> TopicConfig {
        TopicConfig::for_replication(topic.replication_factor())
            .layered(&self.overrides)
            .layered(&topic.overrides)
    }
}

/// The settings of the logs of a topic with these configs.
pub(crate) fn log_config(config: &TopicConfig) -> LogConfig {
    LogConfig {
        segment_bytes: unsigned(config.segment_bytes),
        segment_ms: config.segment_ms,
        index_interval_bytes: unsigned(config.index_interval_bytes),
        segment_index_bytes: unsigned(config.segment_index_bytes),
        retention_ms: config.retention_ms,
        retention_bytes: config.retention_bytes,
        max_message_bytes: unsigned(config.max_message_bytes),
        compression: recompression(config),
        timestamp_type: match config.message_timestamp_type {
            controller::TimestampType::CreateTime => TimestampType::CreateTime,
            controller::TimestampType::LogAppendTime => TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: config.message_timestamp_before_max_ms,
        timestamp_after_max_ms: config.message_timestamp_after_max_ms,
        cleanup_policy: CleanupPolicy {
            delete: config.cleanup_policy.delete,
            compact: config.cleanup_policy.compact,
        },
        durability: match config.durability {
            controller::Durability::Durable => Durability::Synced,
            controller::Durability::Relaxed => Durability::Relaxed,
        },
        file_delete_delay_ms: config.file_delete_delay_ms,
        min_cleanable_dirty_ratio: config.min_cleanable_dirty_ratio,
        min_compaction_lag_ms: config.min_compaction_lag_ms,
        max_compaction_lag_ms: config.max_compaction_lag_ms,
        delete_retention_ms: config.delete_retention_ms,
        ..LogConfig::default()
    }
}

/// The codec that a topic has for itself.
fn recompression(config: &TopicConfig) -> Option<(Compression, Option<i32>)> {
    Some(match config.compression_type {
        TopicCompression::Producer => return None,
        TopicCompression::Uncompressed => (Compression::None, None),
        TopicCompression::Gzip => {
            // −1 is the codec's own default.
            (Compression::Gzip, Some(config.compression_gzip_level).filter(|&level| level >= 0))
        }
        TopicCompression::Snappy => (Compression::Snappy, None),
        TopicCompression::Lz4 => (Compression::Lz4, None),
        TopicCompression::Zstd => (Compression::Zstd, Some(config.compression_zstd_level)),
    })
}

/// The checks on topic configs let no negative value through.
fn unsigned(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
