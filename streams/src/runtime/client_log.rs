//! The log through the client: one consumer and one producer a thread.

use std::collections::HashMap;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_client::{
    Appender, Client, CommittedOffset, Consumer, Isolation, OffsetSpec, Polled, Producer, ProducerConfig,
    TopicSlot,
};
use thalweg_protocol::record::{Header, Record};
use thalweg_protocol::{Offset, TopicPartition};
use tokio::runtime::Handle;

use super::client_error::translate;
use super::log::{CommittedInput, TransactionLog};
use super::waiting::Waiting;
use crate::config::{Guarantee, StreamsConfig};
use crate::error::Error;
use crate::output::OutputTopic;

/// A thread's way to the log. The client works on the runtime behind `handle`; calls here block on it.
pub(super) struct ClientLog {
    handle: Handle,
    waiting: Waiting,
    client: Client,
    pub(super) consumer: Consumer,
    producer_config: ProducerConfig,
    guarantee: Guarantee,
    writer: Writer,
    in_transaction: bool,
}

/// A producer, and what belongs to it.
struct Writer {
    producer: Producer,
    appender: Appender,
    slots: HashMap<ByteString, TopicSlot>,
}

impl Writer {
    fn new(client: &Client, config: &ProducerConfig) -> Result<Self, Error> {
        let producer = client.producer(config.clone()).map_err(translate("making a producer"))?;
        let appender = producer.appender();
        Ok(Self { producer, appender, slots: HashMap::new() })
    }
}

impl ClientLog {
    /// Makes the producer; [`fence`](TransactionLog::fence) comes before anything is written.
    pub(super) fn new(
        handle: Handle,
        waiting: Waiting,
        client: Client,
        consumer: Consumer,
        config: &StreamsConfig,
        transactional_id: String,
    ) -> Result<Self, Error> {
        let producer_config = ProducerConfig {
            transactional_id: (config.guarantee == Guarantee::ExactlyOnce).then_some(transactional_id),
            transaction_timeout_ms: config.transaction_timeout_ms as i32,
            // A batch that is not full waits for the commit: nobody sees it before.
            linger_ms: config.commit_interval_ms,
            ..ProducerConfig::default()
        };
        let writer = {
            let _entered = handle.enter();
            Writer::new(&client, &producer_config)?
        };
        let guarantee = config.guarantee;
        Ok(Self {
            handle,
            waiting,
            client,
            consumer,
            producer_config,
            guarantee,
            writer,
            in_transaction: false,
        })
    }

    fn is_transactional(&self) -> bool {
        self.guarantee == Guarantee::ExactlyOnce
    }

    /// Begins a transaction unless one is open.
    fn begin(&mut self) -> Result<(), Error> {
        if self.is_transactional() && !self.in_transaction {
            self.writer.producer.begin_transaction().map_err(translate("beginning a transaction"))?;
            self.in_transaction = true;
        }
        Ok(())
    }

    fn slot(&mut self, topic: &ByteString) -> Result<TopicSlot, Error> {
        if let Some(&slot) = self.writer.slots.get(topic) {
            return Ok(slot);
        }
        let slot = self.waiting.on("looking a topic up", self.writer.appender.topic(topic))?;
        self.writer.slots.insert(topic.clone(), slot);
        Ok(slot)
    }

    /// Sends batches that have waited long enough, though they are not full.
    pub(super) fn linger(&mut self) {
        self.writer.appender.linger();
    }

    /// What the consumer has for the thread.
    pub(super) fn poll(&mut self, timeout: Duration) -> Result<Polled, Error> {
        self.waiting.on("reading", self.consumer.poll(timeout))
    }

    /// Leaves the group and ends.
    pub(super) fn close(self) -> Result<(), Error> {
        let Self { waiting, consumer, writer, .. } = self;
        let Writer { producer, appender, .. } = writer;
        drop(appender);
        let produced = waiting.on("closing the producer", producer.close());
        waiting.on("leaving the group", consumer.close())?;
        produced
    }
}

