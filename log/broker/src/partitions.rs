//! The partitions that this node holds.

use std::collections::HashMap;
use std::sync::Arc;

use bytestring::ByteString;
use parking_lot::{Mutex, RwLock};
use thalweg_controller::{ClusterState, Topic, TopicChange};
use thalweg_protocol::{ErrorCode, NodeId, TopicPartition, Uuid};
use thalweg_storage::{Log, LogManager};

use crate::partition::{Partition, Role};
use crate::topic_config::{TopicDefaults, log_config};

/// The partitions that this node leads, by topic. They follow the cluster's metadata: a topic that appears
/// there gets its logs, one that disappears loses them.
#[derive(Debug)]
pub(crate) struct Partitions {
    node: NodeId,
    defaults: TopicDefaults,
    logs: Arc<LogManager>,
    /// Guards the index; held for a look-up or the change of one entry.
    index: RwLock<Index>,
    /// The topics of which some partition could not be opened. Locked for as long as anything is opened or
    /// deleted, so that this happens in one order.
    incomplete: Mutex<HashMap<Uuid, Arc<Topic>>>,
}

#[derive(Debug, Default)]
struct Index {
    by_name: HashMap<ByteString, Arc<HeldTopic>>,
    by_id: HashMap<Uuid, Arc<HeldTopic>>,
}

/// The partitions of one topic that this node leads.
#[derive(Debug)]
pub(crate) struct HeldTopic {
    /// The topic's name.
    pub(crate) name: ByteString,
    /// The topic's id.
    pub(crate) id: Uuid,
    /// By partition index; `None` where another node leads, or where the log cannot be opened.
    partitions: Vec<Option<Arc<Partition>>>,
}

impl HeldTopic {
    /// How many partitions the topic has, here and elsewhere.
    pub(crate) fn partition_count(&self) -> i32 {
        self.partitions.len() as i32
    }

    /// The partition with this index, if this node leads it and it takes reads and writes.
    pub(crate) fn partition(&self, index: i32) -> Option<&Arc<Partition>> {
        self.partitions.get(usize::try_from(index).ok()?)?.as_ref()
    }

    /// The partition with this index.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION when the topic has none such, NOT_LEADER_OR_FOLLOWER when it is not here.
    pub(crate) fn leader(&self, index: i32) -> Result<&Arc<Partition>, ErrorCode> {
        let slot = usize::try_from(index).ok().and_then(|index| self.partitions.get(index));
        slot.ok_or(ErrorCode::UnknownTopicOrPartition)?.as_ref().ok_or(ErrorCode::NotLeaderOrFollower)
    }
}

impl Partitions {
    /// Opens what `state` gives to `node`. Logs that the state does not mention are left alone.
    pub(crate) fn open(
        node: NodeId,
        defaults: TopicDefaults,
        logs: Arc<LogManager>,
        state: &ClusterState,
    ) -> Self {
        let partitions =
            Self { node, defaults, logs, index: RwLock::default(), incomplete: Mutex::default() };
        let mut incomplete = partitions.incomplete.lock();
        for topic in state.topics() {
            partitions.take(topic, &mut incomplete);
        }
        drop(incomplete);
        for log in partitions.logs.logs() {
            if state.topic_by_id(log.topic_id()).is_none() {
                tracing::warn!(partition = %log.partition(), topic_id = %log.topic_id(),
                    "the metadata does not mention this log; it is left as it is");
            }
        }
        partitions
    }

    /// The logs of this node.
    pub(crate) fn logs(&self) -> &Arc<LogManager> {
        &self.logs
    }

    /// The topic of this name.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION.
    pub(crate) fn topic(&self, name: &str) -> Result<Arc<HeldTopic>, ErrorCode> {
        self.index.read().by_name.get(name).cloned().ok_or(ErrorCode::UnknownTopicOrPartition)
    }

    /// The topic with this id.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_ID.
    pub(crate) fn topic_by_id(&self, id: Uuid) -> Result<Arc<HeldTopic>, ErrorCode> {
        self.index.read().by_id.get(&id).cloned().ok_or(ErrorCode::UnknownTopicId)
    }

    /// The partition of this name, which this node leads.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER.
    pub(crate) fn leader(&self, partition: &TopicPartition) -> Result<Arc<Partition>, ErrorCode> {
        self.topic(&partition.topic)?.leader(partition.partition).cloned()
    }

