//! Random commands that fit the state often enough to get somewhere, and what must hold of every state.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use thalweg_controller::{
    AllocateProducerIds, AlterTopicConfigs, ChangeIsr, ClusterState, Command, ConfigChange, ConfigOp,
    CreatePartitions, CreateTopics, DeleteTopics, ElectLeaders, ElectionKind, FenceNode, IsrChange,
    ManualPartition, MorePartitions, NewTopic, NodeEpoch, PartitionEpoch, PartitionRef, Proposal,
    RegisterNode, Response, TopicConfigChange, TopicRef, UnregisterNode,
};
use thalweg_protocol::{LeaderEpoch, NodeId, Uuid};

pub const CLUSTER: Uuid = Uuid(*b"a-cluster-for-us");

const NAMES: [&str; 8] = ["flights", "airlines", "a.b", "a_b", "a.b-changelog", "__state", "c", "no good"];

const CONFIGS: [(&str, &str); 9] = [
    ("retention.ms", "-1"),
    ("retention.ms", "1000"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "compact,delete"),
    ("durability", "relaxed"),
    ("min.compaction.lag.ms", "100"),
    ("max.compaction.lag.ms", "10"),
    ("segment.bytes", "1"),
    ("no.such.config", "1"),
];

/// Any command, answered with whatever it is answered with.
pub struct Raw(pub Command);

impl From<Raw> for Command {
    fn from(raw: Raw) -> Self {
        raw.0
    }
}

impl Proposal for Raw {
    type Response = Response;

    fn response(response: Response) -> Option<Response> {
        Some(response)
    }
}

#[derive(Clone, Debug)]
pub enum Step {
    Create { name: usize, id: u8, partitions: i32, factor: i16, config: Option<usize>, validate_only: bool },
    CreateManual { name: usize, id: u8, replicas: Vec<Vec<i32>> },
    CreateTwice { name: usize, id: u8 },
    DeleteByName { name: usize },
    DeleteById { id: u8 },
    AddPartitions { name: usize, more: i32, validate_only: bool },
    Alter { name: usize, configs: Vec<(usize, u8)>, replace: bool, validate_only: bool },
    Register { node: i32, uuid: u8, rack: Option<u8> },
    Unregister { node: i32 },
    Fence { node: i32, fenced: bool, stale: bool },
    ChangeIsr { name: usize, partition: i32, members: u8, stale: u8 },
    Elect { name: usize, partition: i32, unclean: bool },
    AllocateProducerIds { node: i32 },
}

pub fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    let id = || 0_u8..12;
    let node = || 1_i32..5;
    let flag = any::<bool>;
    let rarely = || prop_oneof![8 => Just(false), 1 => Just(true)];
    let replicas = proptest::collection::vec(proptest::collection::vec(node(), 1..3), 1..4);
    let changes = proptest::collection::vec((0..CONFIGS.len(), 0_u8..4), 1..3);
    prop_oneof![
        6 => (name(), id(), -1_i32..6, -1_i16..4, proptest::option::of(0..CONFIGS.len()), rarely()).prop_map(
            |(name, id, partitions, factor, config, validate_only)| {
                Step::Create { name, id, partitions, factor, config, validate_only }
            }
        ),
        2 => (name(), id(), replicas).prop_map(|(name, id, replicas)| Step::CreateManual { name, id, replicas }),
        1 => (name(), id()).prop_map(|(name, id)| Step::CreateTwice { name, id }),
        2 => name().prop_map(|name| Step::DeleteByName { name }),
        1 => id().prop_map(|id| Step::DeleteById { id }),
        2 => (name(), 0_i32..4, rarely())
            .prop_map(|(name, more, validate_only)| Step::AddPartitions { name, more, validate_only }),
        3 => (name(), changes, flag(), rarely()).prop_map(|(name, configs, replace, validate_only)| {
            Step::Alter { name, configs, replace, validate_only }
        }),
        5 => (node(), prop_oneof![9 => Just(0_u8), 1 => Just(1)], proptest::option::of(0_u8..3))
            .prop_map(|(node, uuid, rack)| Step::Register { node, uuid, rack }),
        1 => node().prop_map(|node| Step::Unregister { node }),
        3 => (node(), flag(), rarely()).prop_map(|(node, fenced, stale)| Step::Fence { node, fenced, stale }),
        4 => (name(), 0_i32..4, any::<u8>(), 0_u8..8)
            .prop_map(|(name, partition, members, stale)| Step::ChangeIsr { name, partition, members, stale }),
        2 => (name(), 0_i32..4, flag())
            .prop_map(|(name, partition, unclean)| Step::Elect { name, partition, unclean }),
        2 => node().prop_map(|node| Step::AllocateProducerIds { node }),
    ]
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 1..120)
}

