//! A log that format 1 has left must be read, and mean the same, for ever; and format 1 must still be what is
//! written.
//!
//! The files in `golden/` are never made anew: a change that needs other ones needs another version.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use thalweg_controller::{
    AllocateProducerIds, AlterTopicConfigs, ChangeIsr, ClusterState, Command, ConfigChange, ConfigOp,
    CreatePartitions, CreateTopics, DeleteTopics, ElectLeaders, ElectionKind, FenceNode, IsrChange,
    LocalConfig, LocalDriver, MorePartitions, NewTopic, NodeEpoch, PartitionEpoch, PartitionRef,
    RegisterNode, TopicConfigChange, TopicRef, UnregisterNode, apply,
};
use thalweg_protocol::{LeaderEpoch, NodeId, Offset, Uuid};

use crate::simulated_disk::SimulatedDisk;
use crate::steps::{CLUSTER, create, manual, new_topic, register, topic_id};

const LOG: &[u8] = include_bytes!("golden/format-1.log");
const STATE: &str = include_str!("golden/format-1-state.json");

/// Every command, every field of each, accepted and rejected.
fn commands() -> Vec<Command> {
    let set = |key: &str, value: &str| ConfigOp { key: key.into(), change: ConfigChange::Set(value.into()) };
    let alter = |name: &str, replace, ops| AlterTopicConfigs {
        topics: vec![TopicConfigChange { name: name.into(), replace, ops }],
        validate_only: false,
    };
    let spread = NewTopic {
        partitions: 6,
        replication_factor: 2,
        configs: BTreeMap::from([
            ("retention.ms".into(), "-1".into()),
            ("durability".into(), "relaxed".into()),
        ]),
        ..new_topic("flights", 2)
    };
    let by_hand = NewTopic { assignment: manual(&[vec![3, 1], vec![1, 2]]), ..new_topic("by.hand", 3) };
    let more = |name: &str, count, assignment: &[Vec<i32>]| MorePartitions {
        name: name.into(),
        count,
        assignment: assignment.iter().map(|nodes| nodes.iter().copied().map(NodeId).collect()).collect(),
    };
    let isr_change = |epoch: i32, isr: &[i32]| IsrChange {
        topic: topic_id(3),
        partition: 1,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(epoch),
        isr: isr.iter().copied().map(NodeId).collect(),
    };
    let isr = |epoch: i32, isr: &[i32]| ChangeIsr {
        node: NodeId(1),
        epoch: NodeEpoch(0),
        partitions: vec![isr_change(epoch, isr)],
    };
    let elect = |kind, partition| ElectLeaders {
        kind,
        partitions: vec![PartitionRef { topic: "by.hand".into(), partition }],
    };
    let fence = |node, epoch, fenced| FenceNode { node: NodeId(node), epoch: NodeEpoch(epoch), fenced };
    vec![
        register(1).into(),
        register(2).into(),
        RegisterNode { uuid: Uuid([9; 16]), rack: Some("east".into()), ..register(3) }.into(),
        RegisterNode { host: "fourth.example".into(), port: 19092, ..register(4) }.into(),
        CreateTopics { topics: vec![spread, by_hand, new_topic("no good", 4)], validate_only: false }.into(),
        create(new_topic("defaults", 6)).into(),
        create(new_topic("passing", 7)).into(),
        create(new_topic("passing-too", 8)).into(),
        DeleteTopics { topics: vec![TopicRef::Name("passing".into()), TopicRef::Id(topic_id(8))] }.into(),
        create(new_topic("passing", 9)).into(),
        CreatePartitions {
            topics: vec![more("flights", 8, &[]), more("by.hand", 3, &[vec![2, 3]]), more("absent", 3, &[])],
            validate_only: false,
        }
        .into(),
        alter("flights", false, vec![set("segment.bytes", "1048576"), set("cleanup.policy", "compact")])
            .into(),
        alter(
            "flights",
            false,
            vec![
                ConfigOp { key: "retention.ms".into(), change: ConfigChange::Delete },
                ConfigOp { key: "cleanup.policy".into(), change: ConfigChange::Append("delete".into()) },
            ],
        )
        .into(),
        alter("passing", true, vec![set("max.message.bytes", "2000000")]).into(),
        alter("passing", false, vec![set("max.message.bytes", "many")]).into(),
        AllocateProducerIds { node: NodeId(1), epoch: NodeEpoch(0) }.into(),
        AllocateProducerIds { node: NodeId(1), epoch: NodeEpoch(7) }.into(),
        isr(0, &[1]).into(),
        isr(1, &[1, 2]).into(),
        isr(1, &[1]).into(),
        fence(3, 2, true).into(),
        elect(ElectionKind::Preferred, 0).into(),
        fence(3, 2, false).into(),
        elect(ElectionKind::Preferred, 0).into(),
        elect(ElectionKind::Unclean, 1).into(),
        register(1).into(),
        fence(4, 3, true).into(),
        UnregisterNode { node: NodeId(2) }.into(),
        UnregisterNode { node: NodeId(9) }.into(),
    ]
}

