//! Fetches: which to send, and what their answers mean for the partitions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::BoxFuture;
use thalweg_protocol::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, PartitionData};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, LeaderEpoch, NodeId, Offset, Records, TopicPartition, Uuid};
use tokio::time::Instant;

use super::fetch_session::FetchSession;
use super::fetched::FetchedBatches;
use super::position::{Known, PartitionState, Position, Search};
use super::read::visible;
use crate::by_leader::AnswersByPartition;
use crate::cluster::Cluster;
use crate::config::{ConsumerConfig, Isolation, OffsetReset};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{BrokerAddress, Metadata};
use crate::node::{Node, typed};
use crate::pool::Pool;

/// The last version of Fetch that names topics.
const NAMED_TOPICS: i16 = 12;

/// What of a partition was asked for, under which version of its state.
#[derive(Debug)]
pub(super) struct Asked {
    partition: TopicPartition,
    topic_id: Uuid,
    offset: Offset,
    version: u64,
    leader_epoch: LeaderEpoch,
}

/// Something that the fetcher waited for.
pub(super) enum FetchEvent {
    /// `is_full` says whether each partition has to be in the answer.
    Answered {
        node: NodeId,
        asked: Vec<Asked>,
        is_full: bool,
        answer: Result<FetchResponse>,
    },
    Opened {
        node: NodeId,
        opened: Result<()>,
    },
}

/// Sends fetches, one at a time to each broker.
pub(super) struct Fetcher {
    cluster: Arc<Cluster>,
    pool: Pool,
    isolation: Isolation,
    offset_reset: OffsetReset,
    template: FetchRequest,
    max_partition_bytes: i32,
    max_wait: Duration,
    busy: HashSet<NodeId>,
    /// The fetch sessions, by their broker.
    sessions: HashMap<NodeId, FetchSession>,
    /// Counts fetches that were answered, failures, and positions that were out of range.
    answered: u64,
    failures: u64,
    resets: u64,
    pub(super) wants_metadata: bool,
}

impl Fetcher {
    pub(super) fn new(cluster: Arc<Cluster>, config: &ConsumerConfig) -> Self {
        let template = FetchRequest {
            replica_id: -1,
            max_wait_ms: config.fetch_max_wait_ms,
            min_bytes: config.fetch_min_bytes,
            max_bytes: config.fetch_max_bytes,
            isolation_level: config.isolation.code(),
            rack_id: config.rack.as_deref().map(ByteString::from).unwrap_or_default(),
            ..FetchRequest::default()
        };
        Self {
            pool: cluster.new_pool(),
            cluster,
            isolation: config.isolation,
            offset_reset: config.offset_reset,
            template,
            max_partition_bytes: config.max_partition_fetch_bytes,
            max_wait: Duration::from_millis(u64::try_from(config.fetch_max_wait_ms).unwrap_or_default()),
            busy: HashSet::new(),
            sessions: HashMap::new(),
            answered: 0,
            failures: 0,
            resets: 0,
            wants_metadata: false,
        }
    }

