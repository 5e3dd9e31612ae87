//! All logs of a data directory.

mod create;
mod delete;
mod open;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use thalweg_protocol::{Offset, TopicPartition, Uuid};

use self::open::{
    CLEAN_SHUTDOWN, Opener, log_directories, offline_log, open_journal, take_clean_marker, tell_of_opened,
    vanished,
};
pub(crate) use self::open::{CLEAN_SHUTDOWN_FILE, remove_tree_gradually};
use self::threads::on_threads;
use crate::config::{LogConfig, ManagerConfig};
use crate::directory::DataDirectory;
use crate::error::Error;
use crate::flush::{RoundHold, SyncListener, SyncRounds};
use crate::journal::{Gathered, Journal, Replayed, replay, replay_one};
use crate::log::{Log, Standing};
use crate::partition_name::directory_name;
use crate::synced_to::{Recorded, SyncedTo};

/// How long the directory of a deleted log remains whose settings are not known, in ms: time to notice a mistake.
const DELETE_DELAY_MS: i64 = 60_000;

/// Logs are made and closed by one more thread for each this many: these wait for the disk, which answers many at once as
/// fast as one.
const LOGS_PER_THREAD: usize = 8;

/// The standing of a log that has no records.
const NOTHING: Standing =
    Standing { synced_to: Some(Offset(0)), log_start: Offset(0), high_watermark: Offset(0), is_clean: false };

/// What the checkpoint says of a log that has no records: whatever the journal says is of another one of the name.
fn nothing(topic_id: Uuid, checkpoint: &SyncedTo) -> Recorded {
    Recorded { topic_id, standing: NOTHING, void_to: checkpoint.journal_round() }
}

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
    /// Dropped first: nothing is written any more when the directory is let go.
    rounds: OnceLock<SyncRounds>,
    directory: Arc<DataDirectory>,
    checkpoint: Arc<SyncedTo>,
    journal: Option<Arc<Journal>>,
    /// Guards the table, which is read often and changed rarely; held for a look-up.
    logs: RwLock<BTreeMap<TopicPartition, Arc<Log>>>,
    /// Held while a log is created or deleted, so that two threads do not do so with one directory. Taken before
    /// `logs`.
    changes: Mutex<Changes>,
}

