//! Offsets in the keeping of a group's coordinator.

use std::collections::HashMap;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use thalweg_protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponse,
};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset, TopicPartition};

use super::offsets::{CommittedOffset, GroupMetadata};
use crate::by_leader::by_topic;
use crate::coordinator::Coordinator;
use crate::error::{Error, ErrorKind, Result};

/// The last versions that name topics instead of giving their ids: groups keep offsets of topics by name.
const NAMED_FETCH: i16 = 9;
const NAMED_COMMIT: i16 = 9;
/// The first version that waits for open transactions.
const STABLE_FETCH: i16 = 7;
/// The first version with several groups in one request.
const GROUPS_FETCH: i16 = 8;

/// What the group has committed, for `partitions` or for all; what it has not is left out.
pub(crate) async fn fetch_offsets(
    coordinator: &Coordinator,
    partitions: Option<&[TopicPartition]>,
    require_stable: bool,
) -> Result<HashMap<TopicPartition, CommittedOffset>> {
    let mut retry = coordinator.cluster().retry("fetching committed offsets");
    loop {
        match fetch_offsets_once(coordinator, partitions, require_stable).await {
            Err(error) if error.kind() == ErrorKind::Retry => retry.pause(error).await?,
            answer => return answer,
        }
    }
}

async fn fetch_offsets_once(
    coordinator: &Coordinator,
    partitions: Option<&[TopicPartition]>,
    require_stable: bool,
) -> Result<HashMap<TopicPartition, CommittedOffset>> {
    let node = coordinator.node().await?;
    let first = if require_stable { STABLE_FETCH } else { *OffsetFetchRequest::VERSIONS.start() };
    let version = node.offered().pick(ApiKey::OffsetFetch, first..=NAMED_FETCH)?;
    let topics =
        partitions.map(|partitions| by_topic(partitions.iter().map(|partition| (partition.clone(), ()))));
    let indexes =
        |partitions: Vec<(i32, ())>| partitions.into_iter().map(|(partition, ())| partition).collect();
    let mut request = OffsetFetchRequest { require_stable, ..OffsetFetchRequest::default() };
    if version >= GROUPS_FETCH {
        let named = |(name, partitions)| OffsetFetchRequestTopics {
            name,
            partition_indexes: indexes(partitions),
            ..OffsetFetchRequestTopics::default()
        };
        request.groups = vec![OffsetFetchRequestGroup {
            group_id: coordinator.key().clone(),
            topics: topics.map(|topics| topics.into_iter().map(named).collect()),
            ..OffsetFetchRequestGroup::default()
        }];
    } else {
        let named =
            |(name, partitions)| OffsetFetchRequestTopic { name, partition_indexes: indexes(partitions) };
        request.group_id = coordinator.key().clone();
        request.topics = topics.map(|topics| topics.into_iter().map(named).collect());
    }
    let response = node.call_in(version, request, Duration::ZERO).await;
    if let Err(Error::Connection { .. }) = &response {
        coordinator.forget();
    }
    read_offsets(coordinator, response?, version)
}

/// One partition of an answer: where, offset, leader epoch, metadata, error code.
type Row = (TopicPartition, i64, i32, Option<ByteString>, i16);

fn read_offsets(
    coordinator: &Coordinator,
    response: OffsetFetchResponse,
    version: i16,
) -> Result<HashMap<TopicPartition, CommittedOffset>> {
    let (code, rows) = rows(response, version)?;
    let refused = |code| match ErrorCode::from(code) {
        ErrorCode::None => Ok(()),
        code => Err(coordinator.refused(ApiKey::OffsetFetch, code)),
    };
    refused(code)?;
    let mut found = HashMap::new();
    for (partition, offset, epoch, metadata, code) in rows {
        refused(code)?;
        if offset >= 0 {
            let (offset, leader_epoch) = (Offset(offset), LeaderEpoch(epoch));
            let metadata = metadata.unwrap_or_default();
            found.insert(partition, CommittedOffset { offset, leader_epoch, metadata });
        }
    }
    Ok(found)
}

