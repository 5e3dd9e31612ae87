//! The directories in which brokers keep logs, and what lies in them (KIP-113, 827).

use std::collections::BTreeMap;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResult,
};
use thalweg_protocol::{NodeId, TopicPartition};

use super::{Admin, checked, version_from};
use crate::asking::ask_brokers;
use crate::by_leader::by_topic;
use crate::error::{Error, Result};

/// A directory in which a broker keeps logs.
#[derive(Clone, Debug)]
pub struct LogDir {
    /// Its path on the broker's machine.
    pub path: ByteString,
    /// Why it cannot be used, such as `KafkaStorageError` when its disk has failed.
    pub failure: Option<Error>,
    /// How many bytes its file system has; `None` where the broker does not say.
    pub total_bytes: Option<u64>,
    /// How many bytes of them are free; `None` where the broker does not say.
    pub usable_bytes: Option<u64>,
    /// Whether no new logs are put into it (Kafka 4.3 and later).
    pub is_cordoned: bool,
    /// The logs in it.
    pub replicas: BTreeMap<TopicPartition, LogDirReplica>,
}

/// A partition's log in a [`LogDir`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDirReplica {
    /// The size of its segments, in bytes.
    pub size_in_bytes: i64,
    /// How many offsets it is behind: of a replica, behind the high watermark; of one that moves between directories,
    /// behind the log that it will replace.
    pub offset_lag: i64,
    /// Whether it will replace another one once it has caught up.
    pub is_future: bool,
}

impl Admin {
    /// The directories of these brokers, or of all, with the logs of these partitions in them, or of all. Each broker
    /// has a result of its own.
    ///
    /// # Errors
    /// What keeps the cluster from saying which brokers there are, if none are named.
    pub async fn describe_log_dirs(
        &self,
        brokers: Option<&[NodeId]>,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<BTreeMap<NodeId, Result<Vec<LogDir>>>> {
        let brokers = match brokers {
            Some(brokers) => super::keyed(brokers.iter().copied()),
            None => self.brokers().await?,
        };
        let topics = partitions.map(|partitions| {
            let topics = by_topic(partitions.iter().map(|partition| (partition.clone(), ())));
            let topic = |(topic, partitions): (ByteString, Vec<(i32, ())>)| DescribableLogDirTopic {
                topic,
                partitions: partitions.into_iter().map(|(partition, ())| partition).collect(),
            };
            topics.into_iter().map(topic).collect::<Vec<_>>()
        });
        let api = ApiKey::DescribeLogDirs;
        let answers = ask_brokers(&self.cluster, api, "describing log directories", brokers, |node, ()| {
            let topics = topics.clone();
            Box::pin(async move {
                let version = version_from::<DescribeLogDirsRequest>(&node, 0)?;
                let request = DescribeLogDirsRequest { topics };
                let response = node.call_in(version, request, Duration::ZERO).await?;
                let mut dirs: Vec<LogDir> = response.results.into_iter().map(log_dir).collect();
                dirs.sort_by(|a, b| a.path.cmp(&b.path));
                checked(api, response.error_code, None, || "log directories".to_owned(), dirs)
            })
        });
        Ok(answers.await)
    }
}

fn log_dir(dir: DescribeLogDirsResult) -> LogDir {
    let subject = || format!("log directory {}", dir.log_dir);
    let failure = checked(ApiKey::DescribeLogDirs, dir.error_code, None, subject, ()).err();
    let mut replicas = BTreeMap::new();
    for topic in dir.topics {
        for found in topic.partitions {
            let replica = LogDirReplica {
                size_in_bytes: found.partition_size,
                offset_lag: found.offset_lag,
                is_future: found.is_future_key,
            };
            replicas.insert(TopicPartition::new(topic.name.clone(), found.partition_index), replica);
        }
    }
    LogDir {
        path: dir.log_dir,
        failure,
        total_bytes: u64::try_from(dir.total_bytes).ok(),
        usable_bytes: u64::try_from(dir.usable_bytes).ok(),
        is_cordoned: dir.is_cordoned,
        replicas,
    }
}
