//! The calls that manage topics, offsets and the cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
};
use thalweg_protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use thalweg_protocol::messages::describe_cluster::{DescribeClusterBroker, DescribeClusterRequest};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ConnectionError, ErrorCode, NodeId, Offset, TopicPartition, Uuid};

use crate::by_leader::{delete_records, list_offsets};
use crate::cluster::Cluster;
use crate::config::Isolation;
use crate::consumer::{
    CommittedOffset, GroupMetadata, ListedOffset, OffsetSpec, commit_offsets, fetch_offsets,
};
use crate::coordinator::Coordinator;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{BrokerAddress, PartitionMetadata, TopicMetadata};

/// The first version of DeleteTopics that takes names or ids.
const NAMES_AND_IDS: i16 = 6;

/// Manages topics, offsets and the cluster. Calls are retried within the client's API timeout.
#[derive(Clone)]
pub struct Admin {
    cluster: Arc<Cluster>,
}

/// A topic to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: ByteString,
    /// How many partitions; `None` is the broker's default.
    pub partitions: Option<i32>,
    /// How many replicas of each; `None` is the broker's default.
    pub replication_factor: Option<i16>,
    /// Settings that differ from the broker's, by name.
    pub configs: BTreeMap<String, String>,
}

impl NewTopic {
    /// A topic with the broker's replication factor.
    pub fn new(name: impl Into<ByteString>, partitions: i32) -> Self {
        Self {
            name: name.into(),
            partitions: Some(partitions),
            replication_factor: None,
            configs: BTreeMap::new(),
        }
    }

    /// The same with a setting.
    #[must_use]
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.insert(name.into(), value.into());
        self
    }
}

/// What became of a [`NewTopic`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its name.
    pub name: ByteString,
    /// Its id; zero where the broker does not say.
    pub id: Uuid,
    /// How many partitions it has; `None` where the broker does not say.
    pub partitions: Option<i32>,
    /// How many replicas of each it has; `None` where the broker does not say.
    pub replication_factor: Option<i16>,
}

/// The cluster's nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDescription {
    /// The cluster's id.
    pub cluster_id: ByteString,
    /// The controller, or the broker that stands for it.
    pub controller: Option<NodeId>,
    /// The brokers, in the order of their ids.
    pub brokers: Vec<BrokerAddress>,
}

