//! What is advertised works, in every version, and nothing else is taken.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::bounds::DecodeBudget;
use thalweg_protocol::frame::decode_response;
use thalweg_protocol::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use thalweg_protocol::messages::describe_cluster::DescribeClusterRequest;
use thalweg_protocol::messages::produce::ProduceRequest;
use thalweg_protocol::messages::{ApiKey, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Client, Harness, Way, three_ways};

three_ways!(what_is_advertised_is_served, a_client_of_another_cluster_is_told);

pub fn api_versions() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "it".into(),
        client_software_version: "1.0".into(),
        ..Default::default()
    }
}

async fn advertised(client: &Client) -> BTreeMap<i16, (i16, i16)> {
    let response = client.call(api_versions(), 4).await;
    assert_eq!(response.error_code, 0);
    response.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version))).collect()
}

/// A request of each API that does no harm.
macro_rules! harmless {
    ($($api:ident: $module:ident::$request:ident),* $(,)?) => {
        pub fn harmless(api_key: ApiKey) -> Option<Request> {
            match api_key {
                ApiKey::Produce => Some(ProduceRequest { acks: 1, ..Default::default() }.into()),
                ApiKey::ApiVersions => Some(api_versions().into()),
                ApiKey::DescribeCluster => {
                    Some(DescribeClusterRequest { endpoint_type: 1, ..Default::default() }.into())
                }
                $(ApiKey::$api => Some(thalweg_protocol::messages::$module::$request::default().into()),)*
                _ => None,
            }
        }
    };
}

harmless! {
    Fetch: fetch::FetchRequest,
    ListOffsets: list_offsets::ListOffsetsRequest,
    Metadata: metadata::MetadataRequest,
    OffsetCommit: offset_commit::OffsetCommitRequest,
    OffsetFetch: offset_fetch::OffsetFetchRequest,
    FindCoordinator: find_coordinator::FindCoordinatorRequest,
    JoinGroup: join_group::JoinGroupRequest,
    Heartbeat: heartbeat::HeartbeatRequest,
    LeaveGroup: leave_group::LeaveGroupRequest,
    SyncGroup: sync_group::SyncGroupRequest,
    DescribeGroups: describe_groups::DescribeGroupsRequest,
    ListGroups: list_groups::ListGroupsRequest,
    CreateTopics: create_topics::CreateTopicsRequest,
    DeleteTopics: delete_topics::DeleteTopicsRequest,
    DeleteRecords: delete_records::DeleteRecordsRequest,
    InitProducerId: init_producer_id::InitProducerIdRequest,
    OffsetForLeaderEpoch: offset_for_leader_epoch::OffsetForLeaderEpochRequest,
    AddPartitionsToTxn: add_partitions_to_txn::AddPartitionsToTxnRequest,
    AddOffsetsToTxn: add_offsets_to_txn::AddOffsetsToTxnRequest,
    EndTxn: end_txn::EndTxnRequest,
    WriteTxnMarkers: write_txn_markers::WriteTxnMarkersRequest,
    TxnOffsetCommit: txn_offset_commit::TxnOffsetCommitRequest,
    DescribeConfigs: describe_configs::DescribeConfigsRequest,
    AlterConfigs: alter_configs::AlterConfigsRequest,
    CreatePartitions: create_partitions::CreatePartitionsRequest,
    DeleteGroups: delete_groups::DeleteGroupsRequest,
    IncrementalAlterConfigs: incremental_alter_configs::IncrementalAlterConfigsRequest,
    OffsetDelete: offset_delete::OffsetDeleteRequest,
    ConsumerGroupHeartbeat: consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
    ConsumerGroupDescribe: consumer_group_describe::ConsumerGroupDescribeRequest,
    DescribeProducers: describe_producers::DescribeProducersRequest,
    DescribeTransactions: describe_transactions::DescribeTransactionsRequest,
    ListTransactions: list_transactions::ListTransactionsRequest,
    DescribeLogDirs: describe_log_dirs::DescribeLogDirsRequest,
    ElectLeaders: elect_leaders::ElectLeadersRequest,
    DescribeClientQuotas: describe_client_quotas::DescribeClientQuotasRequest,
    AlterClientQuotas: alter_client_quotas::AlterClientQuotasRequest,
    DescribeQuorum: describe_quorum::DescribeQuorumRequest,
    UpdateFeatures: update_features::UpdateFeaturesRequest,
    AlterReplicaLogDirs: alter_replica_log_dirs::AlterReplicaLogDirsRequest,
    AlterPartitionReassignments: alter_partition_reassignments::AlterPartitionReassignmentsRequest,
    ListPartitionReassignments: list_partition_reassignments::ListPartitionReassignmentsRequest,
    DescribeAcls: describe_acls::DescribeAclsRequest,
    CreateAcls: create_acls::CreateAclsRequest,
    DeleteAcls: delete_acls::DeleteAclsRequest,
    DescribeUserScramCredentials: describe_user_scram_credentials::DescribeUserScramCredentialsRequest,
    AlterUserScramCredentials: alter_user_scram_credentials::AlterUserScramCredentialsRequest,
    GetTelemetrySubscriptions: get_telemetry_subscriptions::GetTelemetrySubscriptionsRequest,
    PushTelemetry: push_telemetry::PushTelemetryRequest,
    ListConfigResources: list_config_resources::ListConfigResourcesRequest,
    DescribeTopicPartitions: describe_topic_partitions::DescribeTopicPartitionsRequest,
    ShareGroupHeartbeat: share_group_heartbeat::ShareGroupHeartbeatRequest,
    ShareGroupDescribe: share_group_describe::ShareGroupDescribeRequest,
    ShareFetch: share_fetch::ShareFetchRequest,
    ShareAcknowledge: share_acknowledge::ShareAcknowledgeRequest,
    DescribeShareGroupOffsets: describe_share_group_offsets::DescribeShareGroupOffsetsRequest,
    AlterShareGroupOffsets: alter_share_group_offsets::AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsets: delete_share_group_offsets::DeleteShareGroupOffsetsRequest,
}

