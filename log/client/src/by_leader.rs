//! Calls about partitions that each partition's leader has to answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::{BoxFuture, join_all};
use thalweg_protocol::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use thalweg_protocol::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use thalweg_protocol::messages::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, LeaderEpoch, NodeId, Offset, TopicPartition, Uuid};

use crate::asking::{Answers, Asking};
use crate::cluster::Cluster;
use crate::config::Isolation;
use crate::consumer::{ListedOffset, OffsetSpec};
use crate::error::{Error, Result};
use crate::node::Node;

/// The first version of ListOffsets that knows [`OffsetSpec::MaxTimestamp`].
const MAX_TIMESTAMP_VERSION: i16 = 7;

/// One partition of a request, and the leader epoch it is sent under.
pub(crate) struct Asked<T> {
    pub(crate) partition: TopicPartition,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) what: T,
}

/// Groups by topic, as requests want it.
pub(crate) fn by_topic<T>(
    items: impl IntoIterator<Item = (TopicPartition, T)>,
) -> BTreeMap<ByteString, Vec<(i32, T)>> {
    let mut topics: BTreeMap<ByteString, Vec<(i32, T)>> = BTreeMap::new();
    for (partition, what) in items {
        topics.entry(partition.topic).or_default().push((partition.partition, what));
    }
    topics
}

/// The partitions of an answer, by whatever it calls their topics: an answer carries names or ids according
/// to its version, or both if it has not been through bytes.
pub(crate) struct AnswersByPartition<R> {
    by_id: HashMap<(Uuid, i32), R>,
    by_name: HashMap<(ByteString, i32), R>,
}

impl<R> AnswersByPartition<R> {
    pub(crate) fn new() -> Self {
        Self { by_id: HashMap::new(), by_name: HashMap::new() }
    }

    pub(crate) fn insert(&mut self, id: Uuid, name: &ByteString, partition: i32, answer: R) {
        if id.is_zero() {
            self.by_name.insert((name.clone(), partition), answer);
        } else {
            self.by_id.insert((id, partition), answer);
        }
    }

    pub(crate) fn take(&mut self, id: Uuid, partition: &TopicPartition) -> Option<R> {
        let by_id = self.by_id.remove(&(id, partition.partition));
        by_id.or_else(|| self.by_name.remove(&(partition.topic.clone(), partition.partition)))
    }
}

/// Asks the leaders until each partition has an answer of its own; moves with the leaders.
pub(crate) async fn ask_leaders_each<T: Clone, R>(
    cluster: &Arc<Cluster>,
    api: ApiKey,
    operation: &'static str,
    open: BTreeMap<TopicPartition, T>,
    ask: impl Fn(Arc<Node>, Vec<Asked<T>>) -> BoxFuture<'static, Answers<TopicPartition, R>>,
) -> BTreeMap<TopicPartition, Result<R>> {
    let mut asking = Asking::new(cluster, api, operation, open);
    loop {
        ask_leaders_once(cluster, &mut asking, &ask).await;
        if !asking.pause().await {
            return asking.finish();
        }
        // A failure of this shows in the next attempt.
        let _ = cluster.refresh().await;
    }
}

/// Asks the leaders until each partition has an answer; the first refusal that does not pass ends it.
async fn ask_leaders<T: Clone, R>(
    cluster: &Arc<Cluster>,
    api: ApiKey,
    operation: &'static str,
    open: BTreeMap<TopicPartition, T>,
    ask: impl Fn(Arc<Node>, Vec<Asked<T>>) -> BoxFuture<'static, Answers<TopicPartition, R>>,
) -> Result<BTreeMap<TopicPartition, R>> {
    let mut asking = Asking::new(cluster, api, operation, open);
    loop {
        ask_leaders_once(cluster, &mut asking, &ask).await;
        if asking.has_failed() || !asking.pause().await {
            let each = asking.finish().into_iter();
            return each.map(|(partition, answer)| Ok((partition, answer?))).collect();
        }
        let _ = cluster.refresh().await;
    }
}

