//! A broker of a few hundred lines, whose answers can be lost, refused and held back by a script.
//!
//! It keeps logs in memory, checks sequence numbers as a broker does (KIP-98), and has two nodes that share
//! the logs, so that leaders can move. Requests stay typed; nothing goes over a socket.

mod coordinated;
mod group;
mod limits;
mod partition;
mod queue;
mod transaction;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_client::ClientConfig;
use thalweg_protocol::messages::add_partitions_to_txn::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResponse, AddPartitionsToTxnTopicResult,
};
use thalweg_protocol::messages::api_versions::{ApiVersion, ApiVersionsResponse, FinalizedFeatureKey};
use thalweg_protocol::messages::create_topics::{CreatableTopic, CreatableTopicResult, CreateTopicsResponse};
use thalweg_protocol::messages::delete_topics::{DeletableTopicResult, DeleteTopicsResponse};
use thalweg_protocol::messages::fetch::{FetchRequest, FetchResponse, FetchableTopicResponse, PartitionData};
use thalweg_protocol::messages::find_coordinator::{Coordinator, FindCoordinatorResponse};
use thalweg_protocol::messages::heartbeat::HeartbeatResponse;
use thalweg_protocol::messages::leave_group::LeaveGroupResponse;
use thalweg_protocol::messages::list_offsets::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use thalweg_protocol::messages::metadata::{
    MetadataRequest, MetadataResponse, MetadataResponseBroker, MetadataResponsePartition,
    MetadataResponseTopic,
};
use thalweg_protocol::messages::produce::{
    LeaderIdAndEpoch, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse,
};
use thalweg_protocol::messages::sync_group::SyncGroupResponse;
use thalweg_protocol::messages::{ApiKey, Request, Response};
use thalweg_protocol::record::RecordBatch;
use thalweg_protocol::{
    Connect, ConnectFuture, Connection, ConnectionError, ErrorCode, Records, ResponseFuture, Scratch, Uuid,
};
use tokio::sync::oneshot;

use self::coordinated::Coordinated;
use self::limits::Limits;
use self::partition::Partition;
use self::queue::Queue;
use self::transaction::Transactional;

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is answered.
    Answered,
    /// The connection breaks before it arrives.
    Lost,
    /// It takes effect, but the connection breaks before the answer.
    AnswerLost,
    /// It is refused, for each of its partitions.
    Refused(ErrorCode),
    /// A request for metadata or a fetch is refused as a whole.
    RefusedWhole(ErrorCode),
    /// It is answered when [`Fake::release`] is called.
    Held,
}

/// The topic that there is.
pub const TOPIC: &str = "topic";

/// A cluster of two nodes with one topic.
#[derive(Clone)]
pub struct Fake {
    state: Arc<Mutex<State>>,
}

struct State {
    /// Whether the topic exists, and how often it has been created.
    exists: bool,
    created: u8,
    /// Names of others.
    others: Vec<ByteString>,
    partitions: Vec<Partition>,
    /// What happens to the next requests of an API; after them all are answered.
    fates: HashMap<ApiKey, VecDeque<Fate>>,
    /// All requests so far, with their node and version.
    requests: Vec<(i32, i16, Request)>,
    /// Counts how often all connections were broken.
    connections_until: u32,
    held: Vec<(oneshot::Sender<Result<Response, ConnectionError>>, Response)>,
    /// How far the versions are limited, by API.
    max_versions: HashMap<ApiKey, i16>,
    transaction_version: i16,
    next_producer_id: i64,
    transactional: Option<Transactional>,
    /// How transactions ended, in order.
    ended: Vec<bool>,
    /// The group's generation, and what its only member has assigned to itself.
    generation: i32,
    assignment: Bytes,
    offsets: HashMap<i32, i64>,
    limits: Limits,
    coordinated: Coordinated,
    queue: Queue,
}

struct FakeConnection {
    fake: Fake,
    node: i32,
    opened_after: u32,
    is_broken: Mutex<bool>,
}

