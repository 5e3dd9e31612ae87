//! OffsetDelete: forgets committed offsets of topics that a group does not read any more (KIP-496).

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

use super::{RequestContext, own};
use crate::coordinator::Shard;
use crate::group::DeletedOffsets;

pub(crate) async fn handle(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse {
    match delete(&context, request).await {
        Ok(deleted) => answer(deleted),
        Err(code) => refuse(code),
    }
}

/// The answer that refuses a request as a whole.
pub(crate) fn refuse(code: ErrorCode) -> OffsetDeleteResponse {
    OffsetDeleteResponse { error_code: code.code(), ..Default::default() }
}

/// Deletes what can be deleted. A topic that does not exist has no offsets that anybody could name.
async fn delete(context: &RequestContext, request: OffsetDeleteRequest) -> Result<DeletedOffsets, ErrorCode> {
    let group = own(&request.group_id);
    let shard = context.core.groups.shard(&group).await?;
    let cluster = context.core.controller.state();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions: Vec<_> = topic.partitions.iter().map(|asked| asked.partition_index).collect();
        (topic.name, partitions)
    });
    let (known, unknown): (Vec<_>, Vec<_>) =
        topics.partition(|(name, _): &(ByteString, _)| cluster.topic(name).is_some());
    let (mut deleted, last) = shard.delete_offsets(&group, &known)?;
    if let Some(last) = last {
        shard.journal().committed(last).await?;
    }
    deleted.extend(unknown.into_iter().map(|(name, partitions)| {
        let code = ErrorCode::UnknownTopicOrPartition;
        (name, partitions.into_iter().map(|at| (at, code)).collect())
    }));
    Ok(deleted)
}

fn answer(deleted: DeletedOffsets) -> OffsetDeleteResponse {
    let topics = deleted.into_iter().map(|(name, partitions)| OffsetDeleteResponseTopic {
        name,
        partitions: partitions
            .into_iter()
            .map(|(partition_index, code)| OffsetDeleteResponsePartition {
                partition_index,
                error_code: code.code(),
            })
            .collect(),
    });
    OffsetDeleteResponse { topics: topics.collect(), ..Default::default() }
}
