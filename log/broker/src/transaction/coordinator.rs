//! The transaction coordinator of this node: finds the shard of a transactional id, sees decisions through, and
//! keeps the time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_controller::Controller;
use thalweg_protocol::{ErrorCode, Offset, ProducerEpoch, ProducerId, TopicPartition};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::end::EndTransaction;
use super::init_producer_id::InitProducerId;
use super::partitions::{add_partitions, verify_partition};
use super::producer_ids::ProducerIds;
use super::shard::{Step, TransactionSettings, TransactionShard};
use super::state::{Decision, Producer, Transaction, TransactionVersion};
use crate::config::BrokerConfig;
use crate::coordinator::{Due, Now, Setting, Shard, Shards, Timekeeper};
use crate::group::GroupCoordinator;
use crate::topics::TRANSACTION_STATE;

/// How long a request waits here for the end of the transaction before it. Markers take one round of syncs, so this
/// is almost always enough; a client that is told CONCURRENT_TRANSACTIONS waits longer before it asks again.
const COMPLETION_WAIT: Duration = Duration::from_millis(500);

/// How often transactional ids that have expired are looked for: Kafka's
/// `transaction.remove.expired.transaction.cleanup.interval.ms`.
const EXPIRATION_CHECK: Duration = Duration::from_secs(60 * 60);

/// In how many ms a transaction that should be aborted, and could not be, is looked at again.
const EXPIRE_RETRY_MS: u64 = 1_000;

/// An answer, and the record of the journal that has to be committed before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided<A> {
    pub(crate) answer: A,
    pub(crate) rests_on: Offset,
}

/// The transaction coordinator of this node.
pub(crate) struct TransactionCoordinator {
    pub(super) shards: Shards<TransactionShard>,
    pub(super) groups: Arc<GroupCoordinator>,
    pub(super) setting: Setting,
    pub(super) controller: Controller,
    pub(super) ids: ProducerIds,
    wake: Arc<Notify>,
    max_timeout_ms: i32,
    expiration_ms: i64,
    pub(super) completion_wait: Duration,
}

impl TransactionCoordinator {
    /// A coordinator of the transactional ids whose partitions this node leads.
    pub(crate) fn new(
        config: &BrokerConfig,
        controller: Controller,
        groups: Arc<GroupCoordinator>,
        setting: Setting,
    ) -> Self {
        let wake = Arc::new(Notify::new());
        let settings = TransactionSettings { clocks: setting.clocks.clone(), wake: Arc::clone(&wake) };
        Self {
            shards: Shards::new(TRANSACTION_STATE, Arc::clone(&setting.partitions), settings),
            groups,
            ids: ProducerIds::new(controller.clone(), setting.partitions.node()),
            controller,
            setting,
            wake,
            max_timeout_ms: config.transaction_max_timeout_ms,
            expiration_ms: config.transactional_id_expiration_ms,
            completion_wait: COMPLETION_WAIT,
        }
    }

    /// The same, but waiting this long for the end of the transaction before.
    #[cfg(test)]
    pub(crate) fn waiting_for_completion(self, completion_wait: Duration) -> Self {
        Self { completion_wait, ..self }
    }

    /// The shard that transactional id `id` belongs to, loaded if it was not.
    ///
    /// # Errors
    /// INVALID_REQUEST for the empty id; NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE.
    pub(crate) async fn shard(self: &Arc<Self>, id: &str) -> Result<Arc<TransactionShard>, ErrorCode> {
        if id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        let shard = self.shards.of(id).await?;
        self.see_through_unfinished(&shard);
        Ok(shard)
    }

    /// Loads every shard of this node, and sees the transactions through that were being ended.
    pub(crate) async fn load_all(self: &Arc<Self>) {
        self.shards.load_all().await;
        for shard in self.shards.loaded() {
            self.see_through_unfinished(&shard);
        }
    }