impl Fake {
    pub fn new(partitions: usize) -> Self {
        let state = State {
            exists: true,
            created: 1,
            others: Vec::new(),
            partitions: (0..partitions).map(|_| Partition::new()).collect(),
            fates: HashMap::new(),
            requests: Vec::new(),
            connections_until: 0,
            held: Vec::new(),
            max_versions: HashMap::new(),
            transaction_version: 2,
            next_producer_id: 1,
            transactional: None,
            ended: Vec::new(),
            generation: 0,
            assignment: Bytes::new(),
            offsets: HashMap::new(),
            limits: Limits::default(),
            coordinated: Coordinated::default(),
            queue: Queue::default(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// As a cluster from before KIP-890.
    pub fn with_old_transactions(self) -> Self {
        self.state.lock().transaction_version = 0;
        self.limit(ApiKey::EndTxn, 4).limit(ApiKey::Produce, 11).limit(ApiKey::TxnOffsetCommit, 4)
    }

    /// Offers an API up to this version only.
    pub fn limit(self, api: ApiKey, version: i16) -> Self {
        self.state.lock().max_versions.insert(api, version);
        self
    }

    /// Does not offer an API at all.
    pub fn without(self, api: ApiKey) -> Self {
        self.limit(api, -1)
    }

    /// A configuration that reaches it, with pauses that suit a test.
    pub fn config(&self) -> ClientConfig {
        ClientConfig {
            retry_backoff_ms: 1,
            retry_backoff_max_ms: 4,
            request_timeout_ms: 2_000,
            api_timeout_ms: 300,
            unknown_topic_wait_ms: 20,
            seed: Some(1),
            ..ClientConfig::with_connector(Arc::new(self.clone()))
        }
    }

    /// What happens to the next requests of this API.
    pub fn script(&self, api: ApiKey, fates: impl IntoIterator<Item = Fate>) {
        self.state.lock().fates.entry(api).or_default().extend(fates);
    }

    /// Forgets what is left of a script.
    pub fn end_script(&self, api: ApiKey) {
        self.state.lock().fates.remove(&api);
    }

    pub fn move_leader(&self, partition: usize, leader: i32) {
        let mut state = self.state.lock();
        state.partitions[partition].leader = leader;
        state.partitions[partition].epoch += 1;
    }

    pub fn add_partition(&self) {
        self.state.lock().partitions.push(Partition::new());
    }

    pub fn delete_topic(&self) {
        self.state.lock().exists = false;
    }

    /// Creates the topic, when it has been deleted.
    pub fn create_topic(&self, partitions: usize) {
        self.state.lock().create_topic(partitions);
    }

    pub fn partitions(&self) -> usize {
        self.state.lock().partitions.len()
    }

    /// What the group has committed for a partition.
    pub fn committed(&self, partition: i32) -> Option<i64> {
        self.state.lock().offsets.get(&partition).copied()
    }

    /// Answers what has been held back.
    pub fn release(&self) {
        let held = std::mem::take(&mut self.state.lock().held);
        for (answer, response) in held {
            let _ = answer.send(Ok(response));
        }
    }

    pub fn held(&self) -> usize {
        self.state.lock().held.len()
    }

    /// All requests of an API so far, with the node they went to and their version.
    pub fn requests(&self, api: ApiKey) -> Vec<(i32, i16, Request)> {
        let state = self.state.lock();
        state.requests.iter().filter(|(_, _, request)| request.api_key() == api).cloned().collect()
    }

    pub fn ended(&self) -> Vec<bool> {
        self.state.lock().ended.clone()
    }

    /// The values in a partition, in order.
    pub fn values(&self, partition: usize) -> Vec<String> {
        let mut scratch = Scratch::new(1 << 20);
        let mut values = Vec::new();
        for batch in &self.state.lock().partitions[partition].log {
            for record in batch.records(&mut scratch).expect("it was checked") {
                let value = record.expect("it was checked").value.unwrap_or_default().to_vec();
                values.push(String::from_utf8(value).expect("tests write text"));
            }
        }
        values
    }

    /// Damages a batch of a partition.
    pub fn damage(&self, partition: usize, batch: usize) {
        let mut state = self.state.lock();
        let batch = &mut state.partitions[partition].log[batch];
        let mut bytes = BytesMut::from(&batch.bytes()[..]);
        let at = bytes.len() - 1;
        bytes[at] ^= 1;
        *batch = RecordBatch::only(bytes.freeze()).expect("the header is whole");
    }

    /// Breaks all connections that there are.
    pub fn break_connections(&self) {
        self.state.lock().connections_until += 1;
    }
}

impl Connect for Fake {
    fn connect(&self, host: &str, port: u16) -> ConnectFuture {
        let node = host.strip_prefix("node-").and_then(|node| node.parse().ok()).unwrap_or(1);
        let opened_after = self.state.lock().connections_until;
        let connection =
            FakeConnection { fake: self.clone(), node, opened_after, is_broken: Mutex::new(false) };
        let address = format!("{host}:{port}");
        let fate = self.state.lock().next_fate(ApiKey::SaslHandshake);
        Box::pin(async move {
            match fate {
                Fate::Answered => Ok(Arc::new(connection) as Arc<dyn Connection>),
                _ => Err(ConnectionError::Refused { address, reason: "the script says so".to_owned() }),
            }
        })
    }
}

impl Connection for FakeConnection {
    fn send(&self, request: Request, version: i16) -> ResponseFuture {
        let closed = || ConnectionError::Closed { reason: "the script says so".to_owned() };
        if self.is_closed() {
            return Box::pin(async move { Err(closed()) });
        }
        let mut is_broken = self.is_broken.lock();
        let mut state = self.fake.state.lock();
        let api = request.api_key();
        state.requests.push((self.node, version, request.clone()));
        let fate = state.next_fate(api);
        if fate == Fate::Lost {
            *is_broken = true;
            return Box::pin(async move { Err(closed()) });
        }
        let refusal = if let Fate::Refused(code) = fate { Some(code) } else { None };
        let mut response = state.answer(self.node, request, refusal);
        match (fate, &mut response) {
            (Fate::RefusedWhole(code), Response::Fetch(fetched)) => {
                fetched.error_code = code.code();
                fetched.responses.clear();
            }
            (Fate::RefusedWhole(code), Response::Metadata(metadata)) => {
                *metadata = MetadataResponse { error_code: code.code(), ..MetadataResponse::default() };
            }
            _ => {}
        }
        match fate {
            Fate::AnswerLost => {
                *is_broken = true;
                Box::pin(async move { Err(closed()) })
            }
            Fate::Held => {
                let (answer, answered) = oneshot::channel();
                state.held.push((answer, response));
                Box::pin(async move { answered.await.unwrap_or_else(|_| Err(closed())) })
            }
            _ => Box::pin(async move {
                // As over a network, the answer is not there at once.
                tokio::task::yield_now().await;
                Ok(response)
            }),
        }
    }

    fn is_closed(&self) -> bool {
        *self.is_broken.lock() || self.fake.state.lock().connections_until > self.opened_after
    }
}

impl State {
    fn next_fate(&mut self, api: ApiKey) -> Fate {
        self.fates.get_mut(&api).and_then(VecDeque::pop_front).unwrap_or(Fate::Answered)
    }

    fn answer(&mut self, node: i32, request: Request, refusal: Option<ErrorCode>) -> Response {
        let code = refusal.unwrap_or(ErrorCode::None).code();
        match request {
            Request::ApiVersions(_) => self.versions().into(),
            Request::Metadata(request) => self.metadata(request, code).into(),
            Request::CreateTopics(request) => {
                let created = |(at, topic): (usize, CreatableTopic)| {
                    // Of several topics a refusal is the last one's, all others are created.
                    let code = if at + 1 == request.topics.len() { code } else { 0 };
                    self.answer_create(topic, code)
                };
                let topics = request.topics.clone().into_iter().enumerate().map(created).collect();
                CreateTopicsResponse { topics, ..CreateTopicsResponse::default() }.into()
            }
            Request::DeleteTopics(request) => {
                let name = request.topics[0].name.clone();
                let code = match code {
                    0 if !self.exists => ErrorCode::UnknownTopicOrPartition.code(),
                    code => code,
                };
                self.exists &= code != 0;
                let result =
                    DeletableTopicResult { name, error_code: code, ..DeletableTopicResult::default() };
                DeleteTopicsResponse { responses: vec![result], ..DeleteTopicsResponse::default() }.into()
            }
            Request::FindCoordinator(request) => FindCoordinatorResponse {
                coordinators: vec![Coordinator {
                    key: request.coordinator_keys[0].clone(),
                    node_id: 1,
                    host: ByteString::from_static("node-1"),
                    port: 1,
                    error_code: code,
                    ..Coordinator::default()
                }],
                ..FindCoordinatorResponse::default()
            }
            .into(),
            Request::InitProducerId(request) => self.init_producer(&request, code).into(),
            Request::Produce(request) => self.produce(node, request, refusal).into(),
            Request::Fetch(request) => self.fetch(node, &request, refusal).into(),
            Request::ListOffsets(request) => {
                let partition =
                    |topic: &ByteString, partition: i32, time: i64| ListOffsetsPartitionResponse {
                        partition_index: partition,
                        error_code: code,
                        offset: if time == -2 { 0 } else { self.at(topic, partition).end },
                        ..ListOffsetsPartitionResponse::default()
                    };
                let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
                    name: topic.name.clone(),
                    partitions: topic
                        .partitions
                        .iter()
                        .map(|asked| partition(&topic.name, asked.partition_index, asked.timestamp))
                        .collect(),
                });
                ListOffsetsResponse { topics: topics.collect(), ..ListOffsetsResponse::default() }.into()
            }
            Request::AddPartitionsToTxn(request) => {
                self.open_transaction(code == 0);
                let topics = request.v3_and_below_topics.into_iter().map(|topic| {
                    let result = |partition_index| AddPartitionsToTxnPartitionResult {
                        partition_index,
                        partition_error_code: code,
                    };
                    let results_by_partition = topic.partitions.into_iter().map(result).collect();
                    AddPartitionsToTxnTopicResult { name: topic.name, results_by_partition }
                });
                AddPartitionsToTxnResponse {
                    results_by_topic_v3_and_below: topics.collect(),
                    ..AddPartitionsToTxnResponse::default()
                }
                .into()
            }
            Request::EndTxn(request) => self.end_transaction(&request, code).into(),
            Request::JoinGroup(request) => self.join(request, code).into(),
            Request::SyncGroup(request) => {
                let own = request.assignments.into_iter().next();
                self.assignment = own.map(|own| own.assignment).unwrap_or_default();
                SyncGroupResponse {
                    error_code: code,
                    assignment: self.assignment.clone(),
                    ..SyncGroupResponse::default()
                }
                .into()
            }
            Request::Heartbeat(_) => {
                HeartbeatResponse { error_code: code, ..HeartbeatResponse::default() }.into()
            }
            Request::ConsumerGroupHeartbeat(request) => self.heartbeat(request, code).into(),
            Request::OffsetForLeaderEpoch(request) => self.epoch_ends(request, code).into(),
            Request::LeaveGroup(_) => LeaveGroupResponse::default().into(),
            Request::OffsetCommit(request) => self.commit(request, code).into(),
            Request::OffsetFetch(request) => self.fetch_offsets(request).into(),
            other => self.answer_shared(node, other, refusal),
        }
    }

    fn at(&self, topic: &ByteString, partition: i32) -> &Partition {
        assert_eq!(topic, TOPIC);
        &self.partitions[partition as usize]
    }

    fn versions(&self) -> ApiVersionsResponse {
        let is_offered = |api: &&ApiKey| self.max_versions.get(*api) != Some(&-1);
        let range = |api: &ApiKey| {
            let last = self.max_versions.get(api).copied().unwrap_or(api.last_stable_version());
            ApiVersion { api_key: *api as i16, min_version: *api.versions().start(), max_version: last }
        };
        ApiVersionsResponse {
            api_keys: ApiKey::ALL.iter().filter(|api| is_offered(api)).map(range).collect(),
            finalized_features: vec![FinalizedFeatureKey {
                name: ByteString::from_static("transaction.version"),
                max_version_level: self.transaction_version,
                min_version_level: 0,
            }],
            ..ApiVersionsResponse::default()
        }
    }

    fn create_topic(&mut self, partitions: usize) {
        assert!(!self.exists);
        self.exists = true;
        self.created += 1;
        self.partitions = (0..partitions).map(|_| Partition::new()).collect();
    }

    /// All topics but the one that there is are created by name only.
    fn answer_create(&mut self, topic: CreatableTopic, code: i16) -> CreatableTopicResult {
        let is_known = if topic.name == TOPIC { self.exists } else { self.others.contains(&topic.name) };
        let code = match code {
            0 if is_known => ErrorCode::TopicAlreadyExists.code(),
            code => code,
        };
        if code == 0 && topic.name == TOPIC {
            self.create_topic(topic.num_partitions as usize);
        } else if code == 0 {
            self.others.push(topic.name.clone());
        }
        CreatableTopicResult { name: topic.name, error_code: code, ..CreatableTopicResult::default() }
    }

    fn metadata(&self, request: MetadataRequest, code: i16) -> MetadataResponse {
        let broker = |node_id: i32| MetadataResponseBroker {
            node_id,
            host: ByteString::from(format!("node-{node_id}")),
            port: 1,
            rack: None,
        };
        let all = || vec![ByteString::from_static(TOPIC)];
        let names = request.topics.map_or_else(all, |asked| {
            asked.into_iter().map(|asked| asked.name.expect("clients name topics")).collect()
        });
        let topic = |name: ByteString| MetadataResponseTopic {
            error_code: match code {
                0 if name == TOPIC && !self.exists => ErrorCode::UnknownTopicOrPartition.code(),
                0 if name != TOPIC && !self.others.contains(&name) => {
                    ErrorCode::UnknownTopicOrPartition.code()
                }
                code => code,
            },
            topic_id: Uuid([if name == TOPIC { self.created } else { 100 }; 16]),
            partitions: if name == TOPIC { self.partition_metadata() } else { Vec::new() },
            name: Some(name),
            ..MetadataResponseTopic::default()
        };
        MetadataResponse {
            brokers: vec![broker(1), broker(2)],
            topics: names.into_iter().map(topic).collect(),
            ..MetadataResponse::default()
        }
    }

    fn partition_metadata(&self) -> Vec<MetadataResponsePartition> {
        let partition = |(index, partition): (usize, &Partition)| MetadataResponsePartition {
            partition_index: index as i32,
            leader_id: partition.leader,
            leader_epoch: partition.epoch,
            replica_nodes: vec![1],
            ..MetadataResponsePartition::default()
        };
        self.partitions.iter().enumerate().map(partition).collect()
    }

    fn open_transaction(&mut self, opens: bool) {
        if let Some(transactional) = self.transactional.as_mut().filter(|_| opens) {
            transactional.is_open = true;
        }
    }

    fn produce(&mut self, node: i32, request: ProduceRequest, refusal: Option<ErrorCode>) -> ProduceResponse {
        let mut responses = Vec::new();
        let mut opens = false;
        for topic in request.topic_data {
            let mut partition_responses = Vec::new();
            for data in topic.partition_data {
                let bytes = data.records.expect("clients send records").into_bytes().expect("in memory");
                let batch = RecordBatch::only(bytes).expect("clients send one batch");
                batch.verify().expect("clients send whole batches");
                if let Some(refused) = self.limit(&batch) {
                    partition_responses.push(PartitionProduceResponse { index: data.index, ..refused });
                    continue;
                }
                let partition = &mut self.partitions[data.index as usize];
                let outcome = match refusal {
                    Some(code) => Err(code),
                    None if partition.leader != node => Err(ErrorCode::NotLeaderOrFollower),
                    None => partition.append(&batch),
                };
                opens |= outcome.is_ok() && batch.header().is_transactional();
                let mut answer =
                    PartitionProduceResponse { index: data.index, ..PartitionProduceResponse::default() };
                match outcome {
                    Ok(offset) => answer.base_offset = offset,
                    Err(code) => answer.error_code = code.code(),
                }
                if outcome == Err(ErrorCode::NotLeaderOrFollower) {
                    let (leader_id, leader_epoch) = (partition.leader, partition.epoch);
                    answer.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch };
                }
                partition_responses.push(answer);
            }
            responses.push(TopicProduceResponse {
                topic_id: topic.topic_id,
                name: topic.name,
                partition_responses,
            });
        }
        self.open_transaction(opens);
        let throttle_time_ms = self.limits.throttle_ms;
        ProduceResponse { responses, throttle_time_ms, ..ProduceResponse::default() }
    }

