//! Produce: appends record batches and answers when they are as safe as the producer asked for.
//!
//! The append happens when the request begins, so that a connection's batches are appended in the order in
//! which they came. Only the answers of acks = all wait; the next request is appended meanwhile.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::Response;
use thalweg_protocol::messages::produce::{
    BatchIndexAndErrorMessage, PartitionProduceData, PartitionProduceResponse, ProduceRequest,
    ProduceResponse, TopicProduceData, TopicProduceResponse,
};
use thalweg_protocol::record::RecordBatch;
use thalweg_protocol::{ErrorCode, Offset};
use thalweg_storage::AppendInfo;
use tokio::time::{Instant, timeout_at};

use super::transactional_produce::{self, Verified};
use super::{RequestContext, within};
use crate::error::Refusal;
use crate::partition::Partition;
use crate::partitions::HeldTopic;
use crate::server::Answer;
use crate::topics;

/// The client id that may write to internal topics, as in Kafka: its admin tools use it.
const ADMIN_CLIENT_ID: &str = "__admin_client";

/// About what the answer for a partition takes in memory while it waits, in bytes.
const UNCOMMITTED: usize = size_of::<PartitionProduceResponse>() + size_of::<Uncommitted>();

/// The longest that a producer may have the broker wait for a commit.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn begin(context: &RequestContext, request: ProduceRequest) -> Answer {
    if !matches!(request.acks, -1..=1) {
        return Answer::now(refuse(&request, ErrorCode::InvalidRequiredAcks));
    }
    if let Some(transactional_id) = &request.transactional_id
        && let Some(unverified) = transactional_produce::unverified(context, &request)
    {
        let (context, transactional_id) = (context.clone(), transactional_id.clone());
        return Answer::Blocks(Box::pin(async move {
            let verified = transactional_produce::verify(&context, transactional_id, unverified).await;
            append(&context, request, &verified)
        }));
    }
    let verified = Verified::nothing(&request);
    append(context, request, &verified)
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: &ProduceRequest, code: ErrorCode) -> ProduceResponse {
    let responses = request.topic_data.iter().map(|topic| TopicProduceResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partition_responses: topic
            .partition_data
            .iter()
            .map(|partition| refused(partition.index, code.into()))
            .collect(),
    });
    ProduceResponse { responses: responses.collect(), ..Default::default() }
}

/// An append that is to be committed before the request is answered.
struct Uncommitted {
    topic: usize,
    partition: usize,
    leader: Arc<Partition>,
    last_offset: Offset,
}

fn append(context: &RequestContext, request: ProduceRequest, verified: &Verified) -> Answer {
    let acks = request.acks;
    let deadline = Instant::now() + within(request.timeout_ms, MAX_TIMEOUT);
    let mut uncommitted = Vec::new();
    let mut responses = Vec::with_capacity(request.topic_data.len());
    let hold = context.core.partitions.hold_round();
    for data in request.topic_data {
        let topic = responses.len();
        responses.push(append_topic(context, data, acks, verified, |partition, leader, last_offset| {
            uncommitted.push(Uncommitted { topic, partition, leader, last_offset });
        }));
    }
    drop(hold);
    let response = ProduceResponse { responses, ..Default::default() };
    match acks {
        0 => silent(&response),
        1 => Answer::now(response),
        _ if uncommitted.iter().all(|append| append.leader.is_committed(append.last_offset)) => {
            Answer::now(response)
        }
        _ => {
            let bytes = uncommitted.len() * UNCOMMITTED;
            Answer::Waits { pending: Box::pin(commit(response, uncommitted, deadline)), bytes }
        }
    }
}

