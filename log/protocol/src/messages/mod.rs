// Generated from messages.txt by generate/main.rs; do not edit.

//! The messages of the protocol: one module for each API that brokers serve to clients, and
//! [`records`] for what Kafka keeps in its internal topics.
//!
//! Fields that a version lacks have their default after decoding. Encoding refuses to drop a
//! field that has another value, unless Kafka calls it ignorable.

mod api;
pub mod records;

pub mod add_offsets_to_txn;
pub mod add_partitions_to_txn;
pub mod add_raft_voter;
pub mod alter_client_quotas;
pub mod alter_configs;
pub mod alter_partition_reassignments;
pub mod alter_replica_log_dirs;
pub mod alter_share_group_offsets;
pub mod alter_user_scram_credentials;
pub mod api_versions;
pub mod consumer_group_describe;
pub mod consumer_group_heartbeat;
pub mod create_acls;
pub mod create_delegation_token;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_acls;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_share_group_offsets;
pub mod delete_share_group_state;
pub mod delete_topics;
pub mod describe_acls;
pub mod describe_client_quotas;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_delegation_token;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_quorum;
pub mod describe_share_group_offsets;
pub mod describe_topic_partitions;
pub mod describe_transactions;
pub mod describe_user_scram_credentials;
pub mod elect_leaders;
pub mod end_txn;
pub mod expire_delegation_token;
pub mod fetch;
pub mod find_coordinator;
pub mod get_telemetry_subscriptions;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod initialize_share_group_state;
pub mod join_group;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod list_transactions;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod push_telemetry;
pub mod read_share_group_state;
pub mod read_share_group_state_summary;
pub mod remove_raft_voter;
pub mod renew_delegation_token;
pub mod sasl_authenticate;
pub mod sasl_handshake;
pub mod share_acknowledge;
pub mod share_fetch;
pub mod share_group_describe;
pub mod share_group_heartbeat;
pub mod streams_group_describe;
pub mod streams_group_heartbeat;
pub mod streams_group_topology_description_update;
pub mod sync_group;
pub mod txn_offset_commit;
pub mod unregister_broker;
pub mod unregister_controller;
pub mod update_features;
pub mod write_share_group_state;
pub mod write_txn_markers;

use std::fmt;
use std::ops::RangeInclusive;

pub use api::{Api, UnknownApi, WrongResponse};

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, NEVER, Wire};