    fn fetch(&mut self, node: i32, request: &FetchRequest, refusal: Option<ErrorCode>) -> FetchResponse {
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let partition = &self.partitions[asked.partition as usize];
                let is_old = (0..partition.epoch).contains(&asked.current_leader_epoch);
                let code = refusal
                    .or((partition.leader != node).then_some(ErrorCode::NotLeaderOrFollower))
                    .or(is_old.then_some(ErrorCode::FencedLeaderEpoch));
                let wanted =
                    partition.log.iter().filter(|batch| batch.header().next_offset().0 > asked.fetch_offset);
                let bytes: Vec<u8> = wanted.flat_map(|batch| batch.bytes().to_vec()).collect();
                PartitionData {
                    partition_index: asked.partition,
                    error_code: code.unwrap_or(ErrorCode::None).code(),
                    high_watermark: partition.end,
                    last_stable_offset: partition.end,
                    log_start_offset: 0,
                    records: code.is_none().then(|| Records::Bytes(Bytes::from(bytes))),
                    ..PartitionData::default()
                }
            });
            FetchableTopicResponse {
                topic_id: topic.topic_id,
                topic: topic.topic.clone(),
                partitions: partitions.collect(),
            }
        });
        let throttle_time_ms = self.limits.throttle_ms;
        FetchResponse { responses: topics.collect(), throttle_time_ms, ..FetchResponse::default() }
    }
}