fn append_topic(
    context: &RequestContext,
    data: TopicProduceData,
    acks: i16,
    verified: &Verified,
    mut appended: impl FnMut(usize, Arc<Partition>, Offset),
) -> TopicProduceResponse {
    let topic = find_topic(context, &data);
    let mut answers = Vec::with_capacity(data.partition_data.len());
    for partition in data.partition_data {
        let leader = match &topic {
            Ok(topic) => topic.leader(partition.index).map_err(Refusal::from),
            Err(code) => Err((*code).into()),
        };
        let index = partition.index;
        let outcome = leader.and_then(|leader| {
            let info = append_partition(leader, partition, acks, verified)?;
            appended(answers.len(), Arc::clone(leader), info.last_offset);
            Ok(info)
        });
        answers.push(match outcome {
            Ok(info) => accepted(index, &info),
            Err(refusal) => refused(index, refusal),
        });
    }
    TopicProduceResponse { name: data.name, topic_id: data.topic_id, partition_responses: answers }
}

fn find_topic(context: &RequestContext, data: &TopicProduceData) -> Result<Arc<HeldTopic>, ErrorCode> {
    let topic = context.named_topic(&data.name, data.topic_id)?;
    if topics::is_internal(&topic.name) && context.client_id.as_deref() != Some(ADMIN_CLIENT_ID) {
        return Err(ErrorCode::InvalidTopicException);
    }
    Ok(topic)
}

fn append_partition(
    leader: &Arc<Partition>,
    data: PartitionProduceData,
    acks: i16,
    verified: &Verified,
) -> Result<AppendInfo, Refusal> {
    if acks == -1 {
        leader.check_isr()?;
    }
    let records = data.records.filter(|records| !records.is_empty()).ok_or_else(|| {
        Refusal::new(ErrorCode::InvalidRecord, "a produce request must have one record batch per partition")
    })?;
    let bytes = records
        .into_bytes()
        .map_err(|error| Refusal::new(ErrorCode::KafkaStorageError, error.to_string()))?;
    let batch = RecordBatch::only(bytes)?;
    verified.check(batch.header())?;
    let guard = verified.guard(leader)?;
    let is_guarded = guard.is_some();
    leader
        .append(&batch, guard, acks == -1)
        .map_err(|refusal| if is_guarded { verified.append_refused(refusal) } else { refusal })
}

/// Waits until every append is committed, or the producer's time is up.
async fn commit(mut response: ProduceResponse, uncommitted: Vec<Uncommitted>, deadline: Instant) -> Response {
    for append in uncommitted {
        let committed = append.leader.committed(append.last_offset);
        let code = match timeout_at(deadline, committed).await {
            Ok(Ok(())) => continue,
            Ok(Err(code)) => code,
            Err(_) => ErrorCode::RequestTimedOut,
        };
        let topic = response.responses.get_mut(append.topic);
        if let Some(answer) = topic.and_then(|topic| topic.partition_responses.get_mut(append.partition)) {
            *answer = refused(answer.index, code.into());
        }
    }
    response.into()
}

/// With acks = 0 the only way to tell the producer of an error is to close the connection: it refreshes its
/// metadata then.
fn silent(response: &ProduceResponse) -> Answer {
    let answers = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    match answers.map(|answer| answer.error_code).find(|&code| code != 0) {
        Some(code) => Answer::Close { reason: format!("a Produce request with acks = 0 failed: {code}") },
        None => Answer::Silent,
    }
}

fn accepted(index: i32, info: &AppendInfo) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        base_offset: info.first_offset.0,
        log_append_time_ms: info.log_append_time_ms,
        log_start_offset: info.log_start_offset.0,
        ..Default::default()
    }
}

fn refused(index: i32, refusal: Refusal) -> PartitionProduceResponse {
    let message = refusal.message.map(ByteString::from);
    let record_errors = refusal.record_indexes.into_iter().map(|batch_index| BatchIndexAndErrorMessage {
        batch_index,
        // That of the whole batch says it once for all.
        batch_index_error_message: None,
    });
    PartitionProduceResponse {
        index,
        error_code: refusal.code.code(),
        base_offset: -1,
        error_message: message,
        record_errors: record_errors.collect(),
        ..Default::default()
    }
}
