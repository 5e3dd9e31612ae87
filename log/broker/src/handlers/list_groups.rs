//! ListGroups: the groups that this node coordinates.

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};

use super::RequestContext;

pub(crate) async fn handle(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse {
    let names = |filter: &[ByteString], name: &str| {
        filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
    };
    let shards = match context.core.groups.all_shards().await {
        Ok(shards) => shards,
        Err(code) => return refuse(code),
    };
    let groups = shards.into_iter().flat_map(|shard| shard.list());
    let mut groups: Vec<_> = groups
        .filter(|group| {
            names(&request.states_filter, group.state)
                && names(&request.types_filter, group.group_type.name())
        })
        .map(|group| ListedGroup {
            group_id: group.id,
            protocol_type: group.protocol_type,
            group_state: ByteString::from_static(group.state),
            group_type: ByteString::from_static(group.group_type.name()),
        })
        .collect();
    groups.sort_unstable_by(|a, b| a.group_id.cmp(&b.group_id));
    ListGroupsResponse { groups, ..Default::default() }
}

/// The answer that refuses a request.
pub(crate) fn refuse(code: ErrorCode) -> ListGroupsResponse {
    ListGroupsResponse { error_code: code.code(), ..Default::default() }
}
