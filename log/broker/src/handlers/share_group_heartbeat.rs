//! ShareGroupHeartbeat: becomes, is and stops being a member of a share group (KIP-932).

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::share_group_heartbeat::{
    Assignment, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, TopicPartitions,
};

use super::{RequestContext, group_heartbeat, own};
use crate::error::Refusal;
use crate::group::{GroupEpoch, GroupShard, HeartbeatAnswer, ShareHeartbeat, by_topic};
use crate::server::Answer;

pub(crate) async fn begin(context: RequestContext, request: ShareGroupHeartbeatRequest) -> Answer {
    let group = own(&request.group_id);
    let heartbeat = heartbeat(&context, request);
    let beat = |shard: &Arc<GroupShard>| shard.share_heartbeat(&group, &heartbeat);
    group_heartbeat::begin(&context, &group, heartbeat.check(), beat, answer, refused).await
}

/// The answer that refuses a request.
pub(crate) fn refuse(code: ErrorCode) -> ShareGroupHeartbeatResponse {
    refused(code.into())
}

fn refused(refusal: Refusal) -> ShareGroupHeartbeatResponse {
    ShareGroupHeartbeatResponse {
        error_code: refusal.code.code(),
        error_message: Some(refusal.into_text()),
        ..Default::default()
    }
}

/// The group outlives the request, so nothing in it may share the memory of the request's frame.
fn heartbeat(context: &RequestContext, request: ShareGroupHeartbeatRequest) -> ShareHeartbeat {
    ShareHeartbeat {
        member_id: own(&request.member_id),
        epoch: GroupEpoch(request.member_epoch),
        rack_id: request.rack_id.as_ref().map(own),
        client_id: context.client_id.as_ref().map(own).unwrap_or_default(),
        client_host: ByteString::from(context.client.host()),
        topics: request.subscribed_topic_names.map(|names| names.iter().map(own).collect()),
    }
}

fn answer(told: HeartbeatAnswer) -> ShareGroupHeartbeatResponse {
    let assignment = told.assignment.map(|assignment| {
        let topics = by_topic(assignment);
        let topics = topics.map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions });
        Assignment { topic_partitions: topics.collect() }
    });
    ShareGroupHeartbeatResponse {
        member_id: Some(told.member_id),
        member_epoch: told.epoch.0,
        heartbeat_interval_ms: told.heartbeat_interval_ms,
        assignment,
        ..Default::default()
    }
}
