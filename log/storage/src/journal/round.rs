//! The number of a record of the journal.

use std::fmt;

/// Numbers the records of the journal, from 1, across restarts. 0 comes before all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JournalRound(pub(crate) u64);

impl JournalRound {
    /// No journal comes so far: whatever is read that says so was not written by one.
    const BEYOND_ALL: u64 = 1 << 62;

    /// The round of a number that was read; `None` if there is none.
    pub(crate) fn read(number: u64) -> Option<Self> {
        (number < Self::BEYOND_ALL).then_some(Self(number))
    }

    /// The one after this.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for JournalRound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
