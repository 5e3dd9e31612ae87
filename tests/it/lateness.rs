//! What is late in windows of event time: one partition, the flights in the order of their days, against a plain loop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use thalweg_broker::Broker;
use thalweg_client::{Client, ClientConfig, ConsumerConfig, NewTopic, OffsetReset, ProducerConfig};
use thalweg_connectors::parse_time;
use thalweg_protocol::{Scratch, TopicPartition};
use thalweg_streams::{
    Event, Grouped, Json, RawBytes, Streams, StreamsBuilder, StreamsConfig, Text, TimeWindows, WindowedKey,
};
use thalweg_tests::flights::{self, Flight};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

#[derive(Clone, Serialize, Deserialize)]
struct Origin {
    origin: String,
}

/// Windows by (origin, start), and how many flights were late.
type Counted = (BTreeMap<(String, i64), i64>, u64);

fn in_order() -> Vec<(Flight<'static>, i64)> {
    let mut rows: Vec<_> =
        flights::rows().map(|flight| (flight, parse_time(flight.time_hour, 0).expect("an hour"))).collect();
    rows.sort_by_key(|(flight, _)| (flight.month, flight.day));
    rows
}

fn plain_loop(rows: &[(Flight<'_>, i64)], grace_ms: i64) -> Counted {
    let (mut windows, mut late, mut stream_time) = (BTreeMap::new(), 0, i64::MIN);
    for (flight, timestamp) in rows {
        stream_time = stream_time.max(*timestamp);
        let start = timestamp - timestamp.rem_euclid(DAY_MS);
        if start + DAY_MS <= stream_time - grace_ms {
            late += 1;
        } else {
            *windows.entry((flight.origin.to_string(), start)).or_insert(0) += 1;
        }
    }
    (windows, late)
}

async fn load(client: &Client, rows: &[(Flight<'static>, i64)]) -> anyhow::Result<()> {
    client.admin().create_topic(NewTopic::new("flights", 1).config("retention.ms", "-1")).await?;
    let producer = client.producer(ProducerConfig::default())?;
    let mut appender = producer.appender();
    let topic = appender.topic("flights").await?;
    for (flight, timestamp) in rows {
        let value = serde_json::to_vec(&Origin { origin: flight.origin.to_string() })?;
        while appender.append(topic, 0, *timestamp, None, Some(&value), &[]).is_err() {
            appender.room().await?;
        }
    }
    appender.flush().await?;
    drop(appender);
    producer.close().await?;
    Ok(())
}

fn count(config: &ClientConfig, state: &std::path::Path, grace_ms: i64) -> anyhow::Result<u64> {
    let output = format!("days-{grace_ms}");
    let builder = StreamsBuilder::new();
    builder
        .stream::<Vec<u8>, Origin>("flights", RawBytes, Json)
        .group_by(Grouped::new("by-origin", Text, Json), |flight| flight.value.origin.clone())
        .windowed_by(TimeWindows::tumbling(DAY_MS).grace(grace_ms))
        .count("days")
        .to_stream()
        .to(output, WindowedKey { key: Text, size_ms: DAY_MS }, Json);
    let streams = Streams::start(
        builder.build()?,
        StreamsConfig::new(format!("late-{grace_ms}"), state),
        config.clone(),
    )?;
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        match streams
            .events()
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .context("it never went live")?
        {
            Event::Live => break,
            Event::Failed { reason } => anyhow::bail!("{reason}"),
            _ => {}
        }
    }
    let committed = streams.committed();
    streams.close()?;
    Ok(committed.late)
}

async fn read(client: &Client, topic: &str) -> anyhow::Result<BTreeMap<(String, i64), i64>> {
    let mut consumer = client
        .consumer(ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::default() })?;
    consumer.assign([TopicPartition::new(topic, 0)])?;
    let (mut windows, mut scratch) = (BTreeMap::new(), Scratch::new(64 << 20));
    loop {
        let polled = consumer.poll(Duration::from_secs(5)).await?;
        for fetched in &polled.batches {
            fetched.for_each(&mut scratch, |record| -> anyhow::Result<()> {
                let key = record.key.context("a key")?;
                let (origin, start) =
                    key.split_last_chunk::<8>().context("a windowed key ends in its start")?;
                let start = i64::from_be_bytes(*start);
                let flights = serde_json::from_slice(record.value.context("a value")?)?;
                windows.insert((String::from_utf8(origin.to_vec())?, start), flights);
                Ok(())
            })?;
            if fetched.is_caught_up() {
                return Ok(windows);
            }
        }
        ensure!(!polled.batches.is_empty(), "nothing comes any more");
    }
}

#[test]
fn late_flights_are_those_that_a_plain_loop_finds_late() -> anyhow::Result<()> {
    let rows = in_order();
    let directory = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let broker = runtime.block_on(Broker::embedded(directory.path().join("log")))?;
    let config = ClientConfig::with_connector(Arc::new(broker.connect()));
    let client = runtime.block_on(Client::connect(config.clone()))?;
    runtime.block_on(load(&client, &rows))?;
    for (grace_ms, some_are_late) in [(DAY_MS, false), (0, true)] {
        let topic = format!("days-{grace_ms}");
        runtime.block_on(
            client.admin().create_topic(NewTopic::new(topic.as_str(), 1).config("retention.ms", "-1")),
        )?;
        let late = count(&config, &directory.path().join("state"), grace_ms)?;
        let (expected, expected_late) = plain_loop(&rows, grace_ms);
        ensure!(late == expected_late, "grace {grace_ms}: {late} are late, not {expected_late}");
        ensure!((late > 0) == some_are_late, "grace {grace_ms}: {late} are late");
        let windows = runtime.block_on(read(&client, &topic))?;
        ensure!(windows == expected, "grace {grace_ms}: the windows differ");
        let kept: i64 = windows.values().sum();
        ensure!(kept as u64 + late == rows.len() as u64, "grace {grace_ms}: every flight is kept or late");
    }
    drop(client);
    runtime.block_on(broker.shutdown())?;
    Ok(())
}
