//! A member of a group whose coordinator assigns (KIP-848): heartbeats carry what the member wants, has and is to have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use thalweg_protocol::messages::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, TopicPartition, Uuid};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::heartbeat::{Pulse, Signal};
use super::join::Identity;
use super::offsets::GroupMetadata;
use crate::cluster::Cluster;
use crate::config::ConsumerConfig;
use crate::coordinator::{Coordinator, CoordinatorOf};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::Metadata;

/// The epochs by which a member says that it joins, leaves, or (a static one) goes away for a while.
const JOIN: i32 = 0;
const LEAVE: i32 = -1;
const GO_AWAY: i32 = -2;
/// The first version that takes a pattern of topics.
const PATTERNS: i16 = 1;

/// What a member wants to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subscription {
    pub(super) topics: Vec<ByteString>,
    /// A regular expression (of RE2) that whole names of topics match.
    pub(super) pattern: Option<ByteString>,
}

/// Where a member is between two assignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// What it has is what it is to have, as far as is known.
    Settled,
    /// It gives partitions up until the next poll.
    Revoking,
    /// Nothing more happens: another member has taken over, or the coordinator refused for good.
    Ended,
}

/// A member of a group.
pub(super) struct Coordinated {
    member: Arc<Member>,
    beating: Option<JoinHandle<()>>,
    pub(super) stage: Stage,
    /// The newest assignment, by the ids of topics, and whether the member has been told all of it.
    target: BTreeMap<Uuid, Vec<i32>>,
    is_settled: bool,
}

/// What the member and its heartbeats share.
struct Member {
    coordinator: Arc<Coordinator>,
    identity: Arc<Identity>,
    pulse: Arc<Pulse>,
    rack: Option<ByteString>,
    assignor: Option<ByteString>,
    max_poll_interval: Duration,
    rebalance_timeout_ms: i32,
    /// Guards what the next heartbeat tells, and what the last ones told.
    state: Mutex<State>,
    /// There is something that the coordinator should know now.
    has_changed: Notify,
}

#[derive(Default)]
struct State {
    subscription: Subscription,
    /// What the member reads, by the ids of topics.
    owned: BTreeMap<Uuid, Vec<i32>>,
    /// An assignment that has not been looked at.
    target: Option<BTreeMap<Uuid, Vec<i32>>>,
    /// Why the coordinator will not have the member.
    failure: Option<Error>,
    /// How often the member has joined anew: what it owned before counts no more.
    rejoined: u64,
}

/// What the coordinator has been told since the member joined or its connection failed.
#[derive(Default)]
struct Told {
    subscription: Option<Subscription>,
    owned: Option<BTreeMap<Uuid, Vec<i32>>>,
}

/// What came of a heartbeat.
enum Beat {
    /// The next one is due after so long.
    Next(Duration),
    /// It is tried again after a pause, and says everything anew.
    Again,
    /// There will be no other.
    End,
}

impl Coordinated {
    pub(super) fn new(
        cluster: &Arc<Cluster>,
        group: &str,
        config: &ConsumerConfig,
        subscription: Subscription,
        wake: Arc<Notify>,
    ) -> Self {
        let id = Uuid(std::array::from_fn(|_| cluster.random(256) as u8));
        let member = Member {
            coordinator: Arc::new(Coordinator::new(cluster, CoordinatorOf::Group, group)),
            identity: Arc::new(Identity::with_id(group, config.group_instance_id.as_deref(), id)),
            pulse: Arc::new(Pulse::new(wake)),
            rack: config.rack.as_deref().map(ByteString::from),
            assignor: config.remote_assignor.as_deref().map(ByteString::from),
            max_poll_interval: Duration::from_millis(config.max_poll_interval_ms),
            rebalance_timeout_ms: config.max_poll_interval_ms.min(i32::MAX as u64) as i32,
            state: Mutex::new(State { subscription, ..State::default() }),
            has_changed: Notify::new(),
        };
        let mut coordinated = Self {
            member: Arc::new(member),
            beating: None,
            stage: Stage::Settled,
            target: BTreeMap::new(),
            is_settled: true,
        };
        coordinated.start();
        coordinated
    }

    fn start(&mut self) {
        let member = Arc::clone(&self.member);
        let beating = tokio::spawn(async move { member.beat().await });
        if let Some(before) = self.beating.replace(beating) {
            before.abort();
        }
    }

    pub(super) fn identity(&self) -> &Arc<Identity> {
        &self.member.identity
    }

    pub(super) fn metadata(&self) -> GroupMetadata {
        self.member.identity.metadata()
    }

    pub(super) fn subscription(&self) -> Subscription {
        self.member.state.lock().subscription.clone()
    }

    pub(super) fn subscribe(&self, subscription: Subscription) {
        self.member.state.lock().subscription = subscription;
        self.member.has_changed.notify_one();
    }

