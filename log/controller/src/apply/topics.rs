//! Creating and deleting topics, adding partitions.

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::{NodeId, Uuid};

use super::{configs, repeated};
use crate::command::{
    CreatePartitions, CreateTopics, DeleteTopics, ManualPartition, MorePartitions, NewTopic, Results,
    TopicRef,
};
use crate::election;
use crate::limits;
use crate::placement::{self, Order};
use crate::rejection::{AssignmentFault, Rejection};
use crate::state::ClusterState;
use crate::topic::{Partition, Topic};
use crate::topic_name;

/// The id of the metadata log itself, where others keep it as a topic.
const METADATA_TOPIC_ID: Uuid = Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/// How many more partitions the command may create.
struct Budget(usize);

pub(super) fn create(state: &mut ClusterState, command: &CreateTopics) -> Results<Arc<Topic>> {
    let repeated = repeated(command.topics.iter().map(|topic| &topic.name));
    let mut budget = Budget(limits::MAX_PARTITIONS_PER_COMMAND);
    let mut create = |new: &NewTopic| {
        if repeated.contains(&new.name) {
            return Err(Rejection::DuplicateTopic { topic: new.name.to_string() });
        }
        create_topic(state, new, &mut budget)
    };
    command.topics.iter().map(&mut create).collect()
}

fn create_topic(
    state: &mut ClusterState,
    new: &NewTopic,
    budget: &mut Budget,
) -> Result<Arc<Topic>, Rejection> {
    topic_name::check(&new.name)?;
    if let Some(existing) = state.topic(&new.name) {
        // The same id again is the same proposal again, after an unknown outcome.
        return if existing.id == new.id {
            Ok(Arc::clone(existing))
        } else {
            Err(Rejection::TopicAlreadyExists { name: new.name.clone() })
        };
    }
    if let Some(existing) = state.colliding_name(&new.name) {
        return Err(Rejection::TopicNameCollides { name: new.name.clone(), existing: existing.clone() });
    }
    if new.id.is_zero() || new.id == METADATA_TOPIC_ID || state.topic_by_id(new.id).is_some() {
        return Err(Rejection::UnusableTopicId { id: new.id });
    }
    let replicas = if new.assignment.is_empty() {
        spread_new(state, new, budget)?
    } else {
        assigned_new(state, new, budget)?
    };
    let partitions = new_partitions(state, replicas);
    // A copy of its own: the name may be a slice of a whole request, which would stay in memory.
    let name = ByteString::from(new.name.to_string());
    configs::check_known(state, new.configs.keys())?;
    let topic = Topic::new(name, new.id, partitions, new.configs.clone())?;
    Ok(state.put_topic(topic))
}

fn spread_new(
    state: &ClusterState,
    new: &NewTopic,
    budget: &mut Budget,
) -> Result<Vec<Vec<NodeId>>, Rejection> {
    let count = match new.partitions {
        -1 => limits::DEFAULT_PARTITIONS,
        count if count >= 1 => count,
        count => return Err(Rejection::InvalidPartitionCount { count }),
    };
    let available = state.nodes().filter(|node| !node.fenced).count();
    let factor = match new.replication_factor {
        -1 => available.clamp(1, limits::DEFAULT_REPLICATION_FACTOR),
        factor if factor >= 1 => factor as usize,
        factor => return Err(Rejection::InvalidReplicationFactor { factor }),
    };
    if factor > available {
        return Err(Rejection::NotEnoughNodes { factor: factor as i16, available });
    }
    let count = budget.take(state, count as usize)?;
    Ok(spread(state, Order { topic: new.id, first: 0, count, factor }))
}

fn assigned_new(
    state: &ClusterState,
    new: &NewTopic,
    budget: &mut Budget,
) -> Result<Vec<Vec<NodeId>>, Rejection> {
    if new.partitions != -1 || new.replication_factor != -1 {
        return Err(Rejection::CountsBesideAssignment);
    }
    let count = budget.take(state, new.assignment.len())?;
    let mut assignment: Vec<&ManualPartition> = new.assignment.iter().collect();
    assignment.sort_by_key(|manual| manual.partition);
    let factor = assignment[0].replicas.len();
    for (at, manual) in (0..count as i32).zip(&assignment) {
        if manual.partition != at {
            let reason = AssignmentFault::NotConsecutive { first: 0 };
            return Err(Rejection::InvalidReplicaAssignment { partition: manual.partition, reason });
        }
        check_assignment(state, at, &manual.replicas, factor)?;
    }
    Ok(assignment.into_iter().map(|manual| manual.replicas.clone()).collect())
}