    /// Every shard that no other node has, loaded if it was not.
    ///
    /// # Errors
    /// Those of [`Shards::all`].
    pub(crate) async fn all_shards(self: &Arc<Self>) -> Result<Vec<Arc<TransactionShard>>, ErrorCode> {
        let shards = self.shards.all(&self.controller.state()).await?;
        shards.iter().for_each(|shard| self.see_through_unfinished(shard));
        Ok(shards)
    }

    fn see_through_unfinished(self: &Arc<Self>, shard: &Arc<TransactionShard>) {
        for prepared in shard.take_unfinished() {
            self.setting.spawn(Arc::clone(self).see_through(Arc::clone(shard), prepared));
        }
    }

    /// Decides about `id`, waiting for the end of the transaction before, and fetching a fresh producer id, where that
    /// is needed.
    ///
    /// # Errors
    /// Those of the decision, CONCURRENT_TRANSACTIONS when that end takes too long, and those of the journal.
    pub(super) async fn settle<A>(
        self: &Arc<Self>,
        shard: &Arc<TransactionShard>,
        id: &ByteString,
        decide: impl Fn(Option<&Transaction>, Option<ProducerId>, Now) -> Result<Decision<A>, ErrorCode>,
    ) -> Result<Decided<A>, ErrorCode> {
        let give_up_at = Instant::now() + self.completion_wait;
        let mut fresh = None;
        loop {
            let completion = shard.completion();
            match shard.decide(id, fresh, &decide)? {
                Step::Done { answer, rests_on, prepared } => {
                    if let Some(prepared) = prepared {
                        self.setting.spawn(Arc::clone(self).see_through(Arc::clone(shard), prepared));
                    }
                    return Ok(Decided { answer, rests_on });
                }
                Step::EndFirst(prepared) => {
                    self.setting.spawn(Arc::clone(self).see_through(Arc::clone(shard), prepared));
                }
                Step::Wait => {}
                Step::NeedsProducerId => {
                    fresh = Some(self.ids.next().await?);
                    continue;
                }
            }
            if timeout_at(give_up_at, completion).await.is_err() {
                return Err(ErrorCode::ConcurrentTransactions);
            }
        }
    }

    /// A producer id for an idempotent producer without transactions.
    ///
    /// # Errors
    /// COORDINATOR_NOT_AVAILABLE when there is none to be had.
    pub(crate) async fn idempotent_producer(&self) -> Result<Producer, ErrorCode> {
        Ok(Producer { id: self.ids.next().await?, epoch: ProducerEpoch(0) })
    }

    /// Gives `id` to a producer: fences the one before and ends its transaction.
    ///
    /// # Errors
    /// INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS; those of the journal.
    pub(crate) async fn init_producer_id(
        self: &Arc<Self>,
        shard: &Arc<TransactionShard>,
        id: &ByteString,
        request: InitProducerId,
    ) -> Result<Decided<Producer>, ErrorCode> {
        if request.timeout_ms <= 0 || request.timeout_ms > self.max_timeout_ms {
            return Err(ErrorCode::InvalidTransactionTimeout);
        }
        self.settle(shard, id, |current, fresh, now| request.decide(current, fresh, now)).await
    }

    /// Adds partitions to the transaction of `producer`, opening it if none is open. When this returns, the partitions
    /// may be written to.
    ///
    /// With a single replica of `__transaction_state` that does not wait until the addition is committed, which saves
    /// a commit a round of syncs: whatever a power cut takes away of it, it takes from this node, and
    /// [`reconcile`](Self::reconcile) finds on the next start what was written to partitions in its name. Only the
    /// beginning of a classic transaction is waited for: its epoch is that of the one before, and data of the two
    /// could not be told apart by a marker that is written again.
    ///
    /// # Errors
    /// INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS; those of the journal.
    pub(crate) async fn add_partitions(
        self: &Arc<Self>,
        id: &ByteString,
        producer: Producer,
        partitions: &BTreeSet<TopicPartition>,
        version: TransactionVersion,
    ) -> Result<(), ErrorCode> {
        let shard = self.shard(id).await?;
        let add = |current: Option<&Transaction>, _, now| {
            add_partitions(current, producer, partitions, version, now)
        };
        let decided = self.settle(&shard, id, add).await?;
        if self.has_followers(id) {
            shard.journal().committed(decided.rests_on).await?;
        } else if version == TransactionVersion::Classic
            && let Some(opened_at) = shard.opened_at(id)
        {
            shard.journal().committed(opened_at).await?;
        }
        Ok(())
    }

