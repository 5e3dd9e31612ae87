//! Who leads a partition. Pure decisions: each gives the partition as it should be.
//!
//! The leader is the first live replica, in the order of the replicas, among those in sync, and nobody if
//! there is none. The leader epoch rises whenever the leader changes or begins anew; the partition epoch,
//! with every change.

use thalweg_protocol::{LeaderEpoch, NodeId};

use crate::command::ElectionKind;
use crate::ids::PartitionEpoch;
use crate::rejection::Rejection;
use crate::topic::Partition;

/// A partition that has just been created: the live replicas are in sync, and the first of them leads.
pub(crate) fn initial(replicas: Vec<NodeId>, is_live: impl Fn(NodeId) -> bool) -> Partition {
    let isr: Vec<NodeId> = replicas.iter().copied().filter(|&node| is_live(node)).collect();
    let leader = isr.first().copied().unwrap_or(NodeId::NONE);
    let isr = if isr.is_empty() { replicas.clone() } else { isr };
    Partition { replicas, isr, leader, leader_epoch: LeaderEpoch(0), partition_epoch: PartitionEpoch(0) }
}

/// What becomes of a partition when `node` is fenced; `None` if it does not matter to it. `is_live` already
/// says so of the node. The last member stays in the ISR, so that it can lead again when it comes back.
pub(crate) fn fenced(
    partition: &Partition,
    node: NodeId,
    is_live: impl Fn(NodeId) -> bool,
) -> Option<Partition> {
    let isr = isr_without(partition, node);
    let leader = if partition.leader == node { NodeId::NONE } else { partition.leader };
    decided(partition, isr, leader, is_live)
}

/// What becomes of a partition when `node` has started again: where it leads, it begins a new epoch, because
/// what it had not synced may be gone and other records may get those offsets. It stays in the ISR if
/// `keeps_isr` (it has on disk what was acknowledged), and otherwise if nobody else is in it.
pub(crate) fn restarted(
    partition: &Partition,
    node: NodeId,
    keeps_isr: bool,
    is_live: impl Fn(NodeId) -> bool,
) -> Option<Partition> {
    let isr = if keeps_isr { partition.isr.clone() } else { isr_without(partition, node) };
    let stays = partition.leader == node && isr.contains(&node);
    let leader = if partition.leader == node { NodeId::NONE } else { partition.leader };
    let mut next = decided(partition, isr, leader, &is_live)?;
    if stays {
        next.leader = node;
    }
    Some(next)
}

/// What becomes of a partition when a node is live again.
pub(crate) fn revived(partition: &Partition, is_live: impl Fn(NodeId) -> bool) -> Option<Partition> {
    decided(partition, partition.isr.clone(), partition.leader, is_live)
}

/// Elects a leader on an operator's word.
pub(crate) fn elected(
    partition: &Partition,
    kind: ElectionKind,
    is_live: impl Fn(NodeId) -> bool,
) -> Result<Partition, Rejection> {
    match kind {
        ElectionKind::Preferred => {
            let preferred = partition.replicas.first().copied().unwrap_or(NodeId::NONE);
            if partition.leader == preferred {
                Err(Rejection::ElectionNotNeeded { leader: preferred })
            } else if !is_live(preferred) || !partition.isr.contains(&preferred) {
                Err(Rejection::PreferredLeaderNotAvailable { preferred })
            } else {
                Ok(led_by(partition, partition.isr.clone(), preferred))
            }
        }
        ElectionKind::Unclean => {
            if partition.leader != NodeId::NONE {
                return Err(Rejection::ElectionNotNeeded { leader: partition.leader });
            }
            let leader = partition.replicas.iter().copied().find(|&node| is_live(node));
            let leader = leader.ok_or(Rejection::NoLiveReplica)?;
            Ok(led_by(partition, vec![leader], leader))
        }
    }
}

/// The partition with this ISR and leader, or with an elected leader in the place of none; `None` if that is
/// how it stands.
fn decided(
    partition: &Partition,
    isr: Vec<NodeId>,
    leader: NodeId,
    is_live: impl Fn(NodeId) -> bool,
) -> Option<Partition> {
    if leader != partition.leader || leader == NodeId::NONE {
        let candidate = partition.replicas.iter().copied().find(|node| isr.contains(node) && is_live(*node));
        let elected = candidate.unwrap_or(NodeId::NONE);
        if leader != partition.leader || elected != NodeId::NONE {
            return Some(led_by(partition, isr, elected));
        }
    }
    (isr != partition.isr).then(|| Partition {
        isr,
        partition_epoch: partition.partition_epoch.next(),
        ..partition.clone()
    })
}

fn led_by(partition: &Partition, isr: Vec<NodeId>, leader: NodeId) -> Partition {
    Partition {
        replicas: partition.replicas.clone(),
        isr,
        leader,
        leader_epoch: LeaderEpoch(partition.leader_epoch.0 + 1),
        partition_epoch: partition.partition_epoch.next(),
    }
}

