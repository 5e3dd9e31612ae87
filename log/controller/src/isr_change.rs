//! Whether a leader may change the ISR as it asks (AlterPartition, KIP-497 and KIP-841). A pure decision.

use thalweg_protocol::NodeId;

use crate::command::IsrChange;
use crate::rejection::{IsrFault, Rejection};
use crate::topic::Partition;

/// The partition as `change`, proposed by `node`, makes it. An ISR that is as it was changes nothing, so that
/// a repeated proposal is harmless.
pub(crate) fn changed(
    partition: &Partition,
    change: &IsrChange,
    node: NodeId,
    is_live: impl Fn(NodeId) -> bool,
) -> Result<Partition, Rejection> {
    let Partition { leader, leader_epoch, partition_epoch, .. } = *partition;
    if change.leader_epoch != leader_epoch {
        return Err(Rejection::LeaderEpochDiffers { epoch: change.leader_epoch, current: leader_epoch });
    }
    if node != leader {
        return Err(Rejection::NotLeader { node, leader });
    }
    if change.partition_epoch != partition_epoch {
        return Err(Rejection::PartitionEpochDiffers {
            epoch: change.partition_epoch,
            current: partition_epoch,
        });
    }
    for (at, &member) in change.isr.iter().enumerate() {
        if !partition.replicas.contains(&member) {
            return Err(Rejection::InvalidIsr { reason: IsrFault::NotAReplica { node: member } });
        }
        if change.isr[..at].contains(&member) {
            return Err(Rejection::InvalidIsr { reason: IsrFault::Repeated { node: member } });
        }
        if !is_live(member) {
            return Err(Rejection::IneligibleReplica { node: member });
        }
    }
    if !change.isr.contains(&leader) {
        return Err(Rejection::InvalidIsr { reason: IsrFault::WithoutLeader });
    }
    let isr: Vec<NodeId> =
        partition.replicas.iter().copied().filter(|replica| change.isr.contains(replica)).collect();
    if isr.len() == partition.isr.len() && isr.iter().all(|member| partition.isr.contains(member)) {
        return Ok(partition.clone());
    }
    Ok(Partition { isr, partition_epoch: partition_epoch.next(), ..partition.clone() })
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::{LeaderEpoch, Uuid};

    use super::*;
    use crate::ids::PartitionEpoch;

    const fn id(node: i32) -> NodeId {
        NodeId(node)
    }

    fn partition() -> Partition {
        Partition {
            replicas: vec![id(1), id(2), id(3), id(4)],
            isr: vec![id(1), id(2)],
            leader: id(1),
            leader_epoch: LeaderEpoch(5),
            partition_epoch: PartitionEpoch(9),
        }
    }

    /// Node `node` proposes `isr` in leader epoch `epochs.0` and partition epoch `epochs.1`; node 4 is
    /// fenced.
    fn check(node: i32, epochs: (i32, i32), isr: &[i32], expected: Result<(&[i32], i32), Rejection>) {
        let change = IsrChange {
            topic: Uuid::ZERO,
            partition: 0,
            leader_epoch: LeaderEpoch(epochs.0),
            partition_epoch: PartitionEpoch(epochs.1),
            isr: isr.iter().copied().map(NodeId).collect(),
        };
        let got = changed(&partition(), &change, id(node), |node| node != id(4));
        let expected = expected.map(|(isr, epoch)| Partition {
            isr: isr.iter().copied().map(NodeId).collect(),
            partition_epoch: PartitionEpoch(epoch),
            ..partition()
        });
        assert_eq!(got, expected);
    }

    #[test]
    fn the_leader_changes_the_isr_of_the_version_it_knows() {
        check(1, (5, 9), &[1], Ok((&[1], 10)));
        check(1, (5, 9), &[3, 2, 1], Ok((&[1, 2, 3], 10)));
        check(1, (5, 9), &[2, 1], Ok((&[1, 2], 9)));
    }

    #[test]
    fn nothing_else_is_accepted() {
        let leader_epoch =
            |epoch| Rejection::LeaderEpochDiffers { epoch: LeaderEpoch(epoch), current: LeaderEpoch(5) };
        check(1, (4, 9), &[1], Err(leader_epoch(4)));
        check(1, (6, 9), &[1], Err(leader_epoch(6)));
        let partition_epoch = |epoch| Rejection::PartitionEpochDiffers {
            epoch: PartitionEpoch(epoch),
            current: PartitionEpoch(9),
        };
        check(1, (5, 8), &[1], Err(partition_epoch(8)));
        check(1, (5, 10), &[1], Err(partition_epoch(10)));
        check(2, (5, 9), &[2], Err(Rejection::NotLeader { node: id(2), leader: id(1) }));
        let fault = |reason| Err(Rejection::InvalidIsr { reason });
        check(1, (5, 9), &[], fault(IsrFault::WithoutLeader));
        check(1, (5, 9), &[2], fault(IsrFault::WithoutLeader));
        check(1, (5, 9), &[1, 7], fault(IsrFault::NotAReplica { node: id(7) }));
        check(1, (5, 9), &[1, 2, 1], fault(IsrFault::Repeated { node: id(1) }));
        check(1, (5, 9), &[1, 4], Err(Rejection::IneligibleReplica { node: id(4) }));
    }
}
