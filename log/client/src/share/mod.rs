//! Queues: records of a topic go to one of many consumers each, who say what became of them (KIP-932).
//!
//! `drive` is what a poll does. `membership` is in the group and learns which partitions to fetch from; `fetcher` has a `link`
//! to each broker: a `session`, one request at a time, and the `parcel`s of what is still to be said. `read` finds out which of
//! what was acquired has a record, and `held` keeps what is said of it until a request carries it.

mod acquired;
mod drive;
mod fetcher;
mod held;
mod link;
mod membership;
mod metrics;
mod parcel;
mod read;
mod session;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::{Offset, TopicPartition};
use tokio::sync::Notify;
use tokio::time::Instant;

use self::drive::{Event, HeldPartition};
use self::fetcher::ShareFetcher;
use self::membership::Membership;
use self::session::Key;
use crate::cluster::{Cluster, Wanted};
use crate::config::{AcknowledgementMode, ShareConsumerConfig};
use crate::consumer::Waker;
use crate::error::{Error, Result};

pub use acquired::{
    AcknowledgementOutcome, AcquiredBatches, AcquiredRange, AcquiredRecord, AcquiredRecords, SharePolled,
};
pub use held::AcknowledgeType;
pub use metrics::ShareConsumerMetrics;

/// The first version of ShareAcknowledge that renews locks.
const RENEWALS: i16 = 2;

/// Takes part in a share group (KIP-932): its members share the records of their topics one by one, beyond the number of
/// partitions, as workers share a queue.
///
/// A record that `poll` returns is this consumer's for [`lock_timeout`](Self::lock_timeout). Within that time the consumer says
/// what became of it: accepted, released, rejected or renewed ([`AcknowledgeType`]). What nothing is said of in time, or what
/// the consumer has when it closes, dies or loses its connection, is delivered again, up to the group's
/// `share.delivery.count.limit`, five times by default; order is not kept. Records are processed at least once.
///
/// In [`AcknowledgementMode::Implicit`](crate::AcknowledgementMode), the default, a `poll` or `commit` accepts everything of
/// the last `poll` of which nothing else was said; [`close`](Self::close) does not. In
/// [`Explicit`](crate::AcknowledgementMode) something has to be said of each record before the next `poll`.
///
/// It belongs to one thread or task. Nothing is acquired ahead of need, for a record's time runs from the moment it is: fetches
/// are sent by `poll`, and what is said travels with them. A background task sends the group's heartbeats.
///
/// ```no_run
/// # use std::time::Duration;
/// # use thalweg_client::{AcknowledgeType, Client, ClientConfig, Error, ShareConsumerConfig};
/// # async fn example(client: Client) -> Result<(), Error> {
/// let config = ShareConsumerConfig::group("workers").explicit();
/// let mut consumer = client.share_consumer(config)?;
/// consumer.subscribe(["jobs"])?;
/// loop {
///     for batches in consumer.poll(Duration::from_secs(1)).await?.batches {
///         let partition = batches.partition.clone();
///         for record in batches.into_records() {
///             let record = record?;
///             let what = match record.record.value {
///                 Some(_) => AcknowledgeType::Accept,
///                 None => AcknowledgeType::Reject,
///             };
///             consumer.acknowledge(&partition, record.record.offset, what)?;
///         }
///     }
/// }
/// # }
/// ```
pub struct ShareConsumer {
    cluster: Arc<Cluster>,
    /// The topics that metadata is to tell of.
    wanted: Wanted,
    config: ShareConsumerConfig,
    membership: Option<Membership>,
    /// The partitions to fetch from.
    assigned: BTreeSet<Key>,
    held: BTreeMap<TopicPartition, HeldPartition>,
    fetcher: ShareFetcher,
    /// What is under way; it goes on only while a call is waited for, but answers arrive in between.
    events: FuturesUnordered<BoxFuture<'static, Event>>,
    /// What the next poll must say.
    errors: VecDeque<Error>,
    is_refreshing: bool,
    is_woken: bool,
    metrics: ShareConsumerMetrics,
    /// Rung by the caller, and by the heartbeats.
    wake: Arc<Notify>,
    news: Arc<Notify>,
}

