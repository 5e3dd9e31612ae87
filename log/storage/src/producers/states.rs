//! The producers of a log: what may be appended, and what an append changes (KIP-98, KIP-890).
//!
//! Pure: [`ProducerStates::check`] decides, [`ProducerStates::apply`] and [`ProducerStates::apply_marker`] note
//! what was appended.

use std::collections::{BTreeMap, HashMap};

use thalweg_protocol::record::BatchHeader;
use thalweg_protocol::{Offset, ProducerEpoch, ProducerId};

use crate::error::{Error, TransactionProblem};
use crate::log::{ActiveProducer, AppendOrigin, MarkerAppend, VerificationGuard};

/// How many batches of each producer are remembered, so that a retry of any request in flight is recognized.
/// Producers keep at most this many in flight.
const REMEMBERED_BATCHES: usize = 5;

/// Among so many verifications at least, those are looked for that nobody can be waiting for any more.
const VERIFICATIONS: usize = 2_000;

/// The newest verifications stay whatever is known of their producers: they are on their way.
const VERIFICATIONS_UNDER_WAY: u64 = 1_000;

/// A batch that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) first_sequence: i32,
    pub(crate) last_sequence: i32,
    pub(crate) first_offset: Offset,
    pub(crate) last_offset: Offset,
    /// When it was appended, in ms since 1970.
    pub(crate) append_time_ms: i64,
}

impl Appended {
    fn new(header: &BatchHeader, append_time_ms: i64) -> Self {
        Self {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            first_offset: header.base_offset,
            last_offset: header.last_offset(),
            append_time_ms,
        }
    }
}

/// What a log knows of one producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Producer {
    pub(super) epoch: ProducerEpoch,
    /// Of the last marker, −1 before there was one.
    pub(super) coordinator_epoch: i32,
    pub(super) last_active_ms: i64,
    /// Where its open transaction began.
    pub(super) transaction_start: Option<Offset>,
    /// The newest batches of this epoch, oldest first, at most [`REMEMBERED_BATCHES`].
    batches: [Option<Appended>; REMEMBERED_BATCHES],
}

impl Producer {
    pub(super) fn new(epoch: ProducerEpoch, now_ms: i64) -> Self {
        Self {
            epoch,
            coordinator_epoch: -1,
            last_active_ms: now_ms,
            transaction_start: None,
            batches: [None; REMEMBERED_BATCHES],
        }
    }

    pub(super) fn last_batch(&self) -> Option<&Appended> {
        self.batches.iter().rev().flatten().next()
    }

    fn duplicate_of(&self, header: &BatchHeader) -> Option<&Appended> {
        if header.producer_epoch != self.epoch {
            return None;
        }
        let (first, last) = (header.base_sequence, header.last_sequence());
        self.batches.iter().flatten().find(|b| b.first_sequence == first && b.last_sequence == last)
    }

    fn set_epoch(&mut self, epoch: ProducerEpoch) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.batches = [None; REMEMBERED_BATCHES];
        }
    }

    pub(super) fn push(&mut self, batch: Appended) {
        let free = self.batches.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.batches.rotate_left(1);
            REMEMBERED_BATCHES - 1
        });
        self.batches[at] = Some(batch);
    }
}

/// The batches that a log must keep to know its producers.
#[derive(Debug)]
pub(crate) struct Remembered {
    producers: HashMap<ProducerId, (ProducerEpoch, [Option<Offset>; REMEMBERED_BATCHES])>,
}

impl Remembered {
    /// Whether a batch must stay, be it without records: because its sequence numbers are remembered, or because it
    /// is the marker that gave a producer an epoch in which it has written nothing yet.
    pub(crate) fn holds(&self, header: &BatchHeader) -> bool {
        let Some((epoch, last_offsets)) = self.producers.get(&header.producer_id) else { return false };
        if header.is_control() {
            return header.producer_epoch == *epoch && last_offsets.iter().all(Option::is_none);
        }
        last_offsets.contains(&Some(header.last_offset()))
    }
}

