//! The order in which a commit takes its steps.

use std::str::FromStr;

use crate::error::Error;

/// A step of the commit. A thread commits all of its tasks together, in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitStep {
    /// All results are handed to the producer, as part of the open transaction.
    SendOutputs,
    /// So is the last value of every changed key, for the changelogs; then everything sent is acknowledged.
    SendChangelog,
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
        [Self::SendOutputs, Self::SendChangelog, Self::SendOffsets, Self::EndTransaction, Self::WriteState];

    /// The step's name, as failpoints are spelt.
    pub fn name(self) -> &'static str {
        match self {
            Self::SendOutputs => "SendOutputs",
            Self::SendChangelog => "SendChangelog",
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
        use CommitStep::{EndTransaction, SendChangelog, SendOffsets, SendOutputs, WriteState};
        match self {
            Self::Sound => CommitStep::ALL,
            Self::StateBeforeEnd => [SendOutputs, SendChangelog, SendOffsets, WriteState, EndTransaction],
            Self::OffsetsAfterEnd => [SendOutputs, SendChangelog, EndTransaction, SendOffsets, WriteState],
            Self::ChangelogAfterEnd => [SendOutputs, SendOffsets, EndTransaction, SendChangelog, WriteState],
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
