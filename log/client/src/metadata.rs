//! What is known about the cluster: a value that is replaced, never changed in place.

use std::collections::HashMap;

use bytestring::ByteString;
use thalweg_protocol::messages::metadata::{
    MetadataResponse, MetadataResponsePartition, MetadataResponseTopic,
};
use thalweg_protocol::{ErrorCode, LeaderEpoch, NodeId, TopicPartition, Uuid};

use crate::error::Error;

/// Where a broker listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerAddress {
    /// The broker's id.
    pub id: NodeId,
    /// The host it advertises.
    pub host: ByteString,
    /// The port it advertises.
    pub port: u16,
    /// Its rack, if it has one.
    pub rack: Option<ByteString>,
}

impl BrokerAddress {
    /// `host:port`.
    pub fn host_port(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// The brokers and topics of a cluster as they stood at one moment.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// The cluster's id, where the broker says it.
    pub cluster_id: Option<ByteString>,
    /// The controller, or [`NodeId::NONE`].
    pub controller: Option<NodeId>,
    brokers: HashMap<NodeId, BrokerAddress>,
    topics: HashMap<ByteString, TopicMetadata>,
    names: HashMap<Uuid, ByteString>,
}

/// A topic in [`Metadata`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    /// The topic's name.
    pub name: ByteString,
    /// Its id; zero from brokers that have none.
    pub id: Uuid,
    /// Whether the cluster keeps it for itself.
    pub is_internal: bool,
    /// Its partitions in order.
    pub partitions: Vec<PartitionMetadata>,
}

/// A partition in [`Metadata`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// The partition's index.
    pub partition: i32,
    /// Its leader; [`NodeId::NONE`] while it has none.
    pub leader: NodeId,
    /// The epoch of that leader.
    pub leader_epoch: LeaderEpoch,
    /// All replicas, the preferred leader first.
    pub replicas: Vec<NodeId>,
    /// The replicas that are in sync.
    pub isr: Vec<NodeId>,
    /// The replicas that are down.
    pub offline: Vec<NodeId>,
}

impl Metadata {
    /// The broker with this id.
    pub fn broker(&self, id: NodeId) -> Option<&BrokerAddress> {
        self.brokers.get(&id)
    }

    /// All brokers, in the order of their ids.
    pub fn brokers(&self) -> Vec<&BrokerAddress> {
        let mut brokers: Vec<_> = self.brokers.values().collect();
        brokers.sort_by_key(|broker| broker.id);
        brokers
    }

    /// A topic by name, if it is known.
    pub fn topic(&self, name: &str) -> Option<&TopicMetadata> {
        self.topics.get(name)
    }

    /// All known topics, in the order of their names.
    pub fn topics(&self) -> Vec<&TopicMetadata> {
        let mut topics: Vec<_> = self.topics.values().collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        topics
    }

    /// The name of the topic with this id.
    pub fn name_of(&self, id: Uuid) -> Option<&ByteString> {
        self.names.get(&id)
    }

    /// A partition, if it is known.
    pub fn partition(&self, partition: &TopicPartition) -> Option<&PartitionMetadata> {
        self.topics.get(&partition.topic)?.partition(partition.partition)
    }

    /// The leader of a partition, if it has one at present.
    pub fn leader(&self, partition: &TopicPartition) -> Option<(NodeId, LeaderEpoch)> {
        let found = self.partition(partition)?;
        (found.leader != NodeId::NONE).then_some((found.leader, found.leader_epoch))
    }

    /// Why a partition that exists cannot be asked at present: it has no leader.
    pub(crate) fn no_leader(&self, partition: &TopicPartition) -> Error {
        let offline = self.partition(partition).map(|known| known.offline.clone()).unwrap_or_default();
        Error::NoLeader { partition: partition.clone(), offline }
    }

