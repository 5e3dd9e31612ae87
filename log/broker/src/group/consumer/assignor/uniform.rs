//! As many partitions for everybody, and as few moves as that allows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytestring::ByteString;
use thalweg_protocol::Uuid;

use super::{Spec, Subscriber};
use crate::group::consumer::{Assignment, TopicIdPartition};

/// How many times partitions are moved on to make loads more alike, where members read different topics. More than any
/// group of hundreds of members needs; beyond it the assignment is right, only less even.
const MOST_MOVES: usize = 10_000;

/// Assigns so that loads differ as little as what the members read allows, and so that everybody keeps what it has as far
/// as that allows.
pub(super) fn assign(spec: &Spec<'_>) -> BTreeMap<ByteString, Assignment> {
    let mut readers = spec.members.values();
    let first = readers.next().map(|member| &member.topics);
    let all_alike = readers.all(|member| Some(&member.topics) == first);
    let mut plan = Plan::new(spec);
    if all_alike {
        plan.trim_to_quota();
    }
    plan.place_the_rest();
    if !all_alike {
        plan.even_out();
    }
    plan.finish()
}

struct Plan<'a> {
    ids: Vec<&'a str>,
    members: Vec<&'a Subscriber<'a>>,
    /// By the place of the member in `members`.
    assigned: Vec<Assignment>,
    unassigned: BTreeSet<TopicIdPartition>,
    /// Who reads each topic, by place.
    readers: BTreeMap<Uuid, Vec<usize>>,
}

impl<'a> Plan<'a> {
    /// Everybody has what it had, as far as that exists, is read and is nobody else's.
    fn new(spec: &'a Spec<'_>) -> Self {
        let ids: Vec<_> = spec.members.keys().copied().collect();
        let members: Vec<_> = spec.members.values().collect();
        let mut readers: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
        for (at, member) in members.iter().enumerate() {
            for topic_id in &member.topics {
                readers.entry(*topic_id).or_default().push(at);
            }
        }
        let mut unassigned = BTreeSet::new();
        for (&topic_id, &partitions) in &spec.topics {
            if readers.contains_key(&topic_id) {
                unassigned.extend((0..partitions).map(|at| TopicIdPartition::new(topic_id, at)));
            }
        }
        let mut assigned = Vec::with_capacity(members.len());
        for member in &members {
            let reads = |partition: &&TopicIdPartition| member.topics.contains(&partition.topic_id);
            let kept = member.held.iter().filter(reads).copied();
            assigned.push(kept.filter(|partition| unassigned.remove(partition)).collect());
        }
        Self { ids, members, assigned, unassigned, readers }
    }

    /// Where all read the same, everybody keeps no more than its share. Of those that have more, the first keep one of the
    /// odd ones.
    fn trim_to_quota(&mut self) {
        let count = self.members.len().max(1);
        let total = self.unassigned.len() + self.assigned.iter().map(Assignment::len).sum::<usize>();
        let (share, mut odd) = (total / count, total % count);
        for assigned in &mut self.assigned {
            let mut quota = share;
            if assigned.len() > share && odd > 0 {
                (quota, odd) = (share + 1, odd - 1);
            }
            while assigned.len() > quota {
                self.unassigned.extend(assigned.pop_last());
            }
        }
    }

    /// Gives what nobody has to whoever reads it and has least; topics that few read come first.
    fn place_the_rest(&mut self) {
        let mut rest: Vec<_> = std::mem::take(&mut self.unassigned).into_iter().collect();
        rest.sort_by_key(|partition| (self.readers[&partition.topic_id].len(), *partition));
        // By load, for each topic anew: within a topic the loads of its readers change by what is placed here only.
        for partitions in rest.chunk_by(|a, b| a.topic_id == b.topic_id) {
            let readers = &self.readers[&partitions[0].topic_id];
            let mut by_load: BTreeSet<(usize, usize)> =
                readers.iter().map(|&at| (self.assigned[at].len(), at)).collect();
            for partition in partitions {
                let Some((load, at)) = by_load.pop_first() else { break };
                self.assigned[at].insert(*partition);
                by_load.insert((load + 1, at));
            }
        }
    }

    /// Moves partitions on, from one reader of a topic to the next, as long as somebody at the one end of such a chain has
    /// two more than somebody at the other end. When there is no such chain left, no assignment is more even.
    fn even_out(&mut self) {
        let mut moves = 0;
        // Whoever cannot be relieved can still not be when others have been: nothing that it reaches was part of that.
        let mut fixed = BTreeSet::new();
        while moves < MOST_MOVES {
            let heaviest = (0..self.members.len()).filter(|at| !fixed.contains(at));
            let Some(from) = heaviest.max_by_key(|&at| (self.assigned[at].len(), std::cmp::Reverse(at)))
            else {
                return;
            };
            match self.chain_from(from) {
                Some(chain) => {
                    moves += chain.len();
                    for (giver, partition, taker) in chain {
                        self.assigned[giver].remove(&partition);
                        self.assigned[taker].insert(partition);
                    }
                }
                None => {
                    fixed.insert(from);
                }
            }
        }
    }

    /// The shortest chain of moves from `from` to somebody who has at least two partitions less.
    fn chain_from(&self, from: usize) -> Option<Vec<(usize, TopicIdPartition, usize)>> {
        let most = self.assigned[from].len().checked_sub(2)?;
        let mut came_by: BTreeMap<usize, (usize, TopicIdPartition)> = BTreeMap::new();
        let mut seen_topics = BTreeSet::new();
        let mut queue = VecDeque::from([from]);
        while let Some(giver) = queue.pop_front() {
            for partition in &self.assigned[giver] {
                // Whoever reads the topic has been reached by the first who gave of it.
                if !seen_topics.insert(partition.topic_id) {
                    continue;
                }
                for &taker in &self.readers[&partition.topic_id] {
                    if taker == from || came_by.contains_key(&taker) {
                        continue;
                    }
                    came_by.insert(taker, (giver, *partition));
                    if self.assigned[taker].len() <= most {
                        return Some(Self::chain_to(taker, from, &came_by));
                    }
                    queue.push_back(taker);
                }
            }
        }
        None
    }

    fn chain_to(
        taker: usize,
        from: usize,
        came_by: &BTreeMap<usize, (usize, TopicIdPartition)>,
    ) -> Vec<(usize, TopicIdPartition, usize)> {
        let mut chain = Vec::new();
        let mut at = taker;
        while at != from
            && let Some(&(giver, partition)) = came_by.get(&at)
        {
            chain.push((giver, partition, at));
            at = giver;
        }
        chain
    }

    fn finish(self) -> BTreeMap<ByteString, Assignment> {
        self.ids.into_iter().map(ByteString::from).zip(self.assigned).collect()
    }
}
