//! Groups that the broker assigns to (KIP-848), over the wire.

use bytestring::ByteString;
use thalweg_broker::{AllowAll, GroupMigrationPolicy};
use thalweg_protocol::messages::consumer_group_describe::{ConsumerGroupDescribeRequest, DescribedGroup};
use thalweg_protocol::messages::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};
use thalweg_protocol::messages::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use thalweg_protocol::messages::delete_groups::DeleteGroupsRequest;
use thalweg_protocol::messages::describe_groups::DescribeGroupsRequest;
use thalweg_protocol::messages::join_group::JoinGroupResponse;
use thalweg_protocol::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use thalweg_protocol::messages::list_groups::ListGroupsRequest;
use thalweg_protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use thalweg_protocol::messages::records::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
use thalweg_protocol::{ErrorCode, Uuid};

use crate::calls::create_topic;
use crate::committing::commit_request;
use crate::grouping::{code, find_coordinator, heartbeat, join_request, sync_request};
use crate::harness::{Client, Harness, Way, three_ways};

three_ways! {
    two_members_share_what_the_broker_assigns,
    requests_are_refused_with_codes_that_members_understand,
    offsets_go_by_member_epochs,
    topics_that_come_and_grow_are_assigned,
    groups_of_both_kinds_are_told_apart,
    a_classic_group_becomes_one_of_the_consumer_protocol_and_back,
}

/// The newest version of both APIs.
const NEWEST: i16 = 1;

pub fn join(group: &str, member: &str, topics: &[&str]) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: group.into(),
        member_id: member.into(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(topics.iter().map(|&topic| topic.into()).collect()),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    }
}

fn beat(
    group: &str,
    member: &str,
    epoch: i32,
    owned: Option<(Uuid, &[i32])>,
) -> ConsumerGroupHeartbeatRequest {
    let topic = |(topic_id, partitions): (Uuid, &[i32])| TopicPartitions {
        topic_id,
        partitions: partitions.to_vec(),
    };
    ConsumerGroupHeartbeatRequest {
        group_id: group.into(),
        member_id: member.into(),
        member_epoch: epoch,
        topic_partitions: owned.map(|owned| vec![topic(owned)]),
        ..Default::default()
    }
}

/// The epoch, and the partitions of the only topic if they were told.
fn told(answer: &ConsumerGroupHeartbeatResponse) -> (i32, Option<Vec<i32>>) {
    assert_eq!(code(answer.error_code), ErrorCode::None, "{answer:?}");
    let partitions = answer.assignment.as_ref().map(|assignment| {
        let topics = assignment.topic_partitions.iter();
        topics.flat_map(|topic| topic.partitions.iter().copied()).collect()
    });
    (answer.member_epoch, partitions)
}

async fn describe(client: &Client, group: &str) -> DescribedGroup {
    let request =
        ConsumerGroupDescribeRequest { group_ids: vec![group.into()], include_authorized_operations: true };
    client.call(request, NEWEST).await.groups.remove(0)
}

async fn two_members_share_what_the_broker_assigns(harness: &Harness) {
    let client = harness.connect().await;
    let id = create_topic(&client, "t", 4).await;
    find_coordinator(&client, "g", 0).await;
    // In version 0 the broker chooses the id.
    let mut first = join("g", "", &["t"]);
    first.rack_id = Some("rack".into());
    let a = client.call(first, 0).await;
    assert_eq!((told(&a), a.heartbeat_interval_ms), ((1, Some(vec![0, 1, 2, 3])), 5_000));
    let a = a.member_id.expect("it is given one").to_string();
    let b = client.call(join("g", "b", &["t"]), NEWEST).await;
    assert_eq!((told(&b), b.member_id.as_deref()), ((2, Some(vec![])), Some("b")));
    assert_eq!(told(&client.call(beat("g", &a, 1, None), NEWEST).await), (1, Some(vec![0, 1])));
    let given_up = beat("g", &a, 1, Some((id, &[0, 1])));
    assert_eq!(told(&client.call(given_up, NEWEST).await), (2, None));
    assert_eq!(told(&client.call(beat("g", "b", 2, None), NEWEST).await), (2, Some(vec![2, 3])));

    let described = describe(&client, "g").await;
    assert_eq!((code(described.error_code), &*described.group_state), (ErrorCode::None, "Stable"));
    assert_eq!((described.group_epoch, described.assignment_epoch), (2, 2));
    assert_eq!(&*described.assignor_name, "uniform");
    assert_ne!(described.authorized_operations, i32::MIN);
    let member = described.members.iter().find(|member| member.member_id == *a).expect("it is a member");
    assert_eq!((member.rack_id.as_deref(), member.member_epoch, member.member_type), (Some("rack"), 2, 1));
    assert_eq!(member.assignment, member.target_assignment);
    let topic = &member.assignment.topic_partitions[0];
    assert_eq!((&*topic.topic_name, topic.topic_id, &*topic.partitions), ("t", id, &[0, 1][..]));

    assert_eq!(told(&client.call(beat("g", &a, -1, None), NEWEST).await), (-1, None));
    assert_eq!(told(&client.call(beat("g", "b", 2, None), NEWEST).await), (3, Some(vec![0, 1, 2, 3])));
}

