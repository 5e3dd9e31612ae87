//! Members that leave of their own will.

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::{Change, Changes, ConsumerGroup, GroupEpoch, Heartbeat, HeartbeatAnswer};
use crate::coordinator::Now;
use crate::error::Refusal;
use crate::group::classic::Leaver;
use crate::group::topic_image::TopicImage;

impl ConsumerGroup {
    /// A member leaves by a heartbeat, for good or for a while.
    pub(super) fn leave(
        &mut self,
        request: &Heartbeat,
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) -> Result<HeartbeatAnswer, Refusal> {
        let member_id = &request.member_id;
        self.check_identity(member_id, request.instance_id.as_deref())?;
        if request.epoch == GroupEpoch::LEFT_FOR_NOW {
            let current = self.image.current(member_id).cloned().unwrap_or_default();
            let left = Self::left_for_now(&current);
            self.put(changes, Change::Current(member_id.clone(), Some(left)));
        } else {
            self.remove_member(member_id, changes);
            self.bump_after_removal(topics, now, changes);
        }
        Ok(HeartbeatAnswer {
            member_id: member_id.clone(),
            epoch: request.epoch,
            heartbeat_interval_ms: 0,
            assignment: None,
        })
    }

    /// Members leave by LeaveGroup: those that speak the classic protocol, and static ones that an operator removes.
    pub(crate) fn leave_classic(
        &mut self,
        leavers: &[Leaver],
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) -> Vec<ErrorCode> {
        let mut has_left = false;
        let mut codes = Vec::with_capacity(leavers.len());
        for leaver in leavers {
            match self.leaving_classic(leaver) {
                Ok(member_id) => {
                    self.remove_member(&member_id, changes);
                    has_left = true;
                    codes.push(ErrorCode::None);
                }
                Err(refusal) => codes.push(refusal.code),
            }
        }
        if has_left {
            self.bump_after_removal(topics, now, changes);
        }
        codes
    }

    fn leaving_classic(&self, leaver: &Leaver) -> Result<ByteString, Refusal> {
        let member_id = match leaver.instance_id.as_deref() {
            Some(instance) if leaver.member_id.is_empty() => {
                self.image.static_member(instance).cloned().unwrap_or_default()
            }
            _ => leaver.member_id.clone(),
        };
        self.check_identity(&member_id, leaver.instance_id.as_deref())?;
        let is_operator = leaver.member_id.is_empty();
        if self.known(&member_id)?.classic.is_none() && !is_operator {
            let message = format!("member {member_id} does not speak the classic protocol");
            return Err(Refusal::new(ErrorCode::UnknownMemberId, message));
        }
        Ok(member_id)
    }
}