    pub(super) fn polled(&self) {
        self.member.pulse.polled();
    }

    pub(super) fn has_signal(&self) -> bool {
        let state = self.member.state.lock();
        self.member.pulse.has_signal() || state.target.is_some() || state.failure.is_some()
    }

    pub(super) fn take_signal(&self) -> Option<Signal> {
        self.member.pulse.take_signal()
    }

    /// Why the coordinator will not have the member; told once, and the end of it.
    pub(super) fn take_failure(&mut self) -> Option<Error> {
        let failure = self.member.state.lock().failure.take();
        if failure.is_some() {
            self.end();
        }
        failure
    }

    /// The partitions that the member is to have, if that is news or the topics of some were not known before; and
    /// whether some are still not known.
    pub(super) fn take_target(&mut self, metadata: &Metadata) -> Option<(BTreeSet<TopicPartition>, bool)> {
        if self.stage != Stage::Settled {
            return None;
        }
        match self.member.state.lock().target.take() {
            Some(target) => self.target = target,
            None if self.is_settled => return None,
            None => {}
        }
        let mut partitions = BTreeSet::new();
        let mut is_unknown = false;
        for (id, indexes) in &self.target {
            match metadata.name_of(*id) {
                Some(name) => {
                    partitions.extend(indexes.iter().map(|index| TopicPartition::new(name.clone(), *index)));
                }
                None => is_unknown = true,
            }
        }
        self.is_settled = !is_unknown;
        Some((partitions, is_unknown))
    }

    /// The member now reads these, and has given up all others. `commit` is of what it gave up: the coordinator hears
    /// of it only afterwards.
    pub(super) fn owns(
        &mut self,
        partitions: &BTreeSet<TopicPartition>,
        metadata: &Metadata,
        commit: Option<BoxFuture<'static, Result<()>>>,
    ) {
        self.stage = Stage::Settled;
        let mut owned: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
        for partition in partitions {
            let Some(topic) = metadata.topic(&partition.topic) else { continue };
            owned.entry(topic.id).or_default().push(partition.partition);
        }
        let member = Arc::clone(&self.member);
        let rejoined = member.state.lock().rejoined;
        let tell = move || {
            let mut state = member.state.lock();
            if state.rejoined == rejoined {
                state.owned = owned;
                member.has_changed.notify_one();
            }
        };
        let Some(commit) = commit else { return tell() };
        let group = self.member.coordinator.key().clone();
        tokio::spawn(async move {
            if let Err(error) = commit.await {
                tracing::warn!(%group, %error, "the commit before a rebalance failed");
            }
            tell();
        });
    }

    /// The coordinator had taken the member for dead: it joins as a new one.
    pub(super) fn rejoin(&mut self) {
        self.member.identity.leave_generation();
        {
            let mut state = self.member.state.lock();
            state.owned.clear();
            state.rejoined += 1;
            state.target = None;
        }
        self.target.clear();
        self.is_settled = true;
        self.stage = Stage::Settled;
        self.start();
    }

    pub(super) fn end(&mut self) {
        self.stage = Stage::Ended;
        if let Some(beating) = self.beating.take() {
            beating.abort();
        }
    }

    /// Leaves the group; a static member only goes away, so that it gets the same partitions when it is back.
    pub(super) async fn leave(&mut self) -> Result<()> {
        if self.stage == Stage::Ended {
            return Ok(());
        }
        self.end();
        let member = self.metadata();
        self.member.identity.leave_generation();
        let (is_known, is_static) = (member.generation >= 0, member.instance_id.is_some());
        let left = self.member.leave(member, if is_static { GO_AWAY } else { LEAVE }).await;
        // One whose first heartbeat has no answer yet may or may not be in the group.
        if is_known { left } else { Ok(()) }
    }
}

impl Drop for Coordinated {
    fn drop(&mut self) {
        self.end();
    }
}

impl Member {
    /// Sends heartbeats until the member is out of the group.
    async fn beat(&self) {
        let mut told = Told::default();
        let mut backoff = self.coordinator.cluster().backoff();
        loop {
            let wait = match self.beat_once(&mut told).await {
                Beat::Next(wait) => {
                    backoff.reset();
                    wait
                }
                Beat::Again => {
                    told = Told::default();
                    sleep(backoff.next()).await;
                    Duration::ZERO
                }
                Beat::End => return,
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.has_changed.notified() => {}
            }
            if self.pulse.since_poll() > self.max_poll_interval {
                let member = self.identity.metadata();
                tracing::warn!(group = %member.group, "no poll for max_poll_interval_ms: leaving the group");
                // Should that fail, the session timeout does it.
                let _ = self.leave(member, LEAVE).await;
                self.identity.leave_generation();
                return self.pulse.signal(Signal::Lost);
            }
        }
    }

