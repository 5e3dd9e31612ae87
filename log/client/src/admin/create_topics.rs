//! Topics that are created.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicResult,
    CreateTopicsRequest,
};
use thalweg_protocol::{ErrorCode, NodeId, TopicPartition, Uuid};

use super::{Admin, Route, checked};
use crate::asking::is_lost;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::PartitionMetadata;

/// A topic to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: ByteString,
    /// How many partitions; `None` is the broker's default.
    pub partitions: Option<i32>,
    /// How many replicas of each; `None` is the broker's default.
    pub replication_factor: Option<i16>,
    /// The replicas of each partition, the preferred leader first, instead of the two numbers; `None` leaves that to the
    /// controller.
    pub assignment: Option<Vec<Vec<NodeId>>>,
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
            assignment: None,
            configs: BTreeMap::new(),
        }
    }

    /// A topic with a partition for each list of replicas, whose first is its preferred leader.
    pub fn with_assignment(name: impl Into<ByteString>, assignment: Vec<Vec<NodeId>>) -> Self {
        Self { partitions: None, assignment: Some(assignment), ..Self::new(name, 0) }
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

impl Admin {
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
        let mut results = self.create_each(&topics, false).await?;
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

    /// Says what creating these topics would give, in the order asked for, without creating any.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn validate_topics(&self, topics: &[NewTopic]) -> Result<Vec<Result<CreatedTopic>>> {
        let mut results = self.create_each(topics, true).await?;
        let result =
            |topic: &NewTopic| results.remove(&topic.name).unwrap_or(Err(missing(ApiKey::CreateTopics)));
        Ok(topics.iter().map(result).collect())
    }

    /// Asks for topics until each has a result; only those whose refusal passes are asked for again.
    async fn create_each(
        &self,
        topics: &[NewTopic],
        validate_only: bool,
    ) -> Result<HashMap<ByteString, Result<CreatedTopic>>> {
        let mut open: BTreeMap<ByteString, &NewTopic> =
            topics.iter().map(|topic| (topic.name.clone(), topic)).collect();
        let mut results = HashMap::new();
        let mut maybe_made = BTreeSet::new();
        let mut retry = self.cluster.retry("creating topics");
        while !open.is_empty() {
            let error = match self.create_once(&open, validate_only).await {
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
                                    (Err(error), Some(asked))
                                        if !validate_only && maybe_made.contains(&name) =>
                                    {
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
                None => self.look_for(Route::Controller).await,
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
        validate_only: bool,
    ) -> Result<Vec<(ByteString, Result<CreatedTopic>)>> {
        let request = CreateTopicsRequest {
            topics: topics.values().map(|topic| creatable((*topic).clone())).collect(),
            timeout_ms: self.timeout_ms(),
            validate_only,
        };
        let response = self.node(Route::Controller).await?.call(request).await?;
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

    /// Waits until each partition of a new topic has a leader.
    async fn wait_for_leaders(&self, name: &ByteString) -> Result<()> {
        self.wait_for_partitions(name, 0).await
    }

    /// Waits until the topic has so many partitions, and each of them a leader.
    pub(super) async fn wait_for_partitions(&self, name: &ByteString, count: usize) -> Result<()> {
        let mut retry = self.cluster.retry("waiting for a new topic's leaders");
        loop {
            self.cluster.want([name]);
            let waits_for = match self.cluster.refresh().await {
                Ok(metadata) => match metadata.topic(name) {
                    Some(topic) if topic.partitions.len() < count => {
                        let partition = TopicPartition::new(name.clone(), topic.partitions.len() as i32);
                        Error::NoLeader { partition, offline: Vec::new() }
                    }
                    Some(topic) => {
                        let has_none = |partition: &&PartitionMetadata| partition.leader == NodeId::NONE;
                        let Some(leaderless) = topic.partitions.iter().find(has_none) else { return Ok(()) };
                        metadata.no_leader(&TopicPartition::new(name.clone(), leaderless.partition))
                    }
                    None => Error::UnknownTopic { topic: name.clone() },
                },
                Err(error) if error.kind() == ErrorKind::Retry => error,
                Err(error) => return Err(error),
            };
            retry.pause(waits_for).await?;
        }
    }
}

fn creatable(topic: NewTopic) -> CreatableTopic {
    let config = |(name, value): (String, String)| CreatableTopicConfig {
        name: ByteString::from(name),
        value: Some(ByteString::from(value)),
    };
    let replicas = |(at, replicas): (usize, Vec<NodeId>)| CreatableReplicaAssignment {
        partition_index: at as i32,
        broker_ids: replicas.into_iter().map(|id| id.0).collect(),
    };
    let is_assigned = topic.assignment.is_some();
    CreatableTopic {
        name: topic.name,
        num_partitions: topic.partitions.filter(|_| !is_assigned).unwrap_or(-1),
        replication_factor: topic.replication_factor.filter(|_| !is_assigned).unwrap_or(-1),
        assignments: topic.assignment.unwrap_or_default().into_iter().enumerate().map(replicas).collect(),
        configs: topic.configs.into_iter().map(config).collect(),
    }
}

fn created(topic: CreatableTopicResult) -> Result<CreatedTopic> {
    let created = CreatedTopic {
        name: topic.name.clone(),
        id: topic.topic_id,
        partitions: (topic.num_partitions >= 0).then_some(topic.num_partitions),
        replication_factor: (topic.replication_factor >= 0).then_some(topic.replication_factor),
    };
    let subject = || format!("topic {}", topic.name);
    checked(ApiKey::CreateTopics, topic.error_code, topic.error_message, subject, created)
}

fn missing(api: ApiKey) -> Error {
    Error::BadAnswer { api, reason: "the topic is missing from it" }
}
