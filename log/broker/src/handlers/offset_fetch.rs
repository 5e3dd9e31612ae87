//! OffsetFetch: tells the offsets that groups have committed.

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_controller::ClusterState;
use thalweg_protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use thalweg_protocol::{ErrorCode, Offset, Uuid};

use super::RequestContext;
use crate::coordinator::Shard;
use crate::group::{FetchedPartition, GroupShard};
use crate::server::Answer;

/// From this version on several groups are asked for at once (KIP-709).
const FIRST_BATCHED: i16 = 8;

/// From this version on topics are told by their ids (KIP-848).
const FIRST_WITH_IDS: i16 = 10;

/// What an answer rests on that is not committed yet.
type RestsOn = Vec<(Arc<GroupShard>, Offset)>;

pub(crate) async fn begin(context: RequestContext, request: OffsetFetchRequest) -> Answer {
    let version = context.version;
    let require_stable = request.require_stable;
    let mut groups = Vec::new();
    let mut rests_on = RestsOn::new();
    for group in asked_groups(version, request) {
        groups.push(fetch(&context, group, require_stable, &mut rests_on).await);
    }
    rests_on.retain(|(shard, offset)| !shard.journal().is_committed(*offset));
    if rests_on.is_empty() {
        return Answer::now(answer(version, groups));
    }
    // What a power cut could still take back is not told to anybody.
    Answer::waits(async move {
        for (shard, offset) in rests_on {
            if let Err(code) = shard.journal().committed(offset).await {
                groups.iter_mut().for_each(|group| fail(group, code));
            }
        }
        answer(version, groups).into()
    })
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(
    context: &RequestContext,
    request: OffsetFetchRequest,
    code: ErrorCode,
) -> OffsetFetchResponse {
    let groups = asked_groups(context.version, request).into_iter().map(|asked| {
        let mut group = unknown(asked);
        fail(&mut group, code);
        group
    });
    answer(context.version, groups.collect())
}

/// The request in the words of version 8.
fn asked_groups(version: i16, request: OffsetFetchRequest) -> Vec<OffsetFetchRequestGroup> {
    if version >= FIRST_BATCHED {
        return request.groups;
    }
    let topics = request.topics.map(|topics| {
        let topic = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            partition_indexes: topic.partition_indexes,
            ..Default::default()
        });
        topic.collect()
    });
    vec![OffsetFetchRequestGroup { group_id: request.group_id, topics, ..Default::default() }]
}

async fn fetch(
    context: &RequestContext,
    asked: OffsetFetchRequestGroup,
    require_stable: bool,
    rests_on: &mut RestsOn,
) -> OffsetFetchResponseGroup {
    let shard = match context.core.groups.shard(&asked.group_id).await {
        Ok(shard) => shard,
        Err(code) => {
            let mut group = unknown(asked);
            fail(&mut group, code);
            return group;
        }
    };
    let state = context.core.controller.state();
    let by_id = context.version >= FIRST_WITH_IDS;
    let wanted = asked.topics.as_ref().map(|topics| {
        let wanted =
            topics.iter().map(|topic| (name_of(&state, topic, by_id), topic.partition_indexes.clone()));
        wanted.collect::<Vec<_>>()
    });
    let member = (asked.member_id.as_deref(), asked.member_epoch);
    let fetched = match shard.fetch(&asked.group_id, member, wanted.as_deref(), require_stable) {
        Ok(fetched) => fetched,
        Err(code) => {
            let mut group = unknown(asked);
            fail(&mut group, code);
            return group;
        }
    };
    rests_on.extend(fetched.rests_on.map(|offset| (shard, offset)));
    let topics = match asked.topics {
        // As asked, with the ids as they came, known or not.
        Some(topics) => topics
            .into_iter()
            .zip(fetched.topics)
            .map(|(asked, (name, partitions))| {
                let is_known = !by_id || !name.is_empty();
                let current = state.topic(&name).map(|topic| topic.id);
                OffsetFetchResponseTopics {
                    name: asked.name,
                    topic_id: asked.topic_id,
                    partitions: partitions.into_iter().map(|found| told(found, current, is_known)).collect(),
                }
            })
            .collect(),
        None => all_topics(&state, fetched.topics, by_id),
    };
    OffsetFetchResponseGroup { group_id: asked.group_id, topics, error_code: ErrorCode::None.code() }
}

