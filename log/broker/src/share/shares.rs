//! The share-partitions of this node: finds them, keeps the time of locks, and takes back what members leave behind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_controller::GroupConfig;
use thalweg_protocol::{ErrorCode, Offset, Uuid};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use super::connection::ConnectionSessions;
use super::held::HeldShare;
use super::records::ShareKey;
use super::sessions::{SessionKey, SessionLimits, ShareSessions};
use super::settings::{self, ShareSettings};
use super::shard::ShareShard;
use super::tally::ShareTally;
use crate::config::BrokerConfig;
use crate::coordinator::{Deadlines, Due, Now, Setting, Shards, Timekeeper};
use crate::group::{ConsumerLimits, TopicIdPartition, Topics};
use crate::topics::SHARE_GROUP_STATE;

/// How often the journals are looked at for what can go, and share-partitions for topics that have gone.
const CHECK: Duration = Duration::from_secs(60);

/// The share-partitions of this node.
///
/// The node that leads a partition of `__share_group_state` has the share-partitions that belong to it.
pub(crate) struct Shares {
    shards: Shards<ShareShard>,
    setting: Setting,
    sessions: ShareSessions,
    /// What the node gives to groups that set nothing.
    defaults: GroupConfig,
    /// The topics of the cluster, and the configs of its groups.
    topics: Arc<Topics>,
    max_members: usize,
    connections: AtomicU64,
    /// Guards which share-partition has a lock that ends when; held to note one or to take one out.
    deadlines: Mutex<Deadlines<ShareKey>>,
    /// Rung when a deadline is noted that is earlier than all others.
    wake: Arc<Notify>,
    tally: ShareTally,
}

impl std::fmt::Debug for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shares").field("sessions", &self.sessions).finish_non_exhaustive()
    }
}

impl Shares {
    pub(crate) fn new(config: &BrokerConfig, topics: Arc<Topics>, setting: Setting) -> Self {
        let partitions = Arc::clone(&setting.partitions);
        Self {
            shards: Shards::new(SHARE_GROUP_STATE, partitions, setting.clocks.clone()),
            sessions: ShareSessions::new(SessionLimits {
                sessions: config.group_share_max_share_sessions,
                partitions: config.fetch_session_partitions,
            }),
            defaults: settings::of_node(config),
            topics,
            max_members: config.group_share_max_size,
            connections: AtomicU64::new(0),
            deadlines: Mutex::default(),
            wake: Arc::new(Notify::new()),
            tally: ShareTally::default(),
            setting,
        }
    }

    /// The settings of a group.
    pub(crate) fn settings_of(&self, group: &ByteString) -> ShareSettings {
        ShareSettings::of(&self.topics.image().group_config(group, self.defaults.clone()))
    }

    /// What the members of a group keep to.
    pub(crate) fn limits_of(&self, group: &ByteString) -> ConsumerLimits {
        let settings = self.settings_of(group);
        ConsumerLimits {
            heartbeat_interval_ms: settings.heartbeat_interval_ms,
            session_timeout_ms: settings.session_timeout_ms,
            max_members: self.max_members,
        }
    }

    /// This instant.
    pub(crate) fn now(&self) -> Now {
        self.setting.clocks.now()
    }

    /// The sessions of members.
    pub(crate) fn sessions(&self) -> &ShareSessions {
        &self.sessions
    }

    /// Counts what happens to records.
    pub(crate) fn tally(&self) -> &ShareTally {
        &self.tally
    }

    /// For each share group that reads here: its share-partitions, the records that members have, and those that wait to be
    /// delivered again.
    pub(crate) fn in_flight(&self) -> BTreeMap<ByteString, (u64, u64, u64)> {
        let mut groups: BTreeMap<ByteString, (u64, u64, u64)> = BTreeMap::new();
        for held in self.shards.loaded().iter().flat_map(|shard| shard.find(|_| true)) {
            let (acquired, available) = held.in_flight();
            let of = groups.entry(held.key().group.clone()).or_default();
            *of = (of.0 + 1, of.1 + acquired, of.2 + available);
        }
        groups
    }

    /// Takes note of a connection that opens share sessions.
    pub(crate) fn connect(self: &Arc<Self>) -> ConnectionSessions {
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionSessions::new(id, Arc::downgrade(self))
    }

    /// The share-partition of this key; `None` when nobody has read there yet.
    ///
    /// # Errors
    /// Those of [`Shards::of`].
    pub(crate) async fn find(&self, key: &ShareKey) -> Result<Option<Arc<HeldShare>>, ErrorCode> {
        Ok(self.shards.of(&key.coordinator_key()).await?.get(key))
    }

    /// As [`find`](Self::find), for who asks but does not read: where nobody has read anything there may not even be a
    /// coordinator yet.
    ///
    /// # Errors
    /// Those of [`Shards::of`].
    pub(crate) async fn look_up(&self, key: &ShareKey) -> Result<Option<Arc<HeldShare>>, ErrorCode> {
        match self.topics.image().topic(SHARE_GROUP_STATE) {
            Some(_) => self.find(key).await,
            None => Ok(None),
        }
    }

    /// The share-partition of this key, made to begin at `start` if there is none. When this returns it is in the journal for
    /// good.
    ///
    /// # Errors
    /// Those of [`Shards::of`]; why it cannot be written.
    pub(crate) async fn find_or_create(
        &self,
        key: &ShareKey,
        start: Offset,
    ) -> Result<Arc<HeldShare>, ErrorCode> {
        let shard = self.shards.of(&key.coordinator_key()).await?;
        let (held, written) = shard.get_or_create(key, start)?;
        if let Some(written) = written {
            held.committed(written).await?;
        }
        Ok(held)
    }

