//! The cluster's metadata at one place of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::{NodeId, Offset, ProducerId, Uuid};

use crate::config_resource::ConfigResource;
use crate::feature::FeatureDefinition;
use crate::group_config::GroupConfig;
use crate::node::Node;
use crate::quota::{QuotaEntity, Quotas};
use crate::shared_map::SharedMap;
use crate::snapshot::{self, SnapshotError};
use crate::topic::{Partition, Topic};

/// The version of the rules by which this binary applies commands.
///
/// Version 2 knows the topic configs of [`TopicConfig::definitions`](crate::TopicConfig::definitions) that are since 2.
pub const METADATA_VERSION: u16 = 2;

/// The cluster's metadata at one place of the log. It is changed by [`apply`](crate::apply) only; readers
/// hold it behind an `Arc` and see it as it stood. Copies share topics, partitions and nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterState {
    pub(crate) cluster_id: Uuid,
    pub(crate) metadata_version: u16,
    pub(crate) offset: Offset,
    pub(crate) next_producer_id: ProducerId,
    pub(crate) nodes: Arc<BTreeMap<NodeId, Arc<Node>>>,
    pub(crate) topics: SharedMap<ByteString, Arc<Topic>>,
    pub(crate) topics_by_id: SharedMap<Uuid, Arc<Topic>>,
    /// The names that have a `.` or `_`, by what they are with `_` throughout.
    pub(crate) ambiguous_names: SharedMap<ByteString, ByteString>,
    pub(crate) partition_count: u64,
    /// The levels of features that have been set.
    pub(crate) features: Arc<BTreeMap<String, i16>>,
    pub(crate) quotas: Arc<BTreeMap<QuotaEntity, Quotas>>,
    /// The configs that have been set of nodes and groups; none of them empty.
    pub(crate) resource_configs: Arc<BTreeMap<ConfigResource, BTreeMap<String, String>>>,
}

/// What became of a topic between two states.
#[derive(Clone, Debug, PartialEq)]
pub enum TopicChange {
    /// It was created.
    Created(Arc<Topic>),
    /// It was deleted; this is how it last stood.
    Deleted(Arc<Topic>),
    /// Partitions or configs changed.
    Changed {
        /// As it stood.
        old: Arc<Topic>,
        /// As it stands.
        new: Arc<Topic>,
    },
}

impl ClusterState {
    /// The metadata of a cluster to which nothing has happened yet.
    pub fn new(cluster_id: Uuid) -> Self {
        Self::at_version(cluster_id, METADATA_VERSION)
    }

    /// The same by older rules.
    pub fn at_version(cluster_id: Uuid, metadata_version: u16) -> Self {
        Self {
            cluster_id,
            metadata_version,
            offset: Offset(-1),
            next_producer_id: ProducerId(0),
            nodes: Arc::default(),
            topics: SharedMap::default(),
            topics_by_id: SharedMap::default(),
            ambiguous_names: SharedMap::default(),
            partition_count: 0,
            features: Arc::default(),
            quotas: Arc::default(),
            resource_configs: Arc::default(),
        }
    }

    /// The cluster's id.
    pub fn cluster_id(&self) -> Uuid {
        self.cluster_id
    }

    /// The version of the rules by which commands are applied.
    pub fn metadata_version(&self) -> u16 {
        self.metadata_version
    }

    /// The offset of the last command applied, −1 before the first.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// The first producer id that has not been handed out.
    pub fn next_producer_id(&self) -> ProducerId {
        self.next_producer_id
    }

