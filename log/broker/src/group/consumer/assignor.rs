//! Who gets which partitions: pure functions of the members, what they read, and what they had.

mod range;
mod uniform;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bytestring::ByteString;
use thalweg_protocol::Uuid;

use super::Assignment;

/// A way to assign partitions to members, in the order in which they are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Assignor {
    /// Everybody gets as many as possible of what it had, and as many as everybody else.
    Uniform,
    /// Of each topic everybody gets a row of partitions that lie side by side, those of like topics the same.
    Range,
}

/// Who is to be assigned to, and what.
pub(super) struct Spec<'a> {
    /// By member id.
    pub(super) members: BTreeMap<&'a str, Subscriber<'a>>,
    /// How many partitions each topic has.
    pub(super) topics: BTreeMap<Uuid, i32>,
}

/// A member that is to be assigned to.
pub(super) struct Subscriber<'a> {
    /// What it reads: topics of [`Spec::topics`].
    pub(super) topics: BTreeSet<Uuid>,
    /// What it was to have last.
    pub(super) held: &'a Assignment,
    pub(super) instance_id: Option<&'a str>,
}

impl Assignor {
    const ALL: [Self; 2] = [Self::Uniform, Self::Range];

    /// The name that members know it by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// The assignor of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|assignor| assignor.name() == name)
    }

    /// The names of all.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(" and ")
    }

    /// What each member shall have. Every partition of a topic that somebody reads goes to one who reads it.
    pub(super) fn assign(self, spec: &Spec<'_>) -> BTreeMap<ByteString, Assignment> {
        match self {
            Self::Uniform => uniform::assign(spec),
            Self::Range => range::assign(spec),
        }
    }
}
