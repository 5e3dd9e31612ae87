//! Metadata: which topics there are, and where their partitions are.

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_controller::{ClusterState, Partition, Topic};
use thalweg_protocol::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker,
    MetadataResponsePartition, MetadataResponseTopic,
};
use thalweg_protocol::{ErrorCode, NodeId};

use super::RequestContext;
use crate::operations;
use crate::partitions::HeldTopic;
use crate::server::Answer;
use crate::topics;

pub(crate) fn begin(context: &RequestContext, request: MetadataRequest) -> Answer {
    let missing = missing_topics(context, &request);
    if missing.is_empty() {
        return Answer::now(answer(context, &request, &[]));
    }
    let context = context.clone();
    Answer::Blocks(Box::pin(async move {
        let mut failures = Vec::new();
        for name in missing {
            let topic = topics::new_topic(&context.core.config, name.clone());
            if let Err(refusal) = topics::ensure(&context.core.controller, topic).await {
                failures.push((name, not_made(refusal.code)));
            }
        }
        Answer::now(answer(&context, &request, &failures))
    }))
}

/// The answer that refuses all topics that are asked for.
pub(crate) fn refuse(request: &MetadataRequest, code: ErrorCode) -> MetadataResponse {
    let topics = request.topics.iter().flatten().map(|asked| MetadataResponseTopic {
        error_code: code.code(),
        name: Some(asked.name.clone().unwrap_or_default()),
        topic_id: asked.topic_id,
        ..Default::default()
    });
    MetadataResponse { error_code: code.code(), topics: topics.collect(), ..Default::default() }
}

/// The topics that are to be made because they are asked for and are not there.
fn missing_topics(context: &RequestContext, request: &MetadataRequest) -> Vec<ByteString> {
    if !request.allow_auto_topic_creation || !context.core.config.auto_create_topics {
        return Vec::new();
    }
    let state = context.core.controller.state();
    let named = request.topics.iter().flatten().filter(|asked| asked.topic_id.is_zero());
    let mut missing: Vec<ByteString> =
        named.filter_map(|asked| asked.name.clone()).filter(|name| state.topic(name).is_none()).collect();
    missing.sort_unstable();
    missing.dedup();
    // The names outlive the request in the metadata; its frame should not.
    missing.iter().map(|name| ByteString::from(name.to_string())).collect()
}

fn answer(
    context: &RequestContext,
    request: &MetadataRequest,
    failures: &[(ByteString, ErrorCode)],
) -> MetadataResponse {
    let state = context.core.controller.state();
    let with_operations = request.include_topic_authorized_operations;
    let topics = match &request.topics {
        // In version 0 an empty list asks for everything, later it asks for nothing.
        Some(asked) if !(asked.is_empty() && context.version == 0) => {
            asked.iter().map(|asked| asked_topic(context, &state, asked, failures, with_operations)).collect()
        }
        _ => state.topics().map(|topic| describe(context, topic, with_operations)).collect(),
    };
    MetadataResponse {
        brokers: brokers(&state),
        cluster_id: Some(state.cluster_id().to_string().into()),
        controller_id: context.core.node.0,
        topics,
        cluster_authorized_operations: match request.include_cluster_authorized_operations {
            true => operations::CLUSTER,
            false => operations::NOT_ASKED,
        },
        ..Default::default()
    }
}

fn brokers(state: &ClusterState) -> Vec<MetadataResponseBroker> {
    let live = state.nodes().filter(|node| !node.fenced);
    let brokers = live.map(|node| MetadataResponseBroker {
        node_id: node.id.0,
        host: node.host.clone(),
        port: i32::from(node.port),
        rack: node.rack.clone(),
    });
    brokers.collect()
}

