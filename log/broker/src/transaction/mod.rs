//! Transactions: who may use a transactional id, which partitions it has written to, and how it ends.
//!
//! `init_producer_id`, `partitions` and `end` decide, `filter` says what is listed, `shard` holds what one partition of `__transaction_state` knows
//! (one lock, one journal), `coordinator` finds the shard and waits where a decision says so, `markers` sees decided
//! transactions through.

mod coordinator;
mod end;
mod filter;
mod init_producer_id;
mod markers;
mod partitions;
mod producer_ids;
mod reconcile;
mod records;
mod shard;
mod state;

#[cfg(test)]
mod tests;

pub(crate) use coordinator::TransactionCoordinator;
pub(crate) use end::EndTransaction;
pub(crate) use filter::TransactionFilter;
pub(crate) use init_producer_id::InitProducerId;
pub(crate) use shard::TransactionShard;
pub(crate) use state::{Outcome, Producer, Transaction, TransactionVersion};
