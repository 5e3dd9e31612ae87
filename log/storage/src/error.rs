//! What can go wrong in storage.

use std::io;
use std::path::{Path, PathBuf};

use thalweg_protocol::record::RecordError;
use thalweg_protocol::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicPartition, Uuid};

/// How many records of a batch an error names at most.
pub(crate) const MAX_INDEXES: usize = 1_000;

/// Every error of this crate. The broker maps each to one error code of the protocol.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The batch is malformed, too large, or not one this origin may append; nothing was appended.
    /// [`RecordError::kind`] sorts them.
    #[error("invalid record batch: {0}")]
    InvalidBatch(#[from] RecordError),
    /// Records without keys for a compacted topic; nothing was appended.
    #[error("records of the batch have no key, which a compacted topic needs: {indexes:?}")]
    KeylessRecords {
        /// Their places in the batch, from 0: the first thousand of them.
        indexes: Vec<i32>,
    },
    /// The offset lies before the log's start or after its end.
    #[error("offset {offset} is outside of [{log_start}, {log_end}]")]
    OffsetOutOfRange {
        /// The offset asked for.
        offset: Offset,
        /// The first offset the log has.
        log_start: Offset,
        /// The offset the next record will get.
        log_end: Offset,
    },
    /// A follower got a batch that does not continue its log; nothing was appended.
    #[error("offset {found} does not continue a log that ends at {expected}")]
    UnexpectedOffset {
        /// The log end offset.
        expected: Offset,
        /// The base offset of the batch.
        found: Offset,
    },
    /// The append's leader epoch is older than one the log has already seen; nothing was appended.
    #[error("leader epoch {found} is older than {current}")]
    StaleLeaderEpoch {
        /// The newest epoch in the log.
        current: LeaderEpoch,
        /// The epoch of the append.
        found: LeaderEpoch,
    },
    /// The producer's sequence number leaves a gap or goes back; nothing was appended.
    #[error("producer {producer_id} sent sequence {found} after {last}")]
    OutOfOrderSequence {
        /// The producer.
        producer_id: ProducerId,
        /// The last sequence number appended, −1 at an epoch's start.
        last: i32,
        /// The first sequence number of the refused batch.
        found: i32,
    },
    /// A newer instance of the producer has taken over; nothing was appended.
    #[error("producer {producer_id} with epoch {found} is fenced by epoch {current}")]
    ProducerFenced {
        /// The producer.
        producer_id: ProducerId,
        /// The newest epoch seen.
        current: ProducerEpoch,
        /// The epoch of the refused batch.
        found: ProducerEpoch,
    },
    /// The batch does not fit the state of its producer's transaction; nothing was appended.
    #[error("producer {producer_id}: {problem}")]
    InvalidTransactionState {
        /// The producer.
        producer_id: ProducerId,
        /// What does not fit.
        problem: TransactionProblem,
    },
    /// A marker came from a transaction coordinator that has been replaced; nothing was appended.
    #[error("coordinator epoch {found} is older than {current}")]
    CoordinatorFenced {
        /// The newest coordinator epoch seen for the producer.
        current: i32,
        /// The epoch in the refused marker.
        found: i32,
    },
    /// The disk is full. What was half written has been taken back; the log goes on and the call can be retried.
    #[error("the disk that holds {path} is full")]
    StorageFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The file system takes no writes. The log goes on and the call can be retried.
    #[error("the file system that holds {path} is read-only")]
    ReadOnly {
        /// The file that could not be written, made or changed.
        path: PathBuf,
    },
    /// The process has no file descriptor left. The log goes on and the call can be retried.
    #[error("too many open files: cannot open {path}")]
    TooManyOpenFiles {
        /// The file that could not be opened.
        path: PathBuf,
    },
    /// The directory was taken offline by an earlier I/O error; it must be recovered by opening it again.
    #[error("directory {path} is offline: {reason}")]
    DirectoryOffline {
        /// The data directory.
        path: PathBuf,
        /// The error that took it offline.
        reason: String,
    },
    /// An I/O error. Where it came from writing, reading or syncing a log it has taken the directory offline.
    #[error("cannot {operation} {path}: {source}")]
    Io {
        /// What was tried.
        operation: Operation,
        /// On which file or directory.
        path: PathBuf,
        /// What the operating system said.
        r#source: io::Error,
    },
    /// Bytes that were once synced are not what was written. Nothing was changed.
    #[error("{path} is corrupt at byte {position}: {corruption}")]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where the damage was found, in bytes from the start of the file.
        position: u64,
        /// What is wrong.
        corruption: Corruption,
    },
    /// The directory of a log that had records is gone. Nothing was made in its place.
    #[error(
        "{path} is gone, and {partition} had records up to offset {end}: put the directory back, or delete the topic to give them up"
    )]
    Vanished {
        /// Whose log it was.
        partition: TopicPartition,
        /// The directory.
        path: PathBuf,
        /// Up to where the log was known to have records.
        end: Offset,
    },
    /// The log has been deleted or closed.
    #[error("the log of {partition} is closed")]
    LogClosed {
        /// Whose log it was.
        partition: TopicPartition,
    },
    /// A log of this partition exists already.
    #[error("{partition} has a log already")]
    LogExists {
        /// The partition.
        partition: TopicPartition,
    },
    /// There is no log of this partition here.
    #[error("{partition} has no log here")]
    UnknownLog {
        /// The partition.
        partition: TopicPartition,
    },
    /// A topic name that may not become a directory name.
    #[error("{name:?} is not a topic name: 1 to 249 of a-z A-Z 0-9 . _ - are, and not . or ..")]
    InvalidTopicName {
        /// The name.
        name: String,
    },
    /// Another process holds the data directory.
    #[error("{path} is in use by {}{}", holder(*pid), address.as_deref().map(|a| format!(" at {a}")).unwrap_or_default())]
    DirectoryHeld {
        /// The data directory.
        path: PathBuf,
        /// The process that holds it, 0 when it has not said yet or somebody has removed the file that says so.
        pid: u32,
        /// Where it listens, once it does.
        address: Option<String>,
    },
    /// The directory holds something, but nothing that says it is a data directory.
    #[error("{path} is foreign: it holds {found:?} but is no data directory; name an empty or a new one")]
    NotADataDirectory {
        /// The directory.
        path: PathBuf,
        /// Something that is in it.
        found: String,
    },
    /// The directory belongs to another cluster.
    #[error("{path} belongs to cluster {found}, not to {expected}")]
    ForeignDirectory {
        /// The data directory.
        path: PathBuf,
        /// The cluster the directory belongs to.
        found: Uuid,
        /// The cluster this node is in.
        expected: Uuid,
    },
    /// The directory was written by a newer version.
    #[error("{path} has format {found}; this version reads up to {supported}: use a newer thalweg")]
    NewerFormat {
        /// The file that says so.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The newest one known.
        supported: u32,
    },
}

