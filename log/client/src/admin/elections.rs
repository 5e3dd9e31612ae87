//! Leaders that are elected on demand (KIP-183, 460).

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::elect_leaders::{ElectLeadersRequest, TopicPartitions};
use thalweg_protocol::{ErrorCode, TopicPartition};

use super::{Admin, Route, checked, keyed, version_from};
use crate::by_leader::by_topic;
use crate::error::{Error, Result};

/// The first version with a choice of elections, and with an error for all.
const TYPED: i16 = 1;

/// Who can be elected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionType {
    /// The preferred replica: the first of a partition's replicas, if it is in sync.
    Preferred,
    /// Any replica that is up, when none in sync is: records that only others had are lost.
    Unclean,
}

/// What came of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// The partition has another leader.
    Elected,
    /// The leader is the one that would be elected, or there is one where only a leaderless partition gets one.
    NotNeeded,
}

impl Admin {
    /// Has leaders elected for these partitions. Each has a result of its own; one without a replica that can lead is
    /// refused with `PreferredLeaderNotAvailable` or `EligibleLeadersNotAvailable`.
    pub async fn elect_leaders(
        &self,
        election: ElectionType,
        partitions: &[TopicPartition],
    ) -> BTreeMap<TopicPartition, Result<Election>> {
        let timeout_ms = self.timeout_ms();
        let (api, open) = (ApiKey::ElectLeaders, keyed(partitions.iter().cloned()));
        let asking = self.call_each(api, "electing leaders", Route::Controller, open, |node, open| {
            Box::pin(async move {
                let version = version_from::<ElectLeadersRequest>(
                    &node,
                    match election {
                        ElectionType::Preferred => 0,
                        ElectionType::Unclean => TYPED,
                    },
                )?;
                let topics = by_topic(open).into_iter().map(|(topic, partitions)| TopicPartitions {
                    topic,
                    partitions: partitions.into_iter().map(|(partition, ())| partition).collect(),
                });
                let request = ElectLeadersRequest {
                    election_type: i8::from(election == ElectionType::Unclean),
                    topic_partitions: Some(topics.collect()),
                    timeout_ms,
                };
                let response = node.call_in(version, request, Duration::ZERO).await?;
                checked(api, response.error_code, None, || "the cluster".to_owned(), ())?;
                let mut results = Vec::new();
                for topic in response.replica_election_results {
                    for found in topic.partition_result {
                        let partition = TopicPartition::new(topic.topic.clone(), found.partition_id);
                        let result = elected(&partition, found.error_code, found.error_message);
                        results.push((partition, result));
                    }
                }
                Ok(results)
            })
        });
        asking.await.finish()
    }
}

fn elected(
    partition: &TopicPartition,
    code: i16,
    message: Option<bytestring::ByteString>,
) -> Result<Election> {
    match ErrorCode::from(code) {
        ErrorCode::None => Ok(Election::Elected),
        ErrorCode::ElectionNotNeeded => Ok(Election::NotNeeded),
        ErrorCode::UnknownTopicOrPartition => Err(Error::UnknownTopic { topic: partition.topic.clone() }),
        code => {
            Err(Error::Broker { api: ApiKey::ElectLeaders, code, subject: partition.to_string(), message })
        }
    }
}
