//! ConsumerGroupDescribe: the state and the members of groups that the coordinator assigns to (KIP-848).

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::consumer_group_describe::{
    Assignment, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DescribedGroup, Member,
    TopicPartitions,
};

use super::RequestContext;
use crate::group::{self, ConsumerDescription, DescribedConsumer, TopicImage, by_topic};
use crate::operations;

/// How a member is told that speaks the classic protocol, and one that speaks that of KIP-848.
const CLASSIC_MEMBER: i8 = 0;
const CONSUMER_MEMBER: i8 = 1;

pub(crate) async fn handle(
    context: RequestContext,
    request: ConsumerGroupDescribeRequest,
) -> ConsumerGroupDescribeResponse {
    let topics = context.core.groups.topics();
    let mut groups = Vec::with_capacity(request.group_ids.len());
    for id in request.group_ids {
        let mut group = match context.core.groups.shard(&id).await {
            Ok(shard) => match shard.describe_consumer(&id) {
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
    ConsumerGroupDescribeResponse { groups, ..Default::default() }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(
    request: ConsumerGroupDescribeRequest,
    code: ErrorCode,
) -> ConsumerGroupDescribeResponse {
    let groups = request.group_ids.into_iter().map(|id| failed(id, code)).collect();
    ConsumerGroupDescribeResponse { groups, ..Default::default() }
}

fn described(id: ByteString, group: ConsumerDescription, topics: &TopicImage) -> DescribedGroup {
    DescribedGroup {
        group_id: id,
        group_state: ByteString::from_static(group.state.name()),
        group_epoch: group.epoch.0,
        assignment_epoch: group.target_epoch.0,
        assignor_name: ByteString::from_static(group.assignor.name()),
        members: group.members.into_iter().map(|member| self::member(member, topics)).collect(),
        ..Default::default()
    }
}

fn member(member: DescribedConsumer, topics: &TopicImage) -> Member {
    let metadata = &member.metadata;
    Member {
        member_id: member.id,
        instance_id: metadata.instance_id.clone(),
        rack_id: metadata.rack_id.clone(),
        member_epoch: member.epoch.0,
        client_id: metadata.client_id.clone(),
        client_host: metadata.client_host.clone(),
        subscribed_topic_names: metadata.topics.iter().cloned().collect(),
        subscribed_topic_regex: metadata.regex.clone(),
        assignment: assignment(member.assigned, topics),
        target_assignment: assignment(member.target, topics),
        member_type: if metadata.classic.is_some() { CLASSIC_MEMBER } else { CONSUMER_MEMBER },
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
