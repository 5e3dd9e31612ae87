//! DeleteGroups: forgets groups without members, and their offsets.

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::delete_groups::{
    DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse,
};

use super::{RequestContext, own};
use crate::coordinator::Shard;

pub(crate) async fn handle(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let mut results = Vec::with_capacity(request.groups_names.len());
    for id in request.groups_names {
        let code = delete(&context, &id).await.err().unwrap_or(ErrorCode::None);
        results.push(result(id, code));
    }
    DeleteGroupsResponse { results, ..Default::default() }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: DeleteGroupsRequest, code: ErrorCode) -> DeleteGroupsResponse {
    let results = request.groups_names.into_iter().map(|id| result(id, code)).collect();
    DeleteGroupsResponse { results, ..Default::default() }
}

async fn delete(context: &RequestContext, id: &ByteString) -> Result<(), ErrorCode> {
    let shard = context.core.groups.shard(id).await?;
    match shard.share_group_has_members(id) {
        Some(true) => return Err(ErrorCode::NonEmptyGroup),
        // Before the group: what is left of it would be taken for that of a new group of the same name.
        Some(false) => {
            context.core.groups.shares().remove(id, |_| true).await?;
        }
        None => {}
    }
    let last = shard.delete(&own(id))?;
    shard.journal().committed(last).await
}

fn result(id: ByteString, code: ErrorCode) -> DeletableGroupResult {
    let error_message = (code != ErrorCode::None).then(|| ByteString::from_static(code.message()));
    DeletableGroupResult { group_id: id, error_code: code.code(), error_message }
}
