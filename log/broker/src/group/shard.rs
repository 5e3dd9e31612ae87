//! Drives the groups of one partition of `__consumer_offsets`.

mod consumer;
mod removal;
mod share;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::record::BatchProducer;
use thalweg_protocol::{EncodeError, ErrorCode, Offset};
use thalweg_storage::{MarkerAppend, TransactionResult};
use tokio::sync::{Notify, oneshot};

pub(crate) use removal::DeletedOffsets;

use super::classic::{
    Action, AfterStore, GroupLimits, GroupMetadata, Join, JoinAnswer, Leaver, Sync, SyncAnswer, Ticket,
};
use super::commit::{Commit, Fetched, FetchedPartition};
use super::consumer::ConsumerLimits;
use super::groups::{Description, Groups, Listing, Replay};
use super::membership::Membership;
use super::offsets::{CommittedOffset, FetchedOffset};
use super::records;
use super::topic_image::Topics;
use crate::config::GroupMigrationPolicy;
use crate::coordinator::{Deadlines, Journal, JournalError, JournalRecord, Now, Replayed, Setting, Shard};
use crate::share::Shares;

/// What all shards of a group coordinator share.
#[derive(Clone, Debug)]
pub(crate) struct GroupSettings {
    pub(crate) limits: GroupLimits,
    pub(crate) consumer_limits: ConsumerLimits,
    /// Which groups with members may change their protocol.
    pub(crate) migration: GroupMigrationPolicy,
    /// The topics of the cluster.
    pub(crate) topics: Arc<Topics>,
    /// How long the offsets of a group without members are kept, in ms.
    pub(crate) retention_ms: i64,
    /// What share groups read; it is told who leaves them.
    pub(crate) shares: Arc<Shares>,
    pub(crate) setting: Setting,
    /// Rung when a deadline is noted that is earlier than all others.
    pub(crate) wake: Arc<Notify>,
}

/// The groups of one partition of `__consumer_offsets`.
///
/// What a call changes stands in memory as soon as it stands in the log, in the same order; answers wait until it is
/// committed.
#[derive(Debug)]
pub(crate) struct GroupShard {
    journal: Journal,
    settings: GroupSettings,
    /// Guards the groups and those who wait for them; held for a decision and the appends that follow from it,
    /// so that both have one order.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    groups: Groups,
    joins: HashMap<Ticket, oneshot::Sender<JoinAnswer>>,
    syncs: HashMap<Ticket, oneshot::Sender<SyncAnswer>>,
    last_ticket: u64,
    deadlines: Deadlines<ByteString>,
}

impl Shard for GroupShard {
    type Settings = GroupSettings;

    fn load(journal: Journal, settings: &GroupSettings) -> Result<Self, JournalError> {
        let mut replay =
            Replay::new(settings.limits, settings.consumer_limits, settings.setting.clocks.now());
        let topics = settings.topics.image();
        journal.replay(|replayed| {
            match replayed {
                Replayed::Record { record, producer } => {
                    if let Some(read) = records::read(&record)? {
                        replay.record(read, record.offset, producer);
                    }
                }
                Replayed::Marker { producer, commits } => replay.marker(producer, commits),
            }
            Ok(())
        })?;
        let mut state = State {
            groups: replay.finish(&topics, |id| settings.shares.limits_of(id)),
            joins: HashMap::new(),
            syncs: HashMap::new(),
            last_ticket: 0,
            deadlines: Deadlines::default(),
        };
        for id in state.groups.ids() {
            state.schedule(&id);
        }
        settings.wake.notify_one();
        Ok(Self { journal, settings: settings.clone(), state: Mutex::new(state) })
    }

    fn journal(&self) -> &Journal {
        &self.journal
    }
}

impl State {
    fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Notes when the group has something to do next, unless an earlier time is noted already. Returns whether
    /// that is the earliest of all.
    fn schedule(&mut self, id: &ByteString) -> bool {
        let Some(group) = self.groups.get_mut(id) else { return false };
        let Some(deadline) = group.membership.next_deadline() else { return false };
        if group.scheduled.is_some_and(|scheduled| scheduled <= deadline) {
            return false;
        }
        group.scheduled = Some(deadline);
        self.deadlines.note(deadline, id.clone())
    }
}