async fn requests_are_refused_with_codes_that_members_understand(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    let by_pattern = |pattern: &str| ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: None,
        subscribed_topic_regex: Some(pattern.into()),
        ..join("g", "p", &[])
    };
    let assignor =
        ConsumerGroupHeartbeatRequest { server_assignor: Some("mine".into()), ..join("g", "a", &["t"]) };
    let is_static = |member: &str| ConsumerGroupHeartbeatRequest {
        instance_id: Some("i".into()),
        ..join("g", member, &["t"])
    };
    for (request, expected) in [
        (beat("nobody", "a", 3, None), ErrorCode::UnknownMemberId),
        (join("", "a", &["t"]), ErrorCode::InvalidRequest),
        (join("g", "", &["t"]), ErrorCode::InvalidRequest),
        (assignor, ErrorCode::UnsupportedAssignor),
        (by_pattern("("), ErrorCode::InvalidRegularExpression),
        (by_pattern("t"), ErrorCode::None),
        (beat("g", "p", 5, None), ErrorCode::FencedMemberEpoch),
        (is_static("s1"), ErrorCode::None),
        (is_static("s2"), ErrorCode::UnreleasedInstanceId),
    ] {
        let answer = client.call(request.clone(), NEWEST).await;
        assert_eq!(code(answer.error_code), expected, "{request:?}");
        assert_eq!(answer.error_message.is_some(), expected != ErrorCode::None);
    }
    assert_eq!(code(describe(&client, "nobody").await.error_code), ErrorCode::GroupIdNotFound);
}

async fn topics_that_come_and_grow_are_assigned(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "orders", 1).await;
    find_coordinator(&client, "g", 0).await;
    let request = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: None,
        subscribed_topic_regex: Some("orders.*".into()),
        ..join("g", "a", &[])
    };
    assert_eq!(told(&client.call(request, NEWEST).await), (1, Some(vec![0])));
    create_topic(&client, "sales", 1).await;
    assert_eq!(told(&client.call(beat("g", "a", 1, None), NEWEST).await), (1, None), "it does not match");
    create_topic(&client, "orders.eu", 1).await;
    assert_eq!(told(&client.call(beat("g", "a", 1, None), NEWEST).await), (2, Some(vec![0, 0])));
    let topic = CreatePartitionsTopic { name: "orders".into(), count: 3, assignments: None };
    let grow = CreatePartitionsRequest { topics: vec![topic], timeout_ms: 10_000, validate_only: false };
    assert_eq!(code(client.call(grow, 3).await.results[0].error_code), ErrorCode::None);
    let (epoch, partitions) = told(&client.call(beat("g", "a", 2, None), NEWEST).await);
    assert_eq!((epoch, partitions.map(|all| all.len())), (3, Some(4)));
    let member = describe(&client, "g").await.members.remove(0);
    assert_eq!(
        (member.subscribed_topic_regex.as_deref(), &*member.subscribed_topic_names),
        (Some("orders.*"), &[][..])
    );
}

