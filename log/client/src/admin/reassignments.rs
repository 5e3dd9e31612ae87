//! Replicas that move from broker to broker (KIP-455).

use std::collections::BTreeMap;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use thalweg_protocol::messages::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsTopics,
};
use thalweg_protocol::{ErrorCode, NodeId, TopicPartition};

use super::{Admin, Route, checked, version_from};
use crate::by_leader::by_topic;
use crate::error::{Error, Result};

/// Replicas of a partition that are on the move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassignment {
    /// All replicas at present: those that stay, come and go.
    pub replicas: Vec<NodeId>,
    /// Those that come, and are catching up.
    pub adding: Vec<NodeId>,
    /// Those that go, once the others have caught up.
    pub removing: Vec<NodeId>,
}

impl Admin {
    /// Moves the replicas of partitions to these brokers, the preferred leader first; `None` calls off a move that is
    /// under way. Each partition has a result of its own: that the move has begun, not that it has ended
    /// ([`Admin::list_reassignments`] says so).
    pub async fn reassign_partitions(
        &self,
        targets: &BTreeMap<TopicPartition, Option<Vec<NodeId>>>,
    ) -> BTreeMap<TopicPartition, Result<()>> {
        let (api, timeout_ms) = (ApiKey::AlterPartitionReassignments, self.timeout_ms());
        let open = targets.clone();
        let asking = self.call_each(api, "reassigning partitions", Route::Controller, open, |node, open| {
            Box::pin(async move {
                let partition =
                    |(partition_index, target): (i32, Option<Vec<NodeId>>)| ReassignablePartition {
                        partition_index,
                        replicas: target.map(|replicas| replicas.into_iter().map(|id| id.0).collect()),
                    };
                let topics = by_topic(open).into_iter().map(|(name, partitions)| ReassignableTopic {
                    name,
                    partitions: partitions.into_iter().map(partition).collect(),
                });
                let topics = topics.collect();
                let request = AlterPartitionReassignmentsRequest { timeout_ms, topics, ..Default::default() };
                let version = version_from::<AlterPartitionReassignmentsRequest>(&node, 0)?;
                let response = node.call_in(version, request, Duration::ZERO).await?;
                checked(api, response.error_code, response.error_message, || "the cluster".to_owned(), ())?;
                let mut results = Vec::new();
                for topic in response.responses {
                    for found in topic.partitions {
                        let partition = TopicPartition::new(topic.name.clone(), found.partition_index);
                        let result = begun(&partition, found.error_code, found.error_message);
                        results.push((partition, result));
                    }
                }
                Ok(results)
            })
        });
        asking.await.finish()
    }

    /// The moves that are under way: of these partitions, or of all.
    ///
    /// # Errors
    /// Whatever keeps the controller from answering.
    pub async fn list_reassignments(
        &self,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<BTreeMap<TopicPartition, Reassignment>> {
        let timeout_ms = self.timeout_ms();
        let asked = partitions.map(|partitions| {
            let topics = by_topic(partitions.iter().map(|partition| (partition.clone(), ())));
            let topic = |(name, partitions): (ByteString, Vec<(i32, ())>)| ListPartitionReassignmentsTopics {
                name,
                partition_indexes: partitions.into_iter().map(|(partition, ())| partition).collect(),
            };
            topics.into_iter().map(topic).collect::<Vec<_>>()
        });
        let listed = self.call("listing reassignments", Route::Controller, |node| {
            let request = ListPartitionReassignmentsRequest { timeout_ms, topics: asked.clone() };
            Box::pin(async move {
                let response = node.call(request).await?;
                let (code, message) = (response.error_code, response.error_message.clone());
                let api = ApiKey::ListPartitionReassignments;
                checked(api, code, message, || "the cluster".to_owned(), response)
            })
        });
        let ids = |ids: Vec<i32>| ids.into_iter().map(NodeId).collect();
        let mut moves = BTreeMap::new();
        for topic in listed.await?.topics {
            for found in topic.partitions {
                let (adding, removing) = (ids(found.adding_replicas), ids(found.removing_replicas));
                let reassignment = Reassignment { replicas: ids(found.replicas), adding, removing };
                moves.insert(TopicPartition::new(topic.name.clone(), found.partition_index), reassignment);
            }
        }
        Ok(moves)
    }
}

fn begun(partition: &TopicPartition, code: i16, message: Option<ByteString>) -> Result<()> {
    match ErrorCode::from(code) {
        ErrorCode::UnknownTopicOrPartition => Err(Error::UnknownTopic { topic: partition.topic.clone() }),
        _ => {
            let subject = || partition.to_string();
            checked(ApiKey::AlterPartitionReassignments, code, message, subject, ())
        }
    }
}
