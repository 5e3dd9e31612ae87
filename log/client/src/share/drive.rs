//! What a poll, a commit and a close do: they drive requests and the membership until there is something to return.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use thalweg_protocol::TopicPartition;
use tokio::time::{Instant, sleep_until};

use super::ShareConsumer;
use super::acquired::{AcknowledgementOutcome, SharePolled};
use super::fetcher::{self, Arrived};
use super::held::{AcknowledgeType, Held, Said};
use super::parcel::Saying;
use super::session::{Key, SessionNumber};
use crate::config::{AcknowledgementMode, AcquireMode};
use crate::error::{Error, Result};

/// Something that was waited for.
pub(super) enum Event {
    Fetcher(fetcher::Event),
    Refreshed(Result<()>),
}

/// The records of one partition that are before the consumer.
pub(super) struct HeldPartition {
    pub(super) key: Key,
    pub(super) held: Held,
}

impl ShareConsumer {
    pub(super) async fn run(&mut self, deadline: Instant) -> Result<SharePolled> {
        self.begin_poll()?;
        let mut is_first = true;
        loop {
            self.take_events();
            self.drive_membership();
            if let Some(error) = self.errors.pop_front().or_else(|| self.fetcher.errors.pop_front()) {
                return Err(error);
            }
            let now = Instant::now();
            let (has_something, is_late) = (self.has_something_to_tell(), now >= deadline);
            // What nobody waits for is not acquired: it would lie here, and its time run.
            let may_fetch = !has_something && (is_first || !is_late);
            self.send(may_fetch.then(|| self.max_wait(deadline, now)), now);
            self.refresh();
            if has_something || is_late {
                return Ok(self.take_polled());
            }
            is_first = false;
            self.wait(deadline, now).await;
            if std::mem::take(&mut self.is_woken) {
                return Ok(self.take_polled());
            }
        }
    }

    /// Says what is to be said of what the last poll returned.
    fn begin_poll(&mut self) -> Result<()> {
        let misuse = |advice| Err(Error::Misuse { operation: "poll", advice });
        let Some(membership) = &self.membership else { return misuse("call subscribe first") };
        membership.polled();
        match self.config.acknowledgement {
            AcknowledgementMode::Implicit => self.accept_rest(),
            AcknowledgementMode::Explicit if self.held.values().any(|of| of.held.has_open()) => {
                return misuse("acknowledge all records of the last poll first, or renew them");
            }
            AcknowledgementMode::Explicit => {}
        }
        self.post();
        Ok(())
    }

    /// Everything of which nothing was said counts as accepted.
    pub(super) fn accept_rest(&mut self) {
        self.held.values_mut().for_each(|of| of.held.say_rest(AcknowledgeType::Accept));
    }

    /// Hands over what was said to the requests that go next.
    pub(super) fn post(&mut self) {
        let mut sayings: BTreeMap<SessionNumber, BTreeMap<Key, Saying>> = BTreeMap::new();
        for (partition, of) in &mut self.held {
            for (session, ranges) in of.held.take_said() {
                let saying = Saying { partition: partition.clone(), ranges };
                sayings.entry(session).or_default().insert(of.key, saying);
            }
        }
        self.held.retain(|_, of| !of.held.is_empty());
        self.fetcher.post(sayings);
    }

    /// How long a broker may wait for records: no longer than the poll does, or they would come when nobody looks.
    fn max_wait(&self, deadline: Instant, now: Instant) -> Duration {
        let configured = u64::try_from(self.config.fetch_max_wait_ms).unwrap_or_default();
        Duration::from_millis(configured).min(deadline.saturating_duration_since(now))
    }

    fn send(&mut self, max_wait: Option<Duration>, now: Instant) {
        let Some(membership) = &self.membership else { return };
        for event in self.fetcher.send(membership.id(), &self.assigned, max_wait, now) {
            self.push(event);
        }
    }

    fn push(&mut self, event: BoxFuture<'static, fetcher::Event>) {
        self.events.push(Box::pin(async move { Event::Fetcher(event.await) }));
    }

    /// Waits until something happens, or is due.
    async fn wait(&mut self, deadline: Instant, now: Instant) {
        let wake_at = self.fetcher.next_due(now).into_iter().fold(deadline, Instant::min);
        tokio::select! {
            Some(event) = self.events.next(), if !self.events.is_empty() => self.on(event),
            () = self.wake.notified() => self.is_woken = true,
            () = self.news.notified() => {}
            () = sleep_until(wake_at) => {}
        }
    }

