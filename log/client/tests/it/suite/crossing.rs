//! From history into what arrives: a reader meets each record once and in order, wherever it begins and
//! whatever is being written when it reaches the end.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use thalweg_client::{
    Consumer, ConsumerConfig, Isolation, OffsetSpec, Producer, ProducerConfig, ProducerRecord,
};
use thalweg_protocol::{Compression, Offset, TopicPartition};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::script::Script;
use super::script::Step::{self, Abort, Commit, In, Packed, Plain};
use super::{Ground, PATIENCE, at, text};

const ISOLATIONS: [Isolation; 2] = [Isolation::ReadCommitted, Isolation::ReadUncommitted];

/// A reader, and what it has seen.
struct Reader {
    consumer: Consumer,
    partition: TopicPartition,
    isolation: Isolation,
    start: i64,
    seen: Vec<(i64, String)>,
}

impl Reader {
    /// Begins at `start`; every other reader fetches one batch at a time.
    fn new(ground: &Ground, partition: &TopicPartition, isolation: Isolation, start: i64) -> Self {
        let bytes = if start % 2 == 1 { 1 } else { 2 << 20 };
        let config =
            ConsumerConfig { isolation, max_partition_fetch_bytes: bytes, ..ConsumerConfig::default() };
        let mut consumer = ground.reader(&partition.topic, &[partition.partition], config);
        consumer.seek(partition, Offset(start)).expect("it is assigned");
        Self { consumer, partition: partition.clone(), isolation, start, seen: Vec::new() }
    }

    async fn poll(&mut self) {
        let polled = self.consumer.poll(Duration::from_millis(100)).await.expect("the poll succeeds");
        for batches in polled.batches {
            let is_new = batches.next_offset > batches.position;
            assert!(is_new, "a reader is only told of what moves it");
            for record in batches.into_records() {
                let record = record.expect("nothing is damaged");
                self.seen.push((record.offset.0, text(&record)));
            }
        }
    }

    /// Reads until the reader stands where the script says that the end is now, and compares.
    async fn follow(&mut self, script: &Script<'_>, moment: &str) {
        let end = script.end(self.isolation).max(self.start);
        let deadline = Instant::now() + PATIENCE;
        let position = loop {
            let position = self.consumer.position(&self.partition).expect("it has been sought").0;
            if position >= end {
                break position;
            }
            assert!(Instant::now() < deadline, "{self:?} stays at {position} {moment}, the end is {end}");
            self.poll().await;
        };
        assert_eq!(position, end, "{self:?} {moment}");
        assert_same(&self.seen, &script.visible(self.isolation, self.start), &format!("{self:?} {moment}"));
    }
}

/// Compares the offsets first, because they say shortly what is wrong.
fn assert_same(seen: &[(i64, String)], expected: &[(i64, String)], context: &str) {
    let offsets = |records: &[(i64, String)]| records.iter().map(|record| record.0).collect::<Vec<_>>();
    assert_eq!(offsets(seen), offsets(expected), "{context}");
    let differs = seen.iter().zip(expected).find(|(seen, expected)| seen != expected);
    assert_eq!(differs, None, "{context}");
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the {:?} reader from {}", self.isolation, self.start)
    }
}

/// Readers from each offset that there is, the end included.
fn readers_from_everywhere(ground: &Ground, script: &Script<'_>) -> Vec<Reader> {
    let partition = script.partition();
    let starts = 0..=script.end(Isolation::ReadUncommitted);
    let readers = |start| ISOLATIONS.map(|isolation| Reader::new(ground, &partition, isolation, start));
    starts.flat_map(readers).collect()
}

async fn follow_all(readers: &mut [Reader], script: &Script<'_>, moment: &str) {
    join_all(readers.iter_mut().map(|reader| reader.follow(script, moment))).await;
}

/// Batches in which a reader can begin, plain and compressed; a transaction that was committed and one that
/// was aborted, with records of others between; two that are open.
const HISTORY: [Step; 13] = [
    Plain(3),
    Packed(4),
    In(1, 3),
    Commit(1),
    In(0, 2),
    Plain(2),
    In(0, 1),
    Abort(0),
    Packed(1),
    In(1, 3),
    Plain(2),
    In(0, 2),
    Packed(2),
];

/// The open ones end, the later one first, and others follow: one that is wholly new to every reader, one
/// that begins before another ends, and an aborted one at the very end.
const ARRIVING: [Step; 13] = [
    Plain(1),
    Commit(0),
    In(1, 2),
    Packed(3),
    Commit(1),
    In(0, 2),
    Abort(0),
    In(0, 1),
    In(1, 1),
    Commit(0),
    Plain(2),
    Abort(1),
    Packed(2),
];

