//! Writing: records one by one, or many without a future for each; plain, idempotent or in transactions.

mod accumulator;
mod appender;
mod batch;
mod core;
mod delivery;
mod flush;
mod handle;
mod identity;
mod memory;
mod partitioner;
mod parts;
mod queue;
mod record;
mod refusals;
mod sender;
mod tally;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::TopicPartition;
use thalweg_protocol::record::Header;
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::accumulator::{Accumulator, Added, TopicBatches};
use self::batch::RecordParts;
use self::core::Core;
use self::handle::Handle;
use self::memory::Memory;
use self::sender::{Message, Sender};
use self::tally::Tally;
use self::transaction::Transaction;
use crate::clock::wall_clock_ms;
use crate::cluster::Cluster;
use crate::config::{Acks, ProducerConfig};
use crate::consumer::{CommittedOffset, GroupMetadata};
use crate::error::{Error, Result};

pub use appender::{Appender, TopicSlot};
pub use delivery::{Acknowledged, Delivery};
pub use partitioner::{KeyHash, Partitioner};
pub use record::ProducerRecord;
pub use refusals::{Refusals, Refused};
pub use tally::ProducerMetrics;

/// Writes records. Cloning it is cheap; clones are the same producer.
///
/// Records of one partition keep the order in which they were sent, retries included. When a topic gets partitions, a
/// producer uses them as soon as the client's metadata tells of them (`metadata_max_age_ms`); keys move then, as in
/// Kafka. Dropping all clones
/// sends what is waiting in the background as far as the runtime lives; [`Producer::flush`] waits for it.
#[derive(Clone)]
pub struct Producer {
    handle: Handle,
    partitioner: Arc<dyn Partitioner>,
    runtime: runtime::Handle,
}

