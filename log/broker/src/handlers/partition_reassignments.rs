//! AlterPartitionReassignments and ListPartitionReassignments (KIP-455): replicas stay where they are, so that a
//! reassignment to where they are is over at once, and none is ever in progress.

use bytestring::ByteString;
use thalweg_protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ReassignablePartition,
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use thalweg_protocol::messages::list_partition_reassignments::ListPartitionReassignmentsResponse;
use thalweg_protocol::{ErrorCode, NodeId};

use super::RequestContext;
use crate::error::Refusal;

pub(crate) fn alter(
    context: &RequestContext,
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse {
    let allow_replication_factor_change = request.allow_replication_factor_change;
    let responses = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let refusal = judge(context, &topic.name, partition).err();
            ReassignablePartitionResponse {
                partition_index: partition.partition_index,
                error_code: refusal.as_ref().map_or(0, |refusal| refusal.code.code()),
                error_message: refusal.and_then(|refusal| refusal.message).map(ByteString::from),
            }
        });
        let partitions = partitions.collect();
        ReassignableTopicResponse { name: topic.name, partitions }
    });
    AlterPartitionReassignmentsResponse {
        allow_replication_factor_change,
        error_message: None,
        responses: responses.collect(),
        ..Default::default()
    }
}

/// Whether the replicas are where they are to be.
fn judge(context: &RequestContext, topic: &str, asked: &ReassignablePartition) -> Result<(), Refusal> {
    let state = context.core.controller.state();
    let partition =
        state.partition(topic, asked.partition_index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let Some(wanted) = &asked.replicas else {
        return Err(Refusal::new(ErrorCode::NoReassignmentInProgress, "no reassignment is in progress"));
    };
    let replicas: Vec<i32> = partition.replicas.iter().map(|node| node.0).collect();
    if *wanted == replicas {
        return Ok(());
    }
    let invalid = |reason: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, reason));
    match wanted.iter().find(|&&node| state.node(NodeId(node)).is_none()) {
        _ if wanted.is_empty() => invalid("there must be at least one replica".to_owned()),
        Some(unknown) => invalid(format!("there is no node {unknown}")),
        None => invalid(format!("replicas cannot be moved here: they are on {replicas:?}")),
    }
}

/// The answer that refuses every reassignment.
pub(crate) fn refuse_alter(code: ErrorCode) -> AlterPartitionReassignmentsResponse {
    AlterPartitionReassignmentsResponse {
        error_code: code.code(),
        error_message: Some(code.message().into()),
        ..Default::default()
    }
}

/// None is in progress.
pub(crate) fn list() -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse { error_message: None, ..Default::default() }
}

/// The answer that refuses to tell.
pub(crate) fn refuse_list(code: ErrorCode) -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse {
        error_code: code.code(),
        error_message: Some(code.message().into()),
        ..Default::default()
    }
}
