//! Logs on a simulated disk, and batches to append.

use std::path::PathBuf;
use std::sync::Arc;

use thalweg_protocol::record::{BatchBuilder, BatchProducer, Batches, OwnedRecord, RecordBatch};
use thalweg_protocol::{
    Compression, Compressor, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Scratch, TopicPartition, Uuid,
};
use thalweg_storage::testing::{Crash, ManualClock, SimulatedFilesystem};
use thalweg_storage::{
    AppendInfo, AppendOrigin, DataDirectory, Environment, Error, Identity, Log, LogConfig, LogManager,
    ManagerConfig, MarkerAppend, ReadBound, Standing, TransactionResult,
};

/// 2013-01-01, when the tests begin.
pub const NOW_MS: i64 = 1_356_998_400_000;

pub const TOPIC_ID: Uuid = Uuid([7; 16]);

/// A disk and a clock.
pub struct World {
    root: tempfile::TempDir,
    pub disk: Arc<SimulatedFilesystem>,
    pub clock: Arc<ManualClock>,
    pub config: ManagerConfig,
}

impl World {
    pub fn new() -> Self {
        // Thousands of small files: in memory where the system has a place for that.
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let root = root.expect("a temporary directory");
        let disk = Arc::new(SimulatedFilesystem::new(root.path()));
        let config = ManagerConfig { recovery_threads: 1, ..ManagerConfig::default() };
        Self { root, disk, clock: ManualClock::new(NOW_MS), config }
    }

    /// With a journal whose files have room for four records of a block each.
    pub fn journaled() -> Self {
        let mut world = Self::new();
        world.config = ManagerConfig { journal_files: 3, journal_file_bytes: 6 * 4096, ..world.config };
        world
    }

    pub fn is_journaled(&self) -> bool {
        self.config.journal_files > 0
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn environment(&self) -> Environment {
        Environment::new(self.disk.clone(), self.clock.clone(), self.root.path())
    }

    /// The machine crashes and comes up again.
    pub fn crash(&mut self, crash: Crash) {
        self.disk.crash(crash);
        self.disk = Arc::new(SimulatedFilesystem::new(self.root.path()));
    }

    pub fn try_open(&self, config: &LogConfig, standing: Standing) -> Result<Arc<Log>, Error> {
        let partition = partition("flights", 0);
        let (path, environment) = (self.path("flights-0"), self.environment());
        Log::open(&path, partition, TOPIC_ID, config.clone(), standing, &environment)
    }

    /// Opens the log `flights-0`.
    pub fn open(&self, config: &LogConfig, standing: Standing) -> Arc<Log> {
        self.try_open(config, standing).expect("the log opens")
    }

    /// The log `flights-0`, new.
    pub fn create(&self, config: &LogConfig) -> Arc<Log> {
        self.open(config, Standing::default())
    }

    pub fn try_manager(&self, config: &LogConfig) -> Result<LogManager, Error> {
        let fresh = Identity { cluster_id: Uuid([1; 16]), node_uuid: Uuid([2; 16]) };
        let directory = DataDirectory::open(self.root.path(), fresh, None, self.environment())?;
        LogManager::open(Arc::new(directory), self.config.clone(), &|_, _| config.clone())
    }

    pub fn manager(&self, config: &LogConfig) -> LogManager {
        self.try_manager(config).expect("the directory opens")
    }
}

pub fn partition(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic.to_owned(), partition)
}

/// A log that rolls soon and indexes every batch.
pub fn small() -> LogConfig {
    LogConfig { segment_bytes: 500, index_interval_bytes: 1, ..LogConfig::default() }
}

pub fn synced_to(offset: i64) -> Standing {
    Standing { synced_to: Some(Offset(offset)), ..Standing::default() }
}

/// Makes batches.
#[derive(Clone, Debug)]
pub struct Make {
    records: Vec<Record>,
    compression: Compression,
    producer: Option<BatchProducer>,
    is_verified: bool,
    awaits_sync: bool,
}

#[derive(Clone, Debug)]
struct Record {
    time: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
}

impl Make {
    /// A batch of these values, at [`NOW_MS`].
    pub fn values(values: &[&str]) -> Self {
        Self::of(values.iter().map(|value| (NOW_MS, "key", Some(*value))))
    }

    /// A batch of records with these keys and values, or tombstones, at [`NOW_MS`].
    pub fn keyed(records: &[(&str, Option<&str>)]) -> Self {
        Self::of(records.iter().map(|(key, value)| (NOW_MS, *key, *value)))
    }

