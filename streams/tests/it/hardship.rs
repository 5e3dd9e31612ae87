//! What goes wrong around a running application: nothing is lost, and errors say what, why and what next.

use std::time::{Duration, Instant};

use thalweg_client::{ProducerConfig, ProducerRecord};
use thalweg_protocol::ErrorCode;
use thalweg_streams::{
    BigEndian, Event, Grouped, Json, Materialized, StartAt, Streams, StreamsBuilder, StreamsConfig, Text,
    Topology,
};

use crate::cluster::{Cluster, PATIENCE, wait_for, wait_until};

fn config(cluster: &Cluster) -> StreamsConfig {
    let mut config = StreamsConfig::new("app", cluster.directory.path().join("a"));
    config.session_timeout_ms = 6_000;
    config
}

fn start(cluster: &Cluster, topology: Topology, config: StreamsConfig) -> Streams {
    Streams::start(topology, config, cluster.client_config()).expect("started")
}

fn wait_for_live(streams: &Streams) {
    wait_for(streams, "live", |event| matches!(event, Event::Live));
}

/// Copies `in` to `copy`.
fn copying() -> Topology {
    let builder = StreamsBuilder::new();
    builder.stream::<String, String>("in", Text, Text).to("copy", Text, Text);
    builder.build().expect("valid")
}

/// The same, and counts by value through a repartition topic.
fn copying_and_counting() -> Topology {
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<String, String>("in", Text, Text);
    stream.to("copy", Text, Text);
    stream
        .group_by(Grouped::new("by-value", Text, Text), |record| record.value.clone())
        .count(Materialized::new("counts"))
        .to_stream()
        .to("out", Text, BigEndian);
    builder.build().expect("valid")
}

#[test]
fn a_topology_that_has_grown_is_run_as_a_whole_at_once() {
    let cluster = Cluster::start(&[("in", 2), ("copy", 1), ("out", 1)]);
    for threads in [1, 2] {
        cluster.produce("in", [("a", "x", 0), ("b", "x", 1)]);
        let mut settings = config(&cluster);
        settings.threads = threads;
        settings.application_id = format!("app-{threads}");
        settings.start_at = StartAt::Latest;
        let streams = start(&cluster, copying(), settings.clone());
        wait_for_live(&streams);
        streams.close().expect("an orderly end");
        cluster.produce("in", [("c", "y", 2), ("d", "y", 3)]);
        // The group still knows the members, and what they had.
        let streams = start(&cluster, copying_and_counting(), settings);
        wait_for_live(&streams);
        wait_until("the new part of the topology runs", || streams.store("counts").tasks().count() == 2);
        let count = |key: &[u8]| {
            let stored = streams.store("counts").get(key).expect("readable")?;
            Some(i64::from_be_bytes(stored.value.try_into().expect("8 bytes")))
        };
        wait_until("what came meanwhile is counted", || count(b"y") == Some(2));
        assert_eq!(count(b"x"), None, "what came before the end is not counted");
        streams.close().expect("an orderly end");
    }
}

/// Waits for the application to fail, and ends it at once; returns what it says.
fn failure_of(streams: Streams) -> String {
    let deadline = Instant::now() + PATIENCE;
    let reason = loop {
        match streams.events().recv_deadline(deadline).expect("it fails") {
            Event::Failed { reason } => break reason,
            Event::Reopened { reason } => println!("reopened: {reason}"),
            _ => {}
        }
    };
    let began = Instant::now();
    let closed = streams.close().expect_err("it has failed");
    assert!(began.elapsed() < Duration::from_secs(5), "it ended after {:?}", began.elapsed());
    assert_eq!(closed.to_string(), reason.to_string());
    reason.to_string()
}

#[test]
fn a_topic_that_is_deleted_ends_the_application() {
    for topic in ["in", "copy", "app-by-value-repartition"] {
        let cluster = Cluster::start(&[("in", 2), ("copy", 1), ("out", 1)]);
        cluster.produce("in", [("a", "x", 0), ("b", "y", 1)]);
        let streams = start(&cluster, copying_and_counting(), config(&cluster));
        wait_for_live(&streams);
        cluster.delete_topic(topic);
        if topic != "in" {
            cluster.produce("in", [("a", "x", 2), ("b", "y", 3)]);
        }
        let reason = failure_of(streams);
        assert!(
            reason.starts_with(&format!("topic {topic} was deleted while the application ran")),
            "{reason}"
        );
        assert!(reason.contains("create the topic again and start the application anew"), "{reason}");
    }
}