    /// This metadata with the brokers of `response` and with its topics in place of what was known of them.
    /// `forget_others` says that the response names all topics there are. An older leader never replaces a
    /// newer one of the same topic id: another broker may lag behind the one that told us.
    pub(crate) fn with(&self, response: MetadataResponse, forget_others: bool) -> Self {
        let mut next = Self {
            cluster_id: response.cluster_id.or_else(|| self.cluster_id.clone()),
            controller: (response.controller_id >= 0).then_some(NodeId(response.controller_id)),
            ..Self::default()
        };
        for broker in response.brokers {
            let id = NodeId(broker.node_id);
            let port = u16::try_from(broker.port).unwrap_or_default();
            next.brokers.insert(id, BrokerAddress { id, host: broker.host, port, rack: broker.rack });
        }
        if !forget_others {
            next.topics.clone_from(&self.topics);
        }
        for topic in response.topics {
            next.learn_topic(topic, &self.topics);
        }
        let ids = next.topics.values().filter(|topic| !topic.id.is_zero());
        next.names = ids.map(|topic| (topic.id, topic.name.clone())).collect();
        next
    }

    fn learn_topic(&mut self, topic: MetadataResponseTopic, known: &HashMap<ByteString, TopicMetadata>) {
        let Some(name) = topic.name else { return };
        match ErrorCode::from(topic.error_code) {
            ErrorCode::None => {}
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::InvalidTopicException => {
                self.topics.remove(&name);
                return;
            }
            // An error that passes, such as no leader: what was known stays until the next refresh.
            _ if topic.partitions.is_empty() => return,
            _ => {}
        }
        let before = known.get(&name).filter(|before| before.id == topic.topic_id);
        let mut partitions: Vec<PartitionMetadata> = topic.partitions.into_iter().map(Into::into).collect();
        partitions.sort_by_key(|partition| partition.partition);
        for partition in &mut partitions {
            let known = before.and_then(|topic| topic.partition(partition.partition));
            if let Some(known) = known.filter(|known| known.leader_epoch > partition.leader_epoch) {
                *partition = known.clone();
            }
        }
        let learnt = TopicMetadata {
            name: name.clone(),
            id: topic.topic_id,
            is_internal: topic.is_internal,
            partitions,
        };
        self.topics.insert(name, learnt);
    }

    /// This metadata with another leader for one partition, as an answer that refused a request told it
    /// (KIP-951). `None` when that is not news.
    pub(crate) fn with_leader(
        &self,
        partition: &TopicPartition,
        leader: NodeId,
        epoch: LeaderEpoch,
        address: Option<BrokerAddress>,
    ) -> Option<Self> {
        let known = self.partition(partition)?;
        if epoch <= known.leader_epoch || (address.is_none() && !self.brokers.contains_key(&leader)) {
            return None;
        }
        let mut next = self.clone();
        if let Some(address) = address {
            next.brokers.insert(leader, address);
        }
        let topic = next.topics.get_mut(&partition.topic)?;
        let at = topic.partitions.binary_search_by_key(&partition.partition, |p| p.partition).ok()?;
        topic.partitions[at].leader = leader;
        topic.partitions[at].leader_epoch = epoch;
        Some(next)
    }
}

impl TopicMetadata {
    /// A partition by its index.
    pub fn partition(&self, partition: i32) -> Option<&PartitionMetadata> {
        let at = self.partitions.binary_search_by_key(&partition, |known| known.partition).ok()?;
        self.partitions.get(at)
    }
}

impl From<MetadataResponsePartition> for PartitionMetadata {
    fn from(partition: MetadataResponsePartition) -> Self {
        let nodes = |ids: Vec<i32>| ids.into_iter().map(NodeId).collect();
        Self {
            partition: partition.partition_index,
            leader: NodeId(partition.leader_id),
            leader_epoch: LeaderEpoch(partition.leader_epoch),
            replicas: nodes(partition.replica_nodes),
            isr: nodes(partition.isr_nodes),
            offline: nodes(partition.offline_replicas),
        }
    }
}
