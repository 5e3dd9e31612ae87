//! How a producer's records fare, for whoever wants to know before a flush tells.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::error::Error;

/// What a [`Producer`](crate::Producer) has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerMetrics {
    /// Records that were acknowledged; with `acks=0`, sent.
    pub acknowledged: u64,
    /// Records that failed: they are not written, or it is not known whether they are.
    pub failed: u64,
    /// Batches that were sent, again or for the first time.
    pub batches: u64,
    /// Bytes of these batches, compressed if they were.
    pub bytes: u64,
    /// Requests that carried them.
    pub requests: u64,
    /// Batches that had to be sent again.
    pub retries: u64,
    /// Batches that were taken apart, because a broker found them too large or refused some of their records.
    pub taken_apart: u64,
    /// Bytes of the buffer that records hold at present.
    pub buffered_bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    acknowledged: AtomicU64,
    failed: AtomicU64,
    batches: AtomicU64,
    bytes: AtomicU64,
    requests: AtomicU64,
    retries: AtomicU64,
    taken_apart: AtomicU64,
    /// Guards why the last attempt failed that is tried again; nothing once a later one succeeds.
    trouble: Mutex<Option<Error>>,
}

impl Tally {
    /// Counts a batch of so many records out.
    pub(super) fn finish(&self, records: u64, is_acknowledged: bool) {
        if is_acknowledged {
            self.acknowledged.fetch_add(records, Ordering::Relaxed);
            *self.trouble.lock() = None;
        } else {
            self.failed.fetch_add(records, Ordering::Relaxed);
        }
    }

    /// Counts a request with so many batches of so many bytes.
    pub(super) fn sent(&self, batches: usize, bytes: usize) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.batches.fetch_add(batches as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn again(&self, batches: usize) {
        self.retries.fetch_add(batches as u64, Ordering::Relaxed);
    }

    pub(super) fn taken_apart(&self) {
        self.taken_apart.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn metrics(&self, buffered_bytes: usize) -> ProducerMetrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ProducerMetrics {
            acknowledged: read(&self.acknowledged),
            failed: read(&self.failed),
            batches: read(&self.batches),
            bytes: read(&self.bytes),
            requests: read(&self.requests),
            retries: read(&self.retries),
            taken_apart: read(&self.taken_apart),
            buffered_bytes,
        }
    }

    pub(super) fn note(&self, trouble: Error) {
        *self.trouble.lock() = Some(trouble);
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn trouble(&self) -> Option<Error> {
        self.trouble.lock().clone()
    }
}