async fn what_is_advertised_is_served(harness: &Harness) {
    let client = harness.connect().await;
    let advertised = advertised(&client).await;
    // Versions 0 to 2 of Produce are named, and refused when they are used.
    assert_eq!(advertised[&0], (0, 13));
    for (&key, &(min, max)) in &advertised {
        let api_key = ApiKey::try_from(key).expect("only APIs that clients know");
        let first = *api_key.versions().start();
        if api_key != ApiKey::Produce {
            assert_eq!(min, first, "{api_key}");
        }
        assert!(max <= api_key.last_stable_version(), "{api_key}");
        for version in first..=max {
            let request = harmless(api_key).unwrap_or_else(|| panic!("{api_key} is not in this test"));
            let response = client.0.send(request, version).await;
            let response = response.unwrap_or_else(|error| panic!("{api_key} version {version}: {error}"));
            assert_eq!(response.api_key(), api_key);
        }
    }
}

async fn a_client_of_another_cluster_is_told(harness: &Harness) {
    let client = harness.connect().await;
    let cluster_id = harness.broker.cluster_id().to_string();
    let rebootstrap = ErrorCode::RebootstrapRequired;
    for (cluster_id, node_id, expected) in [
        (None, -1, ErrorCode::None),
        (Some(cluster_id.as_str()), 1, ErrorCode::None),
        (Some(cluster_id.as_str()), i32::MAX - 1, ErrorCode::None),
        (Some(cluster_id.as_str()), 2, rebootstrap),
        (Some("another"), 1, rebootstrap),
    ] {
        let request =
            ApiVersionsRequest { cluster_id: cluster_id.map(Into::into), node_id, ..api_versions() };
        let response = client.call(request, 5).await;
        assert_eq!(ErrorCode::from(response.error_code), expected, "{cluster_id:?} {node_id}");
    }
}

