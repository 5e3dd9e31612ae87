//! Deleting committed offsets, while members read some of the topics.

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::join_group::JoinGroupRequest;
use thalweg_protocol::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use thalweg_protocol::messages::records::ConsumerProtocolSubscription;

use crate::calls::create_topic;
use crate::committing::{commit_request, fetch_offset};
use crate::grouping::{code, find_coordinator, join_request, sync_request};
use crate::harness::{Client, Harness, Way, three_ways};

three_ways! {
    offsets_of_topics_that_nobody_reads_can_be_deleted,
    members_keep_the_offsets_of_what_they_read,
}

use ErrorCode::{GroupIdNotFound, GroupSubscribedToTopic, NonEmptyGroup, UnknownTopicOrPartition};

/// Deletes the offsets of partitions, and returns the codes of each, or the one of the whole request.
async fn delete(
    client: &Client,
    group: &str,
    partitions: &[(&str, i32)],
) -> Result<Vec<ErrorCode>, ErrorCode> {
    let topics = partitions.iter().map(|&(topic, partition_index)| OffsetDeleteRequestTopic {
        name: topic.into(),
        partitions: vec![OffsetDeleteRequestPartition { partition_index }],
    });
    let request = OffsetDeleteRequest { group_id: group.into(), topics: topics.collect() };
    let answer = client.call(request, 0).await;
    match code(answer.error_code) {
        ErrorCode::None => {
            let told = |topic: &str, at: i32| {
                let topic = answer.topics.iter().find(|answered| answered.name == topic);
                let partition =
                    topic.and_then(|topic| topic.partitions.iter().find(|p| p.partition_index == at));
                code(partition.expect("every partition is answered").error_code)
            };
            Ok(partitions.iter().map(|&(topic, at)| told(topic, at)).collect())
        }
        code => Err(code),
    }
}

async fn commit(client: &Client, group: &str, topic: &str, member: &str, generation: i32) {
    let mut request = commit_request(group, topic, 0, 5);
    request.member_id = member.into();
    request.generation_id_or_member_epoch = generation;
    let answer = client.call(request, 9).await;
    assert_eq!(code(answer.topics[0].partitions[0].error_code), ErrorCode::None);
}

/// Joins alone, and commits for `t` and `u`.
async fn join(client: &Client, group: &'static str, protocol_type: &str, metadata: Bytes) {
    let mut request: JoinGroupRequest = join_request(group, "", Some(group));
    request.protocol_type = protocol_type.into();
    request.protocols[0].metadata = metadata;
    let joined = client.call(request, 9).await;
    assert_eq!(code(joined.error_code), ErrorCode::None);
    let id = joined.member_id.to_string();
    client.call(sync_request(group, &id, joined.generation_id, &[(&id, "all")]), 5).await;
    for topic in ["t", "u"] {
        commit(client, group, topic, &id, joined.generation_id).await;
    }
}

async fn offsets_of_topics_that_nobody_reads_can_be_deleted(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 2).await;
    create_topic(&client, "u", 1).await;
    find_coordinator(&client, "g", 0).await;
    assert_eq!(delete(&client, "g", &[("t", 0)]).await, Err(GroupIdNotFound));
    assert_eq!(delete(&client, "", &[("t", 0)]).await, Err(ErrorCode::InvalidGroupId));
    commit(&client, "g", "t", "", -1).await;
    commit(&client, "g", "u", "", -1).await;
    let deleted = delete(&client, "g", &[("t", 0), ("t2", 0)]).await;
    assert_eq!(deleted, Ok(vec![ErrorCode::None, UnknownTopicOrPartition]));
    assert_eq!(fetch_offset(&client, "g", "t", true).await.committed_offset, -1);
    assert_eq!(delete(&client, "g", &[("t", 0)]).await, Ok(vec![ErrorCode::None]), "there is none any more");
    assert_eq!(fetch_offset(&client, "g", "u", true).await.committed_offset, 5);
    assert_eq!(delete(&client, "g", &[("u", 0)]).await, Ok(vec![ErrorCode::None]));
    assert_eq!(delete(&client, "g", &[("u", 0)]).await, Err(GroupIdNotFound), "nothing is left of it");
}

async fn members_keep_the_offsets_of_what_they_read(harness: &Harness) {
    let client = harness.connect().await;
    for topic in ["t", "u"] {
        create_topic(&client, topic, 1).await;
    }
    let reads_t = ConsumerProtocolSubscription { topics: vec!["t".into()], ..Default::default() };
    let reads_t = reads_t.to_bytes(1).expect("short");
    for (group, protocol_type, metadata, expected) in [
        ("reads t", "consumer", reads_t.clone(), Ok(vec![GroupSubscribedToTopic, ErrorCode::None])),
        ("unreadable", "consumer", Bytes::from_static(b"?"), Ok(vec![GroupSubscribedToTopic; 2])),
        ("connect", "connect", reads_t, Err(NonEmptyGroup)),
    ] {
        find_coordinator(&client, group, 0).await;
        join(&client, group, protocol_type, metadata).await;
        assert_eq!(delete(&client, group, &[("t", 0), ("u", 0)]).await, expected, "{group}");
        let kept = |codes: &[ErrorCode], at: usize| match codes[at] {
            ErrorCode::None => -1,
            _ => 5,
        };
        let codes = expected.unwrap_or(vec![NonEmptyGroup; 2]);
        for (at, topic) in ["t", "u"].into_iter().enumerate() {
            let found = fetch_offset(&client, group, topic, true).await.committed_offset;
            assert_eq!(found, kept(&codes, at), "{group} {topic}");
        }
    }
}

#[tokio::test]
async fn deleted_offsets_stay_deleted() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    for topic in ["t", "u"] {
        create_topic(&client, topic, 1).await;
        find_coordinator(&client, "g", 0).await;
        commit(&client, "g", topic, "", -1).await;
    }
    assert_eq!(delete(&client, "g", &[("t", 0)]).await, Ok(vec![ErrorCode::None]));
    let harness = harness.restart().await;
    let client = harness.connect().await;
    let offsets: Vec<(ByteString, i64)> = vec![("t".into(), -1), ("u".into(), 5)];
    for (topic, expected) in offsets {
        assert_eq!(fetch_offset(&client, "g", &topic, true).await.committed_offset, expected, "{topic}");
    }
    harness.finish().await;
}