/// What to do with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is new.
    Append,
    /// It was appended before.
    Duplicate(Appended),
}

/// A transaction that a marker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletedTransaction {
    pub(crate) producer_id: ProducerId,
    pub(crate) first_offset: Offset,
    /// The offset of the marker.
    pub(crate) last_offset: Offset,
    /// The first offset of the next transaction that is open, or the offset after the marker.
    pub(crate) last_stable_offset: Offset,
}

/// A verification with the coordinator that is going on or has succeeded.
#[derive(Clone, Copy, Debug)]
struct Verification {
    epoch: ProducerEpoch,
    guard: VerificationGuard,
}

/// All producers of a log.
#[derive(Debug, Default)]
pub(crate) struct ProducerStates {
    pub(super) producers: HashMap<ProducerId, Producer>,
    /// First offset → producer of the transactions that are open.
    open: BTreeMap<Offset, ProducerId>,
    /// One for each producer whose transaction is not open here. A request may name any producer, so that they are
    /// pruned when there are [`prune_at`](Self::prune_at) of them.
    verifications: HashMap<ProducerId, Verification>,
    next_guard: u64,
    /// How many verifications there may be before they are pruned; less than [`VERIFICATIONS`] stands for that.
    prune_at: usize,
}

impl ProducerStates {
    pub(super) fn from_producers(producers: HashMap<ProducerId, Producer>) -> Self {
        let open = producers.iter().filter_map(|(&id, p)| Some((p.transaction_start?, id))).collect();
        Self { producers, open, ..Self::default() }
    }

    /// Whether no producer is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// Fills up the remembered batches of producers of whom a snapshot knows only the last one, with batches that
    /// came before it, in order.
    pub(crate) fn recall(&mut self, earlier: &[BatchHeader]) {
        for header in earlier.iter().rev() {
            let Some(producer) = self.producers.get_mut(&header.producer_id) else { continue };
            let Some(oldest) = producer.batches[0] else { continue };
            let is_earlier = header.producer_epoch == producer.epoch
                && header.base_sequence >= 0
                && header.base_offset < oldest.first_offset;
            if is_earlier && producer.batches[REMEMBERED_BATCHES - 1].is_none() {
                producer.batches.rotate_right(1);
                producer.batches[0] = Some(Appended::new(header, producer.last_active_ms));
            }
        }
    }

    /// The batches that a log must keep to know them.
    pub(crate) fn remembered(&self) -> Remembered {
        let last_offsets = |producer: &Producer| producer.batches.map(|batch| batch.map(|b| b.last_offset));
        let known =
            self.producers.iter().map(|(&id, producer)| (id, (producer.epoch, last_offsets(producer))));
        Remembered { producers: known.collect() }
    }

