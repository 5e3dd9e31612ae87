//! Committed offsets over the wire.

use bytestring::ByteString;
use thalweg_protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use thalweg_protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
};
use thalweg_protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
};
use thalweg_protocol::{ErrorCode, Uuid};

use crate::calls::create_topic;
use crate::grouping::{code, find_coordinator, join_request, sync_request};
use crate::harness::{Client, Harness, Way, three_ways};

three_ways! {
    offsets_are_kept_and_told_in_every_version,
    what_cannot_be_kept_is_refused_by_itself,
    members_of_the_generation_commit_and_nobody_else,
    offsets_of_a_topic_that_was_made_anew_are_gone,
}

const COMMIT: i16 = 9;

pub fn commit_request(group: &str, topic: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition {
        partition_index: partition,
        committed_offset: offset,
        committed_metadata: Some("seen".into()),
        ..Default::default()
    };
    OffsetCommitRequest {
        group_id: group.into(),
        topics: vec![OffsetCommitRequestTopic {
            name: topic.into(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn only(response: &OffsetCommitResponse) -> ErrorCode {
    code(response.topics[0].partitions[0].error_code)
}

/// Fetches one partition of one topic in version 9.
pub async fn fetch_offset(
    client: &Client,
    group: &str,
    topic: &str,
    require_stable: bool,
) -> OffsetFetchResponsePartitions {
    let topic =
        OffsetFetchRequestTopics { name: topic.into(), partition_indexes: vec![0], ..Default::default() };
    let group =
        OffsetFetchRequestGroup { group_id: group.into(), topics: Some(vec![topic]), ..Default::default() };
    let request = OffsetFetchRequest { groups: vec![group], require_stable, ..Default::default() };
    let mut group = client.call(request, 9).await.groups.remove(0);
    assert_eq!(code(group.error_code), ErrorCode::None);
    group.topics.remove(0).partitions.remove(0)
}

async fn offsets_are_kept_and_told_in_every_version(harness: &Harness) {
    let client = harness.connect().await;
    let topic_id = create_topic(&client, "t", 2).await;
    find_coordinator(&client, "g", 0).await;
    for version in 2..=10 {
        let group = format!("g{version}");
        let mut request = commit_request(&group, "t", 1, 40 + i64::from(version));
        if version >= 10 {
            (request.topics[0].name, request.topics[0].topic_id) = (ByteString::new(), topic_id);
        }
        if version >= 6 {
            request.topics[0].partitions[0].committed_leader_epoch = 0;
        }
        let response = client.call(request, version).await;
        assert_eq!(only(&response), ErrorCode::None, "version {version}");
        assert_eq!(response.topics[0].topic_id.is_zero(), version < 10);
    }
    for version in 1..=7 {
        for all in [false, true] {
            if all && version < 2 {
                continue;
            }
            let asked = OffsetFetchRequestTopic { name: "t".into(), partition_indexes: vec![0, 1] };
            let request = OffsetFetchRequest {
                group_id: "g7".into(),
                topics: (!all).then(|| vec![asked]),
                ..Default::default()
            };
            let response = client.call(request, version).await;
            let partitions = &response.topics[0].partitions;
            let told: Vec<_> = partitions
                .iter()
                .map(|p| (p.partition_index, p.committed_offset, p.metadata.as_deref().unwrap_or_default()))
                .collect();
            let expected: &[_] = if all { &[(1, 47, "seen")] } else { &[(0, -1, ""), (1, 47, "seen")] };
            assert_eq!(told, expected, "version {version}");
        }
    }
    for version in 8..=10 {
        for all in [false, true] {
            let asked = OffsetFetchRequestTopics {
                name: if version < 10 { "t".into() } else { ByteString::new() },
                topic_id: if version < 10 { Uuid::ZERO } else { topic_id },
                partition_indexes: vec![1],
            };
            let group = |id: &str| OffsetFetchRequestGroup {
                group_id: id.into(),
                topics: (!all).then(|| vec![asked.clone()]),
                ..Default::default()
            };
            let request = OffsetFetchRequest {
                groups: vec![group("g2"), group("g10"), group("nobody")],
                ..Default::default()
            };
            let groups = client.call(request, version).await.groups;
            let told: Vec<_> = groups
                .iter()
                .flat_map(|group| &group.topics)
                .flat_map(|topic| &topic.partitions)
                .map(|partition| (partition.committed_offset, partition.committed_leader_epoch))
                .collect();
            let expected: &[_] = if all { &[(42, -1), (50, 0)] } else { &[(42, -1), (50, 0), (-1, -1)] };
            assert_eq!(told, expected, "version {version}");
        }
    }
}

async fn what_cannot_be_kept_is_refused_by_itself(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    let mut request = commit_request("g", "t", 0, 1);
    let partition = request.topics[0].partitions[0].clone();
    request.topics[0]
        .partitions
        .push(OffsetCommitRequestPartition { partition_index: 7, ..partition.clone() });
    let long = ByteString::from("x".repeat(5_000));
    request.topics[0]
        .partitions
        .push(OffsetCommitRequestPartition { committed_metadata: Some(long), ..partition.clone() });
    request.topics.push(OffsetCommitRequestTopic {
        name: "nowhere".into(),
        partitions: vec![partition],
        ..Default::default()
    });
    let response = client.call(request, COMMIT).await;
    let codes: Vec<_> =
        response.topics.iter().flat_map(|t| &t.partitions).map(|p| code(p.error_code)).collect();
    let expected = [
        ErrorCode::None,
        ErrorCode::UnknownTopicOrPartition,
        ErrorCode::OffsetMetadataTooLarge,
        ErrorCode::UnknownTopicOrPartition,
    ];
    assert_eq!(codes, expected);
    assert_eq!(fetch_offset(&client, "g", "t", true).await.committed_offset, 1);
    let mut by_id = commit_request("g", "", 0, 1);
    by_id.topics[0].topic_id = Uuid([7; 16]);
    assert_eq!(only(&client.call(by_id, 10).await), ErrorCode::UnknownTopicId);
    assert_eq!(only(&client.call(commit_request("", "t", 0, 1), COMMIT).await), ErrorCode::InvalidGroupId);
}

async fn members_of_the_generation_commit_and_nobody_else(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    let joined = client.call(join_request("g", "", Some("i")), 9).await;
    let id = joined.member_id.to_string();
    let commit = async |member: &str, instance: Option<&str>, generation: i32| {
        let mut request = commit_request("g", "t", 0, 5);
        request.member_id = member.into();
        request.group_instance_id = instance.map(ByteString::from);
        request.generation_id_or_member_epoch = generation;
        only(&client.call(request, COMMIT).await)
    };
    assert_eq!(commit(&id, None, 1).await, ErrorCode::RebalanceInProgress);
    client.call(sync_request("g", &id, 1, &[(&id, "all")]), 5).await;
    assert_eq!(commit(&id, None, 1).await, ErrorCode::None);
    assert_eq!(commit(&id, Some("i"), 1).await, ErrorCode::None);
    assert_eq!(commit("zombie", Some("i"), 1).await, ErrorCode::FencedInstanceId);
    assert_eq!(commit(&id, None, 0).await, ErrorCode::IllegalGeneration);
    assert_eq!(commit("nobody", None, 1).await, ErrorCode::UnknownMemberId);
    assert_eq!(commit("", None, -1).await, ErrorCode::UnknownMemberId);
    let mut request = commit_request("no group", "t", 0, 5);
    request.generation_id_or_member_epoch = 3;
    assert_eq!(only(&client.call(request, COMMIT).await), ErrorCode::IllegalGeneration);
}

async fn offsets_of_a_topic_that_was_made_anew_are_gone(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    assert_eq!(only(&client.call(commit_request("g", "t", 0, 5), COMMIT).await), ErrorCode::None);
    let topics = vec![DeleteTopicState { name: Some("t".into()), ..Default::default() }];
    client.call(DeleteTopicsRequest { topics, ..Default::default() }, 6).await;
    create_topic(&client, "t", 1).await;
    assert_eq!(fetch_offset(&client, "g", "t", true).await.committed_offset, -1);
}

#[tokio::test]
async fn offsets_outlive_the_broker() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    for offset in [5, 7] {
        assert_eq!(only(&client.call(commit_request("g", "t", 0, offset), COMMIT).await), ErrorCode::None);
    }
    let harness = harness.restart().await;
    let client = harness.connect().await;
    let told = fetch_offset(&client, "g", "t", true).await;
    assert_eq!((told.committed_offset, told.metadata.as_deref()), (7, Some("seen")));
    harness.finish().await;
}
