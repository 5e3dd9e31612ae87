//! What goes to the brokers and what their answers mean: acquiring records, and saying what became of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::BoxFuture;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::share_acknowledge::ShareAcknowledgeResponse;
use thalweg_protocol::messages::share_fetch::{PartitionData, ShareFetchResponse};
use thalweg_protocol::{ErrorCode, LeaderEpoch, NodeId, Offset, Records, TopicPartition};
use tokio::time::Instant;

use super::acquired::{AcknowledgementOutcome, AcquiredBatches, AcquiredRange};
use super::link::{Answer, Answered, Link, Sender, session_gone};
use super::parcel::{Parcel, Saying, Verdict, refused, unknown};
use super::read::{Contents, Stretch, contents};
use super::session::{Key, SessionNumber, ShareSession};
use crate::cluster::Cluster;
use crate::config::{AcquireMode, ShareConsumerConfig};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{BrokerAddress, Metadata};
use crate::pool::Pool;

/// Something that was waited for.
pub(super) enum Event {
    Answered(Answered),
    Opened { node: NodeId, opened: Result<()> },
}

/// What a fetch brought of one partition, which nobody has seen yet.
pub(super) struct Arrived {
    pub(super) key: Key,
    pub(super) session: SessionNumber,
    pub(super) batches: AcquiredBatches,
    pub(super) gaps: Vec<Stretch>,
    pub(super) unread: Vec<Stretch>,
}

/// A pause before a partition is asked for again.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    until: Option<Instant>,
    failures: u32,
}

/// Sends requests, one at a time to each broker.
pub(super) struct ShareFetcher {
    cluster: Arc<Cluster>,
    pool: Pool,
    config: ShareConsumerConfig,
    links: HashMap<NodeId, Link>,
    holds: HashMap<Key, Hold>,
    /// Sessions opened so far.
    sessions: u64,
    /// The broker that was asked last, where one is asked at a time.
    last_asked: NodeId,
    /// What came, in order.
    pub(super) arrived: VecDeque<Vec<Arrived>>,
    pub(super) outcomes: Vec<AcknowledgementOutcome>,
    pub(super) errors: VecDeque<Error>,
    pub(super) lock_timeout: Option<Duration>,
    pub(super) wants_metadata: bool,
    answered: u64,
    failures: u64,
}

impl ShareFetcher {
    pub(super) fn new(cluster: Arc<Cluster>, config: ShareConsumerConfig) -> Self {
        Self {
            pool: cluster.new_pool(),
            cluster,
            config,
            links: HashMap::new(),
            holds: HashMap::new(),
            sessions: 0,
            last_asked: NodeId::NONE,
            arrived: VecDeque::new(),
            outcomes: Vec::new(),
            errors: VecDeque::new(),
            lock_timeout: None,
            wants_metadata: false,
            answered: 0,
            failures: 0,
        }
    }

