//! The consumer group protocol (KIP-848) as a pure state machine: members say what they read, the coordinator assigns,
//! and each member goes at its own pace from what it has to what it shall have.
//!
//! Time, randomness and the topics of the cluster are arguments. Whatever is to last is a [`Change`], which is applied
//! to the [`Image`] when it is decided and taken back if it cannot be written; so a replay makes the same group.
//! Sessions and other deadlines are not written: they begin anew when a group is loaded.

mod assignment;
mod assignor;
mod classic_members;
mod commit;
mod deadlines;
mod describe;
mod heartbeat;
mod image;
mod join;
mod leave;
mod member;
mod migration;
mod reconcile;
pub(super) mod records;
mod regex;
mod target;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_controller::GroupConfig;
use thalweg_protocol::ErrorCode;

pub(crate) use assignment::{Assignment, Owned, TopicIdPartition, by_topic, one_by_one};
pub(crate) use assignor::Assignor;
pub(crate) use describe::{ConsumerDescription, DescribedConsumer};
pub(crate) use heartbeat::{Heartbeat, HeartbeatAnswer};
pub(crate) use image::{Change, GroupFacts, Image};
pub(crate) use member::{ClassicMember, CurrentAssignment, MemberMetadata, MemberState};
pub(crate) use regex::ResolvedRegex;
pub(crate) use target::topics_hash;

use super::topic_image::TopicImage;
use crate::coordinator::Now;
use crate::error::Refusal;
use deadlines::Deadlines;

/// Counts the changes of a group's members and of what they read. A member is in the epoch of the target that it has come
/// to. The values below are those of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupEpoch(pub(crate) i32);

impl GroupEpoch {
    /// A member that joins, or begins anew.
    pub(crate) const JOINING: Self = Self(0);
    /// A member that leaves for good.
    pub(crate) const LEAVING: Self = Self(-1);
    /// A static member that leaves and will come back under another member id.
    pub(crate) const LEFT_FOR_NOW: Self = Self(-2);

    /// The epoch after this one.
    pub(crate) fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(1))
    }
}

/// The epoch that targets belong to, and when they were computed, in wall-clock ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetEpoch {
    pub(crate) epoch: GroupEpoch,
    pub(crate) computed_ms: i64,
}

/// The bounds that every consumer group keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConsumerLimits {
    /// How often members are to send heartbeats, in ms.
    pub(crate) heartbeat_interval_ms: i32,
    /// After how long without one a member is given up, in ms.
    pub(crate) session_timeout_ms: u64,
    /// The most members of one group.
    pub(crate) max_members: usize,
}

impl ConsumerLimits {
    /// Those of one group, which may have configs of its own.
    pub(crate) fn of_group(self, topics: &TopicImage, group: &ByteString) -> Self {
        let node_wide = GroupConfig {
            consumer_heartbeat_interval_ms: self.heartbeat_interval_ms,
            consumer_session_timeout_ms: i32::try_from(self.session_timeout_ms).unwrap_or(i32::MAX),
            ..GroupConfig::default()
        };
        let config = topics.group_config(group, node_wide);
        Self {
            heartbeat_interval_ms: config.consumer_heartbeat_interval_ms,
            session_timeout_ms: u64::try_from(config.consumer_session_timeout_ms).unwrap_or(0),
            ..self
        }
    }
}

/// Where a consumer group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsumerState {
    /// No members; perhaps committed offsets.
    Empty,
    /// The members have changed and the next target has not been computed.
    Assigning,
    /// Some member has not come to its target.
    Reconciling,
    /// Every member has what it shall have.
    Stable,
}

impl ConsumerState {
    /// The name that ConsumerGroupDescribe and ListGroups show.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
        }
    }
}

/// Changes that are decided together: all of them are written, or none.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    made: Vec<Change>,
    /// What takes them back, in the order in which they were made.
    undo: Vec<Change>,
}

impl Changes {
    /// Makes a change to `image`, and notes it.
    pub(crate) fn put(&mut self, image: &mut Image, change: Change) {
        self.undo.push(image.apply(change.clone()));
        self.made.push(change);
    }

    /// Takes everything back again.
    pub(crate) fn take_back(self, image: &mut Image) {
        for change in self.undo.into_iter().rev() {
            image.apply(change);
        }
    }

    /// What is to be written, in this order.
    pub(crate) fn made(&self) -> &[Change] {
        &self.made
    }
}

/// A group whose members are assigned to by the coordinator.
#[derive(Debug)]
pub(crate) struct ConsumerGroup {
    id: ByteString,
    limits: ConsumerLimits,
    image: Image,
    deadlines: Deadlines,
    /// The version of the topics that the group has looked at; 0 before it has.
    seen_topics: u64,
    /// Since when nobody is in the group, as far as that is known, in wall-clock ms: offsets expire by it. It is not written,
    /// so it begins anew when the group is loaded.
    empty_since_ms: i64,
}

impl ConsumerGroup {
    /// A group without members.
    pub(crate) fn new(id: ByteString, limits: ConsumerLimits, now: Now) -> Self {
        Self {
            id,
            limits,
            image: Image::default(),
            deadlines: Deadlines::default(),
            seen_topics: 0,
            empty_since_ms: now.wall_ms,
        }
    }

    /// The group that the journal describes; every member's session starts anew.
    pub(crate) fn restore(id: ByteString, image: Image, limits: ConsumerLimits, now: Now) -> Self {
        let mut group = Self { image, ..Self::new(id, limits, now) };
        let ids: Vec<_> = group.image.members().keys().cloned().collect();
        for id in ids {
            group.renew_session(&id, now);
            group.watch_revocation(&id, now);
        }
        group
    }

