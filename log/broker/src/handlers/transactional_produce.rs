//! Transactional batches are appended only to partitions that belong to the producer's transaction (KIP-890).
//!
//! Where a producer's transaction is not open on a partition yet, its coordinator is asked before the append:
//! it adds the partition for clients that leave that to the broker, and verifies it for the others.

use std::collections::HashMap;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use thalweg_protocol::record::BatchHeader;
use thalweg_protocol::{ErrorCode, Records, TopicPartition};
use thalweg_storage::VerificationGuard;

use super::RequestContext;
use crate::error::Refusal;
use crate::partition::Partition;
use crate::transaction::{Producer, TransactionCoordinator, TransactionShard, TransactionVersion};

/// The version from which the broker adds partitions to transactions by itself (KIP-890, part 2).
const FIRST_VERSION_THAT_ADDS: i16 = 12;

/// The version from which producers know TRANSACTION_ABORTABLE.
const FIRST_VERSION_WITH_ABORTABLE: i16 = 11;

/// How often a verification is begun anew because the end of the transaction before came in between. There is
/// one such end, so the second time is the last unless the transaction itself is aborted again and again.
const ATTEMPTS: usize = 3;

/// The partitions whose transaction has to be verified before a batch is appended.
pub(super) struct Unverified {
    partitions: Vec<UnverifiedPartition>,
}

struct UnverifiedPartition {
    leader: Arc<Partition>,
    producer: Producer,
    guard: VerificationGuard,
}

impl UnverifiedPartition {
    /// Takes a new guard; says whether the old one has been void. Where the transaction has been opened by
    /// another request meanwhile the guard does not matter any more.
    fn renew(&mut self) -> bool {
        let guard = self.leader.begin_verification(self.producer.id, self.producer.epoch);
        let guard = guard.unwrap_or(self.guard);
        std::mem::replace(&mut self.guard, guard) != guard
    }
}

/// Which transaction the request is about, and the outcome for each partition that had to be verified.
pub(super) struct Verified {
    /// Whether the request names a transactional id.
    is_transactional: bool,
    outcomes: HashMap<TopicPartition, Result<VerificationGuard, Refusal>>,
    /// Whether the request is of a version for which the broker adds partitions.
    adds: bool,
}

impl Verified {
    /// Nothing had to be verified.
    pub(super) fn nothing(request: &ProduceRequest) -> Self {
        let is_transactional = request.transactional_id.is_some();
        Self { is_transactional, outcomes: HashMap::new(), adds: false }
    }

    /// Checks that a transactional batch comes under a transactional id, by which it is known who may write it.
    ///
    /// # Errors
    /// TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    pub(super) fn check(&self, batch: &BatchHeader) -> Result<(), Refusal> {
        if batch.is_transactional() && !self.is_transactional {
            let message = "the batch is transactional, the request names no transactional id";
            return Err(Refusal::new(ErrorCode::TransactionalIdAuthorizationFailed, message));
        }
        Ok(())
    }

    /// The guard for an append to `partition`; `None` where nothing had to be verified.
    ///
    /// # Errors
    /// Why the partition does not belong to the transaction.
    pub(super) fn guard(&self, partition: &Partition) -> Result<Option<VerificationGuard>, Refusal> {
        self.outcomes.get(partition.id()).cloned().transpose()
    }

    /// What to answer when the log refuses a batch with a guard. The guard is void when a marker has been written
    /// since it was given: that of the transaction before, which is written only after the producer was told that
    /// it is committed. The producer asks again and gets another guard, unless its own transaction has ended.
    pub(super) fn append_refused(&self, refusal: Refusal) -> Refusal {
        if refusal.code != ErrorCode::InvalidTxnState {
            return refusal;
        }
        let code = if self.adds { ErrorCode::ConcurrentTransactions } else { ErrorCode::NotEnoughReplicas };
        Refusal::new(code, "a marker was written to the partition while the transaction was verified")
    }
}

/// The transactional batches of `request` whose producer has no open transaction on their partition; `None`
/// when there are none, which is so for all but the first batch of a transaction on each partition.
pub(super) fn unverified(context: &RequestContext, request: &ProduceRequest) -> Option<Unverified> {
    let partitions: Vec<_> = request
        .topic_data
        .iter()
        .flat_map(|topic| topic.partition_data.iter().map(move |partition| (topic, partition)))
        .filter_map(|(topic, partition)| unverified_partition(context, topic, partition))
        .collect();
    (!partitions.is_empty()).then_some(Unverified { partitions })
}