    /// The first offsets of the transactions that are open.
    pub(crate) fn open_transactions(&self) -> impl Iterator<Item = Offset> + '_ {
        self.open.keys().copied()
    }

    /// All producers, in no order.
    pub(crate) fn active(&self) -> Vec<ActiveProducer> {
        let active = self.producers.iter().map(|(&producer_id, producer)| ActiveProducer {
            producer_id,
            producer_epoch: producer.epoch,
            last_sequence: producer.last_batch().map(|batch| batch.last_sequence),
            last_active_ms: producer.last_active_ms,
            coordinator_epoch: (producer.coordinator_epoch >= 0).then_some(producer.coordinator_epoch),
            transaction_start: producer.transaction_start,
        });
        active.collect()
    }

    /// The producers whose transactions are open.
    pub(crate) fn open_producers(&self) -> Vec<(ProducerId, ProducerEpoch)> {
        let open = self.open.values().filter_map(|id| Some((*id, self.producers.get(id)?.epoch)));
        open.collect()
    }

    pub(crate) fn has_open_transaction(&self, id: ProducerId, epoch: ProducerEpoch) -> bool {
        self.producers.get(&id).is_some_and(|p| p.transaction_start.is_some() && p.epoch == epoch)
    }

    /// See [`Log::begin_verification`](crate::Log::begin_verification).
    pub(crate) fn begin_verification(
        &mut self,
        id: ProducerId,
        epoch: ProducerEpoch,
    ) -> Option<VerificationGuard> {
        if self.has_open_transaction(id, epoch) {
            return None;
        }
        if let Some(going_on) = self.verifications.get(&id).filter(|v| v.epoch == epoch) {
            return Some(going_on.guard);
        }
        if self.verifications.len() >= self.prune_at.max(VERIFICATIONS) {
            self.prune_verifications();
            self.prune_at = 2 * self.verifications.len();
        }
        self.next_guard += 1;
        let guard = VerificationGuard(self.next_guard);
        self.verifications.insert(id, Verification { epoch, guard });
        Some(guard)
    }

    /// Whether a leader may append a batch of data that names a producer.
    pub(crate) fn check(&self, header: &BatchHeader, origin: AppendOrigin) -> Result<Verdict, Error> {
        let id = header.producer_id;
        let producer = self.producers.get(&id);
        if let AppendOrigin::Client { guard, .. } = origin {
            if let Some(first_time) = producer.and_then(|p| p.duplicate_of(header)) {
                return Ok(Verdict::Duplicate(*first_time));
            }
            if header.is_transactional() && !self.has_open_transaction(id, header.producer_epoch) {
                let verified = self.verifications.get(&id).filter(|v| v.epoch == header.producer_epoch);
                if guard.is_none() || verified.map(|v| v.guard) != guard {
                    let problem = TransactionProblem::NotVerified;
                    return Err(Error::InvalidTransactionState { producer_id: id, problem });
                }
            }
        }
        // Of a producer that was never seen, or forgotten, any sequence is the first.
        let Some(producer) = producer else { return Ok(Verdict::Append) };
        if header.producer_epoch < producer.epoch {
            let (current, found) = (producer.epoch, header.producer_epoch);
            return Err(Error::ProducerFenced { producer_id: id, current, found });
        }
        if matches!(origin, AppendOrigin::Client { .. }) {
            check_sequence(id, producer, header)?;
        }
        if producer.transaction_start.is_some() && !header.is_transactional() {
            let problem = TransactionProblem::NotTransactional;
            return Err(Error::InvalidTransactionState { producer_id: id, problem });
        }
        Ok(Verdict::Append)
    }

    /// Notes an appended batch of data that names a producer. Returns the first offset of the transaction that
    /// it opens, if it opens one.
    pub(crate) fn apply(&mut self, header: &BatchHeader, now_ms: i64) -> Option<Offset> {
        let id = header.producer_id;
        let producer =
            self.producers.entry(id).or_insert_with(|| Producer::new(header.producer_epoch, now_ms));
        producer.set_epoch(header.producer_epoch);
        producer.last_active_ms = now_ms;
        if header.base_sequence >= 0 {
            producer.push(Appended::new(header, now_ms));
        }
        if !header.is_transactional() || producer.transaction_start.is_some() {
            return None;
        }
        producer.transaction_start = Some(header.base_offset);
        self.open.insert(header.base_offset, id);
        self.verifications.remove(&id);
        Some(header.base_offset)
    }

    /// Whether a leader may append this marker.
    pub(crate) fn check_marker(&self, marker: &MarkerAppend) -> Result<(), Error> {
        let Some(producer) = self.producers.get(&marker.producer_id) else { return Ok(()) };
        let (current, found) = (producer.epoch, marker.producer_epoch);
        // Data with the epoch that the marker was given belongs to the transaction after the one it ends.
        let ends_the_next =
            marker.epoch_is_bumped && found == current && producer.transaction_start.is_some();
        if found < current || ends_the_next {
            return Err(Error::ProducerFenced { producer_id: marker.producer_id, current, found });
        }
        if marker.coordinator_epoch < producer.coordinator_epoch {
            let (current, found) = (producer.coordinator_epoch, marker.coordinator_epoch);
            return Err(Error::CoordinatorFenced { current, found });
        }
        Ok(())
    }

    /// Notes an appended marker. Returns the transaction that it ends, if one was open.
    pub(crate) fn apply_marker(
        &mut self,
        id: ProducerId,
        epoch: ProducerEpoch,
        coordinator_epoch: i32,
        offset: Offset,
        now_ms: i64,
    ) -> Option<CompletedTransaction> {
        self.verifications.remove(&id);
        let producer = self.producers.entry(id).or_insert_with(|| Producer::new(epoch, now_ms));
        producer.set_epoch(epoch);
        producer.coordinator_epoch = coordinator_epoch;
        producer.last_active_ms = now_ms;
        let first_offset = producer.transaction_start.take()?;
        self.open.remove(&first_offset);
        let last_stable_offset = self.open.keys().next().copied().unwrap_or(offset.plus(1));
        Some(CompletedTransaction { producer_id: id, first_offset, last_offset: offset, last_stable_offset })
    }

    /// The wall clock shows so much more, or less, than the time that has passed: whoever was active a while ago still was.
    pub(crate) fn clock_jumped(&mut self, by_ms: i64, now_ms: i64) {
        if by_ms == 0 {
            return;
        }
        for producer in self.producers.values_mut() {
            producer.last_active_ms = producer.last_active_ms.saturating_add(by_ms).min(now_ms);
        }
    }

    /// Forgets the producers without an open transaction that have been silent for `expiration_ms`.
    pub(crate) fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.producers.retain(|_, producer| {
            producer.transaction_start.is_some()
                || now_ms.saturating_sub(producer.last_active_ms) < expiration_ms
        });
        self.prune_verifications();
    }

    /// Forgets the verifications of producers that have never written here, but for the newest ones.
    fn prune_verifications(&mut self) {
        let oldest_under_way = (self.next_guard + 1).saturating_sub(VERIFICATIONS_UNDER_WAY);
        let producers = &self.producers;
        self.verifications.retain(|id, v| producers.contains_key(id) || v.guard.0 >= oldest_under_way);
    }
}

