//! Bringing partitions in line with what `__transaction_state` says, once, before a broker serves.
//!
//! Partitions are added to transactions without waiting until that is committed (see
//! [`TransactionCoordinator::add_partitions`]). After a power cut a partition may therefore hold data of a
//! transaction that the log of transactions knows nothing of, or not with this partition. Such a transaction can
//! only be aborted, and its producer fenced: it may believe that the data is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::{ErrorCode, LeaderEpoch, ProducerEpoch, ProducerId, TopicPartition};
use thalweg_storage::{MarkerAppend, TransactionResult};

use super::coordinator::TransactionCoordinator;
use super::shard::{Step, TransactionShard};
use super::state::{Decision, Outcome, Producer, Transaction};
use crate::coordinator::{Now, Shard};
use crate::topics::TRANSACTION_STATE;

/// The open transactions of the partitions of this node, by producer id: its newest epoch, and where.
type Open = BTreeMap<ProducerId, (ProducerEpoch, BTreeSet<TopicPartition>)>;

impl TransactionCoordinator {
    /// Aborts every open transaction of this node's partitions that the log of transactions does not know.
    pub(crate) async fn reconcile(self: &Arc<Self>) {
        let shards = self.shards.loaded();
        let state = self.controller.state();
        let Some(topic) = state.topic(TRANSACTION_STATE) else { return };
        if shards.len() < topic.partitions.len() {
            // Whoever else coordinates, or whatever cannot be read, may know of them.
            return;
        }
        for (producer, (epoch, partitions)) in self.open_transactions() {
            let known = shards.iter().find_map(|shard| Some((shard, shard.id_of(producer)?)));
            let outcome = match known {
                Some((shard, id)) => self.reclaim(shard, &id, &partitions).await,
                None => self.abort_unknown(&shards, Producer { id: producer, epoch }, &partitions).await,
            };
            if let Err(error) = outcome {
                tracing::error!(%producer, ?partitions, error = error.name(),
                    "cannot abort a transaction that is not known to its coordinator");
            }
        }
    }

    fn open_transactions(&self) -> Open {
        let mut open = Open::new();
        for topic in self.controller.state().topics() {
            for index in 0..topic.partitions.len() {
                let partition = TopicPartition::new(topic.name.clone(), index as i32);
                let Ok(leader) = self.setting.partitions.leader(&partition) else { continue };
                for (producer, epoch) in leader.log().open_transactions() {
                    let (newest, partitions) =
                        open.entry(producer).or_insert((ProducerEpoch::NONE, BTreeSet::new()));
                    *newest = epoch.max(*newest);
                    partitions.insert(partition.clone());
                }
            }
        }
        open
    }

    async fn reclaim(
        self: &Arc<Self>,
        shard: &Arc<TransactionShard>,
        id: &ByteString,
        partitions: &BTreeSet<TopicPartition>,
    ) -> Result<(), ErrorCode> {
        let reclaim = |current: Option<&Transaction>, fresh, now| {
            Ok(current.map_or(Decision::Answer(()), |current| reclaim(current, partitions, fresh, now)))
        };
        let mut step = shard.decide(id, None, reclaim)?;
        if matches!(step, Step::NeedsProducerId) {
            let fresh = self.ids.next().await?;
            step = shard.decide(id, Some(fresh), reclaim)?;
        }
        if let Step::EndFirst(prepared) = step {
            tracing::warn!(%id, ?partitions, "aborting a transaction whose beginning was lost");
            self.setting.spawn(Arc::clone(self).see_through(Arc::clone(shard), prepared));
        }
        Ok(())
    }

    async fn abort_unknown(
        &self,
        shards: &[Arc<TransactionShard>],
        producer: Producer,
        partitions: &BTreeSet<TopicPartition>,
    ) -> Result<(), ErrorCode> {
        tracing::warn!(producer = %producer.id, ?partitions, "aborting a transaction that nobody knows of");
        let epochs = shards.iter().map(|shard| shard.journal().epoch().0);
        let marker = MarkerAppend {
            producer_id: producer.id,
            producer_epoch: ProducerEpoch(producer.epoch.0.saturating_add(1)),
            result: TransactionResult::Abort,
            coordinator_epoch: epochs.max().unwrap_or(0),
            epoch_is_bumped: false,
            leader_epoch: LeaderEpoch::UNKNOWN,
        };
        for partition in partitions {
            self.write_marker(partition, marker).await?;
        }
        Ok(())
    }
}

/// Decides about a transaction of which `partitions` hold open data. A prepared one names them all: they were added
/// before it was prepared, and the journal loses its end first.
fn reclaim(
    current: &Transaction,
    partitions: &BTreeSet<TopicPartition>,
    fresh: Option<ProducerId>,
    now: Now,
) -> Decision<()> {
    if partitions.is_subset(&current.partitions) || current.state.is_prepared() {
        return Decision::Answer(());
    }
    let Some(mut next) = current.prepare(Outcome::Abort, true, fresh, now) else {
        return Decision::NeedsProducerId;
    };
    next.last_epoch = ProducerEpoch::NONE;
    next.partitions.extend(partitions.iter().cloned());
    Decision::EndFirst { next }
}
