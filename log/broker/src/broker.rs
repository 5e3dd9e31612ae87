//! A running broker: opens its parts in order, and closes them in the opposite one.

use std::cmp::Reverse;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_controller::{
    ClusterState, Controller, Disk, LocalConfig, LocalDriver, OsDisk, RegisterNode, Subscription,
};
use thalweg_protocol::{NodeId, TopicPartition, Uuid};
use thalweg_storage::{
    Cleaner, CleanerConfig, DataDirectory, DiskFilesystem, Environment, Identity, LogConfig, LogManager,
    ManagerConfig, SystemClock,
};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

use crate::config::BrokerConfig;
use crate::coordinator::{self, Clocks};
use crate::core::{Alive, Core, propose};
use crate::descriptors;
use crate::disk_threads::DiskThreads;
use crate::embedded::InProcess;
use crate::error::Error;
use crate::fetch_session::{FetchSessions, SessionLimits};
use crate::group::GroupCoordinator;
use crate::metrics::{self, Metrics};
use crate::partitions::Partitions;
use crate::quota::ClientQuotas;
use crate::server::{self, AllowAll, Gate, MemoryBudget, listener};
use crate::topic_config::{TopicDefaults, log_config};
use crate::topics;
use crate::transaction::TransactionCoordinator;

/// The directory of the metadata log within the data directory.
const METADATA: &str = "metadata";

/// The id of a node whose directory is new and that is given none.
const FIRST_NODE: NodeId = NodeId(1);

/// How often the directories of deleted logs are looked at. On a full disk others wait for their space.
const REMOVE_DELETED: Duration = Duration::from_secs(1);

/// How often partitions that could not be opened are tried again.
const RETRY: Duration = Duration::from_secs(5);

/// How many DeleteRecords are carried out at a time: each syncs, and more would only wait for each other.
const DELETIONS_AT_ONCE: usize = 2;

/// The host that an embedded broker registers with. Nobody connects to it: in-process connections ignore
/// host and port.
const NO_HOST: &str = "localhost";

/// A running broker. Dropping it ends it as a crash would; [`Broker::shutdown`] ends it in order.
pub struct Broker {
    core: Arc<Core>,
    connect: InProcess,
    addresses: Vec<SocketAddr>,
    metrics_address: Option<SocketAddr>,
    advertised: (String, u16),
    stop: watch::Sender<bool>,
    /// Resolves once nothing that holds the core runs any more.
    all_gone: mpsc::Receiver<Alive>,
    _subscription: Subscription,
}

impl Broker {
    /// Starts a broker and returns once it serves.
    ///
    /// # Errors
    /// When an address cannot be bound, or the data directory is held by another process, foreign, newer or
    /// damaged. Damage to a single partition's log only takes that partition offline.
    pub async fn start(config: BrokerConfig) -> Result<Self, Error> {
        Self::start_with_gate(config, Arc::new(AllowAll)).await
    }

    /// Starts a broker that serves no sockets, with its data in `dir`: for programs that bring their own broker.
    ///
    /// # Errors
    /// As for [`Broker::start`].
    pub async fn embedded(dir: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::start(BrokerConfig { data_dir: dir.into(), ..BrokerConfig::default() }).await
    }

    /// As [`Broker::start`], with `gate` deciding which requests may pass.
    ///
    /// # Errors
    /// As for [`Broker::start`].
    pub async fn start_with_gate(config: BrokerConfig, gate: Arc<dyn Gate>) -> Result<Self, Error> {
        Self::open(config, gate, None).await
    }

    /// As [`Broker::start_with_gate`], with the cluster's metadata where `controller` keeps it, and none in the data directory.
    /// The controller is closed when the broker shuts down.
    ///
    /// # Errors
    /// As for [`Broker::start`]; when the directory belongs to another cluster; when the controller does not take the node in.
    pub async fn start_with_controller(
        config: BrokerConfig,
        gate: Arc<dyn Gate>,
        controller: Controller,
    ) -> Result<Self, Error> {
        Self::open(config, gate, Some(controller)).await
    }

