//! The group coordinator of this node: finds the shard of a group, and keeps the time for all of them.

use std::sync::Arc;
use std::time::Duration;

use thalweg_controller::Controller;
use thalweg_protocol::ErrorCode;
use thalweg_storage::MarkerAppend;
use tokio::sync::Notify;

use super::classic::GroupLimits;
use super::consumer::ConsumerLimits;
use super::shard::{GroupSettings, GroupShard};
use super::topic_image::{TopicImage, Topics};
use crate::config::BrokerConfig;
use crate::coordinator::{Due, Setting, Shard, Shards, Timekeeper};
use crate::share::Shares;
use crate::topics::CONSUMER_OFFSETS;

/// How often offsets that have expired are looked for: Kafka's `offsets.retention.check.interval.ms`.
const RETENTION_CHECK: Duration = Duration::from_secs(10 * 60);

/// The group coordinator of this node.
pub(crate) struct GroupCoordinator {
    shards: Shards<GroupShard>,
    setting: Setting,
    topics: Arc<Topics>,
    shares: Arc<Shares>,
    wake: Arc<Notify>,
}

impl GroupCoordinator {
    /// A coordinator of the groups whose partitions this node leads.
    pub(crate) fn new(config: &BrokerConfig, controller: &Controller, setting: Setting) -> Self {
        let wake = Arc::new(Notify::new());
        let topics = Arc::new(Topics::follow(controller));
        let shares = Arc::new(Shares::new(config, Arc::clone(&topics), setting.clone()));
        let settings = GroupSettings {
            limits: GroupLimits {
                initial_rebalance_delay_ms: config.group_initial_rebalance_delay_ms,
                min_session_timeout_ms: config.group_min_session_timeout_ms,
                max_session_timeout_ms: config.group_max_session_timeout_ms,
                max_members: config.group_max_size,
            },
            consumer_limits: ConsumerLimits {
                heartbeat_interval_ms: config.group_consumer_heartbeat_interval_ms,
                session_timeout_ms: config.group_consumer_session_timeout_ms,
                max_members: config.group_consumer_max_size,
            },
            migration: config.group_consumer_migration_policy,
            topics: Arc::clone(&topics),
            shares: Arc::clone(&shares),
            retention_ms: config.offsets_retention_ms,
            setting: setting.clone(),
            wake: Arc::clone(&wake),
        };
        let shards = Shards::new(CONSUMER_OFFSETS, Arc::clone(&setting.partitions), settings);
        Self { shards, setting, topics, shares, wake }
    }

    /// The shard that group `id` belongs to, loaded if it was not.
    ///
    /// # Errors
    /// INVALID_GROUP_ID for the empty id; NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE.
    pub(crate) async fn shard(&self, id: &str) -> Result<Arc<GroupShard>, ErrorCode> {
        if id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        self.shards.of(id).await
    }

    /// The topics of the cluster as the groups see them.
    pub(crate) fn topics(&self) -> TopicImage {
        self.topics.image()
    }

    /// What share groups read.
    pub(crate) fn shares(&self) -> &Arc<Shares> {
        &self.shares
    }

    /// The partition of `__consumer_offsets` that keeps the offsets of group `id`.
    ///
    /// # Errors
    /// COORDINATOR_NOT_AVAILABLE while the topic has not been made.
    pub(crate) fn partition_of(&self, id: &str) -> Result<i32, ErrorCode> {
        self.shards.index_of(id)
    }

    /// Ends a producer's transaction in partition `index` of `__consumer_offsets`, and waits until that is
    /// committed.
    ///
    /// # Errors
    /// Those of [`Shards::at`] and of the append.
    pub(crate) async fn write_marker(&self, index: i32, marker: MarkerAppend) -> Result<(), ErrorCode> {
        let shard = self.shards.at(index).await?;
        let offset = shard.write_marker(marker)?;
        shard.journal().committed(offset).await
    }

    /// Loads every shard of this node.
    pub(crate) async fn load_all(&self) {
        self.shards.load_all().await;
    }

    /// Every shard that no other node has, loaded if it was not.
    ///
    /// # Errors
    /// Those of [`Shards::all`].
    pub(crate) async fn all_shards(&self) -> Result<Vec<Arc<GroupShard>>, ErrorCode> {
        self.shards.all(self.topics().cluster()).await
    }

    /// The shards that are loaded.
    pub(crate) fn loaded(&self) -> Vec<Arc<GroupShard>> {
        self.shards.loaded()
    }

    /// Keeps the time until the broker stops: sessions, rebalances, and the retention of offsets.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut time = Timekeeper::new(&self.setting, &self.wake, RETENTION_CHECK);
        let deadline = || self.loaded().iter().filter_map(|shard| shard.next_deadline()).min();
        while let Some(due) = time.wait(deadline).await {
            for shard in self.loaded() {
                shard.expire();
                if due == Due::Check {
                    shard.expire_offsets();
                }
            }
        }
    }
}
