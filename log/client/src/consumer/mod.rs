//! Reading: by assignment or by subscription, batches or records.

mod assignor;
mod committer;
mod coordinated;
mod drive;
mod fetch_session;
mod fetched;
mod fetcher;
mod group_offsets;
mod heartbeat;
mod join;
mod membership;
mod metrics;
mod offsets;
mod pattern;
mod position;
mod protocol;
mod read;
mod reconcile;
mod search;
mod subscribe;
mod validate;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use thalweg_protocol::{ErrorCode, Offset, TopicPartition};
use tokio::sync::Notify;
use tokio::time::Instant;

use self::committer::Committer;
use self::coordinated::Coordinated;
use self::drive::{Event, JoinTask};
use self::fetcher::Fetcher;
use self::membership::Membership;
use self::pattern::Pattern;
use self::position::{PartitionState, Position, Search};
use crate::by_leader::list_offsets;
use crate::cluster::{Cluster, Wanted};
use crate::config::{ConsumerConfig, GroupProtocol};
use crate::coordinator::Coordinator;
use crate::error::{Error, Result};

pub use assignor::{Assignment, Assignor, CooperativeSticky, GroupMember, Range, RoundRobin};
pub use fetched::{FetchedBatches, FetchedRecords, Polled, Progress, RebalanceEvent};
pub(crate) use group_offsets::{commit_offsets, fetch_offsets};
pub use metrics::ConsumerMetrics;
pub use offsets::{CommittedOffset, GroupMetadata, ListedOffset, OffsetSpec};
pub(crate) use protocol::{decode_assignment, decode_subscription};

/// Advice to who names a partition that the consumer does not read.
const NOT_ASSIGNED: &str = "the partition is not assigned to this consumer";

/// Reads the partitions it was assigned, or shares those of its topics with the other members of its group.
///
/// It belongs to one thread or task. Fetches are sent ahead of need whenever [`Consumer::poll`] is called; in
/// between the answers arrive by themselves, and background tasks send the group's heartbeats and take the member
/// through its rebalances.
///
/// Dropping a consumer without [`Consumer::close`] leaves its group to notice by the session timeout.
pub struct Consumer {
    cluster: Arc<Cluster>,
    wanted: Wanted,
    config: ConsumerConfig,
    assignors: Vec<Arc<dyn Assignor>>,
    partitions: BTreeMap<TopicPartition, PartitionState>,
    /// Drawn from for the versions of partitions' states.
    next_version: u64,
    fetcher: Fetcher,
    /// What is under way; it goes on only while `poll` is waited for, but answers arrive in between.
    events: FuturesUnordered<BoxFuture<'static, Event>>,
    /// What the next poll must say.
    errors: VecDeque<Error>,
    rebalanced: Vec<RebalanceEvent>,
    is_searching: bool,
    is_validating: bool,
    is_refreshing: bool,
    metrics: ConsumerMetrics,
    /// In a group whose members assign.
    membership: Option<Membership>,
    /// In a group whose coordinator assigns.
    coordinated: Option<Coordinated>,
    /// Where the members assign: what the names of topics must match, and when all topics were last looked at.
    pattern: Option<(Pattern, Option<Instant>)>,
    /// Partitions are assigned whose topics are only known by id; when these were last looked for.
    wants_unknown: bool,
    looked_for_unknown: Option<Instant>,
    join: Option<JoinTask>,
    group: Option<Arc<Coordinator>>,
    committer: Option<Committer>,
    committed_at: Instant,
    /// An automatic commit is under way.
    is_committing: bool,
    wake: Arc<Notify>,
}

