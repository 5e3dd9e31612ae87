//! Which of the records of an appender failed, by numbers that the caller gives them.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Error;

/// How many failed records are remembered; what fails further is only counted.
const MOST_KEPT: usize = 1_000;

/// A record that is not written, or of which that is not known.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The number that it was [marked](crate::Appender::mark) with.
    pub mark: u64,
    /// Why.
    pub error: Error,
}

/// The records of an [`Appender`](crate::Appender) that failed, as they become known. Cloning it is cheap; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    /// Guards those that nobody has taken yet.
    untaken: Arc<Mutex<Vec<Refused>>>,
}

impl Refusals {
    /// Those that failed since this was last called, in the order in which that became known; at most 1,000.
    pub fn take(&self) -> Vec<Refused> {
        std::mem::take(&mut *self.untaken.lock())
    }

    fn add(&self, marks: &[u64], error: &Error) {
        let mut untaken = self.untaken.lock();
        let room = MOST_KEPT.saturating_sub(untaken.len());
        untaken.extend(marks.iter().take(room).map(|mark| Refused { mark: *mark, error: error.clone() }));
    }
}

/// The marks of the records in a batch.
#[derive(Debug)]
pub(super) struct Marked {
    refusals: Refusals,
    marks: Vec<u64>,
}

impl Marked {
    pub(super) fn new(refusals: Refusals) -> Self {
        Self { refusals, marks: Vec::new() }
    }

    /// The next record has this mark.
    #[inline]
    pub(super) fn push(&mut self, mark: u64) {
        self.marks.push(mark);
    }

    /// The whole batch failed.
    pub(super) fn fail(&self, error: &Error) {
        self.refusals.add(&self.marks, error);
    }

    /// The marks of a part of the batch.
    pub(super) fn pick(&self, picked: &[usize]) -> Self {
        let marks = picked.iter().filter_map(|at| self.marks.get(*at).copied()).collect();
        Self { refusals: self.refusals.clone(), marks }
    }
}