    /// How many fetches were answered and failed, and how many sessions were opened.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        (self.answered, self.failures, self.sessions)
    }

    /// Takes over what is to be said of records of one partition that came in this session.
    pub(super) fn post(&mut self, sayings: BTreeMap<SessionNumber, BTreeMap<Key, Saying>>) {
        let deadline = Instant::now() + Duration::from_millis(self.cluster.config().api_timeout_ms);
        for (number, sayings) in sayings {
            let parcel = Parcel { sayings, ..Parcel::new(deadline) };
            let mut links = self.links.values_mut();
            let is_its =
                |link: &&mut Link| link.session.as_ref().is_some_and(|(session, _)| session.number == number);
            match links.find(is_its) {
                Some(link) => link.outbox.push_back(parcel),
                None => self.outcomes.extend(parcel.ended(|at| Err(refused(at, session_gone(at))))),
            }
        }
    }

    /// Whether something that was said has not been answered.
    pub(super) fn has_unanswered(&self) -> bool {
        self.links.values().any(|link| !link.outbox.is_empty() || link.tells > 0)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.links.values().any(|link| link.is_busy)
    }

    /// Whether the broker of a session that is open knows this version of an API.
    pub(super) fn check_version(&self, api: ApiKey, version: i16) -> Result<()> {
        let nodes = self.links.values().filter_map(|link| link.session.as_ref());
        for (_, node) in nodes {
            node.offered().pick(api, version..=i16::MAX)?;
        }
        Ok(())
    }

    /// Sends what is to be said, and a fetch to each broker that leads a partition of `assigned`, if they may wait so long.
    pub(super) fn send(
        &mut self,
        member: &ByteString,
        assigned: &BTreeSet<Key>,
        max_wait: Option<Duration>,
        now: Instant,
    ) -> Vec<BoxFuture<'static, Event>> {
        let metadata = self.cluster.metadata();
        let mut wanted = match max_wait {
            Some(_) => self.wanted(assigned, &metadata, now),
            None => BTreeMap::new(),
        };
        if self.config.acquire_mode == AcquireMode::RecordLimit {
            self.keep_one(&mut wanted);
        }
        let mut ids: BTreeSet<NodeId> = wanted.keys().copied().collect();
        ids.extend(self.links.iter().filter(|(_, link)| !link.outbox.is_empty()).map(|(id, _)| *id));
        let mut events = Vec::new();
        for id in ids {
            let wanted = wanted.remove(&id).unwrap_or_default();
            events.extend(self.send_to(id, member, wanted, max_wait, &metadata, now));
        }
        events
    }

    fn send_to(
        &mut self,
        id: NodeId,
        member: &ByteString,
        wanted: BTreeMap<Key, TopicPartition>,
        max_wait: Option<Duration>,
        metadata: &Metadata,
        now: Instant,
    ) -> Option<BoxFuture<'static, Event>> {
        let link = self.links.entry(id).or_default();
        if link.is_busy || link.not_before.is_some_and(|until| until > now) {
            return None;
        }
        if link.session.as_ref().is_some_and(|(_, node)| node.is_closed()) {
            // With the connection everything that came over it is gone.
            let lost = link.drop_session();
            self.end_all(lost, |at| refused(at, session_gone(at)));
            return self.send_to(id, member, wanted, max_wait, metadata, now);
        }
        if link.session.is_none() {
            let broker = metadata.broker(id).filter(|_| !wanted.is_empty())?;
            let Some(node) = self.pool.open_node(broker) else {
                link.is_busy = true;
                let opening = self.pool.node(broker);
                return Some(Box::pin(async move {
                    Event::Opened { node: id, opened: opening.await.map(|_| ()) }
                }));
            };
            self.sessions += 1;
            link.session = Some((ShareSession::new(SessionNumber(self.sessions)), node));
        }
        if let Some(until) = link.session.as_ref().and_then(|(_, node)| node.throttled_until()) {
            link.not_before = Some(until);
            return None;
        }
        let sender = Sender { config: &self.config, member };
        let sent = match max_wait {
            Some(max_wait) if !wanted.is_empty() && link.fits_fetch(&wanted) => {
                link.fetch(id, wanted, max_wait, &sender)
            }
            _ => link.acknowledge(id, &sender),
        }?;
        Some(Box::pin(async move { Event::Answered(sent.await) }))
    }

    /// Ends all sessions that are open with a last word.
    pub(super) fn end(&mut self, member: &ByteString) -> Vec<BoxFuture<'static, Event>> {
        let mut events: Vec<BoxFuture<'static, Event>> = Vec::new();
        let mut unsent = VecDeque::new();
        for (id, link) in &mut self.links {
            let sender = Sender { config: &self.config, member };
            // Only the first may go with it, for there is one word for each record.
            if let Some(last) = link.end(*id, &sender) {
                events.push(Box::pin(async move { Event::Answered(last.await) }));
            }
            unsent.extend(link.drop_session());
        }
        self.end_all(unsent, |at| refused(at, session_gone(at)));
        self.holds.clear();
        events
    }

    /// The partitions to ask for, by their leaders.
    fn wanted(
        &mut self,
        assigned: &BTreeSet<Key>,
        metadata: &Metadata,
        now: Instant,
    ) -> BTreeMap<NodeId, BTreeMap<Key, TopicPartition>> {
        self.holds.retain(|key, _| assigned.contains(key));
        let mut wanted: BTreeMap<NodeId, BTreeMap<Key, TopicPartition>> = BTreeMap::new();
        for key in assigned {
            if self.holds.get(key).and_then(|hold| hold.until).is_some_and(|until| until > now) {
                continue;
            }
            let name = metadata.name_of(key.0);
            let partition = name.map(|name| TopicPartition::new(name.clone(), key.1));
            let leader = partition.as_ref().and_then(|partition| metadata.leader(partition));
            match (partition, leader) {
                (Some(partition), Some((leader, _))) if metadata.broker(leader).is_some() => {
                    wanted.entry(leader).or_default().insert(*key, partition);
                }
                _ => {
                    self.wants_metadata = true;
                    self.hold(*key, now);
                }
            }
        }
        wanted
    }

    /// Leaves one broker at a time, each in its turn.
    fn keep_one(&mut self, wanted: &mut BTreeMap<NodeId, BTreeMap<Key, TopicPartition>>) {
        if self.links.values().any(|link| link.is_busy) {
            return wanted.clear();
        }
        let next = wanted.keys().find(|id| **id > self.last_asked).or_else(|| wanted.keys().next()).copied();
        if let Some(next) = next {
            self.last_asked = next;
            wanted.retain(|id, _| *id == next);
        }
    }

    fn hold(&mut self, key: Key, now: Instant) {
        let hold = self.holds.entry(key).or_default();
        hold.until = Some(now + pause(&self.cluster, hold.failures));
        hold.failures = hold.failures.saturating_add(1);
    }

    /// When the next broker or partition is due that waits as of `now`.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        let links = self.links.values().filter_map(|link| link.not_before);
        links.chain(self.holds.values().filter_map(|hold| hold.until)).filter(|due| *due > now).min()
    }

    /// Takes in what has happened.
    pub(super) fn on(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Opened { node, opened } => {
                if let Some(link) = self.links.get_mut(&node) {
                    link.is_busy = false;
                }
                if let Err(error) = opened {
                    self.failed(node, &error, now);
                    self.tell(error);
                }
            }
            Event::Answered(Answered { node, session, parcel, answer }) => {
                if let Some(link) = self.links.get_mut(&node) {
                    link.is_busy = false;
                    link.tells = link.tells.saturating_sub(usize::from(parcel.is_some()));
                }
                match answer {
                    Answer::Fetched { wanted, answer } => match answer.and_then(checked_fetch) {
                        Ok(response) => self.on_fetched(node, session, parcel, wanted, response, now),
                        Err(error) => self.on_failure(node, session, parcel, error, now),
                    },
                    Answer::Acknowledged(answer) => match answer.and_then(checked_acknowledge) {
                        Ok(response) => self.on_acknowledged(node, session, parcel, response, now),
                        Err(error) => self.on_failure(node, session, parcel, error, now),
                    },
                }
            }
        }
    }

    /// A request without an answer, or one that was refused as a whole: the session is over.
    fn on_failure(
        &mut self,
        node: NodeId,
        session: SessionNumber,
        parcel: Option<Parcel>,
        error: Error,
        now: Instant,
    ) {
        self.failures += 1;
        if let Some(parcel) = parcel {
            let is_lost = matches!(error, Error::Connection { .. });
            let source = error.clone();
            self.outcomes.extend(parcel.ended(|at| match is_lost {
                true => Err(unknown(at, source.clone())),
                false => Err(refused(at, source.clone())),
            }));
        }
        let Some(link) = self.links.get_mut(&node) else { return };
        if link.session.as_ref().is_some_and(|(current, _)| current.number == session) {
            let lost = link.drop_session();
            let source = error.clone();
            self.end_all(lost, |at| refused(at, source.clone()));
        }
        let is_about_session = matches!(
            error.code(),
            Some(ErrorCode::ShareSessionNotFound | ErrorCode::InvalidShareSessionEpoch)
        );
        // One that follows the other at once is not about the session alone.
        if is_about_session && self.links.get(&node).is_some_and(|link| link.failures == 0) {
            tracing::debug!(node = node.0, %error, "another share session is opened");
            if let Some(link) = self.links.get_mut(&node) {
                link.failures = 1;
            }
            return;
        }
        self.failed(node, &error, now);
        self.tell(error);
    }

    fn failed(&mut self, node: NodeId, error: &Error, now: Instant) {
        tracing::debug!(node = node.0, %error, "a broker is asked again later");
        self.wants_metadata = true;
        if let Some(link) = self.links.get_mut(&node) {
            link.not_before = Some(now + pause(&self.cluster, link.failures));
            link.failures = link.failures.saturating_add(1);
        }
    }

    /// Keeps the error for the caller, if it must hear of it: not if it is expected to pass. It is tried again in any case.
    fn tell(&mut self, error: Error) {
        let passes = error.kind() == ErrorKind::Retry || error.code() == Some(ErrorCode::UnknownServerError);
        if !passes {
            self.errors.push_back(error);
        }
    }

    /// The session goes on; `None` if it is another one by now.
    fn go_on(&mut self, node: NodeId, number: SessionNumber) {
        let Some(link) = self.links.get_mut(&node) else { return };
        (link.failures, link.not_before) = (0, None);
        if let Some((session, _)) = link.session.as_mut().filter(|(session, _)| session.number == number) {
            session.answered();
        }
    }

    fn on_fetched(
        &mut self,
        node: NodeId,
        session: SessionNumber,
        parcel: Option<Parcel>,
        wanted: BTreeMap<Key, TopicPartition>,
        response: ShareFetchResponse,
        now: Instant,
    ) {
        self.answered += 1;
        self.go_on(node, session);
        self.note_lock_timeout(response.acquisition_lock_timeout_ms);
        let endpoint = |id: NodeId| {
            let found = response.node_endpoints.iter().find(|node| node.node_id == id.0)?;
            let port = u16::try_from(found.port).ok()?;
            Some(BrokerAddress { id, host: found.host.clone(), port, rack: found.rack.clone() })
        };
        let (mut arrived, mut told) = (Vec::new(), BTreeMap::new());
        for topic in response.responses {
            for answer in topic.partitions {
                let key = (topic.topic_id, answer.partition_index);
                told.insert(key, (answer.acknowledge_error_code, answer.acknowledge_error_message.clone()));
                let Some(partition) = wanted.get(&key) else { continue };
                let leader = NodeId(answer.current_leader.leader_id);
                // Where nothing is told, both are 0.
                if leader != NodeId::NONE && answer.current_leader.leader_epoch > 0 {
                    let epoch = LeaderEpoch(answer.current_leader.leader_epoch);
                    self.cluster.learn_leader(partition, leader, epoch, endpoint(leader));
                }
                arrived.extend(self.on_partition(key, partition, session, answer, now));
            }
        }
        if !arrived.is_empty() {
            self.arrived.push_back(arrived);
        }
        if let Some(parcel) = parcel {
            self.settle(node, session, parcel, ApiKey::ShareFetch, &told, now);
        }
    }

    /// What an answer means for one of its partitions.
    fn on_partition(
        &mut self,
        key: Key,
        partition: &TopicPartition,
        session: SessionNumber,
        answer: PartitionData,
        now: Instant,
    ) -> Option<Arrived> {
        let code = ErrorCode::from(answer.error_code);
        if !code.is_none() {
            self.failures += 1;
            self.wants_metadata = true;
            self.hold(key, now);
            let (subject, message) = (partition.to_string(), answer.error_message);
            self.tell(Error::Broker { api: ApiKey::ShareFetch, code, subject, message });
            return None;
        }
        self.holds.remove(&key);
        if answer.acquired_records.is_empty() {
            return None;
        }
        let ranges = answer.acquired_records.iter().map(|range| AcquiredRange {
            first: Offset(range.first_offset),
            last: Offset(range.last_offset),
            delivery_count: range.delivery_count,
        });
        let ranges: Vec<AcquiredRange> = ranges.collect();
        let found = match answer.records.map(Records::into_bytes).transpose() {
            Ok(bytes) => contents(bytes.unwrap_or_default(), &ranges),
            Err(error) => {
                let reason = error.to_string();
                tracing::warn!(%partition, reason, "acquired records are released: their segment cannot be read");
                let all = |range: &AcquiredRange| Stretch { first: range.first, last: range.last };
                Contents { unread: ranges.iter().map(all).collect(), ..Contents::default() }
            }
        };
        if let Some(damage) = found.damage {
            let (offset, next_offset) = (damage.offset, damage.next_offset);
            let (partition, source) = (partition.clone(), damage.source);
            self.errors.push_back(Error::UnreadableRecords { partition, offset, next_offset, source });
        }
        let Contents { batches, ranges, gaps, unread, .. } = found;
        let batches = AcquiredBatches { partition: partition.clone(), batches, ranges };
        Some(Arrived { key, session, batches, gaps, unread })
    }

    fn on_acknowledged(
        &mut self,
        node: NodeId,
        session: SessionNumber,
        parcel: Option<Parcel>,
        response: ShareAcknowledgeResponse,
        now: Instant,
    ) {
        self.go_on(node, session);
        self.note_lock_timeout(response.acquisition_lock_timeout_ms);
        let mut told = BTreeMap::new();
        for topic in response.responses {
            for answer in topic.partitions {
                told.insert(
                    (topic.topic_id, answer.partition_index),
                    (answer.error_code, answer.error_message),
                );
            }
        }
        if let Some(parcel) = parcel {
            self.settle(node, session, parcel, ApiKey::ShareAcknowledge, &told, now);
        }
    }

    fn note_lock_timeout(&mut self, ms: i32) {
        if let Some(ms) = u64::try_from(ms).ok().filter(|ms| *ms > 0) {
            self.lock_timeout = Some(Duration::from_millis(ms));
        }
    }

    /// Takes in what became of a parcel, of which the answer told a code for each partition.
    fn settle(
        &mut self,
        node: NodeId,
        session: SessionNumber,
        parcel: Parcel,
        api: ApiKey,
        told: &BTreeMap<Key, (i16, Option<ByteString>)>,
        now: Instant,
    ) {
        let mut again = Parcel { is_repeated: true, ..Parcel::new(parcel.deadline) };
        let terms = Parcel { is_repeated: parcel.is_repeated, ..Parcel::new(parcel.deadline) };
        for (key, saying) in parcel.sayings {
            let error = match told.get(&key) {
                Some((0, _)) => {
                    self.outcomes.extend(saying.ended(|_| Ok(())));
                    continue;
                }
                Some((code, message)) => {
                    let (code, subject) = (ErrorCode::from(*code), saying.partition.to_string());
                    if matches!(code, ErrorCode::NotLeaderOrFollower | ErrorCode::FencedLeaderEpoch) {
                        self.wants_metadata = true;
                    }
                    Error::Broker { api, code, subject, message: message.clone() }
                }
                None => {
                    let reason = "a partition of which something was said is missing from it";
                    let missing = Error::BadAnswer { api, reason };
                    self.outcomes.extend(saying.ended(|at| Err(unknown(at, missing))));
                    continue;
                }
            };
            match terms.judge(&saying.partition, error, now) {
                Verdict::Done(result) => self.outcomes.extend(saying.ended(|_| result)),
                Verdict::Again => {
                    again.sayings.insert(key, saying);
                }
            }
        }
        if again.sayings.is_empty() {
            return;
        }
        let Some(link) = self.links.get_mut(&node) else { return };
        match link.session.as_ref().is_some_and(|(current, _)| current.number == session) {
            true => {
                link.outbox.push_front(again);
                link.not_before = Some(now + pause(&self.cluster, 0));
            }
            false => self.outcomes.extend(again.ended(|at| Err(unknown(at, session_gone(at))))),
        }
    }

    fn end_all(&mut self, parcels: impl IntoIterator<Item = Parcel>, why: impl Fn(&TopicPartition) -> Error) {
        for parcel in parcels {
            self.outcomes.extend(parcel.ended(|at| Err(why(at))));
        }
    }

    /// Gives up what has not been sent, because it is too late.
    pub(super) fn give_up(&mut self, late: &Error) {
        let unsent: Vec<Parcel> =
            self.links.values_mut().flat_map(|link| std::mem::take(&mut link.outbox)).collect();
        for parcel in unsent {
            // What was refused before may have taken effect all the same.
            let why = if parcel.is_repeated { unknown } else { refused };
            self.outcomes.extend(parcel.ended(|at| Err(why(at, late.clone()))));
        }
    }
}

/// The pause after so many failures.
fn pause(cluster: &Cluster, failures: u32) -> Duration {
    let config = cluster.config();
    let doubled = config.retry_backoff_ms.saturating_mul(1 << failures.min(20));
    Duration::from_millis(doubled.min(config.retry_backoff_max_ms))
}

fn checked_fetch(response: ShareFetchResponse) -> Result<ShareFetchResponse> {
    match ErrorCode::from(response.error_code) {
        ErrorCode::None => Ok(response),
        code => {
            let (api, subject) = (ApiKey::ShareFetch, "a share group".to_owned());
            Err(Error::Broker { api, code, subject, message: response.error_message })
        }
    }
}

fn checked_acknowledge(response: ShareAcknowledgeResponse) -> Result<ShareAcknowledgeResponse> {
    match ErrorCode::from(response.error_code) {
        ErrorCode::None => Ok(response),
        code => {
            let (api, subject) = (ApiKey::ShareAcknowledge, "a share group".to_owned());
            Err(Error::Broker { api, code, subject, message: response.error_message })
        }
    }
}
