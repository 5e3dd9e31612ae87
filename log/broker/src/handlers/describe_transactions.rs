//! DescribeTransactions: what this node knows of transactional ids that it coordinates (KIP-664).

use std::collections::{BTreeMap, BTreeSet};

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_transactions::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, TopicData, TransactionState,
};

use super::{RequestContext, own};
use crate::transaction::Transaction;

pub(crate) async fn handle(
    context: RequestContext,
    request: DescribeTransactionsRequest,
) -> DescribeTransactionsResponse {
    // However often an id is named, it is described once: the answer is much longer than the question.
    let ids: BTreeSet<ByteString> = request.transactional_ids.into_iter().collect();
    let mut transaction_states = Vec::with_capacity(ids.len());
    for id in ids {
        let described = match context.core.transactions.shard(&id).await {
            Ok(shard) => shard.look(&id, |found| found.map(|found| described(own(&id), found))),
            Err(code) => Some(failed(id.clone(), code)),
        };
        transaction_states.push(described.unwrap_or_else(|| failed(id, ErrorCode::TransactionalIdNotFound)));
    }
    DescribeTransactionsResponse { transaction_states, ..Default::default() }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: DescribeTransactionsRequest, code: ErrorCode) -> DescribeTransactionsResponse {
    let states = request.transactional_ids.into_iter().map(|id| failed(id, code));
    DescribeTransactionsResponse { transaction_states: states.collect(), ..Default::default() }
}

fn described(transactional_id: ByteString, transaction: &Transaction) -> TransactionState {
    let mut topics: BTreeMap<&ByteString, Vec<i32>> = BTreeMap::new();
    for partition in &transaction.partitions {
        topics.entry(&partition.topic).or_default().push(partition.partition);
    }
    let topics = topics.into_iter().map(|(topic, partitions)| TopicData { topic: topic.clone(), partitions });
    TransactionState {
        error_code: ErrorCode::None.code(),
        transactional_id,
        transaction_state: ByteString::from_static(transaction.state.name()),
        transaction_timeout_ms: transaction.timeout_ms,
        transaction_start_time_ms: transaction.start_ms,
        producer_id: transaction.producer.id.0,
        producer_epoch: transaction.producer.epoch.0,
        topics: topics.collect(),
    }
}

fn failed(transactional_id: ByteString, code: ErrorCode) -> TransactionState {
    TransactionState { error_code: code.code(), transactional_id, ..Default::default() }
}
