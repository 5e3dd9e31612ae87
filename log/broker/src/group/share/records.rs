//! The records of share groups, in Kafka's format.

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::messages::records::{
    ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue, ShareGroupMetadataKey,
    ShareGroupMetadataValue, ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue, SharedTargetPartitions,
    SharedTopicPartitions,
};
use thalweg_protocol::{DecodeError, EncodeError};

use crate::coordinator::JournalRecord;
use crate::group::consumer::{
    Change, CurrentAssignment, GroupEpoch, GroupFacts, MemberMetadata, MemberState, TargetEpoch, by_topic,
    one_by_one,
};

/// The version of all values: there is one of each.
const VERSION: i16 = 0;

/// The record that makes `change` to share group `group` last; `None` for what share groups do not have.
pub(crate) fn record(group: &ByteString, change: &Change) -> Result<Option<JournalRecord>, EncodeError> {
    let group_id = group.clone();
    let (key, value) = match change {
        Change::Group(facts) => (
            ShareGroupMetadataKey { group_id }.to_bytes()?,
            facts.map(|facts| {
                let (epoch, metadata_hash) = (facts.epoch.0, facts.metadata_hash);
                ShareGroupMetadataValue { epoch, metadata_hash }.to_bytes(VERSION)
            }),
        ),
        Change::Member(id, metadata) => (
            ShareGroupMemberMetadataKey { group_id, member_id: id.clone() }.to_bytes()?,
            metadata.as_deref().map(|metadata| {
                let value = ShareGroupMemberMetadataValue {
                    rack_id: metadata.rack_id.clone(),
                    client_id: metadata.client_id.clone(),
                    client_host: metadata.client_host.clone(),
                    subscribed_topic_names: metadata.topics.iter().cloned().collect(),
                };
                value.to_bytes(VERSION)
            }),
        ),
        Change::TargetEpoch(target) => (
            ShareGroupTargetAssignmentMetadataKey { group_id }.to_bytes()?,
            target.map(|target| {
                let value = ShareGroupTargetAssignmentMetadataValue {
                    assignment_epoch: target.epoch.0,
                    assignment_timestamp: target.computed_ms,
                };
                value.to_bytes(VERSION)
            }),
        ),
        Change::Target(id, target) => (
            ShareGroupTargetAssignmentMemberKey { group_id, member_id: id.clone() }.to_bytes()?,
            target.as_ref().map(|target| {
                let topics = by_topic(target.iter().copied());
                let topics =
                    topics.map(|(topic_id, partitions)| SharedTargetPartitions { topic_id, partitions });
                ShareGroupTargetAssignmentMemberValue { topic_partitions: topics.collect() }.to_bytes(VERSION)
            }),
        ),
        Change::Current(id, current) => (
            ShareGroupCurrentMemberAssignmentKey { group_id, member_id: id.clone() }.to_bytes()?,
            current.as_ref().map(|current| current_value(current).to_bytes(VERSION)),
        ),
        Change::Regex(..) => return Ok(None),
    };
    Ok(Some(JournalRecord { key, value: value.transpose()? }))
}

fn current_value(current: &CurrentAssignment) -> ShareGroupCurrentMemberAssignmentValue {
    let topics = by_topic(current.assigned.keys().copied());
    let topics = topics.map(|(topic_id, partitions)| SharedTopicPartitions { topic_id, partitions });
    ShareGroupCurrentMemberAssignmentValue {
        member_epoch: current.epoch.0,
        previous_member_epoch: current.previous_epoch.0,
        state: current.state.number(),
        assigned_partitions: topics.collect(),
    }
}

/// Reads a record back: whose group it is, and what it says. `None` for a kind that is about something else.
pub(crate) fn read(
    kind: i16,
    key: Bytes,
    value: Option<Bytes>,
) -> Result<Option<(ByteString, Change)>, DecodeError> {
    Ok(Some(match kind {
        ShareGroupMetadataKey::KIND => {
            let key = ShareGroupMetadataKey::from_bytes(key)?;
            let value = value.map(ShareGroupMetadataValue::from_bytes).transpose()?;
            let facts = value.map(|value| GroupFacts {
                epoch: GroupEpoch(value.epoch),
                metadata_hash: value.metadata_hash,
            });
            (key.group_id, Change::Group(facts))
        }
        ShareGroupMemberMetadataKey::KIND => {
            let key = ShareGroupMemberMetadataKey::from_bytes(key)?;
            let value = value.map(ShareGroupMemberMetadataValue::from_bytes).transpose()?;
            (key.group_id, Change::Member(key.member_id, value.map(member).map(Arc::new)))
        }
        ShareGroupTargetAssignmentMetadataKey::KIND => {
            let key = ShareGroupTargetAssignmentMetadataKey::from_bytes(key)?;
            let value = value.map(ShareGroupTargetAssignmentMetadataValue::from_bytes).transpose()?;
            let target = value.map(|value| TargetEpoch {
                epoch: GroupEpoch(value.assignment_epoch),
                computed_ms: value.assignment_timestamp,
            });
            (key.group_id, Change::TargetEpoch(target))
        }
        ShareGroupTargetAssignmentMemberKey::KIND => {
            let key = ShareGroupTargetAssignmentMemberKey::from_bytes(key)?;
            let value = value.map(ShareGroupTargetAssignmentMemberValue::from_bytes).transpose()?;
            let target = value.map(|value| {
                let topics = value.topic_partitions.into_iter();
                one_by_one(topics.map(|topic| (topic.topic_id, topic.partitions))).collect()
            });
            (key.group_id, Change::Target(key.member_id, target))
        }
        ShareGroupCurrentMemberAssignmentKey::KIND => {
            let key = ShareGroupCurrentMemberAssignmentKey::from_bytes(key)?;
            let value = value.map(ShareGroupCurrentMemberAssignmentValue::from_bytes).transpose()?;
            (key.group_id, Change::Current(key.member_id, value.map(current)))
        }
        _ => return Ok(None),
    }))
}

fn member(value: ShareGroupMemberMetadataValue) -> MemberMetadata {
    MemberMetadata {
        rack_id: value.rack_id,
        client_id: value.client_id,
        client_host: value.client_host,
        topics: value.subscribed_topic_names.into_iter().collect(),
        ..MemberMetadata::default()
    }
}

fn current(value: ShareGroupCurrentMemberAssignmentValue) -> CurrentAssignment {
    let epoch = GroupEpoch(value.member_epoch);
    let topics = value.assigned_partitions.into_iter();
    let assigned = one_by_one(topics.map(|topic| (topic.topic_id, topic.partitions)));
    CurrentAssignment {
        epoch,
        previous_epoch: GroupEpoch(value.previous_member_epoch),
        state: MemberState::from_number(value.state),
        assigned: assigned.map(|partition| (partition, epoch)).collect(),
        ..CurrentAssignment::default()
    }
}