/// The name of a topic that is asked for; empty for an id that is not known.
fn name_of(state: &ClusterState, asked: &OffsetFetchRequestTopics, by_id: bool) -> ByteString {
    if !by_id {
        return asked.name.clone();
    }
    state.topic_by_id(asked.topic_id).map(|topic| topic.name.clone()).unwrap_or_default()
}

/// Every topic with an offset. Where topics are told by their ids, those that have been deleted are left out.
fn all_topics(
    state: &ClusterState,
    topics: Vec<(ByteString, Vec<FetchedPartition>)>,
    by_id: bool,
) -> Vec<OffsetFetchResponseTopics> {
    let topics = topics.into_iter().filter_map(|(name, partitions)| {
        let current = state.topic(&name).map(|topic| topic.id);
        if by_id && current.is_none() {
            return None;
        }
        let partitions = partitions.into_iter().map(|found| told(found, current, true)).collect();
        Some(OffsetFetchResponseTopics { name, topic_id: current.unwrap_or(Uuid::ZERO), partitions })
    });
    topics.collect()
}

/// How an offset is told. One that was committed for a topic that has since been deleted and made anew is none.
fn told(found: FetchedPartition, current: Option<Uuid>, is_known: bool) -> OffsetFetchResponsePartitions {
    let none = OffsetFetchResponsePartitions {
        partition_index: found.partition,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(ByteString::new()),
        error_code: ErrorCode::None.code(),
    };
    if !is_known {
        return OffsetFetchResponsePartitions { error_code: ErrorCode::UnknownTopicId.code(), ..none };
    }
    match found.committed {
        Ok(Some(committed)) => {
            let is_stale =
                !committed.topic_id.is_zero() && current.is_some_and(|id| id != committed.topic_id);
            if is_stale {
                return none;
            }
            OffsetFetchResponsePartitions {
                committed_offset: committed.offset.0,
                committed_leader_epoch: committed.leader_epoch.0,
                metadata: Some(committed.metadata),
                ..none
            }
        }
        Ok(None) => none,
        Err(code) => OffsetFetchResponsePartitions { error_code: code.code(), ..none },
    }
}

/// A group with no offset at all.
fn unknown(asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup {
    let topics = asked.topics.unwrap_or_default().into_iter().map(|topic| OffsetFetchResponseTopics {
        name: topic.name,
        topic_id: topic.topic_id,
        partitions: topic
            .partition_indexes
            .into_iter()
            .map(|partition| told(FetchedPartition { partition, committed: Ok(None) }, None, true))
            .collect(),
    });
    OffsetFetchResponseGroup { group_id: asked.group_id, topics: topics.collect(), error_code: 0 }
}

/// Takes every offset back and says `code` instead.
fn fail(group: &mut OffsetFetchResponseGroup, code: ErrorCode) {
    group.error_code = code.code();
    for partition in group.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        *partition = OffsetFetchResponsePartitions {
            partition_index: partition.partition_index,
            committed_offset: -1,
            committed_leader_epoch: -1,
            metadata: Some(ByteString::new()),
            error_code: code.code(),
        };
    }
}

fn answer(version: i16, mut groups: Vec<OffsetFetchResponseGroup>) -> OffsetFetchResponse {
    if version >= FIRST_BATCHED {
        for group in &mut groups {
            // A group that has failed as a whole says so once.
            if group.error_code != ErrorCode::None.code() {
                group.topics.clear();
            }
        }
        return OffsetFetchResponse { groups, ..Default::default() };
    }
    let Some(group) = groups.pop() else { return OffsetFetchResponse::default() };
    let topics = group.topics.into_iter().map(|topic| OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic
            .partitions
            .into_iter()
            .map(|partition| OffsetFetchResponsePartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                metadata: partition.metadata,
                error_code: partition.error_code,
            })
            .collect(),
    });
    OffsetFetchResponse { topics: topics.collect(), error_code: group.error_code, ..Default::default() }
}