async fn ask_leaders_once<T: Clone, R>(
    cluster: &Arc<Cluster>,
    asking: &mut Asking<TopicPartition, T, R>,
    ask: &impl Fn(Arc<Node>, Vec<Asked<T>>) -> BoxFuture<'static, Answers<TopicPartition, R>>,
) {
    let calls = split_by_leader(cluster, asking).await.into_iter().map(|(leader, asked)| async move {
        let partitions: Vec<_> = asked.iter().map(|asked| asked.partition.clone()).collect();
        let answers = match cluster.node(leader).await {
            Ok(node) => ask(node, asked).await,
            Err(error) => Err(error),
        };
        (partitions, answers)
    });
    for (partitions, answers) in join_all(calls).await {
        asking.settle_all(partitions, answers);
    }
}

/// The open partitions by their leader; those that have none are settled with an error.
async fn split_by_leader<T: Clone, R>(
    cluster: &Arc<Cluster>,
    asking: &mut Asking<TopicPartition, T, R>,
) -> HashMap<NodeId, Vec<Asked<T>>> {
    let mut asked: HashMap<NodeId, Vec<Asked<T>>> = HashMap::new();
    cluster.want(asking.open().keys().map(|partition| &partition.topic));
    for (partition, what) in asking.open().clone() {
        let metadata = match cluster.topic_known(&partition.topic).await {
            Ok(metadata) => metadata,
            Err(error) => {
                asking.settle(partition, Err(error));
                continue;
            }
        };
        let failure = match metadata.leader(&partition) {
            Some((leader, leader_epoch)) => {
                asked.entry(leader).or_default().push(Asked { partition, leader_epoch, what });
                continue;
            }
            None if metadata.partition(&partition).is_some() => metadata.no_leader(&partition),
            None => {
                let partitions = metadata.topic(&partition.topic).map_or(0, |topic| topic.partitions.len());
                Error::UnknownPartition { partition: partition.clone(), partitions: partitions as i32 }
            }
        };
        asking.settle(partition, Err(failure));
    }
    asked
}

/// Looks up offsets in the logs of partitions.
pub(crate) async fn list_offsets(
    cluster: &Arc<Cluster>,
    wanted: impl IntoIterator<Item = (TopicPartition, OffsetSpec)>,
    isolation: Isolation,
) -> Result<BTreeMap<TopicPartition, ListedOffset>> {
    let timeout_ms = cluster.config().request_timeout_ms.min(i32::MAX as u64) as i32;
    let ask = move |node: Arc<Node>,
                    asked: Vec<Asked<OffsetSpec>>|
          -> BoxFuture<'static, Answers<TopicPartition, ListedOffset>> {
        Box::pin(async move { list_offsets_of(&node, asked, isolation, timeout_ms).await })
    };
    ask_leaders(cluster, ApiKey::ListOffsets, "listing offsets", wanted.into_iter().collect(), ask).await
}

async fn list_offsets_of(
    node: &Arc<Node>,
    asked: Vec<Asked<OffsetSpec>>,
    isolation: Isolation,
    timeout_ms: i32,
) -> Answers<TopicPartition, ListedOffset> {
    let wants_max = asked.iter().any(|asked| asked.what == OffsetSpec::MaxTimestamp);
    let min_version = if wants_max { MAX_TIMESTAMP_VERSION } else { *ListOffsetsRequest::VERSIONS.start() };
    let topics = by_topic(asked.into_iter().map(|asked| (asked.partition, (asked.leader_epoch, asked.what))));
    let partition = |(partition_index, (epoch, spec)): (i32, (LeaderEpoch, OffsetSpec))| {
        ListOffsetsPartition { partition_index, current_leader_epoch: epoch.0, timestamp: spec.code() }
    };
    let topics = topics.into_iter().map(|(name, partitions)| {
        let partitions = partitions.into_iter().map(partition).collect();
        ListOffsetsTopic { name, partitions }
    });
    let request = ListOffsetsRequest {
        replica_id: -1,
        isolation_level: isolation.code(),
        topics: topics.collect(),
        timeout_ms,
    };
    let versions = min_version..=*ListOffsetsRequest::VERSIONS.end();
    let response = node.call_within(request, versions, Duration::ZERO).await?;
    let mut answers = Vec::new();
    for topic in response.topics {
        for found in topic.partitions {
            let partition = TopicPartition::new(topic.name.clone(), found.partition_index);
            let listed = ListedOffset {
                offset: (found.offset >= 0).then_some(Offset(found.offset)),
                timestamp: found.timestamp,
                leader_epoch: LeaderEpoch(found.leader_epoch),
            };
            let answer = checked(ApiKey::ListOffsets, &partition, found.error_code, listed);
            answers.push((partition, answer));
        }
    }
    Ok(answers)
}