impl GroupShard {
    /// Takes a JoinGroup; its ticket is given here. The answer comes when the rebalance is over, or at once.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID when a member of a group that does not exist wants to come back; INCONSISTENT_GROUP_PROTOCOL for a
    /// share group.
    pub(crate) fn join(
        self: &Arc<Self>,
        id: &ByteString,
        mut request: Join,
    ) -> Result<oneshot::Receiver<JoinAnswer>, ErrorCode> {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        if !request.member_id.is_empty() && state.groups.get(id).is_none() {
            return Err(ErrorCode::UnknownMemberId);
        }
        let (sender, receiver) = oneshot::channel();
        request.ticket = state.ticket();
        self.end_empty_consumer_group(&mut state, id, now)?;
        let mut actions = Vec::new();
        match &mut state.groups.get_or_create(id, now).membership {
            Membership::Classic(group) => {
                let ticket = request.ticket;
                group.join(request, now, &mut actions);
                state.joins.insert(ticket, sender);
            }
            Membership::Consumer(_) => {
                self.join_consumer_group(&mut state, id, &request, now, &mut actions, sender);
            }
            Membership::Share(_) => return Err(ErrorCode::InconsistentGroupProtocol),
        }
        self.carry_out(&mut state, id, actions, now);
        Ok(receiver)
    }

    /// Takes a SyncGroup; its ticket is given here. The answer comes when the leader's assignment is committed.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID when there is no such group.
    pub(crate) fn sync(
        self: &Arc<Self>,
        id: &ByteString,
        mut request: Sync,
    ) -> Result<oneshot::Receiver<SyncAnswer>, ErrorCode> {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        let (sender, receiver) = oneshot::channel();
        request.ticket = state.ticket();
        let ticket = request.ticket;
        let mut actions = Vec::new();
        let group = state.groups.get_mut(id).ok_or(ErrorCode::UnknownMemberId)?;
        match &mut group.membership {
            Membership::Classic(classic) => {
                classic.sync(request, now, &mut actions);
                state.syncs.insert(ticket, sender);
            }
            Membership::Consumer(consumer) => {
                let answer = consumer.sync_classic(&request, &self.settings.topics.image(), now);
                self.answer_when_committed(group.last_record, sender, answer, SyncAnswer::error);
            }
            Membership::Share(_) => return Err(ErrorCode::UnknownMemberId),
        }
        self.carry_out(&mut state, id, actions, now);
        Ok(receiver)
    }

