//! What a poll does: it drives fetches, searches, metadata and the membership until there is something to
//! return.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::{AbortHandle, Aborted, abortable};
use futures::{FutureExt, StreamExt};
use thalweg_protocol::TopicPartition;
use tokio::task::{self, JoinError};
use tokio::time::{Instant, sleep_until};

use super::Consumer;
use super::assignor::Assignment;
use super::fetched::{Polled, RebalanceEvent};
use super::fetcher::FetchEvent;
use super::heartbeat::Signal;
use super::join::Joined;
use super::membership::Phase;
use super::position::{PartitionState, Position};
use super::search::{Found, Sought, search};
use super::validate::Questioned;
use crate::by_leader::EpochEnd;
use crate::error::{Error, ErrorKind, Result};

/// Something that a poll waited for.
pub(super) enum Event {
    Fetch(FetchEvent),
    Searched(Vec<Sought>, Result<HashMap<TopicPartition, Found>>),
    /// Metadata came, of all topics or only of those that are wanted.
    Refreshed {
        refreshed: Result<()>,
        of_all: bool,
    },
    Validated(Vec<Questioned>, BTreeMap<TopicPartition, Result<EpochEnd>>),
    Joined(Result<Result<Result<Joined>, JoinError>, Aborted>),
    Committed(Result<()>),
}

/// A rebalance that is under way, on a task of its own so that it goes on between polls. It ends when this is dropped.
pub(super) struct JoinTask {
    task: task::AbortHandle,
    event: AbortHandle,
}

impl Drop for JoinTask {
    fn drop(&mut self) {
        self.task.abort();
        self.event.abort();
    }
}

impl Consumer {
    pub(super) async fn run(&mut self, deadline: Instant) -> Result<Polled> {
        self.begin_poll();
        loop {
            self.take_events();
            self.drive_membership();
            let now = Instant::now();
            if let Some(error) = self.errors.pop_front().or_else(|| self.stalled(now)) {
                return Err(error);
            }
            let polled = self.take_polled();
            // What is new begins with the next poll, so that the caller can seek before.
            if polled.events.is_empty() {
                self.search(now);
                self.validate(now);
                self.fetch(now);
                self.refresh();
            }
            if !polled.is_empty() || now >= deadline {
                return Ok(polled);
            }
            let wake_at =
                self.next_hold(now).into_iter().chain(self.next_stall()).fold(deadline, Instant::min);
            tokio::select! {
                Some(event) = self.events.next(), if !self.events.is_empty() => self.on(event),
                () = self.wake.notified() => {
                    if !self.has_signal() {
                        return Ok(Polled::default());
                    }
                }
                () = sleep_until(wake_at) => {}
            }
        }
    }

    /// Ends what lasted until this poll: partitions that were revoked are now gone, and what was returned
    /// before counts as processed.
    fn begin_poll(&mut self) {
        if self.coordinated.is_some() {
            return self.begin_poll_coordinated();
        }
        let Some(membership) = &mut self.membership else { return self.auto_commit() };
        membership.polled();
        // An error may have come before the event that tells of a revocation: then it lasts until the poll after.
        if membership.phase != Phase::Revoking || !self.rebalanced.is_empty() {
            return self.auto_commit();
        }
        let commit = match self.config.auto_commit_interval_ms {
            Some(_) => self.positions(|_| true),
            None => Vec::new(),
        };
        self.partitions.retain(|_, state| !state.is_revoked);
        self.start_joining(commit);
    }

    /// Handles what has happened already, without waiting.
    fn take_events(&mut self) {
        while let Some(Some(event)) = self.events.next().now_or_never() {
            self.on(event);
        }
    }

