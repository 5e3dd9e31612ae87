//! The records of `__share_group_state`, in Kafka's format: snapshots of a share-partition, and what has changed since.

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::messages::records::{
    ShareSnapshotKey, ShareSnapshotValue, ShareStateBatch, ShareUpdateBatch, ShareUpdateKey, ShareUpdateValue,
};
use thalweg_protocol::record::Record;
use thalweg_protocol::{EncodeError, LeaderEpoch, Offset, Uuid};

use super::partition::{StoredBatch, StoredState};
use crate::coordinator::{JournalError, JournalRecord};

/// The version of all values: there is one of each.
const VERSION: i16 = 0;

/// Whose share-partition it is, and of which partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ShareKey {
    pub(crate) group: ByteString,
    pub(crate) topic_id: Uuid,
    pub(crate) partition: i32,
}

impl ShareKey {
    /// What decides which partition of the topic has it.
    pub(crate) fn coordinator_key(&self) -> String {
        format!("{}:{}:{}", self.group, self.topic_id, self.partition)
    }
}

/// What is written of a share-partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateRecord {
    /// Counts the snapshots; an update belongs to the one before it.
    pub(crate) snapshot_epoch: i32,
    /// Counts how often the start offset was set by an operator.
    pub(crate) state_epoch: i32,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) start: Offset,
    /// How many records after the start offset the group is done with.
    pub(crate) done_count: u64,
    pub(crate) batches: Vec<StoredBatch>,
}

/// A record as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShareRecord {
    Snapshot(ShareKey, StateRecord),
    Update(ShareKey, StateRecord),
    /// The end of a share-partition.
    Gone(ShareKey),
}

/// The record that says how a share-partition stands; since when it is there and since when it stands so, in wall-clock ms.
pub(crate) fn snapshot(
    key: &ShareKey,
    state: &StateRecord,
    created_ms: i64,
    written_ms: i64,
) -> Result<JournalRecord, EncodeError> {
    let batch = |batch: &StoredBatch| ShareStateBatch {
        first_offset: batch.first.0,
        last_offset: batch.last.0,
        delivery_state: batch.state.number(),
        delivery_count: batch.deliveries,
    };
    let value = ShareSnapshotValue {
        snapshot_epoch: state.snapshot_epoch,
        state_epoch: state.state_epoch,
        leader_epoch: state.leader_epoch.0,
        start_offset: state.start.0,
        delivery_complete_count: i32::try_from(state.done_count).unwrap_or(i32::MAX),
        create_timestamp: created_ms,
        write_timestamp: written_ms,
        state_batches: state.batches.iter().map(batch).collect(),
    };
    Ok(JournalRecord { key: snapshot_key(key).to_bytes()?, value: Some(value.to_bytes(VERSION)?) })
}

/// The record that ends a share-partition.
pub(crate) fn tombstone(key: &ShareKey) -> Result<JournalRecord, EncodeError> {
    Ok(JournalRecord { key: snapshot_key(key).to_bytes()?, value: None })
}

/// The record that says what has changed since the last snapshot.
pub(crate) fn update(key: &ShareKey, state: &StateRecord) -> Result<JournalRecord, EncodeError> {
    let ShareKey { group, topic_id, partition } = key.clone();
    let key = ShareUpdateKey { group_id: group, topic_id, partition };
    let batch = |batch: &StoredBatch| ShareUpdateBatch {
        first_offset: batch.first.0,
        last_offset: batch.last.0,
        delivery_state: batch.state.number(),
        delivery_count: batch.deliveries,
    };
    let value = ShareUpdateValue {
        snapshot_epoch: state.snapshot_epoch,
        leader_epoch: state.leader_epoch.0,
        start_offset: state.start.0,
        delivery_complete_count: i32::try_from(state.done_count).unwrap_or(i32::MAX),
        state_batches: state.batches.iter().map(batch).collect(),
    };
    Ok(JournalRecord { key: key.to_bytes()?, value: Some(value.to_bytes(VERSION)?) })
}

fn snapshot_key(key: &ShareKey) -> ShareSnapshotKey {
    let ShareKey { group, topic_id, partition } = key.clone();
    ShareSnapshotKey { group_id: group, topic_id, partition }
}

