//! Who is in a share group (KIP-932), as a pure state machine: members say what they read, and the coordinator spreads the
//! partitions over them, several members to one partition where there are more of them.
//!
//! As in consumer groups whatever is to last is a [`Change`] of the [`Image`]. Nobody has to give anything up before somebody
//! else gets it, so that each member is at its target with its next heartbeat.

mod assign;
mod heartbeat;
pub(super) mod records;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

pub(crate) use heartbeat::ShareHeartbeat;

use super::consumer::{
    Assignment, Change, Changes, ConsumerLimits, CurrentAssignment, DescribedConsumer, GroupEpoch,
    GroupFacts, Image, TargetEpoch, topics_hash,
};
use super::topic_image::TopicImage;
use crate::coordinator::Now;
use crate::error::Refusal;

/// The name of the only assignor.
pub(crate) const ASSIGNOR: &str = "simple";

/// When a member is given up again whose end could not be written, in ms.
const RETRY_MS: u64 = 1_000;

/// A share group as ShareGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShareDescription {
    pub(crate) state: &'static str,
    pub(crate) epoch: GroupEpoch,
    pub(crate) target_epoch: GroupEpoch,
    pub(crate) members: Vec<DescribedConsumer>,
}

/// A group whose members share the records of partitions.
#[derive(Debug)]
pub(crate) struct ShareGroup {
    id: ByteString,
    limits: ConsumerLimits,
    image: Image,
    /// Until when members must be heard of, in monotonic ms. It is not written: it begins anew when the group is loaded.
    sessions: BTreeMap<ByteString, u64>,
    /// The version of the topics that the group has looked at; 0 before it has.
    seen_topics: u64,
}

impl ShareGroup {
    /// A group without members.
    pub(crate) fn new(id: ByteString, limits: ConsumerLimits) -> Self {
        Self { id, limits, image: Image::default(), sessions: BTreeMap::new(), seen_topics: 0 }
    }

    /// The group that the journal describes; every member's session starts anew.
    pub(crate) fn restore(id: ByteString, image: Image, limits: ConsumerLimits, now: Now) -> Self {
        let until = now.monotonic_ms + limits.session_timeout_ms;
        let sessions = image.members().keys().map(|id| (id.clone(), until)).collect();
        Self { image, sessions, ..Self::new(id, limits) }
    }

    /// Takes over limits that may have been set anew.
    pub(crate) fn set_limits(&mut self, limits: ConsumerLimits) {
        self.limits = limits;
    }

    /// What the journal says of the group.
    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    /// Whether nobody is in the group.
    pub(crate) fn is_empty(&self) -> bool {
        self.image.members().is_empty()
    }

