//! SyncGroup: a leader hands in the assignment, every member gets its part.

use bytes::Bytes;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};

use super::{RequestContext, own};
use crate::group::{Sync, SyncAnswer, Ticket};
use crate::server::Answer;

pub(crate) async fn begin(context: RequestContext, request: SyncGroupRequest) -> Answer {
    let shard = match context.core.groups.shard(&request.group_id).await {
        Ok(shard) => shard,
        Err(code) => return Answer::now(refuse(code)),
    };
    // The group outlives the request, so nothing in it may share the memory of the request's frame.
    let assignments = request
        .assignments
        .iter()
        .map(|assigned| (own(&assigned.member_id), Bytes::copy_from_slice(&assigned.assignment)));
    let sync = Sync {
        // The shard gives tickets out.
        ticket: Ticket(0),
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        generation: request.generation_id,
        protocol_type: request.protocol_type,
        protocol: request.protocol_name,
        assignments: assignments.collect(),
    };
    match shard.sync(&own(&request.group_id), sync) {
        // Whoever drops the sender has stopped being the coordinator.
        Ok(synced) => Answer::waits(async move {
            answer(synced.await.unwrap_or(SyncAnswer::error(ErrorCode::NotCoordinator))).into()
        }),
        Err(code) => Answer::now(refuse(code)),
    }
}

/// The answer that refuses a request.
pub(crate) fn refuse(code: ErrorCode) -> SyncGroupResponse {
    answer(SyncAnswer::error(code))
}

fn answer(synced: SyncAnswer) -> SyncGroupResponse {
    SyncGroupResponse {
        error_code: synced.error.code(),
        protocol_type: synced.protocol_type,
        protocol_name: synced.protocol,
        assignment: synced.assignment,
        ..Default::default()
    }
}
