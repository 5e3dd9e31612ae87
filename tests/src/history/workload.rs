//! Producers and consumers that write down what they were told and what they have seen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use thalweg_client::{
    Client, ClientConfig, Consumer, ConsumerConfig, ErrorKind, Isolation, OffsetReset, OffsetSpec, Polled,
    Producer, ProducerConfig, ProducerRecord, RebalanceEvent,
};
use thalweg_protocol::{Offset, Scratch, TopicPartition};
use tokio::task::JoinHandle;

use super::{Fate, Group, History, Reading, Sent, Value};

/// How long anything may take that must happen once the broker stays up.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a transaction lives whose producer is gone.
const TRANSACTION_TIMEOUT_MS: i32 = 10_000;
/// What a plain producer sends before it waits for the answers.
const BURST: u64 = 20;
const PAUSE: Duration = Duration::from_millis(2);
const POLL: Duration = Duration::from_millis(100);
const DECOMPRESSED_BYTES: usize = 16 << 20;

/// The clients, running.
pub struct Workload {
    config: ClientConfig,
    topic: &'static str,
    partitions: i32,
    producing: Arc<AtomicBool>,
    consuming: Arc<AtomicBool>,
    ends: Arc<OnceLock<Ends>>,
    producers: Vec<JoinHandle<anyhow::Result<Vec<Group>>>>,
    readers: Vec<JoinHandle<anyhow::Result<Vec<Reading>>>>,
}

/// The offset after the last record, by partition.
type Ends = BTreeMap<i32, i64>;

/// The members of the group whose members come and go.
const GROUP: &str = "watchers";

impl Workload {
    /// Starts two plain producers, two transactional ones, a consumer of all partitions and a group of two.
    pub fn start(address: &str, topic: &'static str, partitions: i32, seed: u64) -> Self {
        let mut workload = Self {
            config: ClientConfig::with_bootstrap(address),
            topic,
            partitions,
            producing: Arc::new(AtomicBool::new(true)),
            consuming: Arc::new(AtomicBool::new(true)),
            ends: Arc::new(OnceLock::new()),
            producers: Vec::new(),
            readers: Vec::new(),
        };
        for number in 0..4 {
            let writer = Writer {
                config: workload.config.clone(),
                topic,
                partitions,
                number,
                next: 0,
                random: fastrand::Rng::with_seed(seed.wrapping_add(u64::from(number))),
                goes_on: Arc::clone(&workload.producing),
            };
            workload.producers.push(match number {
                0 | 1 => tokio::spawn(writer.plain()),
                _ => tokio::spawn(writer.in_transactions()),
            });
        }
        for member in 0..3 {
            let reader = Reader {
                config: workload.config.clone(),
                topic,
                partitions,
                goes_on: Arc::clone(&workload.consuming),
                ends: Arc::clone(&workload.ends),
            };
            workload.readers.push(match member {
                0 => tokio::spawn(reader.all()),
                _ => tokio::spawn(reader.in_a_group()),
            });
        }
        workload
    }

    /// Ends the producers, has the consumers read to the end, and returns everything.
    ///
    /// # Errors
    /// When a client fails in a way that a broker which comes back does not excuse.
    pub async fn finish(mut self) -> anyhow::Result<History> {
        self.producing.store(false, Ordering::Relaxed);
        let mut history = History::default();
        for producer in std::mem::take(&mut self.producers) {
            history.sent.extend(producer.await??);
        }
        // What a dead producer left open holds readers back until it expires.
        history.log = read_to_the_end(&self.config, self.topic, self.partitions).await?;
        let ends = history.log.iter().filter_map(|(&at, records)| Some((at, records.last()?.0 + 1)));
        let ends = self.ends.get_or_init(|| ends.collect());
        self.group_reaches(ends).await?;
        self.consuming.store(false, Ordering::Relaxed);
        for reader in self.readers {
            let readings = tokio::time::timeout(PATIENCE, reader).await;
            history.readings.extend(readings.context("a consumer never reaches the end")???);
        }
        Ok(history)
    }

    /// Waits until the group has committed all: a member that could not take its leave while the broker was away
    /// keeps its partitions until its session is over.
    async fn group_reaches(&self, ends: &Ends) -> anyhow::Result<()> {
        let client = Client::connect(self.config.clone()).await?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let committed = client.admin().committed_offsets(GROUP, None, false).await?;
            let is_there = |(&partition, &end): (&i32, &i64)| {
                let at = TopicPartition::new(self.topic, partition);
                committed.get(&at).is_some_and(|committed| committed.offset.0 >= end)
            };
            if ends.iter().all(is_there) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the group is at {committed:?} and never reaches {ends:?}");
            tokio::time::sleep(POLL).await;
        }
    }
}

