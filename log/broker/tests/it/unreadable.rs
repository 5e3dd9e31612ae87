//! What groups are told when a partition of the topic that their state is in cannot be read: an error, and never less than
//! there is.

use std::path::{Path, PathBuf};

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use thalweg_protocol::messages::delete_groups::DeleteGroupsRequest;
use thalweg_protocol::messages::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequestTopic,
};
use thalweg_protocol::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic, DescribeShareGroupOffsetsResponseGroup,
};
use thalweg_protocol::messages::list_groups::ListGroupsRequest;
use thalweg_protocol::messages::share_group_heartbeat::ShareGroupHeartbeatRequest;

use crate::calls::{batch, create_topic, produce};
use crate::grouping::code;
use crate::harness::{Client, Harness, Way};

/// A share group without members that begins at offset 1 of `t`.
async fn share_group(client: &Client) {
    create_topic(client, "t", 1).await;
    produce(client, "t", batch(["a", "b"])).await;
    for epoch in [0, -1] {
        let beat = ShareGroupHeartbeatRequest {
            group_id: "share".into(),
            member_id: "m".into(),
            member_epoch: epoch,
            subscribed_topic_names: Some(vec!["t".into()]),
            ..Default::default()
        };
        // The coordinator's topic is being made at first.
        while code(client.call(beat.clone(), 1).await.error_code) != ErrorCode::None {
            crate::grouping::find_coordinator(client, "share", 0).await;
        }
    }
    let partition = AlterShareGroupOffsetsRequestPartition { partition_index: 0, start_offset: 1 };
    let topic = AlterShareGroupOffsetsRequestTopic { topic_name: "t".into(), partitions: vec![partition] };
    let request = AlterShareGroupOffsetsRequest { group_id: "share".into(), topics: vec![topic] };
    let answer = client.call(request, 0).await;
    assert_eq!(code(answer.responses[0].partitions[0].error_code), ErrorCode::None, "{answer:?}");
}

async fn describe(client: &Client, topics: Option<&[&str]>) -> DescribeShareGroupOffsetsResponseGroup {
    let asked = |name: &&str| DescribeShareGroupOffsetsRequestTopic {
        topic_name: (*name).into(),
        partitions: vec![0],
    };
    let group = DescribeShareGroupOffsetsRequestGroup {
        group_id: "share".into(),
        topics: topics.map(|topics| topics.iter().map(asked).collect()),
    };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group] };
    client.call(request, 1).await.groups.remove(0)
}

/// Where the group begins, by name and among all.
async fn starts(client: &Client) -> [i64; 2] {
    let described = [describe(client, Some(&["t"])).await, describe(client, None).await];
    described.map(|group| {
        assert_eq!(code(group.error_code), ErrorCode::None);
        group.topics[0].partitions[0].start_offset
    })
}

async fn delete_offsets(client: &Client) -> ErrorCode {
    let topics = vec![DeleteShareGroupOffsetsRequestTopic { topic_name: "t".into() }];
    let request = DeleteShareGroupOffsetsRequest { group_id: "share".into(), topics };
    let answer = client.call(request, 0).await;
    assert_eq!(code(answer.error_code), ErrorCode::None);
    code(answer.responses[0].error_code)
}

async fn delete_group(client: &Client) -> ErrorCode {
    let request = DeleteGroupsRequest { groups_names: vec!["share".into()] };
    code(client.call(request, 2).await.results[0].error_code)
}

async fn list(client: &Client) -> (ErrorCode, Vec<String>) {
    let answer = client.call(ListGroupsRequest::default(), 5).await;
    (code(answer.error_code), answer.groups.iter().map(|group| group.group_id.to_string()).collect())
}

/// The log of the one partition of `topic` that holds something.
fn used(dir: &Path, topic: &str) -> PathBuf {
    let logs = (0..4).map(|index| dir.join(format!("{topic}-{index}")));
    let is_used = |log: &PathBuf| {
        std::fs::metadata(log.join("00000000000000000000.log")).is_ok_and(|segment| segment.len() > 0)
    };
    let used: Vec<_> = logs.filter(is_used).collect();
    assert_eq!(used.len(), 1, "one has the group");
    used.into_iter().next().expect("there is one")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_cannot_be_read_are_told_and_not_forgotten() {
    let not_available = ErrorCode::CoordinatorNotAvailable;
    let harness = Harness::start(Way::InProcess).await;
    let client = harness.connect().await;
    assert_eq!(list(&client).await, (ErrorCode::None, vec![]), "there is no topic of groups yet");
    share_group(&client).await;
    assert_eq!(starts(&client).await, [1, 1]);
    drop(client);
    let dir = harness.stop().await;

    let state = used(dir.path(), "__share_group_state");
    let aside = tempfile::TempDir::new_in(dir.path().parent().expect("it has one")).expect("a directory");
    std::fs::rename(&state, aside.path().join("log")).expect("it was there");
    let harness = Harness::resume(Way::InProcess, dir).await;
    let client = harness.connect().await;
    assert_eq!(list(&client).await, (ErrorCode::None, vec!["share".to_owned()]));
    let all = describe(&client, None).await;
    assert_eq!((code(all.error_code), all.topics.len()), (not_available, 0));
    let one = describe(&client, Some(&["t"])).await.topics.remove(0).partitions.remove(0);
    assert!(code(one.error_code).is_retriable(), "{one:?}");
    assert_eq!((one.start_offset, one.lag), (-1, -1));
    assert_eq!(delete_offsets(&client).await, not_available);
    assert_eq!(delete_group(&client).await, not_available);
    drop(client);
    let dir = harness.stop().await;

    // With the log everything is there again, the group too.
    std::fs::rename(aside.path().join("log"), &state).expect("it was there");
    let harness = Harness::resume(Way::InProcess, dir).await;
    let client = harness.connect().await;
    assert_eq!(starts(&client).await, [1, 1]);
    drop(client);
    let dir = harness.stop().await;

    let groups = used(dir.path(), "__consumer_offsets");
    std::fs::rename(&groups, aside.path().join("log")).expect("it was there");
    let harness = Harness::resume(Way::InProcess, dir).await;
    let client = harness.connect().await;
    assert_eq!(list(&client).await, (not_available, vec![]));
    assert_ne!(delete_group(&client).await, ErrorCode::None);
    drop(client);
    let dir = harness.stop().await;

    std::fs::rename(aside.path().join("log"), &groups).expect("it was there");
    let harness = Harness::resume(Way::InProcess, dir).await;
    let client = harness.connect().await;
    assert_eq!(list(&client).await, (ErrorCode::None, vec!["share".to_owned()]));
    assert_eq!(delete_group(&client).await, ErrorCode::None);
    assert_eq!(list(&client).await, (ErrorCode::None, vec![]));
    harness.finish().await;
}
