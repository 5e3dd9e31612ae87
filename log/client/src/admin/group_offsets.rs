//! The offsets that groups have committed.

use std::collections::{BTreeMap, HashMap};

use thalweg_protocol::TopicPartition;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};

use super::{Admin, checked, checked_topic};
use crate::by_leader::by_topic;
use crate::consumer::{CommittedOffset, GroupMetadata, commit_offsets, fetch_offsets};
use crate::coordinator::Coordinator;
use crate::error::{Error, ErrorKind, Result};

impl Admin {
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

    /// Commits offsets for a group that has no members, as Java's `alterConsumerGroupOffsets`.
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

    /// Makes a group forget what it has committed for these partitions (KIP-496). Each has a result of its own; one
    /// whose topic a member subscribes to is refused with `GroupSubscribedToTopic`. Where nothing was committed, there
    /// is nothing to forget, and no error.
    ///
    /// # Errors
    /// What concerns the whole group: `GroupIdNotFound`, or whatever keeps its coordinator from answering.
    pub async fn delete_offsets(
        &self,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, Result<()>>> {
        let coordinator = Coordinator::for_short_calls(&self.cluster, group);
        let mut retry = self.cluster.retry("deleting a group's offsets");
        loop {
            match delete_once(&coordinator, partitions).await {
                Err(error) if error.kind() == ErrorKind::Retry => {
                    coordinator.forget();
                    retry.pause(error).await?;
                }
                answer => return answer,
            }
        }
    }
}

async fn delete_once(
    coordinator: &Coordinator,
    partitions: &[TopicPartition],
) -> Result<BTreeMap<TopicPartition, Result<()>>> {
    let api = ApiKey::OffsetDelete;
    let partition = |(partition_index, ()): (i32, ())| OffsetDeleteRequestPartition { partition_index };
    let topics = by_topic(partitions.iter().map(|partition| (partition.clone(), ()))).into_iter();
    let topics = topics.map(|(name, partitions)| OffsetDeleteRequestTopic {
        name,
        partitions: partitions.into_iter().map(partition).collect(),
    });
    let request = OffsetDeleteRequest { group_id: coordinator.key().clone(), topics: topics.collect() };
    let response = coordinator.node().await?.call(request).await?;
    checked(api, response.error_code, None, || coordinator.subject(), ())?;
    let mut results = BTreeMap::new();
    for topic in response.topics {
        for found in topic.partitions {
            let partition = TopicPartition::new(topic.name.clone(), found.partition_index);
            results.insert(partition, checked_topic(api, found.error_code, None, &topic.name, ()));
        }
    }
    for partition in partitions {
        let missing = || Err(Error::BadAnswer { api, reason: "a partition is missing from it" });
        results.entry(partition.clone()).or_insert_with(missing);
    }
    Ok(results)
}
