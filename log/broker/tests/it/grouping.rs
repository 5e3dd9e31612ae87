//! Groups over the wire: every version of their APIs, members that come and go, and what a restart keeps.

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::delete_groups::DeleteGroupsRequest;
use thalweg_protocol::messages::describe_groups::{DescribeGroupsRequest, DescribedGroup};
use thalweg_protocol::messages::find_coordinator::FindCoordinatorRequest;
use thalweg_protocol::messages::heartbeat::HeartbeatRequest;
use thalweg_protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use thalweg_protocol::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use thalweg_protocol::messages::list_groups::ListGroupsRequest;
use thalweg_protocol::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};

use crate::harness::{Client, Harness, Way, three_ways};

three_ways! {
    coordinators_are_found_in_every_version,
    a_group_lives_in_every_version_of_its_apis,
    two_members_share_a_group,
    groups_are_listed_described_and_deleted,
}

/// The newest versions.
const JOIN: i16 = 9;
const SYNC: i16 = 5;
const HEARTBEAT: i16 = 4;
const LEAVE: i16 = 5;

pub fn code(code: i16) -> ErrorCode {
    ErrorCode::from(code)
}

pub async fn find_coordinator(client: &Client, key: &str, key_type: i8) {
    let request =
        FindCoordinatorRequest { key_type, coordinator_keys: vec![key.into()], ..Default::default() };
    let found = client.call(request, 6).await.coordinators.remove(0);
    assert_eq!((code(found.error_code), found.node_id), (ErrorCode::None, 1));
}

pub fn join_request(group: &str, member: &str, instance: Option<&str>) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol { name: "range".into(), metadata: Bytes::from_static(b"topics") };
    JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member.into(),
        group_instance_id: instance.map(ByteString::from),
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..Default::default()
    }
}

/// Joins with the id that the broker gives.
async fn join_new(client: &Client, group: &str) -> (String, impl Future<Output = JoinGroupResponse> + use<>) {
    let refused = client.call(join_request(group, "", None), JOIN).await;
    assert_eq!(code(refused.error_code), ErrorCode::MemberIdRequired);
    let id = refused.member_id.to_string();
    let joined = client.send(join_request(group, &id, None), JOIN);
    (id, joined)
}

pub fn sync_request(
    group: &str,
    member: &str,
    generation: i32,
    assignments: &[(&str, &'static str)],
) -> SyncGroupRequest {
    let assignments = assignments.iter().map(|(member, part)| SyncGroupRequestAssignment {
        member_id: (*member).into(),
        assignment: Bytes::from_static(part.as_bytes()),
    });
    SyncGroupRequest {
        group_id: group.into(),
        generation_id: generation,
        member_id: member.into(),
        assignments: assignments.collect(),
        ..Default::default()
    }
}

pub async fn heartbeat(client: &Client, group: &str, member: &str, generation: i32) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: group.into(),
        generation_id: generation,
        member_id: member.into(),
        ..Default::default()
    };
    code(client.call(request, HEARTBEAT).await.error_code)
}

async fn describe(client: &Client, group: &str, version: i16) -> DescribedGroup {
    let request = DescribeGroupsRequest { groups: vec![group.into()], ..Default::default() };
    client.call(request, version).await.groups.remove(0)
}

async fn coordinators_are_found_in_every_version(harness: &Harness) {
    let client = harness.connect().await;
    for version in 0..=6 {
        for (key_type, expected) in
            [(0, ErrorCode::None), (1, ErrorCode::None), (9, ErrorCode::InvalidRequest)]
        {
            if version == 0 && key_type != 0 {
                continue;
            }
            let mut request = FindCoordinatorRequest { key_type, ..Default::default() };
            if version < 4 {
                request.key = "key".into();
                let found = client.call(request, version).await;
                assert_eq!(code(found.error_code), expected, "version {version}");
            } else {
                request.coordinator_keys = vec!["one".into(), "two".into()];
                let found = client.call(request, version).await.coordinators;
                assert_eq!(found.len(), 2);
                assert!(found.iter().all(|one| code(one.error_code) == expected), "version {version}");
            }
        }
    }
}