fn unverified_partition(
    context: &RequestContext,
    topic: &TopicProduceData,
    data: &PartitionProduceData,
) -> Option<UnverifiedPartition> {
    let header = match data.records.as_ref()? {
        Records::Bytes(bytes) => BatchHeader::parse(bytes).ok()?,
        Records::Slice(slice) => BatchHeader::parse(&slice.read().ok()?).ok()?,
    };
    if !header.is_transactional() {
        return None;
    }
    let held = context.named_topic(&topic.name, topic.topic_id).ok()?;
    let leader = held.partition(data.index)?;
    let producer = Producer { id: header.producer_id, epoch: header.producer_epoch };
    let guard = leader.begin_verification(producer.id, producer.epoch)?;
    Some(UnverifiedPartition { leader: Arc::clone(leader), producer, guard })
}

/// Asks the transaction's coordinator about the partitions in `unverified`.
///
/// The coordinator lets a transaction begin only when the markers of the one before are written, and those void
/// the guards: they cannot be told from an end of this transaction. So the guards are renewed after the answer,
/// and where one had been void the coordinator is asked again, under the new one.
pub(super) async fn verify(
    context: &RequestContext,
    transactional_id: ByteString,
    mut unverified: Unverified,
) -> Verified {
    let mut outcomes = Vec::new();
    for _ in 0..ATTEMPTS {
        outcomes = ask_coordinator(context, &transactional_id, &unverified.partitions).await;
        let renewed = unverified.partitions.iter_mut().map(UnverifiedPartition::renew);
        if renewed.filter(|&was_void| was_void).count() == 0 {
            break;
        }
    }
    let partitions = unverified.partitions.into_iter().zip(outcomes);
    let outcomes = partitions.map(|(partition, outcome)| {
        let outcome = outcome.map(|()| partition.guard).map_err(|code| refusal(code, context.version));
        (partition.leader.id().clone(), outcome)
    });
    let adds = context.version >= FIRST_VERSION_THAT_ADDS;
    Verified { is_transactional: true, outcomes: outcomes.collect(), adds }
}

/// What the coordinator says about each of the partitions.
async fn ask_coordinator(
    context: &RequestContext,
    transactional_id: &ByteString,
    partitions: &[UnverifiedPartition],
) -> Vec<Result<(), ErrorCode>> {
    let Some(UnverifiedPartition { producer, .. }) = partitions.first() else { return Vec::new() };
    let producer = *producer;
    let transactions = &context.core.transactions;
    let asked: Result<Option<Arc<TransactionShard>>, ErrorCode> =
        if context.version >= FIRST_VERSION_THAT_ADDS {
            let ids = partitions.iter().map(|partition| partition.leader.id().clone()).collect();
            let (id, version) = (super::own(transactional_id), TransactionVersion::EpochBump);
            transactions.add_partitions(&id, producer, &ids, version).await.map(|()| None)
        } else {
            transactions.shard(transactional_id).await.map(Some)
        };
    let outcomes = partitions.iter().map(|partition| match &asked {
        _ if partition.producer != producer => Err(ErrorCode::InvalidProducerIdMapping),
        Ok(Some(shard)) => {
            TransactionCoordinator::verify(shard, transactional_id, producer, partition.leader.id())
        }
        Ok(None) => Ok(()),
        Err(code) => Err(*code),
    });
    outcomes.collect()
}

/// How a coordinator's refusal reads in a Produce response: errors that producers only know from coordinators
/// become ones that they retry or give up on in the same way.
fn refusal(code: ErrorCode, version: i16) -> Refusal {
    let translated = match code {
        ErrorCode::CoordinatorLoadInProgress
        | ErrorCode::CoordinatorNotAvailable
        | ErrorCode::NotCoordinator => ErrorCode::NotEnoughReplicas,
        ErrorCode::ConcurrentTransactions if version < FIRST_VERSION_THAT_ADDS => {
            ErrorCode::NotEnoughReplicas
        }
        ErrorCode::TransactionAbortable if version < FIRST_VERSION_WITH_ABORTABLE => {
            ErrorCode::InvalidTxnState
        }
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        other => other,
    };
    Refusal::new(translated, format!("the transaction coordinator answered {}", code.name()))
}
