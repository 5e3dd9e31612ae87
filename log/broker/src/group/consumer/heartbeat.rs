//! ConsumerGroupHeartbeat: members join, change what they read, say what they have, learn what they shall have, and
//! leave.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::{
    Assignment, Assignor, Change, Changes, ConsumerGroup, CurrentAssignment, GroupEpoch, MemberMetadata,
    MemberState, Owned,
};
use crate::coordinator::Now;
use crate::error::Refusal;
use crate::group::topic_image::TopicImage;
use crate::pattern::Pattern;

/// A ConsumerGroupHeartbeat. Fields that are `None` say that nothing has changed.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat {
    /// Chosen by the client, or for it.
    pub(crate) member_id: ByteString,
    pub(crate) epoch: GroupEpoch,
    pub(crate) instance_id: Option<ByteString>,
    pub(crate) rack_id: Option<ByteString>,
    pub(crate) client_id: ByteString,
    pub(crate) client_host: ByteString,
    pub(crate) rebalance_timeout_ms: Option<i32>,
    pub(crate) topics: Option<BTreeSet<ByteString>>,
    /// The empty one says that the member reads by no pattern.
    pub(crate) regex: Option<ByteString>,
    pub(crate) assignor: Option<ByteString>,
    /// What the member has.
    pub(crate) owned: Option<Assignment>,
}

/// The answer to a ConsumerGroupHeartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeartbeatAnswer {
    pub(crate) member_id: ByteString,
    pub(crate) epoch: GroupEpoch,
    /// When the next one is expected, in ms.
    pub(crate) heartbeat_interval_ms: i32,
    /// What the member shall have now, if that is news.
    pub(crate) assignment: Option<Assignment>,
}

impl Heartbeat {
    /// Whether the request can be understood at all.
    ///
    /// # Errors
    /// INVALID_REQUEST; UNSUPPORTED_ASSIGNOR; INVALID_REGULAR_EXPRESSION.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message.to_owned()));
        let is_empty = |text: &Option<ByteString>| text.as_ref().is_some_and(|text| text.trim().is_empty());
        if is_empty(&self.instance_id) || is_empty(&self.rack_id) {
            return invalid("the instance id and the rack id are null where there is none");
        }
        if self.member_id.trim().is_empty() {
            return invalid("the member id is missing");
        }
        match self.epoch {
            GroupEpoch::JOINING => {
                if self.rebalance_timeout_ms.is_none() {
                    return invalid("a member that joins says how long it may take to rebalance");
                }
                if self.owned.as_ref().is_none_or(|owned| !owned.is_empty()) {
                    return invalid("a member that joins has no partitions, and says so");
                }
                if self.topics.is_none() && self.regex.is_none() {
                    return invalid("a member that joins says what it reads");
                }
            }
            GroupEpoch::LEFT_FOR_NOW if self.instance_id.is_none() => {
                return invalid("only a member with an instance id can leave for a while");
            }
            GroupEpoch(epoch) if epoch < GroupEpoch::LEFT_FOR_NOW.0 => {
                return invalid("there is no such member epoch");
            }
            _ => {}
        }
        if let Some(name) = self.assignor.as_deref()
            && Assignor::named(name).is_none()
        {
            let message = format!("there is no assignor {name}, only {}", Assignor::names());
            return Err(Refusal::new(ErrorCode::UnsupportedAssignor, message));
        }
        match self.regex.as_deref() {
            Some(pattern) if !pattern.is_empty() => Pattern::compile(pattern).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Whether the member says everything of itself: it may not know then what it was told last.
    fn is_full(&self) -> bool {
        let says_what_it_reads = self.topics.is_some() || self.regex.is_some();
        self.epoch == GroupEpoch::JOINING
            || self.rebalance_timeout_ms.is_some() && says_what_it_reads && self.owned.is_some()
    }

    /// What the member says of itself now, after `before`.
    fn metadata(&self, before: &MemberMetadata) -> MemberMetadata {
        let or = |new: &Option<ByteString>, old: &Option<ByteString>| new.clone().or_else(|| old.clone());
        MemberMetadata {
            instance_id: or(&self.instance_id, &before.instance_id),
            rack_id: or(&self.rack_id, &before.rack_id),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            topics: self.topics.clone().unwrap_or_else(|| before.topics.clone()),
            regex: or(&self.regex, &before.regex).filter(|pattern| !pattern.is_empty()),
            rebalance_timeout_ms: self.rebalance_timeout_ms.unwrap_or(before.rebalance_timeout_ms),
            assignor: or(&self.assignor, &before.assignor),
            classic: None,
        }
    }
}

impl ConsumerGroup {
    /// Takes a ConsumerGroupHeartbeat that has passed [`Heartbeat::check`].
    ///
    /// # Errors
    /// GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID or FENCED_INSTANCE_ID. What has
    /// been changed by then is to be taken back.
    pub(crate) fn heartbeat(
        &mut self,
        request: &Heartbeat,
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) -> Result<HeartbeatAnswer, Refusal> {
        if matches!(request.epoch, GroupEpoch::LEAVING | GroupEpoch::LEFT_FOR_NOW) {
            return self.leave(request, topics, now, changes);
        }
        let member_id = &request.member_id;
        let is_anew = if request.epoch == GroupEpoch::JOINING {
            self.check_size(member_id, request.instance_id.as_deref())?;
            self.enter(member_id, request.instance_id.as_ref(), false, changes)?
        } else {
            self.check_presence(request)?;
            false
        };
        let before = self.image.member(member_id).cloned().unwrap_or_default();
        let metadata = request.metadata(&before);
        let reads_others = metadata.topics != before.topics || metadata.regex != before.regex;
        let is_new = self.image.member(member_id).is_none();
        if is_new || metadata != *before {
            self.put(changes, Change::Member(member_id.clone(), Some(Arc::new(metadata))));
        }
        let had = self.image.current(member_id).map(|current| current.assigned.clone()).unwrap_or_default();
        self.advance(
            member_id,
            is_anew || is_new || reads_others,
            request.owned.as_ref(),
            topics,
            now,
            changes,
        );
        self.renew_session(member_id, now);
        let current = self.image.current(member_id).cloned().unwrap_or_default();
        let is_news = !had.keys().eq(current.assigned.keys());
        Ok(HeartbeatAnswer {
            member_id: member_id.clone(),
            epoch: current.epoch,
            heartbeat_interval_ms: self.limits.heartbeat_interval_ms,
            assignment: (request.is_full() || is_news).then(|| current.assignment()),
        })
    }

