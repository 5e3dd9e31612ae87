//! Looking at batches that were there when the log was opened, before they are read for the first time.
//!
//! A segment that was synced as a whole is only glanced at when the log is opened. Its batches carry checksums, which readers
//! verify; but offset, length and leader epoch lie outside of these, and a reader would take a damaged offset for the
//! record's.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use thalweg_protocol::Offset;
use thalweg_protocol::record::BatchHeader;

use super::Segment;
use crate::batch_scan::{BatchScan, Scanned};
use crate::environment::Environment;
use crate::error::{Corruption, Error};

/// What of a segment was only glanced at.
#[derive(Debug)]
pub(crate) struct Unchecked {
    /// Up to where, in bytes.
    end: AtomicU64,
    /// Offsets may be missing between the batches below: they were compacted away.
    gaps_below: Offset,
    /// Guards the stretch whose batches have been looked at since; held for copies. Readers mostly go on where it ends.
    checked: Mutex<Checked>,
}

#[derive(Clone, Copy, Debug)]
struct Checked {
    from: u64,
    to: u64,
    /// The offset expected at its end.
    next_offset: Offset,
}

impl Checked {
    const NOTHING: Self = Self { from: 0, to: 0, next_offset: Offset(0) };
}

impl Unchecked {
    /// All of the first `end` bytes.
    pub(crate) fn new(end: u64, gaps_below: Offset) -> Self {
        Self { end: AtomicU64::new(end), gaps_below, checked: Mutex::new(Checked::NOTHING) }
    }

    /// What is from `position` on goes.
    pub(super) fn truncate(&self, position: u64) {
        self.end.fetch_min(position, Ordering::SeqCst);
        *self.checked.lock() = Checked::NOTHING;
    }

    /// Whether a batch may follow where `expected` is the next offset.
    pub(super) fn continues(&self, expected: Offset, header: &BatchHeader) -> bool {
        header.base_offset == expected
            || header.base_offset > expected && header.base_offset <= self.gaps_below
    }
}

impl Segment {
    /// Looks at the headers of the batches in `[from, to)`, where one begins at `from`, unless that has been done since the log
    /// was opened.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when they do not follow one another; I/O errors.
    pub(crate) fn check(&self, from: u64, to: u64, environment: &Environment) -> Result<(), Error> {
        let Some(unchecked) = &self.unchecked else { return Ok(()) };
        let all = unchecked.end.load(Ordering::SeqCst);
        let to = to.min(all);
        let known = *unchecked.checked.lock();
        if from >= to || known.from <= from && to <= known.to {
            return Ok(());
        }
        let goes_on = known.from < known.to && from == known.to;
        let mut expected = goes_on.then_some(known.next_offset);
        let (file, path) = (self.log.get(environment)?, self.log.path());
        let window = BatchScan::LOOK_UP_WINDOW;
        let mut scan = BatchScan::new(environment, &file, path, from, all, window);
        let mut end = from;
        while end < to {
            let (position, header) = match scan.next_header()? {
                Scanned::Batch { position, header } => (position, header),
                Scanned::Damage { position, damage } => {
                    let expected = expected.unwrap_or(self.base_offset);
                    return Err(self.corrupt(position, damage.corruption(expected)));
                }
                Scanned::End => break,
            };
            if let Some(expected) = expected
                && !unchecked.continues(expected, &header)
            {
                let found = header.base_offset;
                return Err(self.corrupt(position, Corruption::Gap { expected, found }));
            }
            expected = Some(header.next_offset());
            end = position + header.size_in_bytes() as u64;
        }
        if let Some(next_offset) = expected {
            let from = if goes_on { known.from } else { from };
            *unchecked.checked.lock() = Checked { from, to: end, next_offset };
        }
        Ok(())
    }
}
