//! The cluster as a client sees it: its metadata, kept fresh, and calls that are retried.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytestring::ByteString;
use fastrand::Rng;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::{Mutex, RwLock};
use thalweg_protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{Connect, ErrorCode, LeaderEpoch, NodeId, TopicPartition};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::config::ClientConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{BrokerAddress, Metadata};
use crate::node::Node;
use crate::pool::Pool;
use crate::tcp::TcpConnector;

/// With so many attempts in vain to find the cluster, it is told.
const ATTEMPTS_IN_SILENCE: u64 = 3;

type Refresh = Shared<BoxFuture<'static, Result<Arc<Metadata>>>>;

/// What all producers, consumers and admins of a client share.
pub(crate) struct Cluster {
    config: ClientConfig,
    connector: Arc<dyn Connect>,
    bootstrap: Vec<BrokerAddress>,
    /// For metadata, admin calls and coordinators' addresses.
    pool: Arc<Pool>,
    /// Guards the current metadata, which is replaced as a whole.
    metadata: RwLock<Known>,
    /// Guards which refresh is under way, and the topics that one asks for.
    refresh: Mutex<Refreshing>,
    /// Counts the changes of the metadata.
    version: AtomicU64,
    rng: Mutex<Rng>,
}

struct Known {
    metadata: Arc<Metadata>,
    as_of: Instant,
}

struct Refreshing {
    /// What refreshes ask for, and how many hold on to each; with none, it has been looked up.
    wanted: BTreeMap<ByteString, usize>,
    running: Option<(AbortHandle, Refresh)>,
    /// After a failure the next one waits.
    not_before: Instant,
    backoff: Backoff,
}

/// Topics that every refresh asks for as long as this lives.
pub(crate) struct Wanted {
    cluster: Arc<Cluster>,
    topics: BTreeSet<ByteString>,
}

impl Wanted {
    pub(crate) fn new(cluster: &Arc<Cluster>) -> Self {
        Self { cluster: Arc::clone(cluster), topics: BTreeSet::new() }
    }

    pub(crate) fn add(&mut self, topic: &ByteString) {
        if self.topics.insert(topic.clone()) {
            self.cluster.hold(topic);
        }
    }

    /// Holds on to these topics and no others.
    pub(crate) fn set(&mut self, topics: BTreeSet<ByteString>) {
        topics.difference(&self.topics).for_each(|topic| self.cluster.hold(topic));
        self.topics.difference(&topics).for_each(|topic| self.cluster.release(topic));
        self.topics = topics;
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.set(BTreeSet::new());
    }
}

impl Cluster {
    pub(crate) async fn connect(config: ClientConfig) -> Result<Arc<Self>> {
        let bootstrap = bootstrap_brokers(&config)?;
        let mut rng = config.seed.map_or_else(Rng::new, Rng::with_seed);
        let connector = config.connector.clone().unwrap_or_else(|| {
            let limit = Duration::from_millis(config.connect_timeout_ms);
            Arc::new(TcpConnector::new(&config.client_id, limit))
        });
        let backoff = Backoff::new(config.retry_backoff_ms, config.retry_backoff_max_ms, rng.fork());
        let cluster = Arc::new(Self {
            pool: Arc::new(new_pool(&config, &connector, rng.clone())),
            connector,
            bootstrap,
            metadata: RwLock::new(Known { metadata: Arc::default(), as_of: Instant::now() }),
            refresh: Mutex::new(Refreshing {
                wanted: BTreeMap::new(),
                running: None,
                not_before: Instant::now(),
                backoff,
            }),
            version: AtomicU64::new(0),
            rng: Mutex::new(rng),
            config,
        });
        let mut retry = cluster.retry("connecting to the cluster");
        let mut attempts = 0_u64;
        loop {
            match cluster.refresh().await {
                Ok(_) => return Ok(cluster),
                Err(error) => {
                    attempts += 1;
                    // Whoever waits should know for what; the first attempt may come while the broker starts.
                    if attempts == ATTEMPTS_IN_SILENCE {
                        let trying_for_ms = cluster.config.api_timeout_ms;
                        tracing::warn!(%error, trying_for_ms, "no broker answers yet");
                    }
                    retry.pause(error).await?;
                }
            }
        }
    }