pub async fn history_goes_over_into_what_arrives_from_every_offset(ground: &Ground) {
    let mut script = Script::new(ground, 2).await;
    script.run(&HISTORY).await;
    assert_batches_are_as_the_script_says(ground, &script).await;
    let mut readers = readers_from_everywhere(ground, &script);
    follow_all(&mut readers, &script, "at the end of history").await;
    for (isolation, expected) in [(Isolation::ReadCommitted, 18), (Isolation::ReadUncommitted, 27)] {
        assert_eq!(script.end(isolation), expected, "two transactions are open");
        assert_eq!(script.listed_end(isolation).await, expected);
    }
    for (number, step) in ARRIVING.into_iter().enumerate() {
        script.step(step).await;
        follow_all(&mut readers, &script, &format!("after {step:?}, step {number}")).await;
    }
}

/// That records did come in the batches that were meant.
async fn assert_batches_are_as_the_script_says(ground: &Ground, script: &Script<'_>) {
    let mut reader = Reader::new(ground, &script.partition(), Isolation::ReadUncommitted, 0);
    let mut found = Vec::new();
    while reader.consumer.position(&reader.partition) < Some(Offset(script.end(Isolation::ReadUncommitted))) {
        for batches in reader.consumer.poll(PATIENCE).await.expect("the poll succeeds").batches {
            found.extend(batches.batches.iter().map(|batch| {
                let header = batch.header();
                (header.records_count as usize, header.compression().expect("it is known"))
            }));
        }
    }
    let expected: Vec<(usize, Compression)> = HISTORY
        .into_iter()
        .filter_map(|step| match step {
            Plain(count) => Some((count, Compression::None)),
            Packed(count) => Some((count, Compression::Zstd)),
            In(producer, count) => Some((count, [Compression::None, Compression::Lz4][producer])),
            Commit(_) | Abort(_) => None,
        })
        .collect();
    assert_eq!(found, expected);
}

pub async fn a_reader_may_arrive_at_any_moment(ground: &Ground) {
    let mut script = Script::new(ground, 2).await;
    let mut readers = Vec::new();
    for (number, step) in HISTORY.into_iter().chain(ARRIVING).enumerate() {
        script.step(step).await;
        let moment = format!("after {step:?}, step {number}");
        // Those that came the step before see this one arrive, and make room for others.
        follow_all(&mut readers, &script, &moment).await;
        readers = readers_from_everywhere(ground, &script);
        follow_all(&mut readers, &script, &moment).await;
    }
}

pub async fn a_tail_without_a_visible_record_is_passed(ground: &Ground) {
    let tails: [&[Step]; 6] = [
        &[],
        &[In(0, 2), Abort(0)],
        &[In(0, 2), Commit(0)],
        &[In(0, 1), In(1, 2), Abort(1), Abort(0)],
        &[In(0, 1), In(1, 2), Abort(0), In(0, 3), Abort(1), Abort(0)],
        &[In(1, 1), Abort(1), In(1, 1), Abort(1), In(1, 1), Abort(1)],
    ];
    for history in [0, 3] {
        for tail in tails {
            let mut script = Script::new(ground, 2).await;
            if history > 0 {
                script.step(Plain(history)).await;
            }
            script.run(tail).await;
            let mut reader = Reader::new(ground, &script.partition(), Isolation::ReadCommitted, 0);
            reader.follow(&script, "at the end").await;
            let deadline = Instant::now() + PATIENCE;
            let progress = loop {
                // A first fetch has to be answered before anything is known of an empty partition.
                match reader.consumer.progress(&reader.partition) {
                    Some(progress) => break progress,
                    None => assert!(Instant::now() < deadline, "nothing is known of the partition"),
                }
                reader.poll().await;
            };
            let end = Offset(script.end(Isolation::ReadUncommitted));
            assert!(progress.is_caught_up(), "{history} {tail:?}: {progress:?}");
            assert_eq!((progress.position, progress.end), (end, end), "{history} {tail:?}");
            script.step(Plain(1)).await;
            reader.follow(&script, "after one more").await;
        }
    }
}

/// What became of each record of a race, by offset: its value, and whether it was committed.
type Written = BTreeMap<i64, (String, bool)>;

