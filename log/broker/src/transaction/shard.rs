//! The transactional ids of one partition of `__transaction_state`.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::sync::Arc;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::{EncodeError, ErrorCode, Offset, ProducerId};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::filter::TransactionFilter;
use super::records;
use super::state::{Decision, Transaction, TransactionState};
use crate::coordinator::{Clocks, Deadlines, Journal, JournalError, Now, Replayed, Shard};

/// What all shards of a transaction coordinator share.
#[derive(Clone, Debug)]
pub(crate) struct TransactionSettings {
    pub(crate) clocks: Clocks,
    /// Rung when a deadline is noted that is earlier than all others.
    pub(crate) wake: Arc<Notify>,
}

/// The transactional ids of one partition of `__transaction_state`.
///
/// What a call changes stands in memory as soon as it stands in the log, in the same order; answers wait until it is
/// committed.
#[derive(Debug)]
pub(crate) struct TransactionShard {
    journal: Journal,
    settings: TransactionSettings,
    /// Guards the transactions; held for a decision and the append that follows from it, so that both have one
    /// order.
    state: Mutex<State>,
    /// Guards the transactions that were prepared when this was loaded, until somebody sees them through.
    unfinished: Mutex<Vec<Prepared>>,
    /// Rung for everybody when a prepared transaction is complete.
    completed: Notify,
}

#[derive(Debug)]
struct State {
    transactions: HashMap<ByteString, Entry>,
    deadlines: Deadlines<ByteString>,
}

/// A transaction, and the record that says so.
#[derive(Clone, Debug)]
struct Entry {
    transaction: Transaction,
    record_offset: Offset,
    /// The record with which the last transaction began.
    opened_at: Offset,
    /// When it is looked at for a deadline next, in monotonic ms. One time is noted for each transactional id, however
    /// many transactions it has: whoever is woken by it notes the deadline of the one that is open then.
    scheduled: Option<u64>,
}

/// A transaction whose end is decided by the record at `offset`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) id: ByteString,
    pub(crate) offset: Offset,
}

/// What has come of a decision.
#[derive(Debug)]
pub(crate) enum Step<A> {
    /// The answer may leave once the record at `rests_on` is committed. A transaction that was prepared is
    /// to be seen through.
    Done { answer: A, rests_on: Offset, prepared: Option<Prepared> },
    /// The transaction is to be seen through, and then it is to be decided again.
    EndFirst(Prepared),
    /// To be decided again when the prepared transaction is complete.
    Wait,
    /// To be decided again with a fresh producer id.
    NeedsProducerId,
}

impl Shard for TransactionShard {
    type Settings = TransactionSettings;

    fn load(journal: Journal, settings: &TransactionSettings) -> Result<Self, JournalError> {
        let mut transactions = HashMap::new();
        journal.replay(|replayed| {
            let Replayed::Record { record, .. } = replayed else { return Ok(()) };
            match records::read(&record)? {
                Some((id, Some(transaction))) => {
                    let (record_offset, opened_at) = (record.offset, record.offset);
                    let scheduled = None;
                    transactions.insert(id, Entry { transaction, record_offset, opened_at, scheduled });
                }
                Some((id, None)) => {
                    transactions.remove(&id);
                }
                None => {}
            }
            Ok(())
        })?;
        let now = settings.clocks.now();
        let mut deadlines = Deadlines::default();
        let mut unfinished = Vec::new();
        for (id, entry) in &mut transactions {
            entry.transaction.resume(now);
            entry.schedule(id, &mut deadlines);
            if entry.transaction.state.is_prepared() {
                unfinished.push(Prepared { id: id.clone(), offset: entry.record_offset });
            }
        }
        settings.wake.notify_one();
        Ok(Self {
            journal,
            settings: settings.clone(),
            state: Mutex::new(State { transactions, deadlines }),
            unfinished: Mutex::new(unfinished),
            completed: Notify::new(),
        })
    }

    fn journal(&self) -> &Journal {
        &self.journal
    }
}

impl Entry {
    /// Notes the deadline, unless it is looked at before that. Returns whether it is the earliest of all.
    fn schedule(&mut self, id: &ByteString, deadlines: &mut Deadlines<ByteString>) -> bool {
        match self.transaction.deadline {
            Some(deadline) if self.scheduled.is_none_or(|noted| deadline < noted) => {
                self.look_again_at(deadline, id, deadlines)
            }
            _ => false,
        }
    }

