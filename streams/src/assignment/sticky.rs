//! The decision who runs what: balanced, and where state lies already.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::TaskId;

/// A thread of some instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The member's id.
    pub(super) member: String,
    /// The instance it belongs to.
    pub(super) process: String,
    /// What it ran last.
    pub(super) owned: BTreeSet<TaskId>,
    /// The tasks whose state lies in its instance's directory.
    pub(super) stored: BTreeSet<TaskId>,
}

/// Gives each task to one candidate. Nobody gets more than one task more than another, in all and of each
/// sub-topology. Within that, a task stays where it ran; else it goes to a thread of an instance that has
/// its state; else to whoever has room.
pub(super) fn assign(tasks: &[TaskId], candidates: &[Candidate]) -> BTreeMap<String, Vec<TaskId>> {
    let mut candidates: Vec<&Candidate> = candidates.iter().collect();
    candidates.sort_by(|a, b| (&a.process, &a.member).cmp(&(&b.process, &b.member)));
    let mut given: Vec<Vec<TaskId>> = vec![Vec::new(); candidates.len()];
    if candidates.is_empty() {
        return BTreeMap::new();
    }
    let mut parts: BTreeMap<u32, BTreeSet<TaskId>> = BTreeMap::new();
    for &task in tasks {
        parts.entry(task.subtopology).or_default().insert(task);
    }
    for part in parts.into_values() {
        assign_part(part, &candidates, &mut given);
    }
    let named = candidates.iter().zip(given);
    named
        .map(|(candidate, mut tasks)| {
            tasks.sort();
            (candidate.member.clone(), tasks)
        })
        .collect()
}

/// Shares out the tasks of one sub-topology.
fn assign_part(mut left: BTreeSet<TaskId>, candidates: &[&Candidate], given: &mut [Vec<TaskId>]) {
    let mut room = vec![left.len() / candidates.len(); candidates.len()];
    // What does not divide goes to those who have least; of these, to those who ran most of it.
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    let ran = |at: usize| left.iter().filter(|&&task| has_run(candidates[at], task)).count();
    order.sort_by_key(|&at| (given[at].len(), std::cmp::Reverse(ran(at)), at));
    for &at in &order[..left.len() % candidates.len()] {
        room[at] += 1;
    }
    for rule in [has_run, has_state, |_: &Candidate, _| true] {
        for (at, candidate) in candidates.iter().enumerate() {
            let wanted: Vec<TaskId> =
                left.iter().copied().filter(|&task| rule(candidate, task)).take(room[at]).collect();
            room[at] -= wanted.len();
            for task in wanted {
                left.remove(&task);
                given[at].push(task);
            }
        }
    }
}

fn has_run(candidate: &Candidate, task: TaskId) -> bool {
    candidate.owned.contains(&task)
}

fn has_state(candidate: &Candidate, task: TaskId) -> bool {
    candidate.stored.contains(&task)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(partitions: std::ops::Range<i32>) -> Vec<TaskId> {
        partitions.map(|partition| TaskId { subtopology: 0, partition }).collect()
    }

    fn candidate(process: &str, thread: u32, owned: &[i32], stored: &[i32]) -> Candidate {
        let set = |partitions: &[i32]| {
            partitions.iter().map(|&partition| TaskId { subtopology: 0, partition }).collect()
        };
        Candidate {
            member: format!("{process}{thread}"),
            process: process.into(),
            owned: set(owned),
            stored: set(stored),
        }
    }

    /// Shows who got which partitions.
    fn shown(assigned: &BTreeMap<String, Vec<TaskId>>) -> String {
        let show = |(member, tasks): (&String, &Vec<TaskId>)| {
            let partitions: Vec<_> = tasks.iter().map(|task| task.partition.to_string()).collect();
            format!("{member}:{}", partitions.join(","))
        };
        assigned.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tasks_stay_or_go_to_their_state() {
        for (members, expected) in [
            (vec![candidate("a", 0, &[], &[])], "a0:0,1,2,3"),
            (vec![candidate("a", 0, &[], &[]), candidate("a", 1, &[], &[])], "a0:0,1 a1:2,3"),
            (vec![candidate("a", 0, &[1, 2], &[]), candidate("b", 0, &[0, 3], &[])], "a0:1,2 b0:0,3"),
            (vec![candidate("a", 0, &[0, 1, 2, 3], &[]), candidate("b", 0, &[], &[])], "a0:0,1 b0:2,3"),
            (vec![candidate("a", 0, &[], &[]), candidate("b", 0, &[], &[0, 1, 2])], "a0:2,3 b0:0,1"),
            (
                vec![
                    candidate("a", 0, &[0, 1], &[0, 1]),
                    candidate("b", 0, &[2], &[2]),
                    candidate("c", 0, &[], &[3]),
                ],
                "a0:0,1 b0:2 c0:3",
            ),
        ] {
            assert_eq!(shown(&assign(&tasks(0..4), &members)), expected);
        }
        assert_eq!(assign(&tasks(0..4), &[]), BTreeMap::new());
    }

    #[test]
    fn every_task_is_given_once_and_nobody_has_two_more_than_another() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..500 {
            let mut tasks = tasks(0..random.i32(0..20));
            let second = (0..random.i32(0..20)).map(|partition| TaskId { subtopology: 1, partition });
            tasks.extend(second);
            let members = random.u32(1..6);
            let mut some = |_| -> Vec<i32> { (0..20).filter(|_| random.u8(..) < 60).collect() };
            let candidates: Vec<_> = (0..members)
                .map(|thread| candidate(["a", "b"][thread as usize % 2], thread, &some(0), &some(1)))
                .collect();
            let assigned = assign(&tasks, &candidates);
            let mut all: Vec<TaskId> = assigned.values().flatten().copied().collect();
            all.sort();
            assert_eq!(all, tasks);
            for part in [None, Some(0), Some(1)] {
                let is_in = |task: &&TaskId| part.is_none_or(|part| task.subtopology == part);
                let counts = || assigned.values().map(|tasks| tasks.iter().filter(is_in).count());
                assert!(counts().max() <= counts().min().map(|least| least + 1), "{assigned:?}");
            }
            let again: Vec<_> = candidates
                .iter()
                .map(|candidate| Candidate {
                    owned: assigned[&candidate.member].iter().copied().collect(),
                    ..candidate.clone()
                })
                .collect();
            assert_eq!(assign(&tasks, &again), assigned, "a second rebalance moves nothing");
        }
    }
}