    async fn beat_once(&self, told: &mut Told) -> Beat {
        let (request, tells) = self.request(told);
        let first = if request.subscribed_topic_regex.is_some() { PATTERNS } else { 0 };
        let answer = match self.coordinator.node().await {
            Ok(node) => {
                let versions = first..=*ConsumerGroupHeartbeatRequest::VERSIONS.end();
                node.call_within(request, versions, Duration::ZERO).await
            }
            Err(error) => Err(error),
        };
        match answer {
            Ok(response) => self.on_response(response, told, tells),
            Err(error) if error.kind() == ErrorKind::Retry => {
                self.coordinator.forget();
                tracing::debug!(group = %self.coordinator.key(), %error, "a heartbeat failed");
                Beat::Again
            }
            Err(error) => self.fail(error),
        }
    }

    fn on_response(&self, response: ConsumerGroupHeartbeatResponse, told: &mut Told, tells: Told) -> Beat {
        match ErrorCode::from(response.error_code) {
            ErrorCode::None => {
                self.identity.enter(response.member_epoch, response.member_id);
                told.subscription = tells.subscription.or(told.subscription.take());
                told.owned = tells.owned.or(told.owned.take());
                if let Some(assignment) = response.assignment {
                    let topics = assignment.topic_partitions.into_iter();
                    let target = topics.map(|topic| (topic.topic_id, topic.partitions)).collect();
                    self.state.lock().target = Some(target);
                    self.pulse.wake();
                }
                let interval = u64::try_from(response.heartbeat_interval_ms).unwrap_or_default().max(1);
                Beat::Next(Duration::from_millis(interval))
            }
            ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch => {
                self.pulse.signal(Signal::Lost);
                Beat::End
            }
            ErrorCode::FencedInstanceId => {
                self.pulse.signal(Signal::Fenced);
                Beat::End
            }
            // The member that had the instance id before may yet be taken for dead.
            ErrorCode::UnreleasedInstanceId => Beat::Again,
            code => {
                let (api, subject) = (ApiKey::ConsumerGroupHeartbeat, self.coordinator.subject());
                if matches!(code, ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable) {
                    self.coordinator.forget();
                }
                let error = Error::Broker { api, code, subject, message: response.error_message };
                match error.kind() {
                    ErrorKind::Retry => Beat::Again,
                    _ => self.fail(error),
                }
            }
        }
    }

    fn fail(&self, error: Error) -> Beat {
        self.state.lock().failure = Some(error);
        self.pulse.wake();
        Beat::End
    }

    /// The next heartbeat, which leaves out what the coordinator has been told; and what it tells.
    fn request(&self, told: &Told) -> (ConsumerGroupHeartbeatRequest, Told) {
        let member = self.identity.metadata();
        let state = self.state.lock();
        let joins = member.generation < 0;
        let is_first = joins || told.subscription.is_none();
        let mut tells = Told::default();
        let mut request = ConsumerGroupHeartbeatRequest {
            group_id: member.group,
            member_id: member.member_id,
            member_epoch: if joins { JOIN } else { member.generation },
            instance_id: member.instance_id,
            ..ConsumerGroupHeartbeatRequest::default()
        };
        if is_first {
            request.rack_id = self.rack.clone();
            request.rebalance_timeout_ms = self.rebalance_timeout_ms;
            request.server_assignor = self.assignor.clone();
        }
        if is_first || told.subscription.as_ref() != Some(&state.subscription) {
            request.subscribed_topic_names = Some(state.subscription.topics.clone());
            let before = told.subscription.as_ref().and_then(|told| told.pattern.as_ref());
            // An empty pattern takes the one before away.
            request.subscribed_topic_regex = match (&state.subscription.pattern, before) {
                (Some(pattern), _) => Some(pattern.clone()),
                (None, Some(_)) => Some(ByteString::new()),
                (None, None) => None,
            };
            tells.subscription = Some(state.subscription.clone());
        }
        if joins || told.owned.as_ref() != Some(&state.owned) {
            let owned = if joins { BTreeMap::new() } else { state.owned.clone() };
            let topic = |(topic_id, partitions)| TopicPartitions { topic_id, partitions };
            request.topic_partitions = Some(owned.clone().into_iter().map(topic).collect());
            tells.owned = Some(owned);
        }
        (request, tells)
    }

    async fn leave(&self, member: GroupMetadata, epoch: i32) -> Result<()> {
        let request = ConsumerGroupHeartbeatRequest {
            group_id: member.group,
            member_id: member.member_id,
            member_epoch: epoch,
            instance_id: member.instance_id,
            ..ConsumerGroupHeartbeatRequest::default()
        };
        let response = self.coordinator.call(request, i16::MAX, Duration::ZERO).await?;
        match ErrorCode::from(response.error_code) {
            ErrorCode::None | ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch => Ok(()),
            code => Err(self.coordinator.refused(ApiKey::ConsumerGroupHeartbeat, code)),
        }
    }
}
