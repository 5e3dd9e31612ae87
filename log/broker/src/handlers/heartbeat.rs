//! Heartbeat: a member is still there, and learns whether its group rebalances.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};

use super::RequestContext;

pub(crate) async fn handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse {
    match context.core.groups.shard(&request.group_id).await {
        Ok(shard) => refuse(shard.heartbeat(
            &request.group_id,
            &request.member_id,
            request.group_instance_id.as_deref(),
            request.generation_id,
        )),
        Err(code) => refuse(code),
    }
}

/// The answer that says `code`.
pub(crate) fn refuse(code: ErrorCode) -> HeartbeatResponse {
    HeartbeatResponse { error_code: code.code(), ..Default::default() }
}
