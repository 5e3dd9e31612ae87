//! EndTxn, the timeout of transactions, and their completion.

use std::collections::BTreeSet;

use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId};

use super::state::{
    Decision, EXHAUSTED_EPOCH, Outcome, Producer, Transaction, TransactionState, TransactionVersion,
};
use crate::coordinator::Now;

/// An EndTxn request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndTransaction {
    pub(crate) producer: Producer,
    pub(crate) outcome: Outcome,
    pub(crate) version: TransactionVersion,
}

impl EndTransaction {
    /// Decides about `current`. The answer is the producer id and epoch of the next transaction.
    pub(crate) fn decide(
        self,
        current: Option<&Transaction>,
        fresh: Option<ProducerId>,
        now: Now,
    ) -> Result<Decision<Producer>, ErrorCode> {
        let current = current.ok_or(ErrorCode::InvalidProducerIdMapping)?;
        if current.is_successor(self.producer) {
            return Ok(Decision::Wait);
        }
        let is_retry = self.is_retry(current);
        if !is_retry {
            current.check(self.producer)?;
        }
        match current.state {
            TransactionState::Ongoing => Ok(self.prepare(current, fresh, now)),
            TransactionState::PrepareCommit => self.await_completion(is_retry, Outcome::Commit),
            TransactionState::PrepareAbort => self.await_completion(is_retry, Outcome::Abort),
            TransactionState::CompleteCommit => self.repeat(current, is_retry, Outcome::Commit, fresh, now),
            TransactionState::CompleteAbort => self.repeat(current, is_retry, Outcome::Abort, fresh, now),
            TransactionState::Empty => self.abort_nothing(current, fresh, now),
        }
    }

    /// Whether this asks again for the end that bumped the epoch. Never while another transaction is ongoing: a
    /// delayed request must not end the next transaction.
    fn is_retry(self, current: &Transaction) -> bool {
        let ends_here = current.state.is_prepared() || current.state.is_complete();
        let bumped = self.producer.id == current.producer.id
            && self.producer.epoch.0.checked_add(1) == Some(current.producer.epoch.0);
        let rotated = self.producer.id == current.previous_producer_id
            && self.producer.epoch >= EXHAUSTED_EPOCH
            && current.producer.epoch == ProducerEpoch(0);
        self.version == TransactionVersion::EpochBump && ends_here && (bumped || rotated)
    }

    fn prepare(self, current: &Transaction, fresh: Option<ProducerId>, now: Now) -> Decision<Producer> {
        let bumps = self.version == TransactionVersion::EpochBump;
        let Some(mut next) = current.prepare(self.outcome, bumps, fresh, now) else {
            return Decision::NeedsProducerId;
        };
        next.version = self.version;
        Decision::Change { answer: next.next_producer(), next }
    }

    /// The end is decided already. Under the old rules, and for a retry under the new ones, it must be the same end;
    /// otherwise the request is about the next transaction.
    fn await_completion<A>(self, is_retry: bool, decided: Outcome) -> Result<Decision<A>, ErrorCode> {
        let is_about_next = self.version == TransactionVersion::EpochBump && !is_retry;
        if is_about_next || self.outcome == decided {
            Ok(Decision::Wait)
        } else {
            Err(self.ended_otherwise(is_retry))
        }
    }

    /// A commit that comes with the epoch before an abort's never was that abort: the coordinator has aborted on its
    /// own, as after a timeout, and fenced the producer (KAFKA-20785).
    fn ended_otherwise(self, is_retry: bool) -> ErrorCode {
        match (is_retry, self.outcome) {
            (true, Outcome::Commit) => ErrorCode::ProducerFenced,
            _ => ErrorCode::InvalidTxnState,
        }
    }

    /// The last transaction has ended: either this is the request that ended it, come again, or it is about
    /// one that has not begun.
    fn repeat(
        self,
        current: &Transaction,
        is_retry: bool,
        ended: Outcome,
        fresh: Option<ProducerId>,
        now: Now,
    ) -> Result<Decision<Producer>, ErrorCode> {
        if is_retry || self.version == TransactionVersion::Classic {
            if self.outcome == ended {
                return Ok(Decision::Answer(current.producer));
            }
            return Err(self.ended_otherwise(is_retry));
        }
        self.abort_nothing(current, fresh, now)
    }

    /// Under the new rules a producer that cannot know whether its first write has opened a transaction may
    /// abort; its epoch is bumped all the same, so that the write cannot come later.
    fn abort_nothing(
        self,
        current: &Transaction,
        fresh: Option<ProducerId>,
        now: Now,
    ) -> Result<Decision<Producer>, ErrorCode> {
        if self.version == TransactionVersion::Classic || self.outcome == Outcome::Commit {
            return Err(ErrorCode::InvalidTxnState);
        }
        let Some(mut next) = current.prepare(Outcome::Abort, true, fresh, now) else {
            return Ok(Decision::NeedsProducerId);
        };
        next.version = self.version;
        next.partitions.clear();
        let next = next.complete(now);
        Ok(Decision::Change { answer: next.producer, next })
    }
}

impl Transaction {
    /// The prepared state that ends the transaction; `None` when it takes a fresh producer id.
    pub(super) fn prepare(
        &self,
        outcome: Outcome,
        bumps: bool,
        fresh: Option<ProducerId>,
        now: Now,
    ) -> Option<Self> {
        let state = match outcome {
            Outcome::Commit => TransactionState::PrepareCommit,
            Outcome::Abort => TransactionState::PrepareAbort,
        };
        let mut next = Self { state, last_update_ms: now.wall_ms, deadline: None, ..self.clone() };
        if bumps {
            if self.producer.epoch >= EXHAUSTED_EPOCH {
                next.next_producer_id = fresh?;
            }
            next.last_epoch = self.producer.epoch;
            next.producer.epoch = ProducerEpoch(self.producer.epoch.0.saturating_add(1));
        }
        Some(next)
    }

    /// Who may use the transactional id once the prepared transaction is complete.
    fn next_producer(&self) -> Producer {
        if self.next_producer_id == ProducerId::NONE {
            self.producer
        } else {
            Producer { id: self.next_producer_id, epoch: ProducerEpoch(0) }
        }
    }

    /// How a prepared transaction ends.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.state {
            TransactionState::PrepareCommit | TransactionState::CompleteCommit => Outcome::Commit,
            _ => Outcome::Abort,
        }
    }

    /// The state of a prepared transaction all of whose markers are committed.
    pub(crate) fn complete(&self, now: Now) -> Self {
        let mut next = Self {
            state: match self.outcome() {
                Outcome::Commit => TransactionState::CompleteCommit,
                Outcome::Abort => TransactionState::CompleteAbort,
            },
            partitions: BTreeSet::new(),
            producer: self.next_producer(),
            next_producer_id: ProducerId::NONE,
            last_update_ms: now.wall_ms,
            deadline: None,
            ..self.clone()
        };
        if self.next_producer_id != ProducerId::NONE {
            next.previous_producer_id = self.producer.id;
        }
        next
    }

    /// What to do about a transaction that may have been open for too long.
    pub(crate) fn expire(&self, fresh: Option<ProducerId>, now: Now) -> Option<Decision<()>> {
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now.monotonic_ms);
        if self.state != TransactionState::Ongoing || !is_late {
            return None;
        }
        self.prepare_fence(fresh, now).ok()
    }
}
