//! All logs of a data directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use thalweg_protocol::{Offset, TopicPartition, Uuid};

use crate::config::{LogConfig, ManagerConfig};
use crate::directory::DataDirectory;
use crate::environment::Environment;
use crate::error::Error;
use crate::flush::{SyncListener, SyncRounds};
use crate::log::{Log, Standing, read_topic_id};
use crate::partition_name::{
    DELETED_DIRECTORY, deleted_directory_name, directory_name, parse_directory_name,
};
use crate::segment::{FileKind, parse_file_name};
use crate::synced_to::{Recorded, Standings, SyncedTo};

pub(crate) const CLEAN_SHUTDOWN_FILE: &str = "clean-shutdown";
const CLEAN_SHUTDOWN: &[u8] = b"thalweg clean-shutdown 1\n";

/// How long the directory of a deleted log remains, in ms: time to notice a mistake.
const DELETE_DELAY_MS: i64 = 60_000;

/// The standing of a log that has no records.
const NOTHING: Standing =
    Standing { synced_to: Some(Offset(0)), log_start: Offset(0), high_watermark: Offset(0), is_clean: false };

/// A log that could not be opened. Its files, where it has any, are left as they are.
#[derive(Clone, Debug)]
pub struct OfflineLog {
    /// Whose log.
    pub partition: TopicPartition,
    /// The topic it belongs to; `None` where that cannot be read either.
    pub topic_id: Option<Uuid>,
    /// Why.
    pub error: Arc<Error>,
}

/// Opens, creates, finds, deletes and closes the logs of one data directory.
#[derive(Debug)]
pub struct LogManager {
    directory: Arc<DataDirectory>,
    checkpoint: Arc<SyncedTo>,
    /// Guards the table, which is read often and changed rarely; held for a look-up.
    logs: RwLock<BTreeMap<TopicPartition, Arc<Log>>>,
    /// Held while a log is created or deleted, so that two threads do not do so with one directory. Taken before
    /// `logs`.
    changes: Mutex<Changes>,
    rounds: OnceLock<SyncRounds>,
}

#[derive(Debug, Default)]
struct Changes {
    offline: BTreeMap<TopicPartition, OfflineLog>,
    /// Directories of deleted logs, with the time in ms since 1970 from which they may be removed.
    deleted: Vec<(i64, PathBuf)>,
    is_closed: bool,
}

impl LogManager {
    /// Opens every log in the directory, several at a time, and finishes what a crash left half done.
    /// `config_of` gives the settings of a partition, whose topic id is `None` where `partition.metadata` is lost.
    ///
    /// A log that is corrupt does not stop the others: see [`offline_logs`](Self::offline_logs).
    ///
    /// # Errors
    /// When the directory itself or its checkpoint cannot be read.
    pub fn open(
        directory: Arc<DataDirectory>,
        config: ManagerConfig,
        config_of: &(dyn Fn(&TopicPartition, Option<Uuid>) -> LogConfig + Sync),
    ) -> Result<Self, Error> {
        let environment = directory.environment();
        environment.health.check()?;
        let path = directory.path();
        let is_clean = take_clean_marker(path, environment)?;
        let mut standings = SyncedTo::read(path, environment)?;
        let found = log_directories(path, environment)?;
        standings.retain(|partition, recorded| {
            found.contains_key(partition) || recorded.had_records() && recorded.topic_id != Uuid::ZERO
        });
        let checkpoint = Arc::new(SyncedTo::create(path, standings.clone(), environment.clone())?);
        let opener =
            Opener { environment, standings: &standings, checkpoint: &checkpoint, is_clean, config_of };
        let (logs, mut offline) = opener.open_all(&found, config.recovery_threads)?;
        for (partition, recorded) in standings.iter().filter(|(partition, _)| !found.contains_key(partition))
        {
            offline.insert(partition.clone(), vanished(path, partition, recorded)?);
        }
        let recorded = logs
            .values()
            .try_for_each(|log| checkpoint.record(log.partition(), log.topic_id(), || Some(log.standing())));
        match recorded.and_then(|()| checkpoint.sync()) {
            // What it says is true, if not the newest.
            Err(error @ Error::StorageFull { .. }) => tracing::warn!(%error, "the checkpoint stays as it is"),
            other => other?,
        }
        let changes = Changes { offline, ..Changes::default() };
        Ok(Self {
            checkpoint,
            logs: RwLock::new(logs),
            changes: Mutex::new(changes),
            rounds: OnceLock::new(),
            directory,
        })
    }