async fn a_group_lives_in_every_version_of_its_apis(harness: &Harness) {
    let client = harness.connect().await;
    find_coordinator(&client, "g", 0).await;
    for version in 0..=JOIN {
        let group = format!("g{version}");
        let mut request = join_request(&group, "", (version >= 5).then_some("instance"));
        if version == 0 {
            request.rebalance_timeout_ms = -1;
        }
        let mut joined = client.call(request.clone(), version).await;
        if version == 4 {
            assert_eq!(code(joined.error_code), ErrorCode::MemberIdRequired);
            request.member_id = joined.member_id;
            joined = client.call(request, version).await;
        }
        assert_eq!(
            (code(joined.error_code), joined.generation_id),
            (ErrorCode::None, 1),
            "version {version}"
        );
        assert_eq!((joined.leader.clone(), joined.members.len()), (joined.member_id.clone(), 1));
        let id = joined.member_id.to_string();

        let mut sync = sync_request(&group, &id, 1, &[(&id, "all")]);
        let sync_version = version.min(SYNC);
        if sync_version >= 5 {
            (sync.protocol_type, sync.protocol_name) = (Some("consumer".into()), Some("range".into()));
        }
        let synced = client.call(sync, sync_version).await;
        assert_eq!((code(synced.error_code), &*synced.assignment), (ErrorCode::None, &b"all"[..]));
        let beat = HeartbeatRequest {
            group_id: group.as_str().into(),
            generation_id: 1,
            member_id: id.as_str().into(),
            ..Default::default()
        };
        assert_eq!(code(client.call(beat, version.min(HEARTBEAT)).await.error_code), ErrorCode::None);

        let leave_version = version.min(LEAVE);
        let mut leave = LeaveGroupRequest { group_id: group.as_str().into(), ..Default::default() };
        if leave_version < 3 {
            leave.member_id = id.as_str().into();
        } else {
            let member = MemberIdentity { member_id: id.as_str().into(), ..Default::default() };
            leave.members = vec![member, MemberIdentity { member_id: "nobody".into(), ..Default::default() }];
        }
        let left = client.call(leave, leave_version).await;
        assert_eq!(code(left.error_code), ErrorCode::None);
        let codes: Vec<_> = left.members.iter().map(|member| code(member.error_code)).collect();
        let expected: &[_] =
            if leave_version < 3 { &[] } else { &[ErrorCode::None, ErrorCode::UnknownMemberId] };
        assert_eq!(codes, expected, "version {leave_version}");
        for version in 0..=6 {
            let described = describe(&client, &group, version).await;
            assert_eq!((&*described.group_state, described.members.len()), ("Empty", 0));
        }
    }
}

async fn two_members_share_a_group(harness: &Harness) {
    let (one, two) = (harness.connect().await, harness.connect().await);
    find_coordinator(&one, "g", 0).await;
    let (a, joined) = join_new(&one, "g").await;
    let joined = joined.await;
    assert_eq!((code(joined.error_code), joined.generation_id), (ErrorCode::None, 1));
    let synced = one.call(sync_request("g", &a, 1, &[(&a, "all")]), SYNC).await;
    assert_eq!(&*synced.assignment, b"all");

    let (b, b_joined) = join_new(&two, "g").await;
    while heartbeat(&one, "g", &a, 1).await != ErrorCode::RebalanceInProgress {}
    let a_joined = one.call(join_request("g", &a, None), JOIN).await;
    let b_joined = b_joined.await;
    assert_eq!((a_joined.generation_id, b_joined.generation_id), (2, 2));
    assert_eq!((a_joined.members.len(), b_joined.members.len()), (2, 0));
    let b_synced = two.send(sync_request("g", &b, 2, &[]), SYNC);
    let a_synced = one.call(sync_request("g", &a, 2, &[(&a, "odd"), (&b, "even")]), SYNC).await;
    let b_synced: SyncGroupResponse = b_synced.await;
    assert_eq!((&*a_synced.assignment, &*b_synced.assignment), (&b"odd"[..], &b"even"[..]));
    assert_eq!(heartbeat(&two, "g", &b, 2).await, ErrorCode::None);
    assert_eq!(heartbeat(&two, "g", "nobody", 2).await, ErrorCode::UnknownMemberId);
    assert_eq!(heartbeat(&two, "no group", &b, 2).await, ErrorCode::UnknownMemberId);
    assert_eq!(heartbeat(&two, "", &b, 2).await, ErrorCode::InvalidGroupId);
}