    /// The connections for short calls.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(crate) fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// A pool of connections that share a line with nobody else's requests.
    pub(crate) fn new_pool(&self) -> Pool {
        new_pool(&self.config, &self.connector, self.rng.lock().fork())
    }

    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.config.retry_backoff_ms, self.config.retry_backoff_max_ms, self.rng.lock().fork())
    }

    pub(crate) fn random(&self, below: usize) -> usize {
        self.rng.lock().usize(..below.max(1))
    }

    /// Retries for a call that has the API timeout.
    pub(crate) fn retry(&self, operation: &'static str) -> Retry {
        self.retry_within(operation, Duration::from_millis(self.config.api_timeout_ms))
    }

    pub(crate) fn retry_within(&self, operation: &'static str, limit: Duration) -> Retry {
        Retry { operation, limit, deadline: Instant::now() + limit, backoff: self.backoff() }
    }

    pub(crate) fn metadata(&self) -> Arc<Metadata> {
        Arc::clone(&self.metadata.read().metadata)
    }

    /// Whether the metadata is older than it may be.
    pub(crate) fn is_stale(&self) -> bool {
        self.metadata.read().as_of.elapsed() > Duration::from_millis(self.config.metadata_max_age_ms)
    }

    /// Changes whenever the metadata may have.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Names topics that every refresh from now on asks for, until one of them is forgotten.
    pub(crate) fn want<'a>(&self, topics: impl IntoIterator<Item = &'a ByteString>) {
        let mut refresh = self.refresh.lock();
        for topic in topics {
            refresh.want(topic);
        }
    }

    fn hold(&self, topic: &ByteString) {
        *self.refresh.lock().want(topic) += 1;
    }

    fn release(&self, topic: &ByteString) {
        let mut refresh = self.refresh.lock();
        let Some(holders) = refresh.wanted.get_mut(topic) else { return };
        *holders = holders.saturating_sub(1);
        if *holders == 0 {
            refresh.wanted.remove(topic);
        }
    }

    fn is_wanted(&self, topic: &ByteString) -> bool {
        self.refresh.lock().wanted.contains_key(topic)
    }

    /// Refreshes no longer ask for this topic, unless somebody holds on to it.
    pub(crate) fn forget(&self, topic: &ByteString) {
        let mut refresh = self.refresh.lock();
        if refresh.wanted.get(topic) == Some(&0) {
            refresh.wanted.remove(topic);
        }
    }

    /// Asks for the metadata of the wanted topics; those who ask at the same time share one request.
    ///
    /// It goes on by itself, or an answer from before nobody cared would be taken for a new one later.
    pub(crate) fn refresh(self: &Arc<Self>) -> Refresh {
        let mut refresh = self.refresh.lock();
        if let Some((task, running)) = &refresh.running
            && !task.is_finished()
        {
            return running.clone();
        }
        let cluster = Arc::clone(self);
        let topics: Vec<ByteString> = refresh.wanted.keys().cloned().collect();
        let not_before = refresh.not_before;
        let asking = tokio::spawn(async move {
            sleep_until(not_before).await;
            let answer = cluster.ask_for(Some(topics)).await;
            cluster.refresh.lock().note(answer.is_ok());
            answer
        });
        let task = asking.abort_handle();
        let running = async move { asking.await.unwrap_or(Err(Error::Closed)) }.boxed().shared();
        refresh.running = Some((task, running.clone()));
        running
    }

    /// Asks for the metadata of all topics there are.
    pub(crate) async fn refresh_all(self: &Arc<Self>) -> Result<Arc<Metadata>> {
        let mut retry = self.retry("asking for metadata");
        loop {
            match self.ask_for(None).await {
                Ok(metadata) => return Ok(metadata),
                Err(error) if error.kind() == ErrorKind::Retry => retry.pause(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn ask_for(&self, topics: Option<Vec<ByteString>>) -> Result<Arc<Metadata>> {
        let all = topics.is_none();
        let topics = topics.map(|names| {
            let named = |name| MetadataRequestTopic { name: Some(name), ..MetadataRequestTopic::default() };
            names.into_iter().map(named).collect()
        });
        let request =
            MetadataRequest { topics, allow_auto_topic_creation: false, ..MetadataRequest::default() };
        let asked = Instant::now();
        let response = self.call_once(request).await?;
        let code = ErrorCode::from(response.error_code);
        if !code.is_none() {
            let subject = "the cluster".to_owned();
            return Err(Error::Broker { api: ApiKey::Metadata, code, subject, message: None });
        }
        Ok(self.learn(response, all, asked))
    }

    fn learn(&self, response: MetadataResponse, all: bool, as_of: Instant) -> Arc<Metadata> {
        let mut known = self.metadata.write();
        known.metadata = Arc::new(known.metadata.with(response, all));
        known.as_of = as_of;
        self.version.fetch_add(1, Ordering::Release);
        Arc::clone(&known.metadata)
    }

    /// Takes over a new leader that a refusal told (KIP-951).
    pub(crate) fn learn_leader(
        &self,
        partition: &TopicPartition,
        leader: NodeId,
        epoch: LeaderEpoch,
        address: Option<BrokerAddress>,
    ) -> bool {
        let mut known = self.metadata.write();
        match known.metadata.with_leader(partition, leader, epoch, address) {
            Some(next) => known.metadata = Arc::new(next),
            None => return false,
        }
        true
    }

    /// Waits until the topic is known.
    pub(crate) async fn topic_known(self: &Arc<Self>, topic: &ByteString) -> Result<Arc<Metadata>> {
        let known = self.metadata();
        // What nobody wants any more may be of long ago.
        if known.topic(topic).is_some() && !self.is_stale() && self.is_wanted(topic) {
            return Ok(known);
        }
        self.look_up(topic).await
    }

    /// Asks about the topic; one that stays unknown for a moment does not exist.
    pub(crate) async fn look_up(self: &Arc<Self>, topic: &ByteString) -> Result<Arc<Metadata>> {
        let unknown_until = Instant::now() + Duration::from_millis(self.config.unknown_topic_wait_ms);
        let mut retry = self.retry("asking for metadata");
        loop {
            self.want([topic]);
            let error = match self.refresh().await {
                Ok(metadata) if metadata.topic(topic).is_some() => return Ok(metadata),
                Ok(_) => Error::UnknownTopic { topic: topic.clone() },
                Err(error) if error.kind() == ErrorKind::Retry => error,
                Err(error) => return Err(error),
            };
            if matches!(error, Error::UnknownTopic { .. }) && Instant::now() >= unknown_until {
                self.forget(topic);
                return Err(error);
            }
            retry.pause(error).await?;
        }
    }

    pub(crate) async fn partition_count(self: &Arc<Self>, topic: &ByteString) -> Result<i32> {
        let metadata = self.topic_known(topic).await?;
        let found = metadata.topic(topic).ok_or_else(|| Error::UnknownTopic { topic: topic.clone() })?;
        Ok(found.partitions.len() as i32)
    }

    /// The connection to a node of the cluster that is used for short calls.
    pub(crate) async fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        let metadata = self.metadata();
        let subject = format!("broker {id}");
        let unknown = || Error::Broker {
            api: ApiKey::Metadata,
            code: ErrorCode::BrokerNotAvailable,
            subject,
            message: None,
        };
        self.pool.node(metadata.broker(id).ok_or_else(unknown)?).await
    }

    /// The same for a node that may have joined the cluster just now.
    pub(crate) async fn find_node(self: &Arc<Self>, id: NodeId) -> Result<Arc<Node>> {
        if self.metadata().broker(id).is_none() {
            self.refresh().await?;
        }
        self.node(id).await
    }

    /// The connection to the controller, or to the broker that stands for it; to any broker while none is known.
    pub(crate) async fn controller(&self) -> Result<Arc<Node>> {
        let metadata = self.metadata();
        match metadata.controller.and_then(|id| metadata.broker(id)) {
            Some(broker) => self.pool.node(broker).await,
            None => self.any_node().await,
        }
    }

    /// Any broker that can be reached: one that is connected, else one that is known, else a bootstrap
    /// broker.
    pub(crate) async fn any_node(&self) -> Result<Arc<Node>> {
        let metadata = self.metadata();
        let mut known = metadata.brokers();
        self.rng.lock().shuffle(&mut known);
        if let Some(node) = known.iter().find_map(|broker| self.pool.open_node(broker)) {
            return Ok(node);
        }
        let mut last = None;
        for broker in known.into_iter().chain(&self.bootstrap) {
            match self.pool.node(broker).await {
                Ok(node) => return Ok(node),
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("there is at least one bootstrap broker"))
    }

    async fn call_once<A: Api>(&self, request: A) -> Result<A::Response> {
        self.any_node().await?.call(request).await
    }
}

impl Refreshing {
    /// How many hold on to the topic.
    fn want(&mut self, topic: &ByteString) -> &mut usize {
        if !self.wanted.contains_key(topic) {
            // What is under way does not ask for it.
            self.running = None;
        }
        self.wanted.entry(topic.clone()).or_default()
    }

    fn note(&mut self, succeeded: bool) {
        match succeeded {
            true => self.backoff.reset(),
            false => self.not_before = Instant::now() + self.backoff.next(),
        }
    }
}

fn new_pool(config: &ClientConfig, connector: &Arc<dyn Connect>, rng: Rng) -> Pool {
    let backoff = Backoff::new(config.retry_backoff_ms, config.retry_backoff_max_ms, rng);
    Pool::new(Arc::clone(connector), Duration::from_millis(config.request_timeout_ms), backoff)
}

/// The bootstrap brokers, under ids that no real broker has.
fn bootstrap_brokers(config: &ClientConfig) -> Result<Vec<BrokerAddress>> {
    let bad = |reason: String| Error::Config { setting: "bootstrap", reason };
    if config.bootstrap.is_empty() {
        return Err(bad("at least one host:port is needed".to_owned()));
    }
    let parse = |(at, text): (usize, &String)| {
        let (host, port) = text.rsplit_once(':').ok_or_else(|| bad(format!("{text:?} is not host:port")))?;
        let port = port.parse().map_err(|_| bad(format!("{port:?} in {text:?} is not a port")))?;
        let host = ByteString::from(host.trim_start_matches('[').trim_end_matches(']'));
        Ok(BrokerAddress { id: NodeId(-2 - at as i32), host, port, rack: None })
    };
    config.bootstrap.iter().enumerate().map(parse).collect()
}

/// The pauses and the end of a call that is tried again.
pub(crate) struct Retry {
    operation: &'static str,
    limit: Duration,
    deadline: Instant,
    backoff: Backoff,
}

impl Retry {
    /// Waits before the next attempt, or says that there is no time for one.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        match self.wait().await {
            true => Ok(()),
            false => Err(self.timed_out(error)),
        }
    }

    /// Waits before the next attempt; whether there is time for one.
    pub(crate) async fn wait(&mut self) -> bool {
        let pause = self.backoff.next();
        if Instant::now() + pause > self.deadline {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    /// What is said when there is no time for another attempt.
    pub(crate) fn timed_out(&self, last: Error) -> Error {
        let after_ms = self.limit.as_millis() as u64;
        Error::TimedOut { operation: self.operation, after_ms, last: Some(Arc::new(last)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bootstrap_addresses_are_read() {
        let config = ClientConfig::with_bootstrap("a:1, [::1]:9092");
        let brokers = bootstrap_brokers(&config).expect("both are addresses");
        let shown: Vec<String> = brokers.iter().map(BrokerAddress::host_port).collect();
        assert_eq!(shown, ["a:1", "::1:9092"]);
        for wrong in ["", "a", "a:b", "a:99999"] {
            assert!(bootstrap_brokers(&ClientConfig::with_bootstrap(wrong)).is_err(), "{wrong}");
        }
    }
}
