//! All logs of a data directory.

use std::sync::Arc;

use thalweg_protocol::{Offset, TopicPartition, Uuid};

use crate::config::{LogConfig, ManagerConfig};
use crate::directory::DataDirectory;
use crate::error::Error;
use crate::log::Log;

/// Called from a sync thread after each sync of a log: with the offset up to which it is synced now, or with
/// the error that took the directory offline. Must not block.
pub type SyncListener = Arc<dyn Fn(&Arc<Log>, Result<Offset, &Error>) + Send + Sync>;

/// A log that could not be opened. Its files are left as they are.
#[derive(Clone, Debug)]
pub struct OfflineLog {
    /// Whose log.
    pub partition: TopicPartition,
    /// Why.
    pub error: Arc<Error>,
}

/// Opens, creates, finds, deletes and closes the logs of one data directory.
#[derive(Debug)]
pub struct LogManager {}

impl LogManager {
    /// Opens every log in the directory, several at a time, and finishes what a crash left half done.
    /// `config_of` gives the settings of a partition, whose topic id is `None` where `partition.metadata` is lost.
    ///
    /// A log that cannot be opened does not stop the others: see [`offline_logs`](Self::offline_logs).
    ///
    /// # Errors
    /// When the directory itself or its checkpoint cannot be read.
    pub fn open(
        directory: Arc<DataDirectory>,
        config: ManagerConfig,
        config_of: &(dyn Fn(&TopicPartition, Option<Uuid>) -> LogConfig + Sync),
    ) -> Result<Self, Error> {
        unimplemented!()
    }

    /// Starts the rounds of syncs on `threads` threads of their own: from now on every append to a log with
    /// [`Durability::Synced`](crate::Durability::Synced) joins the next round. To be called once.
    pub fn start_sync_rounds(&self, threads: usize, listener: SyncListener) {
        unimplemented!()
    }

    /// Makes the log of a new partition. It lasts when this returns.
    ///
    /// # Errors
    /// [`Error::InvalidTopicName`], [`Error::LogExists`], I/O errors.
    pub fn create(
        &self,
        partition: &TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
    ) -> Result<Arc<Log>, Error> {
        unimplemented!()
    }

    /// The log of a partition.
    pub fn log(&self, partition: &TopicPartition) -> Option<Arc<Log>> {
        unimplemented!()
    }

    /// All logs, ordered by partition.
    pub fn logs(&self) -> Vec<Arc<Log>> {
        unimplemented!()
    }

    /// The logs that could not be opened.
    pub fn offline_logs(&self) -> Vec<OfflineLog> {
        unimplemented!()
    }

    /// Deletes a partition's log, online or not: its directory is renamed, which is lasting when this
    /// returns, and removed later by [`run_retention`](Self::run_retention).
    ///
    /// # Errors
    /// [`Error::UnknownLog`]; I/O errors.
    pub fn delete(&self, partition: &TopicPartition) -> Result<(), Error> {
        unimplemented!()
    }

    /// Applies retention to every log and removes the directories of deleted ones. To be called every so often,
    /// on a thread that may block.
    pub fn run_retention(&self) {
        unimplemented!()
    }

    /// Ends the rounds, syncs every log, writes the checkpoint and the marker of a clean shutdown.
    ///
    /// # Errors
    /// I/O errors; the next start recovers then.
    pub fn close(&self) -> Result<(), Error> {
        unimplemented!()
    }

    /// The data directory.
    pub fn directory(&self) -> &Arc<DataDirectory> {
        unimplemented!()
    }
}
