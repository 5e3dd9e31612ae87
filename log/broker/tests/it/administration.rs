//! What tools ask a cluster about, and ask of it.

use thalweg_protocol::messages::describe_log_dirs::{DescribableLogDirTopic, DescribeLogDirsRequest};
use thalweg_protocol::messages::describe_quorum::{DescribeQuorumRequest, PartitionData, TopicData};
use thalweg_protocol::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, TopicRequest,
};
use thalweg_protocol::messages::elect_leaders::{ElectLeadersRequest, TopicPartitions};
use thalweg_protocol::messages::get_telemetry_subscriptions::GetTelemetrySubscriptionsRequest;
use thalweg_protocol::messages::list_config_resources::ListConfigResourcesRequest;
use thalweg_protocol::messages::push_telemetry::PushTelemetryRequest;
use thalweg_protocol::messages::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};
use thalweg_protocol::{ErrorCode, Uuid};

use crate::calls::{batch, create_topic, produce};
use crate::harness::{Client, Harness, Way, three_ways};
use crate::versions::api_versions;

three_ways!(
    topics_are_described_page_by_page,
    resources_with_configs_are_listed,
    log_directories_are_described,
    the_quorum_is_this_node,
    leaders_are_elected_where_that_is_needed,
    nobody_wants_the_metrics_of_clients,
);

/// What a walk over all pages of `limit` partitions finds: names, partition indexes and error codes.
async fn walk(client: &Client, topics: &[&str], limit: i32) -> Vec<(String, Vec<i32>, ErrorCode)> {
    let mut found: Vec<(String, Vec<i32>, ErrorCode)> = Vec::new();
    let mut cursor = None;
    loop {
        let request = DescribeTopicPartitionsRequest {
            topics: topics.iter().map(|&name| TopicRequest { name: name.into() }).collect(),
            response_partition_limit: limit,
            cursor,
        };
        let response = client.call(request, 0).await;
        let mut count = 0;
        for topic in response.topics {
            let name = topic.name.expect("it has a name").to_string();
            let indexes: Vec<i32> =
                topic.partitions.iter().map(|partition| partition.partition_index).collect();
            count += indexes.len();
            assert!(
                topic
                    .partitions
                    .iter()
                    .all(|partition| (partition.leader_id, partition.error_code) == (1, 0))
            );
            match found.last_mut().filter(|last| last.0 == name) {
                Some(last) => last.1.extend(indexes),
                None => found.push((name, indexes, topic.error_code.into())),
            }
        }
        assert!(count <= limit.max(1) as usize, "{count} partitions");
        cursor = response.next_cursor;
        if cursor.is_none() {
            return found;
        }
    }
}

async fn topics_are_described_page_by_page(harness: &Harness) {
    let client = harness.connect().await;
    for (name, partitions) in [("a", 3), ("b", 1), ("c", 4)] {
        create_topic(&client, name, partitions).await;
    }
    let whole = |name: &str, count: i32| (name.to_owned(), (0..count).collect(), ErrorCode::None);
    let all = [whole("a", 3), whole("b", 1), whole("c", 4)];
    let unknown = ("bb".to_owned(), Vec::new(), ErrorCode::UnknownTopicOrPartition);
    for limit in [1, 2, 3, 4, 7, 8, 2000, 0, -5, i32::MAX] {
        assert_eq!(walk(&client, &[], limit).await, all, "limit {limit}");
        let named = walk(&client, &["c", "a", "bb", "c"], limit).await;
        assert_eq!(named, [all[0].clone(), unknown.clone(), all[2].clone()], "limit {limit}");
    }
    let invalid = ("no good".to_owned(), Vec::new(), ErrorCode::InvalidTopicException);
    assert_eq!(walk(&client, &["no good"], 10).await, [invalid]);
    // A cursor to where nothing is any more goes on behind it.
    for (topic, partition, first) in [("a", 2, "a"), ("a", 3, "a"), ("ab", 0, "b"), ("z", 0, "")] {
        let cursor = Cursor { topic_name: topic.into(), partition_index: partition };
        let request = DescribeTopicPartitionsRequest { cursor: Some(cursor), ..Default::default() };
        let response = client.call(request, 0).await;
        let name = response.topics.first().and_then(|topic| topic.name.clone()).unwrap_or_default();
        assert_eq!(&*name, first, "{topic} {partition}");
    }
    let request = DescribeTopicPartitionsRequest {
        topics: vec![TopicRequest { name: "a".into() }],
        cursor: Some(Cursor { topic_name: "a".into(), partition_index: -1 }),
        ..Default::default()
    };
    let refused = client.call(request, 0).await;
    assert_eq!(ErrorCode::from(refused.topics[0].error_code), ErrorCode::InvalidRequest);
}

