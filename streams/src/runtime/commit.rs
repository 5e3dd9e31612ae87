//! The order in which a commit takes its steps.

use std::str::FromStr;

use crate::error::Error;

/// A step of the commit. A thread commits all of its tasks together, in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitStep {
    /// All results are in the log, as part of the open transaction.
    FlushOutputs,
    /// The last value of every changed key is in the changelogs, as part of the open transaction.
    FlushChangelog,
    /// The positions of the inputs are part of the transaction, each with the task's checkpoint as metadata.
    SendOffsets,
    /// The transaction is committed: from here on the work counts as done.
    EndTransaction,
    /// Changes, positions and checkpoint are in the store, in one write a task.
    WriteState,
}

impl CommitStep {
    /// All steps, in the order that is right.
    pub const ALL: [Self; 5] =
        [Self::FlushOutputs, Self::FlushChangelog, Self::SendOffsets, Self::EndTransaction, Self::WriteState];

    /// The step's name, as failpoints are spelt.
    pub fn name(self) -> &'static str {
        match self {
            Self::FlushOutputs => "FlushOutputs",
            Self::FlushChangelog => "FlushChangelog",
            Self::SendOffsets => "SendOffsets",
            Self::EndTransaction => "EndTransaction",
            Self::WriteState => "WriteState",
        }
    }
}

/// In which order the steps are taken. Only [`Sound`](Self::Sound) is right; the others are there so that
/// tests can show that they notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitOrder {
    /// As [`CommitStep::ALL`].
    #[default]
    Sound,
    /// The store is written before the transaction ends: a crash between leaves state ahead of the log.
    StateBeforeEnd,
    /// The offsets are committed after the transaction has ended: a crash between repeats results.
    OffsetsAfterEnd,
    /// The changelog is written after the transaction has ended: a crash between loses state.
    ChangelogAfterEnd,
}

impl CommitOrder {
    /// All orders.
    pub const ALL: [Self; 4] =
        [Self::Sound, Self::StateBeforeEnd, Self::OffsetsAfterEnd, Self::ChangelogAfterEnd];

    /// The steps in this order.
    pub fn steps(self) -> [CommitStep; 5] {
        use CommitStep::{EndTransaction, FlushChangelog, FlushOutputs, SendOffsets, WriteState};
        match self {
            Self::Sound => CommitStep::ALL,
            Self::StateBeforeEnd => [FlushOutputs, FlushChangelog, SendOffsets, WriteState, EndTransaction],
            Self::OffsetsAfterEnd => [FlushOutputs, FlushChangelog, EndTransaction, SendOffsets, WriteState],
            Self::ChangelogAfterEnd => {
                [FlushOutputs, SendOffsets, EndTransaction, FlushChangelog, WriteState]
            }
        }
    }
}

impl FromStr for CommitOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let order = Self::ALL.into_iter().find(|order| format!("{order:?}") == text);
        order.ok_or_else(|| Error::Config {
            field: "commit_order",
            reason: format!("{text:?} is none of {:?}", Self::ALL),
        })
    }
}
