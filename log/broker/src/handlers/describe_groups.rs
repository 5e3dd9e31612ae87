//! DescribeGroups: the state and the members of groups.

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
};

use super::RequestContext;
use crate::group::{Description, GroupState};
use crate::operations;

/// From this version on a group that does not exist is an error; before, it is described as dead.
const FIRST_THAT_MISSES: i16 = 6;

pub(crate) async fn handle(
    context: RequestContext,
    request: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let mut groups = Vec::with_capacity(request.groups.len());
    for id in request.groups {
        let mut group = match context.core.groups.shard(&id).await {
            Ok(shard) => match shard.describe(&id) {
                Some(description) => described(id, description),
                None => missing(id, context.version),
            },
            Err(code) => failed(id, code),
        };
        if request.include_authorized_operations {
            group.authorized_operations = operations::GROUP;
        }
        groups.push(group);
    }
    DescribeGroupsResponse { groups, ..Default::default() }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: DescribeGroupsRequest, code: ErrorCode) -> DescribeGroupsResponse {
    let groups = request.groups.into_iter().map(|id| failed(id, code)).collect();
    DescribeGroupsResponse { groups, ..Default::default() }
}

fn described(id: ByteString, description: Description) -> DescribedGroup {
    let members = description.members.into_iter().map(|member| DescribedGroupMember {
        member_id: member.id,
        group_instance_id: member.instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        member_metadata: member.metadata,
        member_assignment: member.assignment,
    });
    DescribedGroup {
        group_id: id,
        group_state: ByteString::from_static(description.state.name()),
        protocol_type: description.protocol_type,
        protocol_data: description.protocol,
        members: members.collect(),
        ..Default::default()
    }
}

fn missing(id: ByteString, version: i16) -> DescribedGroup {
    let dead = DescribedGroup {
        group_id: id,
        group_state: ByteString::from_static(GroupState::Dead.name()),
        ..Default::default()
    };
    if version < FIRST_THAT_MISSES {
        return dead;
    }
    let code = ErrorCode::GroupIdNotFound;
    DescribedGroup {
        error_code: code.code(),
        error_message: Some(ByteString::from_static(code.message())),
        ..dead
    }
}

fn failed(id: ByteString, code: ErrorCode) -> DescribedGroup {
    DescribedGroup { group_id: id, error_code: code.code(), ..Default::default() }
}
