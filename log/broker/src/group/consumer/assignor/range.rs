//! Partitions side by side, so that members get the same ones of topics that are like each other.

use std::collections::BTreeMap;

use bytestring::ByteString;

use super::Spec;
use crate::group::consumer::{Assignment, TopicIdPartition};

/// Gives each topic's partitions to its readers in rows; the first readers get one more where it does not come out
/// even. Readers come in the order of their instance ids, and then of their member ids: so static members that are
/// started anew get what they had.
pub(super) fn assign(spec: &Spec<'_>) -> BTreeMap<ByteString, Assignment> {
    let mut assigned: BTreeMap<ByteString, Assignment> =
        spec.members.keys().map(|id| (ByteString::from(*id), Assignment::new())).collect();
    let mut order: Vec<_> = spec.members.iter().collect();
    order.sort_by_key(|(id, member)| (member.instance_id.is_none(), member.instance_id, **id));
    for (&topic_id, &partitions) in &spec.topics {
        let readers: Vec<_> = order.iter().filter(|(_, member)| member.topics.contains(&topic_id)).collect();
        let count = i32::try_from(readers.len()).unwrap_or(i32::MAX);
        if count == 0 {
            continue;
        }
        let (each, more) = (partitions / count, partitions % count);
        let mut next = 0;
        for (at, (id, _)) in (0..).zip(readers) {
            let end = next + each + i32::from(at < more);
            let row = (next..end).map(|partition| TopicIdPartition::new(topic_id, partition));
            assigned.get_mut(**id).expect("every member is there").extend(row);
            next = end;
        }
    }
    assigned
}
