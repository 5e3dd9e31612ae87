//! JoinGroup: becomes a member of a group, or stays one through its next rebalance.

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::join_group::{JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember};

use super::{RequestContext, own, random_uuid};
use crate::group::{Join, JoinAnswer, Protocol, Ticket};
use crate::server::Answer;

/// From this version on a new member is given its id first and counts when it comes back with it (KIP-394).
const FIRST_WITH_KNOWN_IDS: i16 = 4;

/// From this version on a response without a protocol says so with null.
const FIRST_WITH_NULL_PROTOCOL: i16 = 7;

/// From this version on a leader can be told to leave the assignment as it is (KIP-814).
const FIRST_THAT_SKIPS: i16 = 9;

pub(crate) async fn begin(context: RequestContext, request: JoinGroupRequest) -> Answer {
    let version = context.version;
    let member_id = request.member_id.clone();
    let refused = |code| answer(JoinAnswer::error(code, member_id.clone()), version);
    let shard = match context.core.groups.shard(&request.group_id).await {
        Ok(shard) => shard,
        Err(code) => return Answer::now(refused(code)),
    };
    let group = own(&request.group_id);
    match shard.join(&group, join(&context, request)) {
        Ok(joined) => {
            // Whoever drops the sender has stopped being the coordinator.
            let lost = JoinAnswer::error(ErrorCode::NotCoordinator, member_id);
            Answer::waits(async move { answer(joined.await.unwrap_or(lost), version).into() })
        }
        Err(code) => Answer::now(refused(code)),
    }
}

/// The answer that refuses `request`.
pub(crate) fn refuse(
    context: &RequestContext,
    request: JoinGroupRequest,
    code: ErrorCode,
) -> JoinGroupResponse {
    answer(JoinAnswer::error(code, request.member_id), context.version)
}

/// The group outlives the request, so nothing in it may share the memory of the request's frame.
fn join(context: &RequestContext, request: JoinGroupRequest) -> Join {
    let client_id = context.client_id.as_ref().map(own).unwrap_or_default();
    let named_after = request.group_instance_id.as_ref().unwrap_or(&client_id);
    let fresh_member_id = ByteString::from(format!("{named_after}-{}", random_uuid()));
    let protocols = request.protocols.iter().map(|protocol| Protocol {
        name: own(&protocol.name),
        metadata: Bytes::copy_from_slice(&protocol.metadata),
    });
    Join {
        // The shard gives tickets out.
        ticket: Ticket(0),
        member_id: own(&request.member_id),
        instance_id: request.group_instance_id.as_ref().map(own),
        client_host: ByteString::from(context.client.host()),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        protocol_type: own(&request.protocol_type),
        protocols: protocols.collect(),
        needs_known_id: context.version >= FIRST_WITH_KNOWN_IDS,
        can_skip_assignment: context.version >= FIRST_THAT_SKIPS,
        fresh_member_id,
        client_id,
    }
}

fn answer(joined: JoinAnswer, version: i16) -> JoinGroupResponse {
    let members = joined.members.into_iter().map(|member| JoinGroupResponseMember {
        member_id: member.member_id,
        group_instance_id: member.instance_id,
        metadata: member.metadata,
    });
    let no_protocol = (version < FIRST_WITH_NULL_PROTOCOL).then(ByteString::new);
    JoinGroupResponse {
        error_code: joined.error.code(),
        generation_id: joined.generation,
        protocol_type: joined.protocol_type,
        protocol_name: joined.protocol.or(no_protocol),
        leader: joined.leader,
        skip_assignment: joined.skip_assignment,
        member_id: joined.member_id,
        members: members.collect(),
        ..Default::default()
    }
}
