//! DescribeCluster: the nodes of the cluster.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_cluster::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
};

use super::RequestContext;
use crate::operations;

/// The kind of endpoints that brokers are asked for; controllers have another.
const BROKERS: i8 = 1;

pub(crate) fn handle(context: &RequestContext, request: &DescribeClusterRequest) -> DescribeClusterResponse {
    if request.endpoint_type != BROKERS {
        return refuse(request, ErrorCode::MismatchedEndpointType);
    }
    let state = context.core.controller.state();
    let asked = state.nodes().filter(|node| request.include_fenced_brokers || !node.fenced);
    let brokers = asked.map(|node| DescribeClusterBroker {
        broker_id: node.id.0,
        host: node.host.clone(),
        port: i32::from(node.port),
        rack: node.rack.clone(),
        is_fenced: node.fenced,
    });
    DescribeClusterResponse {
        cluster_id: state.cluster_id().to_string().into(),
        controller_id: context.core.node.0,
        brokers: brokers.collect(),
        cluster_authorized_operations: match request.include_cluster_authorized_operations {
            true => operations::CLUSTER,
            false => operations::NOT_ASKED,
        },
        ..Default::default()
    }
}

/// The answer that refuses `request`.
pub(crate) fn refuse(request: &DescribeClusterRequest, code: ErrorCode) -> DescribeClusterResponse {
    DescribeClusterResponse {
        error_code: code.code(),
        error_message: Some(code.message().into()),
        endpoint_type: request.endpoint_type,
        ..Default::default()
    }
}
