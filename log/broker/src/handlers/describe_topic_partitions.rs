//! DescribeTopicPartitions: the partitions of topics, so many at a time, from where the last answer ended (KIP-966).

use std::collections::BTreeSet;

use bytestring::ByteString;
use thalweg_controller::{ClusterState, Topic};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};

use super::RequestContext;
use super::metadata::{Leading, unknown_name};
use crate::operations;
use crate::topics;

/// The most partitions in one answer, whatever the client asks for, as in Kafka
/// (`max.request.partition.size.limit`).
const MAX_PARTITIONS: usize = 2000;

pub(crate) fn handle(
    context: &RequestContext,
    request: &DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    if request.cursor.as_ref().is_some_and(|cursor| cursor.partition_index < 0) {
        return refuse(request, ErrorCode::InvalidRequest);
    }
    let state = context.core.controller.state();
    let limit = usize::try_from(request.response_partition_limit).unwrap_or(0).clamp(1, MAX_PARTITIONS);
    let mut page = Page { context, limit, topics: Vec::new(), next_cursor: None };
    match request.topics.is_empty() {
        true => page
            .fill(request.cursor.as_ref(), state.topics().map(|topic| (topic.name.clone(), Some(&**topic)))),
        false => page.fill(request.cursor.as_ref(), named(request, &state)),
    }
    DescribeTopicPartitionsResponse {
        topics: page.topics,
        next_cursor: page.next_cursor,
        ..Default::default()
    }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(
    request: &DescribeTopicPartitionsRequest,
    code: ErrorCode,
) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| failed(topic.name.clone(), code));
    DescribeTopicPartitionsResponse { topics: topics.collect(), ..Default::default() }
}

/// The topics that are asked for, in the order of their names: the cursor of an answer points into it.
fn named<'a>(
    request: &DescribeTopicPartitionsRequest,
    state: &'a ClusterState,
) -> impl Iterator<Item = (ByteString, Option<&'a Topic>)> {
    let names: BTreeSet<ByteString> = request.topics.iter().map(|topic| topic.name.clone()).collect();
    names.into_iter().map(|name| {
        let topic = state.topic(&name).map(|topic| &**topic);
        (name, topic)
    })
}

/// One answer, as far as it is filled.
struct Page<'a> {
    context: &'a RequestContext,
    /// How many more partitions it takes.
    limit: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    next_cursor: Option<Cursor>,
}

impl Page<'_> {
    fn fill<'t>(
        &mut self,
        cursor: Option<&Cursor>,
        topics: impl Iterator<Item = (ByteString, Option<&'t Topic>)>,
    ) {
        for (name, topic) in topics {
            let first = match cursor {
                Some(cursor) if name < cursor.topic_name => continue,
                Some(cursor) if name == cursor.topic_name => cursor.partition_index,
                _ => 0,
            };
            let Some(topic) = topic else {
                let code = unknown_name(&name);
                self.topics.push(failed(name, code));
                continue;
            };
            if self.limit == 0 {
                self.next_cursor = Some(Cursor { topic_name: name, partition_index: 0 });
                return;
            }
            self.take(topic, usize::try_from(first).unwrap_or(0));
            if self.next_cursor.is_some() {
                return;
            }
        }
    }

    fn take(&mut self, topic: &Topic, first: usize) {
        let leading = Leading::of(self.context, topic);
        let described =
            topic.partitions.iter().enumerate().skip(first).take(self.limit).map(|(index, partition)| {
                let leads = leading.takes_writes(index as i32, partition);
                DescribeTopicPartitionsResponsePartition {
                    error_code: if leads.is_known { 0 } else { ErrorCode::LeaderNotAvailable.code() },
                    partition_index: index as i32,
                    leader_id: leads.leader.0,
                    leader_epoch: partition.leader_epoch.0,
                    replica_nodes: partition.replicas.iter().map(|node| node.0).collect(),
                    isr_nodes: partition.isr.iter().map(|node| node.0).collect(),
                    eligible_leader_replicas: Some(Vec::new()),
                    last_known_elr: Some(Vec::new()),
                    offline_replicas: leads.offline,
                }
            });
        let partitions: Vec<_> = described.collect();
        self.limit -= partitions.len();
        let next = first + partitions.len();
        if next < topic.partitions.len() {
            self.next_cursor = Some(Cursor { topic_name: topic.name.clone(), partition_index: next as i32 });
        }
        self.topics.push(DescribeTopicPartitionsResponseTopic {
            error_code: 0,
            name: Some(topic.name.clone()),
            topic_id: topic.id,
            is_internal: topics::is_internal(&topic.name),
            partitions,
            topic_authorized_operations: operations::TOPIC,
        });
    }
}

fn failed(name: ByteString, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: code.code(),
        is_internal: topics::is_internal(&name),
        name: Some(name),
        topic_authorized_operations: operations::NOT_ASKED,
        ..Default::default()
    }
}