impl Admin {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }

    /// Creates a topic and waits until it can be used.
    ///
    /// # Errors
    /// [`Error::Broker`](crate::Error::Broker) with `TopicAlreadyExists` or whatever else the broker refused.
    pub async fn create_topic(&self, topic: NewTopic) -> Result<CreatedTopic> {
        let mut created = self.create_topics(vec![topic]).await?;
        created.pop().unwrap_or(Err(missing(ApiKey::CreateTopics)))
    }

    /// Creates topics and waits until they can be used; each has a result of its own, in the order asked for. One
    /// that an attempt may have created whose answer got lost counts as created, if it is as asked for.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn create_topics(&self, topics: Vec<NewTopic>) -> Result<Vec<Result<CreatedTopic>>> {
        let mut results = self.create_each(&topics).await?;
        let mut in_order = Vec::with_capacity(topics.len());
        for topic in &topics {
            let mut result = results.remove(&topic.name).unwrap_or(Err(missing(ApiKey::CreateTopics)));
            // The controller has it; the brokers may not have heard of it yet.
            if result.is_ok()
                && let Err(error) = self.wait_for_leaders(&topic.name).await
            {
                result = Err(error);
            }
            in_order.push(result);
        }
        Ok(in_order)
    }

    /// Asks for topics until each has a result; only those whose refusal passes are asked for again.
    async fn create_each(&self, topics: &[NewTopic]) -> Result<HashMap<ByteString, Result<CreatedTopic>>> {
        let mut open: BTreeMap<ByteString, &NewTopic> =
            topics.iter().map(|topic| (topic.name.clone(), topic)).collect();
        let mut results = HashMap::new();
        let mut maybe_made = BTreeSet::new();
        let mut retry = self.cluster.retry("creating topics");
        while !open.is_empty() {
            let error = match self.create_once(&open).await {
                Ok(answers) => {
                    let mut passing = None;
                    for (name, answer) in answers {
                        match answer {
                            Err(error) if error.kind() == ErrorKind::Retry => {
                                if error.code() == Some(ErrorCode::RequestTimedOut) {
                                    maybe_made.insert(name);
                                }
                                passing = Some(error);
                            }
                            answer => {
                                let asked = open.remove(&name);
                                let answer = match (answer, asked) {
                                    (Err(error), Some(asked)) if maybe_made.contains(&name) => {
                                        self.made_before(asked, error).await
                                    }
                                    (answer, _) => answer,
                                };
                                results.insert(name, answer);
                            }
                        }
                    }
                    // What the answer leaves out will not be in the next one.
                    let Some(passing) = passing else { break };
                    passing
                }
                Err(error) => {
                    if is_lost(&error) {
                        maybe_made.extend(open.keys().cloned());
                    }
                    error
                }
            };
            let failed = match error.kind() {
                ErrorKind::Retry => retry.pause(error).await.err(),
                _ => Some(error),
            };
            match failed {
                None => {}
                Some(error) if results.is_empty() && open.len() == topics.len() => return Err(error),
                Some(error) => {
                    results.extend(open.keys().map(|name| (name.clone(), Err(error.clone()))));
                    break;
                }
            }
        }
        Ok(results)
    }

    async fn create_once(
        &self,
        topics: &BTreeMap<ByteString, &NewTopic>,
    ) -> Result<Vec<(ByteString, Result<CreatedTopic>)>> {
        let request = CreateTopicsRequest {
            topics: topics.values().map(|topic| creatable((*topic).clone())).collect(),
            timeout_ms: self.timeout_ms(),
            validate_only: false,
        };
        let response = self.cluster.any_node().await?.call(request).await?;
        Ok(response.topics.into_iter().map(|topic| (topic.name.clone(), created(topic))).collect())
    }

    /// What a refusal means after an attempt that may have created the topic.
    async fn made_before(&self, asked: &NewTopic, refusal: Error) -> Result<CreatedTopic> {
        if refusal.code() != Some(ErrorCode::TopicAlreadyExists) {
            return Err(refusal);
        }
        let found = self.describe_topic(&asked.name).await?;
        let partitions = found.partitions.len() as i32;
        let replicas = found.partitions.first().map_or(0, |partition| partition.replicas.len()) as i16;
        let is_as_asked = asked.partitions.is_none_or(|asked| asked == partitions)
            && asked.replication_factor.is_none_or(|asked| asked == replicas);
        match is_as_asked {
            true => Ok(CreatedTopic {
                name: found.name,
                id: found.id,
                partitions: Some(partitions),
                replication_factor: Some(replicas),
            }),
            false => Err(refusal),
        }
    }

    /// Deletes a topic with all its records, and waits a moment for the cluster to have forgotten it.
    ///
    /// # Errors
    /// [`Error::Broker`](crate::Error::Broker) with `UnknownTopicOrPartition` when there is none.
    pub async fn delete_topic(&self, name: &str) -> Result<()> {
        let request = |version: i16| DeleteTopicsRequest {
            topics: match version {
                NAMES_AND_IDS.. => vec![DeleteTopicState { name: Some(name.into()), topic_id: Uuid::ZERO }],
                _ => Vec::new(),
            },
            topic_names: if version < NAMES_AND_IDS { vec![name.into()] } else { Vec::new() },
            timeout_ms: self.timeout_ms(),
        };
        let mut retry = self.cluster.retry("deleting a topic");
        let mut may_be_gone = false;
        loop {
            match self.delete_topic_once(name, request).await {
                Ok(()) => break,
                Err(error) if is_unknown_topic(&error) && may_be_gone => break,
                Err(error) if is_unknown_topic(&error) => {
                    return Err(Error::UnknownTopic { topic: ByteString::from(name) });
                }
                Err(error) if error.kind() == ErrorKind::Retry => {
                    may_be_gone |= is_lost(&error) || error.code() == Some(ErrorCode::RequestTimedOut);
                    retry.pause(error).await?;
                }
                Err(error) => return Err(error),
            }
        }
        self.wait_until_gone(&ByteString::from(name)).await;
        Ok(())
    }

    /// All topics with their partitions, internal ones included, in the order of their names.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn list_topics(&self) -> Result<Vec<TopicMetadata>> {
        let metadata = self.cluster.refresh_all().await?;
        Ok(metadata.topics().into_iter().cloned().collect())
    }

    /// One topic with its partitions: leaders, epochs, replicas, in sync or not.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic) when there is none.
    pub async fn describe_topic(&self, name: &str) -> Result<TopicMetadata> {
        let name = ByteString::from(name);
        let metadata = self.cluster.look_up(&name).await?;
        metadata.topic(&name).cloned().ok_or(Error::UnknownTopic { topic: name })
    }

    /// The cluster's nodes.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn describe_cluster(&self) -> Result<ClusterDescription> {
        let request = DescribeClusterRequest::default();
        let response =
            self.call("describing the cluster", || request.clone(), |response| Some(response.error_code));
        let response = response.await?;
        let broker = |broker: DescribeClusterBroker| BrokerAddress {
            id: NodeId(broker.broker_id),
            host: broker.host,
            port: u16::try_from(broker.port).unwrap_or_default(),
            rack: broker.rack,
        };
        let mut brokers: Vec<BrokerAddress> = response.brokers.into_iter().map(broker).collect();
        brokers.sort_by_key(|broker| broker.id);
        let controller = (response.controller_id >= 0).then_some(NodeId(response.controller_id));
        Ok(ClusterDescription { cluster_id: response.cluster_id, controller, brokers })
    }

    /// Looks up offsets in the logs of partitions.
    ///
    /// # Errors
    /// Whatever keeps a leader from answering within the API timeout.
    pub async fn list_offsets(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
        isolation: Isolation,
    ) -> Result<BTreeMap<TopicPartition, ListedOffset>> {
        list_offsets(&self.cluster, wanted.iter().cloned(), isolation).await
    }

    /// Deletes the records before these offsets; returns the first offset that each log has now.
    ///
    /// # Errors
    /// Whatever a leader refused or kept it from answering; the partitions before may be done.
    pub async fn delete_records(
        &self,
        before: &[(TopicPartition, Offset)],
    ) -> Result<BTreeMap<TopicPartition, Offset>> {
        delete_records(&self.cluster, before.iter().cloned()).await
    }

    /// What a group has committed: for `partitions`, or for all that it has commits of. With `require_stable` it
    /// waits until no transaction has offsets of them pending, so that the answer is the last committed one. Name
    /// the partitions then: asked for all, Apache Kafka only waits for those that had a commit before.
    ///
    /// # Errors
    /// Whatever keeps the coordinator from answering within the API timeout.
    pub async fn committed_offsets(
        &self,
        group: &str,
        partitions: Option<&[TopicPartition]>,
        require_stable: bool,
    ) -> Result<HashMap<TopicPartition, CommittedOffset>> {
        let coordinator = Coordinator::for_short_calls(&self.cluster, group);
        fetch_offsets(&coordinator, partitions, require_stable).await
    }

    /// Commits offsets for a group that has no members.
    ///
    /// # Errors
    /// `Rejoin` by kind when the group has members.
    pub async fn commit_offsets(
        &self,
        group: &str,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<()> {
        let coordinator = Coordinator::for_short_calls(&self.cluster, group);
        commit_offsets(&coordinator, &GroupMetadata::without_membership(group), offsets).await
    }

    /// Calls any broker until `code` finds no refusal that passes in the answer.
    async fn call<A: Api>(
        &self,
        operation: &'static str,
        request: impl Fn() -> A,
        code: impl Fn(&A::Response) -> Option<i16>,
    ) -> Result<A::Response> {
        let mut retry = self.cluster.retry(operation);
        loop {
            let answer = match self.cluster.any_node().await {
                Ok(node) => node.call(request()).await,
                Err(error) => Err(error),
            };
            let error = match answer {
                Ok(response) => match code(&response).map(ErrorCode::from) {
                    None | Some(ErrorCode::None) => return Ok(response),
                    Some(code) => refused(A::KEY, code, "the cluster", None),
                },
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::Retry => retry.pause(error).await?,
                _ => return Err(error),
            }
        }
    }

    async fn delete_topic_once(
        &self,
        name: &str,
        request: impl Fn(i16) -> DeleteTopicsRequest,
    ) -> Result<()> {
        let node = self.cluster.any_node().await?;
        let version = node.offered().pick(ApiKey::DeleteTopics, DeleteTopicsRequest::VERSIONS)?;
        let response = node.call_in(version, request(version), Duration::ZERO).await?;
        let result = response.responses.into_iter().next().ok_or_else(|| missing(ApiKey::DeleteTopics))?;
        match ErrorCode::from(result.error_code) {
            ErrorCode::None => Ok(()),
            code => Err(refused(ApiKey::DeleteTopics, code, &format!("topic {name}"), result.error_message)),
        }
    }

    /// Waits until each partition of a new topic has a leader.
    async fn wait_for_leaders(&self, name: &ByteString) -> Result<()> {
        let mut retry = self.cluster.retry("waiting for a new topic's leaders");
        loop {
            self.cluster.want([name]);
            let waits_for = match self.cluster.refresh().await {
                Ok(metadata) => match metadata.topic(name) {
                    Some(topic) => {
                        let has_none = |partition: &&PartitionMetadata| partition.leader == NodeId::NONE;
                        let Some(leaderless) = topic.partitions.iter().find(has_none) else { return Ok(()) };
                        Error::NoLeader { partition: TopicPartition::new(name.clone(), leaderless.partition) }
                    }
                    None => Error::UnknownTopic { topic: name.clone() },
                },
                Err(error) if error.kind() == ErrorKind::Retry => error,
                Err(error) => return Err(error),
            };
            retry.pause(waits_for).await?;
        }
    }

    /// A deleted topic may show in a broker's metadata for a moment. One that stays has been created again; and
    /// whether it can be seen or not, it is deleted.
    async fn wait_until_gone(&self, name: &ByteString) {
        let patience = Duration::from_millis(self.cluster.config().unknown_topic_wait_ms);
        let mut retry = self.cluster.retry_within("waiting for a topic to be gone", patience);
        loop {
            self.cluster.want([name]);
            let stays = match self.cluster.refresh().await {
                Ok(metadata) if metadata.topic(name).is_none() => break,
                Ok(_) => Error::UnknownTopic { topic: name.clone() },
                Err(error) => error,
            };
            if retry.pause(stays).await.is_err() {
                break;
            }
        }
        self.cluster.forget(name);
    }

    fn timeout_ms(&self) -> i32 {
        self.cluster.config().request_timeout_ms.min(i32::MAX as u64) as i32
    }
}

