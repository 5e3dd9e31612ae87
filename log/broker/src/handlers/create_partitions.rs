//! CreatePartitions: proposes that topics get more partitions. Each topic is answered by itself.

use bytestring::ByteString;
use thalweg_controller::{CreatePartitions, MorePartitions};
use thalweg_protocol::messages::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
};
use thalweg_protocol::{ErrorCode, NodeId};

use super::RequestContext;
use crate::core::propose_for;
use crate::error::Refusal;
use crate::topics;

pub(crate) async fn handle(
    context: RequestContext,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let timeout_ms = request.timeout_ms;
    // Which partition a group or a transactional id belongs to depends on how many there are: with more, what is there is lost.
    let (ours, topics): (Vec<_>, Vec<_>) =
        request.topics.iter().partition(|asked| topics::is_internal(&asked.name));
    let fixed = Refusal::new(
        ErrorCode::InvalidPartitions,
        "how many partitions the log's own topics have decides where their records are: it cannot be changed",
    );
    let proposal = CreatePartitions {
        topics: topics.iter().map(|asked| more_partitions(asked)).collect(),
        validate_only: request.validate_only,
    };
    let results = match propose_for(&context.core.controller, proposal, timeout_ms).await {
        Ok(results) => results,
        Err(error) => return refuse(&request, &error.into()),
    };
    let results = topics.iter().zip(results).map(|(asked, result)| match result {
        Ok(_) => CreatePartitionsTopicResult { name: asked.name.clone(), ..Default::default() },
        Err(rejection) => refused(asked, &rejection.into()),
    });
    let results = results.chain(ours.iter().map(|asked| refused(asked, &fixed)));
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
