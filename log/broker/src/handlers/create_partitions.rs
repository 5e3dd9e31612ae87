//! CreatePartitions: proposes that topics get more partitions. Each topic is answered by itself.

use bytestring::ByteString;
use thalweg_controller::{CreatePartitions, MorePartitions};
use thalweg_protocol::NodeId;
use thalweg_protocol::messages::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
};

use super::RequestContext;
use crate::core::propose_for;
use crate::error::Refusal;

pub(crate) async fn handle(
    context: RequestContext,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let timeout_ms = request.timeout_ms;
    let topics = request.topics.iter().map(more_partitions).collect();
    let proposal = CreatePartitions { topics, validate_only: request.validate_only };
    let results = match propose_for(&context.core.controller, proposal, timeout_ms).await {
        Ok(results) => results,
        Err(error) => return refuse(&request, &error.into()),
    };
    let results = request.topics.iter().zip(results).map(|(asked, result)| match result {
        Ok(_) => CreatePartitionsTopicResult { name: asked.name.clone(), ..Default::default() },
        Err(rejection) => refused(asked, &rejection.into()),
    });
    CreatePartitionsResponse { results: results.collect(), ..Default::default() }
}

/// The answer that refuses every topic in `request`.
pub(crate) fn refuse(request: &CreatePartitionsRequest, refusal: &Refusal) -> CreatePartitionsResponse {
    let results = request.topics.iter().map(|asked| refused(asked, refusal));
    CreatePartitionsResponse { results: results.collect(), ..Default::default() }
}

fn more_partitions(asked: &CreatePartitionsTopic) -> MorePartitions {
    let assignment = asked.assignments.iter().flatten();
    let assignment = assignment.map(|replicas| replicas.broker_ids.iter().map(|&id| NodeId(id)).collect());
    MorePartitions {
        name: ByteString::from(asked.name.to_string()),
        count: asked.count,
        assignment: assignment.collect(),
    }
}

fn refused(asked: &CreatePartitionsTopic, refusal: &Refusal) -> CreatePartitionsTopicResult {
    CreatePartitionsTopicResult {
        name: asked.name.clone(),
        error_code: refusal.code.code(),
        error_message: refusal.message.clone().map(ByteString::from),
    }
}