fn creatable(topic: NewTopic) -> CreatableTopic {
    let config = |(name, value): (String, String)| CreatableTopicConfig {
        name: ByteString::from(name),
        value: Some(ByteString::from(value)),
    };
    CreatableTopic {
        name: topic.name,
        num_partitions: topic.partitions.unwrap_or(-1),
        replication_factor: topic.replication_factor.unwrap_or(-1),
        configs: topic.configs.into_iter().map(config).collect(),
        ..CreatableTopic::default()
    }
}

fn created(topic: CreatableTopicResult) -> Result<CreatedTopic> {
    match ErrorCode::from(topic.error_code) {
        ErrorCode::None => Ok(CreatedTopic {
            name: topic.name,
            id: topic.topic_id,
            partitions: (topic.num_partitions >= 0).then_some(topic.num_partitions),
            replication_factor: (topic.replication_factor >= 0).then_some(topic.replication_factor),
        }),
        code => {
            let subject = format!("topic {}", topic.name);
            Err(refused(ApiKey::CreateTopics, code, &subject, topic.error_message))
        }
    }
}

fn refused(api: ApiKey, code: ErrorCode, subject: &str, message: Option<ByteString>) -> Error {
    Error::Broker { api, code, subject: subject.to_owned(), message }
}

fn missing(api: ApiKey) -> Error {
    Error::BadAnswer { api, reason: "the topic is missing from it" }
}

/// Whether a request may have taken effect though its answer did not come.
fn is_lost(error: &Error) -> bool {
    match error {
        Error::Connection { source, .. } => !matches!(source, ConnectionError::Refused { .. }),
        _ => false,
    }
}

fn is_unknown_topic(error: &Error) -> bool {
    error.code() == Some(ErrorCode::UnknownTopicOrPartition)
}
