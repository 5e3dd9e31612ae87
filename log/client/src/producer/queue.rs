//! The batches of one partition: which is sent next, under which sequence number, and what becomes of the
//! others when one fails. Pure: the sender does what it decides.

use std::collections::VecDeque;

use thalweg_protocol::record::{BatchProducer, RecordBatch};
use thalweg_protocol::{ProducerEpoch, ProducerId, TopicPartition};
use tokio::time::Instant;

use super::batch::Batch;

/// Who the producer is for the brokers (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) id: ProducerId,
    pub(super) epoch: ProducerEpoch,
    pub(super) transactional: bool,
}

/// How many batches of a partition are in flight at most: as many as brokers remember for finding duplicates.
pub(super) const MAX_IN_FLIGHT: usize = 5;

/// What to do for a partition.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing, until something else happens.
    Nothing,
    /// Nothing before then.
    Wait(Instant),
    /// The producer needs an identity, or a newer epoch than the partition has seen.
    NeedsIdentity,
    /// Send this batch.
    Send { serial: u64, records: RecordBatch },
}

/// The batches of a partition.
///
/// Brokers take batches of an epoch only in the order of their sequence numbers, without a gap. So a batch
/// that is sent again goes alone, and before all later ones. A gap arises when a batch is given up: then the
/// partition's next batches go under a newer epoch, with sequence numbers from 0 (KIP-360); but first,
/// batches whose fate is not known are sent again under their old numbers, so that a broker which has them
/// finds the duplicate.
pub(super) struct PartitionQueue {
    pub(super) partition: TopicPartition,
    is_idempotent: bool,
    max_in_flight: usize,
    /// In the order of their places; those with a sequence number have been sent before.
    waiting: VecDeque<Batch>,
    in_flight: VecDeque<Batch>,
    next_serial: u64,
    next_place: u64,
    identity: Option<Identity>,
    next_sequence: i32,
    /// A batch has been given up: no new batch under the identity that the partition has.
    has_gap: bool,
    /// The broker refused the sequence number of the first batch: those that wait get new ones.
    must_renumber: bool,
    not_before: Option<Instant>,
}

impl PartitionQueue {
    /// `max_in_flight` holds without idempotence only when order does not matter: acks = none.
    pub(super) fn new(partition: TopicPartition, is_idempotent: bool, max_in_flight: usize) -> Self {
        Self {
            partition,
            is_idempotent,
            max_in_flight: max_in_flight.min(MAX_IN_FLIGHT),
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_serial: 0,
            next_place: 0,
            identity: None,
            next_sequence: 0,
            has_gap: false,
            must_renumber: false,
            not_before: None,
        }
    }

    pub(super) fn push(&mut self, mut batch: Batch) {
        batch.serial = self.new_serial();
        batch.place = (self.next_place, 0);
        self.next_place += 1;
        self.waiting.push_back(batch);
    }

