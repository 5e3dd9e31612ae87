//! ConsumerGroupHeartbeat: becomes, is and stops being a member of a group that the coordinator assigns to (KIP-848).

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::consumer_group_heartbeat::{
    Assignment, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};

use super::{RequestContext, group_heartbeat, own, random_uuid};
use crate::error::Refusal;
use crate::group::{GroupEpoch, GroupShard, Heartbeat, HeartbeatAnswer, TopicIdPartition, by_topic};
use crate::server::Answer;

/// From this version on clients choose their member ids (KIP-1082).
const FIRST_WITH_OWN_IDS: i16 = 1;

pub(crate) async fn begin(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Answer {
    let group = own(&request.group_id);
    let heartbeat = heartbeat(&context, request);
    let beat = |shard: &Arc<GroupShard>| shard.consumer_heartbeat(&group, &heartbeat);
    group_heartbeat::begin(&context, &group, heartbeat.check(), beat, answer, refused).await
}

/// The answer that refuses a request.
pub(crate) fn refuse(code: ErrorCode) -> ConsumerGroupHeartbeatResponse {
    refused(code.into())
}

fn refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse {
    ConsumerGroupHeartbeatResponse {
        error_code: refusal.code.code(),
        error_message: Some(refusal.into_text()),
        ..Default::default()
    }
}

/// The group outlives the request, so nothing in it may share the memory of the request's frame.
fn heartbeat(context: &RequestContext, request: ConsumerGroupHeartbeatRequest) -> Heartbeat {
    let joins = request.member_epoch == GroupEpoch::JOINING.0;
    let needs_id = context.version < FIRST_WITH_OWN_IDS && joins && request.member_id.is_empty();
    let owned = request.topic_partitions.map(|topics| {
        let partitions = topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| TopicIdPartition::new(topic.topic_id, *partition))
        });
        partitions.collect()
    });
    Heartbeat {
        member_id: if needs_id { ByteString::from(random_uuid()) } else { own(&request.member_id) },
        epoch: GroupEpoch(request.member_epoch),
        instance_id: request.instance_id.as_ref().map(own),
        rack_id: request.rack_id.as_ref().map(own),
        client_id: context.client_id.as_ref().map(own).unwrap_or_default(),
        client_host: ByteString::from(context.client.host()),
        rebalance_timeout_ms: (request.rebalance_timeout_ms >= 0).then_some(request.rebalance_timeout_ms),
        topics: request.subscribed_topic_names.map(|names| names.iter().map(own).collect()),
        regex: request.subscribed_topic_regex.as_ref().map(own),
        assignor: request.server_assignor.as_ref().map(own),
        owned,
    }
}

fn answer(told: HeartbeatAnswer) -> ConsumerGroupHeartbeatResponse {
    let assignment = told.assignment.map(|assignment| {
        let topics = by_topic(assignment);
        let topics = topics.map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions });
        Assignment { topic_partitions: topics.collect() }
    });
    ConsumerGroupHeartbeatResponse {
        member_id: Some(told.member_id),
        member_epoch: told.epoch.0,
        heartbeat_interval_ms: told.heartbeat_interval_ms,
        assignment,
        ..Default::default()
    }
}
