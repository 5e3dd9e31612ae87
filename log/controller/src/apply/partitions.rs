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
    let mut edit = Edit { state, open: None };
    let mut change = |change: &IsrChange| {
        let topic = edit.state.topic_by_id(change.topic);
        let topic = topic.cloned().ok_or(Rejection::UnknownTopicId { id: change.topic })?;
        edit.partition(&topic, change.partition, |state, partition| {
            isr_change::changed(partition, change, command.node, |node| state.is_live(node))
        })
    };
    let results = command.partitions.iter().map(&mut change).collect();
    edit.close();
    results
}

pub(super) fn elect_leaders(state: &mut ClusterState, command: &ElectLeaders) -> Results<Arc<Partition>> {
    let mut edit = Edit { state, open: None };
    let mut elect = |PartitionRef { topic, partition }: &PartitionRef| {
        let found = edit.state.topic(topic);
        let found = found.cloned().ok_or_else(|| Rejection::UnknownTopic { name: topic.clone() })?;
        edit.partition(&found, *partition, |state, partition| {
            election::elected(partition, command.kind, |node| state.is_live(node))
        })
    };
    let results = command.partitions.iter().map(&mut elect).collect();
    edit.close();
    results
}

/// Changes partitions one after the other. A topic is copied once for all changes to it that follow one
/// another: when a node fails, one command changes thousands of partitions.
struct Edit<'a> {
    state: &'a mut ClusterState,
    /// The topic that is being changed, which the state does not have yet.
    open: Option<Topic>,
}

impl Edit<'_> {
    /// Puts what `decide` makes of a partition in its place.
    fn partition(
        &mut self,
        topic: &Arc<Topic>,
        index: i32,
        decide: impl FnOnce(&ClusterState, &Partition) -> Result<Partition, Rejection>,
    ) -> Result<Arc<Partition>, Rejection> {
        if self.open.as_ref().is_none_or(|open| open.id != topic.id) {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| Topic::clone(topic));
        let place = usize::try_from(index).ok().and_then(|index| open.partitions.get_mut(index));
        let unknown = || Rejection::UnknownPartition { topic: topic.name.clone(), partition: index };
        let place = place.ok_or_else(unknown)?;
        *place = Arc::new(decide(self.state, place)?);
        Ok(Arc::clone(place))
    }

    fn close(&mut self) {
        if let Some(topic) = self.open.take() {
            self.state.put_topic(topic);
        }
    }
}
