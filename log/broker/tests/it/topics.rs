//! Metadata, topics and their configs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use thalweg_broker::AllowAll;
use thalweg_protocol::messages::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use thalweg_protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use thalweg_protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use thalweg_protocol::messages::describe_cluster::DescribeClusterRequest;
use thalweg_protocol::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use thalweg_protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use thalweg_protocol::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic,
};
use thalweg_protocol::{ErrorCode, Uuid};

use crate::calls::{
    PRODUCE, all_topics, batch, create_topic, create_topic_with, fetch, list_offset, only, produce,
    produce_request,
};
use crate::harness::{Client, Harness, Way, three_ways};

three_ways!(
    topics_are_made_when_they_are_asked_for,
    metadata_by_name_by_id_and_of_all,
    every_version_of_metadata,
    a_topic_that_is_made_anew_is_another_one,
    what_cannot_be_created_is_refused,
    configs_are_shown_with_their_source_and_can_be_changed,
    partitions_can_be_added,
    the_cluster_is_described,
);

async fn metadata(client: &Client, names: &[&str], auto_create: bool) -> MetadataResponse {
    let topics =
        names.iter().map(|&name| MetadataRequestTopic { name: Some(name.into()), ..Default::default() });
    let request = MetadataRequest {
        topics: Some(topics.collect()),
        allow_auto_topic_creation: auto_create,
        ..Default::default()
    };
    client.call(request, 12).await
}

async fn topic(client: &Client, name: &str, auto_create: bool) -> MetadataResponseTopic {
    metadata(client, &[name], auto_create).await.topics.remove(0)
}

async fn topics_are_made_when_they_are_asked_for(harness: &Harness) {
    let client = harness.connect().await;
    let code = ErrorCode::from(topic(&client, "wanted", false).await.error_code);
    assert_eq!(code, ErrorCode::UnknownTopicOrPartition);
    let made = topic(&client, "wanted", true).await;
    assert_eq!((made.error_code, made.partitions.len(), made.is_internal), (0, 1, false));
    assert!(!made.topic_id.is_zero());
    // It takes writes as soon as it is listed.
    assert_eq!(produce(&client, "wanted", batch(["v"])).await, 0);
    let code = ErrorCode::from(topic(&client, "no/such name", true).await.error_code);
    assert_eq!(code, ErrorCode::InvalidTopicException);
    let code = ErrorCode::from(topic(&client, "..", false).await.error_code);
    assert_eq!(code, ErrorCode::InvalidTopicException);
}

async fn metadata_by_name_by_id_and_of_all(harness: &Harness) {
    let client = harness.connect().await;
    let id = create_topic(&client, "a", 2).await;
    create_topic(&client, "b", 1).await;
    let all = client.call(all_topics(), 13).await;
    let names: Vec<_> = all.topics.iter().map(|topic| topic.name.as_deref().unwrap_or_default()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(all.cluster_id.as_deref(), Some(&*harness.broker.cluster_id().to_string()));
    assert_eq!((all.brokers.len(), all.brokers[0].node_id, all.controller_id), (1, 1, 1));
    assert!(metadata(&client, &[], true).await.topics.is_empty(), "none are asked for");

    let by_id = |topic_id| MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { topic_id, name: None }]),
        ..Default::default()
    };
    let found = client.call(by_id(id), 12).await.topics.remove(0);
    assert_eq!((found.error_code, found.name.as_deref(), found.topic_id), (0, Some("a"), id));
    let partition = &found.partitions[1];
    assert_eq!((partition.partition_index, partition.leader_id), (1, 1));
    assert_eq!((&partition.replica_nodes[..], &partition.isr_nodes[..]), (&[1][..], &[1][..]));
    let unknown = client.call(by_id(Uuid([3; 16])), 12).await.topics.remove(0);
    assert_eq!(ErrorCode::from(unknown.error_code), ErrorCode::UnknownTopicId);
}

async fn every_version_of_metadata(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    for version in 0..=13 {
        let asked = MetadataRequestTopic { name: Some("t".into()), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![asked]), ..Default::default() };
        let response = client.call(request, version).await;
        assert_eq!(response.topics[0].name.as_deref(), Some("t"), "version {version}");
        assert_eq!(response.topics[0].partitions.len(), 1, "version {version}");
        let all = MetadataRequest { topics: (version == 0).then(Vec::new), ..Default::default() };
        assert_eq!(client.call(all, version).await.topics.len(), 1, "version {version}");
    }
}