/// What was tried when an I/O error came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opening or creating a file.
    Open,
    /// Creating a directory.
    CreateDirectory,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Making a file shorter or longer.
    Truncate,
    /// Syncing a file or directory.
    Sync,
    /// Renaming.
    Rename,
    /// Removing.
    Remove,
    /// Listing a directory.
    List,
    /// Taking the lock file.
    Lock,
}

/// How a process is called that holds a directory.
fn holder(pid: u32) -> String {
    if pid == 0 { "another process".to_owned() } else { format!("process {pid}") }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::CreateDirectory => "create",
            Self::Read => "read",
            Self::Write => "write",
            Self::Truncate => "truncate",
            Self::Sync => "sync",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::List => "list",
            Self::Lock => "lock",
        })
    }
}

/// How a batch and the state of its producer's transaction disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionProblem {
    /// A transaction is open and the batch is outside of it.
    #[error("a batch outside of its open transaction")]
    NotTransactional,
    /// The transaction was not verified with its coordinator, or has ended since (KIP-890).
    #[error("a transactional batch whose transaction is not verified")]
    NotVerified,
}

/// What is wrong with bytes on disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corruption {
    /// A batch below the synced-to offset is malformed or fails its CRC.
    #[error("the batch expected at offset {expected} is damaged: {problem}")]
    Batch {
        /// The offset at which it should begin.
        expected: Offset,
        /// What is wrong with it.
        problem: RecordError,
    },
    /// Offsets are missing or come twice.
    #[error("offset {expected} is expected but {found} follows")]
    Gap {
        /// The offset expected.
        expected: Offset,
        /// The offset found.
        found: Offset,
    },
    /// The log ends before the offset up to which it was synced.
    #[error("the log ends at {end} but was synced up to {synced_to}")]
    EndsEarly {
        /// Where it ends.
        end: Offset,
        /// Up to where it was synced.
        synced_to: Offset,
    },
    /// A file that is not what its name says.
    #[error("{what}")]
    Malformed {
        /// What was expected instead.
        what: &'static str,
    },
}

impl Error {
    /// Tells a full disk, a read-only one and exhausted descriptors, which pass, from the I/O errors that do not. A sync that finds
    /// the disk full has lost what it was to make last, which does not pass.
    pub(crate) fn io(operation: Operation, path: &Path, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) if operation != Operation::Sync => {
                Self::StorageFull { path: path.to_owned() }
            }
            Some(libc::EROFS) if operation != Operation::Sync => Self::ReadOnly { path: path.to_owned() },
            Some(libc::EMFILE | libc::ENFILE) => Self::TooManyOpenFiles { path: path.to_owned() },
            _ => Self::Io { operation, path: path.to_owned(), source },
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether this is what [`CachedOnly`](crate::filesystem::CachedOnly) says of what is on disk only.
    pub(crate) fn is_not_cached(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::WouldBlock)
    }

    /// Whether the same call may succeed later without anything being repaired.
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::StorageFull { .. } | Self::ReadOnly { .. } | Self::TooManyOpenFiles { .. })
    }
}
