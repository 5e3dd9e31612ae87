//! Drives share groups (KIP-932).

use bytestring::ByteString;
use thalweg_protocol::{ErrorCode, Offset};

use super::{GroupShard, too_long};
use crate::coordinator::Now;
use crate::error::Refusal;
use crate::group::consumer::{Changes, GroupEpoch, HeartbeatAnswer};
use crate::group::groups::Group;
use crate::group::membership::Membership;
use crate::group::share::{ShareDescription, ShareGroup, ShareHeartbeat, records};
use crate::share::SessionKey;

impl GroupShard {
    /// Takes a ShareGroupHeartbeat. Returns its answer, and the record that is to be committed before it leaves.
    ///
    /// # Errors
    /// Those of [`ShareGroup::heartbeat`]; GROUP_ID_NOT_FOUND where there is no such share group, and nobody who joins it.
    /// Why nothing can be written.
    pub(crate) fn share_heartbeat(
        &self,
        id: &ByteString,
        request: &ShareHeartbeat,
    ) -> Result<(HeartbeatAnswer, Option<Offset>), Refusal> {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        if request.epoch != GroupEpoch::JOINING && state.groups.get(id).is_none() {
            return Err(Refusal::new(ErrorCode::GroupIdNotFound, format!("there is no group {id}")));
        }
        let group = state.groups.get_or_create(id, now);
        let answer = self.share_heartbeat_in(group, id, request, now);
        let last_record = group.last_record;
        state.groups.remove_if_unused(id);
        if state.schedule(id) {
            self.settings.wake.notify_one();
        }
        drop(state);
        if answer.is_ok() {
            self.tell_sessions(id, request);
        }
        Ok((answer?, last_record))
    }

    /// Tells of a member that has joined or left, which was taken.
    fn tell_sessions(&self, id: &ByteString, request: &ShareHeartbeat) {
        let member = || SessionKey { group: id.clone(), member: request.member_id.clone() };
        match request.epoch {
            GroupEpoch::JOINING => self.settings.shares.sessions().join(&member()),
            GroupEpoch::LEAVING => self.settings.shares.sessions().leave(&member()),
            _ => {}
        }
    }

    fn share_heartbeat_in(
        &self,
        group: &mut Group,
        id: &ByteString,
        request: &ShareHeartbeat,
        now: Now,
    ) -> Result<HeartbeatAnswer, Refusal> {
        if request.epoch == GroupEpoch::JOINING && group.is_unused() && !group.membership.is_written() {
            let limits = self.settings.shares.limits_of(id);
            group.membership = Membership::Share(ShareGroup::new(id.clone(), limits));
        }
        let Membership::Share(share) = &mut group.membership else {
            let message = format!("group {id} is not a share group");
            return Err(Refusal::new(ErrorCode::GroupIdNotFound, message));
        };
        let mut changes = Changes::default();
        share.set_limits(self.settings.shares.limits_of(id));
        let answer = share.heartbeat(request, &self.settings.topics.image(), now, &mut changes);
        if answer.is_err() {
            share.roll_back(changes);
            return answer;
        }
        self.make_share_last(group, id, changes, now)?;
        answer
    }

    /// Has a share group without members be there, so that its offsets can be set: one that is not there is made. Returns the
    /// record that is to be committed before anybody hears of it.
    ///
    /// # Errors
    /// NON_EMPTY_GROUP when it has members; GROUP_ID_NOT_FOUND for a group of another kind. Why nothing can be written.
    pub(crate) fn ensure_empty_share_group(&self, id: &ByteString) -> Result<Option<Offset>, ErrorCode> {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        let group = state.groups.get_or_create(id, now);
        let ensured = self.ensure_empty_in(group, id, now);
        let last_record = group.last_record;
        state.groups.remove_if_unused(id);
        ensured.map(|()| last_record)
    }

    fn ensure_empty_in(&self, group: &mut Group, id: &ByteString, now: Now) -> Result<(), ErrorCode> {
        if group.is_unused() && !group.membership.is_written() {
            let mut share = ShareGroup::new(id.clone(), self.settings.shares.limits_of(id));
            let mut changes = Changes::default();
            share.begin(&self.settings.topics.image(), now, &mut changes);
            group.membership = Membership::Share(share);
            return self.make_share_last(group, id, changes, now);
        }
        match group.membership.share().map(ShareGroup::is_empty) {
            Some(true) => Ok(()),
            Some(false) => Err(ErrorCode::NonEmptyGroup),
            None => Err(ErrorCode::GroupIdNotFound),
        }
    }

    /// Writes what has been decided about a share group, or takes it back.
    fn make_share_last(
        &self,
        group: &mut Group,
        id: &ByteString,
        changes: Changes,
        now: Now,
    ) -> Result<(), ErrorCode> {
        let written = changes.made().iter().map(|change| records::record(id, change));
        let written = written.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>().map_err(too_long);
        let appended = match written {
            Ok(written) if written.is_empty() => return Ok(()),
            Ok(written) => self.journal.append(&written, now.wall_ms, None),
            Err(code) => Err(code),
        };
        match appended {
            Ok(last) => {
                group.last_record = Some(last);
                Ok(())
            }
            Err(code) => {
                if let Membership::Share(share) = &mut group.membership {
                    share.roll_back(changes);
                }
                Err(code)
            }
        }
    }

    /// Gives up the members of a share group that have not been heard of in time.
    pub(super) fn expire_shares(&self, group: &mut Group, id: &ByteString, now: Now) {
        let Membership::Share(share) = &mut group.membership else { return };
        let mut changes = Changes::default();
        let given_up = share.expire(&self.settings.topics.image(), now, &mut changes);
        if given_up.is_empty() {
            return;
        }
        match self.make_share_last(group, id, changes, now) {
            Ok(()) => {
                tracing::info!(group = %id, members = ?given_up, "members have not been heard of in time");
                for member in given_up {
                    self.settings.shares.give_up_member(id, &member);
                }
            }
            Err(code) => {
                tracing::warn!(group = %id, code = code.name(), "members that are late are kept for now");
            }
        }
    }

    /// A group as ShareGroupDescribe shows it; `None` when there is no share group of this id.
    pub(crate) fn describe_share(&self, id: &str) -> Option<ShareDescription> {
        let state = self.state.lock();
        state.groups.get(id)?.membership.share().map(ShareGroup::describe)
    }

    /// Whether somebody is in the share group of this id; `None` when there is none.
    pub(crate) fn share_group_has_members(&self, id: &str) -> Option<bool> {
        let state = self.state.lock();
        state.groups.get(id)?.membership.share().map(|share| !share.is_empty())
    }
}
