//! The shards of a coordinator: what each partition of its internal topic holds, loaded once for each epoch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use thalweg_controller::ClusterState;
use thalweg_protocol::{ErrorCode, NodeId};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::{Journal, JournalError, partition_for};
use crate::partition::Partition;
use crate::partitions::Partitions;

/// What one partition of the internal topic holds.
pub(crate) trait Shard: Send + Sync + Sized + 'static {
    /// What is handed to every load.
    type Settings: Clone + Send + Sync + 'static;

    /// Replays `journal`. Blocks on the disk.
    fn load(journal: Journal, settings: &Self::Settings) -> Result<Self, JournalError>;

    /// The journal that was loaded.
    fn journal(&self) -> &Journal;
}

/// The shards of one coordinator on this node.
pub(crate) struct Shards<S: Shard> {
    topic: &'static str,
    partitions: Arc<Partitions>,
    settings: S::Settings,
    /// Guards which shards there are; held for a look-up.
    slots: Mutex<HashMap<i32, Arc<Slot<S>>>>,
}

struct Slot<S> {
    partition: Arc<Partition>,
    shard: OnceCell<Arc<S>>,
    /// Guards when a load has failed last, so that not every request reads the whole log again.
    failed_at: Mutex<Option<Instant>>,
}

/// How long after a failed load the next one is tried.
const LOAD_RETRY: Duration = Duration::from_secs(5);

impl<S: Shard> Shards<S> {
    /// No shards yet, of the internal topic `topic`.
    pub(crate) fn new(topic: &'static str, partitions: Arc<Partitions>, settings: S::Settings) -> Self {
        Self { topic, partitions, settings, slots: Mutex::default() }
    }

    /// The partition of the internal topic that `key` belongs to.
    ///
    /// # Errors
    /// COORDINATOR_NOT_AVAILABLE while the internal topic has not been made.
    pub(crate) fn index_of(&self, key: &str) -> Result<i32, ErrorCode> {
        let topic = self.partitions.topic(self.topic).map_err(|_| ErrorCode::CoordinatorNotAvailable)?;
        Ok(partition_for(key, topic.partition_count()))
    }

    /// The shard that `key` belongs to, loaded if it was not.
    ///
    /// # Errors
    /// NOT_COORDINATOR when another node is the coordinator, COORDINATOR_NOT_AVAILABLE when nobody can be or the
    /// shard cannot be loaded.
    pub(crate) async fn of(&self, key: &str) -> Result<Arc<S>, ErrorCode> {
        self.at(self.index_of(key)?).await
    }

    /// The shard of partition `index`, loaded if it was not.
    ///
    /// # Errors
    /// As [`Shards::of`].
    pub(crate) async fn at(&self, index: i32) -> Result<Arc<S>, ErrorCode> {
        let topic = self.partitions.topic(self.topic).map_err(|_| ErrorCode::CoordinatorNotAvailable)?;
        let partition = topic.leader(index).map_err(|code| match code {
            ErrorCode::NotLeaderOrFollower => ErrorCode::NotCoordinator,
            _ => ErrorCode::CoordinatorNotAvailable,
        })?;
        let slot = self.slot(index, partition);
        slot.shard.get_or_try_init(|| self.load(&slot)).await.cloned()
    }

    /// Every shard that no other node has, as `cluster` says, loaded if it was not; none while the internal topic has not
    /// been made.
    ///
    /// # Errors
    /// COORDINATOR_NOT_AVAILABLE when one cannot be loaded: whoever asks for all would take the others for all there are.
    pub(crate) async fn all(&self, cluster: &ClusterState) -> Result<Vec<Arc<S>>, ErrorCode> {
        let Some(topic) = cluster.topic(self.topic) else { return Ok(Vec::new()) };
        let node = self.partitions.node();
        let mut shards = Vec::with_capacity(topic.partitions.len());
        for (index, partition) in topic.partitions.iter().enumerate() {
            if partition.leader == node || partition.leader == NodeId::NONE {
                let shard = self.at(index as i32).await;
                shards.push(shard.map_err(|_| ErrorCode::CoordinatorNotAvailable)?);
            }
        }
        Ok(shards)
    }

    async fn load(&self, slot: &Slot<S>) -> Result<Arc<S>, ErrorCode> {
        let partition = &slot.partition;
        if slot.failed_at.lock().is_some_and(|failed_at| failed_at.elapsed() < LOAD_RETRY) {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        let (journal, settings) = (Journal::new(Arc::clone(partition)), self.settings.clone());
        match spawn_blocking(move || S::load(journal, &settings)).await {
            Ok(Ok(shard)) => Ok(Arc::new(shard)),
            Ok(Err(error)) => {
                tracing::error!(partition = %partition.id(), %error, "cannot load the coordinator's state");
                *slot.failed_at.lock() = Some(Instant::now());
                Err(ErrorCode::CoordinatorNotAvailable)
            }
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// The slot of `partition`; one of an older epoch is given up.
    fn slot(&self, index: i32, partition: &Arc<Partition>) -> Arc<Slot<S>> {
        let mut slots = self.slots.lock();
        let is_current = |slot: &Arc<Slot<S>>| match slot.shard.get() {
            Some(shard) => shard.journal().is(partition),
            None => Arc::ptr_eq(&slot.partition, partition),
        };
        if let Some(slot) = slots.get(&index).filter(|slot| is_current(slot)) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Slot {
            partition: Arc::clone(partition),
            shard: OnceCell::new(),
            failed_at: Mutex::default(),
        });
        slots.insert(index, Arc::clone(&slot));
        slot
    }

    /// The shards that are loaded.
    pub(crate) fn loaded(&self) -> Vec<Arc<S>> {
        self.slots.lock().values().filter_map(|slot| slot.shard.get().cloned()).collect()
    }

    /// Loads every shard of the partitions that this node leads; one that cannot be is said and left out.
    pub(crate) async fn load_all(&self) {
        let Ok(topic) = self.partitions.topic(self.topic) else { return };
        for index in 0..topic.partition_count() {
            if topic.partition(index).is_some() {
                // Said where it fails.
                let _ = self.at(index).await;
            }
        }
    }
}