impl TransactionLog for ClientLog {
    fn send(&mut self, topic: &mut OutputTopic) -> Result<(), Error> {
        if topic.partitions.iter().all(|buffer| buffer.is_empty()) {
            return Ok(());
        }
        self.begin()?;
        let slot = self.slot(&topic.topic)?;
        let mut headers: Vec<Header<'_>> = Vec::new();
        for (partition, buffer) in topic.partitions.iter().enumerate() {
            for record in buffer.iter() {
                headers.clear();
                headers.extend(record.headers.iter());
                append(&self.waiting, &mut self.writer.appender, slot, partition as i32, &record, &headers)?;
            }
        }
        drop(headers);
        topic.partitions.iter_mut().for_each(|buffer| buffer.clear());
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let flushed = self.waiting.on("sending records", self.writer.appender.flush());
        // Records of unknown fate are part of a transaction that is not committed then: an abort settles it.
        flushed.map_err(|error| match error {
            Error::UnknownOutcome { reason } => Error::Aborted { reason },
            error => error,
        })
    }

    fn ends_of(&mut self, partitions: &[TopicPartition]) -> Result<Vec<i64>, Error> {
        let wanted: Vec<_> =
            partitions.iter().map(|partition| (partition.clone(), OffsetSpec::Latest)).collect();
        let admin = self.client.admin();
        let listed = admin.list_offsets(&wanted, Isolation::ReadUncommitted);
        let listed = self.waiting.on("asking for the ends of changelogs", listed)?;
        let end =
            |partition: &TopicPartition| {
                listed.get(partition).and_then(|listed| listed.offset).map(|offset| offset.0).ok_or_else(
                    || Error::Unavailable { reason: format!("the end of {partition} is not known") },
                )
            };
        partitions.iter().map(end).collect()
    }

    fn send_offsets(&mut self, offsets: &[CommittedInput]) -> Result<(), Error> {
        let offsets: Vec<(TopicPartition, CommittedOffset)> = offsets
            .iter()
            .map(|input| {
                let metadata = input.metadata.as_str();
                (input.partition.clone(), CommittedOffset::with_metadata(Offset(input.offset), metadata))
            })
            .collect();
        if !self.is_transactional() {
            return self.waiting.on("committing offsets", self.consumer.commit_offsets(&offsets));
        }
        self.begin()?;
        let group = self.consumer.group_metadata().map_err(translate("naming the group member"))?;
        let sent = self.writer.producer.send_offsets_to_transaction(&offsets, &group);
        self.waiting.on("adding offsets to the transaction", sent)
    }

    fn end_transaction(&mut self) -> Result<(), Error> {
        if !self.in_transaction {
            return Ok(());
        }
        self.in_transaction = false;
        self.waiting.on("committing the transaction", async {
            self.writer.appender.flush().await?;
            self.writer.producer.commit_transaction().await
        })
    }

    fn fence(&mut self) -> Result<(), Error> {
        self.in_transaction = false;
        self.writer.appender.discard();
        let _entered = self.handle.enter();
        // A new producer of the same id fences the old one, whatever state that is in.
        self.writer = Writer::new(&self.client, &self.producer_config)?;
        drop(_entered);
        match self.is_transactional() {
            true => {
                self.waiting.on("taking over the transactional id", self.writer.producer.init_transactions())
            }
            false => Ok(()),
        }
    }

    fn committed(&mut self, partitions: &[TopicPartition]) -> Result<Vec<Option<CommittedInput>>, Error> {
        let committed = self.consumer.committed(partitions);
        let committed = self.waiting.on("asking for committed offsets", committed)?;
        Ok(committed_inputs(partitions, committed))
    }
}

/// Appends a record, and waits for room in the producer's buffer if it is full.
fn append(
    waiting: &Waiting,
    appender: &mut Appender,
    slot: TopicSlot,
    partition: i32,
    record: &Record<'_>,
    headers: &[Header<'_>],
) -> Result<(), Error> {
    loop {
        match appender.append(slot, partition, record.timestamp, record.key, record.value, headers) {
            Err(thalweg_client::Error::BufferFull { .. }) => {
                waiting.on("waiting for room in the producer's buffer", appender.room())?;
            }
            appended => return appended.map_err(translate("sending a record")),
        }
    }
}

/// What is committed for `partitions`, in their order.
pub(super) fn committed_inputs(
    partitions: &[TopicPartition],
    mut committed: HashMap<TopicPartition, CommittedOffset>,
) -> Vec<Option<CommittedInput>> {
    let input = |partition: &TopicPartition| {
        committed.remove(partition).map(|committed| CommittedInput {
            partition: partition.clone(),
            offset: committed.offset.0,
            metadata: committed.metadata.to_string(),
        })
    };
    partitions.iter().map(input).collect()
}