    /// Takes a Heartbeat.
    pub(crate) fn heartbeat(
        &self,
        id: &str,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> ErrorCode {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        match state.groups.get_mut(id) {
            Some(group) => match &mut group.membership {
                Membership::Classic(classic) => classic.heartbeat(member_id, instance_id, generation, now),
                Membership::Consumer(consumer) => {
                    let member_id = ByteString::from(member_id);
                    consumer.heartbeat_classic(&member_id, instance_id, generation, now)
                }
                Membership::Share(_) => ErrorCode::UnknownMemberId,
            },
            None => ErrorCode::UnknownMemberId,
        }
    }

    /// Takes members out of a group.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID when there is no such group.
    pub(crate) fn leave(
        self: &Arc<Self>,
        id: &ByteString,
        leavers: &[Leaver],
    ) -> Result<Vec<ErrorCode>, ErrorCode> {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        let mut actions = Vec::new();
        let group = state.groups.get_mut(id).ok_or(ErrorCode::UnknownMemberId)?;
        let answers = match &mut group.membership {
            Membership::Classic(classic) => {
                leavers.iter().map(|leaver| classic.leave(leaver, now, &mut actions)).collect()
            }
            Membership::Consumer(_) => self.leave_consumer_group(group, id, leavers, now, &mut actions)?,
            Membership::Share(_) => return Err(ErrorCode::UnknownMemberId),
        };
        self.carry_out(&mut state, id, actions, now);
        Ok(answers)
    }

    fn carry_out(self: &Arc<Self>, state: &mut State, id: &ByteString, actions: Vec<Action>, now: Now) {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Join(ticket, answer) => {
                    if let Some(sender) = state.joins.remove(&ticket) {
                        // Whoever asked may have gone; the member is given up in its time.
                        let _ = sender.send(answer);
                    }
                }
                Action::Sync(ticket, answer) => {
                    if let Some(sender) = state.syncs.remove(&ticket) {
                        let _ = sender.send(answer);
                    }
                }
                Action::Store { metadata, then } => match self.append_group(&metadata, now) {
                    Ok(offset) if then != AfterStore::Nothing => {
                        self.settings.setting.spawn(Arc::clone(self).await_store(id.clone(), offset, then));
                    }
                    Ok(_) => {}
                    Err(error) => {
                        let mut more = Vec::new();
                        let group = state.groups.get_mut(id);
                        if let Some(group) = group.and_then(|group| group.membership.classic_mut()) {
                            group.stored(then, Err(error), now, &mut more);
                        }
                        actions.extend(more);
                    }
                },
            }
        }
        state.groups.remove_if_unused(id);
        if state.schedule(id) {
            self.settings.wake.notify_one();
        }
    }

    fn append_group(&self, metadata: &GroupMetadata, now: Now) -> Result<Offset, ErrorCode> {
        let record = records::group_record(metadata).map_err(too_long)?;
        self.journal.append(&[record], now.wall_ms, None)
    }

    async fn await_store(self: Arc<Self>, id: ByteString, offset: Offset, then: AfterStore) {
        let outcome = self.journal.committed(offset).await;
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        let mut actions = Vec::new();
        let group = state.groups.get_mut(&id);
        match (group.and_then(|group| group.membership.classic_mut()), then) {
            (Some(group), then) => group.stored(then, outcome, now, &mut actions),
            (None, AfterStore::Return { ticket, .. }) => {
                state.joins.remove(&ticket);
            }
            (None, _) => {}
        }
        self.carry_out(&mut state, &id, actions, now);
    }

    /// When some group has something to do next, in monotonic ms.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.state.lock().deadlines.next()
    }

    /// Lets every deadline that has come take its effect.
    pub(crate) fn expire(self: &Arc<Self>) {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        while let Some(id) = state.deadlines.pop_due(now.monotonic_ms) {
            let mut actions = Vec::new();
            if let Some(group) = state.groups.get_mut(&id) {
                group.scheduled = None;
                match &mut group.membership {
                    Membership::Classic(classic) => classic.expire(now, &mut actions),
                    Membership::Consumer(_) => self.expire_consumers(group, &id, now, &mut actions),
                    Membership::Share(_) => self.expire_shares(group, &id, now),
                }
            }
            self.carry_out(&mut state, &id, actions, now);
        }
    }

    /// Appends the offsets of `commit`. Returns the offset of the last record, which is to be committed before
    /// the answer leaves; `None` when there was nothing to append.
    ///
    /// `verify` is called last before the append, under the lock under which markers are written, too: what it
    /// finds of the transaction still holds when the offsets are in the log.
    ///
    /// # Errors
    /// Why the member may not commit, or why nothing can be appended.
    pub(crate) fn commit(
        &self,
        commit: &Commit,
        verify: impl FnOnce() -> Result<(), ErrorCode>,
    ) -> Result<Option<Offset>, ErrorCode> {
        let now = self.settings.setting.clocks.now();
        let mut state = self.state.lock();
        if state.groups.get(&commit.group).is_none() && commit.generation >= 0 {
            return Err(ErrorCode::IllegalGeneration);
        }
        let appended = self.append_offsets(&mut state, commit, now, verify);
        state.groups.remove_if_unused(&commit.group);
        appended
    }

    fn append_offsets(
        &self,
        state: &mut State,
        commit: &Commit,
        now: Now,
        verify: impl FnOnce() -> Result<(), ErrorCode>,
    ) -> Result<Option<Offset>, ErrorCode> {
        let group = state.groups.get_or_create(&commit.group, now);
        group.membership.admit_commit(commit, now)?;
        let (offsets, records) = encode(commit, now)?;
        if records.is_empty() {
            return Ok(None);
        }
        verify()?;
        let producer = commit.producer.map(|producer| BatchProducer {
            id: producer.id,
            epoch: producer.epoch,
            base_sequence: -1,
            transactional: true,
        });
        let last = self.journal.append(&records, now.wall_ms, producer.as_ref())?;
        let mut record_offset = Offset(last.0 - records.len() as i64 + 1);
        for (topic, partition, mut offset) in offsets {
            offset.record_offset = record_offset;
            record_offset = record_offset.plus(1);
            match commit.producer {
                Some(producer) => group.offsets.commit_pending(producer.id, topic, partition, offset),
                None => group.offsets.commit(topic, partition, offset),
            }
        }
        if let Some(producer) = commit.producer {
            state.groups.note_open(producer.id, &commit.group);
        }
        Ok(Some(last))
    }

    /// Ends a producer's transaction in this partition. Returns the offset of the marker.
    ///
    /// # Errors
    /// Those of [`Partition::append_marker`](crate::partition::Partition::append_marker).
    pub(crate) fn write_marker(&self, marker: MarkerAppend) -> Result<Offset, ErrorCode> {
        let mut state = self.state.lock();
        let offset = self.journal.append_marker(marker)?;
        state.groups.complete(marker.producer_id, marker.result == TransactionResult::Commit);
        Ok(offset)
    }

    /// The offsets of a group: of the partitions in `wanted`, or all. `member` is who asks, if it says so, and its epoch.
    ///
    /// # Errors
    /// Why the member may not know them.
    pub(crate) fn fetch(
        &self,
        id: &str,
        member: (Option<&str>, i32),
        wanted: Option<&[(ByteString, Vec<i32>)]>,
        require_stable: bool,
    ) -> Result<Fetched, ErrorCode> {
        let state = self.state.lock();
        let group = state.groups.get(id);
        if let Some(group) = group {
            group.membership.check_fetch(member.0, member.1)?;
        }
        let mut fetched = Fetched::default();
        let mut look_up = |topic: &str, partition: i32| {
            let found = group.map(|group| group.offsets.fetch(topic, partition, require_stable));
            let committed = match found.unwrap_or(FetchedOffset::Missing) {
                FetchedOffset::Committed(offset) => {
                    fetched.rests_on = fetched.rests_on.max(Some(offset.record_offset));
                    Ok(Some(offset.clone()))
                }
                FetchedOffset::Missing => Ok(None),
                FetchedOffset::Unstable => Err(ErrorCode::UnstableOffsetCommit),
            };
            FetchedPartition { partition, committed }
        };
        let topics = match wanted {
            Some(wanted) => {
                let topic = |(topic, partitions): &(ByteString, Vec<i32>)| {
                    (topic.clone(), partitions.iter().map(|at| look_up(topic, *at)).collect())
                };
                wanted.iter().map(topic).collect()
            }
            None => {
                let known = group.map(|group| group.offsets.known_partitions(require_stable));
                let topic = |(topic, partitions): (ByteString, Vec<i32>)| {
                    let partitions = partitions.into_iter().map(|at| look_up(&topic, at)).collect();
                    (topic, partitions)
                };
                known.unwrap_or_default().into_iter().map(topic).collect()
            }
        };
        fetched.topics = topics;
        Ok(fetched)
    }

    /// A group as DescribeGroups shows it; `None` when there is none of this id that speaks the classic protocol.
    pub(crate) fn describe(&self, id: &str) -> Option<Description> {
        self.state.lock().groups.get(id)?.describe()
    }

    /// Every group as ListGroups shows it.
    pub(crate) fn list(&self) -> Vec<Listing> {
        self.state.lock().groups.list()
    }
}