    /// Opens everything in order; the metadata in the data directory unless a controller is given.
    async fn open(
        config: BrokerConfig,
        gate: Arc<dyn Gate>,
        given: Option<Controller>,
    ) -> Result<Self, Error> {
        let runtime = Handle::try_current().map_err(|_| Error::NoRuntime)?;
        check(&config)?;
        let topic_defaults = TopicDefaults::new(config.topic_defaults.clone())?;
        // Before the directory is made: an address that is taken leaves nothing behind.
        let listeners = bind(&config)?;
        let for_metrics = match &config.metrics_listen {
            Some(address) => metrics::bind(address)?,
            None => Vec::new(),
        };
        let (data_dir, max_open_files) = (config.data_dir.clone(), config.max_open_files);
        let cluster_id = given.as_ref().map(|controller| controller.state().cluster_id());
        let directory = blocking(move || open_directory(&data_dir, max_open_files, cluster_id)).await?;
        let addresses: Vec<_> = listeners.iter().filter_map(|socket| socket.local_addr().ok()).collect();
        let advertised = advertised(&config, &addresses)?;
        let metrics_address = for_metrics.first().and_then(|socket| socket.local_addr().ok());

        let (opened, defaults) = (Arc::clone(&directory), topic_defaults.clone());
        let storage = ManagerConfig { journal_files: config.journal_files, ..ManagerConfig::default() };
        let (controller, logs) = blocking(move || match given {
            Some(controller) => {
                let logs = open_logs(&opened, storage, &defaults, &controller.state())?;
                Ok((controller, logs))
            }
            None => open_state(&opened, storage, &defaults, Arc::new(OsDisk)),
        })
        .await?;
        let node = node_of(&config, directory.identity().node_uuid, &controller.state())?;
        register(&controller, node, directory.identity().node_uuid, &advertised).await?;
        let state = controller.state();
        let (opened, defaults) = (Arc::clone(&logs), topic_defaults.clone());
        let partitions =
            blocking(move || Ok(Arc::new(Partitions::open(node, defaults, opened, &state)))).await?;
        start_sync_rounds(&logs, &partitions, config.sync_threads);
        let quotas = Arc::new(ClientQuotas::default());
        let subscription = follow(&controller, &partitions, &quotas);

        let (stop, stopped) = watch::channel(false);
        let (alive, all_gone) = mpsc::channel(1);
        let (groups, transactions) =
            start_coordinators(&config, &controller, &partitions, &runtime, &stopped, &alive).await;
        let core = Arc::new(Core {
            node,
            controller,
            partitions,
            groups,
            transactions,
            fetch_sessions: FetchSessions::new(SessionLimits {
                sessions: config.fetch_sessions,
                partitions: config.fetch_session_partitions,
                min_idle: Duration::from_millis(config.fetch_session_min_idle_ms),
            }),
            quotas,
            gate,
            metrics: Metrics::new(config.slow_request_ms),
            budget: Arc::new(MemoryBudget::new(config.request_memory_bytes)),
            cold_reads: DiskThreads::new(config.read_threads),
            deletions: DiskThreads::new(DELETIONS_AT_ONCE),
            alive,
            config,
        });
        server::start(&core, listeners, &stopped);
        metrics::serve(&core, for_metrics, &stopped);
        spawn_upkeep(&core, logs, &stopped);
        if let Some(address) = local_address(&addresses) {
            directory.announce(&address.to_string())?;
        }
        tracing::info!(node = %core.node, ?addresses, "the broker serves");
        let connect = InProcess::new(&core, runtime, stopped);
        Ok(Self {
            core,
            connect,
            addresses,
            metrics_address,
            advertised,
            stop,
            all_gone,
            _subscription: subscription,
        })
    }

    /// Opens connections to this broker from within the process. It does not keep the broker running.
    pub fn connect(&self) -> InProcess {
        self.connect.clone()
    }

    /// The addresses that the broker listens on; several for `localhost`, none where it is only embedded.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where metrics and health are told; `None` where they are not.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// The `host:port` that clients are told to connect to; `None` where it is only embedded.
    pub fn bootstrap(&self) -> Option<String> {
        (!self.addresses.is_empty()).then(|| format!("{}:{}", self.advertised.0, self.advertised.1))
    }

    /// The id of the cluster.
    pub fn cluster_id(&self) -> Uuid {
        self.core.controller.state().cluster_id()
    }

    /// Ends all connections, makes everything last, and marks the directory as closed in order.
    ///
    /// # Errors
    /// When a log cannot be synced or the marker not be written: the next start recovers then.
    pub async fn shutdown(self) -> Result<(), Error> {
        let Self { core, stop, mut all_gone, _subscription: subscription, connect, .. } = self;
        // Whoever listens for it ends; those that are gone already need not.
        let _ = stop.send(true);
        drop(connect);
        let (controller, logs) = (core.controller.clone(), Arc::clone(core.partitions.logs()));
        drop(core);
        while all_gone.recv().await.is_some() {}
        blocking(move || {
            controller.close();
            drop(subscription);
            logs.close()?;
            Ok(())
        })
        .await
    }
}