    fn has_followers(&self, id: &str) -> bool {
        let state = self.controller.state();
        let partition = self.shards.index_of(id).ok().and_then(|at| state.partition(TRANSACTION_STATE, at));
        partition.is_none_or(|partition| partition.replicas.len() > 1)
    }

    /// Whether `partition` belongs to the ongoing transaction of `producer`. Only for a shard that is loaded, which
    /// it is after [`add_partitions`](Self::add_partitions) or [`shard`](Self::shard).
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn verify(
        shard: &TransactionShard,
        id: &str,
        producer: Producer,
        partition: &TopicPartition,
    ) -> Result<(), ErrorCode> {
        shard.look(id, |current| verify_partition(current, producer, partition))
    }

    /// Ends the transaction of a producer. The answer is the producer id and epoch of the next one.
    ///
    /// # Errors
    /// INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS; those of the
    /// journal. Never UNKNOWN_SERVER_ERROR, which clients cannot do anything with.
    pub(crate) async fn end(
        self: &Arc<Self>,
        shard: &Arc<TransactionShard>,
        id: &ByteString,
        request: EndTransaction,
    ) -> Result<Decided<Producer>, ErrorCode> {
        self.settle(shard, id, |current, fresh, now| request.decide(current, fresh, now)).await
    }

    /// Keeps the time until the broker stops: aborts transactions that are open too long, forgets transactional
    /// ids that nobody uses.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut time = Timekeeper::new(&self.setting, &self.wake, EXPIRATION_CHECK);
        let deadline = || self.shards.loaded().iter().filter_map(|shard| shard.next_deadline()).min();
        while let Some(due) = time.wait(deadline).await {
            for shard in self.shards.loaded() {
                self.expire_transactions(&shard).await;
                if due == Due::Check
                    && let Err(error) = shard.forget_expired(self.expiration_ms)
                {
                    tracing::warn!(
                        error = error.name(),
                        "transactional ids that have expired are kept for now"
                    );
                }
            }
        }
    }

    async fn expire_transactions(self: &Arc<Self>, shard: &Arc<TransactionShard>) {
        while let Some(id) = shard.pop_due() {
            if let Err(error) = self.expire(shard, &id).await {
                tracing::warn!(%id, error = error.name(), "a transaction that is open too long cannot be aborted yet");
                shard.look_again_in(&id, EXPIRE_RETRY_MS);
            }
        }
    }

    async fn expire(
        self: &Arc<Self>,
        shard: &Arc<TransactionShard>,
        id: &ByteString,
    ) -> Result<(), ErrorCode> {
        let expire = |current: Option<&Transaction>, fresh, now| {
            let decision = current.and_then(|current| current.expire(fresh, now));
            Ok(decision.unwrap_or(Decision::Answer(())))
        };
        let mut step = shard.decide(id, None, expire)?;
        if matches!(step, Step::NeedsProducerId) {
            let fresh = self.ids.next().await?;
            step = shard.decide(id, Some(fresh), expire)?;
        }
        if let Step::EndFirst(prepared) = step {
            tracing::info!(%id, "aborting a transaction that was open for longer than its timeout");
            self.setting.spawn(Arc::clone(self).see_through(Arc::clone(shard), prepared));
        }
        Ok(())
    }
}