fn rows(response: OffsetFetchResponse, version: i16) -> Result<(i16, Vec<Row>)> {
    let mut rows = Vec::new();
    if version < GROUPS_FETCH {
        for topic in response.topics {
            rows.extend(topic.partitions.into_iter().map(|found| {
                let partition = TopicPartition::new(topic.name.clone(), found.partition_index);
                let epoch = found.committed_leader_epoch;
                (partition, found.committed_offset, epoch, found.metadata, found.error_code)
            }));
        }
        return Ok((response.error_code, rows));
    }
    let missing = Error::BadAnswer { api: ApiKey::OffsetFetch, reason: "the group is missing from it" };
    let group = response.groups.into_iter().next().ok_or(missing)?;
    for topic in group.topics {
        rows.extend(topic.partitions.into_iter().map(|found| {
            let partition = TopicPartition::new(topic.name.clone(), found.partition_index);
            let epoch = found.committed_leader_epoch;
            (partition, found.committed_offset, epoch, found.metadata, found.error_code)
        }));
    }
    Ok((group.error_code, rows))
}

/// Commits offsets as the member that `member` is; retried while the coordinator moves or loads.
pub(crate) async fn commit_offsets(
    coordinator: &Coordinator,
    member: &GroupMetadata,
    offsets: &[(TopicPartition, CommittedOffset)],
) -> Result<()> {
    if offsets.is_empty() {
        return Ok(());
    }
    let mut retry = coordinator.cluster().retry("committing offsets");
    loop {
        match commit_offsets_once(coordinator, member, offsets).await {
            Err(error) if error.kind() == ErrorKind::Retry => retry.pause(error).await?,
            answer => return answer,
        }
    }
}

/// One attempt to commit offsets.
pub(crate) async fn commit_offsets_once(
    coordinator: &Coordinator,
    member: &GroupMetadata,
    offsets: &[(TopicPartition, CommittedOffset)],
) -> Result<()> {
    let partition = |(partition_index, offset): (i32, CommittedOffset)| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: offset.offset.0,
        committed_leader_epoch: offset.leader_epoch.0,
        committed_metadata: Some(offset.metadata),
    };
    let topics =
        by_topic(offsets.iter().cloned()).into_iter().map(|(name, partitions)| OffsetCommitRequestTopic {
            name,
            partitions: partitions.into_iter().map(partition).collect(),
            ..OffsetCommitRequestTopic::default()
        });
    let request = OffsetCommitRequest {
        group_id: member.group.clone(),
        generation_id_or_member_epoch: member.generation,
        member_id: member.member_id.clone(),
        group_instance_id: member.instance_id.clone(),
        topics: topics.collect(),
        ..OffsetCommitRequest::default()
    };
    let response = coordinator.call(request, NAMED_COMMIT, Duration::ZERO).await?;
    let codes = response.topics.into_iter().flat_map(|topic| topic.partitions).map(|found| found.error_code);
    for code in codes.map(ErrorCode::from) {
        if !code.is_none() {
            return Err(refused_member(coordinator, member, ApiKey::OffsetCommit, code));
        }
    }
    Ok(())
}

/// What a refusal means for a member of a group.
pub(crate) fn refused_member(
    coordinator: &Coordinator,
    member: &GroupMetadata,
    api: ApiKey,
    code: ErrorCode,
) -> Error {
    let error = coordinator.refused(api, code);
    match error.kind() {
        ErrorKind::Rejoin => Error::NotInGroup { group: member.group.to_string(), reason: code },
        ErrorKind::Fenced => Error::MemberFenced {
            group: member.group.to_string(),
            instance_id: member.instance_id.as_deref().unwrap_or_default().to_owned(),
        },
        _ => error,
    }
}
