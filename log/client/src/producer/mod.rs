//! Writing: records one by one, or many without a future for each; plain, idempotent or in transactions.

mod appender;
mod delivery;
mod memory;
mod partitioner;
mod record;

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::TopicPartition;

use crate::cluster::Cluster;
use crate::config::ProducerConfig;
use crate::consumer::{CommittedOffset, GroupMetadata};
use crate::error::Result;

pub use appender::{Appender, TopicSlot};
pub use delivery::{Acknowledged, Delivery};
pub use partitioner::{KeyHash, Partitioner};
pub use record::ProducerRecord;

fn unfinished() -> ! {
    panic!("not built yet")
}

/// Writes records. Cloning it is cheap; clones are the same producer.
///
/// Records of one partition keep the order in which they were sent, retries included. Dropping all clones sends what
/// is waiting in the background as far as the runtime lives; [`Producer::flush`] waits for it.
#[derive(Clone)]
pub struct Producer {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    cluster: Arc<Cluster>,
    config: ProducerConfig,
    partitioner: Arc<dyn Partitioner>,
}

impl Producer {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        config: ProducerConfig,
        partitioner: Arc<dyn Partitioner>,
    ) -> Result<Self> {
        Ok(Self { shared: Arc::new(Shared { cluster, config, partitioner }) })
    }

    /// Puts a record into its partition's batch; waits only when the topic is new to this producer or the buffer is
    /// full. The [`Delivery`] resolves when the record has been written.
    ///
    /// # Errors
    /// By kind: `GiveUp` for a record that cannot be sent; `Abort` when the transaction has failed; `Retry` when there
    /// was no room within `max_block_ms`.
    pub async fn send(&self, record: ProducerRecord) -> Result<Delivery> {
        let _ = (record, &self.shared);
        unfinished()
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
        let _ = record;
        unfinished()
    }

    /// The fast way for one thread: appends records to batches of its own, without a lock, an allocation or a future
    /// for each.
    pub fn appender(&self) -> Appender {
        unfinished()
    }

    /// Sends everything that waits, without its linger time, and waits until all of it is written.
    ///
    /// # Errors
    /// The first error of any record since the last flush.
    pub async fn flush(&self) -> Result<()> {
        unfinished()
    }

    /// How many partitions a topic has.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic), and whatever keeps the cluster from answering.
    pub async fn partition_count(&self, topic: &str) -> Result<i32> {
        self.shared.cluster.partition_count(&ByteString::from(topic)).await
    }

    /// Takes over the transactional id: older producers of it are fenced, and a transaction that one of them left is
    /// ended (committed, if its commit had been decided; else aborted) before this returns.
    ///
    /// To be called once before the first transaction, and again after an error of kind `Ambiguous`: afterwards the
    /// committed offsets say whether the transaction was committed
    /// ([`Admin::committed_offsets`](crate::Admin::committed_offsets) with `require_stable`).
    ///
    /// # Errors
    /// By kind: `Fenced`, `Retry`, or `GiveUp` ([`Error::Misuse`](crate::Error::Misuse) without a transactional id).
    pub async fn init_transactions(&self) -> Result<()> {
        unfinished()
    }

    /// Begins a transaction: everything sent until its end is part of it. Local; the broker learns of it with the first
    /// batch.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) before `init_transactions` or within a transaction.
    pub fn begin_transaction(&self) -> Result<()> {
        unfinished()
    }

    /// Makes the offsets of a group part of the transaction.
    ///
    /// # Errors
    /// By kind: `Abort` (with [`Error::NotInGroup`](crate::Error::NotInGroup) as its source when the member has been
    /// replaced), `Fenced`.
    pub async fn send_offsets_to_transaction(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
        group: &GroupMetadata,
    ) -> Result<()> {
        let _ = (offsets, group, &self.shared.config, &self.shared.partitioner);
        unfinished()
    }

    /// Flushes and commits the transaction.
    ///
    /// # Errors
    /// By kind: `Abort` when something in the transaction failed (call [`Producer::abort_transaction`]); `Fenced`; and
    /// `Ambiguous` when the coordinator was asked to commit but its answer never came: only
    /// [`Producer::init_transactions`] leads on from there.
    pub async fn commit_transaction(&self) -> Result<()> {
        unfinished()
    }

    /// Drops what has not been sent and aborts the transaction.
    ///
    /// # Errors
    /// By kind: `Fenced`; `Ambiguous` when the coordinator's answer never came (the transaction will be aborted by its
    /// timeout or by [`Producer::init_transactions`]).
    pub async fn abort_transaction(&self) -> Result<()> {
        unfinished()
    }

    /// Flushes, and aborts a transaction that is open.
    ///
    /// # Errors
    /// The first error of any record since the last flush.
    pub async fn close(self) -> Result<()> {
        unfinished()
    }
}
