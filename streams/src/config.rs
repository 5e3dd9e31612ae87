//! The settings of a streams application.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The settings of a streams application. Build one with [`StreamsConfig::new`] and change fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamsConfig {
    /// Names the application: the consumer group, and the prefix of internal topics and transactional ids.
    pub application_id: String,
    /// Where state stores lie, as `<state_dir>/<application_id>/<sub-topology>_<partition>/`.
    pub state_dir: PathBuf,
    /// How many stream threads to run. 1: one thread keeps up with several hundred thousand records a
    /// second; more help when there are at least as many partitions.
    #[serde(default = "defaults::threads")]
    pub threads: usize,
    /// What a crash may do to results. Exactly once is the default because it costs little.
    #[serde(default)]
    pub guarantee: Guarantee,
    /// How long to process before a commit, in ms. 100 as in Kafka Streams' exactly-once mode: the latency
    /// a reader of committed records sees.
    #[serde(default = "defaults::commit_interval_ms")]
    pub commit_interval_ms: u64,
    /// How many bytes of uncommitted state and output a thread may hold before it commits early. 64 MiB
    /// holds about a million small aggregates.
    #[serde(default = "defaults::uncommitted_bytes")]
    pub uncommitted_bytes: usize,
    /// The memory for committed state, in bytes, of all stores of all tasks together: half for RocksDB's block
    /// cache and memtables, half for values kept at hand from the last commits. 256 MiB.
    #[serde(default = "defaults::state_memory_bytes")]
    pub state_memory_bytes: usize,
    /// What holds the state: RocksDB (where the feature is on) or memory.
    #[serde(default)]
    pub state: StateKind,
    /// How many records may wait per input partition before it is no longer fetched. 10,000.
    #[serde(default = "defaults::queued_records")]
    pub queued_records: usize,
    /// What happens to a record that does not decode.
    #[serde(default)]
    pub undecodable: Undecodable,
    /// Where a task begins that has never committed.
    #[serde(default)]
    pub start_at: StartAt,
    /// The replication factor of internal topics; −1 takes the cluster's default.
    #[serde(default = "defaults::replication_factor")]
    pub replication_factor: i16,
    /// How long a transaction may stay open before the cluster aborts it, in ms. 10,000 as in Kafka Streams:
    /// it holds back readers of committed records after a crash.
    #[serde(default = "defaults::transaction_timeout_ms")]
    pub transaction_timeout_ms: u32,
    /// How long the group waits for a silent member before its tasks move, in ms. 45,000 is Kafka's default.
    #[serde(default = "defaults::session_timeout_ms")]
    pub session_timeout_ms: u32,
    /// Test hooks: nothing here is for production.
    #[serde(skip)]
    pub test_hooks: crate::runtime::TestHooks,
}

/// What a crash may do to results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guarantee {
    /// Results, state and input offsets are committed in one transaction.
    #[default]
    ExactlyOnce,
    /// Without transactions: a crash may repeat the work since the last commit.
    AtLeastOnce,
}

/// What holds the state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateKind {
    /// RocksDB, one per task directory.
    #[cfg(feature = "rocksdb")]
    RocksDb,
    /// Memory: restored from the changelog at every start.
    Memory,
}

impl Default for StateKind {
    fn default() -> Self {
        #[cfg(feature = "rocksdb")]
        return Self::RocksDb;
        #[cfg(not(feature = "rocksdb"))]
        return Self::Memory;
    }
}

/// What happens to a record that does not decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undecodable {
    /// It goes to `<application_id>-dead-letter`, with the reason in its headers.
    #[default]
    DeadLetter,
    /// The application stops.
    Fail,
}

/// Where a task begins that has never committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartAt {
    /// With the oldest record that is still there: history first, then live.
    #[default]
    Earliest,
    /// With what is produced from now on; after a restart, where it stopped.
    Latest,
}

impl StreamsConfig {
    /// The defaults, for an application of that name with its state under `state_dir`.
    pub fn new(application_id: impl Into<String>, state_dir: impl Into<PathBuf>) -> Self {
        Self {
            application_id: application_id.into(),
            state_dir: state_dir.into(),
            threads: defaults::threads(),
            guarantee: Guarantee::default(),
            commit_interval_ms: defaults::commit_interval_ms(),
            uncommitted_bytes: defaults::uncommitted_bytes(),
            state_memory_bytes: defaults::state_memory_bytes(),
            state: StateKind::default(),
            queued_records: defaults::queued_records(),
            undecodable: Undecodable::default(),
            start_at: StartAt::default(),
            replication_factor: defaults::replication_factor(),
            transaction_timeout_ms: defaults::transaction_timeout_ms(),
            session_timeout_ms: defaults::session_timeout_ms(),
            test_hooks: crate::runtime::TestHooks::default(),
        }
    }

    /// The changelog topic of the store `store`, as Kafka Streams names it.
    pub fn changelog_topic(&self, store: &str) -> String {
        format!("{}-{store}-changelog", self.application_id)
    }

    /// The repartition topic `name`, as Kafka Streams names it.
    pub fn repartition_topic(&self, name: &str) -> String {
        format!("{}-{name}-repartition", self.application_id)
    }

    /// The topic that records go to which do not decode.
    pub fn dead_letter_topic(&self) -> String {
        format!("{}-dead-letter", self.application_id)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let id = &self.application_id;
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if id.is_empty() || id.len() > 200 || !id.chars().all(legal) || id == "." || id == ".." {
            return Err(Error::Config {
                field: "application_id",
                reason: format!("{id:?} is not 1 to 200 letters, digits, dots, underscores or dashes"),
            });
        }
        if self.threads == 0 || self.threads > 1024 {
            return Err(Error::Config {
                field: "threads",
                reason: format!("{} is not between 1 and 1024", self.threads),
            });
        }
        if self.commit_interval_ms == 0 || self.queued_records == 0 || self.uncommitted_bytes == 0 {
            return Err(Error::Config {
                field: "commit_interval_ms, queued_records, uncommitted_bytes",
                reason: "must be greater than 0".into(),
            });
        }
        if self.uncommitted_bytes > (1 << 30) {
            return Err(Error::Config { field: "uncommitted_bytes", reason: "must be at most 1 GiB".into() });
        }
        if u64::from(self.transaction_timeout_ms) < 2 * self.commit_interval_ms {
            return Err(Error::Config {
                field: "transaction_timeout_ms",
                reason: format!(
                    "must be at least twice the commit interval of {} ms",
                    self.commit_interval_ms
                ),
            });
        }
        Ok(())
    }
}

mod defaults {
    pub(super) fn threads() -> usize {
        1
    }
    pub(super) fn commit_interval_ms() -> u64 {
        100
    }
    pub(super) fn uncommitted_bytes() -> usize {
        64 << 20
    }
    pub(super) fn state_memory_bytes() -> usize {
        256 << 20
    }
    pub(super) fn queued_records() -> usize {
        10_000
    }
    pub(super) fn replication_factor() -> i16 {
        -1
    }
    pub(super) fn transaction_timeout_ms() -> u32 {
        10_000
    }
    pub(super) fn session_timeout_ms() -> u32 {
        45_000
    }
}