fn asked_topic(
    context: &RequestContext,
    state: &ClusterState,
    asked: &MetadataRequestTopic,
    failures: &[(ByteString, ErrorCode)],
    with_operations: bool,
) -> MetadataResponseTopic {
    let (found, code) = if asked.topic_id.is_zero() {
        let name = asked.name.clone().unwrap_or_default();
        let failed = failures.iter().find(|(failed, _)| *failed == name).map(|&(_, code)| code);
        (state.topic(&name), failed.unwrap_or_else(|| unknown_name(&name)))
    } else {
        (state.topic_by_id(asked.topic_id), ErrorCode::UnknownTopicId)
    };
    match found {
        Some(topic) => describe(context, topic, with_operations),
        None => failed(asked, context.version, code),
    }
}

/// Why a topic is not there that was to be made. Clients look again for one that has no leader yet; not all of them know what
/// to make of an error of the metadata here.
fn not_made(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::NotController | ErrorCode::RequestTimedOut => ErrorCode::LeaderNotAvailable,
        other => other,
    }
}

/// Why there is no topic of this name.
pub(super) fn unknown_name(name: &ByteString) -> ErrorCode {
    if thalweg_controller::check_topic_name(name).is_err() {
        ErrorCode::InvalidTopicException
    } else {
        ErrorCode::UnknownTopicOrPartition
    }
}

fn failed(asked: &MetadataRequestTopic, version: i16, code: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: code.code(),
        // A name that is not known is null from version 12 and empty before.
        name: asked.name.clone().or_else(|| (version < 12).then(ByteString::new)),
        topic_id: asked.topic_id,
        topic_authorized_operations: operations::NOT_ASKED,
        ..Default::default()
    }
}

fn describe(context: &RequestContext, topic: &Arc<Topic>, with_operations: bool) -> MetadataResponseTopic {
    let leading = Leading::of(context, topic);
    let partitions = topic.partitions.iter().enumerate().map(|(index, partition)| {
        let leads = leading.takes_writes(index as i32, partition);
        MetadataResponsePartition {
            error_code: if leads.is_known {
                ErrorCode::None.code()
            } else {
                ErrorCode::LeaderNotAvailable.code()
            },
            partition_index: index as i32,
            leader_id: leads.leader.0,
            leader_epoch: partition.leader_epoch.0,
            replica_nodes: ids(&partition.replicas),
            isr_nodes: ids(&partition.isr),
            offline_replicas: leads.offline,
        }
    });
    let is_held = leading.held.is_some();
    MetadataResponseTopic {
        error_code: if is_held { 0 } else { ErrorCode::LeaderNotAvailable.code() },
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topics::is_internal(&topic.name),
        partitions: if is_held { partitions.collect() } else { Vec::new() },
        topic_authorized_operations: if with_operations { operations::TOPIC } else { operations::NOT_ASKED },
    }
}

/// Who leads the partitions of a topic, as clients are told. A partition is given a leader only once that takes writes: a
/// producer that sends too early would have some of its first batches refused and later ones taken.
pub(super) struct Leading {
    node: NodeId,
    held: Option<Arc<HeldTopic>>,
}

/// Who leads one partition.
pub(super) struct Leads {
    /// Whether there is a leader that takes writes.
    pub(super) is_known: bool,
    pub(super) leader: NodeId,
    pub(super) offline: Vec<i32>,
}

impl Leading {
    pub(super) fn of(context: &RequestContext, topic: &Topic) -> Self {
        Self { node: context.core.node, held: context.core.partitions.topic_by_id(topic.id).ok() }
    }

    pub(super) fn takes_writes(&self, index: i32, partition: &Partition) -> Leads {
        let is_here = self.held.as_ref().is_some_and(|held| held.partition(index).is_some());
        match partition.leader != self.node || is_here {
            true => Leads { is_known: true, leader: partition.leader, offline: Vec::new() },
            false => Leads { is_known: false, leader: NodeId::NONE, offline: vec![self.node.0] },
        }
    }
}

fn ids(nodes: &[NodeId]) -> Vec<i32> {
    nodes.iter().map(|node| node.0).collect()
}
