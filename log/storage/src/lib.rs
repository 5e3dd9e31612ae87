//! The storage engine of the log: segments, indexes, recovery, retention, compaction and rounds of syncs.
//!
//! Synchronous: no tokio, and no message of the protocol is known here. The seams to the world are [`Filesystem`]
//! and [`Clock`]. The files are Kafka's byte for byte; `docs/formats/` draws them.

mod batch_scan;
mod cleaner;
mod clock;
mod config;
mod directory;
mod environment;
mod error;
mod filesystem;
mod flush;
mod gradual_removal;
mod index;
mod journal;
mod leader_epochs;
mod lock;
mod log;
mod manager;
mod pacing;
mod partition_name;
mod producers;
mod segment;
mod swiftness;
mod synced_to;
pub mod testing;
mod unwritten;

pub use cleaner::{Cleaner, CleaningReport};
pub use clock::{Clock, SystemClock};
pub use config::{CleanerConfig, CleanupPolicy, Durability, LogConfig, ManagerConfig, TimestampType};
pub use directory::{DataDirectory, Holder, Identity};
pub use environment::{DirectoryHealth, Environment};
pub use error::{Corruption, Error, Operation, TransactionProblem};
pub use filesystem::{
    DirectoryEntry, DiskFilesystem, Filesystem, OpenFiles, OpenMode, Reservation, StoredFile,
};
pub use flush::{RoundHold, SyncListener, SyncRounds};
pub use log::{
    AbortedTransaction, ActiveProducer, AppendInfo, AppendOrigin, EpochEnd, FollowerAppendInfo, Log,
    MarkerAppend, ReadBound, ReadInfo, Standing, TimeQuery, TimestampOffset, TransactionResult,
    VerificationGuard,
};
pub use manager::{LogManager, OfflineLog};
pub use unwritten::UnwrittenMemory;
