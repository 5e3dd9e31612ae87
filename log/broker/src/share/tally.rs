//! Counts what happens to the records of share groups, for whoever watches the node.

use std::sync::atomic::{AtomicU64, Ordering};

use super::partition::{AckBatch, Acknowledgement, Acquired};

/// What members say of records, in the order of the numbers in requests.
const SAID: [&str; 5] = ["gap", "accept", "release", "reject", "renew"];

/// What has happened to the records of share groups since the node began.
#[derive(Debug, Default)]
pub(crate) struct ShareTally {
    delivered: AtomicU64,
    redelivered: AtomicU64,
    said: [AtomicU64; SAID.len()],
    expired: AtomicU64,
}

/// What a [`ShareTally`] has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShareCounts {
    /// Records that were acquired.
    pub(crate) delivered: u64,
    /// Those of them that had been before.
    pub(crate) redelivered: u64,
    /// Records of which members said something, by what that was.
    pub(crate) said: [(&'static str, u64); SAID.len()],
    /// Records that members kept too long.
    pub(crate) expired: u64,
}

impl ShareTally {
    /// A member has acquired records.
    pub(crate) fn acquired(&self, ranges: &[Acquired]) {
        let count = |ranges: &mut dyn Iterator<Item = &Acquired>| -> u64 {
            ranges.map(|range| u64::try_from(range.last.0 - range.first.0 + 1).unwrap_or(0)).sum()
        };
        self.delivered.fetch_add(count(&mut ranges.iter()), Ordering::Relaxed);
        let again = count(&mut ranges.iter().filter(|range| range.deliveries > 1));
        self.redelivered.fetch_add(again, Ordering::Relaxed);
    }

    /// Members have said something of records, which counts.
    pub(crate) fn acknowledged(&self, batches: &[AckBatch]) {
        for batch in batches {
            for (what, count) in batch.counts() {
                if let Some(counter) = self.said.get(Acknowledgement::index(what)) {
                    counter.fetch_add(count, Ordering::Relaxed);
                }
            }
        }
    }

    /// So many records were kept too long.
    pub(crate) fn expired(&self, count: u64) {
        self.expired.fetch_add(count, Ordering::Relaxed);
    }

    /// What has been counted.
    pub(crate) fn counts(&self) -> ShareCounts {
        let mut said = SAID.map(|name| (name, 0));
        for ((_, count), counter) in said.iter_mut().zip(&self.said) {
            *count = counter.load(Ordering::Relaxed);
        }
        ShareCounts {
            delivered: self.delivered.load(Ordering::Relaxed),
            redelivered: self.redelivered.load(Ordering::Relaxed),
            said,
            expired: self.expired.load(Ordering::Relaxed),
        }
    }
}
