//! The requests that change the metadata, each with content, in each of its versions.

use std::ops::RangeInclusive;

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use thalweg_protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use thalweg_protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use thalweg_protocol::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use thalweg_protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use thalweg_protocol::messages::{ApiKey, alter_configs, incremental_alter_configs};

use crate::calls::create_topic;
use crate::grouping::code;
use crate::harness::{Client, Harness, three_ways};

three_ways!(every_change_is_made_in_every_version);

/// The kind of resource that is a topic.
const TOPIC: i8 = 2;

/// What the changes of configs set.
const RETENTION: &str = "7654321";

/// A request that changes something about a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Create,
    Delete,
    AddPartitions,
    ReplaceConfigs,
    SetConfigs,
}

impl Change {
    pub const ALL: [Self; 5] =
        [Self::Create, Self::Delete, Self::AddPartitions, Self::ReplaceConfigs, Self::SetConfigs];

    pub fn versions(self) -> RangeInclusive<i16> {
        let api = match self {
            Self::Create => ApiKey::CreateTopics,
            Self::Delete => ApiKey::DeleteTopics,
            Self::AddPartitions => ApiKey::CreatePartitions,
            Self::ReplaceConfigs => ApiKey::AlterConfigs,
            Self::SetConfigs => ApiKey::IncrementalAlterConfigs,
        };
        *api.versions().start()..=api.last_stable_version()
    }

    /// Makes the topic that is to be changed.
    pub async fn prepare(self, client: &Client, topic: &str) {
        if self != Self::Create {
            create_topic(client, topic, 1).await;
        }
    }

    /// Sends it; those that can say how long they wait say `timeout_ms`.
    pub async fn send(self, client: &Client, topic: &str, version: i16, timeout_ms: i32) -> ErrorCode {
        let error = match self {
            Self::Create => {
                let topic = CreatableTopic {
                    name: topic.into(),
                    num_partitions: 1,
                    replication_factor: 1,
                    ..Default::default()
                };
                let request = CreateTopicsRequest { topics: vec![topic], timeout_ms, ..Default::default() };
                client.call(request, version).await.topics[0].error_code
            }
            Self::Delete => {
                let mut request = DeleteTopicsRequest { timeout_ms, ..Default::default() };
                if version < 6 {
                    request.topic_names.push(topic.into());
                } else {
                    let topic = DeleteTopicState { name: Some(topic.into()), ..Default::default() };
                    request.topics.push(topic);
                }
                client.call(request, version).await.responses[0].error_code
            }
            Self::AddPartitions => {
                let topic = CreatePartitionsTopic { name: topic.into(), count: 3, ..Default::default() };
                let request =
                    CreatePartitionsRequest { topics: vec![topic], timeout_ms, ..Default::default() };
                client.call(request, version).await.results[0].error_code
            }
            Self::ReplaceConfigs => {
                let config = alter_configs::AlterableConfig {
                    name: "retention.ms".into(),
                    value: Some(RETENTION.into()),
                };
                let resource = alter_configs::AlterConfigsResource {
                    resource_type: TOPIC,
                    resource_name: topic.into(),
                    configs: vec![config],
                };
                let request =
                    alter_configs::AlterConfigsRequest { resources: vec![resource], validate_only: false };
                client.call(request, version).await.responses[0].error_code
            }
            Self::SetConfigs => {
                let config = incremental_alter_configs::AlterableConfig {
                    name: "retention.ms".into(),
                    config_operation: 0,
                    value: Some(RETENTION.into()),
                };
                let resource = incremental_alter_configs::AlterConfigsResource {
                    resource_type: TOPIC,
                    resource_name: topic.into(),
                    configs: vec![config],
                };
                let request = incremental_alter_configs::IncrementalAlterConfigsRequest {
                    resources: vec![resource],
                    validate_only: false,
                };
                client.call(request, version).await.responses[0].error_code
            }
        };
        code(error)
    }

    /// Whether it has been made, as other clients see it.
    pub async fn is_made(self, client: &Client, topic: &str) -> bool {
        let partitions = partitions(client, topic).await;
        match self {
            Self::Create => partitions == Some(1),
            Self::Delete => partitions.is_none(),
            Self::AddPartitions => partitions == Some(3),
            Self::ReplaceConfigs | Self::SetConfigs => retention(client, topic, 4).await == RETENTION,
        }
    }

    /// What is answered where it has been made before.
    pub fn repeated(self) -> ErrorCode {
        match self {
            Self::Create => ErrorCode::TopicAlreadyExists,
            Self::Delete => ErrorCode::UnknownTopicOrPartition,
            Self::AddPartitions => ErrorCode::InvalidPartitions,
            Self::ReplaceConfigs | Self::SetConfigs => ErrorCode::None,
        }
    }
}

/// How many partitions of a topic take reads and writes; `None` when there is none of this name.
pub async fn partitions(client: &Client, topic: &str) -> Option<usize> {
    let topics = vec![MetadataRequestTopic { name: Some(topic.into()), ..Default::default() }];
    let request =
        MetadataRequest { topics: Some(topics), allow_auto_topic_creation: false, ..Default::default() };
    let found = client.call(request, 12).await.topics.remove(0);
    match code(found.error_code) {
        ErrorCode::UnknownTopicOrPartition => None,
        ErrorCode::None => {
            Some(found.partitions.iter().filter(|partition| partition.error_code == 0).count())
        }
        other => panic!("{other:?}"),
    }
}

/// The topic's `retention.ms`.
async fn retention(client: &Client, topic: &str, version: i16) -> String {
    let resource = DescribeConfigsResource {
        resource_type: TOPIC,
        resource_name: topic.into(),
        configuration_keys: Some(vec!["retention.ms".into()]),
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let mut result = client.call(request, version).await.results.remove(0);
    assert_eq!((result.error_code, result.resource_name.as_ref()), (0, topic), "version {version}");
    result.configs.remove(0).value.map(|value| value.to_string()).unwrap_or_default()
}

async fn every_change_is_made_in_every_version(harness: &Harness) {
    let client = harness.connect().await;
    for change in Change::ALL {
        for version in change.versions() {
            let topic = format!("{change:?}-{version}");
            change.prepare(&client, &topic).await;
            assert!(!change.is_made(&client, &topic).await, "{topic}");
            assert_eq!(change.send(&client, &topic, version, 10_000).await, ErrorCode::None, "{topic}");
            assert!(change.is_made(&client, &topic).await, "{topic}");
            let repeated = change.send(&client, &topic, version, 10_000).await;
            assert_eq!(repeated, change.repeated(), "{topic}");
        }
    }
    for version in ApiKey::DescribeConfigs.versions() {
        assert_eq!(retention(&client, "SetConfigs-0", version).await, RETENTION, "version {version}");
    }
}