    /// Starts the rounds of syncs on `threads` threads of their own: from now on every append to a log with
    /// [`Durability::Synced`](crate::Durability::Synced) joins the next round. To be called once; what is called
    /// later changes nothing.
    pub fn start_sync_rounds(&self, threads: usize, listener: SyncListener) {
        let _changes = self.changes.lock();
        let rounds = self.rounds.get_or_init(|| {
            SyncRounds::with_checkpoint(threads, listener, Some(Arc::clone(&self.checkpoint)))
        });
        self.logs().iter().for_each(|log| rounds.attach(log));
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
        let environment = self.directory.environment();
        let path = self.directory.path().join(directory_name(partition)?);
        let changes = self.changes.lock();
        self.check_open(&changes, partition)?;
        if self.log(partition).is_some() || changes.offline.contains_key(partition) {
            return Err(Error::LogExists { partition: partition.clone() });
        }
        // An earlier attempt that failed may have left something. Batches it has not.
        if has_batches(&path, environment)? {
            return Err(Error::LogExists { partition: partition.clone() });
        }
        remove_tree(&path, environment)?;
        // A line of an earlier log of this name must not be taken for this one's.
        self.checkpoint.record(partition, topic_id, || Some(NOTHING))?;
        self.checkpoint.sync()?;
        let checkpoint = Some(Arc::clone(&self.checkpoint));
        let standing = Standing::default();
        let log =
            Log::open_with(&path, partition.clone(), topic_id, config, standing, environment, checkpoint)?;
        if let Some(rounds) = self.rounds.get() {
            rounds.attach(&log);
        }
        self.logs.write().insert(partition.clone(), Arc::clone(&log));
        Ok(log)
    }

    /// Opens a log that a full disk kept from being opened, as [`open`](Self::open) would. Blocks on the disk.
    ///
    /// # Errors
    /// [`Error::UnknownLog`] when it was not that; as for [`Log::open`].
    pub fn reopen(&self, partition: &TopicPartition, config: LogConfig) -> Result<Arc<Log>, Error> {
        let mut changes = self.changes.lock();
        self.check_open(&changes, partition)?;
        if !changes.offline.get(partition).is_some_and(|offline| offline.error.is_retriable()) {
            return Err(Error::UnknownLog { partition: partition.clone() });
        }
        let opener = Opener {
            environment: self.directory.environment(),
            standings: &self.checkpoint.standings(),
            checkpoint: &self.checkpoint,
            is_clean: false,
            config_of: &|_, _| config.clone(),
        };
        let log = opener.open(partition, &self.directory.path().join(directory_name(partition)?))?;
        if let Some(rounds) = self.rounds.get() {
            rounds.attach(&log);
        }
        changes.offline.remove(partition);
        self.logs.write().insert(partition.clone(), Arc::clone(&log));
        Ok(log)
    }

    /// The log of a partition.
    pub fn log(&self, partition: &TopicPartition) -> Option<Arc<Log>> {
        self.logs.read().get(partition).cloned()
    }

    /// All logs, ordered by partition.
    pub fn logs(&self) -> Vec<Arc<Log>> {
        self.logs.read().values().cloned().collect()
    }

    /// The logs that could not be opened.
    pub fn offline_logs(&self) -> Vec<OfflineLog> {
        self.changes.lock().offline.values().cloned().collect()
    }

    /// The log of a partition, if it could not be opened.
    pub fn offline_log(&self, partition: &TopicPartition) -> Option<OfflineLog> {
        self.changes.lock().offline.get(partition).cloned()
    }

    /// Deletes a partition's log, online or not: its directory is renamed, which is lasting when this
    /// returns, and removed later by [`remove_deleted`](Self::remove_deleted). Blocks on the disk.
    ///
    /// # Errors
    /// [`Error::UnknownLog`]; I/O errors.
    pub fn delete(&self, partition: &TopicPartition) -> Result<(), Error> {
        let environment = self.directory.environment();
        let mut changes = self.changes.lock();
        self.check_open(&changes, partition)?;
        let topic_id = match (self.log(partition), changes.offline.get(partition)) {
            (Some(log), _) => {
                log.close_unsynced();
                log.topic_id()
            }
            (None, Some(offline)) => offline.topic_id.unwrap_or(Uuid::ZERO),
            (None, None) => return Err(Error::UnknownLog { partition: partition.clone() }),
        };
        let path = self.directory.path().join(directory_name(partition)?);
        let to = self.free_deleted_name(partition, topic_id)?;
        let is_gone = match environment.rename(&path, &to) {
            // It was gone when the directory was opened.
            Err(error) if error.is_not_found() && changes.offline.contains_key(partition) => true,
            other => other.map(|()| false)?,
        };
        self.logs.write().remove(partition);
        changes.offline.remove(partition);
        // Where this does not get into the file, the topic's id tells that another log of the name is not this one.
        if let Err(error) = self.checkpoint.record(partition, topic_id, || Some(NOTHING)) {
            tracing::debug!(%partition, %error, "the checkpoint still mentions a deleted log");
        }
        self.checkpoint.forget(partition);
        if is_gone {
            return Ok(());
        }
        let due_ms = environment.clock.now_ms().saturating_add(DELETE_DELAY_MS);
        changes.deleted.push((due_ms, to));
        environment.sync_directory(self.directory.path())
    }

