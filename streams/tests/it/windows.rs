//! Tumbling windows: the rows of the design, and what a plain loop over the records says.

use std::collections::BTreeMap;

use thalweg_streams::testing::{StateAfterCrash, TestDriver};
use thalweg_streams::{
    BigEndian, Emit, Grouped, Materialized, StreamsBuilder, Text, TimeWindows, Topology, Unit,
    WindowStoreKey, Windowed, WindowedKey,
};

fn counting(windows: TimeWindows, emit: Emit) -> Topology {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, ()>("in", Text, Unit)
        .group_by_key(Grouped::new("unused", Text, Unit))
        .windowed_by(windows)
        .count(Materialized::new("windows").emit(emit))
        .to_stream()
        .to("out", WindowedKey { key: Text, size_ms: windows.size_ms() }, BigEndian);
    builder.build().expect("valid")
}

/// The committed results as `[start)=count@timestamp`, with the key in front unless it is `k`.
fn windows(driver: &TestDriver) -> String {
    let records = driver.records("out");
    let shown = records.iter().map(|record| {
        let (key, start) =
            record.key.as_deref().and_then(|key| key.split_last_chunk::<8>()).expect("a windowed key");
        let count: [u8; 8] =
            record.value.as_deref().and_then(|value| value.try_into().ok()).expect("a count");
        let key = String::from_utf8_lossy(key).replace('k', "");
        let (start, count) = (i64::from_be_bytes(*start), i64::from_be_bytes(count));
        format!("{key}[{start})={count}@{}", record.timestamp)
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn produce(driver: &mut TestDriver, key: &str, timestamps: &[i64]) {
    for &timestamp in timestamps {
        driver.produce_to("in", 0, Some(key.as_bytes()), None, timestamp).expect("the topic exists");
    }
}

#[test]
fn a_window_takes_records_until_stream_time_has_passed_its_end_and_grace() {
    for (windowing, timestamps, expected, late) in [
        (
            TimeWindows::tumbling(2).grace(1),
            &[0, 1, 2, 1, 0, 5, 0][..],
            "[0)=1@0 [0)=2@1 [2)=1@2 [0)=3@1 [0)=4@1 [4)=1@5",
            1,
        ),
        (TimeWindows::tumbling(10), &[9, 10, 9, 19, 20, 15], "[0)=1@9 [10)=1@10 [10)=2@19 [20)=1@20", 2),
        (TimeWindows::tumbling(10), &[-1, -5, 0, -1], "[-10)=1@-1 [-10)=2@-1 [0)=1@0", 1),
    ] {
        let topology = counting(windowing, Emit::PerRecord);
        let mut driver = TestDriver::new(topology, &[("in", 1), ("out", 1)]).expect("started");
        produce(&mut driver, "k", timestamps);
        driver.run().expect("processed");
        assert_eq!(windows(&driver), expected);
        assert_eq!(driver.counters().late, late);
    }
}

#[test]
fn stream_time_goes_by_partition_and_ignores_records_without_a_key() {
    let topology = counting(TimeWindows::tumbling(10), Emit::PerRecord);
    let mut driver = TestDriver::new(topology, &[("in", 2), ("out", 1)]).expect("started");
    driver.produce_to("in", 0, Some(b"k"), None, 100).expect("the topic exists");
    driver.produce_to("in", 1, None, None, 1000).expect("the topic exists");
    driver.produce_to("in", 1, Some(b"k"), None, 5).expect("the topic exists");
    driver.run().expect("processed");
    assert_eq!(windows(&driver), "[100)=1@100 [0)=1@5");
    assert_eq!((driver.counters().late, driver.counters().without_key), (0, 1));
}

#[test]
fn stream_time_survives_a_crash() {
    for state in [StateAfterCrash::Kept, StateAfterCrash::Lost] {
        let topology = counting(TimeWindows::tumbling(10), Emit::PerCommit);
        let mut driver = TestDriver::new(topology, &[("in", 1), ("out", 1)]).expect("started");
        produce(&mut driver, "k", &[5, 100]);
        driver.run().expect("processed");
        driver.crash(state).expect("opened again");
        produce(&mut driver, "k", &[6, 101]);
        driver.run().expect("processed");
        assert_eq!(windows(&driver), "[0)=1@5 [100)=1@100 [100)=2@101");
        assert_eq!(driver.counters().late, 1);
    }
}

#[test]
fn windows_agree_with_a_plain_loop() {
    let (size, grace) = (1000, 500);
    let mut random = fastrand::Rng::with_seed(11);
    let records: Vec<(String, i64)> =
        (0..5000).map(|at| (format!("key {}", random.u8(..20)), at * 10 + random.i64(-1500..1500))).collect();

    let mut expected: BTreeMap<(String, i64), i64> = BTreeMap::new();
    let (mut stream_time, mut late) = (i64::MIN, 0);
    for (key, timestamp) in &records {
        stream_time = stream_time.max(*timestamp);
        let start = timestamp.div_euclid(size) * size;
        match start + size > stream_time - grace {
            true => *expected.entry((key.clone(), start)).or_default() += 1,
            false => late += 1,
        }
    }
    assert!(late > 100, "the test is about late records too");

    let topology = counting(TimeWindows::tumbling(size).grace(grace), Emit::PerCommit);
    let mut driver = TestDriver::new(topology, &[("in", 1), ("out", 1)]).expect("started");
    for (at, (key, timestamp)) in records.iter().enumerate() {
        produce(&mut driver, key, &[*timestamp]);
        if at % 700 == 0 {
            driver.run().expect("processed");
        }
    }
    driver.run().expect("processed");
    let mut last: BTreeMap<(String, i64), i64> = BTreeMap::new();
    for record in driver.records("out") {
        let key = record.key.expect("windowed");
        let (key, start) = key.split_last_chunk::<8>().expect("windowed");
        let count = i64::from_be_bytes(record.value.expect("a count").try_into().expect("8 bytes"));
        last.insert((String::from_utf8_lossy(key).into_owned(), i64::from_be_bytes(*start)), count);
    }
    assert_eq!(last, expected);
    assert_eq!(driver.counters().late, late);
}

#[test]
fn windows_leave_the_store_once_they_are_closed() {
    let topology = counting(TimeWindows::tumbling(1000), Emit::PerCommit);
    let mut driver = TestDriver::new(topology, &[("in", 1), ("out", 1)]).expect("started");
    for minute in 0..30 {
        produce(&mut driver, "k", &[minute * 60_000]);
        driver.run().expect("processed");
    }
    let key = WindowStoreKey { key: Text, size_ms: 1000 };
    let kept: Vec<(Windowed<String>, i64, i64)> =
        driver.store("windows").entries(&key, &BigEndian).expect("readable");
    assert!((1..=2).contains(&kept.len()), "{kept:?} are kept, in segments of a minute");
    let last = &kept[kept.len() - 1];
    assert_eq!((last.0.window.start_ms, last.0.window.end_ms, last.1), (1_740_000, 1_741_000, 1));
}
