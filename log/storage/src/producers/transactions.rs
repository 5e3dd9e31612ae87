//! Which transactions hold back the last stable offset.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_protocol::Offset;

/// The transactions whose outcome consumers may not act on yet: those that are open, and those whose marker is
/// above the high watermark.
#[derive(Debug, Default)]
pub(crate) struct UndecidedTransactions {
    /// First offsets.
    open: BTreeSet<Offset>,
    /// First offset → offset of the marker.
    uncommitted: BTreeMap<Offset, Offset>,
}

impl UndecidedTransactions {
    pub(crate) fn new(open: impl Iterator<Item = Offset>) -> Self {
        Self { open: open.collect(), uncommitted: BTreeMap::new() }
    }

    /// A transaction's first record was appended.
    pub(crate) fn opened(&mut self, first_offset: Offset) {
        self.open.insert(first_offset);
    }

    /// A transaction's marker was appended.
    pub(crate) fn ended(&mut self, first_offset: Offset, marker: Offset) {
        self.open.remove(&first_offset);
        self.uncommitted.insert(first_offset, marker);
    }

    /// The high watermark has risen: markers below it are committed.
    pub(crate) fn committed(&mut self, high_watermark: Offset) {
        self.uncommitted.retain(|_, marker| *marker >= high_watermark);
    }

    /// The first offset of the oldest of them.
    pub(crate) fn first(&self) -> Option<Offset> {
        let open = self.open.first().copied();
        let uncommitted = self.uncommitted.keys().next().copied();
        match (open, uncommitted) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
