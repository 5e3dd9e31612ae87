//! The partitions that this node holds.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytestring::ByteString;
use parking_lot::{Mutex, RwLock};
use thalweg_controller::{ClusterState, Topic, TopicChange};
use thalweg_protocol::{ErrorCode, NodeId, TopicPartition, Uuid};
use thalweg_storage::{Error as StorageError, Log, LogConfig, LogManager, RoundHold};

use crate::partition::{Partition, Role};
use crate::topic_config::{TopicDefaults, log_config};

/// The partitions that this node leads, by topic. They follow the cluster's metadata: a topic that appears
/// there gets its logs, one that disappears loses them.
#[derive(Debug)]
pub(crate) struct Partitions {
    node: NodeId,
    /// Guards what topics do not set themselves; held for a look.
    defaults: RwLock<TopicDefaults>,
    logs: Arc<LogManager>,
    /// Guards the index; held for a look-up or the change of one entry.
    index: RwLock<Index>,
    /// Guards what is still to be done. Locked for as long as anything is opened or deleted, so that this happens in one
    /// order.
    unfinished: Mutex<Unfinished>,
    /// Counts what may concern whoever holds on to partitions; see [`Partitions::changes`].
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct Unfinished {
    /// The topics of which some partition could not be opened.
    incomplete: HashMap<Uuid, Arc<Topic>>,
    /// The logs of deleted topics that could not be deleted, and the ids of those topics.
    doomed: Vec<(TopicPartition, Uuid)>,
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
        let partitions = Self {
            node,
            defaults: RwLock::new(defaults.at(state, node)),
            logs,
            index: RwLock::default(),
            unfinished: Mutex::default(),
            changes: AtomicU64::new(0),
        };
        let mut unfinished = partitions.unfinished.lock();
        for topic in state.topics() {
            partitions.take(topic, &mut unfinished);
        }
        drop(unfinished);
        for offline in partitions.logs.offline_logs() {
            let is_deleted = offline.topic_id.is_some_and(|id| state.topic_by_id(id).is_none());
            // The checkpoint remembers the logs of deleted topics for a while. There is nothing of them to keep.
            if is_deleted
                && matches!(&*offline.error, StorageError::Vanished { .. })
                && let Err(error) = partitions.logs.delete(&offline.partition)
            {
                tracing::warn!(partition = %offline.partition, %error, "cannot forget the log of a deleted topic");
            }
        }
        for log in partitions.logs.logs() {
            if state.topic_by_id(log.topic_id()).is_none() {
                tracing::warn!(partition = %log.partition(), topic_id = %log.topic_id(),
                    "the metadata does not mention this log; it is left as it is");
            }
        }
        partitions
    }

    /// This node.
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// What this node gives now to configs that topics do not set.
    pub(crate) fn topic_defaults(&self) -> TopicDefaults {
        self.defaults.read().clone()
    }

    /// The logs of this node.
    pub(crate) fn logs(&self) -> &Arc<LogManager> {
        &self.logs
    }

    /// Counts up whenever topics have come, changed or gone, and when logs may begin elsewhere: what has been looked up
    /// before has to be looked up again, and nothing rings for it.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Says that logs may begin elsewhere now.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// The partitions that this node leads, topic by topic.
    pub(crate) fn led(&self) -> Vec<Arc<Partition>> {
        let mut topics: Vec<_> = self.index.read().by_name.values().cloned().collect();
        topics.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        topics.iter().flat_map(|topic| topic.partitions.iter().flatten().cloned()).collect()
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
        let mut unfinished = self.unfinished.lock();
        if !Arc::ptr_eq(old.resource_configs(), new.resource_configs()) {
            self.follow_defaults(new, &mut unfinished);
        }
        for change in new.topic_changes_since(old) {
            match change {
                TopicChange::Created(topic) | TopicChange::Changed { new: topic, .. } => {
                    self.take(&topic, &mut unfinished);
                }
                TopicChange::Deleted(topic) => self.drop_topic(&topic, &mut unfinished),
            }
        }
    }