fn isr_without(partition: &Partition, node: NodeId) -> Vec<NodeId> {
    let others: Vec<NodeId> = partition.isr.iter().copied().filter(|&member| member != node).collect();
    if others.is_empty() { partition.isr.clone() } else { others }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `replicas isr leader leader_epoch.partition_epoch`, as in "123 23 2 5.9"; no leader is `-`.
    fn show(partition: &Partition) -> String {
        let list = |nodes: &[NodeId]| nodes.iter().map(|node| node.to_string()).collect::<String>();
        let leader =
            if partition.leader == NodeId::NONE { "-".to_owned() } else { partition.leader.to_string() };
        format!(
            "{} {} {leader} {}.{}",
            list(&partition.replicas),
            list(&partition.isr),
            partition.leader_epoch,
            partition.partition_epoch
        )
    }

    fn read(text: &str) -> Partition {
        let words: Vec<&str> = text.split([' ', '.']).collect();
        let list = |word: &str| word.bytes().map(|digit| NodeId(i32::from(digit - b'0'))).collect();
        Partition {
            replicas: list(words[0]),
            isr: list(words[1]),
            leader: words[2].parse().map_or(NodeId::NONE, NodeId),
            leader_epoch: LeaderEpoch(words[3].parse().expect("a number")),
            partition_epoch: PartitionEpoch(words[4].parse().expect("a number")),
        }
    }

    fn live(nodes: &str) -> impl Fn(NodeId) -> bool {
        move |node| nodes.contains(&node.to_string())
    }

    fn outcome(next: Option<Partition>) -> String {
        next.map_or("same".to_owned(), |partition| show(&partition))
    }

    #[test]
    fn a_new_partition_is_led_by_its_first_live_replica() {
        let check = |replicas: &str, nodes: &str, expected: &str| {
            let replicas = read(&format!("{replicas} 1 1 0.0")).replicas;
            assert_eq!(show(&initial(replicas, live(nodes))), expected);
        };
        check("1", "1", "1 1 1 0.0");
        check("312", "123", "312 312 3 0.0");
        check("312", "12", "312 12 1 0.0");
    }

    #[test]
    fn a_fenced_node_leaves_the_isr_and_leads_nothing() {
        let check = |before: &str, node: i32, nodes: &str, expected: &str| {
            assert_eq!(
                outcome(fenced(&read(before), NodeId(node), live(nodes))),
                expected,
                "{before} − {node}"
            );
        };
        check("123 123 1 4.7", 1, "23", "123 23 2 5.8");
        check("123 123 1 4.7", 3, "12", "123 12 1 4.8");
        check("123 12 1 4.7", 3, "12", "same");
        check("123 1 1 4.7", 1, "23", "123 1 - 5.8");
        check("1 1 1 0.0", 1, "", "1 1 - 1.1");
        check("1 1 - 1.1", 1, "", "same");
        check("123 12 1 4.7", 1, "3", "123 2 - 5.8");
    }

    #[test]
    fn a_node_that_has_started_again_begins_a_new_epoch_where_it_leads() {
        let check = |before: &str, node: i32, keeps: bool, nodes: &str, expected: &str| {
            let next = restarted(&read(before), NodeId(node), keeps, live(nodes));
            assert_eq!(outcome(next), expected, "{before}, {node} again");
        };
        check("1 1 1 0.0", 1, true, "1", "1 1 1 1.1");
        check("1 1 1 0.0", 1, false, "1", "1 1 1 1.1");
        check("1 1 - 1.1", 1, true, "1", "1 1 1 2.2");
        check("123 123 2 4.7", 2, true, "123", "123 123 2 5.8");
        check("123 123 2 4.7", 2, false, "123", "123 13 1 5.8");
        check("123 123 1 4.7", 2, false, "123", "123 13 1 4.8");
        check("123 123 1 4.7", 2, true, "123", "same");
        check("123 23 - 4.7", 2, true, "2", "123 23 2 5.8");
    }

    #[test]
    fn a_leaderless_partition_gets_a_leader_when_one_in_sync_is_live() {
        assert_eq!(outcome(revived(&read("123 23 - 4.7"), live("13"))), "123 23 3 5.8");
        assert_eq!(outcome(revived(&read("123 23 - 4.7"), live("1"))), "same");
        assert_eq!(outcome(revived(&read("123 23 2 4.7"), live("123"))), "same");
    }

    #[test]
    fn an_operator_elects() {
        let check = |before: &str, kind: ElectionKind, nodes: &str, expected: Result<&str, Rejection>| {
            let got = elected(&read(before), kind, live(nodes)).map(|partition| show(&partition));
            assert_eq!(got, expected.map(str::to_owned), "{before} {kind:?}");
        };
        let (one, two) = (NodeId(1), NodeId(2));
        use ElectionKind::{Preferred, Unclean};
        check("123 123 2 4.7", Preferred, "123", Ok("123 123 1 5.8"));
        check("123 123 1 4.7", Preferred, "123", Err(Rejection::ElectionNotNeeded { leader: one }));
        check(
            "123 23 2 4.7",
            Preferred,
            "123",
            Err(Rejection::PreferredLeaderNotAvailable { preferred: one }),
        );
        check(
            "123 12 2 4.7",
            Preferred,
            "23",
            Err(Rejection::PreferredLeaderNotAvailable { preferred: one }),
        );
        check("123 1 - 4.7", Unclean, "23", Ok("123 2 2 5.8"));
        check("123 1 - 4.7", Unclean, "", Err(Rejection::NoLiveReplica));
        check("123 2 2 4.7", Unclean, "12", Err(Rejection::ElectionNotNeeded { leader: two }));
    }
}
