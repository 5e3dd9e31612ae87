//! The records of consumer groups, in Kafka's format.

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::messages::records::{
    ClassicMemberMetadata, ClassicProtocol, ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataKey, ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue,
    OwnedTopicPartitions, TargetTopicPartitions,
};
use thalweg_protocol::{DecodeError, EncodeError};

use super::{
    Assignment, Change, ClassicMember, CurrentAssignment, GroupEpoch, GroupFacts, MemberMetadata,
    MemberState, Owned, ResolvedRegex, TargetEpoch, TopicIdPartition, by_topic, one_by_one,
};
use crate::coordinator::JournalRecord;
use crate::group::classic::Protocol;

/// The version of all values: there is one of each.
const VERSION: i16 = 0;

/// An assignment epoch that is not known.
const NO_EPOCH: i32 = -1;

/// The record that makes `change` to group `group` last.
pub(crate) fn record(group: &ByteString, change: &Change) -> Result<JournalRecord, EncodeError> {
    let group_id = group.clone();
    let (key, value) = match change {
        Change::Group(facts) => (
            ConsumerGroupMetadataKey { group_id }.to_bytes()?,
            facts.map(|facts| {
                let (epoch, metadata_hash) = (facts.epoch.0, facts.metadata_hash);
                ConsumerGroupMetadataValue { epoch, metadata_hash }.to_bytes(VERSION)
            }),
        ),
        Change::Member(id, metadata) => (
            ConsumerGroupMemberMetadataKey { group_id, member_id: id.clone() }.to_bytes()?,
            metadata.as_deref().map(|metadata| member_value(metadata).to_bytes(VERSION)),
        ),
        Change::TargetEpoch(target) => (
            ConsumerGroupTargetAssignmentMetadataKey { group_id }.to_bytes()?,
            target.map(|target| {
                let value = ConsumerGroupTargetAssignmentMetadataValue {
                    assignment_epoch: target.epoch.0,
                    assignment_timestamp: target.computed_ms,
                };
                value.to_bytes(VERSION)
            }),
        ),
        Change::Target(id, target) => (
            ConsumerGroupTargetAssignmentMemberKey { group_id, member_id: id.clone() }.to_bytes()?,
            target.as_ref().map(|target| target_value(target).to_bytes(VERSION)),
        ),
        Change::Current(id, current) => (
            ConsumerGroupCurrentMemberAssignmentKey { group_id, member_id: id.clone() }.to_bytes()?,
            current.as_ref().map(|current| current_value(current).to_bytes(VERSION)),
        ),
        Change::Regex(pattern, resolved) => (
            ConsumerGroupRegularExpressionKey { group_id, regular_expression: pattern.clone() }.to_bytes()?,
            resolved.as_ref().map(|resolved| {
                let value = ConsumerGroupRegularExpressionValue {
                    topics: resolved.topics.iter().cloned().collect(),
                    version: resolved.metadata_offset,
                    timestamp: resolved.resolved_ms,
                };
                value.to_bytes(VERSION)
            }),
        ),
    };
    Ok(JournalRecord { key, value: value.transpose()? })
}

fn member_value(metadata: &MemberMetadata) -> ConsumerGroupMemberMetadataValue {
    let classic = metadata.classic.as_ref().map(|classic| ClassicMemberMetadata {
        session_timeout_ms: classic.session_timeout_ms,
        supported_protocols: classic
            .protocols
            .iter()
            .map(|protocol| ClassicProtocol {
                name: protocol.name.clone(),
                metadata: protocol.metadata.clone(),
            })
            .collect(),
    });
    ConsumerGroupMemberMetadataValue {
        instance_id: metadata.instance_id.clone(),
        rack_id: metadata.rack_id.clone(),
        client_id: metadata.client_id.clone(),
        client_host: metadata.client_host.clone(),
        subscribed_topic_names: metadata.topics.iter().cloned().collect(),
        subscribed_topic_regex: metadata.regex.clone(),
        rebalance_timeout_ms: metadata.rebalance_timeout_ms,
        server_assignor: metadata.assignor.clone(),
        classic_member_metadata: classic,
    }
}

fn target_value(target: &Assignment) -> ConsumerGroupTargetAssignmentMemberValue {
    let topics = by_topic(target.iter().copied());
    let topics = topics.map(|(topic_id, partitions)| TargetTopicPartitions { topic_id, partitions });
    ConsumerGroupTargetAssignmentMemberValue { topic_partitions: topics.collect() }
}

fn current_value(current: &CurrentAssignment) -> ConsumerGroupCurrentMemberAssignmentValue {
    ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: current.epoch.0,
        previous_member_epoch: current.previous_epoch.0,
        state: current.state.number(),
        assigned_partitions: owned_value(&current.assigned),
        partitions_pending_revocation: owned_value(&current.revoking),
    }
}

fn owned_value(owned: &Owned) -> Vec<OwnedTopicPartitions> {
    let topics = by_topic(owned.keys().copied()).map(|(topic_id, partitions)| {
        let epoch = |at: &i32| owned.get(&TopicIdPartition::new(topic_id, *at)).map_or(NO_EPOCH, |e| e.0);
        let assignment_epochs = Some(partitions.iter().map(epoch).collect());
        OwnedTopicPartitions { topic_id, partitions, assignment_epochs }
    });
    topics.collect()
}

