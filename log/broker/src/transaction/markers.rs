//! Seeing a decided transaction through: markers to every partition, then COMPLETE.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use thalweg_protocol::{ErrorCode, LeaderEpoch, TopicPartition};
use thalweg_storage::{MarkerAppend, TransactionResult};
use tokio::time::sleep;

use super::coordinator::TransactionCoordinator;
use super::shard::{Prepared, TransactionShard};
use super::state::{Outcome, Transaction, TransactionVersion};
use crate::coordinator::Shard;
use crate::topics::CONSUMER_OFFSETS;

/// The pauses between two attempts to write what could not be written: the first, and the longest. There is no last
/// attempt: what has been decided must come to its end, and is taken up again after a restart.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Why a marker need not be written again.
pub(super) enum Written {
    /// It is committed, or its partition is gone.
    Yes,
    /// A newer coordinator has taken over and sees to it.
    Fenced,
}

impl TransactionCoordinator {
    /// Writes the markers of a transaction once its end is decided for good, waits until they are committed, and
    /// completes it. The markers follow from the record that prepared it: after a crash they are written
    /// again.
    pub(super) async fn see_through(self: Arc<Self>, shard: Arc<TransactionShard>, prepared: Prepared) {
        if shard.journal().committed(prepared.offset).await.is_err() {
            // Whoever loads the shard next finds the record, or does not.
            return;
        }
        let Some(transaction) = shard.prepared(&prepared) else { return };
        let mut left = transaction.partitions.clone();
        let mut pause = RETRY.0;
        loop {
            left = match self.write_markers(&shard, &transaction, left).await {
                Some(left) => left,
                None => return,
            };
            let outcome = if left.is_empty() { shard.complete(&prepared) } else { Err(ErrorCode::None) };
            if outcome.is_ok() {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY.1);
        }
    }

    /// Returns the partitions whose markers could not be written; `None` when a newer coordinator has taken
    /// over.
    async fn write_markers(
        &self,
        shard: &TransactionShard,
        transaction: &Transaction,
        partitions: BTreeSet<TopicPartition>,
    ) -> Option<BTreeSet<TopicPartition>> {
        let marker = MarkerAppend {
            producer_id: transaction.producer.id,
            producer_epoch: transaction.producer.epoch,
            result: match transaction.outcome() {
                Outcome::Commit => TransactionResult::Commit,
                Outcome::Abort => TransactionResult::Abort,
            },
            coordinator_epoch: shard.journal().epoch().0,
            epoch_is_bumped: transaction.version == TransactionVersion::EpochBump,
            leader_epoch: LeaderEpoch::UNKNOWN,
        };
        // Each future appends when it is first polled, so that all markers are in one round of syncs.
        let writes = partitions.iter().map(|partition| self.write_marker(partition, marker));
        let outcomes = join_all(writes).await;
        let mut left = BTreeSet::new();
        for (partition, outcome) in partitions.into_iter().zip(outcomes) {
            match outcome {
                Ok(Written::Yes) => {}
                Ok(Written::Fenced) => return None,
                Err(error) => {
                    tracing::warn!(%partition, error = error.name(), "a transaction's marker is tried again");
                    left.insert(partition);
                }
            }
        }
        Some(left)
    }

    pub(super) async fn write_marker(
        &self,
        partition: &TopicPartition,
        marker: MarkerAppend,
    ) -> Result<Written, ErrorCode> {
        match self.append_marker(partition, marker).await {
            Ok(()) => Ok(Written::Yes),
            // The topic has been deleted.
            Err(ErrorCode::UnknownTopicOrPartition) => Ok(Written::Yes),
            // Only a later end of the same producer's transactions has a newer epoch there: this one is in the log.
            Err(ErrorCode::InvalidProducerEpoch) => Ok(Written::Yes),
            Err(ErrorCode::TransactionCoordinatorFenced) => Ok(Written::Fenced),
            Err(error) => Err(error),
        }
    }

    /// Ends a producer's transaction in `partition`, and waits until that is committed.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED; those of storage
    /// and of the group coordinator.
    pub(crate) async fn append_marker(
        &self,
        partition: &TopicPartition,
        marker: MarkerAppend,
    ) -> Result<(), ErrorCode> {
        if partition.topic == CONSUMER_OFFSETS {
            return self.groups.write_marker(partition.partition, marker).await;
        }
        let leader = self.setting.partitions.leader(partition)?;
        let appended = leader.append_marker(marker).map_err(|refusal| refusal.code)?;
        leader.committed(appended.last_offset).await
    }
}
