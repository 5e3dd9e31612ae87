//! DescribeProducers: who writes to partitions that this node leads, and where their open transactions begin (KIP-664).

use std::collections::BTreeSet;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};
use thalweg_storage::ActiveProducer;

use super::RequestContext;

/// What stands for a sequence number, a coordinator epoch or an offset that there is not.
const NONE: i32 = -1;

pub(crate) fn handle(
    context: &RequestContext,
    request: DescribeProducersRequest,
) -> DescribeProducersResponse {
    answer(request, |topic, partition| {
        let topic = context.core.partitions.topic(topic)?;
        Ok(topic.leader(partition)?.log().active_producers())
    })
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: DescribeProducersRequest, code: ErrorCode) -> DescribeProducersResponse {
    answer(request, |_, _| Err(code))
}

/// However often a partition is named, it is described once: the answer is much longer than the question.
fn answer(
    request: DescribeProducersRequest,
    producers: impl Fn(&str, i32) -> Result<Vec<ActiveProducer>, ErrorCode>,
) -> DescribeProducersResponse {
    let mut seen = BTreeSet::new();
    let topics = request.topics.into_iter().map(|topic| {
        let mut partitions = Vec::new();
        for partition in topic.partition_indexes {
            if seen.insert((topic.name.clone(), partition)) {
                partitions.push(described(partition, producers(&topic.name, partition)));
            }
        }
        TopicResponse { name: topic.name, partitions }
    });
    DescribeProducersResponse { topics: topics.collect(), ..Default::default() }
}

fn described(partition_index: i32, producers: Result<Vec<ActiveProducer>, ErrorCode>) -> PartitionResponse {
    match producers {
        Ok(producers) => PartitionResponse {
            partition_index,
            active_producers: producers.into_iter().map(state).collect(),
            ..Default::default()
        },
        Err(code) => PartitionResponse {
            partition_index,
            error_code: code.code(),
            error_message: Some(ByteString::from_static(code.message())),
            ..Default::default()
        },
    }
}

fn state(producer: ActiveProducer) -> ProducerState {
    ProducerState {
        producer_id: producer.producer_id.0,
        producer_epoch: i32::from(producer.producer_epoch.0),
        last_sequence: producer.last_sequence.unwrap_or(NONE),
        last_timestamp: producer.last_active_ms,
        coordinator_epoch: producer.coordinator_epoch.unwrap_or(NONE),
        current_txn_start_offset: producer.transaction_start.map_or(i64::from(NONE), |start| start.0),
    }
}