    /// Has the share-partition of this key begin at `start`, whatever was before. When this returns that is in the journal for
    /// good.
    ///
    /// # Errors
    /// Those of [`Shards::of`]; why it cannot be written.
    pub(crate) async fn reset(&self, key: &ShareKey, start: Offset) -> Result<(), ErrorCode> {
        let shard = self.shards.of(&key.coordinator_key()).await?;
        let written = shard.reset(key, start)?;
        crate::coordinator::Shard::journal(&*shard).committed(written).await
    }

    /// Forgets how far the share-partition of this key is: whoever reads there next begins anew, where the group's configs say.
    /// When this returns that is in the journal for good.
    ///
    /// # Errors
    /// Those of [`Shards::of`]; why it cannot be written.
    pub(crate) async fn begin_anew(&self, key: &ShareKey) -> Result<(), ErrorCode> {
        let shard = self.shards.of(&key.coordinator_key()).await?;
        match shard.remove(|held| held == key)? {
            Some(written) => crate::coordinator::Shard::journal(&*shard).committed(written).await,
            None => Ok(()),
        }
    }

    /// Ends what `group` has of the topics that `is_over` chooses. When this returns that is in the journal for good. Says
    /// whether there was anything.
    ///
    /// # Errors
    /// Those of [`Shards::all`], and then nothing has ended: what is left would come back with a group of the same name. Why
    /// it cannot be written.
    pub(crate) async fn remove(
        &self,
        group: &str,
        is_over: impl Fn(Uuid) -> bool,
    ) -> Result<bool, ErrorCode> {
        let mut had_some = false;
        for shard in self.all_shards().await? {
            let written = shard.remove(|key| key.group == group && is_over(key.topic_id))?;
            if let Some(written) = written {
                had_some = true;
                crate::coordinator::Shard::journal(&*shard).committed(written).await?;
            }
        }
        Ok(had_some)
    }

    /// Everything that `group` has read.
    ///
    /// # Errors
    /// Those of [`Shards::all`].
    pub(crate) async fn of_group(&self, group: &str) -> Result<Vec<Arc<HeldShare>>, ErrorCode> {
        let shards = self.all_shards().await?;
        let mut found: Vec<_> =
            shards.iter().flat_map(|shard| shard.find(|key| key.group == group)).collect();
        found.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        Ok(found)
    }

    async fn all_shards(&self) -> Result<Vec<Arc<ShareShard>>, ErrorCode> {
        self.shards.all(self.topics.image().cluster()).await
    }

    /// Notes when a lock of a share-partition ends.
    pub(crate) fn note_deadline(&self, key: &ShareKey, at_ms: u64) {
        if self.deadlines.lock().note(at_ms, key.clone()) {
            self.wake.notify_one();
        }
    }

    /// Ends a session, one of a certain connection only if that is given: what its member has acquired is free again.
    pub(crate) fn end_session(&self, key: &SessionKey, connection: Option<u64>) {
        let Some(session) = self.sessions.end(key, connection) else { return };
        self.give_back(key, session.touched());
    }

    /// A member has not been heard of in time, and is out of its group.
    pub(crate) fn give_up_member(&self, group: &ByteString, member: &ByteString) {
        self.end_session(&SessionKey { group: group.clone(), member: member.clone() }, None);
    }

    /// Takes back what the member of a session that has ended has of these partitions.
    pub(crate) fn give_back(&self, session: &SessionKey, partitions: impl Iterator<Item = TopicIdPartition>) {
        let (shards, now) = (self.shards.loaded(), self.now());
        let settings = self.settings_of(&session.group);
        for TopicIdPartition { topic_id, partition } in partitions {
            let key = ShareKey { group: session.group.clone(), topic_id, partition };
            let Some(held) = shards.iter().find_map(|shard| shard.get(&key)) else { continue };
            if let Err(code) = held.release(&session.member, &settings, now) {
                tracing::warn!(group = %session.group, member = %session.member, code = code.name(),
                    "records of a member that has gone stay with it until their time is over");
            }
        }
    }

    /// Loads every shard of this node.
    pub(crate) async fn load_all(&self) {
        self.shards.load_all().await;
    }

    /// Keeps the time until the broker stops: locks, and what the journals can let go of.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut time = Timekeeper::new(&self.setting, &self.wake, CHECK);
        while let Some(due) = time.wait(|| self.deadlines.lock().next()).await {
            self.expire();
            if due == Due::Check {
                self.tidy().await;
            }
        }
    }

    fn expire(&self) {
        let (now, shards) = (self.now(), self.shards.loaded());
        loop {
            let due = self.deadlines.lock().pop_due(now.monotonic_ms);
            let Some(key) = due else { return };
            let Some(held) = shards.iter().find_map(|shard| shard.get(&key)) else { continue };
            if let Some(next) = held.expire(&self.settings_of(&key.group), &self.tally, now) {
                self.note_deadline(&key, next);
            }
        }
    }

    /// Forgets what was read of topics that have gone, and lets go of what the journals need not keep.
    async fn tidy(self: &Arc<Self>) {
        let shares: Weak<Self> = Arc::downgrade(self);
        let work = spawn_blocking(move || {
            let Some(shares) = shares.upgrade() else { return };
            for shard in shares.shards.loaded() {
                let is_over = |key: &ShareKey| shares.setting.partitions.topic_by_id(key.topic_id).is_err();
                if let Err(code) = shard.remove(is_over) {
                    tracing::warn!(code = code.name(), "what was read of deleted topics is forgotten later");
                }
                shard.trim();
            }
        });
        if work.await.is_err() {
            tracing::error!("looking after the journals of share groups panicked; it is tried again");
        }
    }
}

#[cfg(test)]
mod tests;
