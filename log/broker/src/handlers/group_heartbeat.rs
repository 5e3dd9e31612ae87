//! What the heartbeats of groups that the coordinator assigns to have in common, whatever their protocol.

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::messages::Response;
use thalweg_protocol::{ErrorCode, Offset};

use super::RequestContext;
use crate::coordinator::Shard;
use crate::error::Refusal;
use crate::group::{GroupShard, HeartbeatAnswer};
use crate::server::Answer;

/// Hands a heartbeat that was `checked` to the shard of its group, and answers as soon as what it changed is committed.
pub(super) async fn begin<R: Into<Response> + 'static>(
    context: &RequestContext,
    group: &ByteString,
    checked: Result<(), Refusal>,
    beat: impl FnOnce(&Arc<GroupShard>) -> Result<(HeartbeatAnswer, Option<Offset>), Refusal>,
    told: fn(HeartbeatAnswer) -> R,
    refused: fn(Refusal) -> R,
) -> Answer {
    if group.trim().is_empty() {
        let refusal = Refusal::new(ErrorCode::InvalidRequest, "the group id is missing".to_owned());
        return Answer::now(refused(refusal));
    }
    if let Err(refusal) = checked {
        return Answer::now(refused(refusal));
    }
    let shard = match context.core.groups.shard(group).await {
        Ok(shard) => shard,
        Err(code) => return Answer::now(refused(code.into())),
    };
    match beat(&shard) {
        // What a power cut could still take back is not told to anybody.
        Ok((answer, Some(last))) if !shard.journal().is_committed(last) => Answer::waits(async move {
            match shard.journal().committed(last).await {
                Ok(()) => told(answer).into(),
                Err(code) => refused(code.into()).into(),
            }
        }),
        Ok((answer, _)) => Answer::now(told(answer)),
        Err(refusal) => Answer::now(refused(refusal)),
    }
}
