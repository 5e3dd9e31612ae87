//! EndTxn: commits or aborts a transaction. Answers when that is decided for good; markers follow.

use thalweg_protocol::messages::end_txn::{EndTxnRequest, EndTxnResponse};
use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId};

use super::{RequestContext, fenced_from, own};
use crate::coordinator::Shard;
use crate::server::Answer;
use crate::transaction::{EndTransaction, Outcome, Producer, TransactionVersion};

/// From this version on every end bumps the producer's epoch and tells it (KIP-890, part 2).
const FIRST_THAT_BUMPS: i16 = 5;

/// From this version on clients know PRODUCER_FENCED (KIP-588).
const FIRST_WITH_FENCED: i16 = 2;

pub(crate) async fn begin(context: RequestContext, request: EndTxnRequest) -> Answer {
    let version = context.version;
    let refused = |code| Answer::now(refuse(fenced_from(FIRST_WITH_FENCED, version, code)));
    let transactions = &context.core.transactions;
    let shard = match transactions.shard(&request.transactional_id).await {
        Ok(shard) => shard,
        Err(code) => return refused(code),
    };
    let end = EndTransaction {
        producer: Producer {
            id: ProducerId(request.producer_id),
            epoch: ProducerEpoch(request.producer_epoch),
        },
        outcome: if request.committed { Outcome::Commit } else { Outcome::Abort },
        version: match version >= FIRST_THAT_BUMPS {
            true => TransactionVersion::EpochBump,
            false => TransactionVersion::Classic,
        },
    };
    match transactions.end(&shard, &own(&request.transactional_id), end).await {
        Ok(decided) => Answer::waits(async move {
            match shard.journal().committed(decided.rests_on).await {
                Ok(()) => EndTxnResponse {
                    producer_id: decided.answer.id.0,
                    producer_epoch: decided.answer.epoch.0,
                    ..Default::default()
                }
                .into(),
                Err(code) => refuse(code).into(),
            }
        }),
        Err(code) => refused(code),
    }
}

/// The answer that refuses a request.
pub(crate) fn refuse(code: ErrorCode) -> EndTxnResponse {
    EndTxnResponse { error_code: code.code(), ..Default::default() }
}
