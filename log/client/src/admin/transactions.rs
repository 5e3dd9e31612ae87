//! Transactions as their coordinators and the partitions see them, and ending those that hang (KIP-664).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::describe_producers::{DescribeProducersRequest, TopicRequest};
use thalweg_protocol::messages::describe_transactions::{self, DescribeTransactionsRequest};
use thalweg_protocol::messages::init_producer_id::InitProducerIdRequest;
use thalweg_protocol::messages::list_transactions::ListTransactionsRequest;
use thalweg_protocol::messages::write_txn_markers::{
    WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest,
};
use thalweg_protocol::{Offset, ProducerEpoch, ProducerId, TopicPartition};

use super::named::named;
use super::{Admin, Listing, checked, keyed, version_from};
use crate::asking::{Answers, ask_brokers};
use crate::by_coordinator::ask_coordinators;
use crate::by_leader::{Asked, ask_leaders_each, by_topic};
use crate::coordinator::CoordinatorOf;
use crate::error::{Error, Result};
use crate::node::Node;

/// The first versions of ListTransactions that filter by duration (KIP-994) and by pattern (KIP-1152).
const BY_DURATION: i16 = 1;
const BY_PATTERN: i16 = 2;
/// How long a transaction of a fenced id could take, in ms, before a real producer says how long: as its default is.
const FENCED_TIMEOUT_MS: i32 = 60_000;

named! {
    /// Where a transaction is.
    TransactionState {
        /// None has begun under this id.
        Empty = "Empty",
        /// Records and offsets are being added.
        Ongoing = "Ongoing",
        /// It is committed; markers are being written.
        PrepareCommit = "PrepareCommit",
        /// It is aborted; markers are being written.
        PrepareAbort = "PrepareAbort",
        /// It is committed, and all markers are written.
        CompleteCommit = "CompleteCommit",
        /// It is aborted, and all markers are written.
        CompleteAbort = "CompleteAbort",
        /// A newer producer is taking over.
        PrepareEpochFence = "PrepareEpochFence",
        /// The id has expired.
        Dead = "Dead",
    }
}

impl TransactionState {
    /// Whether a transaction has begun and not come to its end.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self, Self::Empty | Self::CompleteCommit | Self::CompleteAbort | Self::Dead)
    }
}

/// Which transactions are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionFilter {
    /// Only those in one of these states; empty: in any.
    pub states: Vec<TransactionState>,
    /// Only those of one of these producers; empty: of any.
    pub producer_ids: Vec<ProducerId>,
    /// Only those that have run for longer than this, in ms. Needs brokers of Kafka 3.8 or later; Kafka's own also list
    /// those that have ended, by when they began.
    pub longer_than_ms: Option<u64>,
    /// Only those whose transactional id matches this regular expression (of RE2) as a whole. Needs brokers of Kafka
    /// 4.1 or later.
    pub pattern: Option<String>,
}

/// A transactional id in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedTransaction {
    /// The id.
    pub transactional_id: ByteString,
    /// The producer that has it at present.
    pub producer_id: ProducerId,
    /// Where its last transaction is.
    pub state: TransactionState,
}

/// A transactional id, as its coordinator knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionDescription {
    /// Where its last transaction is.
    pub state: TransactionState,
    /// The producer that has it at present.
    pub producer_id: ProducerId,
    /// The epoch that the producer has.
    pub producer_epoch: ProducerEpoch,
    /// After how long an open transaction is aborted, in ms.
    pub timeout_ms: i32,
    /// When the open transaction began, in ms since 1970; `None` when none is open.
    pub started_ms: Option<i64>,
    /// The partitions that are part of the open transaction.
    pub partitions: Vec<TopicPartition>,
}

/// A producer, as the leader of a partition knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerState {
    /// Its id.
    pub producer_id: ProducerId,
    /// Its epoch.
    pub producer_epoch: ProducerEpoch,
    /// The sequence number of its last record; `None` if it has written none.
    pub last_sequence: Option<i32>,
    /// The timestamp of its last batch, in ms since 1970; `None` if that is not known.
    pub last_timestamp_ms: Option<i64>,
    /// The epoch of the coordinator that wrote its last marker; `None` if there was none.
    pub coordinator_epoch: Option<i32>,
    /// Where its open transaction begins; `None` when it has none open here.
    pub transaction_start: Option<Offset>,
}

