//! Databases whose files have changed on the disk: they are dropped, and restored from their changelogs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thalweg_streams::{
    BigEndian, Emit, Error, Event, Grouped, Materialized, Streams, StreamsBuilder, StreamsConfig, Text,
    Topology,
};

use crate::cluster::{Cluster, wait_for, wait_until};

/// So many that the database has many blocks.
const KEYS: u64 = 3000;

/// Counts by key.
fn counting() -> Topology {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, String>("in", Text, Text)
        .group_by_key(Grouped::new("unused", Text, Text))
        .count(Materialized::new("counts").emit(Emit::PerRecord))
        .to_stream()
        .to("out", Text, BigEndian);
    builder.build().expect("valid")
}

/// Keys that do not compress to nothing.
fn keys() -> Vec<String> {
    (0..KEYS).map(|at| format!("key {at:05} {:016x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

fn produce_each(cluster: &Cluster) {
    let keys = keys();
    cluster.produce("in", keys.iter().zip(0..).map(|(key, at)| (key.as_str(), "", at)));
}

fn start(cluster: &Cluster, config: &StreamsConfig) -> Streams {
    Streams::start(counting(), config.clone(), cluster.client_config()).expect("started")
}

/// The directory of the only task.
fn task_directory(config: &StreamsConfig) -> PathBuf {
    config.state_dir.join("app").join("0_0")
}

/// A cluster, and an application that has counted each key once, and ended.
fn counted_once(directory: &str) -> (Cluster, StreamsConfig) {
    let cluster = Cluster::start(&[("in", 1), ("out", 1)]);
    let mut config = StreamsConfig::new("app", cluster.directory.path().join(directory));
    config.session_timeout_ms = 6_000;
    produce_each(&cluster);
    let streams = start(&cluster, &config);
    wait_for(&streams, "live", |event| matches!(event, Event::Live));
    streams.close().expect("an orderly end");
    (cluster, config)
}

/// A part of a table's file.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// The first block, which the checkpoint is in.
    Checkpoint,
    /// Blocks of keys, which are read when one of their keys is.
    Keys,
    /// What is read first.
    Footer,
}

/// Flips bits of all tables.
fn flip(directory: &Path, part: Part) {
    let mut tables = 0;
    for entry in std::fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|extension| extension != "sst") {
            continue;
        }
        tables += 1;
        let mut bytes = std::fs::read(&path).expect("readable");
        let length = bytes.len();
        assert!(length > 30_000, "it has {length} bytes, which are too few blocks");
        let stretch = match part {
            Part::Checkpoint => 0..200,
            Part::Keys => length * 3 / 10..length * 6 / 10,
            Part::Footer => length - 8..length,
        };
        bytes[stretch].iter_mut().step_by(64).for_each(|byte| *byte ^= 0x10);
        std::fs::write(&path, bytes).expect("written");
    }
    assert!(tables > 0, "nothing was flushed");
}

/// Waits until the state was dropped; returns why.
fn wait_for_drop(streams: &Streams) -> String {
    match wait_for(streams, "a drop", |event| matches!(event, Event::StateDropped { .. })) {
        Event::StateDropped { reason, .. } => reason,
        _ => unreachable!("it was waited for"),
    }
}

fn counts(streams: &Streams) -> Result<i64, Error> {
    let mut sum = 0;
    let add = |_: &[u8], _, count: &[u8]| sum += count.try_into().map_or(0, i64::from_be_bytes);
    streams.store("counts").for_each(add)?;
    Ok(sum)
}

/// Waits for both rounds of records, and checks that each key was counted twice and not once more.
fn assert_counted_twice(cluster: &Cluster, streams: Streams, case: &str) {
    wait_until("all is counted", || counts(&streams).expect("readable") == 2 * KEYS as i64);
    streams.close().expect("an orderly end");
    let expected: BTreeMap<String, Vec<i64>> = keys().into_iter().map(|key| (key, vec![1, 2])).collect();
    assert!(cluster.numbers("out") == expected, "{case}: a count is wrong");
}

#[test]
fn a_state_that_is_damaged_when_it_is_opened_is_restored() {
    // RocksDB's messages name the path, and a block; neither says anything about the reason.
    for (directory, part) in [("workspace", Part::Checkpoint), ("lock", Part::Footer)] {
        let case = format!("{directory}, {part:?}");
        let (cluster, config) = counted_once(directory);
        flip(&task_directory(&config), part);
        let streams = start(&cluster, &config);
        let reason = wait_for_drop(&streams);
        assert!(reason.contains("Corruption"), "{case}: {reason}");
        produce_each(&cluster);
        assert_counted_twice(&cluster, streams, &case);
    }
}

#[test]
fn a_damage_that_shows_when_a_key_is_read_drops_the_state_too() {
    for (directory, by_reader) in [("workspace", false), ("lock", true)] {
        let case = format!("{directory}, by a reader from outside: {by_reader}");
        let (cluster, config) = counted_once(directory);
        flip(&task_directory(&config), Part::Keys);
        let streams = start(&cluster, &config);
        wait_for(&streams, "live", |event| {
            assert!(!matches!(event, Event::StateDropped { .. }), "{case}: it does not show yet");
            matches!(event, Event::Live)
        });
        // The view is kept, but does not keep the database open.
        let view = streams.store("counts");
        if by_reader {
            let read = view.for_each(|_, _, _| {});
            assert!(matches!(read, Err(Error::StateDamaged { .. })), "{case}: {read:?}");
        } else {
            produce_each(&cluster);
        }
        let reason = wait_for_drop(&streams);
        assert!(reason.contains("Corruption"), "{case}: {reason}");
        if by_reader {
            produce_each(&cluster);
        }
        assert_counted_twice(&cluster, streams, &case);
        assert_eq!(view.tasks().count(), 1);
    }
}

#[test]
fn what_cannot_be_opened_for_another_reason_is_left_alone() {
    let cluster = Cluster::start(&[("in", 1), ("out", 1)]);
    let config = StreamsConfig::new("app", cluster.directory.path().join("a"));
    let path = task_directory(&config);
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
    std::fs::write(&path, "not a directory").expect("written");
    let streams = start(&cluster, &config);
    let failed = loop {
        match streams.events().recv_timeout(crate::cluster::PATIENCE).expect("it fails") {
            Event::Failed { reason } => break reason,
            Event::StateDropped { reason, .. } => panic!("dropped: {reason}"),
            _ => {}
        }
    };
    assert!(matches!(*failed, Error::State { .. }), "{failed}");
    assert!(failed.to_string().contains("0_0"), "{failed}");
    streams.close().expect_err("it has failed");
    assert_eq!(std::fs::read_to_string(&path).expect("it is still there"), "not a directory");
}
