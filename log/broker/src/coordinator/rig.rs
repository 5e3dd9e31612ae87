//! Both coordinators on a disk that syncs when it is told to, and crashes.

mod metadata_disk;
mod unsynced_disk;

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytestring::ByteString;
use tempfile::TempDir;
use thalweg_controller::{
    Controller, CreateTopics, DeleteTopics, LocalConfig, LocalDriver, NewTopic, Proposal, ProposeError,
    RegisterNode, Subscription, TopicRef,
};
use thalweg_protocol::record::{BatchBuilder, BatchProducer, Batches, ControlRecord, RecordBatch};
use thalweg_protocol::{
    Compression, Compressor, ErrorCode, NodeId, Offset, ProducerEpoch, Scratch, TopicPartition, Uuid,
};
use thalweg_storage::testing::{Crash, ManualClock, SimulatedFilesystem};
use thalweg_storage::{
    DataDirectory, Environment, Identity, Log, LogConfig, LogManager, ManagerConfig, ReadBound,
};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use self::metadata_disk::MetadataDisk;
use self::unsynced_disk::UnsyncedDisk;
use super::{Clocks, Setting};
use crate::broker::open_state;
use crate::config::BrokerConfig;
use crate::group::GroupCoordinator;
use crate::partition::Partition;
use crate::partitions::Partitions;
use crate::topic_config::TopicDefaults;
use crate::topics::{CONSUMER_OFFSETS, TRANSACTION_STATE};
use crate::transaction::{Producer, TransactionCoordinator};

const NODE: NodeId = NodeId(1);
const CLUSTER: Uuid = Uuid(*b"a cluster of one");

/// How often tasks get a turn before it counts as waiting.
const TURNS: usize = 64;

/// How long a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Shorter than in a broker: after a crash nothing is ever complete.
const COMPLETION_WAIT: Duration = Duration::from_millis(50);

/// More rounds of syncs than anything takes to settle.
const MAX_ROUNDS: usize = 8;

pub(crate) struct Rig {
    pub(crate) groups: Arc<GroupCoordinator>,
    pub(crate) transactions: Arc<TransactionCoordinator>,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) filesystem: Arc<SimulatedFilesystem>,
    pub(crate) wall: Arc<ManualClock>,
    controller: Controller,
    logs: Arc<LogManager>,
    stop: watch::Sender<bool>,
    data: TempDir,
    /// Where the metadata is that is never lost; `None` where it shares the fate of the logs.
    metadata: Option<TempDir>,
    _subscription: Subscription,
}

impl Rig {
    /// A fresh directory with the internal topics, one partition each, and topic `t` with two. The metadata is elsewhere, and
    /// never lost.
    pub(crate) async fn new() -> Self {
        let metadata = TempDir::new().expect("a temporary directory");
        let path = metadata.path().join("log");
        let controller = LocalDriver::create(Arc::new(UnsyncedDisk), &path, CLUSTER, LocalConfig::default());
        drop(controller.expect("metadata can be made"));
        Self::with_topics(Some(metadata)).await
    }

    /// The same with the metadata in the data directory, as a node has it: one crash is that of both.
    pub(crate) async fn whole() -> Self {
        Self::with_topics(None).await
    }

    async fn with_topics(metadata: Option<TempDir>) -> Self {
        let data = TempDir::new().expect("a temporary directory");
        let rig = Self::start(data, metadata).await;
        let topics =
            [(CONSUMER_OFFSETS, 1), (TRANSACTION_STATE, 1), ("t", 2)].map(|(name, partitions)| NewTopic {
                name: ByteString::from_static(name),
                id: crate::topics::random_id(),
                partitions,
                replication_factor: 1,
                assignment: Vec::new(),
                configs: Default::default(),
            });
        let proposal = CreateTopics { topics: topics.into(), validate_only: false };
        for created in rig.controller.propose(proposal).expect("it has an answer") {
            created.expect("the topic is made");
        }
        rig.groups.load_all().await;
        rig.transactions.load_all().await;
        rig
    }

