//! DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets: how far share groups are in the partitions
//! that they read, and where they are to be (KIP-932).

use bytestring::ByteString;
use thalweg_protocol::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
};
use thalweg_protocol::messages::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, DeleteShareGroupOffsetsResponseTopic,
};
use thalweg_protocol::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic, DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup, DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
};
use thalweg_protocol::{ErrorCode, Offset, Uuid};

use super::{RequestContext, find_coordinator, own};
use crate::coordinator::Shard;
use crate::share::{ShareKey, ShareSummary};
use crate::topics::SHARE_GROUP_STATE;

/// What stands for a start offset, or a lag, that is not known. Set as a start offset, it has the group begin anew.
const UNKNOWN: i64 = -1;

pub(crate) async fn describe(
    context: RequestContext,
    request: DescribeShareGroupOffsetsRequest,
) -> DescribeShareGroupOffsetsResponse {
    let mut groups = Vec::with_capacity(request.groups.len());
    for group in request.groups {
        let id = group.group_id.clone();
        groups.push(describe_group(&context, group).await.unwrap_or_else(|code| failed_group(id, code)));
    }
    DescribeShareGroupOffsetsResponse { groups, ..Default::default() }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse_describe(
    request: DescribeShareGroupOffsetsRequest,
    code: ErrorCode,
) -> DescribeShareGroupOffsetsResponse {
    let groups = request.groups.into_iter().map(|group| failed_group(group.group_id, code));
    DescribeShareGroupOffsetsResponse { groups: groups.collect(), ..Default::default() }
}

pub(crate) async fn alter(
    context: RequestContext,
    request: AlterShareGroupOffsetsRequest,
) -> AlterShareGroupOffsetsResponse {
    let group = own(&request.group_id);
    let topics = context.core.groups.topics();
    let is_of_use = request.topics.iter().any(|topic| topics.topic(&topic.topic_name).is_some());
    if let Err(code) = make_ready(&context, &group, is_of_use).await {
        return refuse_alter(code);
    }
    find_coordinator::ensure(&context, SHARE_GROUP_STATE).await;
    let mut responses = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let topic_id = context.core.groups.topics().topic(&topic.topic_name).map(|(id, _)| id);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in topic.partitions {
            let start = Offset(asked.start_offset);
            let code = reset(&context, &group, topic_id, asked.partition_index, start).await;
            let code = code.err().unwrap_or(ErrorCode::None);
            partitions.push(AlterShareGroupOffsetsResponsePartition {
                partition_index: asked.partition_index,
                error_code: code.code(),
                error_message: message(code),
            });
        }
        responses.push(AlterShareGroupOffsetsResponseTopic {
            topic_name: topic.topic_name,
            topic_id: topic_id.unwrap_or(Uuid::ZERO),
            partitions,
        });
    }
    AlterShareGroupOffsetsResponse { responses, ..Default::default() }
}

/// The answer that refuses a request.
pub(crate) fn refuse_alter(code: ErrorCode) -> AlterShareGroupOffsetsResponse {
    AlterShareGroupOffsetsResponse {
        error_code: code.code(),
        error_message: message(code),
        ..Default::default()
    }
}

pub(crate) async fn delete(
    context: RequestContext,
    request: DeleteShareGroupOffsetsRequest,
) -> DeleteShareGroupOffsetsResponse {
    let group = own(&request.group_id);
    if let Err(code) = check_empty(&context, &group).await {
        return refuse_delete(code);
    }
    let mut responses = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let found = context.core.groups.topics().topic(&topic.topic_name);
        let (code, error_message) = match found {
            Some((id, _)) => match context.core.groups.shares().remove(&group, |topic| topic == id).await {
                Ok(true) => (ErrorCode::None, None),
                Ok(false) => {
                    let nothing = "the group has no offsets there that could be deleted";
                    (ErrorCode::UnknownTopicOrPartition, Some(ByteString::from_static(nothing)))
                }
                Err(code) => (code, message(code)),
            },
            None => (ErrorCode::UnknownTopicOrPartition, message(ErrorCode::UnknownTopicOrPartition)),
        };
        responses.push(DeleteShareGroupOffsetsResponseTopic {
            topic_name: topic.topic_name,
            topic_id: found.map_or(Uuid::ZERO, |(id, _)| id),
            error_code: code.code(),
            error_message,
        });
    }
    DeleteShareGroupOffsetsResponse { responses, ..Default::default() }
}

/// The answer that refuses a request.
pub(crate) fn refuse_delete(code: ErrorCode) -> DeleteShareGroupOffsetsResponse {
    DeleteShareGroupOffsetsResponse {
        error_code: code.code(),
        error_message: message(code),
        ..Default::default()
    }
}

/// Has an empty share group of this id be there for offsets to be set: one that is not there is made, unless none of the offsets
/// is of a topic that there is.
async fn make_ready(context: &RequestContext, group: &ByteString, is_of_use: bool) -> Result<(), ErrorCode> {
    if !is_of_use {
        return match check_empty(context, group).await {
            Err(ErrorCode::GroupIdNotFound) => Ok(()),
            checked => checked,
        };
    }
    let shard = context.core.groups.shard(group).await?;
    match shard.ensure_empty_share_group(group)? {
        Some(written) => shard.journal().committed(written).await,
        None => Ok(()),
    }
}

/// Whether nobody is in the share group of this id.
async fn check_empty(context: &RequestContext, group: &str) -> Result<(), ErrorCode> {
    let shard = context.core.groups.shard(group).await?;
    match shard.share_group_has_members(group) {
        Some(false) => Ok(()),
        Some(true) => Err(ErrorCode::NonEmptyGroup),
        None => Err(ErrorCode::GroupIdNotFound),
    }
}