    /// How many fetches were answered and failed, and how many positions were out of range.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        (self.answered, self.failures, self.resets)
    }

    /// Sends a fetch to each broker that leads a partition to be fetched and has none under way.
    pub(super) fn send(
        &mut self,
        partitions: &mut BTreeMap<TopicPartition, PartitionState>,
        now: Instant,
    ) -> Vec<BoxFuture<'static, FetchEvent>> {
        let metadata = self.cluster.metadata();
        let mut by_node: HashMap<NodeId, Vec<(TopicPartition, Offset)>> = HashMap::new();
        for (partition, state) in partitions.iter_mut() {
            let Some(offset) = state.fetchable(now) else { continue };
            let leader_epoch = metadata.leader(partition).map(|(_, epoch)| epoch);
            if leader_epoch.is_some_and(|epoch| state.must_validate(epoch)) {
                continue;
            }
            match self.replica(&metadata, partition, state) {
                Some(node) if self.busy.contains(&node) => {}
                Some(node) => by_node.entry(node).or_default().push((partition.clone(), offset)),
                None => {
                    self.wants_metadata = true;
                    let error = match metadata.topic(&partition.topic) {
                        Some(_) => metadata.no_leader(partition),
                        None => Error::UnknownTopic { topic: partition.topic.clone() },
                    };
                    state.failed(error, now);
                    self.hold(state, now);
                }
            }
        }
        let mut events = Vec::new();
        for (id, wanted) in by_node {
            let Some(broker) = metadata.broker(id) else { continue };
            self.busy.insert(id);
            match self.pool.open_node(broker) {
                Some(node) if let Some(until) = node.throttled_until() => {
                    self.busy.remove(&id);
                    for (partition, _) in wanted {
                        if let Some(state) = partitions.get_mut(&partition) {
                            state.not_before = Some(until);
                        }
                    }
                }
                Some(node) => events.push(self.fetch(id, &node, wanted, partitions, &metadata)),
                None => {
                    let opening = self.pool.node(broker);
                    events.push(Box::pin(async move {
                        FetchEvent::Opened { node: id, opened: opening.await.map(|_| ()) }
                    }));
                }
            }
        }
        events
    }

    /// The broker to read a partition from: a follower that was recommended, else the leader.
    fn replica(
        &self,
        metadata: &Metadata,
        partition: &TopicPartition,
        state: &PartitionState,
    ) -> Option<NodeId> {
        let preferred = state.preferred.filter(|preferred| metadata.broker(*preferred).is_some());
        let leader = metadata.leader(partition).map(|(leader, _)| leader);
        preferred.or(leader).filter(|node| metadata.broker(*node).is_some())
    }

    fn hold(&self, state: &mut PartitionState, now: Instant) {
        let config = self.cluster.config();
        let doubled = config.retry_backoff_ms.saturating_mul(1 << state.failures.min(20));
        state.failures = state.failures.saturating_add(1);
        state.not_before = Some(now + Duration::from_millis(doubled.min(config.retry_backoff_max_ms)));
    }

    fn fetch(
        &mut self,
        id: NodeId,
        node: &Arc<Node>,
        wanted: Vec<(TopicPartition, Offset)>,
        partitions: &mut BTreeMap<TopicPartition, PartitionState>,
        metadata: &Metadata,
    ) -> BoxFuture<'static, FetchEvent> {
        let mut asked = Vec::new();
        let mut fetched = Vec::new();
        for (partition, offset) in wanted {
            let Some(state) = partitions.get_mut(&partition) else { continue };
            state.is_asked = true;
            let topic_id = metadata.topic(&partition.topic).map_or(Uuid::ZERO, |topic| topic.id);
            let leader_epoch = metadata.leader(&partition).map_or(LeaderEpoch::UNKNOWN, |(_, epoch)| epoch);
            let data = FetchPartition {
                partition: partition.partition,
                current_leader_epoch: leader_epoch.0,
                fetch_offset: offset.0,
                partition_max_bytes: self.max_partition_bytes,
                ..FetchPartition::default()
            };
            fetched.push((partition.clone(), topic_id, data));
            asked.push(Asked { partition, topic_id, offset, version: state.version, leader_epoch });
        }
        let needs_names = asked.iter().any(|asked| asked.topic_id.is_zero());
        let last = if needs_names { NAMED_TOPICS } else { *FetchRequest::VERSIONS.end() };
        let version = match node.offered().pick(ApiKey::Fetch, *FetchRequest::VERSIONS.start()..=last) {
            Ok(version) => version,
            Err(error) => {
                let answered = FetchEvent::Answered { node: id, asked, is_full: true, answer: Err(error) };
                return Box::pin(std::future::ready(answered));
            }
        };
        let plan = self.sessions.entry(id).or_default().plan(fetched, version);
        let is_full = plan.is_full();
        let request = FetchRequest {
            session_id: plan.session_id,
            session_epoch: plan.session_epoch,
            topics: plan.topics,
            forgotten_topics_data: plan.forgotten,
            ..self.template.clone()
        };
        let answer = node.send(request.into_request(), version, self.max_wait);
        Box::pin(async move {
            let answer = answer.await.and_then(typed::<FetchRequest>);
            FetchEvent::Answered { node: id, asked, is_full, answer }
        })
    }

    /// Takes in what an answer says; returns the errors that the caller must hear of.
    pub(super) fn on(
        &mut self,
        event: FetchEvent,
        partitions: &mut BTreeMap<TopicPartition, PartitionState>,
    ) -> Vec<Error> {
        let now = Instant::now();
        match event {
            FetchEvent::Opened { node, opened } => {
                self.busy.remove(&node);
                let Err(error) = opened else { return Vec::new() };
                self.wants_metadata = true;
                let metadata = self.cluster.metadata();
                for (partition, state) in partitions.iter_mut() {
                    if state.fetchable(now).is_some()
                        && self.replica(&metadata, partition, state) == Some(node)
                    {
                        state.failed(error.clone(), now);
                    }
                }
                telling(error).into_iter().collect()
            }
            FetchEvent::Answered { node, asked, is_full, answer } => {
                self.busy.remove(&node);
                match answer.and_then(checked) {
                    Ok(response) => {
                        self.answered += 1;
                        self.on_response(node, asked, is_full, response, partitions, now)
                    }
                    Err(error) => {
                        let session = self.sessions.entry(node).or_default();
                        if session.failed(error.code()) {
                            tracing::debug!(node = node.0, %error, "another fetch session is opened");
                            for asked in &asked {
                                current(partitions, asked);
                            }
                            return Vec::new();
                        }
                        self.failures += 1;
                        self.wants_metadata = true;
                        for asked in asked {
                            if let Some(state) = current(partitions, &asked) {
                                state.preferred = None;
                                state.failed(error.clone(), now);
                                self.hold(state, now);
                            }
                        }
                        telling(error).into_iter().collect()
                    }
                }
            }
        }
    }

    fn on_response(
        &mut self,
        node: NodeId,
        asked: Vec<Asked>,
        is_full: bool,
        response: FetchResponse,
        partitions: &mut BTreeMap<TopicPartition, PartitionState>,
        now: Instant,
    ) -> Vec<Error> {
        let mut answers = AnswersByPartition::new();
        for topic in response.responses {
            for partition in topic.partitions {
                answers.insert(topic.topic_id, &topic.topic, partition.partition_index, partition);
            }
        }
        let endpoint = |id: NodeId| {
            let found = response.node_endpoints.iter().find(|node| node.node_id == id.0)?;
            let port = u16::try_from(found.port).ok()?;
            Some(BrokerAddress { id, host: found.host.clone(), port, rack: found.rack.clone() })
        };
        let mut errors = Vec::new();
        let mut session = self.sessions.remove(&node).unwrap_or_default();
        session.answered(response.session_id);
        for asked in asked {
            let answer = answers.take(asked.topic_id, &asked.partition);
            if let Some(answer) = answer.as_ref().filter(|answer| answer.error_code == 0) {
                // Even if the consumer is elsewhere by now: the broker does not say it again.
                session.learn(&asked.partition, self.known(answer));
            }
            let Some(state) = current(partitions, &asked) else { continue };
            let Some(answer) = answer else {
                match is_full {
                    true => self.hold(state, now),
                    false => {
                        state.succeeded();
                        state.validated = state.validated.max(asked.leader_epoch);
                        state.known = session.known(&asked.partition).or(state.known);
                    }
                }
                continue;
            };
            let leader = NodeId(answer.current_leader.leader_id);
            if leader != NodeId::NONE && answer.current_leader.leader_epoch >= 0 {
                let epoch = LeaderEpoch(answer.current_leader.leader_epoch);
                self.cluster.learn_leader(&asked.partition, leader, epoch, endpoint(leader));
            }
            if let Err(error) = self.on_answer(&asked, answer, state, now) {
                state.position = Position::Halted;
                errors.push(error);
            }
        }
        self.sessions.insert(node, session);
        errors
    }

    /// What an answer means for its partition. An error halts it.
    fn on_answer(
        &mut self,
        asked: &Asked,
        answer: PartitionData,
        state: &mut PartitionState,
        now: Instant,
    ) -> Result<()> {
        match ErrorCode::from(answer.error_code) {
            ErrorCode::None => {}
            ErrorCode::OffsetOutOfRange if state.preferred.is_some() => {
                state.preferred = None;
                return Ok(());
            }
            ErrorCode::OffsetOutOfRange => {
                self.resets += 1;
                let Some(spec) = self.offset_reset.spec() else {
                    let (partition, offset) = (asked.partition.clone(), asked.offset);
                    let log_start = Offset(answer.log_start_offset);
                    return Err(Error::OffsetOutOfRange { partition, offset, log_start });
                };
                state.position = Position::Wanted(Search::Log(spec));
                return Ok(());
            }
            code if code.is_retriable() || code == ErrorCode::UnknownServerError => {
                self.failures += 1;
                self.wants_metadata = true;
                state.preferred = None;
                let subject = asked.partition.to_string();
                state.failed(Error::Broker { api: ApiKey::Fetch, code, subject, message: None }, now);
                self.hold(state, now);
                return Ok(());
            }
            code => {
                let subject = asked.partition.to_string();
                return Err(Error::Broker { api: ApiKey::Fetch, code, subject, message: None });
            }
        }
        state.succeeded();
        state.validated = state.validated.max(asked.leader_epoch);
        if answer.preferred_read_replica >= 0 {
            state.preferred = Some(NodeId(answer.preferred_read_replica));
        }
        self.buffer(asked, answer, state)
    }

    fn buffer(&self, asked: &Asked, answer: PartitionData, state: &mut PartitionState) -> Result<()> {
        let known = self.known(&answer);
        state.known = Some(known);
        let partition = &asked.partition;
        let bytes = answer.records.map(Records::into_bytes).transpose().map_err(|error| {
            Error::UnreadableSegment { partition: partition.clone(), reason: error.to_string() }
        })?;
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
        let aborted = match self.isolation {
            Isolation::ReadCommitted => answer.aborted_transactions.unwrap_or_default(),
            Isolation::ReadUncommitted => Vec::new(),
        };
        let visible = visible(bytes, asked.offset, aborted).map_err(|damage| Error::DamagedBatch {
            partition: partition.clone(),
            offset: damage.offset,
            next_offset: damage.next_offset,
            source: damage.source,
        })?;
        if visible.next_offset == asked.offset {
            return Ok(());
        }
        let fetched = FetchedBatches {
            partition: partition.clone(),
            batches: visible.batches,
            position: asked.offset,
            next_offset: visible.next_offset,
            log_start: known.log_start,
            high_watermark: known.high_watermark,
            last_stable_offset: known.last_stable_offset,
            end: known.end,
        };
        state.buffered = Some((fetched, visible.leader_epoch.unwrap_or(LeaderEpoch::UNKNOWN)));
        Ok(())
    }

    fn known(&self, answer: &PartitionData) -> Known {
        let high_watermark = Offset(answer.high_watermark);
        let is_stable_known = answer.last_stable_offset >= 0;
        let last_stable_offset =
            if is_stable_known { Offset(answer.last_stable_offset) } else { high_watermark };
        let end = match self.isolation {
            Isolation::ReadCommitted => last_stable_offset,
            Isolation::ReadUncommitted => high_watermark,
        };
        Known { log_start: Offset(answer.log_start_offset), high_watermark, last_stable_offset, end }
    }
}

/// The error, if the caller must hear of it: not if it is expected to pass. It is tried again in any case, for a broker
/// can be replaced, and rights be granted.
fn telling(error: Error) -> Option<Error> {
    let passes = error.kind() == ErrorKind::Retry || error.code() == Some(ErrorCode::UnknownServerError);
    (!passes).then_some(error)
}

/// The partition's state, if it is still the one that was asked for; it is asked for no longer.
fn current<'a>(
    partitions: &'a mut BTreeMap<TopicPartition, PartitionState>,
    asked: &Asked,
) -> Option<&'a mut PartitionState> {
    let state = partitions.get_mut(&asked.partition).filter(|state| state.version == asked.version)?;
    state.is_asked = false;
    Some(state)
}

fn checked(response: FetchResponse) -> Result<FetchResponse> {
    match ErrorCode::from(response.error_code) {
        ErrorCode::None => Ok(response),
        code => Err(Error::Broker { api: ApiKey::Fetch, code, subject: "a fetch".to_owned(), message: None }),
    }
}
