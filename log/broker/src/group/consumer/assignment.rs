//! Partitions as consumer groups name them: by the ids of their topics.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_protocol::Uuid;

use super::GroupEpoch;

/// A partition of a topic that is known by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TopicIdPartition {
    pub(crate) topic_id: Uuid,
    pub(crate) partition: i32,
}

impl TopicIdPartition {
    /// Names partition `partition` of the topic with id `topic_id`.
    pub(crate) fn new(topic_id: Uuid, partition: i32) -> Self {
        Self { topic_id, partition }
    }
}

/// What a member has or shall have.
pub(crate) type Assignment = BTreeSet<TopicIdPartition>;

/// What a member has, and since which of its epochs (KIP-1251).
pub(crate) type Owned = BTreeMap<TopicIdPartition, GroupEpoch>;

/// Partitions topic by topic, as messages and records list them.
pub(crate) fn by_topic(
    partitions: impl IntoIterator<Item = TopicIdPartition>,
) -> impl Iterator<Item = (Uuid, Vec<i32>)> {
    let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
    for TopicIdPartition { topic_id, partition } in partitions {
        topics.entry(topic_id).or_default().push(partition);
    }
    topics.into_iter()
}

/// Partitions as messages and records list them, topic by topic, one by one.
pub(crate) fn one_by_one(
    topics: impl IntoIterator<Item = (Uuid, Vec<i32>)>,
) -> impl Iterator<Item = TopicIdPartition> {
    let each = |(topic_id, partitions): (Uuid, Vec<i32>)| {
        partitions.into_iter().map(move |at| TopicIdPartition::new(topic_id, at))
    };
    topics.into_iter().flat_map(each)
}