    /// Handles what has happened already, without waiting.
    fn take_events(&mut self) {
        while let Some(Some(event)) = self.events.next().now_or_never() {
            self.on(event);
        }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Fetcher(event) => self.fetcher.on(event),
            Event::Refreshed(refreshed) => {
                self.is_refreshing = false;
                if let Err(error) = refreshed {
                    tracing::debug!(%error, "metadata could not be refreshed");
                }
            }
        }
    }

    /// Whether there are records to return, or something has failed that the caller said of others.
    fn has_something_to_tell(&self) -> bool {
        !self.fetcher.arrived.is_empty()
            || self.fetcher.outcomes.iter().any(|outcome| outcome.result.is_err())
    }

    fn drive_membership(&mut self) {
        let Some(membership) = &self.membership else { return };
        let news = membership.take_news();
        self.metrics.losses += news.losses;
        self.errors.extend(news.failure);
        if let Some(assigned) = news.assigned {
            self.metrics.rebalances += 1;
            self.assigned = assigned;
        }
    }

    fn refresh(&mut self) {
        if self.is_refreshing || !(self.fetcher.wants_metadata || self.cluster.is_stale()) {
            return;
        }
        self.is_refreshing = true;
        self.fetcher.wants_metadata = false;
        let refresh = self.cluster.refresh();
        self.events.push(Box::pin(async move { Event::Refreshed(refresh.await.map(|_| ())) }));
    }

    /// What there is to return: all that has come, or what one broker has sent where a number of records is not to be passed.
    fn take_polled(&mut self) -> SharePolled {
        let count = match self.config.acquire_mode {
            AcquireMode::BatchOptimized => self.fetcher.arrived.len(),
            AcquireMode::RecordLimit => 1.min(self.fetcher.arrived.len()),
        };
        let arrived: Vec<Arrived> = self.fetcher.arrived.drain(..count).flatten().collect();
        let mut polled = SharePolled { outcomes: self.take_outcomes(), ..SharePolled::default() };
        for Arrived { key, session, batches, gaps, unread } in arrived {
            let of = self.held.entry(batches.partition.clone());
            let held = &mut of.or_insert_with(|| HeldPartition { key, held: Held::default() }).held;
            for gap in gaps {
                held.note(gap.first, gap.last, session, Said::Gap);
            }
            for unread in unread {
                held.note(unread.first, unread.last, session, Said::Of(AcknowledgeType::Release));
            }
            for range in &batches.ranges {
                held.deliver(range.first, range.last, session);
            }
            if batches.ranges.is_empty() {
                continue;
            }
            self.metrics.bytes += batches.size_in_bytes() as u64;
            self.metrics.records += batches.records_count() as u64;
            self.metrics.redeliveries += batches.redeliveries();
            polled.batches.push(batches);
        }
        polled
    }

    fn take_outcomes(&mut self) -> Vec<AcknowledgementOutcome> {
        let outcomes = std::mem::take(&mut self.fetcher.outcomes);
        for outcome in &outcomes {
            let count: i64 = outcome.offsets.iter().map(|range| range.end().0 - range.start().0 + 1).sum();
            let count = u64::try_from(count).unwrap_or_default();
            match &outcome.result {
                Ok(()) => self.metrics.acknowledged += count,
                Err(_) => self.metrics.acknowledge_failures += count,
            }
        }
        outcomes
    }

    /// Sends what was said and waits until all of it is answered. When the API timeout is over nothing more is sent, and what
    /// is under way waited for.
    pub(super) async fn flush(&mut self) -> BTreeMap<TopicPartition, Result<()>> {
        self.post();
        let limit = Duration::from_millis(self.cluster.config().api_timeout_ms);
        let (deadline, request_timeout) = (Instant::now() + limit, self.cluster.config().request_timeout_ms);
        let last = deadline + Duration::from_millis(request_timeout);
        loop {
            self.take_events();
            let now = Instant::now();
            if now >= deadline {
                let after_ms = limit.as_millis() as u64;
                let late = Error::TimedOut { operation: "acknowledging records", after_ms, last: None };
                self.fetcher.give_up(&late);
            }
            self.send(None, now);
            if !self.fetcher.has_unanswered() || now >= last {
                break;
            }
            self.wait(if now < deadline { deadline } else { last }, now).await;
        }
        let mut results: BTreeMap<TopicPartition, Result<()>> = BTreeMap::new();
        for outcome in self.take_outcomes() {
            let result = results.entry(outcome.partition).or_insert(Ok(()));
            if result.is_ok() {
                *result = outcome.result;
            }
        }
        results
    }

    /// Says the last that is to be said, gives back what is held, and leaves the group.
    pub(super) async fn leave(&mut self) -> Result<()> {
        let Some(membership) = self.membership.take() else { return Ok(()) };
        let id = membership.id().clone();
        self.membership = Some(membership);
        let results = self.flush().await;
        let deadline = Instant::now() + Duration::from_millis(self.cluster.config().api_timeout_ms);
        // What a fetch still brings is given back, too.
        while self.fetcher.is_busy() && Instant::now() < deadline {
            self.wait(deadline, Instant::now()).await;
        }
        for event in self.fetcher.end(&id) {
            self.push(event);
        }
        while self.fetcher.has_unanswered() && Instant::now() < deadline {
            self.wait(deadline, Instant::now()).await;
        }
        self.held.clear();
        self.fetcher.arrived.clear();
        self.assigned = BTreeSet::new();
        self.wanted.set(BTreeSet::new());
        let left = match self.membership.take() {
            Some(membership) => membership.leave().await,
            None => Ok(()),
        };
        let outcomes = self.take_outcomes().into_iter().map(|outcome| outcome.result);
        results.into_values().chain(outcomes).chain([left]).find(Result::is_err).unwrap_or(Ok(()))
    }
}