    /// The name of the group's state.
    pub(crate) fn state_name(&self) -> &'static str {
        if self.is_empty() { "Empty" } else { "Stable" }
    }

    /// When the next session ends, in monotonic ms.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.sessions.values().copied().min()
    }

    /// Takes back what was decided, since it cannot be written.
    pub(crate) fn roll_back(&mut self, changes: Changes) {
        changes.take_back(&mut self.image);
        // What was noticed of the topics may have been taken back, too.
        self.seen_topics = 0;
    }

    /// Has a group last that nobody has joined yet.
    pub(crate) fn begin(&mut self, topics: &TopicImage, now: Now, changes: &mut Changes) {
        self.bump_epoch(topics, changes);
        self.set_targets(topics, now, changes);
    }

    /// Takes out whoever has not been heard of in time. Returns whom.
    pub(crate) fn expire(&mut self, topics: &TopicImage, now: Now, changes: &mut Changes) -> Vec<ByteString> {
        let late = self.sessions.iter().filter(|(_, until)| **until <= now.monotonic_ms);
        let late: Vec<ByteString> = late.map(|(id, _)| id.clone()).collect();
        let mut given_up = Vec::new();
        for id in late {
            if self.image.member(&id).is_none() {
                self.sessions.remove(&id);
                continue;
            }
            self.remove_member(&id, changes);
            // If that cannot be written the member is still there, and looked at again.
            self.sessions.insert(id.clone(), now.monotonic_ms + RETRY_MS);
            given_up.push(id);
        }
        if !given_up.is_empty() {
            self.go_on_without(topics, now, changes);
        }
        given_up
    }

    /// The group as it stands.
    pub(crate) fn describe(&self) -> ShareDescription {
        let members = self.image.members().iter().map(|(id, metadata)| {
            let current = self.image.current(id).cloned().unwrap_or_default();
            DescribedConsumer {
                id: id.clone(),
                metadata: metadata.clone(),
                epoch: current.epoch,
                assigned: current.assignment(),
                target: self.image.target(id).cloned().unwrap_or_default(),
            }
        });
        ShareDescription {
            state: self.state_name(),
            epoch: self.image.epoch(),
            target_epoch: self.image.target_epoch(),
            members: members.collect(),
        }
    }

    fn put(&mut self, changes: &mut Changes, change: Change) {
        changes.put(&mut self.image, change);
    }

    fn remove_member(&mut self, member_id: &ByteString, changes: &mut Changes) {
        if self.image.current(member_id).is_some() {
            self.put(changes, Change::Current(member_id.clone(), None));
        }
        if self.image.target(member_id).is_some() {
            self.put(changes, Change::Target(member_id.clone(), None));
        }
        self.put(changes, Change::Member(member_id.clone(), None));
    }

    /// Brings the group into the epoch that is without members who have gone. Where nobody is left there is no heartbeat that
    /// would find its assignment behind.
    fn go_on_without(&mut self, topics: &TopicImage, now: Now, changes: &mut Changes) {
        self.bump_epoch(topics, changes);
        if self.is_empty() {
            self.set_targets(topics, now, changes);
        }
    }

    /// A hash of the topics that the members read, as they stand.
    fn metadata_hash(&self, topics: &TopicImage) -> i64 {
        let mut names: Vec<_> = self.image.members().values().flat_map(|member| &member.topics).collect();
        names.sort_unstable();
        names.dedup();
        topics_hash(names, topics)
    }

    fn bump_epoch(&mut self, topics: &TopicImage, changes: &mut Changes) {
        let facts =
            GroupFacts { epoch: self.image.epoch().next(), metadata_hash: self.metadata_hash(topics) };
        self.put(changes, Change::Group(Some(facts)));
    }

    /// Brings the group up to the topics as they stand and to its members as they are, and the member to its target.
    fn advance(
        &mut self,
        member_id: &ByteString,
        has_changed: bool,
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) {
        if has_changed || self.seen_topics != topics.version() {
            if has_changed || self.metadata_hash(topics) != self.image.metadata_hash() {
                self.bump_epoch(topics, changes);
            }
            self.seen_topics = topics.version();
        }
        if self.image.epoch() > self.image.target_epoch() {
            self.set_targets(topics, now, changes);
        }
        let current = self.image.current(member_id).cloned().unwrap_or_default();
        let (epoch, target) = (self.image.target_epoch(), self.image.target(member_id));
        if current.epoch == epoch {
            return;
        }
        let assigned = target.into_iter().flatten().map(|partition| (*partition, epoch)).collect();
        let next = CurrentAssignment {
            epoch,
            previous_epoch: current.epoch,
            assigned,
            ..CurrentAssignment::default()
        };
        self.put(changes, Change::Current(member_id.clone(), Some(next)));
    }

    /// Computes the targets of the group's epoch, and puts down those that differ from what they were.
    fn set_targets(&mut self, topics: &TopicImage, now: Now, changes: &mut Changes) {
        let members = self.image.members().iter().map(|(id, member)| {
            let known = member.topics.iter().filter_map(|name| topics.topic(name));
            (id.clone(), known.collect::<BTreeMap<_, _>>())
        });
        let targets: BTreeMap<ByteString, Assignment> = assign::assign(&members.collect());
        let old: Vec<ByteString> = self.image.targets().keys().cloned().collect();
        for id in old.into_iter().filter(|id| !targets.contains_key(id)) {
            self.put(changes, Change::Target(id, None));
        }
        for (id, target) in targets {
            if self.image.target(&id) != Some(&target) {
                self.put(changes, Change::Target(id, Some(target)));
            }
        }
        let target_epoch = TargetEpoch { epoch: self.image.epoch(), computed_ms: now.wall_ms };
        self.put(changes, Change::TargetEpoch(Some(target_epoch)));
    }

    /// Refuses a member that the group does not have.
    fn check_known(&self, member_id: &str) -> Result<(), Refusal> {
        match self.image.member(member_id) {
            Some(_) => Ok(()),
            None => {
                let message = format!("group {} has no member {member_id}", self.id);
                Err(Refusal::new(ErrorCode::UnknownMemberId, message))
            }
        }
    }
}
