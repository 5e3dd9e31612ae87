//! The way of one member from what it has to what it shall have (KIP-848): first it gives up, then it gets.

use super::{Assignment, CurrentAssignment, GroupEpoch, MemberState, Owned, TopicIdPartition};

/// Where a member shall come to.
pub(super) struct Goal<'a> {
    /// The epoch of the targets.
    pub(super) epoch: GroupEpoch,
    /// What the member shall have, without the topics that it has given up to read since.
    pub(super) target: &'a Assignment,
    /// What the member says that it has; `None` when it says nothing of it.
    pub(super) owned: Option<&'a Assignment>,
}

/// The next step of a member on its way, or where it already is if it cannot go on. `is_free` tells whether nobody else
/// has a partition.
pub(super) fn reconcile(
    current: &CurrentAssignment,
    goal: &Goal<'_>,
    reads: impl Fn(TopicIdPartition) -> bool,
    is_free: impl Fn(TopicIdPartition) -> bool,
) -> CurrentAssignment {
    match current.state {
        MemberState::Stable if current.epoch == goal.epoch => current.clone(),
        MemberState::UnrevokedPartitions if goal.still_owns(&current.revoking) => {
            give_up_unread(current, reads)
        }
        MemberState::Stable
        | MemberState::UnrevokedPartitions
        | MemberState::UnreleasedPartitions
        | MemberState::Unknown => next(current, goal, is_free),
    }
}

impl Goal<'_> {
    /// Whether the member still has any of `revoking`, as far as it says.
    fn still_owns(&self, revoking: &Owned) -> bool {
        self.owned.is_none_or(|owned| owned.iter().any(|partition| revoking.contains_key(partition)))
    }
}

/// A member that is asked to give partitions up gives up those, too, whose topics it does not read any more.
fn give_up_unread(
    current: &CurrentAssignment,
    reads: impl Fn(TopicIdPartition) -> bool,
) -> CurrentAssignment {
    let mut next = current.clone();
    let (assigned, unread): (Owned, Owned) =
        std::mem::take(&mut next.assigned).into_iter().partition(|(partition, _)| reads(*partition));
    next.assigned = assigned;
    next.revoking.extend(unread);
    next
}

fn next(
    current: &CurrentAssignment,
    goal: &Goal<'_>,
    is_free: impl Fn(TopicIdPartition) -> bool,
) -> CurrentAssignment {
    let (mut assigned, revoking): (Owned, Owned) =
        current.assigned.clone().into_iter().partition(|(partition, _)| goal.target.contains(partition));
    if !revoking.is_empty() && goal.still_owns(&revoking) {
        return CurrentAssignment {
            state: MemberState::UnrevokedPartitions,
            assigned,
            revoking,
            ..current.clone()
        };
    }
    let mut waits = false;
    for partition in goal.target {
        if assigned.contains_key(partition) {
            continue;
        }
        if is_free(*partition) {
            assigned.insert(*partition, goal.epoch);
        } else {
            waits = true;
        }
    }
    let state = if waits { MemberState::UnreleasedPartitions } else { MemberState::Stable };
    CurrentAssignment { state, assigned, revoking: Owned::new(), ..current.in_epoch(goal.epoch) }
}
