//! Members of share groups come and go.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use thalweg_protocol::Uuid;

use super::assign::assign;
use super::*;
use crate::group::consumer::TopicIdPartition;

#[test]
fn every_partition_has_a_member_and_every_member_a_partition() {
    let (t, u) = (Uuid([1; 16]), Uuid([2; 16]));
    let check = |members: &[(&str, &[(Uuid, i32)])], expected: &[&[(Uuid, i32)]]| {
        let members: BTreeMap<_, _> = members
            .iter()
            .map(|(id, read)| (ByteString::from(*id), read.iter().copied().collect()))
            .collect();
        let expected: Vec<Assignment> = expected
            .iter()
            .map(|target| target.iter().map(|(id, at)| TopicIdPartition::new(*id, *at)).collect())
            .collect();
        assert_eq!(assign(&members).into_values().collect::<Vec<_>>(), expected, "{members:?}");
    };
    check(&[("a", &[(t, 3)])], &[&[(t, 0), (t, 1), (t, 2)]]);
    check(&[("a", &[(t, 3)]), ("b", &[(t, 3)])], &[&[(t, 0), (t, 2)], &[(t, 1)]]);
    check(&[("a", &[(t, 2)]), ("b", &[(t, 2)]), ("c", &[(t, 2)])], &[&[(t, 0)], &[(t, 1)], &[(t, 0)]]);
    // Topics of one partition each go to different members first.
    check(&[("a", &[(t, 1), (u, 1)]), ("b", &[(u, 1)])], &[&[(t, 0), (u, 0)], &[(u, 0)]]);
    check(&[("a", &[(t, 0)]), ("b", &[])], &[&[], &[]]);
}

proptest! {
    #[test]
    fn assignments_are_even(
        members in prop::collection::btree_map("[a-e]{1,2}", prop::collection::btree_set(0u8..4, 0..4), 0..12),
        sizes in prop::array::uniform4(0i32..9),
    ) {
        let members: BTreeMap<ByteString, BTreeMap<Uuid, i32>> = members
            .into_iter()
            .map(|(id, topics)| {
                let topics = topics.into_iter().map(|at| (Uuid([at; 16]), sizes[usize::from(at)]));
                (ByteString::from(id), topics.collect())
            })
            .collect();
        let targets = assign(&members);
        for (topic, size) in (0u8..4).map(|at| (Uuid([at; 16]), sizes[usize::from(at)])) {
            let readers: Vec<_> = members.iter().filter(|(_, read)| read.contains_key(&topic)).collect();
            let of = |id: &ByteString| targets[id].iter().filter(|at| at.topic_id == topic).count();
            let counts: BTreeSet<usize> = readers.iter().map(|(id, _)| of(id)).collect();
            if let (Some(fewest), Some(most)) = (counts.first(), counts.last()) {
                prop_assert!(most - fewest <= 1, "of topic {:?}: {:?}", topic, counts);
            }
            let assigned: BTreeSet<i32> = targets.values().flatten()
                .filter(|at| at.topic_id == topic).map(|at| at.partition).collect();
            let expected = if readers.is_empty() { 0 } else { size as usize };
            prop_assert_eq!(assigned.len(), expected);
        }
    }
}
