//! AddOffsetsToTxn: a transaction is about to commit offsets of a group.

use std::collections::BTreeSet;

use thalweg_protocol::messages::add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};
use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};

use super::{RequestContext, fenced_from, find_coordinator, own};
use crate::topics::CONSUMER_OFFSETS;
use crate::transaction::{Producer, TransactionVersion};

/// From this version on clients know PRODUCER_FENCED (KIP-588).
const FIRST_WITH_FENCED: i16 = 2;

pub(crate) async fn handle(
    context: RequestContext,
    request: AddOffsetsToTxnRequest,
) -> AddOffsetsToTxnResponse {
    let code = add(&context, &request).await.err().unwrap_or(ErrorCode::None);
    refuse(fenced_from(FIRST_WITH_FENCED, context.version, code))
}

/// The answer that says `code`.
pub(crate) fn refuse(code: ErrorCode) -> AddOffsetsToTxnResponse {
    AddOffsetsToTxnResponse { error_code: code.code(), ..Default::default() }
}

async fn add(context: &RequestContext, request: &AddOffsetsToTxnRequest) -> Result<(), ErrorCode> {
    if request.group_id.is_empty() {
        return Err(ErrorCode::InvalidGroupId);
    }
    // A producer may say this before anyone has asked for the group's coordinator, and KafkaJS does not try again.
    find_coordinator::ensure(context, CONSUMER_OFFSETS).await;
    let index = context.core.groups.partition_of(&request.group_id)?;
    let producer =
        Producer { id: ProducerId(request.producer_id), epoch: ProducerEpoch(request.producer_epoch) };
    let partitions = BTreeSet::from([TopicPartition::new(CONSUMER_OFFSETS, index)]);
    let (id, version) = (own(&request.transactional_id), TransactionVersion::Classic);
    context.core.transactions.add_partitions(&id, producer, &partitions, version).await
}
