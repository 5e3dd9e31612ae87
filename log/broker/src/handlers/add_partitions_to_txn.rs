//! AddPartitionsToTxn: partitions that a transaction is about to write to, or that somebody wants to know to belong
//! to it (KIP-890).

use std::collections::BTreeSet;

use bytestring::ByteString;
use thalweg_protocol::messages::add_partitions_to_txn::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult, AddPartitionsToTxnTopic, AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
};
use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};

use super::{RequestContext, fenced_from, own};
use crate::topics;
use crate::transaction::{Producer, TransactionCoordinator, TransactionVersion};

/// From this version on several transactions are asked about at once, by brokers.
const FIRST_BATCHED: i16 = 4;

/// From this version on clients know PRODUCER_FENCED (KIP-588).
const FIRST_WITH_FENCED: i16 = 2;

pub(crate) async fn handle(
    context: RequestContext,
    request: AddPartitionsToTxnRequest,
) -> AddPartitionsToTxnResponse {
    let (transactions, is_batched) = asked(context.version, request);
    let mut results = Vec::with_capacity(transactions.len());
    for transaction in transactions {
        let topic_results = if transaction.verify_only {
            verify(&context, &transaction).await
        } else {
            add(&context, &transaction).await
        };
        results
            .push(AddPartitionsToTxnResult { transactional_id: transaction.transactional_id, topic_results });
    }
    answer(results, is_batched)
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(
    context: &RequestContext,
    request: AddPartitionsToTxnRequest,
    code: ErrorCode,
) -> AddPartitionsToTxnResponse {
    let (transactions, is_batched) = asked(context.version, request);
    let results = transactions.into_iter().map(|transaction| AddPartitionsToTxnResult {
        topic_results: results_of(&transaction.topics, |_, _| code),
        transactional_id: transaction.transactional_id,
    });
    answer(results.collect(), is_batched)
}

/// The request in the words of version 4.
fn asked(version: i16, request: AddPartitionsToTxnRequest) -> (Vec<AddPartitionsToTxnTransaction>, bool) {
    if version >= FIRST_BATCHED {
        return (request.transactions, true);
    }
    let transaction = AddPartitionsToTxnTransaction {
        transactional_id: request.v3_and_below_transactional_id,
        producer_id: request.v3_and_below_producer_id,
        producer_epoch: request.v3_and_below_producer_epoch,
        verify_only: false,
        topics: request.v3_and_below_topics,
    };
    (vec![transaction], false)
}

fn producer(transaction: &AddPartitionsToTxnTransaction) -> Producer {
    Producer { id: ProducerId(transaction.producer_id), epoch: ProducerEpoch(transaction.producer_epoch) }
}

/// Adds all partitions or none: where one does not exist or is internal, the others are not attempted.
async fn add(
    context: &RequestContext,
    transaction: &AddPartitionsToTxnTransaction,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let state = context.core.controller.state();
    // Offsets come into a transaction by AddOffsetsToTxn.
    let check = |name: &ByteString, partition: i32| match state.partition(name, partition) {
        Some(_) if topics::is_internal(name) => Err(ErrorCode::TopicAuthorizationFailed),
        Some(_) => Ok(()),
        None => Err(ErrorCode::UnknownTopicOrPartition),
    };
    let mut partitions = BTreeSet::new();
    let mut are_all_fit = true;
    for topic in &transaction.topics {
        let name = state.topic(&topic.name).map(|topic| topic.name.clone());
        for partition in &topic.partitions {
            match name.as_ref().filter(|name| check(name, *partition).is_ok()) {
                Some(name) => {
                    partitions.insert(TopicPartition::new(name.clone(), *partition));
                }
                None => are_all_fit = false,
            }
        }
    }
    if !are_all_fit {
        return results_of(&transaction.topics, |name, partition| {
            check(name, partition).err().unwrap_or(ErrorCode::OperationNotAttempted)
        });
    }
    let version = match context.version >= FIRST_BATCHED {
        true => TransactionVersion::EpochBump,
        false => TransactionVersion::Classic,
    };
    let (id, who) = (own(&transaction.transactional_id), producer(transaction));
    let added = context.core.transactions.add_partitions(&id, who, &partitions, version).await;
    let code = fenced_from(FIRST_WITH_FENCED, context.version, added.err().unwrap_or(ErrorCode::None));
    results_of(&transaction.topics, |_, _| code)
}

async fn verify(
    context: &RequestContext,
    transaction: &AddPartitionsToTxnTransaction,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let (id, who) = (&transaction.transactional_id, producer(transaction));
    match context.core.transactions.shard(id).await {
        Ok(shard) => results_of(&transaction.topics, |name, partition| {
            let partition = TopicPartition::new(name.clone(), partition);
            TransactionCoordinator::verify(&shard, id, who, &partition).err().unwrap_or(ErrorCode::None)
        }),
        Err(code) => results_of(&transaction.topics, |_, _| code),
    }
}

fn results_of(
    topics: &[AddPartitionsToTxnTopic],
    code: impl Fn(&ByteString, i32) -> ErrorCode,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let result = |topic: &AddPartitionsToTxnTopic| AddPartitionsToTxnTopicResult {
        name: topic.name.clone(),
        results_by_partition: topic
            .partitions
            .iter()
            .map(|partition| AddPartitionsToTxnPartitionResult {
                partition_index: *partition,
                partition_error_code: code(&topic.name, *partition).code(),
            })
            .collect(),
    };
    topics.iter().map(result).collect()
}

fn answer(mut results: Vec<AddPartitionsToTxnResult>, is_batched: bool) -> AddPartitionsToTxnResponse {
    if is_batched {
        return AddPartitionsToTxnResponse { results_by_transaction: results, ..Default::default() };
    }
    let topics = results.pop().map(|result| result.topic_results).unwrap_or_default();
    AddPartitionsToTxnResponse { results_by_topic_v3_and_below: topics, ..Default::default() }
}