async fn a_topic_that_is_made_anew_is_another_one(harness: &Harness) {
    let client = harness.connect().await;
    let first = create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["old"])).await;
    let again = create_topic_with(&client, "t", 1, &[]).await;
    assert_eq!(ErrorCode::from(again.error_code), ErrorCode::TopicAlreadyExists);

    let delete = DeleteTopicsRequest {
        topics: vec![
            DeleteTopicState { name: Some("t".into()), topic_id: Uuid::ZERO },
            DeleteTopicState { name: None, topic_id: Uuid([5; 16]) },
            DeleteTopicState { name: Some("nowhere".into()), topic_id: Uuid::ZERO },
        ],
        ..Default::default()
    };
    let response = client.call(delete, 6).await;
    let codes: Vec<_> = response.responses.iter().map(|result| ErrorCode::from(result.error_code)).collect();
    assert_eq!(codes, [ErrorCode::None, ErrorCode::UnknownTopicId, ErrorCode::UnknownTopicOrPartition]);
    assert_eq!(response.responses[0].topic_id, first);
    let gone = fetch(&client, "t", 0).await;
    assert_eq!(ErrorCode::from(gone.error_code), ErrorCode::UnknownTopicOrPartition);

    let second = create_topic(&client, "t", 1).await;
    assert_ne!(first, second);
    assert_eq!(list_offset(&client, "t", -1).await.offset, 0, "it is empty");
    let delete = DeleteTopicsRequest { topic_names: vec!["t".into()], ..Default::default() };
    assert_eq!(client.call(delete, 5).await.responses[0].error_code, 0);
}

async fn what_cannot_be_created_is_refused(harness: &Harness) {
    let client = harness.connect().await;
    let topic = |name: &str, num_partitions, replication_factor| CreatableTopic {
        name: name.into(),
        num_partitions,
        replication_factor,
        ..Default::default()
    };
    let long = "x".repeat(250);
    let topics = vec![
        topic("good", 1, 1),
        topic("none", 0, 1),
        topic("factor", 1, 3),
        topic("", 1, 1),
        topic("a b", 1, 1),
        topic(&long, 1, 1),
        topic("default", -1, -1),
    ];
    let request = CreateTopicsRequest { topics, validate_only: true, ..Default::default() };
    let response = client.call(request, 7).await;
    let codes: Vec<_> = response.topics.iter().map(|topic| ErrorCode::from(topic.error_code)).collect();
    let expected = [
        ErrorCode::None,
        ErrorCode::InvalidPartitions,
        ErrorCode::InvalidReplicationFactor,
        ErrorCode::InvalidTopicException,
        ErrorCode::InvalidTopicException,
        ErrorCode::InvalidTopicException,
        ErrorCode::None,
    ];
    assert_eq!(codes, expected);
    assert!(response.topics[1].error_message.is_some());
    let all = client.call(all_topics(), 13).await;
    assert!(all.topics.is_empty(), "they were only validated");
    let bad = create_topic_with(&client, "t", 1, &[("retention.ms", "soon")]).await;
    assert_eq!(ErrorCode::from(bad.error_code), ErrorCode::InvalidConfig);
    for version in 2..=7 {
        let topics = vec![topic(&format!("version-{version}"), 1, 1)];
        let request = CreateTopicsRequest { topics, ..Default::default() };
        assert_eq!(client.call(request, version).await.topics[0].error_code, 0, "version {version}");
    }
}

async fn config(client: &Client, topic: &str, name: &str) -> (Option<String>, i8) {
    let resource = DescribeConfigsResource {
        resource_type: 2,
        resource_name: topic.into(),
        configuration_keys: Some(vec![name.into()]),
    };
    let request =
        DescribeConfigsRequest { resources: vec![resource], include_synonyms: true, ..Default::default() };
    let mut response = client.call(request, 4).await;
    let shown = response.results.remove(0).configs.remove(0);
    (shown.value.map(|value| value.to_string()), shown.config_source)
}