/// Runs what waits for the disk on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

fn check(config: &BrokerConfig) -> Result<(), Error> {
    let at_least_one = |name, value: i64| match value {
        ..1 => Err(Error::Config { name, reason: format!("{value} is less than 1") }),
        _ => Ok(()),
    };
    if let Some(id @ ..0) = config.node_id {
        let reason = format!("{id} is negative");
        return Err(Error::Config { name: "node_id", reason });
    }
    for (name, count) in [
        ("default_partitions", config.default_partitions),
        ("offsets_topic_partitions", config.offsets_topic_partitions),
        ("transaction_topic_partitions", config.transaction_topic_partitions),
    ] {
        at_least_one(name, count.into())?;
        // More could not be created.
        let most = thalweg_controller::limits::MAX_PARTITIONS_PER_COMMAND;
        if usize::try_from(count).is_ok_and(|count| count > most) {
            return Err(Error::Config { name, reason: format!("{count} is more than {most}") });
        }
    }
    at_least_one("group_consumer_heartbeat_interval_ms", config.group_consumer_heartbeat_interval_ms.into())?;
    at_least_one("group_share_heartbeat_interval_ms", config.group_share_heartbeat_interval_ms.into())?;
    at_least_one("group_share_delivery_count_limit", config.group_share_delivery_count_limit.into())?;
    at_least_one("share_state_topic_partitions", config.share_state_topic_partitions.into())?;
    at_least_one("sync_threads", config.sync_threads as i64)?;
    at_least_one("retention_check_interval_ms", config.retention_check_interval_ms as i64)?;
    at_least_one("cleaner_check_interval_ms", config.cleaner_check_interval_ms as i64)?;
    at_least_one("cleaner_io_bytes_per_second", config.cleaner_io_bytes_per_second as i64)
}

fn open_directory(
    path: &PathBuf,
    max_open_files: usize,
    cluster_id: Option<Uuid>,
) -> Result<Arc<DataDirectory>, Error> {
    let environment = Environment::new(Arc::new(DiskFilesystem), Arc::new(SystemClock::new()), path)
        .with_max_open_files(descriptors::for_files(max_open_files, descriptors::of_process()));
    let fresh = Identity { cluster_id: topics::random_id(), node_uuid: topics::random_id() };
    Ok(Arc::new(DataDirectory::open(path, fresh, cluster_id, environment)?))
}

fn bind(config: &BrokerConfig) -> Result<Vec<TcpListener>, Error> {
    let mut listeners = Vec::new();
    for address in &config.listen {
        listeners.extend(listener::bind(address)?);
    }
    Ok(listeners)
}

