//! Filters on hidden columns: they keep the log from being read, and never change an answer.

use std::time::Duration;

use thalweg_client::{ConsumerConfig, OffsetReset, ProducerRecord};
use thalweg_protocol::TopicPartition;
use thalweg_protocol::record::RecordBatch;
use thalweg_sql::{LogRead, Session};

use crate::ground::{Ground, query};

/// The bytes between two entries of the index.
const INDEX_INTERVAL: u64 = 4096;

/// A small generator (xorshift) with a seed, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// The rows of a query, in any order, and what was read for it.
async fn sorted(session: &Session, sql: &str) -> (Vec<String>, LogRead) {
    let mut rows = query(session, sql).await;
    let batches = rows.collect().await.expect("it runs");
    let mut lines = Vec::new();
    for batch in &batches {
        let shown = arrow::util::pretty::pretty_format_batches(std::slice::from_ref(batch)).expect("shown");
        lines.extend(shown.to_string().lines().filter(|line| line.starts_with("| ")).skip(1).map(unpadded));
    }
    lines.sort();
    (lines, rows.log_read())
}

fn unpadded(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

const PARTITIONS: u64 = 3;
const RECORDS: u64 = 900;
const START: u64 = 1_357_000_000_000;

/// A topic whose timestamps jump back and forth, in batches of a few records.
async fn out_of_order(ground: &Ground, dice: &mut Dice) {
    ground.create("events", PARTITIONS as i32).await;
    let producer = ground.producer();
    for n in 0..RECORDS {
        let record = ProducerRecord::new("events", format!(r#"{{"n":{n}}}"#))
            .partition(dice.below(PARTITIONS) as i32)
            .timestamp((START + n * 10 + dice.below(3000)) as i64);
        producer.send(record).await.expect("there is room");
        if dice.below(4) == 0 {
            producer.flush().await.expect("all are written");
        }
    }
    producer.flush().await.expect("all are written");
}

#[tokio::test(flavor = "multi_thread")]
async fn pruned_and_unpruned_answers_are_equal() {
    const SEED: u64 = 0x5eed_2013;
    let ground = Ground::new().await;
    let mut dice = Dice(SEED);
    out_of_order(&ground, &mut dice).await;
    let session = ground.session();
    let (mut pruned_records, mut all_records) = (0, 0);
    for round in 0..60 {
        let filter = filter(&mut dice, 2);
        let named = |partition, offset, timestamp| {
            filter.replace("{p}", partition).replace("{o}", offset).replace("{t}", timestamp)
        };
        // The same filter on columns that mean nothing to the scan: none goes below a limit.
        let hidden = "SELECT n, _partition AS p, _offset AS o, _timestamp AS t FROM events LIMIT 100000";
        let unpruned = format!("SELECT n, p, o, t FROM ({hidden}) WHERE {}", named("p", "o", "t"));
        let filter = named("_partition", "_offset", "_timestamp");
        let pruned = format!("SELECT n, _partition, _offset, _timestamp FROM events WHERE {filter}");
        let (expected, all) = sorted(&session, &unpruned).await;
        let (rows, read) = sorted(&session, &pruned).await;
        assert_eq!(rows, expected, "seed {SEED:#x}, round {round}: {filter}");
        assert_eq!(all.records, RECORDS);
        assert!(read.records <= RECORDS);
        (pruned_records, all_records) = (pruned_records + read.records, all_records + all.records);
    }
    assert!(pruned_records * 10 < all_records * 9, "{pruned_records} of {all_records} records were read");
}

/// A filter on `{p}`, `{o}` and `{t}`: partition, offset and timestamp.
fn filter(dice: &mut Dice, depth: u64) -> String {
    let time = |dice: &mut Dice| {
        let at = START + dice.below(RECORDS * 10 + 3000);
        format!("to_timestamp_millis({at})")
    };
    let offset = |dice: &mut Dice| dice.below(RECORDS / PARTITIONS + 20);
    match dice.below(if depth == 0 { 8 } else { 11 }) {
        0 => format!("{{p}} = {}", dice.below(PARTITIONS + 1)),
        1 => format!("{{p}} IN ({}, {})", dice.below(PARTITIONS), dice.below(PARTITIONS)),
        2 => format!("{{o}} >= {}", offset(dice)),
        3 => format!("{{o}} < {}", offset(dice)),
        4 => format!("{} = {{o}}", offset(dice)),
        5 => format!("{{o}} BETWEEN {} AND {}", offset(dice), offset(dice)),
        6 => format!("{{t}} >= {}", time(dice)),
        7 => format!("{{t}} < {}", time(dice)),
        8 => format!("({} OR {})", filter(dice, depth - 1), filter(dice, depth - 1)),
        9 => format!("NOT ({})", filter(dice, depth - 1)),
        _ => format!("{} AND {}", filter(dice, depth - 1), filter(dice, depth - 1)),
    }
}

/// The batches of a topic's first partition, as they are in the log.
async fn batches(ground: &Ground, topic: &str, count: i64) -> Vec<RecordBatch> {
    let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::default() };
    let mut consumer = ground.client.consumer(config).expect("the configuration is right");
    consumer.assign([TopicPartition::new(topic, 0)]).expect("it reads nothing yet");
    let mut batches: Vec<RecordBatch> = Vec::new();
    while batches.last().is_none_or(|last| last.header().last_offset().0 < count - 1) {
        let polled = consumer.poll(Duration::from_secs(10)).await.expect("the broker answers");
        assert!(!polled.batches.is_empty(), "nothing came for ten seconds");
        batches.extend(polled.batches.into_iter().flat_map(|fetched| fetched.batches));
    }
    batches
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_read_than_the_covering_batches_and_an_index_interval() {
    const BATCHES: i64 = 150;
    const BATCH_RECORDS: i64 = 10;
    const RECORDS: i64 = BATCHES * BATCH_RECORDS;
    let ground = Ground::new().await;
    ground.create("steps", 1).await;
    let producer = ground.producer();
    for n in 0..RECORDS {
        // Batches of some 1 to 8 KiB.
        let filling = "x".repeat(100 + (n / BATCH_RECORDS * 37 % 700) as usize);
        let value = format!(r#"{{"n":{n},"filling":"{filling}"}}"#);
        let record = ProducerRecord::new("steps", value).timestamp(START as i64 + n);
        producer.send(record).await.expect("there is room");
        if n % BATCH_RECORDS == BATCH_RECORDS - 1 {
            producer.flush().await.expect("all are written");
        }
    }
    let log = batches(&ground, "steps", RECORDS).await;
    assert_eq!(log.len() as i64, BATCHES);
    let covering = |from: i64, to: i64| -> u64 {
        let overlapping = |batch: &&RecordBatch| {
            batch.header().base_offset.0 < to && batch.header().last_offset().0 >= from
        };
        log.iter().filter(overlapping).map(|batch| batch.size_in_bytes() as u64).sum()
    };
    let session = ground.session();
    let time = |n: i64| format!("to_timestamp_millis({})", START as i64 + n);
    let cases = [
        ("_offset = 0".to_owned(), 0, 1),
        ("_offset >= 700 AND _offset < 760".to_owned(), 700, 760),
        ("_offset BETWEEN 703 AND 703".to_owned(), 703, 704),
        ("_offset > 1489".to_owned(), 1490, RECORDS),
        ("_offset < 25".to_owned(), 0, 25),
        (format!("_timestamp >= {}", time(1234)), 1234, RECORDS),
        (format!("_timestamp = {} AND _offset < 300", time(250)), 250, 300),
    ];
    for (filter, from, to) in cases {
        let mut rows = query(&session, &format!("SELECT n, filling FROM steps WHERE {filter}")).await;
        let batches = rows.collect().await.expect("it runs");
        let count: usize = batches.iter().map(|batch| batch.num_rows()).sum();
        assert!(count > 0, "{filter}");
        let (read, covering) = (rows.log_read(), covering(from, to));
        assert!(
            read.bytes >= covering && read.bytes <= covering + INDEX_INTERVAL,
            "{filter}: {} bytes were read and {covering} cover it",
            read.bytes
        );
        assert_eq!(read.records, (to - from) as u64, "{filter}");
    }
    for nothing in
        [format!("_timestamp > {}", time(RECORDS)), "_offset > 5000".to_owned(), "_partition = 1".to_owned()]
    {
        let mut rows = query(&session, &format!("SELECT n FROM steps WHERE {nothing}")).await;
        assert_eq!(rows.collect().await.expect("it runs").len(), 0);
        assert_eq!(rows.log_read(), LogRead::default(), "{nothing}");
    }
}
