//! Changing the ISR and the leader of single partitions.

use std::sync::Arc;

use super::nodes;
use crate::command::{ChangeIsr, ElectLeaders, IsrChange, PartitionRef, Results};
use crate::election;
use crate::isr_change;
use crate::rejection::Rejection;
use crate::state::ClusterState;
use crate::topic::{Partition, Topic};

pub(super) fn change_isr(state: &mut ClusterState, command: &ChangeIsr) -> Results<Arc<Partition>> {
    if let Err(rejection) = nodes::current(state, command.node, command.epoch) {
        return command.partitions.iter().map(|_| Err(rejection.clone())).collect();
    }
    let mut change = |change: &IsrChange| {
        let topic = state.topic_by_id(change.topic).ok_or(Rejection::UnknownTopicId { id: change.topic })?;
        let topic = Arc::clone(topic);
        let partition = find(&topic, change.partition)?;
        let next = isr_change::changed(partition, change, command.node, |node| state.is_live(node))?;
        Ok(put(state, &topic, change.partition, next))
    };
    command.partitions.iter().map(&mut change).collect()
}

pub(super) fn elect_leaders(state: &mut ClusterState, command: &ElectLeaders) -> Results<Arc<Partition>> {
    let mut elect = |PartitionRef { topic, partition }: &PartitionRef| {
        let topic = state.topic(topic).ok_or_else(|| Rejection::UnknownTopic { name: topic.clone() })?;
        let topic = Arc::clone(topic);
        let next = election::elected(find(&topic, *partition)?, command.kind, |node| state.is_live(node))?;
        Ok(put(state, &topic, *partition, next))
    };
    command.partitions.iter().map(&mut elect).collect()
}

fn find(topic: &Topic, partition: i32) -> Result<&Arc<Partition>, Rejection> {
    topic
        .partition(partition)
        .ok_or_else(|| Rejection::UnknownPartition { topic: topic.name.clone(), partition })
}

/// Puts `next` in the place of the partition that `find` has found.
fn put(state: &mut ClusterState, topic: &Topic, partition: i32, next: Partition) -> Arc<Partition> {
    let next = Arc::new(next);
    let mut topic = topic.clone();
    topic.partitions[partition as usize] = Arc::clone(&next);
    state.put_topic(topic);
    next
}
