//! On which nodes the replicas of new partitions go. A pure decision without randomness of its own: every
//! node that applies the same command must come to the same one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::{NodeId, Uuid};

use crate::node::Node;

/// Partitions to be placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// The topic: its random id decides where the first partition goes, so that small topics do not all meet
    /// on the first nodes.
    pub(crate) topic: Uuid,
    /// The index of the first partition.
    pub(crate) first: usize,
    /// How many there are.
    pub(crate) count: usize,
    /// How many replicas each has, at most as many as there are nodes.
    pub(crate) factor: usize,
}

/// Spreads replicas over `nodes`: leaders go round, the replicas of one partition stand on different nodes
/// and in as many racks as there are, and the partitions that one node leads have their followers on changing
/// nodes, so that their load spreads when it fails.
pub(crate) fn spread<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>, order: Order) -> Vec<Vec<NodeId>> {
    let ring = ring(nodes);
    assert!(
        order.factor >= 1 && order.factor <= ring.len(),
        "the caller has compared the factor with the nodes"
    );
    let start = u64::from_be_bytes(order.topic.0[8..].try_into().expect("eight bytes")) as usize % ring.len();
    (order.first..order.first + order.count)
        .map(|partition| {
            replicas(&ring, start + partition % ring.len(), partition / ring.len(), order.factor)
        })
        .collect()
}

type Place<'a> = (NodeId, Option<&'a ByteString>);

/// The nodes in an order in which neighbours are in different racks, as far as possible.
fn ring<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>) -> Vec<Place<'a>> {
    let mut racks: BTreeMap<Option<&ByteString>, Vec<NodeId>> = BTreeMap::new();
    for node in nodes {
        racks.entry(node.rack.as_ref()).or_default().push(node.id);
    }
    let deepest = racks.values().map(Vec::len).max().unwrap_or(0);
    let layer = |depth: usize| {
        racks.iter().filter_map(move |(&rack, nodes)| nodes.get(depth).map(|&node| (node, rack)))
    };
    (0..deepest).flat_map(layer).collect()
}

/// The replicas of one partition: the leader stands at `leader` in the ring, the followers after it, from
/// further on in every `round`; racks that are not represented yet come first.
fn replicas(ring: &[Place<'_>], leader: usize, round: usize, factor: usize) -> Vec<NodeId> {
    let nodes = ring.len();
    let (first, rack) = ring[leader % nodes];
    let mut chosen = vec![first];
    let mut racks = BTreeSet::from([rack]);
    let others = nodes - 1;
    let follower = |step: usize| ring[(leader + 1 + (round + step) % others) % nodes];
    for (node, rack) in (0..others).map(follower) {
        if chosen.len() < factor && racks.insert(rack) {
            chosen.push(node);
        }
    }
    for (node, _) in (0..others).map(follower) {
        if chosen.len() < factor && !chosen.contains(&node) {
            chosen.push(node);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::NodeEpoch;

    fn nodes(racks: &[Option<u8>]) -> Vec<Arc<Node>> {
        let node = |(id, rack): (usize, &Option<u8>)| {
            Arc::new(Node {
                id: NodeId(id as i32),
                uuid: Uuid::ZERO,
                host: "localhost".into(),
                port: 9092,
                rack: rack.map(|rack| format!("r{rack}").into()),
                epoch: NodeEpoch(0),
                fenced: false,
            })
        };
        racks.iter().enumerate().map(node).collect()
    }

    proptest! {
        #[test]
        fn replicas_are_spread(
            racks in proptest::collection::vec(proptest::option::of(0_u8..4), 1..12),
            topic: [u8; 16],
            first in 0_usize..50,
            count in 1_usize..200,
            factor in 1_usize..6,
        ) {
            let nodes = nodes(&racks);
            let factor = factor.min(nodes.len());
            let order = Order { topic: Uuid(topic), first, count, factor };
            let placed = spread(nodes.iter(), order);
            prop_assert_eq!(placed.len(), count);

            let distinct_racks = racks.iter().collect::<BTreeSet<_>>().len();
            let mut led = vec![0_usize; nodes.len()];
            for replicas in &placed {
                led[replicas[0].0 as usize] += 1;
                prop_assert_eq!(replicas.len(), factor);
                prop_assert_eq!(replicas.iter().collect::<BTreeSet<_>>().len(), factor);
                let used = replicas.iter().map(|node| &racks[node.0 as usize]).collect::<BTreeSet<_>>().len();
                prop_assert_eq!(used, factor.min(distinct_racks));
            }
            prop_assert!(led.iter().max().unwrap() - led.iter().min().unwrap() <= 1);

            // Adding partitions later gives what creating them at once would have given.
            let whole = spread(nodes.iter(), Order { first: 0, count: first + count, ..order });
            prop_assert_eq!(&whole[first..], &placed[..]);
        }
    }

    #[test]
    fn followers_change_from_round_to_round() {
        let placed =
            spread(nodes(&[None; 4]).iter(), Order { topic: Uuid::ZERO, first: 0, count: 12, factor: 2 });
        let followers: BTreeSet<NodeId> =
            placed.iter().filter(|replicas| replicas[0] == NodeId(0)).map(|replicas| replicas[1]).collect();
        assert_eq!(followers, BTreeSet::from([NodeId(1), NodeId(2), NodeId(3)]));
    }
}
