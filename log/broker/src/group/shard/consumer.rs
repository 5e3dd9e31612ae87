//! Drives the groups that the coordinator assigns to (KIP-848), and groups that change their protocol.

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::{ErrorCode, Offset};
use tokio::sync::oneshot;

use super::removal::membership_tombstones;
use super::{GroupShard, State, too_long};
use crate::coordinator::{JournalRecord, Now};
use crate::error::Refusal;
use crate::group::classic::{Action, ClassicGroup, Join, JoinAnswer, Leaver};
use crate::group::consumer::{
    Changes, ConsumerDescription, ConsumerGroup, GroupEpoch, Heartbeat, HeartbeatAnswer,
};
use crate::group::groups::Group;
use crate::group::membership::Membership;
use crate::group::records;
use crate::group::topic_image::TopicImage;

impl GroupShard {
    /// Takes a ConsumerGroupHeartbeat. Returns its answer, and the record that is to be committed before it leaves.
    ///
    /// # Errors
    /// Those of [`ConsumerGroup::heartbeat`]; UNKNOWN_MEMBER_ID where there is no such group: the member joins it again
    /// then. GROUP_ID_NOT_FOUND for a group that does not change its protocol. Why nothing can be written.
    pub(crate) fn consumer_heartbeat(
        self: &Arc<Self>,
        id: &ByteString,
        request: &Heartbeat,
    ) -> Result<(HeartbeatAnswer, Option<Offset>), Refusal> {
        let now = self.settings.setting.clocks.now();
        let topics = self.settings.topics.image();
        let mut state = self.state.lock();
        if request.epoch != GroupEpoch::JOINING && state.groups.get(id).is_none() {
            return Err(Refusal::new(ErrorCode::UnknownMemberId, format!("there is no group {id}")));
        }
        let group = state.groups.get_or_create(id, now);
        let mut actions = Vec::new();
        let answer = self.heartbeat_in(group, id, request, &topics, now, &mut actions);
        if answer.is_ok() {
            self.hand_over(group, id, true, &topics, now, &mut actions);
        }
        let last_record = group.last_record;
        // Most heartbeats only put a deadline off, which needs no look at those of all members.
        if answer.is_err() || !actions.is_empty() || !is_noted(group, &request.member_id) {
            self.carry_out(&mut state, id, actions, now);
        }
        Ok((answer?, last_record))
    }

    fn heartbeat_in(
        &self,
        group: &mut Group,
        id: &ByteString,
        request: &Heartbeat,
        topics: &TopicImage,
        now: Now,
        actions: &mut Vec<Action>,
    ) -> Result<HeartbeatAnswer, Refusal> {
        let mut changes = Changes::default();
        match &mut group.membership {
            Membership::Consumer(consumer) => {
                consumer.keep_to(self.settings.consumer_limits.of_group(topics, id));
                let answer = consumer.heartbeat(request, topics, now, &mut changes);
                if answer.is_err() {
                    consumer.roll_back(changes);
                    return answer;
                }
                self.make_last(group, id, changes, now)?;
                answer
            }
            Membership::Classic(classic) => {
                let mut consumer = self.upgraded(classic, request, topics, now, &mut changes)?;
                let answer = consumer.heartbeat(request, topics, now, &mut changes)?;
                let mut written = Vec::new();
                if classic.protocol_type().is_some() {
                    written.push(records::group_tombstone(id).map_err(too_long)?);
                }
                group.last_record = self.append_changes(id, written, &changes, now)?.max(group.last_record);
                tracing::info!(group = %id, "the group speaks the consumer protocol from now on");
                classic.turn_all_away(actions);
                group.membership = Membership::Consumer(consumer);
                Ok(answer)
            }
            Membership::Share(_) => {
                let message = format!("group {id} is a share group");
                Err(Refusal::new(ErrorCode::GroupIdNotFound, message))
            }
        }
    }

