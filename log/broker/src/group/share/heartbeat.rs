//! ShareGroupHeartbeat: members join, change what they read, learn what they shall have, and leave.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::ShareGroup;
use crate::coordinator::Now;
use crate::error::Refusal;
use crate::group::consumer::{Change, Changes, GroupEpoch, HeartbeatAnswer, MemberMetadata};
use crate::group::topic_image::TopicImage;

/// The longest member id: that of a UUID as Java prints it.
const LONGEST_MEMBER_ID: usize = 36;

/// A ShareGroupHeartbeat. Fields that are `None` say that nothing has changed.
#[derive(Clone, Debug)]
pub(crate) struct ShareHeartbeat {
    /// Chosen by the client.
    pub(crate) member_id: ByteString,
    pub(crate) epoch: GroupEpoch,
    pub(crate) rack_id: Option<ByteString>,
    pub(crate) client_id: ByteString,
    pub(crate) client_host: ByteString,
    pub(crate) topics: Option<BTreeSet<ByteString>>,
}

impl ShareHeartbeat {
    /// Whether the request can be understood at all.
    ///
    /// # Errors
    /// INVALID_REQUEST.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message.to_owned()));
        if self.member_id.trim().is_empty() || self.member_id.len() > LONGEST_MEMBER_ID {
            return invalid("the member id is missing, or longer than 36 characters");
        }
        if self.rack_id.as_ref().is_some_and(|rack| rack.trim().is_empty()) {
            return invalid("the rack id is null where there is none");
        }
        if self.epoch < GroupEpoch::LEAVING {
            return invalid("there is no such member epoch");
        }
        if self.epoch == GroupEpoch::JOINING && self.topics.as_ref().is_none_or(BTreeSet::is_empty) {
            return invalid("a member that joins says what it reads");
        }
        Ok(())
    }

    /// What the member says of itself now, after `before`.
    fn metadata(&self, before: &MemberMetadata) -> MemberMetadata {
        MemberMetadata {
            rack_id: self.rack_id.clone().or_else(|| before.rack_id.clone()),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            topics: self.topics.clone().unwrap_or_else(|| before.topics.clone()),
            ..MemberMetadata::default()
        }
    }
}

impl ShareGroup {
    /// Takes a ShareGroupHeartbeat that has passed [`ShareHeartbeat::check`].
    ///
    /// # Errors
    /// GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID or FENCED_MEMBER_EPOCH. What has been changed by then is to be taken back.
    pub(crate) fn heartbeat(
        &mut self,
        request: &ShareHeartbeat,
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) -> Result<HeartbeatAnswer, Refusal> {
        let member_id = &request.member_id;
        match request.epoch {
            GroupEpoch::LEAVING => {
                self.check_known(member_id)?;
                self.remove_member(member_id, changes);
                self.go_on_without(topics, now, changes);
                return Ok(HeartbeatAnswer {
                    member_id: member_id.clone(),
                    epoch: request.epoch,
                    heartbeat_interval_ms: 0,
                    assignment: None,
                });
            }
            GroupEpoch::JOINING => self.check_size(member_id)?,
            epoch => self.check_epoch(member_id, epoch)?,
        }
        let is_new = self.image.member(member_id).is_none();
        let before = self.image.member(member_id).cloned().unwrap_or_default();
        let metadata = request.metadata(&before);
        let reads_others = metadata.topics != before.topics;
        if is_new || metadata != *before {
            self.put(changes, Change::Member(member_id.clone(), Some(Arc::new(metadata))));
        }
        let had = self.image.current(member_id).map(|current| current.assigned.clone()).unwrap_or_default();
        self.advance(member_id, is_new || reads_others, topics, now, changes);
        self.sessions.insert(member_id.clone(), now.monotonic_ms + self.limits.session_timeout_ms);
        let current = self.image.current(member_id).cloned().unwrap_or_default();
        let is_full = request.epoch == GroupEpoch::JOINING || request.topics.is_some();
        let is_news = !had.keys().eq(current.assigned.keys());
        Ok(HeartbeatAnswer {
            member_id: member_id.clone(),
            epoch: current.epoch,
            heartbeat_interval_ms: self.limits.heartbeat_interval_ms,
            assignment: (is_full || is_news).then(|| current.assignment()),
        })
    }

    fn check_size(&self, member_id: &str) -> Result<(), Refusal> {
        let members = self.image.members();
        if members.contains_key(member_id) || members.len() < self.limits.max_members {
            return Ok(());
        }
        let message = format!("the group has {} members already", self.limits.max_members);
        Err(Refusal::new(ErrorCode::GroupMaxSizeReached, message))
    }

    /// Whether the member is in this epoch, or in the one before, since the answer may have been lost.
    fn check_epoch(&self, member_id: &str, epoch: GroupEpoch) -> Result<(), Refusal> {
        self.check_known(member_id)?;
        let current = self.image.current(member_id).cloned().unwrap_or_default();
        if epoch == current.epoch || epoch == current.previous_epoch {
            return Ok(());
        }
        let message = format!("the member is in epoch {}, not {}", current.epoch.0, epoch.0);
        Err(Refusal::new(ErrorCode::FencedMemberEpoch, message))
    }
}
