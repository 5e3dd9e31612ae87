//! DescribeQuorum: who votes about the metadata, and how far each is (KIP-836). On one node that is the node itself.

use bytestring::ByteString;
use thalweg_protocol::messages::describe_quorum::{
    DescribeQuorumRequest, DescribeQuorumResponse, Listener, Node, ReplicaState, ResponsePartitionData,
    ResponseTopicData,
};
use thalweg_protocol::{ErrorCode, Uuid};

use super::RequestContext;

/// The name by which Kafka's tools ask for the log of the metadata. It has one partition.
const METADATA_TOPIC: &str = "__cluster_metadata";

pub(crate) fn handle(context: &RequestContext, request: &DescribeQuorumRequest) -> DescribeQuorumResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions =
            topic.partitions.iter().map(|partition| match (&*topic.topic_name, partition.partition_index) {
                (METADATA_TOPIC, 0) => metadata(context),
                (_, partition_index) => ResponsePartitionData {
                    partition_index,
                    error_code: ErrorCode::UnknownTopicOrPartition.code(),
                    error_message: Some(ErrorCode::UnknownTopicOrPartition.message().into()),
                    ..Default::default()
                },
            });
        ResponseTopicData { topic_name: topic.topic_name.clone(), partitions: partitions.collect() }
    });
    let nodes = match context.version {
        ..2 => Vec::new(),
        _ => nodes(context),
    };
    DescribeQuorumResponse { topics: topics.collect(), nodes, ..Default::default() }
}

/// The answer that refuses the request.
pub(crate) fn refuse(context: &RequestContext, code: ErrorCode) -> DescribeQuorumResponse {
    let error_message = (context.version >= 2).then(|| code.message().into());
    DescribeQuorumResponse { error_code: code.code(), error_message, ..Default::default() }
}

fn metadata(context: &RequestContext) -> ResponsePartitionData {
    let state = context.core.controller.state();
    let node = context.core.node;
    let registered = state.node(node);
    let end = state.offset().0 + 1;
    let now_ms = context.core.partitions.logs().directory().environment().clock.now_ms();
    ResponsePartitionData {
        partition_index: 0,
        leader_id: node.0,
        // Each start of the node is a term of its own.
        leader_epoch: registered.map_or(0, |node| i32::try_from(node.epoch.0).unwrap_or(i32::MAX)),
        high_watermark: end,
        current_voters: vec![ReplicaState {
            replica_id: node.0,
            replica_directory_id: match context.version {
                ..2 => Uuid::ZERO,
                _ => registered.map_or(Uuid::ZERO, |node| node.uuid),
            },
            log_end_offset: end,
            last_fetch_timestamp: now_ms,
            last_caught_up_timestamp: now_ms,
        }],
        ..Default::default()
    }
}

fn nodes(context: &RequestContext) -> Vec<Node> {
    let state = context.core.controller.state();
    let nodes = state.nodes().map(|node| Node {
        node_id: node.id.0,
        listeners: vec![Listener {
            name: ByteString::from_static("PLAINTEXT"),
            host: node.host.clone(),
            port: node.port,
        }],
    });
    nodes.collect()
}