/// What a new consumer sees of all partitions, once no transaction is open any more.
///
/// # Errors
/// When it cannot be read within two minutes.
pub async fn read_to_the_end(
    config: &ClientConfig,
    topic: &str,
    partitions: i32,
) -> anyhow::Result<BTreeMap<i32, Vec<(i64, Value)>>> {
    let client = Client::connect(config.clone()).await?;
    let all: Vec<_> = (0..partitions).map(|partition| TopicPartition::new(topic, partition)).collect();
    let ask: Vec<_> = all.iter().map(|at| (at.clone(), OffsetSpec::Latest)).collect();
    let ends = client.admin().list_offsets(&ask, Isolation::ReadUncommitted).await?;
    let deadline = Instant::now() + PATIENCE;
    let mut consumer = client.consumer(from_the_start(ConsumerConfig::default()))?;
    consumer.assign(all.iter().cloned())?;
    for partition in &all {
        consumer.seek(partition, Offset(0))?;
    }
    let mut log: BTreeMap<i32, Vec<(i64, Value)>> =
        (0..partitions).map(|partition| (partition, Vec::new())).collect();
    let is_at_end = |consumer: &Consumer| {
        all.iter().all(|at| {
            let end = ends.get(at).and_then(|listed| listed.offset).unwrap_or_default();
            consumer.position(at).is_some_and(|position| position >= end)
        })
    };
    while !is_at_end(&consumer) {
        ensure!(Instant::now() < deadline, "the end of the log cannot be read");
        let polled = consumer.poll(POLL).await?;
        take(&polled, |partition, offset, value| log.entry(partition).or_default().push((offset, value)))?;
    }
    consumer.close().await?;
    Ok(log)
}

fn from_the_start(config: ConsumerConfig) -> ConsumerConfig {
    ConsumerConfig { offset_reset: OffsetReset::Earliest, ..config }
}

fn take(polled: &Polled, mut each: impl FnMut(i32, i64, Value)) -> anyhow::Result<()> {
    let mut scratch = Scratch::new(DECOMPRESSED_BYTES);
    for fetched in &polled.batches {
        let mut unreadable = None;
        fetched.for_each(&mut scratch, |record| {
            let text = std::str::from_utf8(record.value.unwrap_or_default()).unwrap_or_default();
            match text.parse() {
                Ok(value) => each(fetched.partition.partition, record.offset.0, value),
                Err(error) => unreadable = Some(error),
            }
            Ok::<(), thalweg_client::Error>(())
        })?;
        if let Some(error) = unreadable {
            return Err(error);
        }
    }
    Ok(())
}

struct Writer {
    config: ClientConfig,
    topic: &'static str,
    partitions: i32,
    number: u32,
    next: u64,
    random: fastrand::Rng,
    goes_on: Arc<AtomicBool>,
}

impl Writer {
    fn next_value(&mut self) -> (Value, i32) {
        let value = Value { producer: self.number, number: self.next };
        self.next += 1;
        (value, self.random.i32(0..self.partitions))
    }

    fn record(&self, value: Value, partition: i32) -> ProducerRecord {
        ProducerRecord::new(self.topic, value.to_string()).partition(partition)
    }

    async fn plain(mut self) -> anyhow::Result<Vec<Group>> {
        let client = Client::connect(self.config.clone()).await?;
        let producer = client.producer(ProducerConfig { linger_ms: 1, ..ProducerConfig::default() })?;
        let mut groups = Vec::new();
        while self.goes_on.load(Ordering::Relaxed) {
            let mut deliveries = Vec::new();
            for _ in 0..BURST {
                let (value, partition) = self.next_value();
                let delivery = producer.send(self.record(value, partition)).await?;
                deliveries.push((value, partition, delivery));
            }
            for (value, partition, delivery) in deliveries {
                let (fate, offset) = match delivery.await {
                    Ok(written) => (Fate::Done, written.offset.map(|offset| offset.0)),
                    Err(_) => (Fate::Unknown, None),
                };
                groups.push(Group { fate, records: vec![Sent { value, partition, offset }] });
            }
            tokio::time::sleep(PAUSE).await;
        }
        producer.close().await?;
        Ok(groups)
    }

    async fn in_transactions(mut self) -> anyhow::Result<Vec<Group>> {
        let client = Client::connect(self.config.clone()).await?;
        let id = format!("transactions-{}", self.number);
        let config = ProducerConfig {
            linger_ms: 1,
            transaction_timeout_ms: TRANSACTION_TIMEOUT_MS,
            ..ProducerConfig::transactional(id)
        };
        let producer = client.producer(config)?;
        patiently(|| producer.init_transactions()).await?;
        let mut groups = Vec::new();
        while self.goes_on.load(Ordering::Relaxed) {
            producer.begin_transaction()?;
            let mut records = Vec::new();
            for _ in 0..self.random.u32(1..15) {
                let (value, partition) = self.next_value();
                records.push(Sent { value, partition, offset: None });
                // What goes wrong comes out at the end.
                if producer.send(self.record(value, partition)).await.is_err() {
                    break;
                }
            }
            let commit = self.random.u8(..4) > 0;
            let fate = end(&producer, commit).await?;
            groups.push(Group { fate, records });
            tokio::time::sleep(PAUSE).await;
        }
        producer.close().await?;
        Ok(groups)
    }
}