async fn offsets_go_by_member_epochs(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    client.call(join("g", "a", &["t"]), NEWEST).await;
    let commit = async |member: &str, epoch: i32, version: i16| {
        let mut request = commit_request("g", "t", 0, 5);
        request.member_id = member.into();
        request.generation_id_or_member_epoch = epoch;
        code(client.call(request, version).await.topics[0].partitions[0].error_code)
    };
    for (member, epoch, version, expected) in [
        ("a", 1, 9, ErrorCode::None),
        ("a", 2, 9, ErrorCode::StaleMemberEpoch),
        ("a", 1, 8, ErrorCode::UnsupportedVersion),
        ("b", 1, 9, ErrorCode::UnknownMemberId),
        ("", -1, 9, ErrorCode::UnknownMemberId),
    ] {
        assert_eq!(commit(member, epoch, version).await, expected, "{member:?} {epoch} {version}");
    }
    let fetch = async |member: Option<&str>, epoch: i32| {
        let topic =
            OffsetFetchRequestTopics { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
        let group = OffsetFetchRequestGroup {
            group_id: "g".into(),
            member_id: member.map(ByteString::from),
            member_epoch: epoch,
            topics: Some(vec![topic]),
        };
        let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
        let group = client.call(request, 9).await.groups.remove(0);
        match code(group.error_code) {
            ErrorCode::None => Ok(group.topics[0].partitions[0].committed_offset),
            code => Err(code),
        }
    };
    assert_eq!(fetch(None, -1).await, Ok(5));
    assert_eq!(fetch(Some("a"), 1).await, Ok(5));
    assert_eq!(fetch(Some("a"), 0).await, Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(fetch(Some("b"), 1).await, Err(ErrorCode::UnknownMemberId));
    client.call(beat("g", "a", -1, None), NEWEST).await;
    assert_eq!(commit("", -1, 9).await, ErrorCode::None, "nobody is there any more");
}

async fn groups_of_both_kinds_are_told_apart(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "new", 0).await;
    client.call(join("new", "a", &["t"]), NEWEST).await;
    client.call(join_request("old", "", Some("i")), 9).await;
    for (states, types, found) in [
        (&[][..], &[][..], &["new", "old"][..]),
        (&[], &["consumer"], &["new"]),
        (&[], &["Classic"], &["old"]),
        (&["stable"], &[], &["new"]),
        (&["CompletingRebalance"], &["classic"], &["old"]),
        (&["Empty"], &[], &[]),
    ] {
        let request = ListGroupsRequest {
            states_filter: states.iter().map(|&state| state.into()).collect(),
            types_filter: types.iter().map(|&kind| kind.into()).collect(),
        };
        let groups = client.call(request, 5).await.groups;
        let ids: Vec<_> = groups.iter().map(|group| &*group.group_id).collect();
        assert_eq!(ids, found, "{states:?} {types:?}");
        for group in &groups {
            let expected = if group.group_id == "new" { "consumer" } else { "classic" };
            assert_eq!((&*group.group_type, &*group.protocol_type), (expected, "consumer"));
        }
    }
    let classic = async |version| {
        let request = DescribeGroupsRequest { groups: vec!["new".into()], ..Default::default() };
        client.call(request, version).await.groups.remove(0)
    };
    assert_eq!(code(classic(6).await.error_code), ErrorCode::GroupIdNotFound);
    let dead = classic(5).await;
    assert_eq!((code(dead.error_code), &*dead.group_state), (ErrorCode::None, "Dead"));
    assert_eq!(code(describe(&client, "old").await.error_code), ErrorCode::GroupIdNotFound);

    let delete = async || {
        let request = DeleteGroupsRequest { groups_names: vec!["new".into()] };
        code(client.call(request, 3).await.results.remove(0).error_code)
    };
    assert_eq!(delete().await, ErrorCode::NonEmptyGroup);
    client.call(beat("new", "a", -1, None), NEWEST).await;
    assert_eq!(&*describe(&client, "new").await.group_state, "Empty");
    assert_eq!(delete().await, ErrorCode::None);
    assert_eq!(code(describe(&client, "new").await.error_code), ErrorCode::GroupIdNotFound);
}

/// Joins as a consumer that reads `t` in the classic protocol.
async fn join_classic(client: &Client, group: &str, member: &str) -> JoinGroupResponse {
    let subscription = ConsumerProtocolSubscription { topics: vec!["t".into()], ..Default::default() };
    let mut request = join_request(group, member, None);
    request.protocols[0].metadata = subscription.to_bytes(1).expect("short");
    let joined = client.call(request.clone(), 9).await;
    if code(joined.error_code) != ErrorCode::MemberIdRequired {
        return joined;
    }
    request.member_id = joined.member_id;
    client.call(request, 9).await
}

async fn sync_classic(client: &Client, group: &str, joined: &JoinGroupResponse) -> Vec<i32> {
    let synced = client.call(sync_request(group, &joined.member_id, joined.generation_id, &[]), 5).await;
    assert_eq!(code(synced.error_code), ErrorCode::None);
    let told = ConsumerProtocolAssignment::from_bytes(synced.assignment).expect("consumers read it");
    told.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect()
}

async fn a_classic_group_becomes_one_of_the_consumer_protocol_and_back(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 2).await;
    find_coordinator(&client, "g", 0).await;
    let a = join_classic(&client, "g", "").await;
    let id = a.member_id.to_string();
    let assignment = ConsumerProtocolAssignment {
        assigned_partitions: vec![thalweg_protocol::messages::records::TopicPartition {
            topic: "t".into(),
            partitions: vec![0, 1],
        }],
        user_data: None,
    };
    let mut sync = sync_request("g", &id, 1, &[(&id, "")]);
    sync.assignments[0].assignment = assignment.to_bytes(1).expect("short");
    client.call(sync, 5).await;
    assert_eq!(heartbeat(&client, "g", &id, 1).await, ErrorCode::None);

    let b = client.call(join("g", "b", &["t"]), NEWEST).await;
    assert_eq!(told(&b), (2, Some(vec![])), "the other one has everything");
    let types: Vec<_> = describe(&client, "g").await.members.iter().map(|m| m.member_type).collect();
    assert_eq!(types.iter().sum::<i8>(), 1, "one of each kind: {types:?}");
    assert_eq!(heartbeat(&client, "g", &id, 1).await, ErrorCode::RebalanceInProgress);
    let a = join_classic(&client, "g", &id).await;
    assert_eq!((code(a.error_code), a.generation_id, &*a.leader), (ErrorCode::None, 2, ""));
    assert_eq!(sync_classic(&client, "g", &a).await, [0]);
    assert_eq!(heartbeat(&client, "g", &id, 2).await, ErrorCode::None);
    assert_eq!(told(&client.call(beat("g", "b", 2, None), NEWEST).await), (2, Some(vec![1])));
    let commit = async |generation: i32| {
        let mut request = commit_request("g", "t", 0, 5);
        request.member_id = id.as_str().into();
        request.generation_id_or_member_epoch = generation;
        code(client.call(request, 8).await.topics[0].partitions[0].error_code)
    };
    assert_eq!((commit(2).await, commit(1).await), (ErrorCode::None, ErrorCode::IllegalGeneration));

    client.call(beat("g", "b", -1, None), NEWEST).await;
    assert_eq!(code(describe(&client, "g").await.error_code), ErrorCode::GroupIdNotFound);
    let told = heartbeat(&client, "g", &id, 3).await;
    assert_eq!(told, ErrorCode::RebalanceInProgress, "it is to join the classic group again");
    let a = join_classic(&client, "g", &id).await;
    assert_eq!((code(a.error_code), &*a.leader, a.members.len()), (ErrorCode::None, &*id, 1));
    let member = MemberIdentity { member_id: id.as_str().into(), ..Default::default() };
    let leave = LeaveGroupRequest { group_id: "g".into(), members: vec![member], ..Default::default() };
    assert_eq!(code(client.call(leave, 5).await.members[0].error_code), ErrorCode::None);
    // Without members a group may always change.
    assert_eq!(told_epoch(&client.call(join("g", "c", &["t"]), NEWEST).await), 1);
}