    async fn start(data: TempDir, metadata: Option<TempDir>) -> Self {
        let filesystem = Arc::new(SimulatedFilesystem::new(data.path()));
        let wall = ManualClock::new(1_700_000_000_000);
        let environment = Environment::new(Arc::clone(&filesystem) as _, Arc::clone(&wall) as _, data.path());
        let identity = Identity { cluster_id: CLUSTER, node_uuid: Uuid(*b"a node and no mo") };
        let directory = DataDirectory::open(data.path(), identity, None, environment);
        let directory = Arc::new(directory.expect("the directory can be used"));
        let defaults = TopicDefaults::new(Default::default()).expect("no defaults are fine");
        let (controller, logs) = match &metadata {
            Some(metadata) => open_apart(directory, &metadata.path().join("log")),
            None => {
                let disk = Arc::new(MetadataDisk(Arc::clone(&filesystem)));
                open_state(&directory, ManagerConfig::default(), &defaults, disk)
                    .expect("the directory can be opened")
            }
        };
        let host = ByteString::from_static("localhost");
        let register = RegisterNode { node: NODE, uuid: identity.node_uuid, host, port: 1, rack: None };
        controller.propose(register).expect("it has an answer").expect("the node is taken");
        let partitions = Partitions::open(NODE, defaults, Arc::clone(&logs), &controller.state());
        let partitions = Arc::new(partitions);
        let followed = Arc::downgrade(&partitions);
        let subscription = controller.subscribe(move |old, new| {
            if let Some(partitions) = followed.upgrade() {
                partitions.follow(old, new);
            }
        });
        let (stop, stopped) = watch::channel(false);
        let setting = Setting {
            partitions: Arc::clone(&partitions),
            clocks: Clocks::new(Arc::clone(&wall) as _),
            runtime: Handle::current(),
            stop: stopped,
        };
        let config = BrokerConfig { group_min_session_timeout_ms: 1, ..Default::default() };
        let groups = Arc::new(GroupCoordinator::new(&config, &controller, setting.clone()));
        let transactions =
            TransactionCoordinator::new(&config, controller.clone(), Arc::clone(&groups), setting);
        let transactions = Arc::new(transactions.waiting_for_completion(COMPLETION_WAIT));
        groups.load_all().await;
        transactions.load_all().await;
        transactions.reconcile().await;
        Self {
            groups,
            transactions,
            partitions,
            filesystem,
            wall,
            controller,
            logs,
            stop,
            data,
            metadata,
            _subscription: subscription,
        }
    }

    /// Crashes, and starts again from what is left.
    pub(crate) async fn restart(self, crash: Crash) -> Self {
        self.filesystem.crash(crash);
        let Self { groups, transactions, partitions, controller, logs, stop, data, metadata, .. } = self;
        stop.send(true).expect("somebody listens");
        controller.close();
        let gone = Arc::downgrade(&logs);
        drop((groups, transactions, partitions, controller, logs, self._subscription));
        // The directory is held until every task has noticed.
        while gone.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
        Self::start(data, metadata).await
    }

    /// Changes the metadata. Waits for the answer.
    pub(crate) fn propose<P: Proposal>(&self, proposal: P) -> Result<P::Response, ProposeError> {
        self.controller.propose(proposal)
    }

    /// The id of the topic of this name.
    pub(crate) fn topic_id(&self, name: &str) -> Option<Uuid> {
        self.controller.state().topic(name).map(|topic| topic.id)
    }

    /// Deletes a topic.
    pub(crate) fn delete_topic(&self, name: &'static str) {
        let topics = vec![TopicRef::Name(ByteString::from_static(name))];
        let deleted = self.controller.propose(DeleteTopics { topics });
        deleted.expect("it has an answer").remove(0).expect("the topic is there");
    }