    fn of<'a>(records: impl Iterator<Item = (i64, &'a str, Option<&'a str>)>) -> Self {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let records =
            records.map(|(time, key, value)| Record { time, key: Some(bytes(key)), value: value.map(bytes) });
        Self {
            records: records.collect(),
            compression: Compression::None,
            producer: None,
            is_verified: true,
            awaits_sync: false,
        }
    }

    /// A batch of records with these timestamps.
    pub fn times(times: &[i64]) -> Self {
        let values: Vec<String> = times.iter().map(i64::to_string).collect();
        Self::of(times.iter().zip(&values).map(|(&time, value)| (time, "key", Some(value.as_str()))))
    }

    pub fn at(mut self, time: i64) -> Self {
        self.records.iter_mut().for_each(|record| record.time = time);
        self
    }

    pub fn compressed(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// By an idempotent producer.
    pub fn by(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        let (id, epoch) = (ProducerId(id), ProducerEpoch(epoch));
        self.producer = Some(BatchProducer { id, epoch, base_sequence, transactional: false });
        self
    }

    pub fn in_transaction(mut self) -> Self {
        self.producer.as_mut().expect("a producer").transactional = true;
        self
    }

    pub fn keyless(mut self) -> Self {
        self.records.iter_mut().for_each(|record| record.key = None);
        self
    }

    /// The coordinator is not asked before the transaction begins.
    pub fn unverified(mut self) -> Self {
        self.is_verified = false;
        self
    }

    /// By somebody who waits until it is synced.
    pub fn awaiting(mut self) -> Self {
        self.awaits_sync = true;
        self
    }

    pub fn batch(&self) -> RecordBatch {
        let mut builder = BatchBuilder::new(self.compression, None, 1024);
        for Record { time, key, value } in &self.records {
            builder.append(*time, key.as_deref(), value.as_deref(), []).expect("it fits");
        }
        builder.finish(&mut Compressor::new(), self.producer.as_ref())
    }
}

pub const EPOCH: LeaderEpoch = LeaderEpoch(3);

/// Appends as a client; a transaction is verified first.
pub fn try_append(log: &Log, make: Make) -> Result<AppendInfo, Error> {
    let guard = match make.producer {
        Some(BatchProducer { id, epoch, transactional: true, .. }) if make.is_verified => {
            log.begin_verification(id, epoch)
        }
        _ => None,
    };
    log.append_as_leader(&make.batch(), EPOCH, AppendOrigin::Client { guard, awaits_sync: make.awaits_sync })
}

pub fn append(log: &Log, make: Make) -> AppendInfo {
    try_append(log, make).expect("it is appended")
}

/// A marker as coordinators wrote it before KIP-890.
pub fn marker(id: i64, epoch: i16, result: TransactionResult) -> MarkerAppend {
    MarkerAppend {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(epoch),
        result,
        coordinator_epoch: 0,
        epoch_is_bumped: false,
        leader_epoch: EPOCH,
    }
}

/// What was appended is synced and committed.
pub fn commit(log: &Log) {
    let synced = log.sync().expect("the sync succeeds");
    log.set_high_watermark(synced);
}

/// All records from `from` to the bound, read with many small reads.
pub fn records(log: &Log, from: Offset, bound: ReadBound) -> Vec<OwnedRecord> {
    let mut found = Vec::new();
    let mut scratch = Scratch::new(1 << 20);
    let mut next = from;
    loop {
        let info = log.read(next, 300, bound, true).expect("it can be read");
        let Some(slice) = info.records else { return found };
        let before = next;
        for batch in Batches::new(slice.read().expect("the file is there")) {
            let batch = batch.expect("whole batches");
            batch.verify().expect("good batches");
            for record in batch.decode(&mut scratch).expect("it decompresses") {
                let record = record.expect("good records");
                if record.offset >= next {
                    next = record.offset.plus(1);
                    found.push(record);
                }
            }
            next = next.max(batch.header().next_offset());
        }
        assert!(next > before, "a read makes progress");
    }
}

/// The values of all data records up to the log's end.
pub fn values(log: &Log) -> Vec<String> {
    let records = records(log, log.log_start_offset(), ReadBound::LogEnd);
    let value = |record: OwnedRecord| String::from_utf8(record.value.expect("a value").to_vec());
    records.into_iter().map(|record| value(record).expect("text")).collect()
}