    fn new_serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial - 1
    }

    /// Parts of a batch that was refused whole take its place; those that have sequence numbers go under them.
    pub(super) fn put_parts(&mut self, parts: impl IntoIterator<Item = Batch>) {
        for mut part in parts {
            part.serial = self.new_serial();
            self.put_back(part);
        }
    }

    fn put_back(&mut self, batch: Batch) {
        let behind = self.waiting.iter().position(|other| other.place > batch.place);
        self.waiting.insert(behind.unwrap_or(self.waiting.len()), batch);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_empty()
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn has_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The size of the batch that comes next, in bytes.
    pub(super) fn next_size(&self) -> usize {
        self.waiting.front().map_or(0, |batch| batch.records.size_in_bytes())
    }

    /// When the oldest batch that waits was handed over.
    pub(super) fn oldest_waiting(&self) -> Option<Instant> {
        self.waiting.front().map(|batch| batch.handed_over)
    }

    pub(super) fn not_before(&self) -> Option<Instant> {
        self.not_before.filter(|_| self.has_waiting())
    }

    /// Sends nothing before `time`.
    pub(super) fn hold(&mut self, time: Instant) {
        self.not_before = Some(time);
    }

    /// Decides what to send, and takes it as sent.
    pub(super) fn next(&mut self, identity: Option<Identity>, now: Instant) -> Next {
        if let Some(time) = self.not_before() {
            if time > now {
                return Next::Wait(time);
            }
            self.not_before = None;
        }
        if self.must_renumber && self.in_flight.is_empty() {
            self.must_renumber = false;
            self.has_gap = true;
            self.waiting.iter_mut().for_each(|batch| batch.sequence = None);
        }
        let is_alone = self.in_flight.is_empty();
        let Some(head) = self.waiting.front() else { return Next::Nothing };
        if self.in_flight.len() >= self.max_in_flight || self.must_renumber {
            return Next::Nothing;
        }
        // Later batches may be answered before the oldest, which must be among the last five when it is sent
        // again.
        if self.in_flight.front().is_some_and(|oldest| head.place.0 >= oldest.place.0 + MAX_IN_FLIGHT as u64)
        {
            return Next::Nothing;
        }
        if self.is_idempotent {
            if head.sequence.is_some() {
                if !is_alone {
                    return Next::Nothing;
                }
            } else if identity.is_none() || self.has_gap || self.identity != identity {
                if !is_alone {
                    return Next::Nothing;
                }
                if identity.is_none() || (self.has_gap && self.identity == identity) {
                    return Next::NeedsIdentity;
                }
                self.identity = identity;
                self.next_sequence = 0;
                self.has_gap = false;
            }
        } else if head.attempts > 0 && !is_alone {
            return Next::Nothing;
        }
        self.take_head()
    }

    fn take_head(&mut self) -> Next {
        let mut batch = self.waiting.pop_front().expect("the head was just looked at");
        if let (None, Some(identity)) = (batch.sequence, self.identity) {
            let producer = BatchProducer {
                id: identity.id,
                epoch: identity.epoch,
                base_sequence: self.next_sequence,
                transactional: identity.transactional,
            };
            batch.sequence = Some(self.next_sequence);
            self.next_sequence =
                self.next_sequence.wrapping_add(batch.records.header().records_count) & i32::MAX;
            batch.records = batch.records.from_producer(&producer);
        }
        batch.attempts += 1;
        batch.unsent = None;
        let next = Next::Send { serial: batch.serial, records: batch.records.clone() };
        self.in_flight.push_back(batch);
        next
    }

    fn take_in_flight(&mut self, serial: u64) -> Option<Batch> {
        let at = self.in_flight.iter().position(|batch| batch.serial == serial)?;
        self.in_flight.remove(at)
    }

    /// How often a batch in flight has been sent.
    pub(super) fn attempts(&self, serial: u64) -> u32 {
        self.sent(serial).map_or(0, |batch| batch.attempts)
    }

    /// The batch has been written.
    pub(super) fn acknowledged(&mut self, serial: u64) -> Option<Batch> {
        self.take_in_flight(serial)
    }

    /// The batch was not written, but its parts will be under its sequence numbers.
    pub(super) fn taken_apart(&mut self, serial: u64) -> Option<Batch> {
        self.take_in_flight(serial)
    }

    /// A batch in flight.
    pub(super) fn sent(&self, serial: u64) -> Option<&Batch> {
        self.in_flight.iter().find(|batch| batch.serial == serial)
    }

    /// The batch was not written and never will be.
    pub(super) fn refused(&mut self, serial: u64) -> Option<Batch> {
        let batch = self.take_in_flight(serial)?;
        self.has_gap |= batch.sequence.is_some();
        Some(batch)
    }

    /// The batch is to be sent again, not before `time`.
    pub(super) fn again(&mut self, serial: u64, maybe_written: bool, time: Instant) {
        let Some(mut batch) = self.take_in_flight(serial) else { return };
        batch.maybe_written |= maybe_written;
        self.put_back(batch);
        self.hold(time);
    }

    /// Whether no earlier batch is in flight or to be sent again, so that its sequence number should have
    /// been taken.
    pub(super) fn is_first(&self, serial: u64) -> bool {
        let sent = self.waiting.iter().filter(|batch| batch.sequence.is_some()).chain(&self.in_flight);
        let first = sent.min_by_key(|batch| batch.place);
        first.is_none_or(|first| first.serial == serial)
    }

    /// The first batch's sequence number was refused: it and all that wait are sent under a newer epoch.
    pub(super) fn renumber(&mut self, serial: u64, time: Instant) {
        self.again(serial, false, time);
        self.must_renumber = true;
    }

    /// Gives up the batches that were handed over before `time`.
    pub(super) fn expire(&mut self, time: Instant) -> Vec<Batch> {
        let count = self.waiting.iter().take_while(|batch| batch.handed_over <= time).count();
        let expired: Vec<Batch> = self.waiting.drain(..count).collect();
        self.has_gap |= expired.iter().any(|batch| batch.sequence.is_some());
        expired
    }

    /// Gives up all batches that wait.
    pub(super) fn abandon(&mut self) -> Vec<Batch> {
        let abandoned: Vec<Batch> = self.waiting.drain(..).collect();
        self.has_gap |= abandoned.iter().any(|batch| batch.sequence.is_some());
        abandoned
    }
}

#[cfg(test)]
mod tests;
