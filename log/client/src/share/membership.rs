//! A member of a share group (KIP-932): heartbeats carry what the member reads, and which partitions it is to fetch from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::share_group_heartbeat::{
    ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse,
};
use thalweg_protocol::{ErrorCode, Uuid};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::session::Key;
use crate::cluster::Cluster;
use crate::config::ShareConsumerConfig;
use crate::coordinator::{Coordinator, CoordinatorOf};
use crate::error::{Error, ErrorKind, Result};

/// The epochs by which a member says that it joins or leaves.
const JOINS: i32 = 0;
const LEAVES: i32 = -1;

/// What the heartbeats have found out since the last poll.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The partitions that the member is to fetch from.
    pub(super) assigned: Option<BTreeSet<Key>>,
    /// How often the coordinator had taken the member for dead.
    pub(super) losses: u64,
    /// Why the coordinator will not have the member: the end of it.
    pub(super) failure: Option<Error>,
}

/// A member of a share group. Dropping it ends its heartbeats.
pub(super) struct Membership {
    member: Arc<Member>,
    beating: JoinHandle<()>,
}

/// What the member and its heartbeats share.
struct Member {
    coordinator: Coordinator,
    /// Chosen by the client, and kept.
    id: ByteString,
    rack: Option<ByteString>,
    max_poll_interval: Duration,
    /// Guards what the next heartbeat tells, and what the last ones told.
    state: Mutex<State>,
    /// There is something that the coordinator should know now.
    has_changed: Notify,
    /// Wakes a poll that waits.
    wake: Arc<Notify>,
}

struct State {
    topics: BTreeSet<ByteString>,
    epoch: i32,
    polled: Instant,
    news: News,
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

impl Membership {
    pub(super) fn new(
        cluster: &Arc<Cluster>,
        config: &ShareConsumerConfig,
        topics: BTreeSet<ByteString>,
        wake: Arc<Notify>,
    ) -> Self {
        let id = Uuid(std::array::from_fn(|_| cluster.random(256) as u8));
        let member = Arc::new(Member {
            coordinator: Coordinator::new(cluster, CoordinatorOf::Group, &config.group),
            id: ByteString::from(id.to_string()),
            rack: config.rack.as_deref().map(ByteString::from),
            max_poll_interval: Duration::from_millis(config.max_poll_interval_ms),
            state: Mutex::new(State { topics, epoch: JOINS, polled: Instant::now(), news: News::default() }),
            has_changed: Notify::new(),
            wake,
        });
        let beater = Arc::clone(&member);
        Self { member, beating: tokio::spawn(async move { beater.beat().await }) }
    }

    /// The id that the member has in the group.
    pub(super) fn id(&self) -> &ByteString {
        &self.member.id
    }

    /// The topics that it reads.
    pub(super) fn topics(&self) -> BTreeSet<ByteString> {
        self.member.state.lock().topics.clone()
    }

    pub(super) fn subscribe(&self, topics: BTreeSet<ByteString>) {
        self.member.state.lock().topics = topics;
        self.member.has_changed.notify_one();
    }

    /// Notes that the caller is alive.
    pub(super) fn polled(&self) {
        self.member.state.lock().polled = Instant::now();
        self.member.has_polled();
    }

    pub(super) fn take_news(&self) -> News {
        std::mem::take(&mut self.member.state.lock().news)
    }