async fn reset(
    context: &RequestContext,
    group: &ByteString,
    topic_id: Option<Uuid>,
    partition: i32,
    start: Offset,
) -> Result<(), ErrorCode> {
    let topic_id = topic_id.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let held = context.core.partitions.topic_by_id(topic_id);
    held.map_err(|_| ErrorCode::UnknownTopicOrPartition)?.leader(partition)?;
    let key = ShareKey { group: group.clone(), topic_id, partition };
    let shares = context.core.groups.shares();
    match start {
        Offset(UNKNOWN) => shares.begin_anew(&key).await,
        Offset(..0) => Err(ErrorCode::InvalidRequest),
        _ => shares.reset(&key, start).await,
    }
}

/// A group that there is not has begun to read nowhere: as in Kafka that is no error, and neither is a topic or a partition that
/// there is not.
async fn describe_group(
    context: &RequestContext,
    group: DescribeShareGroupOffsetsRequestGroup,
) -> Result<DescribeShareGroupOffsetsResponseGroup, ErrorCode> {
    // Who asks must have come to the group's coordinator.
    context.core.groups.shard(&group.group_id).await?;
    let mut topics = Vec::new();
    match group.topics {
        Some(asked) => {
            for topic in asked {
                topics.push(describe_topic(context, &group.group_id, topic).await);
            }
        }
        None => topics = describe_all(context, &group.group_id).await?,
    }
    Ok(DescribeShareGroupOffsetsResponseGroup { group_id: group.group_id, topics, ..Default::default() })
}

/// Everything that the group has read, topic by topic.
async fn describe_all(
    context: &RequestContext,
    group: &str,
) -> Result<Vec<DescribeShareGroupOffsetsResponseTopic>, ErrorCode> {
    let image = context.core.groups.topics();
    let mut topics: Vec<DescribeShareGroupOffsetsResponseTopic> = Vec::new();
    for held in context.core.groups.shares().of_group(group).await? {
        let key = held.key();
        let Some(name) = image.name(key.topic_id) else { continue };
        let partition = described(context, key.topic_id, key.partition, Some(held.summary()));
        match topics.last_mut().filter(|topic| topic.topic_id == key.topic_id) {
            Some(topic) => topic.partitions.push(partition),
            None => topics.push(DescribeShareGroupOffsetsResponseTopic {
                topic_name: name.clone(),
                topic_id: key.topic_id,
                partitions: vec![partition],
            }),
        }
    }
    Ok(topics)
}

async fn describe_topic(
    context: &RequestContext,
    group: &str,
    topic: DescribeShareGroupOffsetsRequestTopic,
) -> DescribeShareGroupOffsetsResponseTopic {
    let found = context.core.groups.topics().topic(&topic.topic_name);
    let mut partitions = Vec::with_capacity(topic.partitions.len());
    for partition in topic.partitions {
        let is_there = |(_, count): &(Uuid, i32)| (0..*count).contains(&partition);
        partitions.push(match found.filter(is_there) {
            Some((topic_id, _)) => {
                let key = ShareKey { group: group.into(), topic_id, partition };
                match context.core.groups.shares().look_up(&key).await {
                    Ok(held) => described(context, topic_id, partition, held.map(|held| held.summary())),
                    Err(code) => failed_partition(partition, code),
                }
            }
            None => described(context, Uuid::ZERO, partition, None),
        });
    }
    let topic_id = found.map_or(Uuid::ZERO, |(id, _)| id);
    DescribeShareGroupOffsetsResponseTopic { topic_name: topic.topic_name, topic_id, partitions }
}

/// How far a group is in a partition; `summary` is missing where it has not begun to read.
fn described(
    context: &RequestContext,
    topic_id: Uuid,
    partition: i32,
    summary: Option<ShareSummary>,
) -> DescribeShareGroupOffsetsResponsePartition {
    let Some(summary) = summary else {
        return DescribeShareGroupOffsetsResponsePartition {
            partition_index: partition,
            start_offset: UNKNOWN,
            lag: UNKNOWN,
            ..Default::default()
        };
    };
    let topic = context.core.partitions.topic_by_id(topic_id);
    let leader = topic.and_then(|topic| topic.leader(partition).cloned());
    let lag = leader.map_or(UNKNOWN, |leader| {
        let behind = leader.log().high_watermark().0 - summary.start.0;
        behind.saturating_sub(i64::try_from(summary.done_count).unwrap_or(i64::MAX)).max(0)
    });
    DescribeShareGroupOffsetsResponsePartition {
        partition_index: partition,
        start_offset: summary.start.0,
        leader_epoch: summary.leader_epoch.0,
        lag,
        ..Default::default()
    }
}

fn failed_partition(partition_index: i32, code: ErrorCode) -> DescribeShareGroupOffsetsResponsePartition {
    DescribeShareGroupOffsetsResponsePartition {
        partition_index,
        start_offset: UNKNOWN,
        lag: UNKNOWN,
        error_code: code.code(),
        error_message: message(code),
        ..Default::default()
    }
}

fn failed_group(group_id: ByteString, code: ErrorCode) -> DescribeShareGroupOffsetsResponseGroup {
    DescribeShareGroupOffsetsResponseGroup {
        group_id,
        error_code: code.code(),
        error_message: message(code),
        ..Default::default()
    }
}

fn message(code: ErrorCode) -> Option<ByteString> {
    (code != ErrorCode::None).then(|| ByteString::from_static(code.message()))
}