    fn free_deleted_name(&self, partition: &TopicPartition, topic_id: Uuid) -> Result<PathBuf, Error> {
        let taken = self.directory.environment().list(self.directory.path())?;
        let first = u128::from_be_bytes(topic_id.0);
        let mut names = (0..).map(|n| deleted_directory_name(partition, first.wrapping_add(n)));
        let name = names.find(|name| taken.iter().all(|entry| entry.name != *name));
        Ok(self.directory.path().join(name.expect("a directory has fewer entries than there are names")))
    }

    /// Applies retention to every log. To be called every so often, on a thread that may block. Errors are logged, and
    /// those that matter take the directory offline.
    pub fn run_retention(&self) {
        for log in self.logs() {
            match log.apply_retention() {
                Ok(_) | Err(Error::LogClosed { .. }) => {}
                Err(error) => tracing::warn!(partition = %log.partition(), %error, "retention failed"),
            }
        }
    }

    /// Removes the directories of deleted logs that are due; all of them when the disk is full. To be called every second
    /// or so, on a thread that may block. Errors are logged.
    pub fn remove_deleted(&self) {
        let environment = self.directory.environment();
        let now_ms = environment.clock.now_ms();
        let is_needed = environment.health.is_short_of_space();
        let is_due = |(due_ms, _): &mut (i64, PathBuf)| *due_ms <= now_ms || is_needed;
        let due: Vec<_> = self.changes.lock().deleted.extract_if(.., is_due).collect();
        if !due.is_empty() {
            environment.health.space_was_made();
        }
        for (_, path) in due {
            if let Err(error) = remove_tree(&path, environment) {
                tracing::warn!(directory = %path.display(), %error, "a deleted log is not removed yet");
                self.changes.lock().deleted.push((now_ms.saturating_add(DELETE_DELAY_MS), path));
            }
        }
    }