/// Reads a record back; `None` for one that is about something else.
pub(crate) fn read(record: &Record<'_>) -> Result<Option<ShareRecord>, JournalError> {
    let offset = record.offset;
    let malformed = |error| JournalError::Malformed { offset, error };
    let Some(key) = record.key else { return Ok(None) };
    let kind = key.first_chunk::<2>().map(|kind| i16::from_be_bytes(*kind));
    let key = Bytes::copy_from_slice(key);
    let value = record.value.map(Bytes::copy_from_slice);
    match kind {
        Some(ShareSnapshotKey::KIND) => {
            let ShareSnapshotKey { group_id, topic_id, partition } =
                ShareSnapshotKey::from_bytes(key).map_err(malformed)?;
            let key = ShareKey { group: group_id, topic_id, partition };
            let Some(value) = value else { return Ok(Some(ShareRecord::Gone(key))) };
            let value = ShareSnapshotValue::from_bytes(value).map_err(malformed)?;
            let batches = value.state_batches.iter().map(|batch| {
                let range = (batch.first_offset, batch.last_offset);
                stored(range, batch.delivery_state, batch.delivery_count, offset)
            });
            let state = StateRecord {
                snapshot_epoch: value.snapshot_epoch,
                state_epoch: value.state_epoch,
                leader_epoch: LeaderEpoch(value.leader_epoch),
                start: Offset(value.start_offset),
                done_count: u64::try_from(value.delivery_complete_count).unwrap_or(0),
                batches: batches.collect::<Result<_, _>>()?,
            };
            Ok(Some(ShareRecord::Snapshot(key, state)))
        }
        Some(ShareUpdateKey::KIND) => {
            let ShareUpdateKey { group_id, topic_id, partition } =
                ShareUpdateKey::from_bytes(key).map_err(malformed)?;
            let Some(value) = value else { return Ok(None) };
            let value = ShareUpdateValue::from_bytes(value).map_err(malformed)?;
            let batches = value.state_batches.iter().map(|batch| {
                let range = (batch.first_offset, batch.last_offset);
                stored(range, batch.delivery_state, batch.delivery_count, offset)
            });
            let state = StateRecord {
                snapshot_epoch: value.snapshot_epoch,
                state_epoch: 0,
                leader_epoch: LeaderEpoch(value.leader_epoch),
                start: Offset(value.start_offset),
                done_count: u64::try_from(value.delivery_complete_count).unwrap_or(0),
                batches: batches.collect::<Result<_, _>>()?,
            };
            Ok(Some(ShareRecord::Update(ShareKey { group: group_id, topic_id, partition }, state)))
        }
        _ => Ok(None),
    }
}

fn stored(
    range: (i64, i64),
    state: i8,
    deliveries: i16,
    offset: Offset,
) -> Result<StoredBatch, JournalError> {
    let unknown = JournalError::Unknown { offset, what: "delivery state", value: i64::from(state) };
    let state = StoredState::from_number(state).ok_or(unknown)?;
    Ok(StoredBatch { first: Offset(range.0), last: Offset(range.1), state, deliveries })
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::record::BatchBuilder;
    use thalweg_protocol::{Compression, Compressor, Scratch};

    use super::*;

    fn back(record: &JournalRecord) -> Option<ShareRecord> {
        let mut builder = BatchBuilder::new(Compression::None, None, 0);
        builder.append(5, Some(&record.key), record.value.as_deref(), []).expect("small");
        let batch = builder.finish(&mut Compressor::new(), None);
        let mut scratch = Scratch::new(1 << 20);
        let mut records = batch.records(&mut scratch).expect("not compressed");
        read(&records.next().expect("one record").expect("sound")).expect("well formed")
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let key = ShareKey { group: "g".into(), topic_id: Uuid(*b"0123456789abcdef"), partition: 3 };
        let batch = |first, last, state, deliveries| StoredBatch {
            first: Offset(first),
            last: Offset(last),
            state,
            deliveries,
        };
        let state = StateRecord {
            snapshot_epoch: 2,
            state_epoch: 7,
            leader_epoch: LeaderEpoch(4),
            start: Offset(10),
            done_count: 3,
            batches: vec![
                batch(10, 12, StoredState::Available, 1),
                batch(13, 13, StoredState::Acknowledged, 1),
                batch(14, 15, StoredState::Archived, 5),
            ],
        };
        let written = snapshot(&key, &state, 1, 2).expect("small");
        assert_eq!(
            (written.key[..2].to_vec(), key.coordinator_key()),
            (vec![0, 0], { format!("g:{}:3", key.topic_id) })
        );
        assert_eq!(back(&written), Some(ShareRecord::Snapshot(key.clone(), state.clone())));
        let written = update(&key, &state).expect("small");
        assert_eq!(written.key[..2], [0, 1]);
        let state = StateRecord { state_epoch: 0, ..state };
        assert_eq!(back(&written), Some(ShareRecord::Update(key.clone(), state)));
        assert_eq!(back(&tombstone(&key).expect("small")), Some(ShareRecord::Gone(key)));
        let foreign = JournalRecord { key: Bytes::from_static(&[0, 9]), value: None };
        assert_eq!(back(&foreign), None);
    }
}
