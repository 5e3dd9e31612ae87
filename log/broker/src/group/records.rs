//! The records of `__consumer_offsets`, in Kafka's format.

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::messages::records::{
    GroupMetadataKey, GroupMetadataValue, MemberMetadata, OffsetCommitKey, OffsetCommitValue,
};
use thalweg_protocol::record::Record;
use thalweg_protocol::{DecodeError, EncodeError, LeaderEpoch, Offset};

use super::classic::{GroupMetadata, StoredMember};
use super::consumer::Change;
use super::consumer::records as consumer_records;
use super::offsets::CommittedOffset;
use super::share::records as share_records;
use crate::coordinator::{JournalError, JournalRecord};

/// The value of an offset that expires at a time of its own; other versions cannot say that.
const EXPIRING_VERSION: i16 = 1;
/// The value of an offset of a topic whose id is not known.
const NAMED_VERSION: i16 = 3;
/// The value of an offset with the topic's id.
const IDENTIFIED_VERSION: i16 = 4;
/// The value of a group, as Kafka writes it.
const GROUP_VERSION: i16 = 3;

/// A record as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupRecord {
    /// A committed offset, or the end of one.
    Offset { group: ByteString, topic: ByteString, partition: i32, committed: Option<CommittedOffset> },
    /// A group, or the end of one.
    Group { group: ByteString, metadata: Option<GroupMetadata> },
    /// Something about a group that the coordinator assigns to (KIP-848).
    Consumer { group: ByteString, change: Change },
    /// Something about a share group (KIP-932).
    Share { group: ByteString, change: Change },
}

/// The record that commits `offset`, or takes it back.
pub(crate) fn offset_record(
    group: &ByteString,
    topic: &ByteString,
    partition: i32,
    offset: Option<&CommittedOffset>,
) -> Result<JournalRecord, EncodeError> {
    let key = OffsetCommitKey { group: group.clone(), topic: topic.clone(), partition };
    let value = offset.map(|offset| {
        let version = match offset.expire_timestamp_ms {
            Some(_) => EXPIRING_VERSION,
            None if offset.topic_id.is_zero() => NAMED_VERSION,
            None => IDENTIFIED_VERSION,
        };
        let value = OffsetCommitValue {
            offset: offset.offset.0,
            leader_epoch: offset.leader_epoch.0,
            metadata: offset.metadata.clone(),
            commit_timestamp: offset.commit_timestamp_ms,
            expire_timestamp: offset.expire_timestamp_ms.unwrap_or(-1),
            topic_id: offset.topic_id,
        };
        value.to_bytes(version)
    });
    Ok(JournalRecord { key: key.to_bytes()?, value: value.transpose()? })
}

/// The record that keeps a group's members and assignments.
pub(crate) fn group_record(metadata: &GroupMetadata) -> Result<JournalRecord, EncodeError> {
    let key = GroupMetadataKey { group: metadata.group.clone() };
    let member = |member: &StoredMember| MemberMetadata {
        member_id: member.id.clone(),
        group_instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout: member.rebalance_timeout_ms,
        session_timeout: member.session_timeout_ms,
        subscription: member.subscription.clone(),
        assignment: member.assignment.clone(),
    };
    let value = GroupMetadataValue {
        protocol_type: metadata.protocol_type.clone(),
        generation: metadata.generation,
        protocol: metadata.protocol.clone(),
        leader: metadata.leader.clone(),
        current_state_timestamp: metadata.state_since_ms,
        members: metadata.members.iter().map(member).collect(),
    };
    Ok(JournalRecord { key: key.to_bytes()?, value: Some(value.to_bytes(GROUP_VERSION)?) })
}

/// The record that ends a group.
pub(crate) fn group_tombstone(group: &ByteString) -> Result<JournalRecord, EncodeError> {
    Ok(JournalRecord { key: GroupMetadataKey { group: group.clone() }.to_bytes()?, value: None })
}

/// The record that makes a change to a group last that the coordinator assigns to.
pub(crate) fn consumer_record(group: &ByteString, change: &Change) -> Result<JournalRecord, EncodeError> {
    consumer_records::record(group, change)
}

/// Reads a record back; `None` for one that is about something else, such as streams groups in a directory that Kafka
/// has written.
pub(crate) fn read(record: &Record<'_>) -> Result<Option<GroupRecord>, JournalError> {
    let malformed = |error| JournalError::Malformed { offset: record.offset, error };
    let Some(key) = record.key else { return Ok(None) };
    let kind = key.first_chunk::<2>().map(|kind| i16::from_be_bytes(*kind));
    let key = Bytes::copy_from_slice(key);
    let value = record.value.map(Bytes::copy_from_slice);
    match kind {
        Some(OffsetCommitKey::KIND) => read_offset(key, value, record.offset).map(Some).map_err(malformed),
        Some(GroupMetadataKey::KIND) => read_group(key, value).map(Some).map_err(malformed),
        Some(kind) => {
            let read = consumer_records::read(kind, key.clone(), value.clone()).map_err(malformed)?;
            if let Some((group, change)) = read {
                return Ok(Some(GroupRecord::Consumer { group, change }));
            }
            let read = share_records::read(kind, key, value).map_err(malformed)?;
            Ok(read.map(|(group, change)| GroupRecord::Share { group, change }))
        }
        None => Ok(None),
    }
}

