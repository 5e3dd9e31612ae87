//! The offsets that OffsetCommit and TxnOffsetCommit ask to keep: which of them can be.

use bytestring::ByteString;
use thalweg_controller::Topic;
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset, Uuid};

use super::RequestContext;
use crate::group::{CommitPartition, CommitTopic};

/// The offsets of one topic, as a request asks to keep them.
pub(super) struct AskedTopic {
    pub(super) name: ByteString,
    /// Zero where the request names the topic.
    pub(super) id: Uuid,
    pub(super) partitions: Vec<AskedPartition>,
}

/// The offset of one partition, as a request asks to keep it.
pub(super) struct AskedPartition {
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) metadata: Option<ByteString>,
    /// What the answer says of it; [`ErrorCode::None`] for one that can be kept.
    pub(super) code: ErrorCode,
}

impl AskedPartition {
    pub(super) fn new(partition: i32, offset: i64, leader_epoch: i32, metadata: Option<ByteString>) -> Self {
        Self { partition, offset, leader_epoch, metadata, code: ErrorCode::None }
    }
}

/// Looks every topic and partition up, sets the codes of those that cannot be kept, and returns the others.
pub(super) fn check(context: &RequestContext, asked: &mut [AskedTopic], by_id: bool) -> Vec<CommitTopic> {
    let state = context.core.controller.state();
    let metadata_max = context.core.config.offset_metadata_max_bytes;
    let mut commits = Vec::with_capacity(asked.len());
    for asked in asked {
        let found = if by_id { state.topic_by_id(asked.id) } else { state.topic(&asked.name) };
        let Some(topic) = found else {
            let code = if by_id { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition };
            asked.partitions.iter_mut().for_each(|partition| partition.code = code);
            continue;
        };
        let mut partitions = Vec::with_capacity(asked.partitions.len());
        for partition in &mut asked.partitions {
            partition.code = check_partition(topic, partition, metadata_max);
            if partition.code == ErrorCode::None {
                partitions.push(CommitPartition {
                    partition: partition.partition,
                    offset: Offset(partition.offset),
                    leader_epoch: LeaderEpoch(partition.leader_epoch),
                    metadata: kept(partition.metadata.as_ref()),
                });
            }
        }
        if !partitions.is_empty() {
            commits.push(CommitTopic { name: topic.name.clone(), id: topic.id, partitions });
        }
    }
    commits
}

fn check_partition(topic: &Topic, asked: &AskedPartition, metadata_max: usize) -> ErrorCode {
    if topic.partition(asked.partition).is_none() {
        ErrorCode::UnknownTopicOrPartition
    } else if asked.metadata.as_ref().is_some_and(|metadata| metadata.len() > metadata_max) {
        ErrorCode::OffsetMetadataTooLarge
    } else {
        ErrorCode::None
    }
}

/// The metadata outlives the request, so it may not share the memory of the request's frame.
fn kept(metadata: Option<&ByteString>) -> ByteString {
    match metadata {
        Some(metadata) if !metadata.is_empty() => super::own(metadata),
        _ => ByteString::new(),
    }
}

/// Says `code` of every offset that could have been kept.
pub(super) fn fail(asked: &mut [AskedTopic], code: ErrorCode) {
    let partitions = asked.iter_mut().flat_map(|topic| &mut topic.partitions);
    partitions
        .filter(|partition| partition.code == ErrorCode::None)
        .for_each(|partition| partition.code = code);
}