#[test]
fn a_topic_that_is_another_one_ends_the_application() {
    let cluster = Cluster::start(&[("in", 2), ("copy", 1), ("out", 1)]);
    cluster.produce("in", [("a", "x", 0), ("b", "y", 1)]);
    let streams = start(&cluster, copying_and_counting(), config(&cluster));
    wait_for_live(&streams);
    cluster.delete_topic("in");
    cluster.create_topic("in", 2);
    let reason = failure_of(streams);
    assert!(reason.starts_with("topic in was deleted and created again"), "{reason}");
    assert!(reason.contains("reset the application, or give it another id"), "{reason}");
}

#[test]
fn a_record_that_makes_the_program_panic_is_named() {
    let cluster = Cluster::start(&[("in", 1), ("copy", 1)]);
    let topology = |accepts: &'static str| {
        let builder = StreamsBuilder::new();
        let stream = builder.stream::<String, String>("in", Text, Text);
        let checked = move |value: String| {
            assert!(value.starts_with(accepts), "{value} is not welcome");
            value
        };
        stream.map_values(checked).to("copy", Text, Text);
        builder.build().expect("valid")
    };
    cluster.produce("in", [("a", "good", 0)]);
    cluster.produce("in", [("a", "bad", 1), ("a", "good too", 2)]);
    let reason = failure_of(start(&cluster, topology("good"), config(&cluster)));
    let expected = "while it processed in-0 from offset";
    assert!(reason.starts_with("task 0_0 failed ") && reason.contains(expected), "{reason}");
    assert!(reason.ends_with(": panicked: bad is not welcome"), "{reason}");
    // A program that can do with it takes it up.
    let streams = start(&cluster, topology(""), config(&cluster));
    wait_for_live(&streams);
    streams.close().expect("an orderly end");
    assert_eq!(cluster.read("copy").len(), 3, "each once");
}

#[test]
fn a_record_that_is_too_large_says_where_and_what_next() {
    let cluster = Cluster::start(&[("in", 1), ("out", 1)]);
    let topology = || {
        let builder = StreamsBuilder::new();
        builder
            .stream::<String, String>("in", Text, Text)
            .group_by_key(Grouped::new("unused", Text, Text))
            .reduce("joined", Text, |so_far, next| so_far + next)
            .map_values(|value| value.len() as i64)
            .to_stream()
            .to("out", Text, BigEndian);
        builder.build().expect("valid")
    };
    let large = "x".repeat(1_000_000);
    cluster.produce("in", [("k", large.as_str(), 0)]);
    let streams = start(&cluster, topology(), config(&cluster));
    wait_for_live(&streams);
    cluster.produce("in", [("k", large.as_str(), 1)]);
    let reason = failure_of(streams);
    for part in ["app-joined-changelog-0", "MESSAGE_TOO_LARGE", "raise the topic's max.message.bytes"] {
        assert!(reason.contains(part), "{part} in {reason}");
    }
    assert_eq!(cluster.numbers("out")["k"], [1_000_000], "what was committed before is safe");
}

#[test]
fn the_largest_record_there_is_becomes_a_dead_letter() {
    let cluster = Cluster::start(&[("in", 1), ("out", 1)]);
    let builder = StreamsBuilder::new();
    builder.stream::<String, i64>("in", Text, Json).to("out", Text, BigEndian);
    // A batch of just the size that the topic allows, by default.
    let (batch_header, record_header) = (61, 12);
    let large = "x".repeat(1_048_588 - batch_header - record_header);
    let longer = ProducerRecord::new("in", format!("{large}x")).key("k");
    let refused = cluster.block_on(cluster.producer(ProducerConfig::default()).send_and_wait(longer));
    assert_eq!(refused.expect_err("it is a byte too long").code(), Some(ErrorCode::MessageTooLarge));
    cluster.produce("in", [("k", large.as_str(), 0), ("k", "1", 1)]);
    let streams = start(&cluster, builder.build().expect("valid"), config(&cluster));
    wait_for_live(&streams);
    assert_eq!(streams.committed().dead_letters, 1);
    streams.close().expect("an orderly end");
    assert_eq!(cluster.numbers("out")["k"], [1]);
    let dead = cluster.read("app-dead-letter");
    assert_eq!(dead[0].value.as_deref(), Some(large.as_bytes()));
}