/// Writes until `rounds` are done, in bursts of random size, and tells what it wrote.
async fn write_at_random(
    producer: Producer,
    topic: String,
    name: usize,
    seed: u64,
    rounds: usize,
) -> Written {
    let mut random = fastrand::Rng::with_seed(seed);
    let is_transactional = name > 0;
    let mut written = Written::new();
    for round in 0..rounds {
        if is_transactional {
            producer.begin_transaction().expect("none is open");
        }
        let mut deliveries = Vec::new();
        for number in 0..random.usize(1..9) {
            let value = format!("{name}: {round}, {number}");
            let record = ProducerRecord::new(topic.as_str(), value.clone()).partition(0);
            deliveries.push((value, producer.send(record).await.expect("there is room")));
            match random.u32(..20) {
                0 => sleep(Duration::from_millis(2)).await,
                1 | 2 => producer.flush().await.expect("all are written"),
                _ => {}
            }
        }
        let commits = !is_transactional || random.u32(..3) > 0;
        producer.flush().await.expect("all are written");
        if is_transactional && commits {
            producer.commit_transaction().await.expect("it is committed");
        } else if is_transactional {
            producer.abort_transaction().await.expect("it is aborted");
        }
        for (value, delivery) in deliveries {
            let offset = delivery.await.expect("it is written").offset.expect("the broker says where");
            assert_eq!(written.insert(offset.0, (value, commits)), None);
        }
    }
    written
}

/// Reads to the final end, once that is known. Before it says for the first time that it has caught up, it
/// must have come to `bound`, which was the end before it began.
async fn read_the_race(mut reader: Reader, bound: i64, mut end: watch::Receiver<Option<i64>>) -> Reader {
    let deadline = Instant::now() + PATIENCE;
    let mut has_caught_up = false;
    loop {
        assert!(Instant::now() < deadline, "{reader:?} does not reach the end");
        reader.poll().await;
        if let Some(progress) = reader.consumer.progress(&reader.partition) {
            if progress.is_caught_up() && !has_caught_up {
                has_caught_up = true;
                assert!(progress.position >= Offset(bound), "{reader:?} caught up early: {progress:?}");
            }
            let end = *end.borrow_and_update();
            if end.is_some_and(|end| progress.position.0 >= end) {
                return reader;
            }
        }
    }
}

pub async fn readers_race_with_writers(ground: &Ground) {
    for seed in 0..3 {
        race(ground, seed).await;
    }
}

async fn race(ground: &Ground, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let topic = ground.topic(1).await;
    let partition = at(&topic, 0);
    let mut writers = Vec::new();
    for name in 0..3 {
        let transactional_id = (name > 0).then(|| ground.name("id"));
        let compression = [Compression::None, Compression::Lz4, Compression::None][name];
        let config =
            ProducerConfig { transactional_id, compression, linger_ms: 1, ..ProducerConfig::default() };
        let producer = ground.producer(config);
        if name > 0 {
            producer.init_transactions().await.expect("the transactional id is taken over");
        }
        writers.push(tokio::spawn(write_at_random(producer, topic.clone(), name, random.u64(..), 30)));
    }
    let (tell_end, end) = watch::channel(None);
    let mut readers = Vec::new();
    while readers.len() < 24 {
        let isolation = ISOLATIONS[random.usize(..2)];
        let bound = listed_end(ground, &partition, isolation).await;
        let start = random.i64(0..=bound);
        let reader = Reader::new(ground, &partition, isolation, start);
        readers.push(tokio::spawn(read_the_race(reader, bound, end.clone())));
        sleep(Duration::from_millis(random.u64(..8))).await;
    }
    let mut written = Written::new();
    for writer in writers {
        written.append(&mut writer.await.expect("the writer ends"));
    }
    // The last markers may still be on their way.
    let deadline = Instant::now() + PATIENCE;
    let last = loop {
        assert!(Instant::now() < deadline, "the last markers do not come");
        let all = listed_end(ground, &partition, Isolation::ReadUncommitted).await;
        if listed_end(ground, &partition, Isolation::ReadCommitted).await == all {
            break all;
        }
        sleep(Duration::from_millis(5)).await;
    };
    tell_end.send(Some(last)).expect("the readers wait for it");
    for reader in readers {
        let reader = reader.await.expect("the reader ends");
        let expected: Vec<(i64, String)> = written
            .range(reader.start..)
            .filter(|(_, (_, committed))| *committed || reader.isolation == Isolation::ReadUncommitted)
            .map(|(offset, (value, _))| (*offset, value.clone()))
            .collect();
        assert_same(&reader.seen, &expected, &format!("{reader:?}, seed {seed}"));
    }
}

async fn listed_end(ground: &Ground, partition: &TopicPartition, isolation: Isolation) -> i64 {
    let wanted = [(partition.clone(), OffsetSpec::Latest)];
    let listed = ground.client.admin().list_offsets(&wanted, isolation).await;
    listed.expect("it answers")[partition].offset.expect("a partition has an end").0
}