pub(super) fn add_partitions(state: &mut ClusterState, command: &CreatePartitions) -> Results<Arc<Topic>> {
    let repeated = repeated(command.topics.iter().map(|topic| &topic.name));
    let mut budget = Budget(limits::MAX_PARTITIONS_PER_COMMAND);
    let mut add = |more: &MorePartitions| {
        if repeated.contains(&more.name) {
            return Err(Rejection::DuplicateTopic { topic: more.name.to_string() });
        }
        add_to_topic(state, more, &mut budget)
    };
    command.topics.iter().map(&mut add).collect()
}

fn add_to_topic(
    state: &mut ClusterState,
    more: &MorePartitions,
    budget: &mut Budget,
) -> Result<Arc<Topic>, Rejection> {
    let topic = state.topic(&more.name).ok_or_else(|| Rejection::UnknownTopic { name: more.name.clone() })?;
    let mut topic = Topic::clone(topic);
    let current = topic.partitions.len();
    if more.count < 1 {
        return Err(Rejection::InvalidPartitionCount { count: more.count });
    }
    let wanted = more.count as usize;
    if wanted <= current {
        let current = current as i32;
        return Err(Rejection::NotMorePartitions { topic: more.name.clone(), current, count: more.count });
    }
    let factor = topic.replication_factor();
    let count = budget.take(state, wanted - current)?;
    let replicas = if more.assignment.is_empty() {
        let available = state.nodes().filter(|node| !node.fenced).count();
        if factor > available {
            return Err(Rejection::NotEnoughNodes { factor: factor as i16, available });
        }
        spread(state, Order { topic: topic.id, first: current, count, factor })
    } else {
        if more.assignment.len() != count {
            let reason = AssignmentFault::Count { found: more.assignment.len(), expected: count };
            return Err(Rejection::InvalidReplicaAssignment { partition: current as i32, reason });
        }
        for (partition, replicas) in (current as i32..).zip(&more.assignment) {
            check_assignment(state, partition, replicas, factor)?;
        }
        more.assignment.clone()
    };
    topic.partitions.extend(new_partitions(state, replicas));
    Ok(state.put_topic(topic))
}

pub(super) fn delete(state: &mut ClusterState, command: &DeleteTopics) -> Results<Arc<Topic>> {
    let found: Vec<Result<Arc<Topic>, Rejection>> =
        command.topics.iter().map(|topic| find(state, topic)).collect();
    let repeated = repeated(found.iter().flatten().map(|topic| topic.id));
    let mut delete = |topic: Arc<Topic>| {
        if repeated.contains(&topic.id) {
            return Err(Rejection::DuplicateTopic { topic: topic.name.to_string() });
        }
        state.remove_topic(&topic.name);
        Ok(topic)
    };
    found.into_iter().map(|found| found.and_then(&mut delete)).collect()
}

fn find(state: &ClusterState, topic: &TopicRef) -> Result<Arc<Topic>, Rejection> {
    match topic {
        TopicRef::Name(name) => {
            state.topic(name).cloned().ok_or_else(|| Rejection::UnknownTopic { name: name.clone() })
        }
        TopicRef::Id(id) => state.topic_by_id(*id).cloned().ok_or(Rejection::UnknownTopicId { id: *id }),
    }
}

impl Budget {
    /// Takes `count` partitions from what the command and the cluster have left.
    fn take(&mut self, state: &ClusterState, count: usize) -> Result<usize, Rejection> {
        let rest = self.0.checked_sub(count).ok_or(Rejection::TooManyPartitionsInRequest)?;
        let total = state.partition_count() + count as u64;
        if total > limits::MAX_PARTITIONS {
            return Err(Rejection::TooManyPartitions { count: total });
        }
        self.0 = rest;
        Ok(count)
    }
}

fn spread(state: &ClusterState, order: Order) -> Vec<Vec<NodeId>> {
    placement::spread(state.nodes().filter(|node| !node.fenced), order)
}

fn new_partitions(state: &ClusterState, replicas: Vec<Vec<NodeId>>) -> Vec<Arc<Partition>> {
    let partition = |replicas| Arc::new(election::initial(replicas, |node| state.is_live(node)));
    replicas.into_iter().map(partition).collect()
}

fn check_assignment(
    state: &ClusterState,
    partition: i32,
    replicas: &[NodeId],
    factor: usize,
) -> Result<(), Rejection> {
    let fault = |reason| Err(Rejection::InvalidReplicaAssignment { partition, reason });
    if replicas.is_empty() {
        return fault(AssignmentFault::Empty);
    }
    for (at, &node) in replicas.iter().enumerate() {
        if replicas[..at].contains(&node) {
            return fault(AssignmentFault::Repeated { node });
        }
        if state.node(node).is_none() {
            return fault(AssignmentFault::UnknownNode { node });
        }
    }
    if replicas.len() != factor {
        return fault(AssignmentFault::Uneven { found: replicas.len(), expected: factor });
    }
    if !replicas.iter().any(|&node| state.is_live(node)) {
        return fault(AssignmentFault::AllFenced);
    }
    Ok(())
}
