//! A member of a group: where it is between joining and leaving.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::TopicPartition;
use tokio::sync::Notify;

use super::assignor::Assignor;
use super::heartbeat::{Heart, Pulse, Signal, leave};
use super::join::{Identity, Joining};
use super::offsets::GroupMetadata;
use crate::cluster::{Cluster, Wanted};
use crate::config::ConsumerConfig;
use crate::coordinator::{Coordinator, CoordinatorOf};
use crate::error::Result;
use crate::metadata::Metadata;

/// Where a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It must join.
    Outside,
    /// Partitions are being given up until the next poll; then it must join.
    Revoking,
    Joining,
    Stable,
    /// Another member has taken over: nothing more happens.
    Fenced,
}

/// A member of a group.
pub(super) struct Membership {
    coordinator: Arc<Coordinator>,
    identity: Arc<Identity>,
    assignors: Vec<Arc<dyn Assignor>>,
    pulse: Arc<Pulse>,
    heart: Arc<Heart>,
    config: ConsumerConfig,
    pub(super) topics: Vec<ByteString>,
    pub(super) phase: Phase,
    /// For the leader: how many partitions the topics had when it assigned them, and the metadata looked at
    /// last.
    counts: Option<BTreeMap<ByteString, i32>>,
    /// For the leader: the topics of all members.
    wanted: Wanted,
    looked_at: Arc<Metadata>,
}

impl Membership {
    pub(super) fn new(
        cluster: &Arc<Cluster>,
        group: &str,
        config: ConsumerConfig,
        assignors: Vec<Arc<dyn Assignor>>,
        wake: Arc<Notify>,
    ) -> Self {
        let coordinator = Arc::new(Coordinator::new(cluster, CoordinatorOf::Group, group));
        let identity = Arc::new(Identity::new(group, config.group_instance_id.as_deref()));
        let pulse = Arc::new(Pulse::new(wake));
        let heart = Heart::new(Arc::clone(&coordinator), Arc::clone(&identity), Arc::clone(&pulse), &config);
        Self {
            coordinator,
            identity,
            assignors,
            pulse,
            heart: Arc::new(heart),
            config,
            topics: Vec::new(),
            phase: Phase::Outside,
            counts: None,
            wanted: Wanted::new(cluster),
            looked_at: cluster.metadata(),
        }
    }

    /// Whether members keep reading while the group rebalances: only if all assignors allow it.
    pub(super) fn is_cooperative(&self) -> bool {
        self.assignors.iter().all(|assignor| assignor.is_cooperative())
    }

    pub(super) fn metadata(&self) -> GroupMetadata {
        self.identity.metadata()
    }

    pub(super) fn polled(&self) {
        self.pulse.polled();
    }

    /// What the heartbeats have found out. While the member joins, that is for who comes out of it.
    pub(super) fn take_signal(&self) -> Option<Signal> {
        if self.phase == Phase::Joining { None } else { self.pulse.take_signal() }
    }

    pub(super) fn has_signal(&self) -> bool {
        self.pulse.has_signal()
    }

    /// Whether the leader has to have its topics assigned anew: one has got partitions, has come or has gone.
    pub(super) fn have_topics_changed(&mut self) -> bool {
        let Some(counts) = &self.counts else { return false };
        let metadata = self.coordinator.cluster().metadata();
        if Arc::ptr_eq(&metadata, &self.looked_at) {
            return false;
        }
        let count = |topic: &ByteString| metadata.topic(topic).map(|topic| topic.partitions.len() as i32);
        let has_changed = counts.iter().any(|(topic, before)| count(topic) != Some(*before))
            || self.topics.iter().any(|topic| !counts.contains_key(topic) && count(topic).is_some());
        self.looked_at = metadata;
        has_changed
    }

    /// What takes the member into the next generation.
    pub(super) fn joining(&mut self, owned: Vec<TopicPartition>) -> Joining {
        self.phase = Phase::Joining;
        self.counts = None;
        Joining {
            coordinator: Arc::clone(&self.coordinator),
            identity: Arc::clone(&self.identity),
            heart: Arc::clone(&self.heart),
            assignors: self.assignors.clone(),
            topics: self.topics.clone(),
            owned,
            rack: self.config.rack.clone(),
            session_timeout_ms: self.config.session_timeout_ms,
            rebalance_timeout_ms: self.config.max_poll_interval_ms.min(i32::MAX as u64) as i32,
        }
    }

    /// The member is in a generation.
    pub(super) fn joined(
        &mut self,
        assignor: usize,
        counts: Option<BTreeMap<ByteString, i32>>,
    ) -> Arc<dyn Assignor> {
        self.phase = Phase::Stable;
        self.wanted.set(counts.iter().flatten().map(|(topic, _)| topic.clone()).collect());
        self.counts = counts;
        self.looked_at = self.coordinator.cluster().metadata();
        Arc::clone(&self.assignors[assignor])
    }

    /// The member is out of the group and must join as a new one.
    pub(super) fn lost(&mut self) {
        self.identity.forget();
        self.phase = Phase::Outside;
    }

    pub(super) fn fenced(&mut self) {
        self.phase = Phase::Fenced;
        self.heart.close();
    }

    /// Leaves the group; a static member stays, so that it gets the same partitions when it is back.
    pub(super) async fn leave(&mut self) -> Result<()> {
        self.heart.close();
        let member = self.identity.metadata();
        self.identity.leave_generation();
        if member.instance_id.is_some() || member.member_id.is_empty() {
            return Ok(());
        }
        self.identity.forget();
        leave(&self.coordinator, &member, "the consumer leaves").await
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.heart.close();
    }
}