    /// All topics by name.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topics.iter().map(|(_, topic)| topic)
    }

    /// How many topics there are.
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> u64 {
        self.partition_count
    }

    /// The topic of this name.
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(name)
    }

    /// The topic with this id.
    pub fn topic_by_id(&self, id: Uuid) -> Option<&Arc<Topic>> {
        self.topics_by_id.get(&id)
    }

    /// A partition of the topic of this name.
    pub fn partition(&self, topic: &str, partition: i32) -> Option<&Arc<Partition>> {
        self.topic(topic)?.partition(partition)
    }

    /// All nodes by id.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// The node with this id.
    pub fn node(&self, id: NodeId) -> Option<&Arc<Node>> {
        self.nodes.get(&id)
    }

    /// Whether the node is registered and not fenced.
    pub fn is_live(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| !node.fenced)
    }

    /// What became of the topics since `old`, by name. A topic that was deleted and created anew is there
    /// twice, the deletion first. The cost follows the number of changes.
    pub fn topic_changes_since(&self, old: &Self) -> Vec<TopicChange> {
        let mut changes = Vec::new();
        for difference in self.topics.differences(&old.topics, Arc::ptr_eq) {
            match (difference.old.cloned(), difference.new.cloned()) {
                (Some(old), Some(new)) if old.id == new.id => changes.push(TopicChange::Changed { old, new }),
                (old, new) => {
                    changes.extend(old.map(TopicChange::Deleted));
                    changes.extend(new.map(TopicChange::Created));
                }
            }
        }
        changes
    }

    /// Whether there may be share groups (KIP-932): not if the level of `share.version` is 0.
    pub fn has_share_groups(&self) -> bool {
        self.feature_level(FeatureDefinition::of_share_groups()) > 0
    }

    /// The level of a feature.
    pub fn feature_level(&self, feature: &FeatureDefinition) -> i16 {
        self.features.get(feature.name).copied().unwrap_or(feature.default_level)
    }

    /// The quotas of clients. The same `Arc` for as long as they stay as they are.
    pub fn quotas(&self) -> &Arc<BTreeMap<QuotaEntity, Quotas>> {
        &self.quotas
    }

    /// The configs that have been set of nodes and groups. The same `Arc` for as long as they stay as they are.
    pub fn resource_configs(&self) -> &Arc<BTreeMap<ConfigResource, BTreeMap<String, String>>> {
        &self.resource_configs
    }

    /// The configs that have been set of a node or group; `None` where none has been.
    pub fn configs_of(&self, resource: &ConfigResource) -> Option<&BTreeMap<String, String>> {
        self.resource_configs.get(resource)
    }

    /// The configs of a group: those that have been set over `node_wide`, which are those of the node it is on.
    pub fn group_config(&self, group: &ByteString, node_wide: GroupConfig) -> GroupConfig {
        if self.resource_configs.is_empty() {
            return node_wide;
        }
        match self.configs_of(&ConfigResource::Group(group.clone())) {
            // What does not pass the checks has never been set.
            Some(configs) => node_wide.clone().with_overrides(configs).unwrap_or(node_wide),
            None => node_wide,
        }
    }

    /// The same by the newest rules.
    pub(crate) fn upgraded(self: Arc<Self>) -> Arc<Self> {
        match self.metadata_version {
            METADATA_VERSION => self,
            _ => Arc::new(Self { metadata_version: METADATA_VERSION, ..Self::clone(&self) }),
        }
    }

    /// The whole state as bytes, for [`from_snapshot`](Self::from_snapshot). Equal states give equal bytes.
    pub fn to_snapshot(&self) -> Vec<u8> {
        snapshot::encode(self)
    }

    /// Reads what [`to_snapshot`](Self::to_snapshot) has written, in this version or an older one.
    pub fn from_snapshot(bytes: &[u8]) -> Result<Self, SnapshotError> {
        snapshot::decode(bytes)
    }

    /// Puts a topic in the place of the one that had its name and id, or adds it. One that is as it was
    /// stays, so that nobody takes it for changed.
    pub(crate) fn put_topic(&mut self, topic: Topic) -> Arc<Topic> {
        if let Some(same) = self.topics.get(&topic.name).filter(|old| ***old == topic) {
            return Arc::clone(same);
        }
        let topic = Arc::new(topic);
        let before = self.topics.get(&topic.name).map_or(0, |old| old.partitions.len());
        self.partition_count = self.partition_count - before as u64 + topic.partitions.len() as u64;
        if before == 0 && is_ambiguous(&topic.name) {
            self.ambiguous_names.insert(plain_name(&topic.name), topic.name.clone());
        }
        self.topics.insert(topic.name.clone(), Arc::clone(&topic));
        self.topics_by_id.insert(topic.id, Arc::clone(&topic));
        topic
    }

    pub(crate) fn remove_topic(&mut self, name: &str) -> Option<Arc<Topic>> {
        let topic = self.topics.remove(name)?;
        self.topics_by_id.remove(&topic.id);
        if is_ambiguous(name) {
            self.ambiguous_names.remove(&plain_name(name));
        }
        self.partition_count -= topic.partitions.len() as u64;
        Some(topic)
    }

    /// The topic whose name would collide with `name`, `name` itself excepted.
    pub(crate) fn colliding_name(&self, name: &str) -> Option<&ByteString> {
        if !is_ambiguous(name) {
            return None;
        }
        self.ambiguous_names.get(&plain_name(name)).filter(|existing| **existing != name)
    }
}

fn is_ambiguous(name: &str) -> bool {
    name.contains(['.', '_'])
}

fn plain_name(name: &str) -> ByteString {
    name.replace('.', "_").into()
}