impl ShareConsumer {
    pub(crate) fn new(cluster: Arc<Cluster>, config: ShareConsumerConfig) -> Result<Self> {
        check(&config)?;
        Ok(Self {
            wanted: Wanted::new(&cluster),
            fetcher: ShareFetcher::new(Arc::clone(&cluster), config.clone()),
            cluster,
            config,
            membership: None,
            assigned: BTreeSet::new(),
            held: BTreeMap::new(),
            events: FuturesUnordered::new(),
            errors: VecDeque::new(),
            is_refreshing: false,
            is_woken: false,
            metrics: ShareConsumerMetrics::default(),
            wake: Arc::new(Notify::new()),
            news: Arc::new(Notify::new()),
        })
    }

    /// Shares the records of these topics with the other members of the group, in the place of those before. Where a group
    /// begins to read a partition says its config `share.auto.offset.reset`: at the end by default, so that only what is
    /// written after the first member has come is delivered.
    ///
    /// Where the coordinator will not have the member (a group of another kind has the name, a broker without share groups),
    /// `poll` says so once: unsubscribe, and subscribe otherwise.
    ///
    /// # Errors
    /// [`Error::Misuse`] without a topic.
    pub fn subscribe<T: Into<ByteString>>(&mut self, topics: impl IntoIterator<Item = T>) -> Result<()> {
        let topics: BTreeSet<ByteString> = topics.into_iter().map(Into::into).collect();
        if topics.is_empty() {
            return Err(Error::Misuse {
                operation: "subscribe",
                advice: "name a topic, or call unsubscribe",
            });
        }
        self.wanted.set(topics.clone());
        self.fetcher.wants_metadata = true;
        match &self.membership {
            Some(membership) => membership.subscribe(topics),
            None => {
                let news = Arc::clone(&self.news);
                self.membership = Some(Membership::new(&self.cluster, &self.config, topics, news));
            }
        }
        Ok(())
    }

    /// The topics that are subscribed to.
    pub fn subscription(&self) -> Vec<ByteString> {
        self.membership.iter().flat_map(Membership::topics).collect()
    }

    /// The partitions that the group has this member fetch from at present, as of the last `poll`. Others may fetch from them, too.
    pub fn assignment(&self) -> Vec<TopicPartition> {
        let metadata = self.cluster.metadata();
        let named = self.assigned.iter().filter_map(|(id, partition)| {
            Some(TopicPartition::new(metadata.name_of(*id)?.clone(), *partition))
        });
        named.collect()
    }

    /// Tells the brokers what was said, and returns what has been acquired, waiting at most `timeout` for something. An empty answer
    /// means that nothing came, or that a [`Waker`] woke it.
    ///
    /// Cancelling the future loses nothing.
    ///
    /// # Errors
    /// By kind: `GiveUp` for what the caller must change: [`Error::Misuse`] without a subscription, or in explicit mode while
    /// nothing was said of some record; [`Error::UnreadableRecords`] for a damaged batch, whose records have been
    /// released; refusals of the coordinator or of a broker that do not pass. What passes is tried again. What was acquired
    /// meanwhile comes with the next call.
    pub async fn poll(&mut self, timeout: Duration) -> Result<SharePolled> {
        self.run(Instant::now() + timeout).await
    }

    /// Says what became of one record. It counts once a `poll`, `commit` or `close` has told the broker; until then it can be said
    /// otherwise.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a record that no poll has returned, or of which the broker was told;
    /// [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion) for a renewal that the broker does not know.
    pub fn acknowledge(
        &mut self,
        partition: &TopicPartition,
        offset: Offset,
        what: AcknowledgeType,
    ) -> Result<()> {
        self.acknowledge_range(partition, offset..=offset, what)
    }