fn check_sequence(id: ProducerId, producer: &Producer, header: &BatchHeader) -> Result<(), Error> {
    let last = match producer.last_batch() {
        Some(batch) if header.producer_epoch == producer.epoch => batch.last_sequence,
        _ => -1,
    };
    let expected = if last == i32::MAX { 0 } else { last + 1 };
    if header.base_sequence == expected {
        return Ok(());
    }
    Err(Error::OutOfOrderSequence { producer_id: id, last, found: header.base_sequence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_only_name_producers_take_no_memory() {
        let epoch = ProducerEpoch(0);
        let mut states = ProducerStates::default();
        let known = ProducerId(100_000);
        states.producers.insert(known, Producer::new(epoch, 0));
        let of_known = states.begin_verification(known, epoch).expect("nothing is open");
        let early = states.begin_verification(ProducerId(0), epoch).expect("nothing is open");
        for id in 1..10_000 {
            assert!(states.begin_verification(ProducerId(id), epoch).is_some());
            assert!(states.verifications.len() <= VERIFICATIONS + 2);
        }
        // Those who write here, and whoever asked a moment ago, keep theirs.
        assert_eq!(states.begin_verification(known, epoch), Some(of_known));
        let late = states.begin_verification(ProducerId(9_500), epoch);
        assert_eq!(states.begin_verification(ProducerId(9_500), epoch), late);
        assert_ne!(states.begin_verification(ProducerId(0), epoch), Some(early), "it is begun anew");
    }
}
