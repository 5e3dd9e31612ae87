//! Deleting logs, and keeping those that are in the way of others.

use std::path::PathBuf;
use std::slice;

use thalweg_protocol::{TopicPartition, Uuid};

use super::{Changes, DELETE_DELAY_MS, LogManager, nothing};
use crate::error::Error;
use crate::partition_name::{DELETED_DIRECTORY, STRAY_DIRECTORY, directory_name, former_directory_name};
use crate::synced_to::Recorded;

impl LogManager {
    /// Deletes a partition's log, online or not: its directory is renamed, which is lasting when this
    /// returns, and removed by [`remove_deleted`](Self::remove_deleted) after the log's `file_delete_delay_ms`. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// [`Error::UnknownLog`]; I/O errors.
    pub fn delete(&self, partition: &TopicPartition) -> Result<(), Error> {
        match self.delete_all(slice::from_ref(partition))?.pop() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// The same for many. Returns those that could not be deleted, and why.
    ///
    /// # Errors
    /// An I/O error that keeps the deletions from lasting.
    pub fn delete_all(&self, partitions: &[TopicPartition]) -> Result<Vec<(TopicPartition, Error)>, Error> {
        let environment = self.directory.environment();
        let mut changes = self.changes.lock();
        let mut failed = Vec::new();
        for partition in partitions {
            let delay_ms =
                self.log(partition).map_or(DELETE_DELAY_MS, |log| log.config().file_delete_delay_ms);
            match self.rename(&mut changes, partition, DELETED_DIRECTORY) {
                Ok(Some(to)) => {
                    let due_ms = environment.clock.monotonic_ms().saturating_add(delay_ms);
                    changes.deleted.push((due_ms, to));
                }
                Ok(None) => {}
                Err(error) => failed.push((partition.clone(), error)),
            }
        }
        if failed.len() < partitions.len() {
            environment.sync_directory(self.directory.path())?;
        }
        Ok(failed)
    }

    /// Takes a partition's log, online or not, out of the way of another of its name: its directory is renamed, which is
    /// lasting when this returns, and stays for whoever wants to look at it. Returns where it is; `None` if it was gone
    /// already. Blocks on the disk.
    ///
    /// # Errors
    /// [`Error::UnknownLog`]; I/O errors.
    pub fn set_aside(&self, partition: &TopicPartition) -> Result<Option<PathBuf>, Error> {
        if let Some(log) = self.log(partition) {
            log.sync()?;
        }
        let to = self.rename(&mut self.changes.lock(), partition, STRAY_DIRECTORY)?;
        self.directory.environment().sync_directory(self.directory.path())?;
        Ok(to)
    }

    /// Closes a log and renames its directory. Returns the new name; `None` if it was gone.
    fn rename(
        &self,
        changes: &mut Changes,
        partition: &TopicPartition,
        kind: &str,
    ) -> Result<Option<PathBuf>, Error> {
        let environment = self.directory.environment();
        self.check_open(changes, partition)?;
        let log = self.log(partition);
        let topic_id = match (&log, changes.offline.get(partition)) {
            (Some(log), _) => log.topic_id(),
            (None, Some(offline)) => offline.topic_id.unwrap_or(Uuid::ZERO),
            (None, None) => return Err(Error::UnknownLog { partition: partition.clone() }),
        };
        let path = self.directory.path().join(directory_name(partition)?);
        // Before the log is closed: without a descriptor for this it goes on.
        let to = self.free_name(partition, topic_id, kind)?;
        if let Some(log) = log {
            log.close_unsynced();
        }
        let is_gone = match environment.rename(&path, &to) {
            // It was gone when the directory was opened.
            Err(error) if error.is_not_found() && changes.offline.contains_key(partition) => true,
            other => other.map(|()| false)?,
        };
        self.logs.write().remove(partition);
        changes.offline.remove(partition);
        // Where this does not get into the file, the topic's id tells that another log of the name is not this one.
        // It makes no entries of the journal void: as long as the new name does not last the log may come back.
        let void_to = self.checkpoint.void_to(partition);
        let line = Recorded { void_to, ..nothing(topic_id, &self.checkpoint) };
        if let Err(error) = self.checkpoint.record(partition, || Some(line)) {
            tracing::debug!(%partition, %error, "the checkpoint still mentions a deleted log");
        }
        self.checkpoint.forget(partition);
        Ok((!is_gone).then_some(to))
    }

    /// A name that no former log has, of which there may be several of the same partition.
    fn free_name(&self, partition: &TopicPartition, topic_id: Uuid, kind: &str) -> Result<PathBuf, Error> {
        let mut number = u128::from_be_bytes(topic_id.0);
        loop {
            let path = self.directory.path().join(former_directory_name(partition, number, kind));
            match self.directory.environment().list(&path) {
                Ok(_) => number = number.wrapping_add(1),
                Err(error) if error.is_not_found() => return Ok(path),
                Err(error) => return Err(error),
            }
        }
    }
}