    fn take_polled(&mut self) -> Polled {
        let events = std::mem::take(&mut self.rebalanced);
        let batches: Vec<_> = self.partitions.values_mut().filter_map(PartitionState::take).collect();
        for event in &events {
            match event {
                RebalanceEvent::Assigned(_) => self.metrics.rebalances += 1,
                RebalanceEvent::Lost(_) => self.metrics.losses += 1,
                RebalanceEvent::Revoked(_) => {}
            }
        }
        for fetched in &batches {
            self.metrics.bytes += fetched.size_in_bytes() as u64;
            self.metrics.records += fetched.records_count() as u64;
        }
        Polled { events, batches }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Fetch(event) => {
                let errors = self.fetcher.on(event, &mut self.partitions);
                self.errors.extend(errors);
            }
            Event::Searched(sought, found) => self.on_searched(sought, found),
            Event::Validated(questioned, ends) => self.on_validated(questioned, ends),
            Event::Refreshed { refreshed, of_all } => {
                self.is_refreshing = false;
                match refreshed {
                    Ok(()) if of_all => self.match_topics(),
                    Ok(()) => {}
                    Err(error) => tracing::debug!(%error, "metadata could not be refreshed"),
                }
            }
            Event::Joined(Err(Aborted)) => {}
            Event::Joined(Ok(Ok(joined))) => self.on_joined(joined),
            Event::Joined(Ok(Err(ended))) => match ended.try_into_panic() {
                // An assignor's.
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => self.on_joined(Err(Error::Closed)),
            },
            Event::Committed(committed) => {
                self.is_committing = false;
                if let Err(error) = committed {
                    tracing::warn!(%error, "an automatic commit failed");
                }
            }
        }
    }

    fn fetch(&mut self, now: Instant) {
        for event in self.fetcher.send(&mut self.partitions, now) {
            self.events.push(Box::pin(async move { Event::Fetch(event.await) }));
        }
    }

    fn search(&mut self, now: Instant) {
        if self.is_searching {
            return;
        }
        let mut sought = Vec::new();
        for (partition, state) in &mut self.partitions {
            if let Some(search) = state.searchable(now) {
                state.is_asked = true;
                sought.push(Sought { partition: partition.clone(), version: state.version, search });
            }
        }
        if sought.is_empty() {
            return;
        }
        self.is_searching = true;
        let (cluster, group) = (Arc::clone(&self.cluster), self.group.clone());
        let (isolation, reset) = (self.config.isolation, self.config.offset_reset);
        self.events.push(Box::pin(async move {
            let (sought, found) = search(cluster, group, isolation, reset, sought).await;
            Event::Searched(sought, found)
        }));
    }

    fn on_searched(&mut self, sought: Vec<Sought>, found: Result<HashMap<TopicPartition, Found>>) {
        self.is_searching = false;
        let (mut found, failure) = match found {
            Ok(found) => (found, None),
            Err(error) => (HashMap::new(), Some(error)),
        };
        for sought in sought {
            let state = self.partitions.get_mut(&sought.partition);
            let Some(state) = state.filter(|state| state.version == sought.version) else { continue };
            state.is_asked = false;
            match found.remove(&sought.partition) {
                Some(Ok((offset, leader_epoch))) => {
                    state.position = Position::At(offset);
                    state.leader_epoch = leader_epoch;
                }
                Some(Err(error)) => {
                    state.position = Position::Halted;
                    self.errors.push_back(error);
                }
                None => {
                    // What fails for one partition may be about another one: all are tried again, but not at
                    // once.
                    let pause = Duration::from_millis(self.cluster.config().retry_backoff_max_ms);
                    state.not_before = Some(Instant::now() + pause);
                }
            }
        }
        self.errors.extend(failure);
    }

    fn refresh(&mut self) {
        let wants_all = self.wants_all_topics();
        if self.is_refreshing || !(self.fetcher.wants_metadata || wants_all || self.cluster.is_stale()) {
            return;
        }
        self.is_refreshing = true;
        self.fetcher.wants_metadata = false;
        if wants_all {
            let cluster = Arc::clone(&self.cluster);
            return self.events.push(Box::pin(async move {
                Event::Refreshed { refreshed: cluster.refresh_all().await.map(|_| ()), of_all: true }
            }));
        }
        let refresh = self.cluster.refresh();
        self.events.push(Box::pin(async move {
            Event::Refreshed { refreshed: refresh.await.map(|_| ()), of_all: false }
        }));
    }

    /// When the next partition is due that waited after a failure as of `now`.
    fn next_hold(&self, now: Instant) -> Option<Instant> {
        let holds = self.partitions.values().filter_map(|state| state.not_before);
        holds.filter(|hold| *hold > now).min()
    }

    /// When the caller is next to be told that a partition cannot be read.
    fn next_stall(&self) -> Option<Instant> {
        let limit = self.stall_limit()?;
        self.partitions.values().filter_map(|state| Some(state.stall.as_ref()?.due(limit))).min()
    }

    /// Why a partition could not be read for so long that the caller is to be told. Once for all partitions.
    fn stalled(&mut self, now: Instant) -> Option<Error> {
        let limit = self.stall_limit()?;
        let stalls = || self.partitions.values().filter_map(|state| state.stall.as_ref());
        let error = stalls().find(|stall| stall.due(limit) <= now)?.error.clone();
        for stall in self.partitions.values_mut().filter_map(|state| state.stall.as_mut()) {
            stall.told = now;
        }
        Some(match error {
            gone @ Error::UnknownTopic { .. } => gone,
            last => Error::TimedOut {
                operation: "reading",
                after_ms: limit.as_millis() as u64,
                last: Some(Arc::new(last)),
            },
        })
    }

    fn stall_limit(&self) -> Option<Duration> {
        self.config.stall_timeout_ms.map(Duration::from_millis)
    }

    pub(super) fn auto_commit(&mut self) {
        let Some(interval) = self.config.auto_commit_interval_ms else { return };
        // One at a time: when the coordinator is slow, the next one commits what is newest by then.
        if self.is_committing || self.committed_at.elapsed() < Duration::from_millis(interval) {
            return;
        }
        self.committed_at = Instant::now();
        self.is_committing = true;
        let positions = self.positions(|_| true);
        let commit = self.commit_offsets_later(&positions);
        self.events.push(Box::pin(async move { Event::Committed(commit.await) }));
    }

    fn has_signal(&self) -> bool {
        self.membership.as_ref().is_some_and(super::membership::Membership::has_signal)
            || self.coordinated.as_ref().is_some_and(super::coordinated::Coordinated::has_signal)
    }

    /// Reacts to the heartbeats and to topics that have changed; joins if the member is outside.
    fn drive_membership(&mut self) {
        if self.coordinated.is_some() {
            return self.drive_coordinated();
        }
        let Some(membership) = &mut self.membership else { return };
        match (membership.take_signal(), membership.phase) {
            (Some(Signal::Fenced), _) => {
                membership.fenced();
                self.join = None;
                let group = self.config.group.clone().unwrap_or_default();
                let instance_id = self.config.group_instance_id.clone().unwrap_or_default();
                self.lose();
                self.errors.push_back(Error::MemberFenced { group, instance_id });
                return;
            }
            (Some(Signal::Lost), Phase::Stable | Phase::Revoking) => {
                membership.lost();
                self.lose();
            }
            (Some(Signal::Rejoin), Phase::Stable) => self.start_rebalance(),
            (None, Phase::Stable) if membership.have_topics_changed() => self.start_rebalance(),
            _ => {}
        }
        let has_topics = self.pattern.as_ref().is_none_or(|(_, matched)| matched.is_some());
        let is_outside = self.membership.as_ref().is_some_and(|member| member.phase == Phase::Outside);
        if is_outside && has_topics {
            self.start_joining(Vec::new());
        }
    }

    /// The partitions are other members' already.
    pub(super) fn lose(&mut self) {
        let lost: Vec<TopicPartition> = std::mem::take(&mut self.partitions).into_keys().collect();
        if !lost.is_empty() {
            self.rebalanced.push(RebalanceEvent::Lost(lost));
        }
    }

    /// The group rebalances: an eager member gives everything up first, until the next poll.
    pub(super) fn start_rebalance(&mut self) {
        let Some(membership) = &mut self.membership else { return };
        if membership.is_cooperative() || self.partitions.is_empty() {
            return self.start_joining(Vec::new());
        }
        membership.phase = Phase::Revoking;
        self.partitions.values_mut().for_each(|state| state.is_revoked = true);
        self.rebalanced.push(RebalanceEvent::Revoked(self.partitions.keys().cloned().collect()));
    }

    fn start_joining(&mut self, commit: Vec<(TopicPartition, super::CommittedOffset)>) {
        let owned = self.partitions.keys().cloned().collect();
        let commit = (!commit.is_empty()).then(|| self.commit_offsets_later(&commit).boxed());
        let Some(membership) = &mut self.membership else { return };
        let joining = task::spawn(membership.joining(owned).run(commit));
        let task = joining.abort_handle();
        let (joined, event) = abortable(joining);
        self.join = Some(JoinTask { task, event });
        self.events.push(Box::pin(async move { Event::Joined(joined.await) }));
    }

    fn on_joined(&mut self, joined: Result<Joined>) {
        self.join = None;
        let Some(membership) = &mut self.membership else { return };
        match joined {
            Ok(Joined::Assigned { assignment, assignor, counts }) => {
                self.on_assigned(assignment, assignor, counts)
            }
            Ok(Joined::Lost) => {
                membership.lost();
                self.lose();
            }
            Err(error) => {
                match error.kind() {
                    ErrorKind::Fenced => {
                        membership.fenced();
                        self.lose();
                    }
                    _ => membership.phase = Phase::Outside,
                }
                self.errors.push_back(error);
            }
        }
    }

    fn on_assigned(
        &mut self,
        assignment: Assignment,
        assignor: usize,
        counts: Option<BTreeMap<ByteString, i32>>,
    ) {
        let Some(membership) = &mut self.membership else { return };
        let assignor = membership.joined(assignor, counts);
        assignor.on_assignment(&assignment, membership.metadata().generation);
        let assigned: BTreeSet<TopicPartition> = assignment.partitions.into_iter().collect();
        let mut revoked = Vec::new();
        for (partition, state) in &mut self.partitions {
            if !assigned.contains(partition) {
                state.is_revoked = true;
                revoked.push(partition.clone());
            }
        }
        if !revoked.is_empty() {
            // They go to others in the next rebalance, which this member must ask for (KIP-429).
            membership.phase = Phase::Revoking;
            self.rebalanced.push(RebalanceEvent::Revoked(revoked));
        }
        let added: Vec<TopicPartition> =
            assigned.into_iter().filter(|partition| !self.partitions.contains_key(partition)).collect();
        self.add_partitions(added.iter().cloned());
        self.hold_topics();
        self.rebalanced.push(RebalanceEvent::Assigned(added));
    }
}