    /// Syncs every log and writes the checkpoint, on the calling thread: a round by hand.
    ///
    /// # Errors
    /// The first I/O error.
    pub fn sync_all(&self) -> Result<(), Error> {
        for log in self.logs() {
            match log.sync() {
                Ok(_) => {
                    self.checkpoint.record(log.partition(), log.topic_id(), || log.standing_while_open())?;
                }
                Err(Error::LogClosed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.checkpoint.sync()
    }

    /// Syncs and closes every log, writes the checkpoint and the marker of a clean shutdown. Nothing can be done
    /// with the logs any more. On a full disk the logs are synced and the marker is left out: the next start recovers.
    ///
    /// # Errors
    /// The first I/O error; the next start recovers then.
    pub fn close(&self) -> Result<(), Error> {
        let mut changes = self.changes.lock();
        if std::mem::replace(&mut changes.is_closed, true) {
            return Ok(());
        }
        match self.close_logs(&changes) {
            Err(error @ Error::StorageFull { .. }) => {
                tracing::warn!(%error, "everything is synced, but the next start has to read the logs through");
                Ok(())
            }
            other => other,
        }
    }

    fn close_logs(&self, changes: &Changes) -> Result<(), Error> {
        let mut result = Ok(());
        for log in self.logs() {
            // An error that does not pass counts for more than a full disk.
            result = match (result, log.close()) {
                (Ok(()) | Err(Error::StorageFull { .. }), Err(error)) => Err(error),
                (result, _) => result,
            };
            if result.is_ok() {
                result = self.checkpoint.record(log.partition(), log.topic_id(), || Some(log.standing()));
            }
        }
        result.and_then(|()| self.checkpoint.sync())?;
        // The marker would make the next start trust what this one found corrupt.
        if !changes.offline.is_empty() {
            return Ok(());
        }
        let environment = self.directory.environment();
        environment.health.check()?;
        environment.replace_or_clear(&self.directory.path().join(CLEAN_SHUTDOWN_FILE), CLEAN_SHUTDOWN)?;
        environment.sync_directory(self.directory.path())
    }

    /// The data directory.
    pub fn directory(&self) -> &Arc<DataDirectory> {
        &self.directory
    }

    fn check_open(&self, changes: &Changes, partition: &TopicPartition) -> Result<(), Error> {
        if changes.is_closed {
            return Err(Error::LogClosed { partition: partition.clone() });
        }
        self.directory.environment().health.check()
    }
}

/// Opens logs on several threads.
struct Opener<'a> {
    environment: &'a Environment,
    standings: &'a Standings,
    checkpoint: &'a Arc<SyncedTo>,
    is_clean: bool,
    config_of: &'a (dyn Fn(&TopicPartition, Option<Uuid>) -> LogConfig + Sync),
}

type Opened = (BTreeMap<TopicPartition, Arc<Log>>, BTreeMap<TopicPartition, OfflineLog>);

impl Opener<'_> {
    fn open_all(&self, found: &BTreeMap<TopicPartition, PathBuf>, threads: usize) -> Result<Opened, Error> {
        let listed: Vec<(&TopicPartition, &PathBuf)> = found.iter().collect();
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::with_capacity(found.len()));
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, found.len().max(1)) {
                scope.spawn(|| {
                    while let Some(&(partition, path)) = listed.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = self.open(partition, path);
                        results.lock().push((partition.clone(), result));
                    }
                });
            }
        });
        let (mut logs, mut offline) = Opened::default();
        for (partition, result) in results.into_inner() {
            match result {
                Ok(log) => {
                    logs.insert(partition, log);
                }
                // What a full disk keeps from being opened can still be deleted to make room.
                Err(error @ (Error::Corrupt { .. } | Error::StorageFull { .. })) => {
                    tracing::error!(%partition, %error, "a log cannot be opened and is offline");
                    // Where it is that file which is damaged nobody knows whose log it is.
                    let topic_id = read_topic_id(&found[&partition], self.environment).unwrap_or_default();
                    let log = OfflineLog { partition: partition.clone(), topic_id, error: Arc::new(error) };
                    offline.insert(partition, log);
                }
                Err(error) => return Err(error),
            }
        }
        Ok((logs, offline))
    }

    fn open(&self, partition: &TopicPartition, path: &Path) -> Result<Arc<Log>, Error> {
        let topic_id = read_topic_id(path, self.environment)?;
        let config = (self.config_of)(partition, topic_id);
        let known = self.standings.get(partition).map(|recorded| recorded.standing).unwrap_or_default();
        let standing = Standing { is_clean: self.is_clean && known.synced_to.is_some(), ..known };
        let checkpoint = Some(Arc::clone(self.checkpoint));
        Log::open_with(
            path,
            partition.clone(),
            topic_id.unwrap_or(Uuid::ZERO),
            config,
            standing,
            self.environment,
            checkpoint,
        )
    }
}

/// A log whose directory is gone, by what the checkpoint says of it.
fn vanished(directory: &Path, partition: &TopicPartition, recorded: &Recorded) -> Result<OfflineLog, Error> {
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
fn log_directories(
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
fn has_batches(directory: &Path, environment: &Environment) -> Result<bool, Error> {
    let entries = match environment.list(directory) {
        Err(error) if error.is_not_found() => return Ok(false),
        other => other?,
    };
    let is_log = |name: &str| matches!(parse_file_name(name), Some((_, FileKind::Log)));
    Ok(entries.iter().any(|entry| entry.len > 0 && is_log(&entry.name)))
}

/// Whether the last stop was an orderly one; the marker is gone, lastingly, when this returns.
fn take_clean_marker(path: &Path, environment: &Environment) -> Result<bool, Error> {
    let marker = path.join(CLEAN_SHUTDOWN_FILE);
    let Some(content) = environment.read_whole(&marker)? else { return Ok(false) };
    environment.remove(&marker)?;
    environment.sync_directory(path)?;
    Ok(content == CLEAN_SHUTDOWN)
}

/// Removes a directory and what is in it, if it exists.
fn remove_tree(path: &Path, environment: &Environment) -> Result<(), Error> {
    let entries = match environment.list(path) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let inner = path.join(&entry.name);
        if entry.is_directory { remove_tree(&inner, environment)? } else { environment.remove(&inner)? }
    }
    environment.remove(path)
}
