//! What a request costs its client's quotas, and what follows when that is too much: the answer says for how long the
//! client is to send nothing, and its connection is not read meanwhile (KIP-219).

use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::{Request, Response};
use thalweg_protocol::{ErrorCode, Records};
use tokio::time::Instant;

use super::order::{Answer, throttle};
use crate::error::Refusal;
use crate::handlers::{self, RequestContext};
use crate::quota::{ClientQuotas, Usage};

/// Begins `request` of a client when someone has quotas.
pub(super) fn begin(context: &RequestContext, request: Request) -> Answer {
    let quotas = &context.core.quotas;
    let client_id = context.client_id.clone().unwrap_or_default();
    let client = (&context.client.principal.name, &client_id);
    let mut pause = Duration::ZERO;
    if let Request::Produce(produce) = &request {
        let partitions = produce.topic_data.iter().flat_map(|topic| &topic.partition_data);
        let bytes: usize = partitions.map(|data| data.records.as_ref().map_or(0, Records::len)).sum();
        pause = quotas.charge(Usage::Produce, client, bytes as f64, Instant::now());
    }
    if let Some(count) = mutations(context, &request) {
        let now = Instant::now();
        let overdrawn = quotas.overdrawn(Usage::Mutations, client, now);
        if overdrawn > Duration::ZERO && is_strict(context.version, &request) {
            context.client.mute(overdrawn);
            let refusal =
                Refusal::new(ErrorCode::ThrottlingQuotaExceeded, "the quota of mutations is used up");
            return handlers::refuse_mutations(context, request, &refusal).throttled(millis(overdrawn));
        }
        pause = pause.max(quotas.charge(Usage::Mutations, client, count as f64, now));
    }
    let is_timed = quotas.has(Usage::Requests, client.0, client.1);
    let begun = Instant::now();
    let answer = handlers::begin(context, request);
    if is_timed {
        let now = Instant::now();
        pause = pause.max(quotas.charge(Usage::Requests, client, (now - begun).as_secs_f64(), now));
    }
    if pause > Duration::ZERO {
        context.client.mute(pause);
    }
    let answer = answer.throttled(millis(pause));
    match quotas.has(Usage::Fetch, client.0, client.1) {
        true => count_fetched(context.clone(), client_id, answer),
        false => answer,
    }
}

/// Counts the records of an answer to a fetch, once it is there.
fn count_fetched(context: RequestContext, client_id: ByteString, answer: Answer) -> Answer {
    match answer {
        Answer::Now(response) => Answer::Now(counted(&context, &client_id, response)),
        Answer::Waits { pending, bytes } => Answer::Waits {
            pending: Box::pin(async move { counted(&context, &client_id, pending.await) }),
            bytes,
        },
        Answer::Blocks(pending) => {
            Answer::Blocks(Box::pin(async move { count_fetched(context, client_id, pending.await) }))
        }
        other => other,
    }
}

fn counted(context: &RequestContext, client_id: &ByteString, response: Response) -> Response {
    let Some(bytes) = fetched_bytes(&response) else { return response };
    let quotas: &ClientQuotas = &context.core.quotas;
    let client = (&context.client.principal.name, client_id);
    let pause = quotas.charge(Usage::Fetch, client, bytes as f64, Instant::now());
    if pause > Duration::ZERO {
        context.client.mute(pause);
    }
    throttle(response, millis(pause))
}

/// How many bytes of records an answer has; `None` for one that is not to a fetch.
fn fetched_bytes(response: &Response) -> Option<usize> {
    let size = |records: &Option<Records>| records.as_ref().map_or(0, Records::len);
    match response {
        Response::Fetch(fetched) => {
            let partitions = fetched.responses.iter().flat_map(|topic| &topic.partitions);
            Some(partitions.map(|data| size(&data.records)).sum())
        }
        Response::ShareFetch(fetched) => {
            let partitions = fetched.responses.iter().flat_map(|topic| &topic.partitions);
            Some(partitions.map(|data| size(&data.records)).sum())
        }
        _ => None,
    }
}

/// How many partitions a request makes or deletes; `None` for one that is not about that.
fn mutations(context: &RequestContext, request: &Request) -> Option<usize> {
    let partitions_of =
        |name: &str| context.core.controller.state().topic(name).map_or(1, |topic| topic.partitions.len());
    match request {
        Request::CreateTopics(request) if !request.validate_only => {
            let counts = request
                .topics
                .iter()
                .map(|topic| usize::try_from(topic.num_partitions).unwrap_or(topic.assignments.len().max(1)));
            Some(counts.sum())
        }
        Request::CreatePartitions(request) if !request.validate_only => {
            let counts = request.topics.iter().map(|topic| {
                usize::try_from(topic.count).unwrap_or(0).saturating_sub(partitions_of(&topic.name))
            });
            Some(counts.sum())
        }
        Request::DeleteTopics(request) => {
            let named = request.topics.iter().filter_map(|topic| topic.name.as_ref());
            let names = named.chain(&request.topic_names);
            let with_ids = request.topics.iter().filter(|topic| topic.name.is_none()).count();
            Some(names.map(|name| partitions_of(name)).sum::<usize>() + with_ids)
        }
        _ => None,
    }
}

/// Whether clients of this version know THROTTLING_QUOTA_EXCEEDED (KIP-599).
fn is_strict(version: i16, request: &Request) -> bool {
    match request {
        Request::CreateTopics(_) => version >= 6,
        Request::CreatePartitions(_) => version >= 3,
        Request::DeleteTopics(_) => version >= 5,
        _ => false,
    }
}

fn millis(pause: Duration) -> i32 {
    // A pause that is not even one of them is said as one.
    i32::try_from(pause.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
}
