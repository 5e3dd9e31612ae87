//! What the scans of one statement share: the offsets up to which they read, and what they count.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_client::{Client, Isolation, OffsetSpec};
use thalweg_protocol::{Offset, TopicPartition};
use tokio::sync::OnceCell;

use crate::error::Result;
use crate::output::counted;
use crate::undecodable::UndecodableCollector;

/// Travels with the statement as an extension of DataFusion's configuration.
#[derive(Debug)]
pub(crate) struct StatementContext {
    pub(crate) undecodable: UndecodableCollector,
    pub(crate) read: ReadCounters,
    /// The offsets of each topic, asked for once.
    snapshots: Mutex<HashMap<ByteString, Arc<OnceCell<Arc<Snapshot>>>>>,
    notices: Mutex<BTreeSet<Notice>>,
}

/// The offsets of a topic's partitions as they stood when the statement began, in the order of the partitions.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) partitions: Vec<PartitionSnapshot>,
}

/// The offsets of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionSnapshot {
    pub(crate) partition: i32,
    /// The first offset there is.
    pub(crate) start: Offset,
    /// The last stable offset: every record before it is committed or aborted for good.
    pub(crate) end: Offset,
}

/// What was read from the log.
#[derive(Debug, Default)]
pub(crate) struct ReadCounters {
    pub(crate) bytes: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) records: AtomicU64,
}

/// How much of the log a statement has read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRead {
    /// The size of the batches that were read, in bytes, as they are in the log.
    pub bytes: u64,
    /// How many batches.
    pub batches: u64,
    /// How many records of them lay between the offsets that were asked for.
    pub records: u64,
}

impl ReadCounters {
    pub(crate) fn total(&self) -> LogRead {
        LogRead {
            bytes: self.bytes.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
            records: self.records.load(Ordering::Relaxed),
        }
    }
}

/// Something about a statement that its user should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Notice {
    /// The columns of a topic were inferred from a sample.
    Inferred {
        /// The topic.
        topic: ByteString,
        /// How many records the sample holds.
        records: usize,
        /// From how many partitions: the first records of each.
        partitions: usize,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inferred { topic, records, partitions } => {
                let records = counted(*records as u64, "record");
                let whose = match partitions {
                    1 => "of its partition".to_owned(),
                    partitions => format!("of each of its {partitions} partitions"),
                };
                write!(
                    f,
                    "the columns of {topic} were inferred from {records}, the first {whose}; \
                     CREATE TABLE … WITH (topic = '{topic}') declares them"
                )
            }
        }
    }
}

impl StatementContext {
    pub(crate) fn new(undecodable_shown: usize) -> Self {
        Self {
            undecodable: UndecodableCollector::new(undecodable_shown),
            read: ReadCounters::default(),
            snapshots: Mutex::default(),
            notices: Mutex::default(),
        }
    }

    /// The offsets of `topic`; the first scan of the statement that needs them asks the cluster.
    pub(crate) async fn snapshot(&self, client: &Client, topic: &ByteString) -> Result<Arc<Snapshot>> {
        let cell = Arc::clone(self.snapshots.lock().entry(topic.clone()).or_default());
        let snapshot = cell.get_or_try_init(|| async { Snapshot::take(client, topic).await.map(Arc::new) });
        snapshot.await.cloned()
    }

    pub(crate) fn notice(&self, notice: Notice) {
        self.notices.lock().insert(notice);
    }

    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.notices.lock().iter().cloned().collect()
    }
}

impl Snapshot {
    /// Asks the cluster for the offsets of all partitions of `topic`.
    pub(crate) async fn take(client: &Client, topic: &ByteString) -> Result<Self> {
        let admin = client.admin();
        let partitions = client.partition_count(topic).await?;
        let wanted = |spec| -> Vec<_> {
            (0..partitions).map(|partition| (TopicPartition::new(topic.clone(), partition), spec)).collect()
        };
        let ends = admin.list_offsets(&wanted(OffsetSpec::Latest), Isolation::ReadCommitted).await?;
        let starts = admin.list_offsets(&wanted(OffsetSpec::Earliest), Isolation::ReadCommitted).await?;
        let partitions = ends.into_iter().map(|(partition, end)| {
            let end = end.offset.unwrap_or(Offset(0));
            let start = starts.get(&partition).and_then(|start| start.offset).unwrap_or(end);
            PartitionSnapshot { partition: partition.partition, start, end }
        });
        Ok(Self { partitions: partitions.collect() })
    }
}