/// What is aborted: one producer's open transaction in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortTransaction {
    /// Whose.
    pub producer_id: ProducerId,
    /// The epoch that it was written under.
    pub producer_epoch: ProducerEpoch,
    /// At least that of the coordinator which wrote the last marker.
    pub coordinator_epoch: i32,
}

impl From<ProducerState> for AbortTransaction {
    fn from(state: ProducerState) -> Self {
        Self {
            producer_id: state.producer_id,
            producer_epoch: state.producer_epoch,
            coordinator_epoch: state.coordinator_epoch.unwrap_or(0),
        }
    }
}

/// The producer that now has a transactional id, so that every other is fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencedProducer {
    /// Its id.
    pub producer_id: ProducerId,
    /// Its epoch: all lower ones are fenced.
    pub producer_epoch: ProducerEpoch,
}

impl Admin {
    /// The transactional ids that there are, in order, and which brokers could not say.
    ///
    /// # Errors
    /// What keeps the cluster from saying which brokers there are, and `Config` for a state that brokers do not know.
    pub async fn list_transactions(&self, filter: &TransactionFilter) -> Result<Listing<ListedTransaction>> {
        let first = match (&filter.pattern, filter.longer_than_ms) {
            (Some(_), _) => BY_PATTERN,
            (None, Some(_)) => BY_DURATION,
            (None, None) => 0,
        };
        let longer_than = filter.longer_than_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        let request = ListTransactionsRequest {
            state_filters: filter.states.iter().map(|state| ByteString::from(state.as_str())).collect(),
            producer_id_filters: filter.producer_ids.iter().map(|id| id.0).collect(),
            duration_filter: longer_than.unwrap_or(-1),
            transactional_id_pattern: filter.pattern.as_deref().map(ByteString::from),
        };
        let brokers = self.brokers().await?;
        let api = ApiKey::ListTransactions;
        let answers = ask_brokers(&self.cluster, api, "listing transactions", brokers, |node, ()| {
            let request = request.clone();
            Box::pin(async move {
                let version = version_from::<ListTransactionsRequest>(&node, first)?;
                let response = node.call_in(version, request, Duration::ZERO).await?;
                checked(api, response.error_code, None, || "transactions".to_owned(), ())?;
                if let Some(state) = response.unknown_state_filters.first() {
                    let reason = format!("the broker knows no state {state}");
                    return Err(Error::Config { setting: "states", reason });
                }
                let found = response.transaction_states.into_iter().map(|found| ListedTransaction {
                    transactional_id: found.transactional_id,
                    producer_id: ProducerId(found.producer_id),
                    state: found.transaction_state.into(),
                });
                Ok(found.collect())
            })
        });
        Ok(Listing::new(answers.await))
    }

    /// What the coordinators know of transactional ids. Each has a result of its own; one that is not known is refused
    /// with `TransactionalIdNotFound`.
    pub async fn describe_transactions(
        &self,
        transactional_ids: &[&str],
    ) -> BTreeMap<ByteString, Result<TransactionDescription>> {
        let open = keyed(transactional_ids.iter().map(|id| ByteString::from(*id)));
        let (of, api) = (CoordinatorOf::Transaction, ApiKey::DescribeTransactions);
        let asking =
            ask_coordinators(&self.cluster, of, api, "describing transactions", open, |node, ids| {
                let transactional_ids = ids.into_iter().map(|(id, ())| id).collect();
                Box::pin(async move {
                    let response = node.call(DescribeTransactionsRequest { transactional_ids }).await?;
                    let states = response.transaction_states.into_iter();
                    Ok(states.map(|state| (state.transactional_id.clone(), described(state))).collect())
                })
            });
        asking.await.finish()
    }