impl Producer {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        config: ProducerConfig,
        partitioner: Arc<dyn Partitioner>,
    ) -> Result<Self> {
        check(&config)?;
        let transaction = config
            .transactional_id
            .as_deref()
            .map(|id| Transaction::new(&cluster, id, config.transaction_timeout_ms));
        let core = Arc::new(Core {
            memory: Memory::new(config.buffer_memory),
            accumulator: Accumulator::new(&config),
            transaction,
            tally: Tally::default(),
            cluster,
            config,
        });
        let (to_sender, inbox) = mpsc::unbounded_channel();
        let sender = Sender::new(Arc::clone(&core), inbox, to_sender.downgrade());
        let runtime = runtime::Handle::current();
        runtime.spawn(sender.run());
        Ok(Self { handle: Handle::new(core, to_sender), partitioner, runtime })
    }

    /// Puts a record into its partition's batch; waits only when the topic is new to this producer or the
    /// buffer is full. The [`Delivery`] resolves when the record has been written.
    ///
    /// # Errors
    /// By kind: `GiveUp` for a record that cannot be sent; `Abort` when the transaction has failed; `Retry`
    /// when there was no room within `max_block_ms`.
    pub async fn send(&self, record: ProducerRecord) -> Result<Delivery> {
        let topic = self.topic_for(&record).await?;
        let sending = Sending::new(self, &topic, record)?;
        let mut deadline = None;
        loop {
            match sending.attempt(self, &topic)? {
                Ok(delivery) => return Ok(delivery),
                Err(needed) => {
                    let deadline = *deadline.get_or_insert_with(|| self.block_deadline());
                    if !self.handle.core().memory.wait(needed, deadline).await {
                        return Err(self.buffer_full());
                    }
                }
            }
        }
    }

    /// Sends a record and waits until it has been written.
    ///
    /// # Errors
    /// As [`Producer::send`], and why the record was not written.
    pub async fn send_and_wait(&self, record: ProducerRecord) -> Result<Acknowledged> {
        self.send(record).await?.await
    }

    /// [`Producer::send`] for threads outside of a runtime: blocks where that waits.
    ///
    /// # Errors
    /// As [`Producer::send`].
    pub fn send_blocking(&self, record: ProducerRecord) -> Result<Delivery> {
        let topic = match self.known_topic(&record.topic).filter(|topic| has_partition(topic, &record)) {
            Some(topic) => topic,
            None => self.runtime.block_on(self.topic_for(&record))?,
        };
        let sending = Sending::new(self, &topic, record)?;
        let mut deadline = None;
        loop {
            match sending.attempt(self, &topic)? {
                Ok(delivery) => return Ok(delivery),
                Err(needed) => {
                    let deadline = *deadline.get_or_insert_with(|| self.block_deadline());
                    if !self.handle.core().memory.wait_blocking(needed, deadline) {
                        return Err(self.buffer_full());
                    }
                }
            }
        }
    }

    /// The fast way for one thread: appends records to batches of its own, without a lock, an allocation or a
    /// future for each.
    pub fn appender(&self) -> Appender {
        Appender::new(self.handle.clone(), Arc::clone(&self.partitioner))
    }

    /// Sends everything that waits, without its linger time, and waits until all of it is written.
    ///
    /// # Errors
    /// The first error of any record since the last flush.
    pub async fn flush(&self) -> Result<()> {
        self.handle.flush().await
    }

    /// How many records have been acknowledged; with `acks=0`, sent.
    pub fn acknowledged(&self) -> u64 {
        self.handle.core().tally.acknowledged()
    }

    /// How many records have failed: they are not written, or it is not known whether they are. A flush says why.
    pub fn failed(&self) -> u64 {
        self.handle.core().tally.failed()
    }

    /// What this producer and its clones have done so far.
    pub fn metrics(&self) -> ProducerMetrics {
        let core = self.handle.core();
        core.tally.metrics(core.memory.used())
    }

    /// Why the newest attempt failed, if it is tried again and none has succeeded since: what records wait for.
    pub fn trouble(&self) -> Option<Error> {
        self.handle.core().tally.trouble()
    }

    /// How many partitions a topic has.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic), and whatever keeps the cluster from answering.
    pub async fn partition_count(&self, topic: &str) -> Result<i32> {
        self.handle.core().cluster.partition_count(&ByteString::from(topic)).await
    }

    /// Takes over the transactional id: older producers of it are fenced, and a transaction that one of them
    /// left is ended (committed, if its commit had been decided; else aborted) before this returns.
    ///
    /// To be called once before the first transaction, and again after an error of kind `Ambiguous`:
    /// afterwards the committed offsets say whether the transaction was committed
    /// ([`Admin::committed_offsets`](crate::Admin::committed_offsets) with `require_stable`). After such an error it
    /// takes over whoever has the id by then, as a new producer would.
    ///
    /// # Errors
    /// By kind: `Fenced`, `Retry`, or `GiveUp` ([`Error::Misuse`](crate::Error::Misuse) without a
    /// transactional id).
    pub async fn init_transactions(&self) -> Result<()> {
        let identity = self.transaction("init_transactions")?.init().await?;
        self.handle.tell(Message::Identity(identity))
    }

    /// Begins a transaction: everything sent until its end is part of it. Local; the broker learns of it with
    /// the first batch.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) before `init_transactions` or within a transaction.
    pub fn begin_transaction(&self) -> Result<()> {
        self.transaction("begin_transaction")?.begin()?;
        self.handle.tell(Message::Begin)
    }

    /// Makes the offsets of a group part of the transaction.
    ///
    /// # Errors
    /// By kind: `Abort` (with [`Error::NotInGroup`](crate::Error::NotInGroup) as its source when the member
    /// has been replaced), `Fenced`.
    pub async fn send_offsets_to_transaction(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
        group: &GroupMetadata,
    ) -> Result<()> {
        self.transaction("send_offsets_to_transaction")?.send_offsets(offsets, group).await
    }

    /// Flushes and commits the transaction.
    ///
    /// A call that is cancelled before the coordinator was asked leaves the transaction open, with all its records:
    /// commit or abort it. One that is cancelled later leaves the outcome unknown, as an error of kind `Ambiguous`
    /// does.
    ///
    /// # Errors
    /// By kind: `Abort` when something in the transaction failed (call [`Producer::abort_transaction`]);
    /// `Fenced`; `Retry` when the coordinator could not be asked: call it again; and `Ambiguous` when it was asked
    /// to commit but its answer never came: only [`Producer::init_transactions`] leads on from there.
    pub async fn commit_transaction(&self) -> Result<()> {
        let transaction = self.transaction("commit_transaction")?;
        let ending = transaction.start_ending(true)?;
        if let Err(error) = self.handle.flush().await {
            return Err(transaction.fail(error));
        }
        if let Some(failure) = transaction.failure() {
            return Err(failure);
        }
        match ending.end().await? {
            Some(identity) => self.handle.tell(Message::Identity(identity)),
            None => Ok(()),
        }
    }

    /// Drops what has not been sent and aborts the transaction.
    ///
    /// A call that is cancelled before the coordinator was asked can only be followed by another one; one that is
    /// cancelled later leaves the outcome unknown, as an error of kind `Ambiguous` does.
    ///
    /// # Errors
    /// By kind: `Fenced`; `Retry` when the coordinator could not be asked: call it again; `Ambiguous` when its
    /// answer never came (the transaction will be aborted by its timeout or by [`Producer::init_transactions`],
    /// which leads on). Where the cluster's transactions are those from before KIP-890, `Retry` may also mean that
    /// the transaction is aborted but has left no newer epoch: then [`Producer::init_transactions`] comes next.
    pub async fn abort_transaction(&self) -> Result<()> {
        let transaction = self.transaction("abort_transaction")?;
        let ending = transaction.start_ending(false)?;
        self.handle.abandon().await?;
        match ending.end().await? {
            Some(identity) => self.handle.tell(Message::Identity(identity)),
            None => Ok(()),
        }
    }

    /// Flushes, and aborts a transaction that is open.
    ///
    /// # Errors
    /// The first error of any record since the last flush.
    pub async fn close(self) -> Result<()> {
        let flushed = self.handle.flush().await;
        if self.handle.core().transaction.as_ref().is_some_and(Transaction::is_open) {
            self.abort_transaction().await?;
        }
        flushed
    }

    fn transaction(&self, operation: &'static str) -> Result<&Transaction> {
        let advice = "the producer has no transactional_id in its configuration";
        self.handle.core().transaction.as_ref().ok_or(Error::Misuse { operation, advice })
    }

    /// The topic that a record goes to. One that seems to lack the record's partition is looked up again: it may just
    /// have got it.
    async fn topic_for(&self, record: &ProducerRecord) -> Result<Arc<TopicBatches>> {
        let core = self.handle.core();
        if let Some(topic) = self.known_topic(&record.topic) {
            if has_partition(&topic, record) {
                return Ok(topic);
            }
            core.cluster.look_up(&record.topic).await?;
        }
        let version = core.cluster.version();
        let partitions = core.cluster.partition_count(&record.topic).await?;
        Ok(self.set_topic(&record.topic, partitions, version))
    }

    /// The topic, if the producer has sent to it before, with the partitions that are known of by now.
    fn known_topic(&self, name: &ByteString) -> Option<Arc<TopicBatches>> {
        let core = self.handle.core();
        let topic = core.accumulator.topic(name)?;
        let version = core.cluster.version();
        if !topic.must_compare(version) {
            return Some(topic);
        }
        match core.cluster.metadata().topic(name) {
            Some(known) => Some(self.set_topic(name, known.partitions.len() as i32, version)),
            // It has been deleted: its records wait for it to come back.
            None => Some(topic),
        }
    }

    fn set_topic(&self, name: &ByteString, partitions: i32, version: u64) -> Arc<TopicBatches> {
        let core = self.handle.core();
        let draw = || core.cluster.random(partitions as usize) as i32;
        core.accumulator.set_topic(name, partitions, version, draw)
    }

    fn block_deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.handle.core().config.max_block_ms)
    }

    fn buffer_full(&self) -> Error {
        Error::BufferFull { limit: self.handle.core().memory.limit() }
    }
}