type EncodedOffsets<'a> = (Vec<(&'a ByteString, i32, CommittedOffset)>, Vec<JournalRecord>);

fn encode(commit: &Commit, now: Now) -> Result<EncodedOffsets<'_>, ErrorCode> {
    let count = commit.topics.iter().map(|topic| topic.partitions.len()).sum();
    let (mut offsets, mut encoded) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for topic in &commit.topics {
        for partition in &topic.partitions {
            let offset = CommittedOffset {
                offset: partition.offset,
                leader_epoch: partition.leader_epoch,
                metadata: partition.metadata.clone(),
                commit_timestamp_ms: now.wall_ms,
                expire_timestamp_ms: commit.retention_ms.map(|ms| now.wall_ms.saturating_add(ms)),
                topic_id: topic.id,
                record_offset: Offset(-1),
            };
            let at = partition.partition;
            encoded.push(
                records::offset_record(&commit.group, &topic.name, at, Some(&offset)).map_err(too_long)?,
            );
            offsets.push((&topic.name, at, offset));
        }
    }
    Ok((offsets, encoded))
}

/// A string that no record has room for.
fn too_long(error: EncodeError) -> ErrorCode {
    tracing::warn!(%error, "a record of a group cannot be encoded");
    ErrorCode::InvalidRequest
}