    /// Uses what this node has been given for its topics while it runs.
    fn follow_defaults(&self, state: &ClusterState, unfinished: &mut Unfinished) {
        let defaults = self.defaults.read().at(state, self.node);
        if defaults == *self.defaults.read() {
            return;
        }
        *self.defaults.write() = defaults;
        for topic in state.topics() {
            // One that has only now been made is taken as such.
            if self.topic_by_id(topic.id).is_ok() {
                self.take(topic, unfinished);
            }
        }
    }

    /// Tries again to delete the logs that could not be deleted, and to open the partitions that could not be opened.
    pub(crate) fn retry_unfinished(&self) {
        let mut unfinished = self.unfinished.lock();
        for (id, topic_id) in std::mem::take(&mut unfinished.doomed) {
            self.delete_logs(vec![id], topic_id, &mut unfinished);
        }
        let topics: Vec<_> = unfinished.incomplete.values().cloned().collect();
        for topic in topics {
            self.take(&topic, &mut unfinished);
        }
    }

    /// Has what this thread appends share one round of syncs, which the drop of the hold sees to.
    pub(crate) fn hold_round(&self) -> RoundHold<'_> {
        self.logs.hold_round()
    }

    /// Notes that a log has been synced, or cannot be any more.
    pub(crate) fn synced(&self, log: &Arc<Log>, is_healthy: bool) {
        let Ok(topic) = self.topic_by_id(log.topic_id()) else { return };
        let Some(partition) = topic.partition(log.partition().partition) else { return };
        if is_healthy { partition.advance() } else { partition.give_up() }
    }

    /// Brings what is held of `topic` in line with it.
    fn take(&self, topic: &Arc<Topic>, unfinished: &mut Unfinished) {
        let before = self.index.read().by_id.get(&topic.id).cloned();
        let config = self.defaults.read().resolve(topic);
        let wanted_insync = usize::try_from(config.min_insync_replicas).unwrap_or(1);
        let config = log_config(&config);
        self.make_logs(topic, &config);
        let mut is_complete = true;
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for (index, assigned) in topic.partitions.iter().enumerate() {
            if assigned.leader != self.node {
                partitions.push(None);
                continue;
            }
            let id = TopicPartition::new(topic.name.clone(), index as i32);
            // With fewer replicas than are wanted in sync all of them must be, as in Kafka.
            let min_insync = wanted_insync.min(assigned.replicas.len());
            let role = Role::new(self.node, assigned.leader_epoch, &assigned.isr, min_insync);
            let held = before.as_ref().and_then(|before| before.partition(index as i32));
            let partition = match held {
                Some(held) => change(held, &config, role).map(|()| Arc::clone(held)).map_err(Arc::new),
                None => self.open_partition(&id, topic.id, &config, role),
            };
            match partition {
                Ok(partition) => partitions.push(Some(partition)),
                Err(error) => {
                    // Said once: it may be tried for ever.
                    if !unfinished.incomplete.contains_key(&topic.id) {
                        tracing::error!(partition = %id, %error, "cannot open the partition; it is tried again");
                    }
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
        self.changed();
        if is_complete {
            unfinished.incomplete.remove(&topic.id);
        } else {
            unfinished.incomplete.insert(topic.id, Arc::clone(topic));
        }
    }

    /// Makes the logs that the topic's partitions here lack, many at a time. Those that cannot be made are left to
    /// [`open_partition`](Self::open_partition), which says why.
    fn make_logs(&self, topic: &Topic, config: &LogConfig) {
        let led = topic.partitions.iter().enumerate().filter(|(_, assigned)| assigned.leader == self.node);
        let ids = led.map(|(index, _)| TopicPartition::new(topic.name.clone(), index as i32));
        let is_missing = |id: &_| self.logs.log(id).is_none() && self.logs.offline_log(id).is_none();
        let missing: Vec<TopicPartition> = ids.filter(is_missing).collect();
        if missing.len() > 1
            && let Err(error) = self.logs.create_all(&missing, topic.id, config)
        {
            tracing::debug!(topic = %topic.name, %error, "not all logs could be made at once");
        }
    }

    fn open_partition(
        &self,
        id: &TopicPartition,
        topic_id: Uuid,
        config: &LogConfig,
        role: Role,
    ) -> Result<Arc<Partition>, Arc<StorageError>> {
        let found = self.logs.log(id).map(|log| Some(log.topic_id()));
        let offline = self.logs.offline_log(id);
        let found = found.or(offline.as_ref().map(|offline| offline.topic_id));
        match (found, offline) {
            (Some(Some(other)), _) if other != topic_id => {
                // The topic was deleted and created anew, and the node ended before it had deleted the log. Or the metadata
                // has lost the topic: then this is all there is of its records.
                if let Some(to) = self.logs.set_aside(id)? {
                    tracing::warn!(partition = %id, topic_id = %other, directory = %to.display(),
                        "a log that the metadata does not mention was in the way; it is kept in this directory: \
                        remove it if its topic was deleted");
                }
            }
            (_, Some(offline)) if offline.error.is_retriable() => {
                self.logs.reopen(id, config.clone())?;
            }
            (_, Some(offline)) => return Err(offline.error),
            _ => {}
        }
        let log = match self.logs.log(id) {
            Some(log) => {
                log.set_config(config.clone());
                log
            }
            None => self.logs.create(id, topic_id, config.clone())?,
        };
        Ok(Partition::lead(log, role)?)
    }

    fn drop_topic(&self, topic: &Topic, unfinished: &mut Unfinished) {
        unfinished.incomplete.remove(&topic.id);
        let mut index = self.index.write();
        let held = index.by_id.remove(&topic.id);
        if index.by_name.get(&topic.name).is_some_and(|named| named.id == topic.id) {
            index.by_name.remove(&topic.name);
        }
        drop(index);
        self.changed();
        // Also of partitions that could not be opened.
        let mut ids = Vec::with_capacity(topic.partitions.len());
        for index in 0..topic.partitions.len() as i32 {
            if let Some(partition) = held.as_ref().and_then(|held| held.partition(index)) {
                partition.give_up();
            }
            ids.push(TopicPartition::new(topic.name.clone(), index));
        }
        self.delete_logs(ids, topic.id, unfinished);
    }

    /// Deletes the logs of these names, as far as they are those of the deleted topic, now or later.
    fn delete_logs(&self, mut ids: Vec<TopicPartition>, topic_id: Uuid, unfinished: &mut Unfinished) {
        ids.retain(|id| match self.logs.log(id) {
            Some(log) => log.topic_id() == topic_id,
            // Where not even that can be read, the name has to do.
            None => self
                .logs
                .offline_log(id)
                .is_some_and(|offline| offline.topic_id.is_none_or(|found| found == topic_id)),
        });
        match self.logs.delete_all(&ids) {
            Ok(failed) => {
                for (id, error) in failed {
                    tracing::error!(partition = %id, %error, "cannot delete the log of a deleted topic; it is tried again");
                    unfinished.doomed.push((id, topic_id));
                }
            }
            Err(error) => {
                tracing::error!(%topic_id, %error, "the logs of a deleted topic may come back with the next start");
            }
        }
    }
}

fn change(held: &Partition, config: &LogConfig, role: Role) -> Result<(), StorageError> {
    if *held.log().config() != *config {
        held.log().set_config(config.clone());
    }
    held.set_role(role)
}

#[cfg(test)]
mod tests {
    use crate::coordinator::rig::Rig;

    #[tokio::test]
    async fn a_log_that_cannot_be_deleted_now_is_deleted_later() {
        let rig = Rig::new().await;
        // The directory of the first partition cannot be renamed.
        rig.filesystem.fail_at(rig.filesystem.performed().len(), libc::EMFILE);
        rig.delete_topic("t");
        let is_there = |name: &str| rig.directories().iter().any(|found| found == name);
        assert_eq!((is_there("t-0"), is_there("t-1")), (true, false));
        assert!(rig.partitions.topic("t").is_err(), "the topic is gone all the same");
        rig.partitions.retry_unfinished();
        assert!(!is_there("t-0"));
        // Nothing is left to be done.
        let before = rig.filesystem.performed().len();
        rig.partitions.retry_unfinished();
        assert_eq!(rig.filesystem.performed().len(), before);
    }
}