async fn resources_with_configs_are_listed(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "a", 1).await;
    let list = |resource_types: &[i8]| ListConfigResourcesRequest { resource_types: resource_types.to_vec() };
    for (wanted, version, expected, code) in [
        (list(&[]), 0, vec![], ErrorCode::None),
        (list(&[]), 1, vec![("a", 2), ("1", 4)], ErrorCode::None),
        (list(&[2, 2]), 1, vec![("a", 2)], ErrorCode::None),
        (list(&[4, 16, 32]), 1, vec![("1", 4)], ErrorCode::None),
        (list(&[2, 8]), 1, vec![], ErrorCode::UnsupportedVersion),
    ] {
        let response = client.call(wanted, version).await;
        let found: Vec<_> = response
            .config_resources
            .iter()
            .map(|resource| (&*resource.resource_name, resource.resource_type))
            .collect();
        assert_eq!((found, ErrorCode::from(response.error_code)), (expected, code));
    }
}

async fn log_directories_are_described(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "a", 2).await;
    create_topic(&client, "b", 1).await;
    produce(&client, "a", batch(["x".repeat(1000)])).await;
    for version in 1..=5 {
        let response = client.call(DescribeLogDirsRequest { topics: None }, version).await;
        let result = &response.results[0];
        assert_eq!((response.error_code, response.results.len(), result.error_code), (0, 1, 0));
        let dir = std::fs::canonicalize(harness.dir()).expect("it is there");
        assert_eq!(std::fs::canonicalize(&*result.log_dir).expect("it is there"), dir);
        let sizes: Vec<_> = result
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|partition| (&*topic.name, partition)))
            .map(|(topic, partition)| {
                assert_eq!((partition.offset_lag, partition.is_future_key), (0, false));
                (topic, partition.partition_index, partition.partition_size > 0)
            })
            .collect();
        assert_eq!(sizes, [("a", 0, true), ("a", 1, false), ("b", 0, false)]);
        if version >= 4 {
            assert!(result.usable_bytes > 0 && result.total_bytes >= result.usable_bytes, "{result:?}");
        }
    }
    let asked = |topic: &str, partitions: &[i32]| DescribableLogDirTopic {
        topic: topic.into(),
        partitions: partitions.to_vec(),
    };
    let topics = vec![asked("a", &[1, 9]), asked("nowhere", &[0])];
    let response = client.call(DescribeLogDirsRequest { topics: Some(topics) }, 4).await;
    let topics = &response.results[0].topics;
    assert_eq!((topics.len(), &*topics[0].name, topics[0].partitions[0].partition_index), (1, "a", 1));
    let response = client.call(DescribeLogDirsRequest { topics: Some(Vec::new()) }, 4).await;
    assert!(response.results[0].topics.is_empty());
}

async fn the_quorum_is_this_node(harness: &Harness) {
    let client = harness.connect().await;
    for version in 0..=2 {
        let topic = |name: &str, partition_index| TopicData {
            topic_name: name.into(),
            partitions: vec![PartitionData { partition_index }],
        };
        let topics = vec![topic("__cluster_metadata", 0), topic("__cluster_metadata", 1), topic("t", 0)];
        let response = client.call(DescribeQuorumRequest { topics }, version).await;
        let codes: Vec<_> =
            response.topics.iter().map(|topic| ErrorCode::from(topic.partitions[0].error_code)).collect();
        let unknown = ErrorCode::UnknownTopicOrPartition;
        assert_eq!(codes, [ErrorCode::None, unknown, unknown]);
        let metadata = &response.topics[0].partitions[0];
        let voter = &metadata.current_voters[0];
        assert_eq!((metadata.leader_id, voter.replica_id, metadata.current_voters.len()), (1, 1, 1));
        assert!(metadata.high_watermark > 0 && voter.log_end_offset == metadata.high_watermark);
        assert_eq!(response.nodes.len(), usize::from(version >= 2));
    }
}

async fn leaders_are_elected_where_that_is_needed(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 2).await;
    let asked = |election_type, topic: &str, partitions: &[i32]| ElectLeadersRequest {
        election_type,
        topic_partitions: Some(vec![TopicPartitions {
            topic: topic.into(),
            partitions: partitions.to_vec(),
        }]),
        ..Default::default()
    };
    for version in 0..=2 {
        let response = client.call(asked(0, "t", &[0, 1, 7]), version).await;
        let results = &response.replica_election_results[0].partition_result;
        let codes: Vec<_> = results.iter().map(|result| ErrorCode::from(result.error_code)).collect();
        let needless = ErrorCode::ElectionNotNeeded;
        assert_eq!(codes, [needless, needless, ErrorCode::UnknownTopicOrPartition], "version {version}");
        // Of all partitions, those are told about which something was done.
        let request = ElectLeadersRequest { topic_partitions: None, ..Default::default() };
        let response = client.call(request, version).await;
        assert_eq!((response.error_code, response.replica_election_results.len()), (0, 0));
    }
    let response = client.call(asked(1, "t", &[0]), 2).await;
    let code = response.replica_election_results[0].partition_result[0].error_code;
    assert_eq!(ErrorCode::from(code), ErrorCode::ElectionNotNeeded, "its leader is there");
    let response = client.call(asked(9, "t", &[0]), 2).await;
    assert_eq!(ErrorCode::from(response.error_code), ErrorCode::InvalidRequest);
}