#[derive(Debug, Default)]
struct Changes {
    offline: BTreeMap<TopicPartition, OfflineLog>,
    /// Those of them that have not got what the journal has.
    unreplayed: BTreeSet<TopicPartition>,
    /// Directories of deleted logs, with the time in ms of the monotonic clock from which they may be removed.
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
    /// When the directory itself, its checkpoint or its journal cannot be read.
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
        let Replayed { last_round, failed } = replay(path, &found, &mut standings, is_clean, environment)?;
        standings.retain(|partition, recorded| {
            found.contains_key(partition) || recorded.had_records() && recorded.topic_id != Uuid::ZERO
        });
        let checkpoint = SyncedTo::create(path, standings.clone(), last_round, environment.clone())?;
        let checkpoint = Arc::new(checkpoint);
        let opener =
            Opener { environment, standings: &standings, checkpoint: &checkpoint, is_clean, config_of };
        let whole = found.iter().filter(|(partition, _)| !failed.contains_key(partition)).collect();
        let (logs, mut offline) = opener.open_all(whole, config.recovery_threads)?;
        for (partition, recorded) in standings.iter().filter(|(partition, _)| !found.contains_key(partition))
        {
            offline.insert(partition.clone(), vanished(path, partition, recorded)?);
        }
        let unreplayed: BTreeSet<TopicPartition> = failed.keys().cloned().collect();
        for (partition, error) in failed {
            let log = offline_log(partition.clone(), &found[&partition], error, environment);
            offline.insert(log.partition.clone(), log);
        }
        let is_told = tell_of_opened(&logs, &standings, &unreplayed, &checkpoint)?;
        // Until every entry is void the journal stays as it is.
        let journal = match is_told && unreplayed.is_empty() {
            true => open_journal(path, &config, &checkpoint, environment)?,
            false => None,
        };
        let changes = Changes { offline, unreplayed, ..Changes::default() };
        Ok(Self {
            checkpoint,
            journal,
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
            let (checkpoint, journal) = (Arc::clone(&self.checkpoint), self.journal.clone());
            SyncRounds::with_checkpoint(threads, listener, Some(checkpoint), journal)
        });
        self.logs().iter().for_each(|log| rounds.attach(log));
    }

    /// Has what this thread appends share one round, which the drop of the hold sees to.
    pub fn hold_round(&self) -> RoundHold<'_> {
        self.rounds.get().map_or(RoundHold::none(), SyncRounds::hold)
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
        let environment = self.directory.environment();
        let path = self.directory.path().join(directory_name(partition)?);
        let mut standings = self.checkpoint.standings();
        if changes.unreplayed.contains(partition) {
            let line = standings.get_mut(partition);
            replay_one(self.directory.path(), partition, &path, line, environment)?;
        }
        let (standings, checkpoint) = (&standings, &self.checkpoint);
        let config_of = &|_: &_, _| config.clone();
        let opener = Opener { environment, standings, checkpoint, is_clean: false, config_of };
        let log = opener.open(partition, &path)?;
        changes.unreplayed.remove(partition);
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

    /// Removes the directories of deleted logs that are due; when the disk is full all of them, and the files of deleted
    /// segments. To be called every second or so, on a thread that may block. Errors are logged.
    pub fn remove_deleted(&self) {
        let environment = self.directory.environment();
        let now_ms = environment.clock.monotonic_ms();
        let is_needed = environment.health.is_short_of_space();
        let is_due = |(due_ms, _): &mut (i64, PathBuf)| *due_ms <= now_ms || is_needed;
        let due: Vec<_> = self.changes.lock().deleted.extract_if(.., is_due).collect();
        let mut has_removed = false;
        for (_, path) in due {
            match remove_tree_gradually(&path, environment) {
                Ok(()) => has_removed = true,
                Err(error) => {
                    tracing::warn!(directory = %path.display(), %error, "a deleted log is not removed yet");
                    self.changes.lock().deleted.push((now_ms.saturating_add(DELETE_DELAY_MS), path));
                }
            }
        }
        for log in if is_needed { self.logs() } else { Vec::new() } {
            match log.remove_trash(now_ms) {
                Ok(is_any) => has_removed |= is_any,
                Err(error) => {
                    tracing::warn!(partition = %log.partition(), %error, "deleted segments are not removed yet");
                }
            }
        }
        // Not before: on a full disk what is removed goes at once, not bit by bit.
        if has_removed {
            environment.health.space_was_made();
        }
    }

    /// The logs are about to be closed: what is being removed bit by bit goes at once.
    pub fn hurry(&self) {
        self.directory.environment().health.set_closing();
    }

    /// Syncs every log and writes the checkpoint, on the calling thread: a round by hand.
    ///
    /// # Errors
    /// The first I/O error.
    pub fn sync_all(&self) -> Result<(), Error> {
        for log in self.logs() {
            match log.sync() {
                Ok(_) => {
                    self.checkpoint.record(log.partition(), || log.recorded_while_open())?;
                }
                Err(Error::LogClosed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.checkpoint.sync()
    }

    /// Carries out a round on the calling thread, as the sync threads do: through the journal where that pays. The checkpoint
    /// is not told.
    ///
    /// # Errors
    /// The first I/O error.
    pub fn sync_round(&self) -> Result<(), Error> {
        let mut logs = self.logs();
        logs.retain(|log| log.is_unsynced());
        let Some(journal) = &self.journal else {
            return logs.iter().try_for_each(|log| log.sync().map(|_| ()));
        };
        let Gathered { captured, direct } = journal.gather(&logs);
        let refused = journal.write(captured, |_, _| {});
        self.directory.environment().health.check()?;
        direct.into_iter().chain(refused).try_for_each(|log| log.sync().map(|_| ()))
    }

    /// Does by hand what a thread of the [rounds](Self::start_sync_rounds) does for the journal now and then: makes files,
    /// as if they paid, syncs the segments that full ones have entries of, and tells the checkpoint.
    ///
    /// # Errors
    /// The first I/O error.
    pub fn keep_up_journal(&self) -> Result<(), Error> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.run_once())
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
        let logs = self.logs();
        let closed = on_threads(logs.len() / LOGS_PER_THREAD, &logs, |log| log.close());
        let mut result = Ok(());
        for (log, closed) in logs.iter().zip(closed) {
            // An error that does not pass counts for more than a full disk.
            result = match (result, closed) {
                (Ok(()) | Err(Error::StorageFull { .. }), Err(error)) => Err(error),
                (result, _) => result,
            };
            if result.is_ok() {
                result = self.checkpoint.record(log.partition(), || Some(log.recorded()));
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
