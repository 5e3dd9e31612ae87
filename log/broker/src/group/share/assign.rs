//! Who reads which partitions of a share group.

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_protocol::Uuid;

use crate::group::consumer::{Assignment, TopicIdPartition};

/// Spreads the partitions of each topic over the members that read it. Every partition has a member and every member a
/// partition: where there are fewer members each has several, where there are more each partition has several.
pub(super) fn assign(
    members: &BTreeMap<ByteString, BTreeMap<Uuid, i32>>,
) -> BTreeMap<ByteString, Assignment> {
    let mut topics: BTreeMap<Uuid, (i32, Vec<&ByteString>)> = BTreeMap::new();
    for (id, read) in members {
        for (topic, partitions) in read {
            topics.entry(*topic).or_insert((*partitions, Vec::new())).1.push(id);
        }
    }
    let mut targets: BTreeMap<ByteString, Assignment> =
        members.keys().map(|id| (id.clone(), Assignment::new())).collect();
    // Topics of few partitions begin with different members, so that not always the same ones have more.
    let mut turn = 0usize;
    for (topic, (partitions, readers)) in topics {
        let partitions = usize::try_from(partitions).unwrap_or(0);
        if partitions == 0 {
            continue;
        }
        for at in 0..partitions.max(readers.len()) {
            let reader = (at + turn) % readers.len();
            let partition = TopicIdPartition::new(topic, (at % partitions) as i32);
            if let Some(target) = readers.get(reader).and_then(|id| targets.get_mut(*id)) {
                target.insert(partition);
            }
        }
        turn += partitions;
    }
    targets
}