    /// The producers that the leaders of partitions remember, in the order of their ids: who writes there, and where
    /// their open transactions begin. Each partition has a result of its own.
    pub async fn describe_producers(
        &self,
        partitions: &[TopicPartition],
    ) -> BTreeMap<TopicPartition, Result<Vec<ProducerState>>> {
        let (api, open) = (ApiKey::DescribeProducers, keyed(partitions.iter().cloned()));
        ask_leaders_each(&self.cluster, api, "describing producers", open, |node, asked| {
            Box::pin(async move { producers(&node, asked).await })
        })
        .await
    }

    /// Aborts a transaction that hangs: one that is open in a partition although its coordinator knows nothing of it any
    /// more, so that readers of committed records wait for it for ever. [`Admin::hanging_transactions`] finds it: its
    /// [`ProducerState`] says what to pass here.
    ///
    /// Never abort so what a coordinator still knows ([`Admin::describe_transactions`]): it may yet commit the rest of it.
    ///
    /// # Errors
    /// What the partition's leader refused, such as `InvalidProducerEpoch` when the producer has gone on since.
    pub async fn abort_transaction(
        &self,
        partition: &TopicPartition,
        transaction: AbortTransaction,
    ) -> Result<()> {
        let open = BTreeMap::from([(partition.clone(), transaction)]);
        let api = ApiKey::WriteTxnMarkers;
        let mut aborted =
            ask_leaders_each(&self.cluster, api, "aborting a transaction", open, |node, asked| {
                Box::pin(async move { write_markers(&node, asked).await })
            })
            .await;
        let missing = Err(Error::BadAnswer { api, reason: "the partition is missing from it" });
        aborted.remove(partition).unwrap_or(missing)
    }

    /// Aborts the open transaction of a transactional id that its coordinator knows, and fences its producer. A producer that
    /// is made afterwards takes over as usual.
    ///
    /// # Errors
    /// What the coordinator refused.
    pub async fn terminate_transaction(&self, transactional_id: &str) -> Result<()> {
        let mut fenced = self.fence_producers(&[transactional_id]).await;
        let reason = "the transactional id is missing from it";
        let missing = Err(Error::BadAnswer { api: ApiKey::InitProducerId, reason });
        fenced.remove(transactional_id).unwrap_or(missing).map(|_| ())
    }

    /// Fences whatever producers have these transactional ids: their open transactions are aborted, and they can write no
    /// more. Each id has a result of its own. A producer that is made afterwards takes over as usual.
    pub async fn fence_producers(
        &self,
        transactional_ids: &[&str],
    ) -> BTreeMap<ByteString, Result<FencedProducer>> {
        let open = keyed(transactional_ids.iter().map(|id| ByteString::from(*id)));
        let (of, api) = (CoordinatorOf::Transaction, ApiKey::InitProducerId);
        let asking = ask_coordinators(&self.cluster, of, api, "fencing producers", open, |node, ids| {
            Box::pin(async move { Ok(fence(&node, ids).await) })
        });
        asking.await.finish()
    }
}

fn described(state: describe_transactions::TransactionState) -> Result<TransactionDescription> {
    let mut partitions = Vec::new();
    for topic in state.topics {
        let of_topic = topic.partitions.into_iter();
        partitions.extend(of_topic.map(|partition| TopicPartition::new(topic.topic.clone(), partition)));
    }
    partitions.sort();
    let transaction_state = TransactionState::from(state.transaction_state);
    // Brokers keep the time when the last one began until the next one does.
    let is_open = transaction_state.is_open() && state.transaction_start_time_ms >= 0;
    let description = TransactionDescription {
        state: transaction_state,
        producer_id: ProducerId(state.producer_id),
        producer_epoch: ProducerEpoch(state.producer_epoch),
        timeout_ms: state.transaction_timeout_ms,
        started_ms: is_open.then_some(state.transaction_start_time_ms),
        partitions,
    };
    let subject = || CoordinatorOf::Transaction.subject(&state.transactional_id);
    checked(ApiKey::DescribeTransactions, state.error_code, None, subject, description)
}