    fn look_again_at(&mut self, at: u64, id: &ByteString, deadlines: &mut Deadlines<ByteString>) -> bool {
        self.scheduled = Some(at);
        deadlines.note(at, id.clone())
    }
}

impl State {
    fn prepared(&self, prepared: &Prepared) -> Option<Transaction> {
        let entry = self.transactions.get(&prepared.id)?;
        let stands = entry.record_offset == prepared.offset && entry.transaction.state.is_prepared();
        stands.then(|| entry.transaction.clone())
    }
}

impl TransactionShard {
    /// Decides about transactional id `id` and appends what follows from it.
    ///
    /// # Errors
    /// Those of the decision, and of the append: nothing has changed then.
    pub(crate) fn decide<A>(
        &self,
        id: &ByteString,
        fresh: Option<ProducerId>,
        decide: impl FnOnce(Option<&Transaction>, Option<ProducerId>, Now) -> Result<Decision<A>, ErrorCode>,
    ) -> Result<Step<A>, ErrorCode> {
        let now = self.settings.clocks.now();
        let mut state = self.state.lock();
        let entry = state.transactions.get(id);
        match decide(entry.map(|entry| &entry.transaction), fresh, now)? {
            Decision::Answer(answer) => {
                let rests_on = entry.map_or(Offset(-1), |entry| entry.record_offset);
                Ok(Step::Done { answer, rests_on, prepared: None })
            }
            Decision::Change { next, answer } => {
                let is_prepared = next.state.is_prepared();
                let offset = self.replace(&mut state, id, next, now)?;
                let prepared = is_prepared.then(|| Prepared { id: id.clone(), offset });
                Ok(Step::Done { answer, rests_on: offset, prepared })
            }
            Decision::EndFirst { next } => {
                let offset = self.replace(&mut state, id, next, now)?;
                Ok(Step::EndFirst(Prepared { id: id.clone(), offset }))
            }
            Decision::Wait => Ok(Step::Wait),
            Decision::NeedsProducerId => Ok(Step::NeedsProducerId),
        }
    }

    fn replace(
        &self,
        state: &mut State,
        id: &ByteString,
        next: Transaction,
        now: Now,
    ) -> Result<Offset, ErrorCode> {
        let record = records::transaction_record(id, &next).map_err(too_long)?;
        let record_offset = self.journal.append(&[record], now.wall_ms, None)?;
        let State { transactions, deadlines } = state;
        let entry = match transactions.entry(id.clone()) {
            Occupied(entry) => {
                let entry = entry.into_mut();
                let is_ongoing = |transaction: &Transaction| transaction.state == TransactionState::Ongoing;
                if is_ongoing(&next) && !is_ongoing(&entry.transaction) {
                    entry.opened_at = record_offset;
                }
                entry.record_offset = record_offset;
                entry.transaction = next;
                entry
            }
            Vacant(place) => {
                let opened_at = record_offset;
                place.insert(Entry { transaction: next, record_offset, opened_at, scheduled: None })
            }
        };
        if entry.schedule(id, deadlines) {
            self.settings.wake.notify_one();
        }
        Ok(record_offset)
    }

    /// Looks at the transaction of `id` as it stands.
    pub(crate) fn look<R>(&self, id: &str, look: impl FnOnce(Option<&Transaction>) -> R) -> R {
        look(self.state.lock().transactions.get(id).map(|entry| &entry.transaction))
    }

    /// The transactional ids that `filter` admits, in no order.
    pub(crate) fn list(&self, filter: &TransactionFilter) -> Vec<(ByteString, ProducerId, TransactionState)> {
        let now = self.settings.clocks.now();
        let state = self.state.lock();
        let entries = state.transactions.iter().map(|(id, entry)| (id, &entry.transaction));
        let admitted = entries.filter(|(id, transaction)| filter.admits(id, transaction, now));
        admitted.map(|(id, listed)| (id.clone(), listed.producer.id, listed.state)).collect()
    }

    /// The record with which the last transaction of `id` began.
    pub(crate) fn opened_at(&self, id: &str) -> Option<Offset> {
        self.state.lock().transactions.get(id).map(|entry| entry.opened_at)
    }