/// The host and port that clients are told.
fn advertised(config: &BrokerConfig, addresses: &[SocketAddr]) -> Result<(String, u16), Error> {
    let port = addresses.first().map_or(0, SocketAddr::port);
    let Some(told) = config.advertised.as_ref().or(config.listen.first()) else {
        return Ok((NO_HOST.to_owned(), port));
    };
    let invalid = |reason: &str| Error::Config { name: "advertised", reason: reason.to_owned() };
    let (host, told_port) = told.rsplit_once(':').ok_or_else(|| invalid("it must be host:port"))?;
    let told_port: u16 = told_port.parse().map_err(|_| invalid("its port is not a number up to 65535"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.parse().is_ok_and(|address: IpAddr| address.is_unspecified()) {
        let reason = "nobody can connect to the address that stands for all of this machine's: say which one clients are to use";
        return Err(invalid(reason));
    }
    Ok((host.to_owned(), if told_port == 0 { port } else { told_port }))
}

/// Where programs on this machine reach the broker, whatever others are told.
fn local_address(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let mut local = *addresses.first()?;
    if local.ip().is_unspecified() {
        let loopback: IpAddr =
            if local.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        local.set_ip(loopback);
    }
    Some(local)
}

/// The node's id: the one that the metadata knows the directory's owner by.
fn node_of(config: &BrokerConfig, uuid: Uuid, state: &ClusterState) -> Result<NodeId, Error> {
    let asked = config.node_id.map(NodeId);
    let holds = |node: NodeId| {
        let partitions = state.topics().flat_map(|topic| &topic.partitions);
        partitions.filter(|partition| partition.replicas.contains(&node)).count()
    };
    // It may have been given several, of which one has the partitions.
    let known = state.nodes().filter(|node| node.uuid == uuid).map(|node| node.id);
    match (asked, known.max_by_key(|node| (holds(*node), Reverse(node.0)))) {
        (Some(asked), Some(found)) if asked != found => {
            Err(Error::NodeId { path: config.data_dir.clone(), found, asked })
        }
        (_, Some(found)) => Ok(found),
        (asked, None) => Ok(asked.unwrap_or(FIRST_NODE)),
    }
}

/// Opens the metadata, or makes it in a directory that has none and no logs either, and then the logs.
pub(crate) fn open_state(
    directory: &Arc<DataDirectory>,
    storage: ManagerConfig,
    defaults: &TopicDefaults,
    disk: Arc<dyn Disk>,
) -> Result<(Controller, Arc<LogManager>), Error> {
    let cluster_id = directory.identity().cluster_id;
    let (path, config) = (directory.path().join(METADATA), LocalConfig::default());
    let opened = LocalDriver::open(Arc::clone(&disk), &path, cluster_id, config.clone());
    let is_missing = matches!(opened, Err(thalweg_controller::Error::Missing { .. }));
    let state = opened.as_ref().map_or_else(|_| Arc::new(ClusterState::new(cluster_id)), Controller::state);
    let controller = if is_missing { None } else { Some(opened?) };
    let logs = open_logs(directory, storage, defaults, &state)?;
    let controller = match controller {
        Some(controller) => controller,
        None if logs.logs().is_empty() && logs.offline_logs().is_empty() => {
            LocalDriver::create(disk, &path, cluster_id, config)?
        }
        None => return Err(thalweg_controller::Error::Missing { dir: path }.into()),
    };
    Ok((controller, logs))
}

/// Opens the logs, with the configs that their topics have in `state`.
fn open_logs(
    directory: &Arc<DataDirectory>,
    storage: ManagerConfig,
    defaults: &TopicDefaults,
    state: &ClusterState,
) -> Result<Arc<LogManager>, Error> {
    let config_of = |partition: &TopicPartition, _: Option<Uuid>| {
        let topic = state.topic(&partition.topic);
        topic.map_or_else(LogConfig::default, |topic| log_config(&defaults.resolve(topic)))
    };
    Ok(Arc::new(LogManager::open(Arc::clone(directory), storage, &config_of)?))
}

async fn register(
    controller: &Controller,
    node: NodeId,
    uuid: Uuid,
    (host, port): &(String, u16),
) -> Result<(), Error> {
    let host = ByteString::from(host.clone());
    let proposal = RegisterNode { node, uuid, host, port: *port, rack: None };
    match propose(controller, proposal).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(rejection)) => Err(Error::Registration { reason: rejection.to_string() }),
        Err(error) => Err(Error::Registration { reason: error.to_string() }),
    }
}

/// The partitions are held weakly: they hold the logs, whose threads hold this.
fn start_sync_rounds(logs: &LogManager, partitions: &Arc<Partitions>, threads: usize) {
    let partitions = Arc::downgrade(partitions);
    let listener = move |log: &_, result: Result<_, &_>| {
        if let Some(partitions) = Weak::upgrade(&partitions) {
            partitions.synced(log, result.is_ok());
        }
    };
    logs.start_sync_rounds(threads, Arc::new(listener));
}

fn follow(controller: &Controller, partitions: &Arc<Partitions>, quotas: &Arc<ClientQuotas>) -> Subscription {
    let (partitions, followed) = (Arc::downgrade(partitions), Arc::clone(quotas));
    let subscription = controller.subscribe(move |old, new| {
        if let Some(partitions) = Weak::upgrade(&partitions) {
            partitions.follow(old, new);
        }
        if !Arc::ptr_eq(old.quotas(), new.quotas()) {
            followed.set(new.quotas());
        }
    });
    // Nothing is served yet that could change them meanwhile.
    quotas.set(controller.state().quotas());
    subscription
}