/// Reads a record back: whose group it is, and what it says. `None` for a kind that is about something else.
pub(crate) fn read(
    kind: i16,
    key: Bytes,
    value: Option<Bytes>,
) -> Result<Option<(ByteString, Change)>, DecodeError> {
    Ok(Some(match kind {
        ConsumerGroupMetadataKey::KIND => {
            let key = ConsumerGroupMetadataKey::from_bytes(key)?;
            let value = value.map(ConsumerGroupMetadataValue::from_bytes).transpose()?;
            let facts = value.map(|value| GroupFacts {
                epoch: GroupEpoch(value.epoch),
                metadata_hash: value.metadata_hash,
            });
            (key.group_id, Change::Group(facts))
        }
        ConsumerGroupMemberMetadataKey::KIND => {
            let key = ConsumerGroupMemberMetadataKey::from_bytes(key)?;
            let value = value.map(ConsumerGroupMemberMetadataValue::from_bytes).transpose()?;
            (key.group_id, Change::Member(key.member_id, value.map(member).map(Arc::new)))
        }
        ConsumerGroupTargetAssignmentMetadataKey::KIND => {
            let key = ConsumerGroupTargetAssignmentMetadataKey::from_bytes(key)?;
            let value = value.map(ConsumerGroupTargetAssignmentMetadataValue::from_bytes).transpose()?;
            let target = value.map(|value| TargetEpoch {
                epoch: GroupEpoch(value.assignment_epoch),
                computed_ms: value.assignment_timestamp,
            });
            (key.group_id, Change::TargetEpoch(target))
        }
        ConsumerGroupTargetAssignmentMemberKey::KIND => {
            let key = ConsumerGroupTargetAssignmentMemberKey::from_bytes(key)?;
            let value = value.map(ConsumerGroupTargetAssignmentMemberValue::from_bytes).transpose()?;
            (key.group_id, Change::Target(key.member_id, value.map(target)))
        }
        ConsumerGroupCurrentMemberAssignmentKey::KIND => {
            let key = ConsumerGroupCurrentMemberAssignmentKey::from_bytes(key)?;
            let value = value.map(ConsumerGroupCurrentMemberAssignmentValue::from_bytes).transpose()?;
            (key.group_id, Change::Current(key.member_id, value.map(current)))
        }
        ConsumerGroupRegularExpressionKey::KIND => {
            let key = ConsumerGroupRegularExpressionKey::from_bytes(key)?;
            let value = value.map(ConsumerGroupRegularExpressionValue::from_bytes).transpose()?;
            let resolved = value.map(|value| ResolvedRegex {
                topics: value.topics.into_iter().collect(),
                metadata_offset: value.version,
                resolved_ms: value.timestamp,
            });
            (key.group_id, Change::Regex(key.regular_expression, resolved))
        }
        _ => return Ok(None),
    }))
}

fn member(value: ConsumerGroupMemberMetadataValue) -> MemberMetadata {
    let protocol = |protocol: ClassicProtocol| Protocol { name: protocol.name, metadata: protocol.metadata };
    MemberMetadata {
        instance_id: value.instance_id,
        rack_id: value.rack_id,
        client_id: value.client_id,
        client_host: value.client_host,
        topics: value.subscribed_topic_names.into_iter().collect(),
        regex: value.subscribed_topic_regex.filter(|pattern| !pattern.is_empty()),
        rebalance_timeout_ms: value.rebalance_timeout_ms,
        assignor: value.server_assignor,
        classic: value.classic_member_metadata.map(|classic| ClassicMember {
            session_timeout_ms: classic.session_timeout_ms,
            protocols: classic.supported_protocols.into_iter().map(protocol).collect(),
        }),
    }
}

fn target(value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment {
    let topics = value.topic_partitions.into_iter().map(|topic| (topic.topic_id, topic.partitions));
    one_by_one(topics).collect()
}

fn current(value: ConsumerGroupCurrentMemberAssignmentValue) -> CurrentAssignment {
    let epoch = GroupEpoch(value.member_epoch);
    CurrentAssignment {
        epoch,
        previous_epoch: GroupEpoch(value.previous_member_epoch),
        state: MemberState::from_number(value.state),
        assigned: owned(value.assigned_partitions, epoch),
        revoking: owned(value.partitions_pending_revocation, epoch),
    }
}

/// What a member has. Records from before KIP-1251 do not say since when: then it is since `epoch`.
fn owned(topics: Vec<OwnedTopicPartitions>, epoch: GroupEpoch) -> Owned {
    let mut owned = Owned::new();
    for topic in topics {
        let epochs = topic.assignment_epochs.unwrap_or_default();
        let mut epochs = epochs.into_iter().map(GroupEpoch);
        for partition in topic.partitions {
            let since = epochs.next().filter(|since| since.0 >= 0).unwrap_or(epoch);
            owned.insert(TopicIdPartition::new(topic.topic_id, partition), since);
        }
    }
    owned
}