fn has_partition(topic: &TopicBatches, record: &ProducerRecord) -> bool {
    record.partition.is_none_or(|partition| partition < topic.partition_count())
}

/// A record on its way into a batch.
struct Sending {
    record: ProducerRecord,
    partition: i32,
    timestamp: i64,
}

impl Sending {
    /// Chooses the record's partition and timestamp.
    fn new(producer: &Producer, topic: &TopicBatches, record: ProducerRecord) -> Result<Self> {
        let core = producer.handle.core();
        core.check_open()?;
        let value = record.value.as_deref().unwrap_or_default();
        let size = value.len() + record.key.as_ref().map_or(0, |key| key.len());
        let limit = core.config.max_request_size;
        if size > limit {
            let topic = record.topic;
            return Err(Error::RecordTooLarge { topic, size, limit, setting: "max_request_size" });
        }
        let count = topic.partition_count();
        let chosen = record
            .partition
            .or_else(|| producer.partitioner.partition(&record.topic, record.key.as_deref(), value, count));
        let draw = || core.cluster.random(count as usize) as i32;
        let partition =
            chosen.unwrap_or_else(|| topic.sticky().partition(size, core.config.batch_size, draw));
        let timestamp = record.timestamp.unwrap_or_else(wall_clock_ms);
        Ok(Self { record, partition, timestamp })
    }

    /// Puts the record into its batch, or says how many bytes there is no room for.
    fn attempt(&self, producer: &Producer, topic: &TopicBatches) -> Result<Result<Delivery, usize>> {
        let core = producer.handle.core();
        let headers: Vec<Header<'_>> =
            self.record.headers.iter().map(|(name, value)| Header::new(name, value.as_deref())).collect();
        let parts = RecordParts {
            timestamp: self.timestamp,
            key: self.record.key.as_deref(),
            value: self.record.value.as_deref(),
            headers: &headers,
        };
        let hand_over = |batch| producer.handle.hand_over(batch);
        match core.accumulator.add(topic, self.partition, &core.memory, parts, hand_over)? {
            Added::Yes { delivery, is_first } => {
                if is_first {
                    producer.handle.tell(Message::Opened)?;
                }
                Ok(Ok(delivery))
            }
            Added::NoRoom { needed } => {
                // What fills may be all that takes the room.
                producer.handle.hand_over_accumulated();
                Ok(Err(needed))
            }
        }
    }
}

fn check(config: &ProducerConfig) -> Result<()> {
    let wrong = |setting, reason: &str| Err(Error::Config { setting, reason: reason.to_owned() });
    if config.transactional_id.is_some() && config.acks != Acks::All {
        return wrong("acks", "a transactional producer needs acks = all");
    }
    if config.max_in_flight == 0 {
        return wrong("max_in_flight", "at least one request must be in flight");
    }
    if config.is_idempotent() && config.max_in_flight > queue::MAX_IN_FLIGHT {
        return wrong("max_in_flight", "an idempotent producer may have five requests in flight at most");
    }
    if config.batch_size == 0 || config.batch_size > config.max_request_size {
        return wrong("batch_size", "it must be above 0 and not above max_request_size");
    }
    Ok(())
}