    /// Follows the metadata from one state to the next. Called in the order of the changes, before they are
    /// answered, so that a topic takes writes when its creation is answered.
    pub(crate) fn follow(&self, old: &ClusterState, new: &ClusterState) {
        let mut incomplete = self.incomplete.lock();
        for change in new.topic_changes_since(old) {
            match change {
                TopicChange::Created(topic) | TopicChange::Changed { new: topic, .. } => {
                    self.take(&topic, &mut incomplete);
                }
                TopicChange::Deleted(topic) => self.drop_topic(&topic, &mut incomplete),
            }
        }
    }

    /// Tries again to open the partitions that could not be opened.
    pub(crate) fn retry_incomplete(&self) {
        let mut incomplete = self.incomplete.lock();
        let topics: Vec<_> = incomplete.values().cloned().collect();
        for topic in topics {
            self.take(&topic, &mut incomplete);
        }
    }

    /// Notes that a log has been synced, or cannot be any more.
    pub(crate) fn synced(&self, log: &Arc<Log>, is_healthy: bool) {
        let Ok(topic) = self.topic_by_id(log.topic_id()) else { return };
        let Some(partition) = topic.partition(log.partition().partition) else { return };
        if is_healthy { partition.advance() } else { partition.give_up() }
    }

    /// Brings what is held of `topic` in line with it.
    fn take(&self, topic: &Arc<Topic>, incomplete: &mut HashMap<Uuid, Arc<Topic>>) {
        let before = self.index.read().by_id.get(&topic.id).cloned();
        let mut is_complete = true;
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for (index, assigned) in topic.partitions.iter().enumerate() {
            if assigned.leader != self.node {
                partitions.push(None);
                continue;
            }
            let id = TopicPartition::new(topic.name.clone(), index as i32);
            let min_insync = usize::try_from(topic.config.min_insync_replicas).unwrap_or(1);
            let role = Role::new(self.node, assigned.leader_epoch, &assigned.isr, min_insync);
            let held = before.as_ref().and_then(|before| before.partition(index as i32));
            let partition = match held {
                Some(held) => self.change(held, topic, role).map(|()| Arc::clone(held)),
                None => self.open_partition(&id, topic, role),
            };
            match partition {
                Ok(partition) => partitions.push(Some(partition)),
                Err(error) => {
                    tracing::error!(partition = %id, %error, "cannot open the partition; it is tried again");
                    is_complete = false;
                    partitions.push(None);
                }
            }
        }
        let held = Arc::new(HeldTopic { name: topic.name.clone(), id: topic.id, partitions });
        let mut index = self.index.write();
        index.by_name.insert(topic.name.clone(), Arc::clone(&held));
        index.by_id.insert(topic.id, held);
        drop(index);
        if is_complete {
            incomplete.remove(&topic.id);
        } else {
            incomplete.insert(topic.id, Arc::clone(topic));
        }
    }

    fn change(&self, held: &Partition, topic: &Topic, role: Role) -> Result<(), thalweg_storage::Error> {
        let config = log_config(&self.defaults, topic);
        if *held.log().config() != config {
            held.log().set_config(config);
        }
        held.set_role(role)
    }

    fn open_partition(
        &self,
        id: &TopicPartition,
        topic: &Topic,
        role: Role,
    ) -> Result<Arc<Partition>, thalweg_storage::Error> {
        let config = log_config(&self.defaults, topic);
        let log = match self.logs.log(id) {
            Some(log) if log.topic_id() == topic.id => {
                log.set_config(config);
                log
            }
            Some(log) => {
                // The topic was deleted and created anew, and the node ended before it had deleted the log.
                tracing::warn!(partition = %id, topic_id = %log.topic_id(), "deleting the log of a deleted topic");
                self.logs.delete(id)?;
                self.logs.create(id, topic.id, config)?
            }
            None => self.logs.create(id, topic.id, config)?,
        };
        Partition::lead(log, role)
    }

    fn drop_topic(&self, topic: &Topic, incomplete: &mut HashMap<Uuid, Arc<Topic>>) {
        incomplete.remove(&topic.id);
        let mut index = self.index.write();
        let held = index.by_id.remove(&topic.id);
        if index.by_name.get(&topic.name).is_some_and(|named| named.id == topic.id) {
            index.by_name.remove(&topic.name);
        }
        drop(index);
        let Some(held) = held else { return };
        for partition in held.partitions.iter().flatten() {
            partition.give_up();
            if let Err(error) = self.logs.delete(partition.id()) {
                tracing::error!(partition = %partition.id(), %error, "cannot delete the log of a deleted topic");
            }
        }
    }
}
