//! Opening what lies in a data directory.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_protocol::{TopicPartition, Uuid};

use super::OfflineLog;
use super::threads::on_threads;
use crate::config::{LogConfig, ManagerConfig};
use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::gradual_removal;
use crate::journal::{Journal, JournalSettings};
use crate::log::{Log, METADATA_FILE, Standing, read_topic_id};
use crate::partition_name::{DELETED_DIRECTORY, directory_name, parse_directory_name};
use crate::segment::{FileKind, parse_file_name};
use crate::synced_to::{Recorded, Standings, SyncedTo};

pub(crate) const CLEAN_SHUTDOWN_FILE: &str = "clean-shutdown";
pub(super) const CLEAN_SHUTDOWN: &[u8] = b"thalweg clean-shutdown 1\n";

/// Opens logs on several threads.
pub(super) struct Opener<'a> {
    pub(super) environment: &'a Environment,
    pub(super) standings: &'a Standings,
    pub(super) checkpoint: &'a Arc<SyncedTo>,
    pub(super) is_clean: bool,
    pub(super) config_of: &'a (dyn Fn(&TopicPartition, Option<Uuid>) -> LogConfig + Sync),
}

type Opened = (BTreeMap<TopicPartition, Arc<Log>>, BTreeMap<TopicPartition, OfflineLog>);

impl Opener<'_> {
    pub(super) fn open_all(
        &self,
        listed: BTreeMap<&TopicPartition, &PathBuf>,
        threads: usize,
    ) -> Result<Opened, Error> {
        let listed: Vec<(&TopicPartition, &PathBuf)> = listed.into_iter().collect();
        let results = on_threads(threads, &listed, |(partition, path)| self.open(partition, path));
        let (mut logs, mut offline) = Opened::default();
        for (&(partition, path), result) in listed.iter().zip(results) {
            match result {
                Ok(log) => {
                    logs.insert(partition.clone(), log);
                }
                // What a full disk keeps from being opened can still be deleted to make room.
                Err(error @ (Error::Corrupt { .. } | Error::StorageFull { .. })) => {
                    tracing::error!(%partition, %error, "a log cannot be opened and is offline");
                    let log = offline_log(partition.clone(), path, error, self.environment);
                    offline.insert(log.partition.clone(), log);
                }
                Err(error) => return Err(error),
            }
        }
        Ok((logs, offline))
    }

    pub(super) fn open(&self, partition: &TopicPartition, path: &Path) -> Result<Arc<Log>, Error> {
        let topic_id = self.topic_id(partition, path)?;
        let config = (self.config_of)(partition, Some(topic_id));
        let known = self.standings.get(partition).map(|recorded| recorded.standing).unwrap_or_default();
        let standing = Standing { is_clean: self.is_clean && known.synced_to.is_some(), ..known };
        let checkpoint = Some(Arc::clone(self.checkpoint));
        Log::open_with(path, partition.clone(), topic_id, config, standing, self.environment, checkpoint)
            .map(|(log, _)| log)
    }

    /// The topic that a log belongs to, by the file in its directory and by the checkpoint, which is told before a log is
    /// made. A log of another topic than the metadata knows is deleted, so that one damaged file must not decide.
    fn topic_id(&self, partition: &TopicPartition, directory: &Path) -> Result<Uuid, Error> {
        let recorded = self.standings.get(partition).map(|recorded| recorded.topic_id);
        let recorded = recorded.filter(|id| *id != Uuid::ZERO);
        let what = match (read_topic_id(directory, self.environment)?, recorded) {
            (Some(found), Some(recorded)) if found != recorded => {
                "it names another topic than the checkpoint does: put the right file back, or delete the topic"
            }
            (Some(found), _) => return Ok(found),
            (None, Some(recorded)) => {
                tracing::warn!(%partition, "the file with the topic's id is gone; it is written anew from the checkpoint");
                return Ok(recorded);
            }
            (None, None) => "it is gone, and nothing else names the topic: put it back, or delete the topic",
        };
        let corruption = Corruption::Malformed { what };
        Err(Error::Corrupt { path: directory.join(METADATA_FILE), position: 0, corruption })
    }
}

/// A log that cannot be opened.
pub(super) fn offline_log(
    partition: TopicPartition,
    directory: &Path,
    error: Error,
    environment: &Environment,
) -> OfflineLog {
    // Where it is the file with the id which is damaged nobody knows whose log it is.
    let is_about_the_id = matches!(&error, Error::Corrupt { path, .. } if path.ends_with(METADATA_FILE));
    let topic_id = match is_about_the_id {
        true => None,
        false => read_topic_id(directory, environment).unwrap_or_default(),
    };
    OfflineLog { partition, topic_id, error: Arc::new(error) }
}

