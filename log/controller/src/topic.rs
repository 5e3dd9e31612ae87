//! A topic and its partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::{LeaderEpoch, NodeId, Uuid};

use crate::ids::PartitionEpoch;
use crate::topic_config::{ConfigError, TopicConfig};

/// A topic. It is immutable: a change makes a new one, which shares with the old one the partitions that
/// stayed as they were.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// Its name.
    pub name: ByteString,
    /// Its id, never zero: a topic that is deleted and created anew has another one.
    pub id: Uuid,
    /// Its partitions by index; never empty.
    pub partitions: Vec<Arc<Partition>>,
    /// The configs that were set, as they were given.
    pub overrides: BTreeMap<String, String>,
    /// All configs: those that were set over the defaults.
    pub config: TopicConfig,
}

/// Who holds a partition and who leads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The nodes that hold it, the preferred leader first; never empty.
    pub replicas: Vec<NodeId>,
    /// Those of them that are in sync; never empty.
    pub isr: Vec<NodeId>,
    /// The one that leads, [`NodeId::NONE`] if no live node is in sync.
    pub leader: NodeId,
    /// Rises with every change of the leader, and when the leader restarts.
    pub leader_epoch: LeaderEpoch,
    /// Rises with every change at all.
    pub partition_epoch: PartitionEpoch,
}

impl Topic {
    /// Puts a topic together. Its config follows from `overrides` and the replication factor.
    pub(crate) fn new(
        name: ByteString,
        id: Uuid,
        partitions: Vec<Arc<Partition>>,
        overrides: BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let factor = partitions.first().map_or(0, |partition| partition.replicas.len());
        let config = TopicConfig::for_replication(factor).with_overrides(&overrides)?;
        Ok(Self { name, id, partitions, overrides, config })
    }

    /// The partition with this index.
    pub fn partition(&self, index: i32) -> Option<&Arc<Partition>> {
        self.partitions.get(usize::try_from(index).ok()?)
    }

    /// How many replicas its partitions have.
    pub fn replication_factor(&self) -> usize {
        self.partitions.first().map_or(0, |partition| partition.replicas.len())
    }
}