fn read_offset(key: Bytes, value: Option<Bytes>, record_offset: Offset) -> Result<GroupRecord, DecodeError> {
    let OffsetCommitKey { group, topic, partition } = OffsetCommitKey::from_bytes(key)?;
    let committed = match value {
        None => None,
        Some(value) => {
            let value = OffsetCommitValue::from_bytes(value)?;
            Some(CommittedOffset {
                offset: Offset(value.offset),
                leader_epoch: LeaderEpoch(value.leader_epoch),
                metadata: value.metadata,
                commit_timestamp_ms: value.commit_timestamp,
                expire_timestamp_ms: (value.expire_timestamp >= 0).then_some(value.expire_timestamp),
                topic_id: value.topic_id,
                record_offset,
            })
        }
    };
    Ok(GroupRecord::Offset { group, topic, partition, committed })
}

fn read_group(key: Bytes, value: Option<Bytes>) -> Result<GroupRecord, DecodeError> {
    let GroupMetadataKey { group } = GroupMetadataKey::from_bytes(key)?;
    let metadata = match value {
        None => None,
        Some(value) => {
            let value = GroupMetadataValue::from_bytes(value)?;
            let member = |member: MemberMetadata| StoredMember {
                id: member.member_id,
                instance_id: member.group_instance_id,
                client_id: member.client_id,
                client_host: member.client_host,
                rebalance_timeout_ms: member.rebalance_timeout,
                session_timeout_ms: member.session_timeout,
                subscription: member.subscription,
                assignment: member.assignment,
            };
            Some(GroupMetadata {
                group: group.clone(),
                protocol_type: value.protocol_type,
                generation: value.generation,
                protocol: value.protocol,
                leader: value.leader,
                state_since_ms: value.current_state_timestamp,
                members: value.members.into_iter().map(member).collect(),
            })
        }
    };
    Ok(GroupRecord::Group { group, metadata })
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_protocol::record::{BatchBuilder, RecordBatch};
    use thalweg_protocol::{Compression, Compressor, Scratch, Uuid};

    fn back(record: &JournalRecord) -> Option<GroupRecord> {
        let mut builder = BatchBuilder::new(Compression::None, None, 0);
        builder.append(5, Some(&record.key), record.value.as_deref(), []).expect("small");
        let batch: RecordBatch = builder.finish(&mut Compressor::new(), None).at(Offset(42), LeaderEpoch(0));
        let mut scratch = Scratch::new(1 << 20);
        let mut records = batch.records(&mut scratch).expect("not compressed");
        read(&records.next().expect("one record").expect("sound")).expect("well formed")
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let committed = CommittedOffset {
            offset: Offset(7),
            leader_epoch: LeaderEpoch(-1),
            metadata: "m".into(),
            commit_timestamp_ms: 1_000,
            expire_timestamp_ms: None,
            topic_id: Uuid::ZERO,
            record_offset: Offset(42),
        };
        for (offset, version) in [
            (committed.clone(), 3),
            (CommittedOffset { topic_id: Uuid(*b"0123456789abcdef"), ..committed.clone() }, 4),
            (CommittedOffset { expire_timestamp_ms: Some(2_000), ..committed }, 1),
        ] {
            let record = offset_record(&"g".into(), &"t".into(), 3, Some(&offset)).expect("small");
            let value = record.value.as_ref().expect("not a tombstone");
            assert_eq!(value[..2], [0, version], "the version of the value");
            assert_eq!(record.key[..2], [0, 1], "the kind of the key");
            let expected = GroupRecord::Offset {
                group: "g".into(),
                topic: "t".into(),
                partition: 3,
                committed: Some(offset),
            };
            assert_eq!(back(&record), Some(expected));
        }
        let tombstone = offset_record(&"g".into(), &"t".into(), 3, None).expect("small");
        assert!(matches!(back(&tombstone), Some(GroupRecord::Offset { committed: None, .. })));

        let metadata = GroupMetadata {
            group: "g".into(),
            protocol_type: "consumer".into(),
            generation: 4,
            protocol: Some("range".into()),
            leader: Some("a".into()),
            state_since_ms: 9,
            members: vec![StoredMember {
                id: "a".into(),
                instance_id: Some("i".into()),
                client_id: "c".into(),
                client_host: "/127.0.0.1".into(),
                rebalance_timeout_ms: 60_000,
                session_timeout_ms: 45_000,
                subscription: Bytes::from_static(b"s"),
                assignment: Bytes::from_static(b"x"),
            }],
        };
        let record = group_record(&metadata).expect("small");
        assert_eq!(back(&record), Some(GroupRecord::Group { group: "g".into(), metadata: Some(metadata) }));
        let tombstone = group_tombstone(&"g".into()).expect("small");
        assert_eq!(back(&tombstone), Some(GroupRecord::Group { group: "g".into(), metadata: None }));
    }

    #[test]
    fn records_about_something_else_are_left_alone() {
        let foreign = JournalRecord { key: Bytes::from_static(&[0, 17, 0, 1, b'g']), value: None };
        assert_eq!(back(&foreign), None);
    }
}