    /// The group that a classic one becomes for a member of the consumer protocol.
    fn upgraded(
        &self,
        classic: &ClassicGroup,
        request: &Heartbeat,
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) -> Result<ConsumerGroup, Refusal> {
        let id = classic.id();
        let limits = self.settings.consumer_limits.of_group(topics, id);
        if request.epoch != GroupEpoch::JOINING {
            let message = format!("group {id} speaks the classic protocol");
            return Err(Refusal::new(ErrorCode::UnknownMemberId, message));
        }
        if classic.members().is_empty() {
            return Ok(ConsumerGroup::new(id.clone(), limits, now));
        }
        if !self.settings.migration.allows_upgrade() {
            let message = format!("group {id} speaks the classic protocol, and is not to change it");
            return Err(Refusal::new(ErrorCode::GroupIdNotFound, message));
        }
        ConsumerGroup::succeed(classic, limits, topics, now, changes)
    }

    /// Writes what has been decided about a group, or takes it back.
    fn make_last(
        &self,
        group: &mut Group,
        id: &ByteString,
        changes: Changes,
        now: Now,
    ) -> Result<(), ErrorCode> {
        match self.append_changes(id, Vec::new(), &changes, now) {
            Ok(last) => {
                group.last_record = last.max(group.last_record);
                Ok(())
            }
            Err(code) => {
                if let Membership::Consumer(consumer) = &mut group.membership {
                    consumer.roll_back(changes);
                }
                Err(code)
            }
        }
    }

    fn append_changes(
        &self,
        id: &ByteString,
        mut written: Vec<JournalRecord>,
        changes: &Changes,
        now: Now,
    ) -> Result<Option<Offset>, ErrorCode> {
        for change in changes.made() {
            written.push(records::consumer_record(id, change).map_err(too_long)?);
        }
        if written.is_empty() {
            return Ok(None);
        }
        self.journal.append(&written, now.wall_ms, None).map(Some)
    }

    /// A group in which nobody speaks the consumer protocol any more goes on as a classic one. With `rebalances` its members
    /// are to join again.
    fn hand_over(
        &self,
        group: &mut Group,
        id: &ByteString,
        rebalances: bool,
        topics: &TopicImage,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        let Membership::Consumer(consumer) = &group.membership else { return };
        let limits = self.settings.limits;
        let is_right = consumer.is_all_classic() && consumer.image().members().len() <= limits.max_members;
        if !is_right || !self.settings.migration.allows_downgrade() {
            return;
        }
        let mut classic = consumer.hand_over(limits, topics, now);
        let written = membership_tombstones(id, &group.membership).and_then(|mut written| {
            written.push(records::group_record(&classic.stored_form()).map_err(too_long)?);
            self.journal.append(&written, now.wall_ms, None)
        });
        match written {
            Ok(last) => {
                tracing::info!(group = %id, "the group speaks the classic protocol from now on");
                group.last_record = Some(last);
                if rebalances {
                    classic.rebalance(now, actions);
                }
                group.membership = Membership::Classic(classic);
            }
            // It can go on as it is; the next change tries again.
            Err(code) => {
                tracing::warn!(group = %id, code = code.name(), "the group cannot change its protocol")
            }
        }
    }

    /// A group of the consumer protocol that nobody is in makes room for a classic one; the offsets stay.
    pub(super) fn end_empty_consumer_group(
        &self,
        state: &mut State,
        id: &ByteString,
        now: Now,
    ) -> Result<(), ErrorCode> {
        let Some(group) = state.groups.get_mut(id) else { return Ok(()) };
        let Membership::Consumer(consumer) = &group.membership else { return Ok(()) };
        if !consumer.is_empty() {
            return Ok(());
        }
        let tombstones = membership_tombstones(id, &group.membership)?;
        if !tombstones.is_empty() {
            group.last_record = Some(self.journal.append(&tombstones, now.wall_ms, None)?);
        }
        let classic = ClassicGroup::new(id.clone(), self.settings.limits, now);
        group.membership = Membership::Classic(classic);
        Ok(())
    }

