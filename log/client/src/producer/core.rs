//! What the handles of a producer and its sender share.

use std::sync::Arc;
use std::time::Duration;

use super::accumulator::Accumulator;
use super::memory::Memory;
use super::tally::Tally;
use super::transaction::Transaction;
use crate::cluster::Cluster;
use crate::config::ProducerConfig;
use crate::error::{Error, Result};

pub(super) struct Core {
    pub(super) cluster: Arc<Cluster>,
    pub(super) config: ProducerConfig,
    pub(super) memory: Memory,
    pub(super) accumulator: Accumulator,
    pub(super) transaction: Option<Transaction>,
    pub(super) tally: Tally,
}

impl Core {
    pub(super) fn linger(&self) -> Duration {
        Duration::from_millis(self.config.linger_ms)
    }

    pub(super) fn delivery_timeout(&self) -> Duration {
        Duration::from_millis(self.config.delivery_timeout_ms)
    }

    /// The pause before the next attempt, after so many.
    pub(super) fn retry_pause(&self, attempts: u32) -> Duration {
        let config = self.cluster.config();
        let doubled = config.retry_backoff_ms.saturating_mul(1 << attempts.saturating_sub(1).min(20));
        Duration::from_millis(doubled.min(config.retry_backoff_max_ms))
    }

    /// Whether records can be taken now.
    pub(super) fn check_open(&self) -> Result<()> {
        match &self.transaction {
            Some(transaction) => transaction.check_open(),
            None => Ok(()),
        }
    }

    /// Why a batch cannot be sent now, if it cannot.
    pub(super) fn refusal(&self) -> Option<Error> {
        self.transaction.as_ref()?.refusal()
    }

    /// Why the open transaction cannot be committed, if it cannot.
    pub(super) fn transaction_failure(&self) -> Option<Error> {
        self.transaction.as_ref()?.failure()
    }

    /// The open transaction cannot be committed; returns what that means for its other records.
    pub(super) fn fail_transaction(&self, error: Error) -> Error {
        match &self.transaction {
            Some(transaction) => transaction.fail(error),
            None => error,
        }
    }

    /// Whether the coordinator must be told of a partition before the first batch for it (before KIP-890).
    pub(super) fn must_add_partitions(&self) -> bool {
        self.implicit_transactions() == Some(false)
    }

    /// In transactions: whether the broker adds partitions to them by itself.
    pub(super) fn implicit_transactions(&self) -> Option<bool> {
        self.transaction.as_ref().map(Transaction::is_implicit)
    }

    /// Something of the transaction is on its way to a broker.
    pub(super) fn note_sent(&self) {
        if let Some(transaction) = &self.transaction {
            transaction.note_started();
        }
    }
}