async fn nobody_wants_the_metrics_of_clients(harness: &Harness) {
    let client = harness.connect().await;
    let known = Uuid([3; 16]);
    for asked in [Uuid::ZERO, known] {
        let request = GetTelemetrySubscriptionsRequest { client_instance_id: asked };
        let response = client.call(request, 0).await;
        assert_eq!((response.error_code, response.requested_metrics.len()), (0, 0));
        assert!(response.push_interval_ms >= 60_000, "clients are to be quiet");
        assert_eq!(response.client_instance_id == known, asked == known);
        assert!(!response.client_instance_id.is_zero());
        let push = PushTelemetryRequest {
            client_instance_id: response.client_instance_id,
            subscription_id: response.subscription_id,
            compression_type: response.accepted_compression_types[0],
            metrics: vec![0; 10].into(),
            ..Default::default()
        };
        for (push, expected) in [
            (push.clone(), ErrorCode::None),
            (PushTelemetryRequest { terminating: true, ..push.clone() }, ErrorCode::None),
            (
                PushTelemetryRequest { client_instance_id: Uuid::ZERO, ..push.clone() },
                ErrorCode::InvalidRequest,
            ),
            (PushTelemetryRequest { subscription_id: -9, ..push.clone() }, ErrorCode::UnknownSubscriptionId),
            (
                PushTelemetryRequest { compression_type: 77, ..push.clone() },
                ErrorCode::UnsupportedCompressionType,
            ),
            (
                PushTelemetryRequest { metrics: vec![0; (1 << 20) + 1].into(), ..push.clone() },
                ErrorCode::TelemetryTooLarge,
            ),
        ] {
            assert_eq!(ErrorCode::from(client.call(push, 0).await.error_code), expected);
        }
    }
}

/// The finalised level of the feature of transactions.
async fn level(client: &Client) -> i16 {
    let response = client.call(api_versions(), 4).await;
    let name = "transaction.version";
    assert!(response.supported_features.iter().any(|feature| feature.name == name));
    let finalized = response.finalized_features.iter().find(|feature| feature.name == name);
    finalized.map_or(0, |feature| feature.max_version_level)
}

#[tokio::test]
async fn features_keep_the_level_that_they_are_given() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    assert_eq!(level(&client).await, 2);
    let update = |feature: &str, max_version_level, upgrade_type| UpdateFeaturesRequest {
        feature_updates: vec![FeatureUpdateKey {
            feature: feature.into(),
            max_version_level,
            upgrade_type,
            ..Default::default()
        }],
        ..Default::default()
    };
    for (request, version, expected, after) in [
        (update("transaction.version", 1, 1), 1, ErrorCode::InvalidUpdateVersion, 2),
        (update("transaction.version", 1, 9), 1, ErrorCode::InvalidUpdateVersion, 2),
        (update("no.such", 1, 1), 2, ErrorCode::InvalidUpdateVersion, 2),
        (
            UpdateFeaturesRequest { validate_only: true, ..update("transaction.version", 1, 2) },
            1,
            ErrorCode::None,
            2,
        ),
        (update("transaction.version", 1, 2), 2, ErrorCode::None, 1),
        (update("transaction.version", 0, 3), 1, ErrorCode::None, 0),
        (update("transaction.version", 2, 1), 0, ErrorCode::None, 2),
        (update("transaction.version", 1, 1), 0, ErrorCode::InvalidUpdateVersion, 2),
    ] {
        // The first version has another field for the way.
        let mut request = request;
        if version == 0 {
            request.feature_updates[0].upgrade_type = 1;
        }
        let response = client.call(request.clone(), version).await;
        assert_eq!(ErrorCode::from(response.error_code), expected, "{request:?} version {version}");
        if version < 2 {
            assert_eq!(ErrorCode::from(response.results[0].error_code), expected);
        }
        assert_eq!(level(&client).await, after, "{request:?} version {version}");
    }
    let mut lower = update("transaction.version", 1, 1);
    lower.feature_updates[0].allow_downgrade = true;
    assert_eq!(client.call(lower, 0).await.error_code, 0);
    let harness = harness.restart().await;
    assert_eq!(level(&harness.connect().await).await, 1);
    harness.finish().await;
}