    /// The names of what is in the data directory.
    pub(crate) fn directories(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.data.path()).expect("the directory is there");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
    }

    /// One round of syncs: everything appended so far lasts, if the disk still works. Returns whether there was
    /// anything to sync.
    pub(crate) fn sync(&self) -> bool {
        let mut found = false;
        for log in self.logs.logs() {
            if log.synced_offset() < log.log_end_offset() {
                found = true;
                let is_healthy = log.sync().is_ok();
                self.partitions.synced(&log, is_healthy);
            }
        }
        found
    }

    /// Waits for `work`, with a round of syncs whenever nothing moves. Returns how many that took.
    pub(crate) async fn rounds<T>(&self, work: impl Future<Output = T>) -> (T, usize) {
        let mut work = pin!(work);
        let mut rounds = 0;
        let give_up_at = Instant::now() + PATIENCE;
        loop {
            for _ in 0..TURNS {
                let polled = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
                if let Poll::Ready(output) = polled {
                    return (output, rounds);
                }
                tokio::task::yield_now().await;
            }
            if self.sync() {
                rounds += 1;
            } else {
                // It waits for the metadata, which has a disk of its own, or for time to pass.
                sleep(Duration::from_millis(1)).await;
            }
            assert!(Instant::now() < give_up_at, "nothing comes of it");
        }
    }

    /// Waits for `work`, however many rounds it takes.
    pub(crate) async fn done<T>(&self, work: impl Future<Output = T>) -> T {
        self.rounds(work).await.0
    }

    /// Lets everything that is under way come to its end.
    pub(crate) async fn settle(&self) {
        for _ in 0..MAX_ROUNDS {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            self.sync();
        }
    }

    /// Lets what is under way go on until `is_done`, however slow the machine is.
    ///
    /// # Panics
    /// When it never is.
    pub(crate) async fn settle_until(&self, is_done: impl AsyncFn() -> bool, when: &str) {
        let give_up_at = Instant::now() + PATIENCE;
        loop {
            self.settle().await;
            if is_done().await {
                return;
            }
            assert!(Instant::now() < give_up_at, "{when}: something hangs");
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Whether the disk has failed.
    pub(crate) fn is_offline(&self) -> bool {
        self.logs.directory().environment().health.failure().is_some()
    }

    pub(crate) fn leader(&self, topic: &str, partition: i32) -> Arc<Partition> {
        let id = TopicPartition::new(topic, partition);
        self.partitions.leader(&id).expect("this node leads everything")
    }

    /// Appends `value` to partition `partition` of `t`, in the transaction that has been opened there, and waits until it is
    /// committed.
    pub(crate) async fn append(
        &self,
        partition: i32,
        producer: Producer,
        sequence: i32,
        value: &str,
    ) -> Result<(), ErrorCode> {
        let leader = self.leader("t", partition);
        let guard = leader.begin_verification(producer.id, producer.epoch);
        let batch = batch(producer, sequence, value);
        let appended = leader.append(&batch, guard, true).map_err(|refusal| refusal.code)?;
        leader.committed(appended.last_offset).await
    }

    /// The values that a consumer of `t` sees under read_committed.
    pub(crate) fn read_committed(&self, partition: i32) -> Vec<String> {
        let log = Arc::clone(self.leader("t", partition).log());
        let mut values = Vec::new();
        let mut next = log.log_start_offset();
        while let Some(slice) =
            log.read(next, 1 << 20, ReadBound::LastStableOffset, true).expect("the log can be read").records
        {
            let bytes = slice.read().expect("the segment can be read");
            let aborted =
                log.aborted_transactions(Offset(0), log.log_end_offset()).expect("the index is there");
            let mut open: Vec<_> = aborted;
            for batch in Batches::new(bytes) {
                let batch = batch.expect("whole batches");
                let header = *batch.header();
                next = header.next_offset();
                let mut scratch = Scratch::new(1 << 20);
                let is_aborted = open
                    .iter()
                    .any(|a| a.producer_id == header.producer_id && a.first_offset <= header.base_offset);
                for record in batch.records(&mut scratch).expect("not compressed") {
                    let record = record.expect("whole records");
                    if header.is_control() {
                        let marker = ControlRecord::parse(&record).expect("a marker");
                        if matches!(marker, ControlRecord::EndTransaction(end) if !end.commit)
                            && let Some(at) = open.iter().position(|a| a.producer_id == header.producer_id)
                        {
                            open.remove(at);
                        }
                    } else if !is_aborted {
                        values.push(
                            String::from_utf8(record.value.unwrap_or_default().to_vec()).expect("text"),
                        );
                    }
                }
            }
        }
        values
    }

    /// Whether some partition has a transaction that is not decided.
    pub(crate) fn has_open_transactions(&self) -> bool {
        let is_held_back = |log: &Log| log.last_stable_offset() < log.log_end_offset();
        // A log that the metadata does not mention is nobody's: nothing of it is ever committed.
        self.partitions.led().iter().any(|partition| is_held_back(partition.log()))
    }
}

/// Opens the logs, and metadata that is kept elsewhere.
fn open_apart(directory: Arc<DataDirectory>, metadata: &Path) -> (Controller, Arc<LogManager>) {
    let config_of = |_: &TopicPartition, _| LogConfig::default();
    let logs = LogManager::open(directory, ManagerConfig::default(), &config_of);
    let controller = LocalDriver::open(Arc::new(UnsyncedDisk), metadata, CLUSTER, LocalConfig::default());
    (controller.expect("the metadata can be read"), Arc::new(logs.expect("the logs can be opened")))
}

/// A transactional batch of one record.
pub(crate) fn batch(producer: Producer, sequence: i32, value: &str) -> RecordBatch {
    let mut builder = BatchBuilder::new(Compression::None, None, 64);
    builder.append(1_700_000_000_000, None, Some(value.as_bytes()), []).expect("small");
    let producer = BatchProducer {
        id: producer.id,
        epoch: producer.epoch,
        base_sequence: sequence,
        transactional: true,
    };
    builder.finish(&mut Compressor::new(), Some(&producer))
}

impl Producer {
    /// The same producer with the epoch before.
    pub(crate) fn before(self) -> Self {
        Self { epoch: ProducerEpoch(self.epoch.0 - 1), ..self }
    }
}