fn told_epoch(answer: &ConsumerGroupHeartbeatResponse) -> i32 {
    told(answer).0
}

#[tokio::test]
async fn a_policy_keeps_groups_as_they_are() {
    let policy = GroupMigrationPolicy::Disabled;
    let harness =
        Harness::start_with(Way::Tcp, |config| config.group_consumer_migration_policy = policy, AllowAll)
            .await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    assert_eq!(code(join_classic(&client, "g", "").await.error_code), ErrorCode::None);
    let refused = client.call(join("g", "b", &["t"]), NEWEST).await;
    assert_eq!(code(refused.error_code), ErrorCode::GroupIdNotFound);
    harness.finish().await;
}

#[tokio::test]
async fn a_consumer_group_outlives_its_broker() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    let id = create_topic(&client, "t", 2).await;
    find_coordinator(&client, "g", 0).await;
    client.call(join("g", "a", &["t"]), NEWEST).await;
    client.call(join("g", "b", &["t"]), NEWEST).await;
    client.call(beat("g", "a", 1, None), NEWEST).await;
    let before = describe(&client, "g").await;
    let harness = harness.restart().await;
    let client = harness.connect().await;
    assert_eq!(describe(&client, "g").await, before);
    assert_eq!(told(&client.call(beat("g", "a", 1, Some((id, &[0]))), NEWEST).await), (2, None));
    assert_eq!(told(&client.call(beat("g", "b", 2, None), NEWEST).await), (2, Some(vec![1])));
    harness.finish().await;
}

#[tokio::test]
async fn a_member_that_sends_no_heartbeats_is_given_up() {
    let change = |config: &mut thalweg_broker::BrokerConfig| config.group_consumer_session_timeout_ms = 200;
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    client.call(join("g", "a", &["t"]), NEWEST).await;
    while describe(&client, "g").await.group_state != "Empty" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let gone = client.call(beat("g", "a", 1, None), NEWEST).await;
    assert_eq!(code(gone.error_code), ErrorCode::UnknownMemberId);
    harness.finish().await;
}