/// The ids 0 and 1 are such as no topic may have.
pub fn topic_id(id: u8) -> Uuid {
    Uuid(u128::from(id).to_be_bytes())
}

pub fn register(node: i32) -> RegisterNode {
    RegisterNode { node: NodeId(node), uuid: Uuid([7; 16]), host: "127.0.0.1".into(), port: 9092, rack: None }
}

pub fn new_topic(name: &str, id: u8) -> NewTopic {
    NewTopic {
        name: name.into(),
        id: topic_id(id),
        partitions: -1,
        replication_factor: -1,
        assignment: Vec::new(),
        configs: BTreeMap::new(),
    }
}

pub fn create(topic: NewTopic) -> CreateTopics {
    CreateTopics { topics: vec![topic], validate_only: false }
}

pub fn manual(replicas: &[Vec<i32>]) -> Vec<ManualPartition> {
    let manual = |(partition, replicas): (usize, &Vec<i32>)| ManualPartition {
        partition: partition as i32,
        replicas: replicas.iter().copied().map(NodeId).collect(),
    };
    replicas.iter().enumerate().map(manual).collect()
}

impl Step {
    /// The command for this step, with the epochs of `state` where it does not mean to miss them.
    pub fn command(&self, state: &ClusterState) -> Command {
        let epoch = |node: i32| state.node(NodeId(node)).map_or(NodeEpoch(0), |node| node.epoch);
        match *self {
            Self::Create { name, id, partitions, factor, config, validate_only } => {
                let config = config.map(|at| CONFIGS[at]).into_iter();
                let topic = NewTopic {
                    partitions,
                    replication_factor: factor,
                    configs: config.map(|(key, value)| (key.into(), value.into())).collect(),
                    ..new_topic(NAMES[name], id)
                };
                CreateTopics { topics: vec![topic], validate_only }.into()
            }
            Self::CreateManual { name, id, ref replicas } => {
                create(NewTopic { assignment: manual(replicas), ..new_topic(NAMES[name], id) }).into()
            }
            Self::CreateTwice { name, id } => {
                let topics =
                    vec![new_topic(NAMES[name], id), new_topic("other", id), new_topic(NAMES[name], 9)];
                CreateTopics { topics, validate_only: false }.into()
            }
            Self::DeleteByName { name } => {
                DeleteTopics { topics: vec![TopicRef::Name(NAMES[name].into())] }.into()
            }
            Self::DeleteById { id } => DeleteTopics { topics: vec![TopicRef::Id(topic_id(id))] }.into(),
            Self::AddPartitions { name, more, validate_only } => {
                let current = state.topic(NAMES[name]).map_or(0, |topic| topic.partitions.len() as i32);
                let more =
                    MorePartitions { name: NAMES[name].into(), count: current + more, assignment: vec![] };
                CreatePartitions { topics: vec![more], validate_only }.into()
            }
            Self::Alter { name, ref configs, replace, validate_only } => {
                let change = TopicConfigChange {
                    name: NAMES[name].into(),
                    replace,
                    ops: configs.iter().map(|&(config, change)| config_op(config, change)).collect(),
                };
                AlterTopicConfigs { topics: vec![change], validate_only }.into()
            }
            Self::Register { node, uuid, rack } => {
                let rack = rack.map(|rack| format!("r{rack}").into());
                RegisterNode { uuid: Uuid([uuid; 16]), rack, ..register(node) }.into()
            }
            Self::Unregister { node } => UnregisterNode { node: NodeId(node) }.into(),
            Self::Fence { node, fenced, stale } => {
                let epoch = NodeEpoch(epoch(node).0 - i64::from(stale));
                FenceNode { node: NodeId(node), epoch, fenced }.into()
            }
            Self::ChangeIsr { name, partition, members, stale } => {
                change_isr(state, NAMES[name], partition, members, stale)
            }
            Self::Elect { name, partition, unclean } => {
                let kind = if unclean { ElectionKind::Unclean } else { ElectionKind::Preferred };
                let partitions = vec![PartitionRef { topic: NAMES[name].into(), partition }];
                ElectLeaders { kind, partitions }.into()
            }
            Self::AllocateProducerIds { node } => {
                AllocateProducerIds { node: NodeId(node), epoch: epoch(node) }.into()
            }
        }
    }
}

