//! How each API tells a client that it may not.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::Request;
use thalweg_protocol::messages::alter_configs::{AlterConfigsResourceResponse, AlterConfigsResponse};
use thalweg_protocol::messages::incremental_alter_configs::{self, IncrementalAlterConfigsResponse};

use super::{
    RequestContext, acls, add_offsets_to_txn, add_partitions_to_txn, alter_client_quotas,
    alter_replica_log_dirs, api_versions, consumer_group_describe, consumer_group_heartbeat,
    create_partitions, create_topics, delete_groups, delete_records, delete_topics, describe_client_quotas,
    describe_cluster, describe_configs, describe_groups, describe_log_dirs, describe_producers,
    describe_quorum, describe_topic_partitions, describe_transactions, elect_leaders, end_txn, fetch,
    find_coordinator, get_telemetry_subscriptions, heartbeat, init_producer_id, join_group, leave_group,
    list_config_resources, list_groups, list_offsets, list_transactions, metadata, offset_commit,
    offset_delete, offset_fetch, offset_for_leader_epoch, partition_reassignments, produce, push_telemetry,
    share_acknowledge, share_fetch, share_group_describe, share_group_heartbeat, share_offsets, sync_group,
    txn_offset_commit, update_features, user_scram_credentials, write_txn_markers,
};
use crate::server::Answer;

/// Refuses `request` in its API's own way. Whoever may do nothing may still ask which versions there are.
pub(crate) fn deny(context: &RequestContext, request: Request) -> Answer {
    const TOPIC: ErrorCode = ErrorCode::TopicAuthorizationFailed;
    const CLUSTER: ErrorCode = ErrorCode::ClusterAuthorizationFailed;
    match request {
        Request::ApiVersions(request) => Answer::now(api_versions::handle(context, &request)),
        Request::Produce(request) if request.acks == 0 => {
            Answer::Close { reason: "a Produce request with acks = 0 was denied".to_owned() }
        }
        Request::Produce(request) => Answer::now(produce::refuse(&request, TOPIC)),
        Request::Fetch(request) => Answer::now(fetch::refuse_partitions(&request, TOPIC)),
        Request::ListOffsets(request) => Answer::now(list_offsets::refuse(request, TOPIC)),
        Request::Metadata(request) => Answer::now(metadata::refuse(&request, TOPIC)),
        Request::CreateTopics(request) => Answer::now(create_topics::refuse(&request, &TOPIC.into())),
        Request::DeleteTopics(request) => Answer::now(delete_topics::refuse(context, request, &TOPIC.into())),
        Request::DeleteRecords(request) => Answer::now(delete_records::refuse(request, TOPIC)),
        Request::CreatePartitions(request) => Answer::now(create_partitions::refuse(&request, &TOPIC.into())),
        Request::OffsetForLeaderEpoch(request) => {
            Answer::now(offset_for_leader_epoch::refuse(request, TOPIC))
        }
        Request::DescribeConfigs(request) => Answer::now(describe_configs::refuse(&request, CLUSTER)),
        Request::DescribeCluster(request) => Answer::now(describe_cluster::refuse(&request, CLUSTER)),
        Request::AlterConfigs(request) => {
            let responses = request.resources.into_iter().map(|resource| AlterConfigsResourceResponse {
                error_code: CLUSTER.code(),
                error_message: None,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
            });
            Answer::now(AlterConfigsResponse { responses: responses.collect(), ..Default::default() })
        }
        Request::IncrementalAlterConfigs(request) => {
            let responses = request.resources.into_iter().map(|resource| {
                incremental_alter_configs::AlterConfigsResourceResponse {
                    error_code: CLUSTER.code(),
                    error_message: None,
                    resource_type: resource.resource_type,
                    resource_name: resource.resource_name,
                }
            });
            let responses = responses.collect();
            Answer::now(IncrementalAlterConfigsResponse { responses, ..Default::default() })
        }
        other => deny_administrative(context, other),
    }
}

fn deny_administrative(context: &RequestContext, request: Request) -> Answer {
    const TOPIC: ErrorCode = ErrorCode::TopicAuthorizationFailed;
    const CLUSTER: ErrorCode = ErrorCode::ClusterAuthorizationFailed;
    match request {
        Request::DescribeTopicPartitions(request) => {
            Answer::now(describe_topic_partitions::refuse(&request, TOPIC))
        }
        Request::ListConfigResources(_) => Answer::now(list_config_resources::refuse(CLUSTER)),
        Request::DescribeClientQuotas(_) => Answer::now(describe_client_quotas::refuse(&CLUSTER.into())),
        Request::AlterClientQuotas(request) => {
            Answer::now(alter_client_quotas::refuse(request, &CLUSTER.into()))
        }
        Request::DescribeLogDirs(_) => Answer::now(describe_log_dirs::refuse(CLUSTER)),
        Request::DescribeQuorum(_) => Answer::now(describe_quorum::refuse(context, CLUSTER)),
        Request::ElectLeaders(request) => Answer::now(elect_leaders::refuse(context, &request, CLUSTER)),
        Request::UpdateFeatures(request) => {
            Answer::now(update_features::refuse(context, &request, &CLUSTER.into()))
        }
        Request::DescribeProducers(request) => Answer::now(describe_producers::refuse(request, TOPIC)),
        Request::GetTelemetrySubscriptions(_) => Answer::now(get_telemetry_subscriptions::refuse(CLUSTER)),
        Request::PushTelemetry(_) => Answer::now(push_telemetry::refuse(CLUSTER)),
        Request::AlterReplicaLogDirs(request) => {
            Answer::now(alter_replica_log_dirs::refuse(request, CLUSTER))
        }
        Request::AlterPartitionReassignments(_) => {
            Answer::now(partition_reassignments::refuse_alter(CLUSTER))
        }
        Request::ListPartitionReassignments(_) => Answer::now(partition_reassignments::refuse_list(CLUSTER)),
        Request::DescribeAcls(_) => Answer::now(acls::refuse_describe(CLUSTER.into())),
        Request::CreateAcls(request) => Answer::now(acls::refuse_create(&request, &CLUSTER.into())),
        Request::DeleteAcls(request) => Answer::now(acls::refuse_delete(&request, &CLUSTER.into())),
        Request::DescribeUserScramCredentials(_) => {
            Answer::now(user_scram_credentials::refuse_describe(CLUSTER))
        }
        Request::AlterUserScramCredentials(request) => {
            Answer::now(user_scram_credentials::refuse_alter(&request, CLUSTER))
        }
        other => deny_coordinated(context, other),
    }
}

