//! How a producer's records fare, for whoever wants to know before a flush tells.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::error::Error;

#[derive(Debug, Default)]
pub(super) struct Tally {
    acknowledged: AtomicU64,
    failed: AtomicU64,
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
