//! Who is in a group, by the protocol that they speak.

use thalweg_protocol::ErrorCode;

use super::classic::{ClassicGroup, GroupState, Subscription};
use super::commit::Commit;
use super::consumer::ConsumerGroup;
use super::share::ShareGroup;
use crate::coordinator::Now;

/// Who is in a group, by the protocol that they speak.
#[derive(Debug)]
pub(crate) enum Membership {
    /// They assign among themselves. Groups that only keep offsets are of this kind, too.
    Classic(ClassicGroup),
    /// The coordinator assigns (KIP-848).
    Consumer(ConsumerGroup),
    /// The coordinator assigns, and several may read a partition (KIP-932).
    Share(ShareGroup),
}

/// The kind of a group, as ListGroups names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupType {
    Classic,
    Consumer,
    Share,
}

impl GroupType {
    /// Its name in ListGroups.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
        }
    }
}

impl Membership {
    /// The group, if its members assign among themselves.
    pub(crate) fn classic(&self) -> Option<&ClassicGroup> {
        match self {
            Self::Classic(group) => Some(group),
            Self::Consumer(_) | Self::Share(_) => None,
        }
    }

    /// The group, if its members assign among themselves.
    pub(crate) fn classic_mut(&mut self) -> Option<&mut ClassicGroup> {
        match self {
            Self::Classic(group) => Some(group),
            Self::Consumer(_) | Self::Share(_) => None,
        }
    }

    /// The group, if the coordinator assigns.
    pub(crate) fn consumer(&self) -> Option<&ConsumerGroup> {
        match self {
            Self::Consumer(group) => Some(group),
            Self::Classic(_) | Self::Share(_) => None,
        }
    }

    /// The group, if its members share records.
    pub(crate) fn share(&self) -> Option<&ShareGroup> {
        match self {
            Self::Share(group) => Some(group),
            Self::Classic(_) | Self::Consumer(_) => None,
        }
    }

    /// The kind of the group.
    pub(crate) fn group_type(&self) -> GroupType {
        match self {
            Self::Classic(_) => GroupType::Classic,
            Self::Consumer(_) => GroupType::Consumer,
            Self::Share(_) => GroupType::Share,
        }
    }

    /// The name of the group's state.
    pub(crate) fn state_name(&self) -> &'static str {
        match self {
            Self::Classic(group) => group.state().name(),
            Self::Consumer(group) => group.state().name(),
            Self::Share(group) => group.state_name(),
        }
    }

    /// Whether nobody is in the group or about to be.
    pub(crate) fn is_deserted(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_deserted(),
            Self::Consumer(group) => group.is_empty(),
            Self::Share(group) => group.is_empty(),
        }
    }

    /// Whether the journal has a record of the members, be it that there are none any more.
    pub(crate) fn is_written(&self) -> bool {
        match self {
            Self::Classic(group) => group.generation() > 0,
            Self::Consumer(group) => !group.image().is_blank(),
            Self::Share(group) => !group.image().is_blank(),
        }
    }

    /// Since when nobody is in the group, in wall-clock ms; `None` for one that has only ever kept offsets.
    pub(crate) fn deserted_since_ms(&self) -> Option<i64> {
        match self {
            Self::Classic(group) => group.protocol_type().map(|_| group.state_since_ms()),
            Self::Consumer(group) => group.empty_since_ms(),
            Self::Share(_) => None,
        }
    }

    /// When the group has something to do next, in monotonic ms.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        match self {
            Self::Classic(group) => group.next_deadline(),
            Self::Consumer(group) => group.next_deadline(),
            Self::Share(group) => group.next_deadline(),
        }
    }

    /// Whether `commit` comes from somebody who may. If so, a member of the classic protocol counts as heard of.
    ///
    /// # Errors
    /// The code that refuses it.
    pub(crate) fn admit_commit(&mut self, commit: &Commit, now: Now) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(group) => {
                let (member_id, instance_id) = (&*commit.member_id, commit.instance_id.as_deref());
                let is_transactional = commit.producer.is_some();
                group.check_commit(member_id, instance_id, commit.generation, is_transactional)?;
                if !is_transactional {
                    group.heard_of(member_id, now);
                }
                Ok(())
            }
            Self::Consumer(group) => group.check_commit(commit),
            Self::Share(_) => Err(ErrorCode::GroupIdNotFound),
        }
    }

    /// Whether offsets may be told to this member in this epoch. Groups of the classic protocol tell everybody.
    ///
    /// # Errors
    /// The code that refuses it.
    pub(crate) fn check_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(_) => Ok(()),
            Self::Consumer(group) => group.check_fetch(member_id, epoch),
            Self::Share(_) => Err(ErrorCode::GroupIdNotFound),
        }
    }

    /// Which topics the members read.
    ///
    /// # Errors
    /// NON_EMPTY_GROUP when it cannot be told.
    pub(crate) fn subscription(&self) -> Result<Subscription, ErrorCode> {
        match self {
            Self::Classic(group) => group.subscription(),
            Self::Consumer(group) => {
                Ok(Subscription::Topics(group.subscribed_topics().into_iter().cloned().collect()))
            }
            Self::Share(_) => Err(ErrorCode::GroupIdNotFound),
        }
    }

    /// Marks the group as removed; every later call is told to look it up again.
    pub(crate) fn bury(&mut self, now: Now) {
        if let Self::Classic(group) = self
            && group.state() != GroupState::Dead
        {
            group.bury(now);
        }
    }
}
