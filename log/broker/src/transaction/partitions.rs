//! Which partitions belong to a transaction: AddPartitionsToTxn, AddOffsetsToTxn, and writes that add or verify.

use std::collections::BTreeSet;

use thalweg_protocol::{ErrorCode, TopicPartition};

use super::state::{Decision, Producer, Transaction, TransactionState, TransactionVersion};
use crate::coordinator::Now;

/// Adds `partitions` to the transaction of `producer`, opening it if none is open.
pub(crate) fn add_partitions(
    current: Option<&Transaction>,
    producer: Producer,
    partitions: &BTreeSet<TopicPartition>,
    version: TransactionVersion,
    now: Now,
) -> Result<Decision<()>, ErrorCode> {
    let current = current.ok_or(ErrorCode::InvalidProducerIdMapping)?;
    if current.is_successor(producer) {
        return Ok(Decision::Wait);
    }
    current.check(producer)?;
    let is_ongoing = match current.state {
        TransactionState::PrepareCommit | TransactionState::PrepareAbort => return Ok(Decision::Wait),
        TransactionState::Ongoing => true,
        TransactionState::Empty | TransactionState::CompleteCommit | TransactionState::CompleteAbort => false,
    };
    if is_ongoing && partitions.is_subset(&current.partitions) {
        return Ok(Decision::Answer(()));
    }
    let mut next = current.clone();
    next.last_update_ms = now.wall_ms;
    if !is_ongoing {
        next.state = TransactionState::Ongoing;
        next.start_ms = now.wall_ms;
        next.version = version;
        next.deadline = Some(now.monotonic_ms + u64::try_from(current.timeout_ms).unwrap_or(0));
        next.partitions.clear();
    }
    next.partitions.extend(partitions.iter().cloned());
    Ok(Decision::Change { next, answer: () })
}

/// Whether `partition` belongs to the ongoing transaction of `producer` (KIP-890).
pub(crate) fn verify_partition(
    current: Option<&Transaction>,
    producer: Producer,
    partition: &TopicPartition,
) -> Result<(), ErrorCode> {
    let current = current.ok_or(ErrorCode::InvalidProducerIdMapping)?;
    current.check(producer)?;
    match current.state {
        TransactionState::PrepareCommit | TransactionState::PrepareAbort => {
            Err(ErrorCode::ConcurrentTransactions)
        }
        TransactionState::Ongoing if current.partitions.contains(partition) => Ok(()),
        _ => Err(ErrorCode::TransactionAbortable),
    }
}
