//! FindCoordinator: which node looks after a group or a transactional id. Makes the internal topic that keeps them
//! when it is first asked for.

use bytestring::ByteString;
use thalweg_controller::Node;
use thalweg_protocol::messages::find_coordinator::{
    Coordinator, FindCoordinatorRequest, FindCoordinatorResponse,
};
use thalweg_protocol::{ErrorCode, TopicPartition, Uuid};

use super::RequestContext;
use crate::coordinator::partition_for;
use crate::topics::{self, CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
/// That of a share-partition, whose key is `group:topic id:partition` (KIP-932).
const SHARE: i8 = 2;

/// From this version on, the coordinators of share-partitions can be asked for.
const FIRST_WITH_SHARES: i16 = 6;

/// From this version on, several keys are asked for at once (KIP-699).
const FIRST_BATCHED: i16 = 4;

pub(crate) async fn handle(
    context: RequestContext,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let topic = topic_of(request.key_type).and_then(|topic| match topic {
        SHARE_GROUP_STATE if context.version < FIRST_WITH_SHARES => Err(ErrorCode::InvalidRequest),
        topic => Ok(topic),
    });
    if let Ok(topic) = topic {
        ensure(&context, topic).await;
    }
    let find = |key: &ByteString| {
        let topic = topic?;
        if topic == SHARE_GROUP_STATE && !is_share_key(key) {
            return Err(ErrorCode::InvalidRequest);
        }
        find(&context, topic, key)
    };
    if context.version >= FIRST_BATCHED {
        let coordinators = request.coordinator_keys.into_iter().map(|key| described(find(&key), key));
        FindCoordinatorResponse { coordinators: coordinators.collect(), ..Default::default() }
    } else {
        single(described(find(&request.key), request.key))
    }
}

/// Whether the request asks for the coordinator of groups.
pub(crate) fn is_about_group(request: &FindCoordinatorRequest) -> bool {
    matches!(request.key_type, GROUP | SHARE)
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(
    context: &RequestContext,
    request: FindCoordinatorRequest,
    code: ErrorCode,
) -> FindCoordinatorResponse {
    if context.version >= FIRST_BATCHED {
        let coordinators = request.coordinator_keys.into_iter().map(|key| described(Err(code), key));
        FindCoordinatorResponse { coordinators: coordinators.collect(), ..Default::default() }
    } else {
        single(described(Err(code), request.key))
    }
}

fn topic_of(key_type: i8) -> Result<&'static str, ErrorCode> {
    match key_type {
        GROUP => Ok(CONSUMER_OFFSETS),
        TRANSACTION => Ok(TRANSACTION_STATE),
        SHARE => Ok(SHARE_GROUP_STATE),
        _ => Err(ErrorCode::InvalidRequest),
    }
}

/// Whether `key` names a share-partition. The group may have colons in its name.
fn is_share_key(key: &str) -> bool {
    let mut parts = key.rsplitn(3, ':');
    let is_partition =
        parts.next().is_some_and(|partition| partition.parse::<i32>().is_ok_and(|partition| partition >= 0));
    let is_topic_id = parts.next().is_some_and(|id| Uuid::parse(id).is_some());
    is_partition && is_topic_id && parts.next().is_some_and(|group| !group.is_empty())
}

/// Makes the topic unless it is there. That it could not be made shows in the look-up that follows.
///
/// A topic that another request is about to make is in the metadata before this node holds it: then the proposal
/// comes too late, and its answer after that.
pub(crate) async fn ensure(context: &RequestContext, name: &'static str) {
    if context.core.partitions.topic(name).is_ok() {
        return;
    }
    let topic = topics::new_topic(&context.core.config, ByteString::from_static(name));
    if let Err(refusal) = topics::ensure(&context.core.controller, topic).await {
        tracing::warn!(topic = name, code = refusal.code.name(), "cannot make the internal topic");
    }
}

fn find(context: &RequestContext, topic: &str, key: &str) -> Result<Node, ErrorCode> {
    let state = context.core.controller.state();
    let topic = state.topic(topic).ok_or(ErrorCode::CoordinatorNotAvailable)?;
    let index = partition_for(key, topic.partitions.len() as i32);
    let partition = topic.partition(index).ok_or(ErrorCode::CoordinatorNotAvailable)?;
    let node = state.node(partition.leader).ok_or(ErrorCode::CoordinatorNotAvailable)?;
    if node.id == context.core.node {
        let id = TopicPartition::new(topic.name.clone(), index);
        context.core.partitions.leader(&id).map_err(|_| ErrorCode::CoordinatorNotAvailable)?;
    }
    Ok(Node::clone(node))
}

fn described(found: Result<Node, ErrorCode>, key: ByteString) -> Coordinator {
    match found {
        Ok(node) => Coordinator {
            key,
            node_id: node.id.0,
            host: node.host,
            port: i32::from(node.port),
            error_code: ErrorCode::None.code(),
            error_message: None,
        },
        Err(code) => Coordinator {
            key,
            node_id: -1,
            host: ByteString::new(),
            port: -1,
            error_code: code.code(),
            error_message: Some(ByteString::from_static(code.message())),
        },
    }
}

fn single(coordinator: Coordinator) -> FindCoordinatorResponse {
    FindCoordinatorResponse {
        error_code: coordinator.error_code,
        error_message: coordinator.error_message,
        node_id: coordinator.node_id,
        host: coordinator.host,
        port: coordinator.port,
        ..Default::default()
    }
}