/// Loads what the coordinators have written down, brings the partitions in line with it, and starts to keep the time. Nothing
/// is served before that.
async fn start_coordinators(
    config: &BrokerConfig,
    controller: &Controller,
    partitions: &Arc<Partitions>,
    runtime: &Handle,
    stop: &watch::Receiver<bool>,
    alive: &mpsc::Sender<Alive>,
) -> (Arc<GroupCoordinator>, Arc<TransactionCoordinator>) {
    let clocks = Clocks::new(Arc::new(SystemClock::new()));
    let setting = coordinator::Setting {
        partitions: Arc::clone(partitions),
        clocks,
        runtime: runtime.clone(),
        stop: stop.clone(),
    };
    let groups = Arc::new(GroupCoordinator::new(config, controller, setting.clone()));
    let transactions =
        Arc::new(TransactionCoordinator::new(config, controller.clone(), Arc::clone(&groups), setting));
    groups.load_all().await;
    transactions.load_all().await;
    transactions.reconcile().await;
    groups.shares().load_all().await;
    for keeps_time in [
        Box::pin(Arc::clone(&groups).run()) as Pin<Box<dyn Future<Output = ()> + Send>>,
        Box::pin(Arc::clone(&transactions).run()),
        Box::pin(Arc::clone(groups.shares()).run()),
    ] {
        let alive = alive.clone();
        runtime.spawn(async move {
            let _alive = alive;
            keeps_time.await;
        });
    }
    (groups, transactions)
}

/// Starts the tasks that look after the logs: retention, compaction, and partitions that could not be opened.
fn spawn_upkeep(core: &Arc<Core>, logs: Arc<LogManager>, stop: &watch::Receiver<bool>) {
    let retention = Duration::from_millis(core.config.retention_check_interval_ms);
    let (retained, deleted) = (Arc::clone(&logs), Arc::clone(&logs));
    let partitions = Arc::clone(&core.partitions);
    every(core, stop, retention, move || {
        retained.run_retention();
        partitions.changed();
    });
    every(core, stop, REMOVE_DELETED, move || deleted.remove_deleted());
    let (hurried, mut stopped, alive) = (Arc::clone(&logs), stop.clone(), core.alive.clone());
    tokio::spawn(async move {
        // A broker that has been dropped tells nobody, but is stopping as well.
        let _ = stopped.changed().await;
        hurried.hurry();
        drop(alive);
    });
    spawn_cleaner(core, logs, stop);
    let partitions = Arc::clone(&core.partitions);
    every(core, stop, RETRY, move || partitions.retry_unfinished());
}

/// Starts the one cleaner that this node has.
fn spawn_cleaner(core: &Arc<Core>, logs: Arc<LogManager>, stop: &watch::Receiver<bool>) {
    let config = CleanerConfig {
        memory_bytes: core.config.cleaner_memory_bytes,
        io_bytes_per_second: core.config.cleaner_io_bytes_per_second,
    };
    let secret = [RandomState::new(), RandomState::new()].map(|random| u128::from(random.hash_one(0)));
    // Held for a round by the only thread that ever wants it.
    let cleaner = Mutex::new(Cleaner::new(&config, secret[0] << 64 | secret[1]));
    let stops = stop.clone();
    // A broker that has been dropped has told nobody.
    let should_stop = move || *stops.borrow() || stops.has_changed().is_err();
    let interval = Duration::from_millis(core.config.cleaner_check_interval_ms);
    every(core, stop, interval, move || {
        cleaner.lock().run(&logs, &should_stop);
    });
}

/// Calls `work` again and again, on a thread that may block, until the broker stops.
fn every(
    core: &Arc<Core>,
    stop: &watch::Receiver<bool>,
    interval: Duration,
    work: impl Fn() + Send + Sync + 'static,
) {
    let (alive, mut stop) = (core.alive.clone(), stop.clone());
    let work = Arc::new(work);
    tokio::spawn(async move {
        let _alive = alive;
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                _ = stop.changed() => return,
            }
            let work = Arc::clone(&work);
            if spawn_blocking(move || work()).await.is_err() {
                tracing::error!("upkeep of the logs panicked; it is tried again");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_the_machine_include_that_of_itself() {
        for (listening, local) in [
            ("0.0.0.0:9092", "127.0.0.1:9092"),
            ("[::]:9092", "[::1]:9092"),
            ("192.0.2.7:9092", "192.0.2.7:9092"),
        ] {
            let listening = listening.parse().expect("an address");
            assert_eq!(local_address(&[listening]).expect("it listens").to_string(), local);
        }
        assert_eq!(local_address(&[]), None);
    }
}
