//! ShareGroupDescribe: the state and the members of share groups (KIP-932).

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::share_group_describe::{
    Assignment, DescribedGroup, Member, ShareGroupDescribeRequest, ShareGroupDescribeResponse,
    TopicPartitions,
};

use super::RequestContext;
use crate::group::{self, DescribedConsumer, SHARE_ASSIGNOR, ShareDescription, TopicImage, by_topic};
use crate::operations;

pub(crate) async fn handle(
    context: RequestContext,
    request: ShareGroupDescribeRequest,
) -> ShareGroupDescribeResponse {
    let topics = context.core.groups.topics();
    let mut groups = Vec::with_capacity(request.group_ids.len());
    for id in request.group_ids {
        let mut group = match context.core.groups.shard(&id).await {
            Ok(shard) => match shard.describe_share(&id) {
                Some(description) => described(id, description, &topics),
                None => failed(id, ErrorCode::GroupIdNotFound),
            },
            Err(code) => failed(id, code),
        };
        if request.include_authorized_operations && group.error_code == ErrorCode::None.code() {
            group.authorized_operations = operations::GROUP;
        }
        groups.push(group);
    }
    ShareGroupDescribeResponse { groups, ..Default::default() }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: ShareGroupDescribeRequest, code: ErrorCode) -> ShareGroupDescribeResponse {
    let groups = request.group_ids.into_iter().map(|id| failed(id, code)).collect();
    ShareGroupDescribeResponse { groups, ..Default::default() }
}

fn described(id: ByteString, group: ShareDescription, topics: &TopicImage) -> DescribedGroup {
    DescribedGroup {
        group_id: id,
        group_state: ByteString::from_static(group.state),
        group_epoch: group.epoch.0,
        assignment_epoch: group.target_epoch.0,
        assignor_name: ByteString::from_static(SHARE_ASSIGNOR),
        members: group.members.into_iter().map(|member| self::member(member, topics)).collect(),
        ..Default::default()
    }
}

fn member(member: DescribedConsumer, topics: &TopicImage) -> Member {
    let metadata = &member.metadata;
    Member {
        member_id: member.id,
        rack_id: metadata.rack_id.clone(),
        member_epoch: member.epoch.0,
        client_id: metadata.client_id.clone(),
        client_host: metadata.client_host.clone(),
        subscribed_topic_names: metadata.topics.iter().cloned().collect(),
        assignment: assignment(member.assigned, topics),
    }
}

/// Partitions with the names of their topics. Those that are gone have none, and are left out.
fn assignment(assignment: group::Assignment, topics: &TopicImage) -> Assignment {
    let named = by_topic(assignment).filter_map(|(topic_id, partitions)| {
        Some(TopicPartitions { topic_id, topic_name: topics.name(topic_id)?.clone(), partitions })
    });
    Assignment { topic_partitions: named.collect() }
}

fn failed(id: ByteString, code: ErrorCode) -> DescribedGroup {
    DescribedGroup {
        group_id: id,
        error_code: code.code(),
        error_message: Some(ByteString::from_static(code.message())),
        ..Default::default()
    }
}
