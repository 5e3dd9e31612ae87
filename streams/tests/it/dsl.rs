//! The typed DSL, in memory.

use thalweg_streams::testing::TestDriver;
use thalweg_streams::{
    BigEndian, DEAD_LETTER_OFFSET, DEAD_LETTER_REASON, Emit, Error, Grouped, Json, Materialized, Optional,
    Record, StreamsBuilder, StreamsConfig, Text, Topology, Undecodable,
};

/// The committed records of a topic as `key=value@timestamp`, where keys and values are text.
fn texts(driver: &TestDriver, topic: &str) -> String {
    let text = |bytes: &Option<Vec<u8>>| match bytes {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => "∅".to_owned(),
    };
    let records = driver.records(topic);
    let shown = records
        .iter()
        .map(|record| format!("{}={}@{}", text(&record.key), text(&record.value), record.timestamp));
    shown.collect::<Vec<_>>().join(" ")
}

/// The same with the number that a value is.
fn numbers(driver: &TestDriver, topic: &str) -> String {
    let records = driver.records(topic);
    let shown = records.iter().map(|record| {
        let key = String::from_utf8_lossy(record.key.as_deref().unwrap_or_default());
        let value = record.value.as_deref().unwrap_or_default();
        let value = i64::from_be_bytes(value.try_into().expect("8 bytes"));
        format!("{key}={value}@{}", record.timestamp)
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn produce(driver: &mut TestDriver, topic: &str, records: &[(&str, &str, i64)]) {
    for &(key, value, timestamp) in records {
        let key = if key.is_empty() { None } else { Some(key.as_bytes()) };
        driver.produce(topic, key, Some(value.as_bytes()), timestamp).expect("the topic exists");
    }
}

#[test]
fn stateless_operators_change_what_they_say() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<String, String>("in", Text, Text);
    let kept = stream.filter(|record| record.value != "drop").filter_not(|record| record.timestamp < 0);
    kept.map_values(|value| value.to_uppercase()).to("values", Text, Text);
    kept.flat_map_values(|value| value.chars().map(String::from).collect::<Vec<_>>()).to("chars", Text, Text);
    kept.map(|record| {
        let key = format!("{}!", record.value);
        record.with_key(key).with_value(1_i64)
    })
    .to("mapped", Text, BigEndian);
    kept.flat_map(|record| (0..2).map(move |n| Record::new(Some(format!("{n}")), record.value.clone(), n)))
        .to("flat", Text, Text);
    let mut driver = TestDriver::new(
        builder.build().expect("valid"),
        &[("in", 1), ("values", 1), ("chars", 1), ("mapped", 1), ("flat", 1)],
    )
    .expect("started");
    produce(&mut driver, "in", &[("k", "ab", 5), ("k", "drop", 6), ("", "c", 7), ("k", "x", -1)]);
    driver.run().expect("processed");
    assert_eq!(texts(&driver, "values"), "k=AB@5 ∅=C@7");
    assert_eq!(texts(&driver, "chars"), "k=a@5 k=b@5 ∅=c@7");
    assert_eq!(numbers(&driver, "mapped"), "ab!=1@5 c!=1@7");
    assert_eq!(texts(&driver, "flat"), "0=ab@0 1=ab@1 0=c@0 1=c@1");
}

#[test]
fn merged_streams_are_taken_in_the_order_of_their_times() {
    let builder = StreamsBuilder::new();
    let left = builder.stream::<String, String>("left", Text, Text);
    let right = builder.stream::<String, String>("right", Text, Text);
    left.merge(&right).to("out", Text, Text);
    let topology = builder.build().expect("valid");
    let mut driver = TestDriver::new(topology, &[("left", 1), ("right", 2), ("out", 1)]).expect("started");
    for (topic, timestamp) in [("left", 1), ("left", 5), ("right", 2), ("right", 4), ("left", 6)] {
        driver.produce_to(topic, 0, None, Some(topic.as_bytes()), timestamp).expect("the topic exists");
    }
    driver.produce_to("right", 1, None, Some(b"alone"), 3).expect("the topic exists");
    driver.run().expect("processed");
    let out = texts(&driver, "out");
    assert_eq!(out, "∅=left@1 ∅=right@2 ∅=right@4 ∅=left@5 ∅=left@6 ∅=alone@3");
}

fn counting(emit: Emit) -> Topology {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, String>("in", Text, Text)
        .group_by_key(Grouped::new("unused", Text, Text))
        .count(Materialized::new("counts").emit(emit))
        .to_stream()
        .to("out", Text, BigEndian);
    builder.build().expect("valid")
}

#[test]
fn an_aggregate_comes_out_per_record_or_once_per_commit() {
    for (emit, expected) in
        [(Emit::PerRecord, "a=1@5 b=1@6 a=2@7 a=3@7 a=4@9"), (Emit::PerCommit, "a=3@7 b=1@6 a=4@9")]
    {
        let mut driver = TestDriver::new(counting(emit), &[("in", 1), ("out", 1)]).expect("started");
        produce(&mut driver, "in", &[("a", "", 5), ("b", "", 6), ("a", "", 7), ("a", "", 3), ("", "", 1)]);
        driver.run().expect("processed");
        produce(&mut driver, "in", &[("a", "", 9)]);
        driver.run().expect("processed");
        assert_eq!(numbers(&driver, "out"), expected);
        assert_eq!(driver.counters().without_key, 1);
        let count = driver.store("counts").get(b"a").expect("readable").expect("counted");
        assert_eq!((count.timestamp, count.value), (9, 4_i64.to_be_bytes().to_vec()));
    }
}

#[test]
fn changed_keys_meet_through_a_repartition_topic() {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, String>("in", Text, Text)
        .group_by(Grouped::new("by-value", Text, Text), |record| record.value.clone())
        .count("counts")
        .to_stream()
        .to("out", Text, BigEndian);
    let topology = builder.build().expect("valid");
    assert!(topology.to_string().contains("writes  <app>-by-value-repartition"), "{topology}");
    let mut driver = TestDriver::new(topology, &[("in", 4), ("out", 1)]).expect("started");
    for at in 0..100 {
        let value = ["x", "y", "z"][at % 3];
        produce(&mut driver, "in", &[(&format!("key {at}"), value, at as i64)]);
    }
    driver.run().expect("processed");
    let mut out: Vec<_> = numbers(&driver, "out").split(' ').map(str::to_owned).collect();
    out.sort();
    assert_eq!(out, ["x=34@99", "y=33@97", "z=33@98"]);
    assert_eq!(driver.records("test-by-value-repartition").len(), 100);
    let changelog: Vec<_> = driver.records("test-counts-changelog");
    assert_eq!(changelog.len(), 3, "one record a dirty key and commit");
    assert!(changelog.iter().all(|record| record.value.as_ref().is_some_and(|value| value.len() == 8)));
}

#[test]
fn reduce_and_aggregate_fold_in_order() {
    let builder = StreamsBuilder::new();
    let grouped =
        builder.stream::<String, String>("in", Text, Text).group_by_key(Grouped::new("unused", Text, Text));
    grouped.reduce("joined", Text, |so_far, next| so_far + next).to_stream().to("joined", Text, Text);
    grouped
        .aggregate("lists", Json, Vec::new, |record, list: &mut Vec<String>| list.push(record.value.clone()))
        .map_values(|list| list.len() as i64)
        .to_stream()
        .to("lengths", Text, BigEndian);
    let topology = builder.build().expect("valid");
    let mut driver = TestDriver::new(topology, &[("in", 1), ("joined", 1), ("lengths", 1)]).expect("started");
    for round in 0..2 {
        produce(&mut driver, "in", &[("a", "1", 1), ("b", "2", 1), ("a", "3", 1)]);
        driver.run().expect("processed");
        assert_eq!(driver.records("joined").len(), 2 * (round + 1));
    }
    assert_eq!(texts(&driver, "joined"), "a=13@1 b=2@1 a=1313@1 b=22@1");
    assert_eq!(numbers(&driver, "lengths"), "a=2@1 b=1@1 a=4@1 b=2@1");
}

#[test]
fn a_count_of_counts_follows_within_one_commit() {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, String>("in", Text, Text)
        .group_by_key(Grouped::new("unused", Text, Text))
        .count("first")
        .to_stream()
        .group_by_key(Grouped::new("unused", Text, BigEndian))
        .count("second")
        .to_stream()
        .to("out", Text, BigEndian);
    let topology = builder.build().expect("valid");
    let mut driver = TestDriver::new(topology, &[("in", 1), ("out", 1)]).expect("started");
    for expected in ["a=1@2", "a=1@2 a=2@2"] {
        produce(&mut driver, "in", &[("a", "", 1), ("a", "", 2)]);
        driver.run().expect("processed");
        assert_eq!(numbers(&driver, "out"), expected, "the first count changed once per commit");
    }
}

fn decoding() -> Topology {
    let builder = StreamsBuilder::new();
    builder.stream::<String, i32>("in", Text, Json).to("out", Text, Json);
    builder.build().expect("valid")
}

#[test]
fn what_does_not_decode_becomes_a_dead_letter() {
    let mut driver = TestDriver::new(decoding(), &[("in", 2), ("out", 1)]).expect("started");
    produce(&mut driver, "in", &[("a", "1", 1), ("a", "one", 2), ("a", "2", 3)]);
    driver.produce("in", Some(b"a"), None, 4).expect("the topic exists");
    driver.produce("in", Some(b"\xff"), Some(b"3"), 5).expect("the topic exists");
    driver.run().expect("processed");
    assert_eq!(texts(&driver, "out"), "a=1@1 a=2@3");
    let mut dead = driver.records("test-dead-letter");
    dead.sort_by_key(|record| record.timestamp);
    let header = |at: usize, name: &str| {
        let headers = dead[at].headers.iter();
        let found = headers.filter(|(header, _)| header == name).find_map(|(_, value)| value.clone());
        String::from_utf8(found.unwrap_or_default()).expect("text")
    };
    assert_eq!(dead.len(), 3);
    assert_eq!((dead[0].key.as_deref(), dead[0].value.as_deref()), (Some(&b"a"[..]), Some(&b"one"[..])));
    assert!(header(0, DEAD_LETTER_REASON).starts_with("the value does not decode: not the JSON"));
    assert_eq!(header(0, DEAD_LETTER_OFFSET), "1");
    assert_eq!(header(1, DEAD_LETTER_REASON), "the value does not decode: it is null");
    assert_eq!(header(2, DEAD_LETTER_REASON), "the key does not decode: not UTF-8 from byte 0 on");

    let mut config = StreamsConfig::new("test", "unused");
    config.undecodable = Undecodable::Fail;
    let mut strict = TestDriver::with_config(decoding(), &[("in", 1), ("out", 1)], config).expect("started");
    produce(&mut strict, "in", &[("a", "1", 1), ("a", "one", 2)]);
    assert!(matches!(strict.run(), Err(Error::Undecodable { offset: 1, .. })));
}

#[test]
fn null_values_pass_where_they_are_asked_for() {
    let builder = StreamsBuilder::new();
    builder.stream::<String, Option<String>>("in", Text, Optional(Text)).to("out", Text, Optional(Text));
    let topology = builder.build().expect("valid");
    let mut driver = TestDriver::new(topology, &[("in", 1), ("out", 1)]).expect("started");
    driver.produce("in", Some(b"k"), None, 1).expect("the topic exists");
    driver.run().expect("processed");
    assert_eq!(texts(&driver, "out"), "k=∅@1");
}

#[test]
fn a_topology_that_cannot_run_says_why() {
    let builder = StreamsBuilder::new();
    builder.stream::<String, String>("in", Text, Text);
    builder.stream::<String, String>("in", Text, Text);
    let error = builder.build().err().expect("a topic is read once").to_string();
    assert!(error.contains("read it once and use the stream twice"), "{error}");
    let missing = TestDriver::new(decoding(), &[("in", 1)]).err().expect("out is missing");
    assert!(matches!(missing, Error::UnknownTopic { topic, .. } if topic == "out"));
}
