//! A log written by a script, so that what every reader must see of it is known at every moment.

use std::time::Duration;

use thalweg_client::{Isolation, OffsetSpec, Producer, ProducerConfig, ProducerRecord};
use thalweg_protocol::{Compression, Offset, TopicPartition};
use tokio::time::{Instant, sleep};

use super::{Ground, PATIENCE, at};

/// What is written next, always as one batch.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// So many records outside transactions.
    Plain(usize),
    /// The same in a compressed batch.
    Packed(usize),
    /// So many records of this transactional producer, in the transaction that it has open, else in a new one.
    In(usize, usize),
    /// This transactional producer commits.
    Commit(usize),
    /// This transactional producer aborts.
    Abort(usize),
}

/// A record as the script wrote it.
#[derive(Clone, Debug)]
struct Written {
    offset: i64,
    value: String,
    /// The transaction that it is part of, as an index into the outcomes.
    transaction: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Open { first_offset: i64 },
    Committed,
    Aborted,
}

/// A partition, its writers, and what they have written.
pub struct Script<'g> {
    ground: &'g Ground,
    topic: String,
    plain: Producer,
    packed: Producer,
    /// The transactional producers; every other one compresses.
    transactional: Vec<Producer>,
    /// The transaction that each of them has open.
    open: Vec<Option<usize>>,
    records: Vec<Written>,
    outcomes: Vec<Outcome>,
    /// The offset of what is written next, markers included.
    end: i64,
}

/// Producers that close a batch only when they are flushed.
fn unhurried(compression: Compression, transactional_id: Option<String>) -> ProducerConfig {
    ProducerConfig { compression, transactional_id, linger_ms: 60_000, ..ProducerConfig::default() }
}

impl<'g> Script<'g> {
    pub async fn new(ground: &'g Ground, transactional_producers: usize) -> Self {
        let mut transactional = Vec::new();
        for number in 0..transactional_producers {
            let compression = [Compression::None, Compression::Lz4][number % 2];
            let id = ground.name("id");
            let producer = ground.producer(unhurried(compression, Some(id)));
            producer.init_transactions().await.expect("the transactional id is taken over");
            transactional.push(producer);
        }
        Self {
            ground,
            topic: ground.topic(1).await,
            plain: ground.producer(unhurried(Compression::None, None)),
            packed: ground.producer(unhurried(Compression::Zstd, None)),
            open: vec![None; transactional_producers],
            transactional,
            records: Vec::new(),
            outcomes: Vec::new(),
            end: 0,
        }
    }

    pub fn partition(&self) -> TopicPartition {
        at(&self.topic, 0)
    }

    pub async fn run(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(*step).await;
        }
    }

    pub async fn step(&mut self, step: Step) {
        match step {
            Step::Plain(count) => self.write(&self.plain.clone(), count, None).await,
            Step::Packed(count) => self.write(&self.packed.clone(), count, None).await,
            Step::In(producer, count) => {
                let transaction = match self.open[producer] {
                    Some(transaction) => transaction,
                    None => {
                        self.transactional[producer].begin_transaction().expect("none is open");
                        self.outcomes.push(Outcome::Open { first_offset: self.end });
                        self.outcomes.len() - 1
                    }
                };
                self.open[producer] = Some(transaction);
                self.write(&self.transactional[producer].clone(), count, Some(transaction)).await;
            }
            Step::Commit(producer) => {
                self.transactional[producer].commit_transaction().await.expect("it is committed");
                self.ended(producer, Outcome::Committed).await;
            }
            Step::Abort(producer) => {
                self.transactional[producer].abort_transaction().await.expect("it is aborted");
                self.ended(producer, Outcome::Aborted).await;
            }
        }
    }

    async fn write(&mut self, producer: &Producer, count: usize, transaction: Option<usize>) {
        let mut deliveries = Vec::new();
        for _ in 0..count {
            let offset = self.end;
            let value = format!("record {offset}, and what makes it worth compressing: {}", "x".repeat(50));
            let record = ProducerRecord::new(self.topic.as_str(), value.clone()).partition(0);
            deliveries.push((offset, producer.send(record).await.expect("there is room")));
            self.records.push(Written { offset, value, transaction });
            self.end += 1;
        }
        producer.flush().await.expect("all are written");
        for (offset, delivery) in deliveries {
            assert_eq!(delivery.await.expect("it is written").offset, Some(Offset(offset)));
        }
    }

    /// The marker follows the end of a transaction a moment later, and takes an offset.
    async fn ended(&mut self, producer: usize, outcome: Outcome) {
        let transaction = self.open[producer].take().expect("the script has begun it");
        self.outcomes[transaction] = outcome;
        self.end += 1;
        let deadline = Instant::now() + PATIENCE;
        while self.listed_end(Isolation::ReadUncommitted).await != self.end {
            assert!(Instant::now() < deadline, "there is no marker");
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// The end of the partition as the broker tells it.
    pub async fn listed_end(&self, isolation: Isolation) -> i64 {
        let wanted = [(self.partition(), OffsetSpec::Latest)];
        let listed = self.ground.client.admin().list_offsets(&wanted, isolation).await;
        listed.expect("it answers")[&self.partition()].offset.expect("a partition has an end").0
    }

    /// How far a reader can come now.
    pub fn end(&self, isolation: Isolation) -> i64 {
        let first_offset = |outcome: &Outcome| match *outcome {
            Outcome::Open { first_offset } => Some(first_offset),
            Outcome::Committed | Outcome::Aborted => None,
        };
        match isolation {
            Isolation::ReadUncommitted => self.end,
            Isolation::ReadCommitted => {
                self.outcomes.iter().filter_map(first_offset).min().unwrap_or(self.end)
            }
        }
    }

    /// What a reader that starts at `start` can have seen by now.
    pub fn visible(&self, isolation: Isolation, start: i64) -> Vec<(i64, String)> {
        let bounds = start..self.end(isolation).max(start);
        let is_aborted = |record: &Written| {
            record.transaction.is_some_and(|transaction| self.outcomes[transaction] == Outcome::Aborted)
        };
        self.records
            .iter()
            .filter(|record| bounds.contains(&record.offset))
            .filter(|record| isolation == Isolation::ReadUncommitted || !is_aborted(record))
            .map(|record| (record.offset, record.value.clone()))
            .collect()
    }
}
