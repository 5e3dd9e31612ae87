//! The records of `__transaction_state`, in Kafka's format.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::messages::records::{PartitionsSchema, TransactionLogKey, TransactionLogValue};
use thalweg_protocol::record::Record;
use thalweg_protocol::{EncodeError, ProducerEpoch, ProducerId, TopicPartition};

use super::state::{Producer, Transaction, TransactionState, TransactionVersion};
use crate::coordinator::{JournalError, JournalRecord};

/// The version of the value that can say which producer comes next (KIP-890).
const VALUE_VERSION: i16 = 1;

/// The record that keeps the state of a transactional id.
pub(crate) fn transaction_record(
    id: &ByteString,
    transaction: &Transaction,
) -> Result<JournalRecord, EncodeError> {
    let mut by_topic: BTreeMap<&ByteString, Vec<i32>> = BTreeMap::new();
    for TopicPartition { topic, partition } in &transaction.partitions {
        by_topic.entry(topic).or_default().push(*partition);
    }
    let partitions = by_topic
        .into_iter()
        .map(|(topic, partition_ids)| PartitionsSchema { topic: topic.clone(), partition_ids })
        .collect();
    let value = TransactionLogValue {
        producer_id: transaction.producer.id.0,
        previous_producer_id: transaction.previous_producer_id.0,
        next_producer_id: transaction.next_producer_id.0,
        producer_epoch: transaction.producer.epoch.0,
        transaction_timeout_ms: transaction.timeout_ms,
        transaction_status: transaction.state.id(),
        // Kafka writes null for a transactional id that has not begun a transaction.
        transaction_partitions: (transaction.state != TransactionState::Empty).then_some(partitions),
        transaction_last_update_timestamp_ms: transaction.last_update_ms,
        transaction_start_timestamp_ms: transaction.start_ms,
        client_transaction_version: transaction.version.id(),
        ..Default::default()
    };
    let key = TransactionLogKey { transactional_id: id.clone() };
    Ok(JournalRecord { key: key.to_bytes()?, value: Some(value.to_bytes(VALUE_VERSION)?) })
}

/// The record that ends a transactional id.
pub(crate) fn tombstone(id: &ByteString) -> Result<JournalRecord, EncodeError> {
    let key = TransactionLogKey { transactional_id: id.clone() };
    Ok(JournalRecord { key: key.to_bytes()?, value: None })
}

/// Reads a record back: the transactional id, and its state unless it ends there. `None` for a record about
/// something else.
pub(crate) fn read(record: &Record<'_>) -> Result<Option<(ByteString, Option<Transaction>)>, JournalError> {
    let malformed = |error| JournalError::Malformed { offset: record.offset, error };
    let Some(key) = record.key else { return Ok(None) };
    if key.first_chunk::<2>().map(|kind| i16::from_be_bytes(*kind)) != Some(TransactionLogKey::KIND) {
        return Ok(None);
    }
    let key = TransactionLogKey::from_bytes(Bytes::copy_from_slice(key)).map_err(malformed)?;
    let Some(value) = record.value else { return Ok(Some((key.transactional_id, None))) };
    let value = TransactionLogValue::from_bytes(Bytes::copy_from_slice(value)).map_err(malformed)?;
    let state = TransactionState::from_id(value.transaction_status).ok_or(JournalError::Unknown {
        offset: record.offset,
        what: "transaction state",
        value: i64::from(value.transaction_status),
    })?;
    let mut partitions = BTreeSet::new();
    for PartitionsSchema { topic, partition_ids } in value.transaction_partitions.unwrap_or_default() {
        partitions
            .extend(partition_ids.into_iter().map(|partition| TopicPartition::new(topic.clone(), partition)));
    }
    let transaction = Transaction {
        producer: Producer { id: ProducerId(value.producer_id), epoch: ProducerEpoch(value.producer_epoch) },
        previous_producer_id: ProducerId(value.previous_producer_id),
        next_producer_id: ProducerId(value.next_producer_id),
        last_epoch: ProducerEpoch::NONE,
        timeout_ms: value.transaction_timeout_ms,
        state,
        partitions,
        start_ms: value.transaction_start_timestamp_ms,
        last_update_ms: value.transaction_last_update_timestamp_ms,
        version: TransactionVersion::from_id(value.client_transaction_version),
        deadline: None,
    };
    Ok(Some((key.transactional_id, Some(transaction))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::Now;
    use thalweg_protocol::record::BatchBuilder;
    use thalweg_protocol::{Compression, Compressor, Scratch};

    fn back(record: &JournalRecord) -> Option<(ByteString, Option<Transaction>)> {
        let mut builder = BatchBuilder::new(Compression::None, None, 0);
        builder.append(5, Some(&record.key), record.value.as_deref(), []).expect("small");
        let batch = builder.finish(&mut Compressor::new(), None);
        let mut scratch = Scratch::new(1 << 20);
        let mut records = batch.records(&mut scratch).expect("not compressed");
        read(&records.next().expect("one record").expect("sound")).expect("well formed")
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let now = Now { monotonic_ms: 7, wall_ms: 1_000 };
        let mut transaction = Transaction::new(ProducerId(5), 60_000, now);
        let id = ByteString::from_static("tx");
        for state in [0, 1, 2, 3, 4, 5].map(|id| TransactionState::from_id(id).expect("known")) {
            transaction.state = state;
            let record = transaction_record(&id, &transaction).expect("small");
            assert_eq!(back(&record), Some((id.clone(), Some(transaction.clone()))));
            transaction.partitions.insert(TopicPartition::new("t", 3));
            transaction.partitions.insert(TopicPartition::new("t", 1));
            transaction.partitions.insert(TopicPartition::new("u", 0));
            transaction.next_producer_id = ProducerId(9);
            transaction.previous_producer_id = ProducerId(4);
            transaction.version = TransactionVersion::EpochBump;
        }
        assert_eq!(back(&tombstone(&id).expect("small")), Some((id, None)));
    }
}
