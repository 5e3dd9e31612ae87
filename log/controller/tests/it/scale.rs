//! Ten thousand partitions: created quickly, changed without copying them all, read back quickly.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_controller::{
    AllocateProducerIds, ClusterState, Command, CreateTopics, Entry, IsrChange, NewTopic, NodeEpoch,
    PartitionEpoch, StateMachine,
};
use thalweg_protocol::{LeaderEpoch, NodeId, Offset};

use crate::steps::{CLUSTER, create, new_topic, register};

/// Generous: what is bounded here is the order of growth, on any machine and in any build.
const BOUND: Duration = Duration::from_secs(20);

fn machine() -> StateMachine {
    let machine = StateMachine::new(ClusterState::new(CLUSTER));
    for node in 1..=3 {
        step(&machine, register(node));
    }
    machine
}

fn step(machine: &StateMachine, command: impl Into<Command>) -> thalweg_controller::Response {
    let offset = Some(Offset(machine.state().offset().0 + 1));
    machine.apply(&[Entry { offset, command: command.into() }]).remove(0)
}

fn topic(index: u32, partitions: i32) -> NewTopic {
    let mut topic = new_topic(&format!("topic-{index:05}"), 0);
    topic.id.0[..4].copy_from_slice(&(index + 1).to_be_bytes());
    topic.partitions = partitions;
    topic
}

fn report(what: &str, started: Instant, count: u32) {
    let took = started.elapsed();
    println!("{what}: {took:?}, {:?} each", took / count);
    assert!(took < BOUND, "{what} took {took:?}");
}

#[test]
fn ten_thousand_topics_one_by_one() {
    let machine = machine();
    let started = Instant::now();
    for index in 0..10_000 {
        step(&machine, create(topic(index, 1)));
    }
    report("10,000 topics created one by one", started, 10_000);
    let full = machine.state();
    assert_eq!((full.topic_count(), full.partition_count()), (10_000, 10_000));

    let started = Instant::now();
    for _ in 0..1_000 {
        step(&machine, AllocateProducerIds { node: NodeId(1), epoch: NodeEpoch(0) });
    }
    report("1,000 commands that touch no topic, beside 10,000", started, 1_000);

    let started = Instant::now();
    let mut changes = 0;
    for index in 0..1_000 {
        let before = machine.state();
        step(&machine, create(topic(20_000 + index, 1)));
        changes += machine.state().topic_changes_since(&before).len();
    }
    report("1,000 topics created and noticed, beside 10,000", started, 1_000);
    assert_eq!(changes, 1_000);
    assert_eq!(full.topic_count(), 10_000, "who holds a state sees it as it stood");

    let started = Instant::now();
    let bytes = machine.state().to_snapshot();
    report(&format!("a snapshot of {} bytes written", bytes.len()), started, 1);
    let started = Instant::now();
    let read = ClusterState::from_snapshot(&bytes).expect("it was written by this version");
    report("the snapshot read", started, 1);
    assert_eq!(read, *machine.state());
}

#[test]
fn ten_thousand_partitions_at_once() {
    let machine = machine();
    let started = Instant::now();
    step(&machine, create(topic(0, 10_000)));
    report("one topic of 10,000 partitions created", started, 1);
    let before = machine.state();
    assert_eq!(before.partition_count(), 10_000);

    let topic = Arc::clone(before.topic("topic-00000").expect("it was created"));
    let started = Instant::now();
    for index in 0..1_000 {
        let partition = topic.partition(index).expect("there are 10,000");
        let change = IsrChange {
            topic: topic.id,
            partition: index,
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            isr: vec![partition.leader],
        };
        let node = partition.leader;
        let epoch = before.node(node).expect("it is registered").epoch;
        step(&machine, thalweg_controller::ChangeIsr { node, epoch, partitions: vec![change] });
    }
    report("1,000 changes of one ISR, beside 10,000", started, 1_000);
    let after = machine.state();
    let after = after.topic("topic-00000").expect("it is still there");
    let shared =
        topic.partitions.iter().zip(&after.partitions).filter(|(old, new)| Arc::ptr_eq(old, new)).count();
    assert_eq!(shared, 9_000, "partitions that did not change are shared");

    let changes = (1_000..4_000).map(|index| IsrChange {
        topic: topic.id,
        partition: index,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        isr: vec![topic.partition(index).expect("there are 10,000").leader],
    });
    let (node, epoch) = (NodeId(1), machine.state().node(NodeId(1)).expect("it is registered").epoch);
    let command = thalweg_controller::ChangeIsr { node, epoch, partitions: changes.collect() };
    let started = Instant::now();
    let response = step(&machine, command);
    report("3,000 ISRs changed by one command", started, 1);
    let thalweg_controller::Response::ChangeIsr(results) = response else {
        panic!("it answers another command")
    };
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1_000, "one node leads a third");

    let started = Instant::now();
    step(&machine, register(1));
    report("a node that leads a third of them started again", started, 1);
    let fresh = CreateTopics {
        topics: (1..11).map(|index| self::topic(index, 1_000)).collect(),
        validate_only: false,
    };
    let started = Instant::now();
    step(&machine, fresh);
    report("ten topics of 1,000 partitions created by one command", started, 1);
    assert_eq!(machine.state().partition_count(), 20_000);
}