/// Where an epoch ends in a leader's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpochEnd {
    /// The newest epoch of the log that is not newer than the one asked about.
    pub(crate) epoch: LeaderEpoch,
    /// The offset behind the last record of that epoch; `None` when the log has none so old.
    pub(crate) end: Option<Offset>,
}

/// Asks where these epochs end in the logs of partitions (KIP-101, 320).
pub(crate) async fn epoch_ends(
    cluster: &Arc<Cluster>,
    epochs: BTreeMap<TopicPartition, LeaderEpoch>,
) -> BTreeMap<TopicPartition, Result<EpochEnd>> {
    let api = ApiKey::OffsetForLeaderEpoch;
    ask_leaders_each(cluster, api, "asking for the ends of epochs", epochs, |node, asked| {
        Box::pin(async move { epoch_ends_of(&node, asked).await })
    })
    .await
}

async fn epoch_ends_of(
    node: &Arc<Node>,
    asked: Vec<Asked<LeaderEpoch>>,
) -> Answers<TopicPartition, EpochEnd> {
    let partition = |(partition, (current, epoch)): (i32, (LeaderEpoch, LeaderEpoch))| {
        let (current_leader_epoch, leader_epoch) = (current.0, epoch.0);
        OffsetForLeaderPartition { partition, current_leader_epoch, leader_epoch }
    };
    let topics = by_topic(asked.into_iter().map(|asked| (asked.partition, (asked.leader_epoch, asked.what))));
    let topics = topics.into_iter().map(|(topic, partitions)| OffsetForLeaderTopic {
        topic,
        partitions: partitions.into_iter().map(partition).collect(),
    });
    let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: topics.collect() };
    let response = node.call(request).await?;
    let mut answers = Vec::new();
    for topic in response.topics {
        for found in topic.partitions {
            let partition = TopicPartition::new(topic.topic.clone(), found.partition);
            let end = (found.end_offset >= 0 && found.leader_epoch >= 0).then_some(Offset(found.end_offset));
            let end = EpochEnd { epoch: LeaderEpoch(found.leader_epoch), end };
            answers.push((
                partition.clone(),
                checked(ApiKey::OffsetForLeaderEpoch, &partition, found.error_code, end),
            ));
        }
    }
    Ok(answers)
}

/// Deletes the records before these offsets; returns where the logs begin now.
pub(crate) async fn delete_records(
    cluster: &Arc<Cluster>,
    before: impl IntoIterator<Item = (TopicPartition, Offset)>,
) -> Result<BTreeMap<TopicPartition, Offset>> {
    let timeout_ms = cluster.config().request_timeout_ms.min(i32::MAX as u64) as i32;
    let ask = move |node: Arc<Node>,
                    asked: Vec<Asked<Offset>>|
          -> BoxFuture<'static, Answers<TopicPartition, Offset>> {
        Box::pin(async move {
            let topics = by_topic(asked.into_iter().map(|asked| (asked.partition, asked.what)));
            let partition = |(partition_index, offset): (i32, Offset)| DeleteRecordsPartition {
                partition_index,
                offset: offset.0,
            };
            let topics = topics.into_iter().map(|(name, partitions)| {
                let partitions = partitions.into_iter().map(partition).collect();
                DeleteRecordsTopic { name, partitions }
            });
            let request = DeleteRecordsRequest { topics: topics.collect(), timeout_ms };
            let response = node.call(request).await?;
            let mut answers = Vec::new();
            for topic in response.topics {
                for found in topic.partitions {
                    let partition = TopicPartition::new(topic.name.clone(), found.partition_index);
                    let start = Offset(found.low_watermark);
                    let answer = checked(ApiKey::DeleteRecords, &partition, found.error_code, start);
                    answers.push((partition, answer));
                }
            }
            Ok(answers)
        })
    };
    ask_leaders(cluster, ApiKey::DeleteRecords, "deleting records", before.into_iter().collect(), ask).await
}

fn checked<R>(api: ApiKey, partition: &TopicPartition, code: i16, answer: R) -> Result<R> {
    match ErrorCode::from(code) {
        ErrorCode::None => Ok(answer),
        code => Err(Error::Broker { api, code, subject: partition.to_string(), message: None }),
    }
}