async fn producers(node: &Arc<Node>, asked: Vec<Asked<()>>) -> Answers<TopicPartition, Vec<ProducerState>> {
    let topics = by_topic(asked.into_iter().map(|asked| (asked.partition, ()))).into_iter();
    let topics = topics.map(|(name, partitions)| TopicRequest {
        name,
        partition_indexes: partitions.into_iter().map(|(partition, ())| partition).collect(),
    });
    let response = node.call(DescribeProducersRequest { topics: topics.collect() }).await?;
    let mut answers = Vec::new();
    for topic in response.topics {
        for found in topic.partitions {
            let partition = TopicPartition::new(topic.name.clone(), found.partition_index);
            let mut states = Vec::new();
            for state in found.active_producers {
                let epoch = i16::try_from(state.producer_epoch).map_err(|_| Error::BadAnswer {
                    api: ApiKey::DescribeProducers,
                    reason: "a producer's epoch is out of range",
                })?;
                states.push(ProducerState {
                    producer_id: ProducerId(state.producer_id),
                    producer_epoch: ProducerEpoch(epoch),
                    last_sequence: (state.last_sequence >= 0).then_some(state.last_sequence),
                    last_timestamp_ms: (state.last_timestamp >= 0).then_some(state.last_timestamp),
                    coordinator_epoch: (state.coordinator_epoch >= 0).then_some(state.coordinator_epoch),
                    transaction_start: (state.current_txn_start_offset >= 0)
                        .then_some(Offset(state.current_txn_start_offset)),
                });
            }
            states.sort_by_key(|state| state.producer_id);
            let subject = || partition.to_string();
            let checked =
                checked(ApiKey::DescribeProducers, found.error_code, found.error_message, subject, states);
            answers.push((partition, checked));
        }
    }
    Ok(answers)
}

async fn write_markers(node: &Arc<Node>, asked: Vec<Asked<AbortTransaction>>) -> Answers<TopicPartition, ()> {
    let marker = |asked: Asked<AbortTransaction>| WritableTxnMarker {
        producer_id: asked.what.producer_id.0,
        producer_epoch: asked.what.producer_epoch.0,
        transaction_result: false,
        topics: vec![WritableTxnMarkerTopic {
            name: asked.partition.topic,
            partition_indexes: vec![asked.partition.partition],
        }],
        coordinator_epoch: asked.what.coordinator_epoch,
        ..WritableTxnMarker::default()
    };
    let request = WriteTxnMarkersRequest { markers: asked.into_iter().map(marker).collect() };
    let response = node.call(request).await?;
    let mut answers = Vec::new();
    for topic in response.markers.into_iter().flat_map(|marker| marker.topics) {
        for found in topic.partitions {
            let partition = TopicPartition::new(topic.name.clone(), found.partition_index);
            let subject = || partition.to_string();
            let checked = checked(ApiKey::WriteTxnMarkers, found.error_code, None, subject, ());
            answers.push((partition, checked));
        }
    }
    Ok(answers)
}

/// Each id needs a request of its own, and each may fail by itself.
async fn fence(node: &Arc<Node>, ids: Vec<(ByteString, ())>) -> Vec<(ByteString, Result<FencedProducer>)> {
    let mut fenced = Vec::new();
    for (id, ()) in ids {
        let request = InitProducerIdRequest {
            transactional_id: Some(id.clone()),
            transaction_timeout_ms: FENCED_TIMEOUT_MS,
            ..InitProducerIdRequest::default()
        };
        let versions = 0..=ApiKey::InitProducerId.last_stable_version();
        let result = match node.call_within(request, versions, Duration::ZERO).await {
            Ok(answer) => {
                let producer = FencedProducer {
                    producer_id: ProducerId(answer.producer_id),
                    producer_epoch: ProducerEpoch(answer.producer_epoch),
                };
                let subject = || CoordinatorOf::Transaction.subject(&id);
                checked(ApiKey::InitProducerId, answer.error_code, None, subject, producer)
            }
            Err(error) => Err(error),
        };
        fenced.push((id, result));
    }
    fenced
}
