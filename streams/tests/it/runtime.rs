//! The runtime against a broker in this process.

use std::collections::BTreeMap;

use thalweg_streams::{
    BigEndian, CommitStep, Emit, Error, ErrorKind, Event, Failpoint, Fault, Grouped, Guarantee, Json,
    Materialized, Moment, Streams, StreamsBuilder, StreamsConfig, Text, Topology,
};

use crate::cluster::{Cluster, wait_for, wait_until};

/// Counts by value, through a repartition topic.
fn counting(emit: Emit) -> Topology {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, String>("in", Text, Text)
        .group_by(Grouped::new("by-value", Text, Text), |record| record.value.clone())
        .count(Materialized::new("counts").emit(emit))
        .to_stream()
        .to("out", Text, BigEndian);
    builder.build().expect("valid")
}

fn config(cluster: &Cluster, instance: &str) -> StreamsConfig {
    let mut config = StreamsConfig::new("app", cluster.directory.path().join(instance));
    config.session_timeout_ms = 6_000;
    config
}

fn start(cluster: &Cluster, emit: Emit, config: StreamsConfig) -> Streams {
    Streams::start(counting(emit), config, cluster.client_config()).expect("started")
}

fn produce(cluster: &Cluster, from: usize, to: usize) {
    let records: Vec<(String, String)> =
        (from..to).map(|at| (format!("key {at}"), format!("value {}", at % 5))).collect();
    let records = records.iter().zip(from as i64..);
    cluster.produce("in", records.map(|((key, value), at)| (key.as_str(), value.as_str(), at)));
}

/// Each value's counts are exactly 1, 2, …, n.
fn assert_each_counted_once(cluster: &Cluster, records: usize) {
    let numbers = cluster.numbers("out");
    let expected: BTreeMap<String, Vec<i64>> = (0..5.min(records))
        .map(|value| (format!("value {value}"), (1..=((records - value).div_ceil(5)) as i64).collect()))
        .collect();
    assert_eq!(numbers, expected);
}

/// Deletes the tasks' state; the instance keeps its id, and so its place in the group.
fn lose_state(config: &StreamsConfig) {
    let directory = config.state_dir.join(&config.application_id);
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).expect("deleted");
        }
    }
}

fn counted(streams: &Streams, records: usize) -> bool {
    let mut sum = 0;
    let view = streams.store("counts");
    let visited = view.for_each(|_, _, count| {
        sum += count.try_into().map_or(0, i64::from_be_bytes);
    });
    visited.expect("readable");
    sum == records as i64
}

#[test]
fn history_then_live_then_a_restart() {
    let cluster = Cluster::start(&[("in", 4), ("out", 1)]);
    produce(&cluster, 0, 3000);
    let mut settings = config(&cluster, "a");
    settings.threads = 2;
    let streams = start(&cluster, Emit::PerRecord, settings.clone());
    wait_for(&streams, "live", |event| matches!(event, Event::Live));
    assert_each_counted_once(&cluster, 3000);
    assert!(counted(&streams, 3000));
    produce(&cluster, 3000, 4000);
    wait_until("the new records are counted", || counted(&streams, 4000));
    streams.close().expect("an orderly end");

    produce(&cluster, 4000, 4500);
    let streams = start(&cluster, Emit::PerRecord, settings);
    let mut restored = false;
    wait_for(&streams, "live", |event| {
        restored |= matches!(event, Event::Restoring { .. } | Event::StateDropped { .. });
        matches!(event, Event::Live)
    });
    assert!(!restored, "the state was all there");
    assert!(counted(&streams, 4500));
    streams.close().expect("an orderly end");
    assert_each_counted_once(&cluster, 4500);
}

#[test]
fn lost_state_is_restored_from_the_changelog() {
    for guarantee in [Guarantee::ExactlyOnce, Guarantee::AtLeastOnce] {
        let cluster = Cluster::start(&[("in", 3), ("out", 1)]);
        produce(&cluster, 0, 1000);
        for (start_number, records) in [(1, 1000), (2, 2000)] {
            let mut settings = config(&cluster, "a");
            lose_state(&settings);
            settings.guarantee = guarantee;
            let streams = start(&cluster, Emit::PerRecord, settings);
            let mut restored = 0;
            wait_for(&streams, "live", |event| {
                if let Event::Restoring { done, total, .. } = event {
                    restored += i64::from(done == total) * total;
                }
                matches!(event, Event::Live)
            });
            assert_eq!(restored > 0, start_number == 2);
            assert!(counted(&streams, records));
            streams.close().expect("an orderly end");
            produce(&cluster, records, records + 1000);
        }
        assert_each_counted_once(&cluster, 2000);
    }
}

#[test]
fn tasks_move_between_instances_without_loss_or_repetition() {
    let cluster = Cluster::start(&[("in", 4), ("out", 1)]);
    produce(&cluster, 0, 1000);
    let first = start(&cluster, Emit::PerRecord, config(&cluster, "a"));
    wait_for(&first, "live", |event| matches!(event, Event::Live));
    let second = start(&cluster, Emit::PerRecord, config(&cluster, "b"));
    wait_until("the second instance runs tasks", || second.store("counts").tasks().count() > 0);
    wait_until("the first instance runs tasks", || first.store("counts").tasks().count() > 0);
    produce(&cluster, 1000, 2000);
    let both = || {
        let mut sum = 0;
        for streams in [&first, &second] {
            let add = |_: &[u8], _: i64, count: &[u8]| sum += count.try_into().map_or(0, i64::from_be_bytes);
            streams.store("counts").for_each(add).expect("readable");
        }
        sum
    };
    wait_until("all records are counted", || both() == 2000);
    second.close().expect("an orderly end");
    produce(&cluster, 2000, 3000);
    wait_until("the first instance has counted all", || counted(&first, 3000));
    first.close().expect("an orderly end");
    assert_each_counted_once(&cluster, 3000);
}