api::apis! {
    Produce = 0, produce::{ProduceRequest, ProduceResponse},
        versions 3..=13, stable 13, flexible 9;
    Fetch = 1, fetch::{FetchRequest, FetchResponse},
        versions 4..=18, stable 18, flexible 12;
    ListOffsets = 2, list_offsets::{ListOffsetsRequest, ListOffsetsResponse},
        versions 1..=11, stable 11, flexible 6;
    Metadata = 3, metadata::{MetadataRequest, MetadataResponse},
        versions 0..=13, stable 13, flexible 9;
    OffsetCommit = 8, offset_commit::{OffsetCommitRequest, OffsetCommitResponse},
        versions 2..=10, stable 10, flexible 8;
    OffsetFetch = 9, offset_fetch::{OffsetFetchRequest, OffsetFetchResponse},
        versions 1..=10, stable 10, flexible 6;
    FindCoordinator = 10, find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse},
        versions 0..=6, stable 6, flexible 3;
    JoinGroup = 11, join_group::{JoinGroupRequest, JoinGroupResponse},
        versions 0..=9, stable 9, flexible 6;
    Heartbeat = 12, heartbeat::{HeartbeatRequest, HeartbeatResponse},
        versions 0..=4, stable 4, flexible 4;
    LeaveGroup = 13, leave_group::{LeaveGroupRequest, LeaveGroupResponse},
        versions 0..=5, stable 5, flexible 4;
    SyncGroup = 14, sync_group::{SyncGroupRequest, SyncGroupResponse},
        versions 0..=5, stable 5, flexible 4;
    DescribeGroups = 15, describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse},
        versions 0..=6, stable 6, flexible 5;
    ListGroups = 16, list_groups::{ListGroupsRequest, ListGroupsResponse},
        versions 0..=5, stable 5, flexible 3;
    SaslHandshake = 17, sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse},
        versions 0..=1, stable 1, flexible NEVER;
    ApiVersions = 18, api_versions::{ApiVersionsRequest, ApiVersionsResponse},
        versions 0..=5, stable 5, flexible 3;
    CreateTopics = 19, create_topics::{CreateTopicsRequest, CreateTopicsResponse},
        versions 2..=7, stable 7, flexible 5;
    DeleteTopics = 20, delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse},
        versions 1..=6, stable 6, flexible 4;
    DeleteRecords = 21, delete_records::{DeleteRecordsRequest, DeleteRecordsResponse},
        versions 0..=2, stable 2, flexible 2;
    InitProducerId = 22, init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
        versions 0..=6, stable 5, flexible 2;
    OffsetForLeaderEpoch = 23, offset_for_leader_epoch::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse},
        versions 2..=4, stable 4, flexible 4;
    AddPartitionsToTxn = 24, add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse},
        versions 0..=5, stable 5, flexible 3;
    AddOffsetsToTxn = 25, add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse},
        versions 0..=4, stable 4, flexible 3;
    EndTxn = 26, end_txn::{EndTxnRequest, EndTxnResponse},
        versions 0..=5, stable 5, flexible 3;
    WriteTxnMarkers = 27, write_txn_markers::{WriteTxnMarkersRequest, WriteTxnMarkersResponse},
        versions 1..=2, stable 2, flexible 1;
    TxnOffsetCommit = 28, txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse},
        versions 0..=6, stable 6, flexible 3;
    DescribeAcls = 29, describe_acls::{DescribeAclsRequest, DescribeAclsResponse},
        versions 1..=3, stable 3, flexible 2;
    CreateAcls = 30, create_acls::{CreateAclsRequest, CreateAclsResponse},
        versions 1..=3, stable 3, flexible 2;
    DeleteAcls = 31, delete_acls::{DeleteAclsRequest, DeleteAclsResponse},
        versions 1..=3, stable 3, flexible 2;
    DescribeConfigs = 32, describe_configs::{DescribeConfigsRequest, DescribeConfigsResponse},
        versions 1..=4, stable 4, flexible 4;
    AlterConfigs = 33, alter_configs::{AlterConfigsRequest, AlterConfigsResponse},
        versions 0..=2, stable 2, flexible 2;
    AlterReplicaLogDirs = 34, alter_replica_log_dirs::{AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse},
        versions 1..=2, stable 2, flexible 2;
    DescribeLogDirs = 35, describe_log_dirs::{DescribeLogDirsRequest, DescribeLogDirsResponse},
        versions 1..=5, stable 5, flexible 2;
    SaslAuthenticate = 36, sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse},
        versions 0..=2, stable 2, flexible 2;
    CreatePartitions = 37, create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse},
        versions 0..=3, stable 3, flexible 2;
    CreateDelegationToken = 38, create_delegation_token::{CreateDelegationTokenRequest, CreateDelegationTokenResponse},
        versions 1..=3, stable 3, flexible 2;
    RenewDelegationToken = 39, renew_delegation_token::{RenewDelegationTokenRequest, RenewDelegationTokenResponse},
        versions 1..=2, stable 2, flexible 2;
    ExpireDelegationToken = 40, expire_delegation_token::{ExpireDelegationTokenRequest, ExpireDelegationTokenResponse},
        versions 1..=2, stable 2, flexible 2;
    DescribeDelegationToken = 41, describe_delegation_token::{DescribeDelegationTokenRequest, DescribeDelegationTokenResponse},
        versions 1..=3, stable 3, flexible 2;
    DeleteGroups = 42, delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse},
        versions 0..=3, stable 3, flexible 2;
    ElectLeaders = 43, elect_leaders::{ElectLeadersRequest, ElectLeadersResponse},
        versions 0..=2, stable 2, flexible 2;
    IncrementalAlterConfigs = 44, incremental_alter_configs::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse},
        versions 0..=1, stable 1, flexible 1;
    AlterPartitionReassignments = 45, alter_partition_reassignments::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse},
        versions 0..=1, stable 1, flexible 0;
    ListPartitionReassignments = 46, list_partition_reassignments::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse},
        versions 0..=0, stable 0, flexible 0;
    OffsetDelete = 47, offset_delete::{OffsetDeleteRequest, OffsetDeleteResponse},
        versions 0..=0, stable 0, flexible NEVER;
    DescribeClientQuotas = 48, describe_client_quotas::{DescribeClientQuotasRequest, DescribeClientQuotasResponse},
        versions 0..=1, stable 1, flexible 1;
    AlterClientQuotas = 49, alter_client_quotas::{AlterClientQuotasRequest, AlterClientQuotasResponse},
        versions 0..=1, stable 1, flexible 1;
    DescribeUserScramCredentials = 50, describe_user_scram_credentials::{DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse},
        versions 0..=0, stable 0, flexible 0;
    AlterUserScramCredentials = 51, alter_user_scram_credentials::{AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse},
        versions 0..=0, stable 0, flexible 0;
    DescribeQuorum = 55, describe_quorum::{DescribeQuorumRequest, DescribeQuorumResponse},
        versions 0..=2, stable 2, flexible 0;
    UpdateFeatures = 57, update_features::{UpdateFeaturesRequest, UpdateFeaturesResponse},
        versions 0..=2, stable 2, flexible 0;
    DescribeCluster = 60, describe_cluster::{DescribeClusterRequest, DescribeClusterResponse},
        versions 0..=2, stable 2, flexible 0;
    DescribeProducers = 61, describe_producers::{DescribeProducersRequest, DescribeProducersResponse},
        versions 0..=0, stable 0, flexible 0;
    UnregisterBroker = 64, unregister_broker::{UnregisterBrokerRequest, UnregisterBrokerResponse},
        versions 0..=0, stable 0, flexible 0;
    DescribeTransactions = 65, describe_transactions::{DescribeTransactionsRequest, DescribeTransactionsResponse},
        versions 0..=0, stable 0, flexible 0;
    ListTransactions = 66, list_transactions::{ListTransactionsRequest, ListTransactionsResponse},
        versions 0..=2, stable 2, flexible 0;
    ConsumerGroupHeartbeat = 68, consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse},
        versions 0..=1, stable 1, flexible 0;
    ConsumerGroupDescribe = 69, consumer_group_describe::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse},
        versions 0..=1, stable 1, flexible 0;
    GetTelemetrySubscriptions = 71, get_telemetry_subscriptions::{GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse},
        versions 0..=0, stable 0, flexible 0;
    PushTelemetry = 72, push_telemetry::{PushTelemetryRequest, PushTelemetryResponse},
        versions 0..=0, stable 0, flexible 0;
    ListConfigResources = 74, list_config_resources::{ListConfigResourcesRequest, ListConfigResourcesResponse},
        versions 0..=1, stable 1, flexible 0;
    DescribeTopicPartitions = 75, describe_topic_partitions::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse},
        versions 0..=0, stable 0, flexible 0;
    ShareGroupHeartbeat = 76, share_group_heartbeat::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse},
        versions 1..=1, stable 1, flexible 0;
    ShareGroupDescribe = 77, share_group_describe::{ShareGroupDescribeRequest, ShareGroupDescribeResponse},
        versions 1..=1, stable 1, flexible 0;
    ShareFetch = 78, share_fetch::{ShareFetchRequest, ShareFetchResponse},
        versions 1..=2, stable 2, flexible 0;
    ShareAcknowledge = 79, share_acknowledge::{ShareAcknowledgeRequest, ShareAcknowledgeResponse},
        versions 1..=2, stable 2, flexible 0;
    AddRaftVoter = 80, add_raft_voter::{AddRaftVoterRequest, AddRaftVoterResponse},
        versions 0..=1, stable 1, flexible 0;
    RemoveRaftVoter = 81, remove_raft_voter::{RemoveRaftVoterRequest, RemoveRaftVoterResponse},
        versions 0..=0, stable 0, flexible 0;
    InitializeShareGroupState = 83, initialize_share_group_state::{InitializeShareGroupStateRequest, InitializeShareGroupStateResponse},
        versions 0..=0, stable 0, flexible 0;
    ReadShareGroupState = 84, read_share_group_state::{ReadShareGroupStateRequest, ReadShareGroupStateResponse},
        versions 0..=0, stable 0, flexible 0;
    WriteShareGroupState = 85, write_share_group_state::{WriteShareGroupStateRequest, WriteShareGroupStateResponse},
        versions 0..=1, stable 1, flexible 0;
    DeleteShareGroupState = 86, delete_share_group_state::{DeleteShareGroupStateRequest, DeleteShareGroupStateResponse},
        versions 0..=0, stable 0, flexible 0;
    ReadShareGroupStateSummary = 87, read_share_group_state_summary::{ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse},
        versions 0..=1, stable 1, flexible 0;
    StreamsGroupHeartbeat = 88, streams_group_heartbeat::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse},
        versions 0..=1, stable 1, flexible 0;
    StreamsGroupDescribe = 89, streams_group_describe::{StreamsGroupDescribeRequest, StreamsGroupDescribeResponse},
        versions 0..=1, stable 1, flexible 0;
    DescribeShareGroupOffsets = 90, describe_share_group_offsets::{DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse},
        versions 0..=1, stable 1, flexible 0;
    AlterShareGroupOffsets = 91, alter_share_group_offsets::{AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse},
        versions 0..=0, stable 0, flexible 0;
    DeleteShareGroupOffsets = 92, delete_share_group_offsets::{DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse},
        versions 0..=0, stable 0, flexible 0;
    StreamsGroupTopologyDescriptionUpdate = 93, streams_group_topology_description_update::{StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse},
        versions 0..=0, stable 0, flexible 0;
    UnregisterController = 94, unregister_controller::{UnregisterControllerRequest, UnregisterControllerResponse},
        versions 0..=0, stable 0, flexible 0;
}