fn config_op(config: usize, change: u8) -> ConfigOp {
    let (key, value) = CONFIGS[config];
    let change = match change {
        0 => ConfigChange::Delete,
        1 => ConfigChange::Append(value.into()),
        2 => ConfigChange::Subtract(value.into()),
        _ => ConfigChange::Set(value.into()),
    };
    ConfigOp { key: key.into(), change }
}

fn change_isr(state: &ClusterState, name: &str, partition: i32, members: u8, stale: u8) -> Command {
    let id = state.topic(name).map_or(topic_id(9), |topic| topic.id);
    let found = state.partition(name, partition);
    let node = found.map_or(NodeId(1), |partition| partition.leader);
    let epoch = state.node(node).map_or(NodeEpoch(0), |node| node.epoch);
    let isr = found.map_or(vec![], |found| {
        let replicas = found.replicas.iter().enumerate();
        let chosen = replicas.filter(|&(at, &replica)| replica == node || members & (1 << at) != 0);
        chosen.map(|(_, &replica)| replica).collect()
    });
    let leader_epoch = found.map_or(0, |found| found.leader_epoch.0) - i32::from(stale == 1);
    let partition_epoch = found.map_or(0, |found| found.partition_epoch.0) - i32::from(stale == 2);
    let change = IsrChange {
        topic: id,
        partition,
        leader_epoch: LeaderEpoch(leader_epoch),
        partition_epoch: PartitionEpoch(partition_epoch),
        isr,
    };
    ChangeIsr { node, epoch, partitions: vec![change] }.into()
}

/// What must hold of a state that came from another by one command.
pub fn check_step(old: &ClusterState, new: &ClusterState) {
    assert_eq!(new.offset().0, old.offset().0 + 1);
    assert!(new.next_producer_id() >= old.next_producer_id());
    let ids: BTreeSet<Uuid> = new.topics().map(|topic| topic.id).collect();
    assert_eq!(ids.len(), new.topic_count());
    assert!(!ids.contains(&Uuid::ZERO));
    let count: usize = new.topics().map(|topic| topic.partitions.len()).sum();
    assert_eq!(new.partition_count(), count as u64);
    for topic in new.topics() {
        assert_eq!(new.topic(&topic.name), Some(topic));
        assert_eq!(new.topic_by_id(topic.id), Some(topic));
        assert!(!topic.partitions.is_empty());
        for (index, partition) in topic.partitions.iter().enumerate() {
            let replicas: BTreeSet<_> = partition.replicas.iter().collect();
            assert!(replicas.len() == partition.replicas.len() && !replicas.is_empty());
            assert!(partition.replicas.iter().all(|&node| new.node(node).is_some()));
            let isr: BTreeSet<_> = partition.isr.iter().collect();
            assert!(isr.len() == partition.isr.len() && !isr.is_empty() && isr.is_subset(&replicas));
            if partition.leader == NodeId::NONE {
                assert!(
                    !partition.isr.iter().any(|&node| new.is_live(node)),
                    "{topic:?} could have a leader"
                );
            } else {
                assert!(new.is_live(partition.leader) && isr.contains(&partition.leader), "{topic:?}");
            }
            let before = old.topic_by_id(topic.id).and_then(|topic| topic.partition(index as i32));
            if let Some(before) = before.filter(|before| before != &partition) {
                assert_eq!(partition.partition_epoch.0, before.partition_epoch.0 + 1);
                assert!(partition.leader == before.leader || partition.leader_epoch > before.leader_epoch);
                assert!(partition.leader_epoch >= before.leader_epoch);
            }
        }
    }
}

/// Whether two states differ in nothing but the offset.
pub fn same_content(a: &ClusterState, b: &ClusterState) -> bool {
    a.topics().eq(b.topics()) && a.nodes().eq(b.nodes()) && a.next_producer_id() == b.next_producer_id()
}