    pub(super) fn check_size(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), Refusal> {
        let is_here = self.image.member(member_id).is_some()
            || self.is_pending(member_id)
            || instance_id.is_some_and(|instance| self.image.static_member(instance).is_some());
        if !is_here && self.image.members().len() + self.pending_count() >= self.limits.max_members {
            let message = format!("the group has {} members already", self.limits.max_members);
            return Err(Refusal::new(ErrorCode::GroupMaxSizeReached, message));
        }
        Ok(())
    }

    /// Lets a member in that joins, or makes room for one that begins anew. Returns whether the group has to go to its next
    /// epoch for that.
    pub(super) fn enter(
        &mut self,
        member_id: &ByteString,
        instance_id: Option<&ByteString>,
        speaks_classic: bool,
        changes: &mut Changes,
    ) -> Result<bool, Refusal> {
        let holder = instance_id.and_then(|instance| self.image.static_member(instance)).cloned();
        match holder {
            Some(holder) if holder != *member_id => {
                self.replace(&holder, member_id, speaks_classic, changes)?;
                Ok(false)
            }
            _ => Ok(!speaks_classic && self.begin_anew(member_id, changes)),
        }
    }

    /// A member that is here already joins. If that repeats its first request nothing happens; else it has lost everything,
    /// and what it had is free.
    fn begin_anew(&mut self, member_id: &ByteString, changes: &mut Changes) -> bool {
        let Some(current) = self.image.current(member_id) else { return false };
        if current.epoch == GroupEpoch::LEFT_FOR_NOW {
            let assigned = current.assigned.clone();
            let back = CurrentAssignment { assigned, ..CurrentAssignment::default() };
            self.put(changes, Change::Current(member_id.clone(), Some(back)));
            return false;
        }
        if current.epoch == GroupEpoch::JOINING || current.previous_epoch == GroupEpoch::JOINING {
            return false;
        }
        self.put(changes, Change::Current(member_id.clone(), Some(CurrentAssignment::default())));
        true
    }

    /// A static member comes back under another id, and takes over what its instance has.
    fn replace(
        &mut self,
        old_id: &ByteString,
        new_id: &ByteString,
        speaks_classic: bool,
        changes: &mut Changes,
    ) -> Result<(), Refusal> {
        let Some(metadata) = self.image.member(old_id).cloned() else { return Ok(()) };
        let current = self.image.current(old_id).cloned().unwrap_or_default();
        let has_left = current.epoch == GroupEpoch::LEFT_FOR_NOW;
        if !speaks_classic && metadata.classic.is_none() && !has_left {
            let message = format!("member {old_id} has the instance id, and has not left");
            return Err(Refusal::new(ErrorCode::UnreleasedInstanceId, message));
        }
        let target = self.image.target(old_id).cloned();
        self.remove_member(old_id, changes);
        self.put(changes, Change::Member(new_id.clone(), Some(metadata)));
        if target.is_some() {
            self.put(changes, Change::Target(new_id.clone(), target));
        }
        let inherited = CurrentAssignment { assigned: current.assigned, ..CurrentAssignment::default() };
        self.put(changes, Change::Current(new_id.clone(), Some(inherited)));
        Ok(())
    }

    /// Whether the member is who it says, in an epoch that counts.
    fn check_presence(&self, request: &Heartbeat) -> Result<(), Refusal> {
        self.check_identity(&request.member_id, request.instance_id.as_deref())?;
        let joining = CurrentAssignment::default();
        let current = self.image.current(&request.member_id).unwrap_or(&joining);
        Self::check_epoch(current, request.epoch, request.owned.as_ref())
    }

    /// Whether the member is there, and the one that has the instance id if that is given.
    pub(super) fn check_identity(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), Refusal> {
        let Some(instance) = instance_id else { return self.known(member_id).map(|_| ()) };
        match self.image.static_member(instance) {
            None => {
                let message = format!("the group has no member with instance id {instance}");
                Err(Refusal::new(ErrorCode::UnknownMemberId, message))
            }
            Some(holder) if holder != member_id => {
                let message = format!("member {holder} has taken over instance id {instance}");
                Err(Refusal::new(ErrorCode::FencedInstanceId, message))
            }
            Some(_) => Ok(()),
        }
    }

    /// What a static member leaves behind when it will come back: nobody else gets its partitions meanwhile.
    pub(super) fn left_for_now(current: &CurrentAssignment) -> CurrentAssignment {
        CurrentAssignment {
            epoch: GroupEpoch::LEFT_FOR_NOW,
            state: MemberState::Stable,
            revoking: Owned::new(),
            ..current.clone()
        }
    }
}