    /// The transactional ids by the producers that they belong to, or will belong to when a prepared transaction is
    /// complete.
    pub(crate) fn by_producer(&self) -> HashMap<ProducerId, ByteString> {
        let state = self.state.lock();
        let producers = state.transactions.iter().flat_map(|(id, Entry { transaction, .. })| {
            [transaction.producer.id, transaction.next_producer_id].map(|producer| (producer, id.clone()))
        });
        producers.filter(|(producer, _)| *producer != ProducerId::NONE).collect()
    }

    /// The transactions that were prepared when this was loaded; each is given out once.
    pub(crate) fn take_unfinished(&self) -> Vec<Prepared> {
        std::mem::take(&mut self.unfinished.lock())
    }

    /// The transaction that `prepared` names, if it still stands.
    pub(crate) fn prepared(&self, prepared: &Prepared) -> Option<Transaction> {
        self.state.lock().prepared(prepared)
    }

    /// All markers of the transaction that `prepared` names are committed: completes it.
    ///
    /// # Errors
    /// When that cannot be appended; to be tried again.
    pub(crate) fn complete(&self, prepared: &Prepared) -> Result<(), ErrorCode> {
        let now = self.settings.clocks.now();
        let mut state = self.state.lock();
        let Some(transaction) = state.prepared(prepared) else { return Ok(()) };
        self.replace(&mut state, &prepared.id, transaction.complete(now), now)?;
        drop(state);
        self.completed.notify_waiters();
        Ok(())
    }

    /// Resolves when a prepared transaction is complete, of whatever transactional id. What completes after
    /// this was called and before it is awaited counts.
    pub(crate) fn completion(&self) -> Notified<'_> {
        self.completed.notified()
    }

    /// When some transaction may time out next, in monotonic ms.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.state.lock().deadlines.next()
    }

    /// A transactional id whose transaction has reached its deadline.
    pub(crate) fn pop_due(&self) -> Option<ByteString> {
        let now = self.settings.clocks.now().monotonic_ms;
        let mut state = self.state.lock();
        let State { transactions, deadlines } = &mut *state;
        while let Some(id) = deadlines.pop_due(now) {
            let Some(entry) = transactions.get_mut(&id) else { continue };
            entry.scheduled = None;
            match entry.transaction.deadline {
                Some(deadline) if deadline <= now => return Some(id),
                // The one it was noted for has ended.
                _ => entry.schedule(&id, deadlines),
            };
        }
        None
    }

    /// Notes that `id` is to be looked at again in `ms`.
    pub(crate) fn look_again_in(&self, id: &ByteString, ms: u64) {
        let at = self.settings.clocks.now().monotonic_ms + ms;
        let State { transactions, deadlines } = &mut *self.state.lock();
        if let Some(entry) = transactions.get_mut(id) {
            entry.look_again_at(at, id, deadlines);
        }
    }

    /// How many deadlines are noted.
    #[cfg(test)]
    pub(crate) fn noted_deadlines(&self) -> usize {
        self.state.lock().deadlines.len()
    }

    /// Forgets transactional ids that have not been used for `expiration_ms`.
    ///
    /// # Errors
    /// When a tombstone cannot be appended; to be tried again.
    pub(crate) fn forget_expired(&self, expiration_ms: i64) -> Result<(), ErrorCode> {
        let (now, ageing_ms) = (self.settings.clocks.now(), self.settings.clocks.ageing_ms());
        let mut state = self.state.lock();
        let is_expired = |entry: &Entry| entry.transaction.is_expired(expiration_ms, ageing_ms);
        let expired: Vec<_> = state.transactions.iter().filter(|(_, entry)| is_expired(entry)).collect();
        let expired: Vec<ByteString> = expired.into_iter().map(|(id, _)| id.clone()).collect();
        for id in expired {
            let record = records::tombstone(&id).map_err(too_long)?;
            self.journal.append(&[record], now.wall_ms, None)?;
            state.transactions.remove(&id);
        }
        Ok(())
    }
}

/// A transactional id, or the name of a topic, that no record has room for.
fn too_long(error: EncodeError) -> ErrorCode {
    tracing::warn!(%error, "a record of a transaction cannot be encoded");
    ErrorCode::InvalidRequest
}
