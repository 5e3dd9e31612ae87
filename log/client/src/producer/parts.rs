//! Batches that are taken apart because a broker refused them whole: in halves when they are too large (KIP-126), or
//! without the records that the broker named (KIP-467). Pure.

use std::collections::BTreeSet;

use thalweg_protocol::record::{BatchBuilder, BatchProducer, RecordBatch, RecordError};
use thalweg_protocol::{Compressor, Scratch};

use super::batch::Batch;
use super::delivery::Waiter;

/// The most bytes that a batch of ours may have decompressed; it had to fit into the producer's memory before.
const DECOMPRESSED_BYTES: usize = 1 << 30;

impl Batch {
    fn count(&self) -> usize {
        usize::try_from(self.records.header().records_count).unwrap_or_default()
    }

    /// Whether it can be halved.
    pub(super) fn is_divisible(&self) -> bool {
        self.count() > 1 && self.span > 1
    }

    /// Its halves, which together take its place among the partition's batches, and its sequence numbers if it has
    /// some: what comes after it fits on without a gap. The whole batch is left as it was on an error.
    pub(super) fn halve(&mut self) -> Result<[Self; 2], RecordError> {
        let (count, half) = (self.count(), self.count() / 2);
        let picks: [Vec<usize>; 2] = [(0..half).collect(), (half..count).collect()];
        let [first, second] =
            [rebuild(&self.records, |at| at < half)?, rebuild(&self.records, |at| at >= half)?];
        let mut waiters = self.waiters(&picks);
        let (second_waiter, first_waiter) = (waiters.pop().flatten(), waiters.pop().flatten());
        let span = self.span / 2;
        let reserved = self.reserved / 2;
        let mut first = self.part(first, first_waiter, reserved);
        let mut second = self.part(second, second_waiter, self.reserved - reserved);
        first.span = span;
        second.span = self.span - span;
        second.place.1 = self.place.1 + span;
        if let Some(sequence) = self.sequence {
            let next = sequence.wrapping_add(half as i32) & i32::MAX;
            first = first.under(&self.records, sequence);
            second = second.under(&self.records, next);
        }
        Ok([first, second])
    }

    /// What is left of it without the records at `named`, as a batch that has never been sent, and who waits for each of
    /// those, in their order.
    pub(super) fn without(&mut self, named: &BTreeSet<usize>) -> Result<(Self, Vec<Waiter>), RecordError> {
        let records = rebuild(&self.records, |at| !named.contains(&at))?;
        let kept = (0..self.count()).filter(|at| !named.contains(at)).collect();
        let picks: Vec<Vec<usize>> = std::iter::once(kept).chain(named.iter().map(|at| vec![*at])).collect();
        let mut waiters = self.waiters(&picks).into_iter();
        let waiter = waiters.next().flatten();
        let mut rest = self.part(records, waiter, self.reserved);
        rest.span = self.span;
        rest.sequence = None;
        Ok((rest, waiters.flatten().collect()))
    }

    fn waiters(&mut self, picks: &[Vec<usize>]) -> Vec<Option<Waiter>> {
        let count = self.count();
        match self.notify.take() {
            Some(waiter) => waiter.split(count, picks).into_iter().map(Some).collect(),
            None => picks.iter().map(|_| None).collect(),
        }
    }

    fn part(&self, records: RecordBatch, notify: Option<Waiter>, reserved: usize) -> Self {
        Self {
            partition: self.partition.clone(),
            records,
            reserved,
            handed_over: self.handed_over,
            notify,
            serial: self.serial,
            place: self.place,
            span: self.span,
            generation: self.generation,
            sequence: self.sequence,
            attempts: self.attempts,
            maybe_written: self.maybe_written,
            unsent: None,
        }
    }

    /// The same under the identity that `whole` was sent under.
    fn under(mut self, whole: &RecordBatch, sequence: i32) -> Self {
        let header = whole.header();
        let producer = BatchProducer {
            id: header.producer_id,
            epoch: header.producer_epoch,
            base_sequence: sequence,
            transactional: header.is_transactional(),
        };
        self.sequence = Some(sequence);
        self.records = self.records.from_producer(&producer);
        self
    }
}

/// A batch of those records whose places are picked, compressed as the whole was.
fn rebuild(whole: &RecordBatch, is_picked: impl Fn(usize) -> bool) -> Result<RecordBatch, RecordError> {
    let mut scratch = Scratch::new(DECOMPRESSED_BYTES);
    let mut builder = BatchBuilder::new(whole.header().compression()?, None, whole.size_in_bytes());
    for (at, record) in whole.records(&mut scratch)?.enumerate() {
        let record = record?;
        if is_picked(at) {
            builder.append(record.timestamp, record.key, record.value, record.headers.iter())?;
        }
    }
    Ok(builder.finish(&mut Compressor::new(), None))
}