    /// Says what became of all records within a range of offsets that are this consumer's, such as those of a whole batch.
    ///
    /// # Errors
    /// Those of [`acknowledge`](Self::acknowledge), where there is no such record.
    pub fn acknowledge_range(
        &mut self,
        partition: &TopicPartition,
        offsets: RangeInclusive<Offset>,
        what: AcknowledgeType,
    ) -> Result<()> {
        if what == AcknowledgeType::Renew {
            self.fetcher.check_version(ApiKey::ShareAcknowledge, RENEWALS)?;
        }
        let held = self.held.get_mut(partition);
        match held.is_some_and(|of| of.held.say(*offsets.start(), *offsets.end(), what)) {
            true => Ok(()),
            false => {
                let advice = "the record is not before this consumer: it was never, or has been acknowledged";
                Err(Error::Misuse { operation: "acknowledge", advice })
            }
        }
    }

    /// Tells the brokers what was said, and waits until they have written it down. In implicit mode that accepts everything of
    /// the last `poll` of which nothing else was said.
    ///
    /// Returns how it went in each partition of which something was said since the last `poll` or `commit`: where
    /// several things happened, the first failure. [`Error::NotAcknowledged`] (of the kind `Rejoin`) if the records were this
    /// consumer's no more, [`Error::AcknowledgementUnknown`] (`Ambiguous`) if an answer is missing. Either way the records
    /// come again, to this consumer or another, as far as what was said of them does not count.
    #[must_use = "what was said may not count"]
    pub async fn commit(&mut self) -> BTreeMap<TopicPartition, Result<()>> {
        if self.config.acknowledgement == AcknowledgementMode::Implicit {
            self.accept_rest();
        }
        self.flush().await
    }

    /// How long records stay with a consumer before they are delivered again, as brokers have told last: the group's
    /// `share.record.lock.duration.ms`. `None` before the first answer.
    pub fn lock_timeout(&self) -> Option<Duration> {
        self.fetcher.lock_timeout
    }

    /// What makes a `poll` that waits return at once, from any thread.
    pub fn waker(&self) -> Waker {
        Waker { notify: Arc::clone(&self.wake) }
    }

    /// What this consumer has done so far.
    pub fn metrics(&self) -> ShareConsumerMetrics {
        let (fetches, fetch_failures, sessions) = self.fetcher.counts();
        ShareConsumerMetrics { fetches, fetch_failures, sessions, ..self.metrics }
    }

    /// Tells the brokers what was said, gives everything else back, and leaves the group.
    ///
    /// # Errors
    /// The first thing said that does not count, or what kept the member from leaving; it is out of the group by the session
    /// timeout in any case.
    pub async fn unsubscribe(&mut self) -> Result<()> {
        self.leave().await
    }

    /// Tells the brokers what was said, gives everything else back, leaves the group and ends. What nothing was said of
    /// is released, in implicit mode, too: call [`commit`](Self::commit) before, if it was processed. Whether a
    /// delivery counts that ended so is the broker's to say: Apache Kafka 4.4 counts it, Thalweg does not.
    ///
    /// Dropping a consumer without closing it gives back what it has as its connections end, and leaves its group to notice by
    /// the session timeout.
    ///
    /// # Errors
    /// Those of [`unsubscribe`](Self::unsubscribe); the consumer has ended in any case.
    pub async fn close(mut self) -> Result<()> {
        self.leave().await
    }
}

fn check(config: &ShareConsumerConfig) -> Result<()> {
    let wrong = |setting, reason: &str| Err(Error::Config { setting, reason: reason.to_owned() });
    if config.group.trim().is_empty() {
        return wrong("group", "a share consumer needs one");
    }
    if config.max_poll_records <= 0 {
        return wrong("max_poll_records", "it must be above 0");
    }
    if config.fetch_max_wait_ms < 0 || config.fetch_max_bytes <= 0 {
        return wrong("fetch_max_wait_ms", "it must not be below 0, and fetch_max_bytes above it");
    }
    Ok(())
}