async fn groups_are_listed_described_and_deleted(harness: &Harness) {
    let client = harness.connect().await;
    find_coordinator(&client, "g", 0).await;
    let (id, joined) = join_new(&client, "g").await;
    assert_eq!(code(joined.await.error_code), ErrorCode::None);
    client.call(sync_request("g", &id, 1, &[(&id, "all")]), SYNC).await;
    let described = describe(&client, "g", 6).await;
    assert_eq!((&*described.group_state, &*described.protocol_type), ("Stable", "consumer"));
    assert_eq!((&*described.protocol_data, &*described.members[0].member_id), ("range", &*id));
    assert_eq!(&*described.members[0].member_assignment, b"all");
    let missing = describe(&client, "nobody", 6).await;
    assert_eq!((code(missing.error_code), &*missing.group_state), (ErrorCode::GroupIdNotFound, "Dead"));
    assert_eq!(code(describe(&client, "nobody", 5).await.error_code), ErrorCode::None);

    for version in 0..=5 {
        let listed = client.call(ListGroupsRequest::default(), version).await.groups;
        assert_eq!((listed.len(), &*listed[0].group_id), (1, "g"));
    }
    for (states, types, found) in
        [(&["stable"][..], &[][..], 1), (&["Empty"], &[], 0), (&[], &["consumer"], 0)]
    {
        let request = ListGroupsRequest {
            states_filter: states.iter().map(|&state| state.into()).collect(),
            types_filter: types.iter().map(|&kind| kind.into()).collect(),
        };
        assert_eq!(client.call(request, 5).await.groups.len(), found, "{states:?} {types:?}");
    }

    let delete = DeleteGroupsRequest { groups_names: vec!["g".into(), "nobody".into()] };
    let codes = async |version| {
        let results = client.call(delete.clone(), version).await.results;
        results.iter().map(|result| code(result.error_code)).collect::<Vec<_>>()
    };
    assert_eq!(codes(3).await, [ErrorCode::NonEmptyGroup, ErrorCode::GroupIdNotFound]);
    let member = MemberIdentity { member_id: id.as_str().into(), ..Default::default() };
    let leave = LeaveGroupRequest { group_id: "g".into(), members: vec![member], ..Default::default() };
    client.call(leave, LEAVE).await;
    assert_eq!(codes(0).await, [ErrorCode::None, ErrorCode::GroupIdNotFound]);
    assert_eq!(client.call(ListGroupsRequest::default(), 5).await.groups, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_told_the_coordinator_can_join() {
    let harness = Harness::start(Way::InProcess).await;
    // The first one makes the internal topic, the others find it half made.
    let joins = (0..8).map(|_| {
        let client = harness.broker.connect().open().expect("the broker runs");
        tokio::spawn(async move {
            let client = Client(client);
            find_coordinator(&client, "g", 0).await;
            let joined = client.call(join_request("g", "", None), JOIN).await;
            assert_eq!(code(joined.error_code), ErrorCode::MemberIdRequired);
        })
    });
    for join in joins.collect::<Vec<_>>() {
        join.await.expect("told and taken");
    }
    harness.finish().await;
}

#[tokio::test]
async fn a_group_outlives_its_broker() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    find_coordinator(&client, "g", 0).await;
    let joined = client.call(join_request("g", "", Some("instance")), JOIN).await;
    let id = joined.member_id.to_string();
    client.call(sync_request("g", &id, 1, &[(&id, "all")]), SYNC).await;
    let harness = harness.restart().await;
    let client = harness.connect().await;
    assert_eq!(heartbeat(&client, "g", &id, 1).await, ErrorCode::None);
    let synced = client.call(sync_request("g", &id, 1, &[]), SYNC).await;
    assert_eq!(&*synced.assignment, b"all");
    // A static member that was started anew, too, goes on where it was.
    let back = client.call(join_request("g", "", Some("instance")), JOIN).await;
    assert_eq!((code(back.error_code), back.generation_id, back.skip_assignment), (ErrorCode::None, 1, true));
    assert_eq!(heartbeat(&client, "g", &id, 1).await, ErrorCode::UnknownMemberId);
    harness.finish().await;
}

#[tokio::test]
async fn a_member_that_is_not_heard_of_is_given_up() {
    let harness = Harness::start_with(
        Way::Tcp,
        |config| config.group_min_session_timeout_ms = 1,
        thalweg_broker::AllowAll,
    )
    .await;
    let client = harness.connect().await;
    find_coordinator(&client, "g", 0).await;
    let mut request = join_request("g", "", Some("instance"));
    request.session_timeout_ms = 100;
    let joined = client.call(request, JOIN).await;
    let id = joined.member_id.to_string();
    client.call(sync_request("g", &id, 1, &[(&id, "all")]), SYNC).await;
    while describe(&client, "g", 6).await.group_state != "Empty" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(heartbeat(&client, "g", &id, 1).await, ErrorCode::UnknownMemberId);
    harness.finish().await;
}