impl Consumer {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        config: ConsumerConfig,
        assignors: Vec<Arc<dyn Assignor>>,
    ) -> Result<Self> {
        check(&config, &assignors)?;
        let group =
            config.group.as_deref().map(|group| Arc::new(Coordinator::for_short_calls(&cluster, group)));
        Ok(Self {
            fetcher: Fetcher::new(Arc::clone(&cluster), &config),
            committer: group.as_ref().map(|group| Committer::new(Arc::clone(group))),
            wanted: Wanted::new(&cluster),
            cluster,
            config,
            assignors,
            partitions: BTreeMap::new(),
            next_version: 0,
            events: FuturesUnordered::new(),
            errors: VecDeque::new(),
            rebalanced: Vec::new(),
            is_searching: false,
            is_validating: false,
            metrics: ConsumerMetrics::default(),
            is_refreshing: false,
            membership: None,
            coordinated: None,
            pattern: None,
            wants_unknown: false,
            looked_for_unknown: None,
            join: None,
            group,
            committed_at: Instant::now(),
            is_committing: false,
            wake: Arc::new(Notify::new()),
        })
    }

    /// Reads these partitions and no others, outside of any group's membership. Partitions that were assigned
    /// before keep their position and what is buffered of them; the others begin at the group's offset if
    /// there is a group, else by the rule of `offset_reset`. A call of `seek` before the next `poll` begins
    /// elsewhere.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) while topics are subscribed to.
    pub fn assign(&mut self, partitions: impl IntoIterator<Item = TopicPartition>) -> Result<()> {
        if self.is_member() {
            let advice = "topics are subscribed to: call unsubscribe first";
            return Err(Error::Misuse { operation: "assign", advice });
        }
        let wanted: BTreeSet<TopicPartition> = partitions.into_iter().collect();
        self.partitions.retain(|partition, _| wanted.contains(partition));
        self.add_partitions(wanted);
        self.hold_topics();
        Ok(())
    }

    /// The partitions that are being read and will be until the group decides anew. Those that it takes away are not
    /// among them, although offsets of theirs can be committed until the `poll` after the one that told so.
    pub fn assignment(&self) -> Vec<TopicPartition> {
        let kept = self.partitions.iter().filter(|(_, state)| !state.is_revoked);
        kept.map(|(partition, _)| partition.clone()).collect()
    }

    /// Returns what has been fetched since the last call, waiting at most `timeout` for something. Positions
    /// move past what is returned. An empty answer means that nothing came, or that a [`Waker`] woke it.
    ///
    /// Cancelling the future loses nothing.
    ///
    /// # Errors
    /// By kind: `Retry` when the cluster cannot be reached (it is tried again by the next call), for partitions that have
    /// a position only as [`ConsumerConfig::stall_timeout_ms`] says; [`Error::UnknownTopic`](crate::Error::UnknownTopic)
    /// likewise when the topic is gone; `Fenced` when another member with the same instance id has taken over; `GiveUp` for damaged batches and
    /// positions without a rule ([`Error::NoOffset`](crate::Error::NoOffset),
    /// [`Error::OffsetOutOfRange`](crate::Error::OffsetOutOfRange),
    /// [`Error::DamagedBatch`](crate::Error::DamagedBatch)): seek, and poll again.
    pub async fn poll(&mut self, timeout: Duration) -> Result<Polled> {
        self.run(Instant::now() + timeout).await
    }

    /// What makes a `poll` that waits return at once, from any thread.
    pub fn waker(&self) -> Waker {
        Waker { notify: Arc::clone(&self.wake) }
    }

    /// Goes on at `offset`; what is buffered of the partition is dropped.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) when the partition is not assigned.
    pub fn seek(&mut self, partition: &TopicPartition, offset: Offset) -> Result<()> {
        self.move_to("seek", partition, Position::At(offset))
    }

    /// Goes on at the first record there is, or at the end; which offset that is, the next `poll` finds out.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) when the partition is not assigned.
    pub fn seek_to(&mut self, partition: &TopicPartition, spec: OffsetSpec) -> Result<()> {
        self.move_to("seek_to", partition, Position::Wanted(Search::Log(spec)))
    }

    /// Fetches nothing at or behind `offset`, so that a bounded read asks the broker for no more than it needs; `None`
    /// takes the bound away. The last batch before it may hold records behind it.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) when the partition is not assigned.
    pub fn stop_at(&mut self, partition: &TopicPartition, offset: Option<Offset>) -> Result<()> {
        let misuse = || Error::Misuse { operation: "stop_at", advice: NOT_ASSIGNED };
        self.partitions.get_mut(partition).ok_or_else(misuse)?.stop_at = offset;
        Ok(())
    }

    /// The offset of the next record that `poll` will return; `None` while that has to be found out.
    pub fn position(&self, partition: &TopicPartition) -> Option<Offset> {
        self.partitions.get(partition)?.offset()
    }

    /// How far a partition has been read and where its end was; `None` before the first fetch of it.
    pub fn progress(&self, partition: &TopicPartition) -> Option<Progress> {
        self.partitions.get(partition)?.progress()
    }

    /// How many offsets are left to read in a partition as of its last fetch, as Java's `currentLag`; `None` before the
    /// first fetch of it.
    pub fn current_lag(&self, partition: &TopicPartition) -> Option<i64> {
        self.progress(partition).map(|progress| progress.lag())
    }

    /// What this consumer has done so far.
    pub fn metrics(&self) -> ConsumerMetrics {
        let (fetches, fetch_failures, resets) = self.fetcher.counts();
        ConsumerMetrics { fetches, fetch_failures, resets, ..self.metrics }
    }

    /// What keeps partitions from being read at present, and for how long: that of the one which waits longest. It is
    /// tried again while `poll` is called. `None` when nothing has failed since the last success.
    pub fn trouble(&self) -> Option<(Error, Duration)> {
        let stalls = self.partitions.values().filter_map(|state| state.stall.as_ref());
        let oldest = stalls.min_by_key(|stall| stall.since)?;
        Some((oldest.error.clone(), oldest.since.elapsed()))
    }

    /// Stops returning records of these partitions, without giving them up. What is buffered stays buffered.
    pub fn pause<'a>(&mut self, partitions: impl IntoIterator<Item = &'a TopicPartition>) {
        self.set_paused(partitions, true);
    }

    /// Goes on returning records of these partitions.
    pub fn resume<'a>(&mut self, partitions: impl IntoIterator<Item = &'a TopicPartition>) {
        self.set_paused(partitions, false);
    }

    /// The partitions that are paused.
    pub fn paused(&self) -> Vec<TopicPartition> {
        let paused = self.partitions.iter().filter(|(_, state)| state.is_paused);
        paused.map(|(partition, _)| partition.clone()).collect()
    }

    /// Commits the positions of all assigned partitions.
    ///
    /// # Errors
    /// By kind: `Rejoin` when the member is no longer in the group, so that others process the records again.
    pub async fn commit(&mut self) -> Result<()> {
        let positions = self.positions(|_| true);
        self.commit_offsets(&positions).await
    }

    /// Commits these offsets.
    ///
    /// # Errors
    /// By kind: `Rejoin` when the member is no longer in the group, so that others process the records again.
    pub async fn commit_offsets(&mut self, offsets: &[(TopicPartition, CommittedOffset)]) -> Result<()> {
        self.commit_offsets_later(offsets).await
    }

    /// Commits these offsets without waiting, after all commits before; the future tells how it went, and may
    /// be dropped.
    pub fn commit_offsets_later(
        &mut self,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let commit = match (&self.committer, self.group_metadata()) {
            (Some(committer), Ok(member)) => {
                let identity = self.coordinated.as_ref().map(|member| Arc::clone(member.identity()));
                Ok(committer.commit(member, identity, offsets.to_vec()))
            }
            (_, Err(error)) => Err(error),
            (None, Ok(_)) => Err(Error::Closed),
        };
        async move { commit?.await }
    }

    /// What the group has committed for these partitions; those without a commit are left out. Waits for
    /// transactions that have offsets pending.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) without a group, and whatever keeps the coordinator from
    /// answering.
    pub async fn committed(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<HashMap<TopicPartition, CommittedOffset>> {
        let group = self.group.as_ref().ok_or(no_group("committed"))?;
        fetch_offsets(group, Some(partitions), true).await
    }

    /// Who this member is, for
    /// [`Producer::send_offsets_to_transaction`](crate::Producer::send_offsets_to_transaction).
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) without a group;
    /// [`Error::NotInGroup`](crate::Error::NotInGroup) while a subscribed consumer is not a member: without
    /// that, its offsets would not be fenced.
    pub fn group_metadata(&self) -> Result<GroupMetadata> {
        let classic = self.membership.as_ref().map(Membership::metadata);
        if let Some(member) = classic.or_else(|| self.coordinated.as_ref().map(Coordinated::metadata)) {
            if member.generation < 0 {
                let (group, reason) = (member.group.to_string(), ErrorCode::UnknownMemberId);
                return Err(Error::NotInGroup { group, reason });
            }
            return Ok(member);
        }
        let group = self.config.group.as_deref().ok_or(no_group("group_metadata"))?;
        Ok(GroupMetadata::without_membership(group))
    }

    /// The first offset of each partition.
    ///
    /// # Errors
    /// Whatever keeps a leader from answering within the API timeout.
    pub async fn beginning_offsets(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, Offset>> {
        self.offsets(partitions, OffsetSpec::Earliest).await
    }

    /// The end of each partition: the last stable offset under read committed, else the high watermark.
    ///
    /// # Errors
    /// Whatever keeps a leader from answering within the API timeout.
    pub async fn end_offsets(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, Offset>> {
        self.offsets(partitions, OffsetSpec::Latest).await
    }

    /// For each partition the first record whose timestamp (ms since 1970) is at least the one given.
    ///
    /// # Errors
    /// Whatever keeps a leader from answering within the API timeout.
    pub async fn offsets_for_times(
        &self,
        times: &[(TopicPartition, i64)],
    ) -> Result<BTreeMap<TopicPartition, ListedOffset>> {
        let wanted = times.iter().map(|(partition, time)| (partition.clone(), OffsetSpec::Timestamp(*time)));
        list_offsets(&self.cluster, wanted, self.config.isolation).await
    }

    /// Leaves the group (a static member stays in it) and ends. With auto-commit, commits first.
    ///
    /// # Errors
    /// What kept the commit or the leave from succeeding; the consumer has ended in any case.
    pub async fn close(mut self) -> Result<()> {
        let mut committed = Ok(());
        if self.config.auto_commit_interval_ms.is_some() && self.group.is_some() {
            committed = self.commit().await;
        }
        let left = self.unsubscribe().await;
        committed.and(left)
    }

    async fn offsets(
        &self,
        partitions: &[TopicPartition],
        spec: OffsetSpec,
    ) -> Result<BTreeMap<TopicPartition, Offset>> {
        let wanted = partitions.iter().map(|partition| (partition.clone(), spec));
        let listed = list_offsets(&self.cluster, wanted, self.config.isolation).await?;
        Ok(listed.into_iter().filter_map(|(partition, listed)| Some((partition, listed.offset?))).collect())
    }

    fn move_to(
        &mut self,
        operation: &'static str,
        partition: &TopicPartition,
        position: Position,
    ) -> Result<()> {
        self.next_version += 1;
        let misuse = || Error::Misuse { operation, advice: NOT_ASSIGNED };
        let state = self.partitions.get_mut(partition).ok_or_else(misuse)?;
        state.move_to(position, self.next_version);
        Ok(())
    }

    fn set_paused<'a>(&mut self, partitions: impl IntoIterator<Item = &'a TopicPartition>, is_paused: bool) {
        for partition in partitions {
            if let Some(state) = self.partitions.get_mut(partition) {
                state.is_paused = is_paused;
            }
        }
    }

    /// The positions that are known, of those partitions for which `is_wanted`.
    fn positions(
        &self,
        is_wanted: impl Fn(&PartitionState) -> bool,
    ) -> Vec<(TopicPartition, CommittedOffset)> {
        let wanted = self.partitions.iter().filter(|(_, state)| is_wanted(state));
        wanted
            .filter_map(|(partition, state)| {
                let offset = CommittedOffset::new(state.offset()?);
                Some((partition.clone(), CommittedOffset { leader_epoch: state.leader_epoch, ..offset }))
            })
            .collect()
    }

    fn add_partitions(&mut self, partitions: impl IntoIterator<Item = TopicPartition>) {
        for partition in partitions {
            self.next_version += 1;
            let version = self.next_version;
            self.partitions.entry(partition).or_insert_with(|| PartitionState::new(version));
        }
    }

    /// Lets metadata tell of the topics that are read or subscribed to.
    fn hold_topics(&mut self) {
        let mut topics: BTreeSet<ByteString> = self.subscription().into_iter().collect();
        for partition in self.partitions.keys() {
            if !topics.contains(&partition.topic) {
                topics.insert(partition.topic.clone());
            }
        }
        self.wanted.set(topics);
    }
}