/// Sends a bare frame and returns the answer, or `None` when the broker closes.
pub async fn exchange(socket: &mut TcpStream, body: &[u8]) -> Option<Bytes> {
    let mut frame = BytesMut::new();
    frame.put_i32(body.len() as i32);
    frame.put_slice(body);
    socket.write_all(&frame).await.ok()?;
    let size = socket.read_i32().await.ok()?;
    let mut answer = BytesMut::zeroed(size as usize);
    socket.read_exact(&mut answer).await.ok()?;
    Some(answer.freeze())
}

fn header(key: i16, version: i16) -> BytesMut {
    let mut header = BytesMut::new();
    header.put_i16(key);
    header.put_i16(version);
    header.put_i32(42);
    header.put_i16(-1);
    header
}

#[tokio::test]
async fn an_unknown_version_of_api_versions_is_answered_in_version_0() {
    let harness = Harness::start(Way::Tcp).await;
    let mut socket = TcpStream::connect(harness.broker.addresses()[0]).await.expect("it listens");
    let answer = exchange(&mut socket, &header(18, 99)).await.expect("an answer");
    let (id, response) =
        decode_response(ApiKey::ApiVersions, 0, answer, DecodeBudget::RESPONSE).expect("version 0");
    let Response::ApiVersions(ApiVersionsResponse { error_code, api_keys, .. }) = response else {
        panic!("another response");
    };
    assert_eq!((id, ErrorCode::from(error_code)), (42, ErrorCode::UnsupportedVersion));
    let range = api_keys.first().expect("the range of the API itself");
    assert_eq!((range.api_key, range.min_version, range.max_version), (18, 0, 5));
    // The connection can still be used.
    let mut answer = exchange(&mut socket, &header(18, 0)).await.expect("an answer");
    assert_eq!((answer.get_i32(), answer.get_i16()), (42, 0));
    harness.finish().await;
}

/// As Kafka does. librdkafka up to 2.16 asks Metadata 9 and later for all topics with three bytes too many.
#[tokio::test]
async fn bytes_behind_a_request_are_passed_over() {
    let harness = Harness::start(Way::Tcp).await;
    let mut socket = TcpStream::connect(harness.broker.addresses()[0]).await.expect("it listens");
    for (key, version, body) in [
        (3, 1, &b"\0\0\0\0"[..]),
        (3, 12, b"\0\x01\0\0\0"),
        (10, 0, b"\0\x01g"),
        (16, 3, b"\0\0"),
        (18, 0, b""),
        (22, 0, b"\xff\xff\0\0\0\x01"),
        (60, 0, b"\0\0\0"),
    ] {
        for extra in [&b""[..], b"\0", b"\0\0\0", b"!!!!!"] {
            let mut request = header(key, version);
            request.put_slice(body);
            request.put_slice(extra);
            let answer = exchange(&mut socket, &request).await;
            let correlation_id = answer.map(|mut answer| answer.get_i32());
            assert_eq!(correlation_id, Some(42), "key {key} version {version} and {extra:?}");
        }
    }
    harness.finish().await;
}

#[tokio::test]
async fn other_unknown_apis_and_versions_end_the_connection() {
    let harness = Harness::start(Way::Tcp).await;
    // Produce 2 is named but not served; 1,000 is no API; Vote is not for clients; Metadata has no version 99.
    for (key, version) in [(0, 2), (1000, 0), (52, 0), (3, 99), (22, 6), (-1, 0)] {
        let mut socket = TcpStream::connect(harness.broker.addresses()[0]).await.expect("it listens");
        assert_eq!(exchange(&mut socket, &header(key, version)).await, None, "key {key} version {version}");
    }
    harness.finish().await;
}