    /// Goes by these from the next heartbeat of each member on.
    pub(crate) fn keep_to(&mut self, limits: ConsumerLimits) {
        self.limits = limits;
    }

    /// What the journal says of the group.
    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    /// Where the group stands.
    pub(crate) fn state(&self) -> ConsumerState {
        let image = &self.image;
        if image.members().is_empty() {
            return ConsumerState::Empty;
        }
        let target_epoch = image.target_epoch();
        if image.epoch() > target_epoch {
            return ConsumerState::Assigning;
        }
        let is_there =
            |id: &ByteString| image.current(id).is_some_and(|current| current.is_reconciled_to(target_epoch));
        if image.members().keys().all(is_there) { ConsumerState::Stable } else { ConsumerState::Reconciling }
    }

    /// Whether nobody is in the group.
    pub(crate) fn is_empty(&self) -> bool {
        self.image.members().is_empty()
    }

    /// Since when nobody is in the group, in wall-clock ms; `None` while somebody is.
    pub(crate) fn empty_since_ms(&self) -> Option<i64> {
        self.is_empty().then_some(self.empty_since_ms)
    }

    /// The topics that members read, by name or by pattern.
    pub(crate) fn subscribed_topics(&self) -> BTreeSet<&ByteString> {
        self.image.members().values().flat_map(|member| self.topics_of(member)).collect()
    }

    /// The topics that a member reads, by name or by pattern.
    fn topics_of<'a>(&'a self, member: &'a MemberMetadata) -> impl Iterator<Item = &'a ByteString> {
        let resolved = member.regex.as_ref().and_then(|regex| self.image.regexes().get(regex));
        member.topics.iter().chain(resolved.into_iter().flat_map(|resolved| &resolved.topics))
    }

    /// Takes back what was decided, since it cannot be written.
    pub(crate) fn roll_back(&mut self, changes: Changes) {
        changes.take_back(&mut self.image);
        // What was noticed of the topics may have been taken back, too.
        self.seen_topics = 0;
    }

    fn put(&mut self, changes: &mut Changes, change: Change) {
        changes.put(&mut self.image, change);
    }

    /// Starts the next epoch of the group.
    fn bump_epoch(&mut self, topics: &TopicImage, changes: &mut Changes) {
        let facts =
            GroupFacts { epoch: self.image.epoch().next(), metadata_hash: self.metadata_hash(topics) };
        self.put(changes, Change::Group(Some(facts)));
    }

    /// Brings the group up to the topics as they stand and to its members as they are, and the member as near to its
    /// target as it gets. `has_changed` tells that the member reads other topics than before, or has begun anew.
    fn advance(
        &mut self,
        member_id: &ByteString,
        has_changed: bool,
        owned: Option<&Assignment>,
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) {
        if has_changed || self.seen_topics != topics.version() {
            self.resolve_regexes(topics, now, changes);
            if has_changed || self.metadata_hash(topics) != self.image.metadata_hash() {
                self.bump_epoch(topics, changes);
            }
            self.seen_topics = topics.version();
        }
        if self.image.epoch() > self.image.target_epoch() {
            self.assign(topics, now, changes);
        }
        self.reconcile(member_id, owned, topics, now, changes);
    }

    fn reconcile(
        &mut self,
        member_id: &ByteString,
        owned: Option<&Assignment>,
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) {
        let current = self.image.current(member_id).cloned().unwrap_or_default();
        if current.is_reconciled_to(self.image.target_epoch()) {
            return;
        }
        let read = match self.image.member(member_id) {
            Some(member) => self.topic_ids_of(member, topics),
            None => return,
        };
        let reads = |partition: TopicIdPartition| read.contains_key(&partition.topic_id);
        let target = self.image.target(member_id);
        let target: Assignment = target.into_iter().flatten().copied().filter(|at| reads(*at)).collect();
        let goal = reconcile::Goal { epoch: self.image.target_epoch(), target: &target, owned };
        let is_free = |partition| self.image.owner(partition).is_none_or(|owner| owner == member_id);
        let next = reconcile::reconcile(&current, &goal, reads, is_free);
        if next != current {
            self.put(changes, Change::Current(member_id.clone(), Some(next)));
            self.watch_revocation(member_id, now);
        }
    }

    /// The topics that a member reads and that exist, with the numbers of their partitions.
    fn topic_ids_of(
        &self,
        member: &MemberMetadata,
        topics: &TopicImage,
    ) -> BTreeMap<thalweg_protocol::Uuid, i32> {
        self.topics_of(member).filter_map(|name| topics.topic(name)).collect()
    }

    /// Whether a member has sent a request in an epoch that counts, with `owned` being what it says that it has. One whose
    /// answer was lost is in the epoch before, with no more than what it was assigned.
    fn check_epoch(
        current: &CurrentAssignment,
        epoch: GroupEpoch,
        owned: Option<&Assignment>,
    ) -> Result<(), Refusal> {
        let is_subset = || owned.is_some_and(|all| all.iter().all(|at| current.assigned.contains_key(at)));
        if epoch == current.epoch || epoch == current.previous_epoch && is_subset() {
            return Ok(());
        }
        let message = format!(
            "the member is in epoch {}, not {}: it must give all partitions up and join again",
            current.epoch.0, epoch.0
        );
        Err(Refusal::new(ErrorCode::FencedMemberEpoch, message))
    }

    /// The member, which must be there.
    fn known(&self, member_id: &str) -> Result<Arc<MemberMetadata>, Refusal> {
        let unknown =
            || Refusal::new(ErrorCode::UnknownMemberId, format!("the group has no member {member_id}"));
        self.image.member(member_id).cloned().ok_or_else(unknown)
    }
}