fn no_group(operation: &'static str) -> Error {
    Error::Misuse { operation, advice: "set a group in the configuration" }
}

fn check(config: &ConsumerConfig, assignors: &[Arc<dyn Assignor>]) -> Result<()> {
    let wrong = |setting, reason: &str| Err(Error::Config { setting, reason: reason.to_owned() });
    if config.group.as_deref() == Some("") {
        return wrong("group", "it must not be empty");
    }
    if assignors.is_empty() {
        return wrong("assignors", "at least one is needed");
    }
    if config.session_timeout_ms <= 0 || config.heartbeat_interval_ms == 0 {
        return wrong("session_timeout_ms", "it and heartbeat_interval_ms must be above 0");
    }
    if config.remote_assignor.is_some() && config.group_protocol == GroupProtocol::Classic {
        return wrong(
            "remote_assignor",
            "in a classic group the members assign: set group_protocol to consumer",
        );
    }
    if config.auto_commit_interval_ms.is_some() && config.group.is_none() {
        return wrong("auto_commit_interval_ms", "it needs a group");
    }
    Ok(())
}

/// Makes a waiting [`Consumer::poll`] return, or one of a [`ShareConsumer`](crate::ShareConsumer).
#[derive(Clone, Debug)]
pub struct Waker {
    pub(crate) notify: Arc<tokio::sync::Notify>,
}

impl Waker {
    /// Makes the poll that is waiting, or else the next one, return at once.
    pub fn wake(&self) {
        self.notify.notify_one();
    }
}
