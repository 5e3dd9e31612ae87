//! How each API tells a client that it may not.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::Request;
use thalweg_protocol::messages::alter_configs::{AlterConfigsResourceResponse, AlterConfigsResponse};
use thalweg_protocol::messages::incremental_alter_configs::{self, IncrementalAlterConfigsResponse};

use super::{
    RequestContext, api_versions, create_partitions, create_topics, delete_records, delete_topics,
    describe_cluster, describe_configs, fetch, list_offsets, metadata, offset_for_leader_epoch, produce,
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
        other => Answer::Close { reason: format!("{} was denied", other.api_key()) },
    }
}
