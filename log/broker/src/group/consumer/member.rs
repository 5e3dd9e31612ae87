//! A member of a consumer group: what it says of itself, and what it has.

use std::collections::BTreeSet;

use bytestring::ByteString;

use super::{Assignment, GroupEpoch, Owned};
use crate::group::classic::Protocol;

/// How far a member has come on its way to its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MemberState {
    /// It has what it was to have in its epoch.
    #[default]
    Stable,
    /// It has been told to give partitions up and has not said yet that it did.
    UnrevokedPartitions,
    /// It waits for partitions that others have not given up yet.
    UnreleasedPartitions,
    /// Written by a version that knows more states than this one.
    Unknown,
}

impl MemberState {
    /// The number that stands for it in records.
    pub(crate) fn number(self) -> i8 {
        match self {
            Self::Stable => 1,
            Self::UnrevokedPartitions => 2,
            Self::UnreleasedPartitions => 3,
            Self::Unknown => 127,
        }
    }

    /// The state of this number.
    pub(crate) fn from_number(number: i8) -> Self {
        match number {
            1 => Self::Stable,
            2 => Self::UnrevokedPartitions,
            3 => Self::UnreleasedPartitions,
            _ => Self::Unknown,
        }
    }
}

/// What a member says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberMetadata {
    /// Set for a static member.
    pub(crate) instance_id: Option<ByteString>,
    /// Where it runs. It is kept and shown; the assignors do not look at it.
    pub(crate) rack_id: Option<ByteString>,
    pub(crate) client_id: ByteString,
    pub(crate) client_host: ByteString,
    /// The topics that it names.
    pub(crate) topics: BTreeSet<ByteString>,
    /// The pattern of the topics that it reads besides.
    pub(crate) regex: Option<ByteString>,
    /// How long it may take to give partitions up, in ms.
    pub(crate) rebalance_timeout_ms: i32,
    /// The assignor that it would like best.
    pub(crate) assignor: Option<ByteString>,
    /// Set for one that speaks the classic protocol.
    pub(crate) classic: Option<ClassicMember>,
}

/// What only members that speak the classic protocol say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassicMember {
    pub(crate) session_timeout_ms: i32,
    /// In order of preference.
    pub(crate) protocols: Vec<Protocol>,
}

/// What a member has, as far as the coordinator knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CurrentAssignment {
    /// The epoch of the target that it has come to; [`GroupEpoch::LEFT_FOR_NOW`] for a static member that is to come back.
    pub(crate) epoch: GroupEpoch,
    /// The one before: the answer that told the member of its epoch may have been lost.
    pub(crate) previous_epoch: GroupEpoch,
    pub(crate) state: MemberState,
    pub(crate) assigned: Owned,
    /// What it has been told to give up.
    pub(crate) revoking: Owned,
}

impl Default for CurrentAssignment {
    /// A member that has just come.
    fn default() -> Self {
        Self {
            epoch: GroupEpoch::JOINING,
            previous_epoch: GroupEpoch::JOINING,
            state: MemberState::Stable,
            assigned: Owned::new(),
            revoking: Owned::new(),
        }
    }
}

impl CurrentAssignment {
    /// The same in `epoch`.
    pub(crate) fn in_epoch(&self, epoch: GroupEpoch) -> Self {
        let previous_epoch = if epoch == self.epoch { self.previous_epoch } else { self.epoch };
        Self { epoch, previous_epoch, ..self.clone() }
    }

    /// What the member shall have now.
    pub(crate) fn assignment(&self) -> Assignment {
        self.assigned.keys().copied().collect()
    }

    /// Whether it has come to the target of `epoch`.
    pub(crate) fn is_reconciled_to(&self, epoch: GroupEpoch) -> bool {
        self.state == MemberState::Stable && self.epoch == epoch
    }
}
