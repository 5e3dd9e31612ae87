//! InitProducerId for a transactional id.

use std::collections::BTreeSet;

use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId};

use super::state::{Decision, EXHAUSTED_EPOCH, Outcome, Producer, Transaction, TransactionState};
use crate::coordinator::Now;

/// An InitProducerId request that names a transactional id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitProducerId {
    /// How long a transaction may be open, in ms.
    pub(crate) timeout_ms: i32,
    /// The id and epoch the producer had, when it asks for a new epoch after an error (KIP-360, v3+).
    pub(crate) given: Option<Producer>,
}

impl InitProducerId {
    /// Decides about `current`, `None` when the transactional id is new.
    ///
    /// A new transactional id is given whatever the request says about an older producer: some clients send zeros
    /// there. For an existing one that would be a zombie, which is refused before anything is touched.
    pub(crate) fn decide(
        self,
        current: Option<&Transaction>,
        fresh: Option<ProducerId>,
        now: Now,
    ) -> Result<Decision<Producer>, ErrorCode> {
        let Some(current) = current else {
            let Some(fresh) = fresh else { return Ok(Decision::NeedsProducerId) };
            let next = Transaction::new(fresh, self.timeout_ms, now);
            return Ok(Decision::Change { answer: next.producer, next });
        };
        if let Some(given) = self.given {
            self.check_given(given, current)?;
        }
        match current.state {
            TransactionState::PrepareCommit | TransactionState::PrepareAbort => Ok(Decision::Wait),
            TransactionState::Ongoing => current.prepare_fence(fresh, now),
            TransactionState::Empty | TransactionState::CompleteCommit | TransactionState::CompleteAbort => {
                Ok(self.bump(current, fresh, now))
            }
        }
    }

    /// Whether the producer of the request is still the current one, or was until its last, perhaps
    /// unanswered, InitProducerId or EndTxn.
    fn check_given(self, given: Producer, current: &Transaction) -> Result<(), ErrorCode> {
        let repeats = current.last_epoch != ProducerEpoch::NONE
            && given.epoch == current.last_epoch
            && (given.id == current.producer.id
                || (given.id == current.previous_producer_id && given.epoch >= EXHAUSTED_EPOCH));
        // Whoever has opened a transaction since has got the answer.
        let may_repeat = repeats && current.state != TransactionState::Ongoing;
        if given == current.producer || may_repeat { Ok(()) } else { Err(ErrorCode::ProducerFenced) }
    }

    fn bump(self, current: &Transaction, fresh: Option<ProducerId>, now: Now) -> Decision<Producer> {
        let epoch = current.producer.epoch;
        if self.given.is_some_and(|given| given != current.producer) {
            return Decision::Answer(current.producer);
        }
        let mut next = Transaction {
            last_epoch: if self.given.is_some() { epoch } else { ProducerEpoch::NONE },
            timeout_ms: self.timeout_ms,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            start_ms: -1,
            last_update_ms: now.wall_ms,
            deadline: None,
            ..current.clone()
        };
        if epoch >= EXHAUSTED_EPOCH {
            let Some(fresh) = fresh else { return Decision::NeedsProducerId };
            next.previous_producer_id = current.producer.id;
            next.producer = Producer { id: fresh, epoch: ProducerEpoch(0) };
        } else {
            next.producer.epoch = ProducerEpoch(epoch.0 + 1);
        }
        Decision::Change { answer: next.producer, next }
    }
}

impl Transaction {
    /// Aborts an ongoing transaction on nobody's behalf: its producer is fenced.
    pub(crate) fn prepare_fence<A>(
        &self,
        fresh: Option<ProducerId>,
        now: Now,
    ) -> Result<Decision<A>, ErrorCode> {
        match self.prepare(Outcome::Abort, true, fresh, now) {
            Some(next) => {
                Ok(Decision::EndFirst { next: Transaction { last_epoch: ProducerEpoch::NONE, ..next } })
            }
            None => Ok(Decision::NeedsProducerId),
        }
    }
}
