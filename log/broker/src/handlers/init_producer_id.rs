//! InitProducerId: gives a producer its id and epoch, and fences the instance before it.

use thalweg_protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId};

use super::{RequestContext, fenced_from, own};
use crate::coordinator::Shard;
use crate::server::Answer;
use crate::transaction::{InitProducerId, Producer};

/// From this version on clients know PRODUCER_FENCED (KIP-360).
const FIRST_WITH_FENCED: i16 = 4;

pub(crate) async fn begin(context: RequestContext, request: InitProducerIdRequest) -> Answer {
    let refused = move |code| Answer::now(refuse(fenced_from(FIRST_WITH_FENCED, context.version, code)));
    let transactions = &context.core.transactions;
    let Some(id) = &request.transactional_id else {
        return match transactions.idempotent_producer().await {
            Ok(producer) => Answer::now(answer(producer)),
            Err(code) => refused(code),
        };
    };
    let given =
        Producer { id: ProducerId(request.producer_id), epoch: ProducerEpoch(request.producer_epoch) };
    if (given.id == ProducerId::NONE) != (given.epoch == ProducerEpoch::NONE) {
        return refused(ErrorCode::InvalidRequest);
    }
    let shard = match transactions.shard(id).await {
        Ok(shard) => shard,
        Err(code) => return refused(code),
    };
    let init = InitProducerId {
        timeout_ms: request.transaction_timeout_ms,
        given: (given.id != ProducerId::NONE).then_some(given),
    };
    match transactions.init_producer_id(&shard, &own(id), init).await {
        Ok(decided) => Answer::waits(async move {
            match shard.journal().committed(decided.rests_on).await {
                Ok(()) => answer(decided.answer).into(),
                Err(code) => refuse(code).into(),
            }
        }),
        Err(code) => refused(code),
    }
}

/// The answer that refuses a request.
pub(crate) fn refuse(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code: code.code(),
        producer_id: ProducerId::NONE.0,
        producer_epoch: ProducerEpoch::NONE.0,
        ..Default::default()
    }
}

fn answer(producer: Producer) -> InitProducerIdResponse {
    InitProducerIdResponse {
        producer_id: producer.id.0,
        producer_epoch: producer.epoch.0,
        ..Default::default()
    }
}
