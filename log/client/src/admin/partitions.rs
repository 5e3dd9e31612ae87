//! Partitions that are added to topics.

use std::collections::BTreeMap;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic,
};
use thalweg_protocol::{ErrorCode, NodeId};

use super::{Admin, Route, checked_topic, version_from};
use crate::error::{Error, Result};

/// How many partitions a topic is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPartitions {
    /// The topic.
    pub topic: ByteString,
    /// How many partitions it has afterwards, old and new. Partitions cannot be taken away.
    pub total: i32,
    /// The replicas of each new partition, the preferred leader first; `None` leaves that to the controller.
    pub assignment: Option<Vec<Vec<NodeId>>>,
}

impl NewPartitions {
    /// Raises a topic to `total` partitions.
    pub fn new(topic: impl Into<ByteString>, total: i32) -> Self {
        Self { topic: topic.into(), total, assignment: None }
    }
}

impl Admin {
    /// Adds partitions to topics and waits until they can be used; with `validate_only` it is only said what would
    /// come of it. Each topic has a result of its own. Where an answer got lost and the topic has as many partitions
    /// as asked for, they were added.
    ///
    /// Keys go to other partitions afterwards: what is keyed should be read to its end first, or the order of a key's
    /// records is kept only within each partition.
    ///
    /// Errors of a topic: [`Error::UnknownTopic`](crate::Error::UnknownTopic), and
    /// [`Error::Broker`](crate::Error::Broker) with `InvalidPartitions` when it has as many or more.
    pub async fn create_partitions(
        &self,
        topics: &[NewPartitions],
        validate_only: bool,
    ) -> BTreeMap<ByteString, Result<()>> {
        let open = topics.iter().map(|topic| (topic.topic.clone(), topic.clone())).collect();
        let timeout_ms = self.timeout_ms();
        let api = ApiKey::CreatePartitions;
        let asking = self.call_each(api, "adding partitions", Route::Controller, open, |node, open| {
            Box::pin(async move {
                let topics = open.into_values().map(asked).collect();
                let request = CreatePartitionsRequest { topics, timeout_ms, validate_only };
                let version = version_from::<CreatePartitionsRequest>(&node, 0)?;
                let response = node.call_in(version, request, Duration::ZERO).await?;
                let results = response.results.into_iter().map(|result| {
                    let checked =
                        checked_topic(api, result.error_code, result.error_message, &result.name, ());
                    (result.name, checked)
                });
                Ok(results.collect())
            })
        });
        let asking = asking.await;
        let lost: Vec<bool> = topics.iter().map(|topic| asking.may_be_done(&topic.topic)).collect();
        let mut results = asking.finish();
        if validate_only {
            return results;
        }
        for (topic, was_lost) in topics.iter().zip(lost) {
            let Some(result) = results.get_mut(&topic.topic) else { continue };
            if was_lost && code_of(result) == Some(ErrorCode::InvalidPartitions) {
                let found = self.describe_topic(&topic.topic).await;
                if found.is_ok_and(|found| found.partitions.len() == topic.total as usize) {
                    *result = Ok(());
                }
            }
            if result.is_ok() {
                let count = usize::try_from(topic.total).unwrap_or_default();
                *result = self.wait_for_partitions(&topic.topic, count).await;
            }
        }
        results
    }
}

fn asked(topic: NewPartitions) -> CreatePartitionsTopic {
    let replicas = |replicas: Vec<NodeId>| CreatePartitionsAssignment {
        broker_ids: replicas.into_iter().map(|id| id.0).collect(),
    };
    let assignments = topic.assignment.map(|assignment| assignment.into_iter().map(replicas).collect());
    CreatePartitionsTopic { name: topic.topic, count: topic.total, assignments }
}

fn code_of(result: &Result<()>) -> Option<ErrorCode> {
    result.as_ref().err().and_then(Error::code)
}