fn deny_coordinated(context: &RequestContext, request: Request) -> Answer {
    const GROUP: ErrorCode = ErrorCode::GroupAuthorizationFailed;
    const TRANSACTIONAL_ID: ErrorCode = ErrorCode::TransactionalIdAuthorizationFailed;
    match request {
        Request::FindCoordinator(request) => {
            let code = if find_coordinator::is_about_group(&request) { GROUP } else { TRANSACTIONAL_ID };
            Answer::now(find_coordinator::refuse(context, request, code))
        }
        Request::JoinGroup(request) => Answer::now(join_group::refuse(context, request, GROUP)),
        Request::SyncGroup(_) => Answer::now(sync_group::refuse(GROUP)),
        Request::Heartbeat(_) => Answer::now(heartbeat::refuse(GROUP)),
        Request::LeaveGroup(_) => Answer::now(leave_group::refuse(GROUP)),
        Request::OffsetCommit(request) => Answer::now(offset_commit::refuse(request, GROUP)),
        Request::OffsetFetch(request) => Answer::now(offset_fetch::refuse(context, request, GROUP)),
        Request::DescribeGroups(request) => Answer::now(describe_groups::refuse(request, GROUP)),
        Request::ListGroups(_) => Answer::now(list_groups::refuse(ErrorCode::ClusterAuthorizationFailed)),
        Request::DeleteGroups(request) => Answer::now(delete_groups::refuse(request, GROUP)),
        Request::ConsumerGroupHeartbeat(_) => Answer::now(consumer_group_heartbeat::refuse(GROUP)),
        Request::ConsumerGroupDescribe(request) => {
            Answer::now(consumer_group_describe::refuse(request, GROUP))
        }
        Request::OffsetDelete(_) => Answer::now(offset_delete::refuse(GROUP)),
        Request::InitProducerId(request) => {
            Answer::now(init_producer_id::refuse(match request.transactional_id {
                Some(_) => TRANSACTIONAL_ID,
                None => ErrorCode::ClusterAuthorizationFailed,
            }))
        }
        Request::AddPartitionsToTxn(request) => {
            Answer::now(add_partitions_to_txn::refuse(context, request, TRANSACTIONAL_ID))
        }
        Request::AddOffsetsToTxn(_) => Answer::now(add_offsets_to_txn::refuse(TRANSACTIONAL_ID)),
        Request::TxnOffsetCommit(request) => {
            Answer::now(txn_offset_commit::refuse(request, TRANSACTIONAL_ID))
        }
        Request::EndTxn(_) => Answer::now(end_txn::refuse(TRANSACTIONAL_ID)),
        Request::WriteTxnMarkers(request) => {
            Answer::now(write_txn_markers::refuse(request, ErrorCode::ClusterAuthorizationFailed))
        }
        Request::DescribeTransactions(request) => {
            Answer::now(describe_transactions::refuse(request, TRANSACTIONAL_ID))
        }
        Request::ListTransactions(_) => {
            Answer::now(list_transactions::refuse(ErrorCode::ClusterAuthorizationFailed))
        }
        other => refuse_shared(other, ErrorCode::GroupAuthorizationFailed),
    }
}

/// Refuses a request about share groups.
pub(super) fn refuse_shared(request: Request, code: ErrorCode) -> Answer {
    match request {
        Request::ShareFetch(_) => Answer::now(share_fetch::refuse(code)),
        Request::ShareAcknowledge(_) => Answer::now(share_acknowledge::refuse(code)),
        Request::ShareGroupHeartbeat(_) => Answer::now(share_group_heartbeat::refuse(code)),
        Request::ShareGroupDescribe(request) => Answer::now(share_group_describe::refuse(request, code)),
        Request::DescribeShareGroupOffsets(request) => {
            Answer::now(share_offsets::refuse_describe(request, code))
        }
        Request::AlterShareGroupOffsets(_) => Answer::now(share_offsets::refuse_alter(code)),
        Request::DeleteShareGroupOffsets(_) => Answer::now(share_offsets::refuse_delete(code)),
        other => Answer::Close { reason: format!("{} was denied", other.api_key()) },
    }
}
