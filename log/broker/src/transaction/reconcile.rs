//! Bringing partitions in line with what `__transaction_state` says, once, before a broker serves.
//!
//! Partitions are added to transactions without waiting until that is committed (see
//! [`TransactionCoordinator::add_partitions`]). After a power cut a partition may therefore hold data of a
//! transaction that the log of transactions knows nothing of, or not with this partition. Such a transaction can
//! only be aborted, and its producer fenced: it may believe that the data is there.
//!
//! The journal loses its end first, so that what it lost is always the newest: the beginning of a transaction, or
//! further partitions of it, and perhaps the completion of the one before.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytestring::ByteString;
use futures::future::try_join_all;
use thalweg_protocol::{ErrorCode, LeaderEpoch, ProducerEpoch, ProducerId, TopicPartition};
use thalweg_storage::{MarkerAppend, TransactionResult};
use tokio::time::{Instant, timeout_at};

use super::coordinator::TransactionCoordinator;
use super::shard::{Step, TransactionShard};
use super::state::{Decision, Outcome, Producer, Transaction, TransactionVersion};
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
        let open = self.open_transactions();
        let known: HashMap<_, _> = match open.is_empty() {
            true => HashMap::new(),
            false => shards
                .iter()
                .flat_map(|shard| {
                    shard.by_producer().into_iter().map(move |(producer, id)| (producer, (shard, id)))
                })
                .collect(),
        };
        let give_up_at = Instant::now() + self.completion_wait;
        for (producer, (epoch, partitions)) in open {
            let producer = Producer { id: producer, epoch };
            let outcome = match known.get(&producer.id) {
                Some((shard, id)) => self.reclaim(shard, id, producer, &partitions).await,
                None => self.abort_unknown(&shards, producer, &partitions, give_up_at).await,
            };
            if let Err(error) = outcome {
                tracing::error!(producer = %producer.id, ?partitions, error = error.name(),
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
        producer: Producer,
        partitions: &BTreeSet<TopicPartition>,
    ) -> Result<(), ErrorCode> {
        let reclaim = |current: Option<&Transaction>, fresh, now| {
            let decide = |current| reclaim(current, producer, partitions, fresh, now);
            Ok(current.map_or(Decision::Answer(()), decide))
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
        give_up_at: Instant,
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
        // Each future appends when it is first polled. What is appended is in order with whatever is served later, and
        // will be committed: on a full disk nobody knows when.
        let writes = try_join_all(partitions.iter().map(|partition| self.write_marker(partition, marker)));
        match timeout_at(give_up_at, writes).await {
            Ok(written) => written.map(|_| ()),
            Err(_) => Ok(()),
        }
    }
}

/// Decides about a transaction of which `partitions` hold open data of `producer`.
fn reclaim(
    current: &Transaction,
    producer: Producer,
    partitions: &BTreeSet<TopicPartition>,
    fresh: Option<ProducerId>,
    now: Now,
) -> Decision<()> {
    let base = if current.state.is_prepared() {
        let is_bumped = current.version == TransactionVersion::EpochBump;
        let is_next = producer.id == current.next_producer_id
            || (is_bumped && producer.id == current.producer.id && producer.epoch >= current.producer.epoch);
        if !is_next {
            // It waits for its markers, which are on their way.
            return Decision::Answer(());
        }
        // The data belongs to the transaction after this one, so this one's markers were committed and its
        // completion is lost.
        current.complete(now)
    } else if partitions.is_subset(&current.partitions) {
        return Decision::Answer(());
    } else {
        current.clone()
    };
    let Some(mut next) = base.prepare(Outcome::Abort, true, fresh, now) else {
        return Decision::NeedsProducerId;
    };
    next.last_epoch = ProducerEpoch::NONE;
    next.version = TransactionVersion::EpochBump;
    next.partitions.extend(partitions.iter().cloned());
    Decision::EndFirst { next }
}
