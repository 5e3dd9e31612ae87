//! ListTransactions: the transactional ids that this node coordinates (KIP-664, KIP-994, KIP-1152).

use bytestring::ByteString;
use thalweg_protocol::messages::list_transactions::{
    ListTransactionsRequest, ListTransactionsResponse, TransactionState,
};
use thalweg_protocol::{ErrorCode, ProducerId};

use super::RequestContext;
use crate::pattern::Pattern;
use crate::transaction::TransactionFilter;

/// The first versions that filter by duration and by pattern.
const BY_DURATION: i16 = 1;
const BY_PATTERN: i16 = 2;

pub(crate) async fn handle(
    context: RequestContext,
    request: ListTransactionsRequest,
) -> ListTransactionsResponse {
    let (filter, unknown_state_filters) = match filter(context.version, request) {
        Ok(filter) => filter,
        Err(code) => return refuse(code),
    };
    let shards = match context.core.transactions.all_shards().await {
        Ok(shards) => shards,
        Err(code) => return refuse(code),
    };
    let mut listed: Vec<_> = shards.iter().flat_map(|shard| shard.list(&filter)).collect();
    listed.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
    let transaction_states = listed.into_iter().map(|(transactional_id, producer, state)| TransactionState {
        transactional_id,
        producer_id: producer.0,
        transaction_state: ByteString::from_static(state.name()),
    });
    ListTransactionsResponse {
        unknown_state_filters,
        transaction_states: transaction_states.collect(),
        ..Default::default()
    }
}

/// The answer that refuses a request.
pub(crate) fn refuse(code: ErrorCode) -> ListTransactionsResponse {
    ListTransactionsResponse { error_code: code.code(), ..Default::default() }
}

/// What the request asks for, and the states in it that nobody knows.
fn filter(
    version: i16,
    request: ListTransactionsRequest,
) -> Result<(TransactionFilter, Vec<ByteString>), ErrorCode> {
    let (states, unknown) = TransactionFilter::states(request.state_filters);
    // An empty pattern filters nothing, as none.
    let pattern =
        request.transactional_id_pattern.filter(|pattern| version >= BY_PATTERN && !pattern.is_empty());
    let pattern = pattern.map(|pattern| Pattern::compile(&pattern)).transpose();
    let is_limited = version >= BY_DURATION && request.duration_filter >= 0;
    let filter = TransactionFilter {
        states,
        producer_ids: request.producer_id_filters.into_iter().map(ProducerId).collect(),
        longer_than_ms: is_limited.then_some(request.duration_filter),
        pattern: pattern.map_err(|refusal| refusal.code)?,
    };
    Ok((filter, unknown))
}