/// Tries again for as long as the broker may be away.
async fn patiently<T, F: Future<Output = thalweg_client::Result<T>>>(
    mut work: impl FnMut() -> F,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match work().await {
            Ok(done) => return Ok(done),
            Err(error) if error.kind() == ErrorKind::Retry && Instant::now() < deadline => {
                tokio::time::sleep(POLL).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Ends a transaction, one way or the other.
async fn end(producer: &Producer, commit: bool) -> anyhow::Result<Fate> {
    let deadline = Instant::now() + PATIENCE;
    let mut is_committing = commit;
    loop {
        let ended = match is_committing {
            true => producer.commit_transaction().await,
            false => producer.abort_transaction().await,
        };
        let error = match ended {
            Ok(()) if is_committing => return Ok(Fate::Done),
            Ok(()) => return Ok(Fate::NotDone),
            Err(error) => error,
        };
        match error.kind() {
            _ if Instant::now() >= deadline => return Err(error.into()),
            ErrorKind::Retry => tokio::time::sleep(POLL).await,
            ErrorKind::Abort => is_committing = false,
            ErrorKind::Ambiguous => {
                patiently(|| producer.init_transactions()).await?;
                // What was to be aborted cannot have been committed.
                return Ok(if is_committing { Fate::Unknown } else { Fate::NotDone });
            }
            _ => return Err(error.into()),
        }
    }
}

struct Reader {
    config: ClientConfig,
    topic: &'static str,
    partitions: i32,
    goes_on: Arc<AtomicBool>,
    ends: Arc<OnceLock<Ends>>,
}

impl Reader {
    /// Reads all partitions by itself.
    async fn all(self) -> anyhow::Result<Vec<Reading>> {
        let client = Client::connect(self.config.clone()).await?;
        let mut consumer = client.consumer(from_the_start(ConsumerConfig::default()))?;
        let all = (0..self.partitions).map(|partition| TopicPartition::new(self.topic, partition));
        consumer.assign(all.clone())?;
        for partition in all {
            consumer.seek(&partition, Offset(0))?;
        }
        let new = |partition| Reading { partition, from: Some(0), group: None, records: Vec::new() };
        let mut readings: Vec<_> = (0..self.partitions).map(new).collect();
        while !self.is_at_end(&consumer) {
            let Some(polled) = excused(consumer.poll(POLL).await)? else { continue };
            take(&polled, |partition, offset, value| {
                readings[partition as usize].records.push((offset, value))
            })?;
        }
        consumer.close().await?;
        Ok(readings)
    }

    /// Whether the ends are known and the consumer has come past all of them, with or without their records.
    fn is_at_end(&self, consumer: &Consumer) -> bool {
        let is_past = |(&partition, &end): (&i32, &i64)| {
            consumer.position(&TopicPartition::new(self.topic, partition)).is_some_and(|at| at.0 >= end)
        };
        self.ends.get().is_some_and(|ends| ends.iter().all(is_past))
    }

    /// Reads as a member of the group: commits what it has seen, and leaves now and then.
    async fn in_a_group(self) -> anyhow::Result<Vec<Reading>> {
        let client = Client::connect(self.config.clone()).await?;
        let mut done = Vec::new();
        while self.goes_on.load(Ordering::Relaxed) {
            let config = ConsumerConfig {
                session_timeout_ms: 6_000,
                heartbeat_interval_ms: 500,
                ..ConsumerConfig::group(GROUP)
            };
            let mut consumer = client.consumer(from_the_start(config))?;
            consumer.subscribe([self.topic])?;
            let leaves_at = Instant::now() + Duration::from_secs(fastrand::u64(5..15));
            let mut open: BTreeMap<i32, Reading> = BTreeMap::new();
            while self.goes_on.load(Ordering::Relaxed) && Instant::now() < leaves_at {
                let Some(polled) = excused(consumer.poll(POLL).await)? else { continue };
                for event in &polled.events {
                    follow(event, &mut open, &mut done);
                }
                take(&polled, |partition, offset, value| {
                    let new = || Reading {
                        partition,
                        from: None,
                        group: Some(GROUP.to_owned()),
                        records: Vec::new(),
                    };
                    open.entry(partition).or_insert_with(new).records.push((offset, value));
                })?;
                // What cannot be committed is read again by whoever gets the partition.
                let _ = consumer.commit().await;
            }
            done.extend(open.into_values());
            let _ = consumer.close().await;
        }
        Ok(done)
    }
}

/// A change of the assignment ends the readings of what goes.
fn follow(event: &RebalanceEvent, open: &mut BTreeMap<i32, Reading>, done: &mut Vec<Reading>) {
    let (RebalanceEvent::Revoked(partitions)
    | RebalanceEvent::Lost(partitions)
    | RebalanceEvent::Assigned(partitions)) = event;
    done.extend(partitions.iter().filter_map(|at| open.remove(&at.partition)));
}

/// What a broker that is away excuses is no failure.
fn excused(polled: thalweg_client::Result<Polled>) -> anyhow::Result<Option<Polled>> {
    match polled {
        Ok(polled) => Ok(Some(polled)),
        Err(error) if matches!(error.kind(), ErrorKind::Retry | ErrorKind::Rejoin) => Ok(None),
        Err(error) => bail!(anyhow::Error::new(error).context("a consumer failed")),
    }
}