    /// Leaves the group.
    pub(super) async fn leave(self) -> Result<()> {
        self.beating.abort();
        let is_known = self.member.state.lock().epoch > 0;
        let left = self.member.leave().await;
        // One whose first heartbeat has no answer yet may or may not be in the group.
        if is_known { left } else { Ok(()) }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

impl Member {
    /// Sends heartbeats until the coordinator will not have the member.
    async fn beat(&self) {
        // What the coordinator has been told since the member joined or its connection failed.
        let mut told = None;
        let mut backoff = self.coordinator.cluster().backoff();
        loop {
            let wait = match self.beat_once(&mut told).await {
                Beat::Next(wait) => {
                    backoff.reset();
                    wait
                }
                Beat::Again => {
                    told = None;
                    sleep(backoff.next()).await;
                    Duration::ZERO
                }
                Beat::End => return,
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.has_changed.notified() => {}
            }
            if self.is_idle() {
                self.pause().await;
                told = None;
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.state.lock().polled.elapsed() > self.max_poll_interval
    }

    /// Leaves the group, and comes back with the next poll.
    async fn pause(&self) {
        let group = self.coordinator.key();
        tracing::warn!(%group, "no poll for max_poll_interval_ms: leaving the share group");
        // Should that fail, the session timeout does it.
        let _ = self.leave().await;
        self.lose();
        while self.is_idle() {
            self.has_changed.notified().await;
        }
    }

    fn has_polled(&self) {
        // Between heartbeats that would be one for each poll.
        if self.state.lock().epoch == JOINS {
            self.has_changed.notify_one();
        }
    }

    /// The member is out of the group: it has nothing, and joins as a new one.
    fn lose(&self) {
        let mut state = self.state.lock();
        state.epoch = JOINS;
        state.news.assigned = Some(BTreeSet::new());
        state.news.losses += 1;
        drop(state);
        self.wake.notify_one();
    }

    async fn beat_once(&self, told: &mut Option<BTreeSet<ByteString>>) -> Beat {
        let (request, tells) = self.request(told.as_ref());
        let joins = request.member_epoch == JOINS;
        match self.coordinator.call(request, i16::MAX, Duration::ZERO).await {
            Ok(response) => {
                let is_accepted = response.error_code == 0;
                let beat = self.on_response(response, joins);
                if is_accepted {
                    *told = Some(tells);
                }
                beat
            }
            Err(error) if error.kind() == ErrorKind::Retry => {
                self.coordinator.forget();
                tracing::debug!(group = %self.coordinator.key(), %error, "a heartbeat failed");
                Beat::Again
            }
            Err(error) => self.fail(error),
        }
    }

    fn on_response(&self, response: ShareGroupHeartbeatResponse, joins: bool) -> Beat {
        match ErrorCode::from(response.error_code) {
            ErrorCode::None => {
                let mut state = self.state.lock();
                state.epoch = response.member_epoch;
                if let Some(assignment) = response.assignment {
                    let each = assignment.topic_partitions.into_iter();
                    let keys = each.flat_map(|topic| {
                        let id = topic.topic_id;
                        topic.partitions.into_iter().map(move |index| (id, index))
                    });
                    state.news.assigned = Some(keys.collect());
                    self.wake.notify_one();
                }
                let interval = u64::try_from(response.heartbeat_interval_ms).unwrap_or_default().max(1);
                Beat::Next(Duration::from_millis(interval))
            }
            ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch | ErrorCode::GroupIdNotFound
                if !joins =>
            {
                self.lose();
                Beat::Again
            }
            code => {
                let (api, subject) = (ApiKey::ShareGroupHeartbeat, self.coordinator.subject());
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
        self.state.lock().news.failure = Some(error);
        self.wake.notify_one();
        Beat::End
    }

    /// The next heartbeat, which leaves out the topics if the coordinator has been told these; and the topics.
    fn request(
        &self,
        told: Option<&BTreeSet<ByteString>>,
    ) -> (ShareGroupHeartbeatRequest, BTreeSet<ByteString>) {
        let state = self.state.lock();
        let topics = state.topics.clone();
        let is_news = state.epoch == JOINS || told != Some(&topics);
        let request = ShareGroupHeartbeatRequest {
            group_id: self.coordinator.key().clone(),
            member_id: self.id.clone(),
            member_epoch: state.epoch,
            rack_id: self.rack.clone().filter(|_| is_news),
            subscribed_topic_names: is_news.then(|| topics.iter().cloned().collect()),
        };
        (request, topics)
    }

    async fn leave(&self) -> Result<()> {
        let request = ShareGroupHeartbeatRequest {
            group_id: self.coordinator.key().clone(),
            member_id: self.id.clone(),
            member_epoch: LEAVES,
            ..ShareGroupHeartbeatRequest::default()
        };
        let response = self.coordinator.call(request, i16::MAX, Duration::ZERO).await?;
        match ErrorCode::from(response.error_code) {
            ErrorCode::None
            | ErrorCode::UnknownMemberId
            | ErrorCode::FencedMemberEpoch
            | ErrorCode::GroupIdNotFound => Ok(()),
            code => Err(self.coordinator.refused(ApiKey::ShareGroupHeartbeat, code)),
        }
    }
}

/// The partitions of one topic each, as requests name them.
pub(super) fn by_topic<T>(items: impl IntoIterator<Item = (Key, T)>) -> BTreeMap<Uuid, Vec<(i32, T)>> {
    let mut topics: BTreeMap<Uuid, Vec<(i32, T)>> = BTreeMap::new();
    for ((topic, partition), what) in items {
        topics.entry(topic).or_default().push((partition, what));
    }
    topics
}
