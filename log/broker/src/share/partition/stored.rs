//! What of a share-partition is written down, in Kafka's terms.

use thalweg_protocol::Offset;

use super::{RecordState, Run, SharePartition, Transition};

/// Records side by side, as they are written down. Nobody has acquired them there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredBatch {
    pub(crate) first: Offset,
    pub(crate) last: Offset,
    pub(crate) state: StoredState,
    pub(crate) deliveries: i16,
}

/// How records stand that are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredState {
    Available,
    Acknowledged,
    Archived,
}

impl StoredState {
    /// The number that stands for it in records.
    pub(crate) fn number(self) -> i8 {
        match self {
            Self::Available => 0,
            Self::Acknowledged => 2,
            Self::Archived => 4,
        }
    }

    /// The state of this number.
    pub(crate) fn from_number(number: i8) -> Option<Self> {
        match number {
            0 => Some(Self::Available),
            2 => Some(Self::Acknowledged),
            4 => Some(Self::Archived),
            _ => None,
        }
    }

    fn live(self) -> RecordState {
        match self {
            Self::Available => RecordState::Available,
            Self::Acknowledged => RecordState::Acknowledged,
            Self::Archived => RecordState::Archived,
        }
    }
}

impl Transition {
    /// What of it is written down. Who has renewed a lock is not.
    pub(crate) fn stored(&self) -> Vec<StoredBatch> {
        let stored = |state: &RecordState| match state {
            RecordState::Available => Some(StoredState::Available),
            RecordState::Acknowledged => Some(StoredState::Acknowledged),
            RecordState::Archived => Some(StoredState::Archived),
            RecordState::Acquired(_) => None,
        };
        let batch = |change: &super::Change| {
            let (first, last, deliveries) = (change.first, change.last, change.deliveries);
            stored(&change.state).map(|state| StoredBatch { first, last, state, deliveries })
        };
        self.changes.iter().filter_map(batch).collect()
    }
}

impl SharePartition {
    /// All that is to last. What is acquired stands as it did before; records that were never given back are left out, as
    /// if nobody had been given them.
    pub(crate) fn stored(&self) -> Vec<StoredBatch> {
        let batch = |(&first, run): (&Offset, &Run)| {
            let (state, deliveries) = match run.state {
                RecordState::Available => (StoredState::Available, run.deliveries),
                RecordState::Acquired(_) => (StoredState::Available, run.deliveries.saturating_sub(1)),
                RecordState::Acknowledged => (StoredState::Acknowledged, run.deliveries),
                RecordState::Archived => (StoredState::Archived, run.deliveries),
            };
            let says_something = state != StoredState::Available || deliveries > 0;
            says_something.then_some(StoredBatch { first, last: run.last, state, deliveries })
        };
        self.runs.iter().filter_map(batch).collect()
    }

    /// Takes in what has been written down, after all that was before. Damaged batches are passed over.
    pub(crate) fn restore(&mut self, start: Offset, batches: &[StoredBatch]) {
        for StoredBatch { first, last, state, deliveries } in batches.iter().copied() {
            let first = first.max(self.start);
            if last < first || last.0 == i64::MAX {
                continue;
            }
            if first > self.end {
                // Somebody had these when it was written.
                let (begin, last) = (self.end, Offset(first.0 - 1));
                self.set(begin, Run { last, state: RecordState::Available, deliveries: 0 });
            }
            self.set(first, Run { last, state: state.live(), deliveries });
        }
        self.log_starts_at(start);
        self.advance_start();
    }
}