async fn configs_are_shown_with_their_source_and_can_be_changed(harness: &Harness) {
    let client = harness.connect().await;
    create_topic_with(&client, "t", 1, &[("retention.ms", "1000000")]).await;
    assert_eq!(config(&client, "t", "retention.ms").await, (Some("1000000".to_owned()), 1));
    assert_eq!(config(&client, "t", "max.message.bytes").await, (Some("1048588".to_owned()), 5));
    assert_eq!(config(&client, "t", "durability").await, (Some("durable".to_owned()), 5));

    let change = |name: &str, config_operation, value: Option<&str>| IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: 2,
            resource_name: "t".into(),
            configs: vec![AlterableConfig {
                name: name.into(),
                config_operation,
                value: value.map(Into::into),
            }],
        }],
        validate_only: false,
    };
    let response = client.call(change("retention.ms", 1, None), 1).await;
    assert_eq!(response.responses[0].error_code, 0);
    assert_eq!(config(&client, "t", "retention.ms").await.1, 5);
    let response = client.call(change("max.message.bytes", 0, Some("200")), 1).await;
    assert_eq!(response.responses[0].error_code, 0);
    let response = client.call(change("max.message.bytes", 0, Some("-5")), 1).await;
    assert_eq!(ErrorCode::from(response.responses[0].error_code), ErrorCode::InvalidConfig);
    // The change reaches the log at once.
    let large = crate::calls::produce_request("t", -1, vec![(0, batch(["x".repeat(300)]))]);
    let answer = crate::calls::only(client.call(large, crate::calls::PRODUCE).await);
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::MessageTooLarge);
}

async fn partitions_can_be_added(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let more = |name: &str, count| CreatePartitionsTopic { name: name.into(), count, assignments: None };
    // Groups are found by the number of partitions that they were written with.
    crate::grouping::find_coordinator(&client, "g", 0).await;
    let topics = vec![more("__consumer_offsets", 60), more("t", 3), more("nowhere", 3)];
    let request = CreatePartitionsRequest { topics, timeout_ms: 1000, validate_only: false };
    let response = client.call(request, 3).await;
    let codes: BTreeMap<_, _> =
        response.results.iter().map(|result| (&*result.name, ErrorCode::from(result.error_code))).collect();
    let expected = [
        ("__consumer_offsets", ErrorCode::InvalidPartitions),
        ("nowhere", ErrorCode::UnknownTopicOrPartition),
        ("t", ErrorCode::None),
    ];
    assert_eq!(codes, BTreeMap::from(expected));
    let request = crate::calls::produce_request("t", -1, vec![(2, batch(["v"]))]);
    assert_eq!(crate::calls::only(client.call(request, crate::calls::PRODUCE).await).error_code, 0);
}

async fn the_cluster_is_described(harness: &Harness) {
    let client = harness.connect().await;
    for version in 0..=2 {
        let request = DescribeClusterRequest {
            include_cluster_authorized_operations: true,
            endpoint_type: 1,
            ..Default::default()
        };
        let response = client.call(request, version).await;
        assert_eq!((response.error_code, response.controller_id), (0, 1), "version {version}");
        assert_eq!(*response.cluster_id, *harness.broker.cluster_id().to_string());
        assert_eq!(response.brokers.len(), 1);
        assert!(response.cluster_authorized_operations > 0);
    }
}

#[tokio::test]
async fn retention_runs_by_itself() {
    let change = |config: &mut thalweg_broker::BrokerConfig| config.retention_check_interval_ms = 20;
    let harness = Harness::start_with(Way::InProcess, change, AllowAll).await;
    let client = harness.connect().await;
    let configs = [("segment.bytes", "4096"), ("retention.bytes", "8192"), ("retention.ms", "-1")];
    create_topic_with(&client, "t", 1, &configs).await;
    for _ in 0..20 {
        produce(&client, "t", batch(["x".repeat(2000)])).await;
    }
    let start = Instant::now();
    while list_offset(&client, "t", -2).await.offset < 10 {
        assert!(start.elapsed() < Duration::from_secs(20), "nothing was deleted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(list_offset(&client, "t", -1).await.offset, 20);
    harness.finish().await;
}

#[tokio::test]
async fn a_topic_with_fewer_replicas_than_are_to_be_in_sync_takes_writes() {
    let change = |config: &mut thalweg_broker::BrokerConfig| {
        config.topic_defaults = [("min.insync.replicas".to_owned(), "2".to_owned())].into();
    };
    let harness = Harness::start_with(Way::InProcess, change, AllowAll).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let request = produce_request("t", -1, vec![(0, batch(["v"]))]);
    let answer = only(client.call(request, PRODUCE).await);
    // A topic that has fewer replicas than it asks for is satisfied with those, as in Kafka.
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::None);
    harness.finish().await;
}