/// Tells the checkpoint how the logs were found, and that what the journal says of them is void. Returns whether that lasts:
/// on a full disk the checkpoint stays as it is.
pub(super) fn tell_of_opened(
    logs: &BTreeMap<TopicPartition, Arc<Log>>,
    standings: &Standings,
    unreplayed: &BTreeSet<TopicPartition>,
    checkpoint: &SyncedTo,
) -> Result<bool, Error> {
    let void_to = checkpoint.journal_round();
    let told = standings.iter().try_for_each(|(partition, &recorded)| {
        if unreplayed.contains(partition) || logs.contains_key(partition) {
            return Ok(());
        }
        // It cannot be opened, but it has got what the journal had of it.
        checkpoint.record(partition, || Some(Recorded { void_to, ..recorded }))
    });
    let told = told.and_then(|()| {
        logs.values().try_for_each(|log| checkpoint.record(log.partition(), || Some(log.recorded())))
    });
    match told.and_then(|()| checkpoint.sync()) {
        Ok(()) => Ok(true),
        Err(error @ Error::StorageFull { .. }) => {
            // What it says is true, if not the newest.
            tracing::warn!(%error, "the checkpoint stays as it is");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The journal of a directory in which none of the entries counts any more; `None` where there is to be none.
pub(super) fn open_journal(
    directory: &Path,
    config: &ManagerConfig,
    checkpoint: &Arc<SyncedTo>,
    environment: &Environment,
) -> Result<Option<Arc<Journal>>, Error> {
    if config.journal_files == 0 {
        Journal::remove(directory, environment)?;
        return Ok(None);
    }
    let settings = JournalSettings {
        files: config.journal_files,
        file_bytes: config.journal_file_bytes,
        // Nothing depends on it but that nobody can guess it.
        salt: RandomState::new().hash_one(directory),
    };
    let journal = Journal::open(directory, settings, Arc::clone(checkpoint), environment.clone())?;
    Ok(Some(Arc::new(journal)))
}

/// A log whose directory is gone, by what the checkpoint says of it.
pub(super) fn vanished(
    directory: &Path,
    partition: &TopicPartition,
    recorded: &Recorded,
) -> Result<OfflineLog, Error> {
    let Standing { synced_to, high_watermark, .. } = recorded.standing;
    let error = Error::Vanished {
        partition: partition.clone(),
        path: directory.join(directory_name(partition)?),
        end: synced_to.unwrap_or_default().max(high_watermark),
    };
    let topic_id = Some(recorded.topic_id);
    Ok(OfflineLog { partition: partition.clone(), topic_id, error: Arc::new(error) })
}

/// The directories of logs. Those of deleted logs, and of logs that were being made, are removed.
pub(super) fn log_directories(
    path: &Path,
    environment: &Environment,
) -> Result<BTreeMap<TopicPartition, PathBuf>, Error> {
    let mut found = BTreeMap::new();
    for entry in environment.list(path)?.into_iter().filter(|entry| entry.is_directory) {
        let directory = path.join(&entry.name);
        if entry.name.ends_with(DELETED_DIRECTORY) {
            remove_tree(&directory, environment)?;
        } else if let Some(partition) = parse_directory_name(&entry.name) {
            if is_half_made(&directory, environment)? {
                remove_tree(&directory, environment)?;
            } else {
                found.insert(partition, directory);
            }
        }
    }
    Ok(found)
}

/// Whether the directory holds neither the topic's id nor batches.
fn is_half_made(directory: &Path, environment: &Environment) -> Result<bool, Error> {
    if read_topic_id(directory, environment).is_ok_and(|id| id.is_some()) {
        return Ok(false);
    }
    Ok(!has_batches(directory, environment)?)
}

/// Whether the directory exists and a file of batches in it is not empty.
pub(super) fn has_batches(directory: &Path, environment: &Environment) -> Result<bool, Error> {
    let entries = match environment.list(directory) {
        Err(error) if error.is_not_found() => return Ok(false),
        other => other?,
    };
    let is_log = |name: &str| matches!(parse_file_name(name), Some((_, FileKind::Log)));
    Ok(entries.iter().any(|entry| entry.len > 0 && is_log(&entry.name)))
}

/// Whether the last stop was an orderly one; the marker is gone, lastingly, when this returns.
pub(super) fn take_clean_marker(path: &Path, environment: &Environment) -> Result<bool, Error> {
    let marker = path.join(CLEAN_SHUTDOWN_FILE);
    let Some(content) = environment.read_whole(&marker)? else { return Ok(false) };
    environment.remove(&marker)?;
    environment.sync_directory(path)?;
    Ok(content == CLEAN_SHUTDOWN)
}

/// Removes a directory and what is in it, if it exists.
pub(super) fn remove_tree(path: &Path, environment: &Environment) -> Result<(), Error> {
    remove_tree_by(path, environment, &|file, _| environment.remove(file))
}

/// The same, bit by bit.
pub(crate) fn remove_tree_gradually(path: &Path, environment: &Environment) -> Result<(), Error> {
    remove_tree_by(path, environment, &|file, len| gradual_removal::remove(file, len, environment))
}

/// `remove` takes a file and its length.
fn remove_tree_by(
    path: &Path,
    environment: &Environment,
    remove: &dyn Fn(&Path, u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let entries = match environment.list(path) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let inner = path.join(&entry.name);
        match entry.is_directory {
            true => remove_tree_by(&inner, environment, remove)?,
            false => remove(&inner, entry.len)?,
        }
    }
    environment.remove(path)
}
