//! What assignments keep to, whatever the members read and had.

use std::collections::{BTreeMap, BTreeSet};

use bytestring::ByteString;
use proptest::prelude::*;
use thalweg_protocol::Uuid;

use super::{Assignor, Spec, Subscriber};
use crate::group::consumer::{Assignment, TopicIdPartition};

/// What each member reads, by its place; the topics are 0, 1, ….
#[derive(Clone, Debug)]
struct World {
    partitions: Vec<i32>,
    readers: Vec<BTreeSet<usize>>,
}

type Assigned = BTreeMap<ByteString, Assignment>;

fn topic(at: usize) -> Uuid {
    Uuid([at as u8 + 1; 16])
}

fn name(at: usize) -> String {
    format!("m{at:02}")
}

impl World {
    /// A world in which everybody reads all topics.
    fn alike(partitions: &[i32], members: usize) -> Self {
        let all = (0..partitions.len()).collect();
        Self { partitions: partitions.to_vec(), readers: vec![all; members] }
    }

    fn without(&self, member: usize) -> Self {
        let mut world = self.clone();
        world.readers[member].clear();
        world
    }

    /// Assigns to everybody who reads anything, after they had `held`.
    fn assign(&self, assignor: Assignor, held: &Assigned) -> Assigned {
        let nothing = Assignment::new();
        let names: Vec<_> = (0..self.readers.len()).map(name).collect();
        let members = names.iter().zip(&self.readers).filter(|(_, reads)| !reads.is_empty());
        let members = members.map(|(id, reads)| {
            let topics = reads.iter().map(|at| topic(*at)).collect();
            let held = held.get(id.as_str()).unwrap_or(&nothing);
            (id.as_str(), Subscriber { topics, held, instance_id: None })
        });
        let read: BTreeSet<usize> = self.readers.iter().flatten().copied().collect();
        let topics = read.into_iter().map(|at| (topic(at), self.partitions[at])).collect();
        assignor.assign(&Spec { members: members.collect(), topics })
    }

    fn check(&self, assigned: &Assigned) {
        let mut seen = BTreeSet::new();
        for (member, reads) in self.readers.iter().enumerate().filter(|(_, reads)| !reads.is_empty()) {
            for partition in &assigned[name(member).as_str()] {
                assert!(seen.insert(*partition), "{partition:?} is assigned twice");
                assert!(reads.iter().any(|at| topic(*at) == partition.topic_id), "{member} does not read it");
            }
        }
        let read: BTreeSet<usize> = self.readers.iter().flatten().copied().collect();
        let all = read.into_iter().flat_map(|at| {
            (0..self.partitions[at]).map(move |partition| TopicIdPartition::new(topic(at), partition))
        });
        assert_eq!(seen, all.collect::<BTreeSet<_>>(), "everything that is read is assigned");
    }

    /// Whether nobody could give one that another reads to that one, which has two less.
    fn check_even(&self, assigned: &Assigned) {
        for (giver, has) in assigned {
            for (taker, reads) in self.readers.iter().enumerate() {
                let Some(less) = assigned.get(name(taker).as_str()) else { continue };
                let could = has.iter().any(|one| reads.iter().any(|at| topic(*at) == one.topic_id));
                assert!(!could || has.len() <= less.len() + 1, "{giver} could give to {taker}: {assigned:?}");
            }
        }
    }
}

fn world() -> impl Strategy<Value = World> {
    let partitions = prop::collection::vec(0i32..12, 1..5);
    (partitions, 1usize..8, any::<bool>()).prop_flat_map(|(partitions, members, alike)| {
        let topics = partitions.len();
        let reads = prop::collection::btree_set(0..topics, 0..=topics);
        prop::collection::vec(reads, members).prop_map(move |readers| match alike {
            true => World::alike(&partitions, members),
            false => World { partitions: partitions.clone(), readers },
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn everything_is_assigned_once_to_somebody_who_reads_it(
        world in world(),
        before in world(),
        range in any::<bool>(),
    ) {
        let assignor = if range { Assignor::Range } else { Assignor::Uniform };
        let held = before.assign(assignor, &Assigned::new());
        let assigned = world.assign(assignor, &held);
        world.check(&assigned);
        prop_assert_eq!(&assigned, &world.assign(assignor, &held), "the same from the same");
        prop_assert_eq!(&assigned, &world.assign(assignor, &assigned), "nothing moves without a reason");
        if !range {
            world.check_even(&assigned);
        }
    }

    #[test]
    fn uniform_moves_no_more_than_it_must(
        partitions in prop::collection::vec(0i32..12, 1..5),
        members in 2usize..8,
        gone in any::<prop::sample::Index>(),
    ) {
        let all = World::alike(&partitions, members);
        let gone = gone.index(members);
        let without = all.without(gone);
        let before = all.assign(Assignor::Uniform, &Assigned::new());
        let after = without.assign(Assignor::Uniform, &before);
        for (member, has) in &after {
            prop_assert!(has.is_superset(&before[member]), "{} loses when another goes", member);
        }
        let back = all.assign(Assignor::Uniform, &after);
        for (member, has) in &after {
            prop_assert!(has.is_superset(&back[member]), "{} gets more when another comes", member);
        }
        let loads: Vec<_> = back.values().map(Assignment::len).collect();
        prop_assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1);
    }
}

fn row(at: usize, partitions: std::ops::Range<i32>) -> Vec<TopicIdPartition> {
    partitions.map(|partition| TopicIdPartition::new(topic(at), partition)).collect()
}

#[test]
fn range_gives_the_same_of_topics_that_are_alike() {
    let world = World::alike(&[5, 5], 2);
    let assigned = world.assign(Assignor::Range, &Assigned::new());
    for (member, partitions) in [("m00", 0..3), ("m01", 3..5)] {
        let expected: Assignment = row(0, partitions.clone()).into_iter().chain(row(1, partitions)).collect();
        assert_eq!(assigned[member], expected, "{member}");
    }
}

#[test]
fn range_goes_by_instance_ids_where_there_are_any() {
    let nothing = Assignment::new();
    let subscriber = |instance_id| Subscriber { topics: [topic(0)].into(), held: &nothing, instance_id };
    let topics = BTreeMap::from([(topic(0), 3)]);
    for (ids, expected) in [(["a", "b", "z"], ["a", "b"]), (["y", "x", "c"], ["y", "x"])] {
        let members =
            [(ids[0], subscriber(Some("1"))), (ids[1], subscriber(Some("2"))), (ids[2], subscriber(None))];
        let assigned = Assignor::Range.assign(&Spec { members: members.into(), topics: topics.clone() });
        for (at, member) in (0..).zip(expected) {
            assert_eq!(assigned[member], row(0, at..at + 1).into_iter().collect(), "{member} of {ids:?}");
        }
    }
}

#[test]
fn loads_become_even_by_chains_of_moves() {
    // The first reads topic 0 with the second, the second topic 1 with the third: relief has to pass through.
    let world = World { partitions: vec![2, 1], readers: vec![[0].into(), [0, 1].into(), [1].into()] };
    let held: Assigned = [
        (name(0).into(), row(0, 0..2).into_iter().collect()),
        (name(1).into(), row(1, 0..1).into_iter().collect()),
    ]
    .into();
    let assigned = world.assign(Assignor::Uniform, &held);
    world.check(&assigned);
    assert!(assigned.values().all(|has| has.len() == 1), "{assigned:?}");
}