    /// A member of the classic protocol joins a group of the consumer protocol.
    pub(super) fn join_consumer_group(
        self: &Arc<Self>,
        state: &mut State,
        id: &ByteString,
        request: &Join,
        now: Now,
        actions: &mut Vec<Action>,
        sender: oneshot::Sender<JoinAnswer>,
    ) {
        let topics = self.settings.topics.image();
        let Some(group) = state.groups.get_mut(id) else { return };
        let Membership::Consumer(consumer) = &mut group.membership else { return };
        let mut changes = Changes::default();
        let member_id = request.member_id.clone();
        let answer = match consumer.join_classic(request, self.settings.limits, &topics, now, &mut changes) {
            Ok(answer) => match self.make_last(group, id, changes, now) {
                Ok(()) => {
                    self.hand_over(group, id, false, &topics, now, actions);
                    answer
                }
                Err(code) => JoinAnswer::error(code, member_id.clone()),
            },
            Err(refused) => {
                consumer.roll_back(changes);
                JoinAnswer::error(refused.code, refused.member_id)
            }
        };
        let failed = move |code| JoinAnswer::error(code, member_id);
        self.answer_when_committed(group.last_record, sender, answer, failed);
    }

    /// Members leave a group of the consumer protocol by LeaveGroup.
    pub(super) fn leave_consumer_group(
        &self,
        group: &mut Group,
        id: &ByteString,
        leavers: &[Leaver],
        now: Now,
        actions: &mut Vec<Action>,
    ) -> Result<Vec<ErrorCode>, ErrorCode> {
        let topics = self.settings.topics.image();
        let Membership::Consumer(consumer) = &mut group.membership else { return Ok(Vec::new()) };
        let mut changes = Changes::default();
        let codes = consumer.leave_classic(leavers, &topics, now, &mut changes);
        self.make_last(group, id, changes, now)?;
        self.hand_over(group, id, true, &topics, now, actions);
        Ok(codes)
    }

    /// Gives up the members of a group of the consumer protocol that have let a deadline pass.
    pub(super) fn expire_consumers(
        &self,
        group: &mut Group,
        id: &ByteString,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        let topics = self.settings.topics.image();
        let Membership::Consumer(consumer) = &mut group.membership else { return };
        let mut changes = Changes::default();
        let given_up = consumer.expire(&topics, now, &mut changes);
        if given_up.is_empty() {
            return;
        }
        match self.make_last(group, id, changes, now) {
            Ok(()) => {
                tracing::info!(group = %id, members = ?given_up, "members have not been heard of in time");
                self.hand_over(group, id, true, &topics, now, actions);
            }
            Err(code) => {
                tracing::warn!(group = %id, code = code.name(), "members that are late are kept for now");
            }
        }
    }

    /// Answers once `last_record` is committed, if there is one.
    pub(super) fn answer_when_committed<T: Send + 'static>(
        self: &Arc<Self>,
        last_record: Option<Offset>,
        sender: oneshot::Sender<T>,
        answer: T,
        failed: impl FnOnce(ErrorCode) -> T + Send + 'static,
    ) {
        let waits_for = last_record.filter(|offset| !self.journal.is_committed(*offset));
        let Some(offset) = waits_for else {
            // Whoever asked may have gone.
            let _ = sender.send(answer);
            return;
        };
        let shard = Arc::clone(self);
        self.settings.setting.spawn(async move {
            let answer = match shard.journal.committed(offset).await {
                Ok(()) => answer,
                Err(code) => failed(code),
            };
            let _ = sender.send(answer);
        });
    }

    /// A group as ConsumerGroupDescribe shows it; `None` when there is none of this id that speaks the consumer protocol.
    pub(crate) fn describe_consumer(&self, id: &str) -> Option<ConsumerDescription> {
        let state = self.state.lock();
        state.groups.get(id)?.membership.consumer().map(ConsumerGroup::describe)
    }
}

/// Whether the group will be looked at before the next deadline of a member.
fn is_noted(group: &Group, member_id: &str) -> bool {
    let deadline = group.membership.consumer().and_then(|consumer| consumer.deadline_of(member_id));
    deadline.is_some_and(|deadline| group.scheduled.is_some_and(|scheduled| scheduled <= deadline))
}
