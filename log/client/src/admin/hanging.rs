//! Finding transactions that hang: open in a partition, and not known to any coordinator (KIP-664).

use std::collections::{BTreeMap, HashMap};

use bytestring::ByteString;
use thalweg_protocol::{ErrorCode, ProducerId, TopicPartition};

use super::Admin;
use super::transactions::{ProducerState, TransactionDescription, TransactionFilter};
use crate::error::Result;

impl Admin {
    /// The transactions in these partitions that hang: they are open there, nothing has been added to them since
    /// `before_ms`, in ms since 1970, and their coordinators do not know of them. Pass what is longer ago than a transaction
    /// may take (brokers' `transaction.max.timeout.ms`, 15 minutes by default): a younger one may just be on its way.
    /// Each partition has a result of its own.
    ///
    /// # Errors
    /// When not all coordinators can be asked: whatever is missing would seem to hang.
    pub async fn hanging_transactions(
        &self,
        partitions: &[TopicPartition],
        before_ms: i64,
    ) -> Result<BTreeMap<TopicPartition, Result<Vec<ProducerState>>>> {
        // In this order: what is known afterwards has not begun meanwhile.
        let mut found = self.describe_producers(partitions).await;
        for producers in found.values_mut().flatten() {
            producers.retain(|producer| is_silent(producer, before_ms));
        }
        let mut suspects: Vec<ProducerId> =
            found.values().flatten().flatten().map(|producer| producer.producer_id).collect();
        suspects.sort_unstable();
        suspects.dedup();
        if suspects.is_empty() {
            return Ok(found);
        }
        let known = self.known_transactions(suspects).await?;
        for (partition, producers) in &mut found {
            let Ok(producers) = producers else { continue };
            producers.retain(|producer| !is_known(partition, known.get(&producer.producer_id)));
        }
        Ok(found)
    }

    /// What the coordinators know of the transactions of these producers.
    async fn known_transactions(
        &self,
        producer_ids: Vec<ProducerId>,
    ) -> Result<HashMap<ProducerId, TransactionDescription>> {
        let filter = TransactionFilter { producer_ids, ..TransactionFilter::default() };
        let listed = self.list_transactions(&filter).await?.complete()?;
        let ids: Vec<&str> = listed.iter().map(|listed| &*listed.transactional_id).collect();
        let described: BTreeMap<ByteString, _> = self.describe_transactions(&ids).await;
        let mut known = HashMap::new();
        for (_, description) in described {
            match description {
                Ok(description) => known.insert(description.producer_id, description),
                // It has expired since it was listed.
                Err(error) if error.code() == Some(ErrorCode::TransactionalIdNotFound) => None,
                Err(error) => return Err(error),
            };
        }
        Ok(known)
    }
}

/// Whether the producer has a transaction open, and has been silent since. One whose last batch has no time is not.
fn is_silent(producer: &ProducerState, before_ms: i64) -> bool {
    producer.transaction_start.is_some() && producer.last_timestamp_ms.is_some_and(|last| last < before_ms)
}

/// Whether what its coordinator knows of a producer explains an open transaction in `partition`.
fn is_known(partition: &TopicPartition, known: Option<&TransactionDescription>) -> bool {
    known.is_some_and(|known| known.state.is_open() && known.partitions.contains(partition))
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::{Offset, ProducerEpoch};

    use super::*;
    use crate::admin::TransactionState;

    #[test]
    fn only_what_is_open_and_silent_is_suspected() {
        let open = ProducerState {
            producer_id: ProducerId(1),
            producer_epoch: ProducerEpoch(0),
            last_sequence: Some(3),
            last_timestamp_ms: Some(1_000),
            coordinator_epoch: None,
            transaction_start: Some(Offset(0)),
        };
        for (producer, before_ms, expected) in [
            (open, 1_001, true),
            (open, 1_000, false),
            (ProducerState { transaction_start: None, ..open }, 1_001, false),
            (ProducerState { last_timestamp_ms: None, ..open }, i64::MAX, false),
        ] {
            assert_eq!(is_silent(&producer, before_ms), expected, "{producer:?} {before_ms}");
        }
    }

    #[test]
    fn what_its_coordinator_has_open_in_the_partition_does_not_hang() {
        use TransactionState::{
            CompleteAbort, CompleteCommit, Dead, Empty, Ongoing, PrepareAbort, PrepareCommit,
        };
        let partition = TopicPartition::new("t", 1);
        assert!(!is_known(&partition, None), "nobody knows it");
        for (state, partitions, expected) in [
            (Ongoing, &[0, 1][..], true),
            (PrepareCommit, &[1], true),
            (PrepareAbort, &[1], true),
            (Ongoing, &[0, 2], false),
            (Ongoing, &[], false),
            // It has ended without this partition.
            (CompleteCommit, &[1], false),
            (CompleteAbort, &[], false),
            (Empty, &[], false),
            (Dead, &[1], false),
            // Whatever a newer broker calls it, it may be on its way.
            (TransactionState::Other("PrepareOdd".into()), &[1], true),
        ] {
            let known = TransactionDescription {
                state: state.clone(),
                producer_id: ProducerId(1),
                producer_epoch: ProducerEpoch(0),
                timeout_ms: 60_000,
                started_ms: None,
                partitions: partitions.iter().map(|index| TopicPartition::new("t", *index)).collect(),
            };
            assert_eq!(is_known(&partition, Some(&known)), expected, "{state:?} {partitions:?}");
        }
    }
}