#[test]
fn a_commit_that_fails_while_partitions_are_taken_away_gives_them_up_all_the_same() {
    let cluster = Cluster::start(&[("in", 4), ("out", 1)]);
    produce(&cluster, 0, 1000);
    let mut settings = config(&cluster, "a");
    // Nothing but the rebalance makes it commit.
    settings.commit_interval_ms = 25_000;
    settings.transaction_timeout_ms = 60_000;
    settings.test_hooks.failpoint = Some(Failpoint {
        moment: Moment::Before,
        step: CommitStep::SendOffsets,
        passing: 1,
        fault: Fault::Refuse,
    });
    let first = start(&cluster, Emit::PerRecord, settings);
    wait_until("the first instance runs all tasks", || first.store("counts").tasks().count() == 4);
    let second = start(&cluster, Emit::PerRecord, config(&cluster, "b"));
    let reopened = wait_for(&first, "the failure", |event| matches!(event, Event::Reopened { .. }));
    let Event::Reopened { reason } = reopened else { unreachable!("it was waited for") };
    assert_eq!(reason.kind(), ErrorKind::Reopen);
    assert!(reason.to_string().contains("failpoint Before:SendOffsets:1"), "{reason}");
    let tasks = |streams: &Streams| streams.store("counts").tasks().count();
    wait_until("both run tasks", || {
        tasks(&first) > 0 && tasks(&second) > 0 && tasks(&first) + tasks(&second) == 4
    });
    first.close().expect("it has not failed");
    wait_until("the second instance has counted all", || counted(&second, 1000));
    second.close().expect("an orderly end");
    assert_each_counted_once(&cluster, 1000);
}

#[test]
fn an_empty_input_holds_nothing_up_and_a_merge_keeps_the_order_of_time() {
    let cluster = Cluster::start(&[("left", 1), ("right", 1), ("empty", 2), ("out", 1)]);
    let builder = StreamsBuilder::new();
    let left = builder.stream::<String, String>("left", Text, Text);
    let both = left.merge(&builder.stream("right", Text, Text));
    both.merge(&builder.stream("empty", Text, Text)).to("out", Text, Text);
    let topology = builder.build().expect("valid");
    let names: Vec<String> = (0..200).map(|at| at.to_string()).collect();
    let named = |from: usize, step: usize| {
        names.iter().enumerate().skip(from).step_by(step).map(|(at, name)| ("k", name.as_str(), at as i64))
    };
    cluster.produce("left", named(0, 2));
    cluster.produce("right", named(1, 2).take(50));
    let streams = Streams::start(topology, config(&cluster, "a"), cluster.client_config()).expect("started");
    wait_for(&streams, "live", |event| matches!(event, Event::Live));
    streams.close().expect("an orderly end");
    let out: Vec<usize> = cluster
        .read("out")
        .into_iter()
        .map(|read| String::from_utf8_lossy(&read.value.expect("a value")).parse().expect("a number"))
        .collect();
    assert_eq!(out.len(), 150);
    assert!(out.is_sorted(), "{out:?}");
}

#[test]
fn dead_letters_go_to_their_topic() {
    let cluster = Cluster::start(&[("in", 2), ("out", 1)]);
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("in", Text, Json).to("out", Text, BigEndian);
    let topology = builder.build().expect("valid");
    cluster.produce("in", [("a", "1", 0), ("b", "not a number", 1), ("c", "3", 2)]);
    let streams = Streams::start(topology, config(&cluster, "a"), cluster.client_config()).expect("started");
    wait_for(&streams, "live", |event| matches!(event, Event::Live));
    let committed = streams.committed();
    assert_eq!((committed.records_in, committed.records_out, committed.dead_letters), (3, 2, 1));
    streams.close().expect("an orderly end");
    assert_eq!(cluster.numbers("out"), BTreeMap::from([("a".into(), vec![1]), ("c".into(), vec![3])]));
    let dead = cluster.read("app-dead-letter");
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].value.as_deref(), Some(&b"not a number"[..]));
}

#[test]
fn what_cannot_start_says_why() {
    let cluster = Cluster::start(&[("inn", 1), ("out", 1)]);
    let started = Streams::start(counting(Emit::PerCommit), config(&cluster, "a"), cluster.client_config());
    match started {
        Err(Error::UnknownTopic { topic, similar }) => {
            assert_eq!((topic.as_str(), similar.as_deref()), ("in", Some("inn")));
        }
        other => panic!("{:?}", other.err()),
    }
    let mut wrong = config(&cluster, "a");
    wrong.application_id = "a/b".into();
    let started = Streams::start(counting(Emit::PerCommit), wrong, cluster.client_config());
    assert!(matches!(started, Err(Error::Config { field: "application_id", .. })));
}
