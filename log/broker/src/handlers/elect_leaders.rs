//! ElectLeaders: elects leaders on an operator's word (KIP-460).

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_controller::{ElectLeaders, ElectionKind, PartitionRef};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::elect_leaders::{
    ElectLeadersRequest, ElectLeadersResponse, PartitionResult, ReplicaElectionResult,
};

use super::{RequestContext, own};
use crate::core::propose_for;
use crate::error::Refusal;

/// The kinds of elections, by the numbers of the protocol.
mod election {
    pub(super) const PREFERRED: i8 = 0;
    pub(super) const UNCLEAN: i8 = 1;
}

pub(crate) async fn handle(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse {
    // The first version knew only one kind.
    let kind = match (context.version, request.election_type) {
        (0, _) | (_, election::PREFERRED) => ElectionKind::Preferred,
        (_, election::UNCLEAN) => ElectionKind::Unclean,
        _ => return refuse(&context, &request, ErrorCode::InvalidRequest),
    };
    let partitions = wanted(&context, &request);
    let proposal = ElectLeaders { kind, partitions: partitions.clone() };
    let elected = propose_for(&context.core.controller, proposal, request.timeout_ms).await;
    let results = match elected {
        Ok(results) => results,
        Err(error) => return refuse(&context, &request, Refusal::from(error).code),
    };
    let outcomes = partitions.into_iter().zip(results).map(|(partition, result)| {
        let refusal = result.err().map(Refusal::from);
        (partition, refusal)
    });
    // Whoever asks about all partitions wants to hear of those about which something was done.
    let is_told = |refusal: &Option<Refusal>| {
        let is_needed = refusal.as_ref().is_none_or(|refusal| refusal.code != ErrorCode::ElectionNotNeeded);
        request.topic_partitions.is_some() || is_needed
    };
    answer(outcomes.filter(|(_, refusal)| is_told(refusal)))
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(
    context: &RequestContext,
    request: &ElectLeadersRequest,
    code: ErrorCode,
) -> ElectLeadersResponse {
    let partitions = request.topic_partitions.iter().flatten().flat_map(|topic| {
        let partition = |&partition: &i32| PartitionRef { topic: topic.topic.clone(), partition };
        topic.partitions.iter().map(partition)
    });
    let response = answer(partitions.map(|partition| (partition, Some(code.into()))));
    let error_code = if context.version == 0 { 0 } else { code.code() };
    ElectLeadersResponse { error_code, ..response }
}

fn wanted(context: &RequestContext, request: &ElectLeadersRequest) -> Vec<PartitionRef> {
    let mut wanted = Vec::new();
    match &request.topic_partitions {
        Some(topics) => {
            for topic in topics {
                // The name outlives the request in the log of the metadata.
                let name = own(&topic.topic);
                let partition = |&partition: &i32| PartitionRef { topic: name.clone(), partition };
                wanted.extend(topic.partitions.iter().map(partition));
            }
        }
        None => {
            for topic in context.core.controller.state().topics() {
                let partition = |partition| PartitionRef { topic: topic.name.clone(), partition };
                wanted.extend((0..topic.partitions.len() as i32).map(partition));
            }
        }
    }
    wanted
}

fn answer(outcomes: impl Iterator<Item = (PartitionRef, Option<Refusal>)>) -> ElectLeadersResponse {
    let mut by_topic: BTreeMap<ByteString, Vec<PartitionResult>> = BTreeMap::new();
    for (PartitionRef { topic, partition }, refusal) in outcomes {
        by_topic.entry(topic).or_default().push(PartitionResult {
            partition_id: partition,
            error_code: refusal.as_ref().map_or(0, |refusal| refusal.code.code()),
            error_message: refusal.and_then(|refusal| refusal.message).map(ByteString::from),
        });
    }
    let results = by_topic
        .into_iter()
        .map(|(topic, partition_result)| ReplicaElectionResult { topic, partition_result });
    ElectLeadersResponse { replica_election_results: results.collect(), ..Default::default() }
}
