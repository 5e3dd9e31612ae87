//! Nodes that come and go, and the producer ids they are given.

use std::sync::Arc;

use thalweg_protocol::{NodeId, Offset, ProducerId};

use super::change_partitions;
use crate::command::{AllocateProducerIds, FenceNode, ProducerIdBlock, RegisterNode, UnregisterNode};
use crate::election;
use crate::ids::NodeEpoch;
use crate::limits;
use crate::node::Node;
use crate::rejection::Rejection;
use crate::state::ClusterState;
use crate::topic_config::Durability;

pub(super) fn register(
    state: &mut ClusterState,
    offset: Offset,
    command: &RegisterNode,
) -> Result<Arc<Node>, Rejection> {
    let id = command.node;
    if id.0 < 0 {
        return Err(Rejection::InvalidNodeId { node: id });
    }
    if let Some(existing) = state.node(id)
        && existing.uuid != command.uuid
    {
        return Err(Rejection::NodeIdTaken { node: id, owner: existing.uuid });
    }
    let node = put_node(
        state,
        Node {
            id,
            uuid: command.uuid,
            host: command.host.clone(),
            port: command.port,
            rack: command.rack.clone(),
            epoch: NodeEpoch(offset.0),
            fenced: false,
        },
    );
    change_partitions(state, |state, topic, partition| {
        let concerned = partition.replicas.contains(&id);
        let durable = topic.config.durability == Durability::Durable;
        concerned.then(|| election::restarted(partition, id, durable, |node| state.is_live(node))).flatten()
    });
    Ok(node)
}

pub(super) fn unregister(state: &mut ClusterState, command: &UnregisterNode) -> Result<Arc<Node>, Rejection> {
    let node = Arc::clone(find(state, command.node)?);
    let partitions = state.topics().flat_map(|topic| &topic.partitions);
    let held = partitions.filter(|partition| partition.replicas.contains(&node.id)).count() as u64;
    if held > 0 {
        return Err(Rejection::NodeHoldsReplicas { node: node.id, partitions: held });
    }
    Arc::make_mut(&mut state.nodes).remove(&node.id);
    Ok(node)
}

pub(super) fn fence(state: &mut ClusterState, command: &FenceNode) -> Result<Arc<Node>, Rejection> {
    let node = current(state, command.node, command.epoch)?;
    if node.fenced == command.fenced {
        return Ok(Arc::clone(node));
    }
    let node = Node { fenced: command.fenced, ..Node::clone(node) };
    let (id, fenced) = (node.id, node.fenced);
    let node = put_node(state, node);
    change_partitions(state, |state, _, partition| {
        let is_live = |node| state.is_live(node);
        if !partition.replicas.contains(&id) {
            None
        } else if fenced {
            election::fenced(partition, id, is_live)
        } else {
            election::revived(partition, is_live)
        }
    });
    Ok(node)
}

pub(super) fn allocate_producer_ids(
    state: &mut ClusterState,
    command: &AllocateProducerIds,
) -> Result<ProducerIdBlock, Rejection> {
    current(state, command.node, command.epoch)?;
    let first = state.next_producer_id;
    let len = limits::PRODUCER_IDS_PER_BLOCK;
    let next = first.0.checked_add(i64::from(len)).ok_or(Rejection::Exhausted { what: "producer ids" })?;
    state.next_producer_id = ProducerId(next);
    Ok(ProducerIdBlock { first, len })
}

/// The node, if `epoch` is its current registration.
pub(super) fn current(state: &ClusterState, node: NodeId, epoch: NodeEpoch) -> Result<&Arc<Node>, Rejection> {
    let found = find(state, node)?;
    if found.epoch != epoch {
        return Err(Rejection::StaleNodeEpoch { node, epoch, current: found.epoch });
    }
    Ok(found)
}

fn find(state: &ClusterState, node: NodeId) -> Result<&Arc<Node>, Rejection> {
    state.node(node).ok_or(Rejection::UnknownNode { node })
}

fn put_node(state: &mut ClusterState, node: Node) -> Arc<Node> {
    let node = Arc::new(node);
    Arc::make_mut(&mut state.nodes).insert(node.id, Arc::clone(&node));
    node
}
