//! LeaveGroup: members go of their own will.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::leave_group::{
    LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse,
};

use super::{RequestContext, own};
use crate::group::Leaver;

/// From this version on several members may leave at once (KIP-345).
const FIRST_BATCHED: i16 = 3;

pub(crate) async fn handle(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse {
    let is_batched = context.version >= FIRST_BATCHED;
    let members = if is_batched {
        request.members
    } else {
        vec![MemberIdentity { member_id: request.member_id, ..Default::default() }]
    };
    let leavers: Vec<_> = members
        .iter()
        .map(|member| Leaver {
            member_id: member.member_id.clone(),
            instance_id: member.group_instance_id.clone(),
        })
        .collect();
    let left = match context.core.groups.shard(&request.group_id).await {
        Ok(shard) => shard.leave(&own(&request.group_id), &leavers),
        Err(code) => return refuse(code),
    };
    // A group that does not exist has none of the members.
    let codes = left.unwrap_or_else(|code| vec![code; members.len()]);
    if !is_batched {
        return refuse(codes.first().copied().unwrap_or(ErrorCode::None));
    }
    let members = members.into_iter().zip(codes).map(|(member, code)| MemberResponse {
        member_id: member.member_id,
        group_instance_id: member.group_instance_id,
        error_code: code.code(),
    });
    LeaveGroupResponse { members: members.collect(), ..Default::default() }
}

/// The answer that says `code`.
pub(crate) fn refuse(code: ErrorCode) -> LeaveGroupResponse {
    LeaveGroupResponse { error_code: code.code(), ..Default::default() }
}