#[test]
fn a_log_of_format_1_means_what_it_meant() {
    let dir = Path::new("metadata");
    let files = BTreeMap::from([(dir.join("00000000000000000000.log"), LOG.to_vec())]);
    let disk = SimulatedDisk::with_files(dir, &files);
    let controller =
        LocalDriver::open(Arc::new(disk), dir, CLUSTER, LocalConfig::default()).expect("it is whole");
    let snapshot = controller.state().to_snapshot();
    let text = std::str::from_utf8(&snapshot[24..]).expect("the state is JSON");
    assert_eq!(text, STATE.trim_end());

    let mut state = ClusterState::at_version(CLUSTER, 1);
    for (offset, command) in commands().iter().enumerate() {
        apply(&mut state, Offset(offset as i64), command);
    }
    assert_eq!(*controller.state(), state);
}

#[test]
fn commands_are_written_as_format_1_has_them() {
    let mut written = Vec::new();
    let mut rest = &LOG[40..];
    while !rest.is_empty() {
        let (frame, after) = rest.split_at(8 + u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize);
        if frame[8] == 1 {
            written.push(String::from_utf8(frame[25..].to_vec()).expect("a command is JSON"));
        }
        rest = after;
    }
    let expected: Vec<String> = commands()
        .iter()
        .map(|command| String::from_utf8(command.encode()).expect("a command is JSON"))
        .collect();
    assert_eq!(written, expected);
}

#[test]
fn a_log_of_format_1_makes_way_for_commands_that_it_does_not_have() {
    let dir = Path::new("metadata");
    let files = BTreeMap::from([(dir.join("00000000000000000000.log"), LOG.to_vec())]);
    let disk = SimulatedDisk::with_files(dir, &files);
    let open = || LocalDriver::open(Arc::new(disk.clone()), dir, CLUSTER, LocalConfig::default());
    let log = |offset: usize| disk.files().get(&dir.join(format!("{offset:020}.log"))).cloned();
    let controller = open().expect("it is whole");
    controller
        .propose(create(new_topic("known", 20)))
        .expect("the disk is well")
        .remove(0)
        .expect("it is made");
    let count = commands().len() + 1;
    assert!(log(0).is_some_and(|log| log[11] == 1), "what format 1 has is written to it");
    let configs = BTreeMap::from([("local.retention.ms".to_owned(), "-1".to_owned())]);
    let topic = NewTopic { configs, ..new_topic("newer", 21) };
    controller.propose(create(topic)).expect("the disk is well").remove(0).expect("it is made");
    assert_eq!((log(0), log(count).map(|log| log[11])), (None, Some(3)));
    let state = controller.state();
    assert_eq!((state.metadata_version(), state.topic("newer").is_some()), (2, true));
    controller.close();
    assert_eq!(open().expect("it is whole").state(), state);
}
