//! The calls that manage topics, offsets and the cluster.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::{NodeId, Offset, TopicPartition, Uuid};

use crate::cluster::Cluster;
use crate::config::Isolation;
use crate::consumer::{CommittedOffset, ListedOffset, OffsetSpec};
use crate::error::Result;
use crate::metadata::{BrokerAddress, TopicMetadata};

fn unfinished() -> ! {
    panic!("not built yet")
}

/// Manages topics, offsets and the cluster. Calls are retried within the client's API timeout.
#[derive(Clone)]
pub struct Admin {
    cluster: Arc<Cluster>,
}

/// A topic to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: ByteString,
    /// How many partitions; `None` is the broker's default.
    pub partitions: Option<i32>,
    /// How many replicas of each; `None` is the broker's default.
    pub replication_factor: Option<i16>,
    /// Settings that differ from the broker's, by name.
    pub configs: BTreeMap<String, String>,
}

impl NewTopic {
    /// A topic with the broker's replication factor.
    pub fn new(name: impl Into<ByteString>, partitions: i32) -> Self {
        Self {
            name: name.into(),
            partitions: Some(partitions),
            replication_factor: None,
            configs: BTreeMap::new(),
        }
    }

    /// The same with a setting.
    #[must_use]
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.insert(name.into(), value.into());
        self
    }
}

/// What became of a [`NewTopic`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its name.
    pub name: ByteString,
    /// Its id; zero where the broker does not say.
    pub id: Uuid,
    /// How many partitions it has; `None` where the broker does not say.
    pub partitions: Option<i32>,
    /// How many replicas of each it has; `None` where the broker does not say.
    pub replication_factor: Option<i16>,
}

/// The cluster's nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDescription {
    /// The cluster's id.
    pub cluster_id: ByteString,
    /// The controller, or the broker that stands for it.
    pub controller: Option<NodeId>,
    /// The brokers, in the order of their ids.
    pub brokers: Vec<BrokerAddress>,
}

impl Admin {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }

    /// Creates a topic and waits until it can be used.
    ///
    /// # Errors
    /// [`Error::Broker`](crate::Error::Broker) with `TopicAlreadyExists` or whatever else the broker refused.
    pub async fn create_topic(&self, topic: NewTopic) -> Result<CreatedTopic> {
        let _ = topic;
        unfinished()
    }

    /// Creates topics; each has a result of its own, in the order asked for.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn create_topics(&self, topics: Vec<NewTopic>) -> Result<Vec<Result<CreatedTopic>>> {
        let _ = topics;
        unfinished()
    }

    /// Deletes a topic with all its records.
    ///
    /// # Errors
    /// [`Error::Broker`](crate::Error::Broker) with `UnknownTopicOrPartition` when there is none.
    pub async fn delete_topic(&self, name: &str) -> Result<()> {
        let _ = name;
        unfinished()
    }

    /// All topics with their partitions, internal ones included, in the order of their names.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn list_topics(&self) -> Result<Vec<TopicMetadata>> {
        unfinished()
    }

    /// One topic with its partitions: leaders, epochs, replicas, in sync or not.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic) when there is none.
    pub async fn describe_topic(&self, name: &str) -> Result<TopicMetadata> {
        let _ = name;
        unfinished()
    }

    /// The cluster's nodes.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn describe_cluster(&self) -> Result<ClusterDescription> {
        unfinished()
    }

    /// Looks up offsets in the logs of partitions.
    ///
    /// # Errors
    /// Whatever keeps a leader from answering within the API timeout.
    pub async fn list_offsets(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
        isolation: Isolation,
    ) -> Result<BTreeMap<TopicPartition, ListedOffset>> {
        let _ = (wanted, isolation);
        unfinished()
    }

    /// Deletes the records before these offsets; returns the first offset that each log has now.
    ///
    /// # Errors
    /// Whatever a leader refused or kept it from answering; the partitions before may be done.
    pub async fn delete_records(
        &self,
        before: &[(TopicPartition, Offset)],
    ) -> Result<BTreeMap<TopicPartition, Offset>> {
        let _ = before;
        unfinished()
    }

    /// What a group has committed: for `partitions`, or for all that it has commits of. With `require_stable` it waits
    /// until no transaction has offsets of them pending, so that the answer is the last committed one.
    ///
    /// # Errors
    /// Whatever keeps the coordinator from answering within the API timeout.
    pub async fn committed_offsets(
        &self,
        group: &str,
        partitions: Option<&[TopicPartition]>,
        require_stable: bool,
    ) -> Result<HashMap<TopicPartition, CommittedOffset>> {
        let _ = (group, partitions, require_stable);
        unfinished()
    }

    /// Commits offsets for a group that has no members.
    ///
    /// # Errors
    /// `Rejoin` by kind when the group has members.
    pub async fn commit_offsets(
        &self,
        group: &str,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        let _ = (group, offsets, &self.cluster);
        unfinished()
    }
}
