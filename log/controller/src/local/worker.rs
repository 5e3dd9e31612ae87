//! The thread that writes the log and applies what is in it.

use std::path::PathBuf;
use std::sync::Arc;

use thalweg_protocol::Offset;

use super::disk::Disk;
use super::log_file::{self, AppendError, LogFile, WriteError};
use super::names;
use super::queue::{Queue, Waiting};
use crate::config::LocalConfig;
use crate::driver::ProposeError;
use crate::state::ClusterState;
use crate::state_machine::{Entry, StateMachine};

/// Writes the log, one round after the other: all that waits is written, synced once, applied and answered,
/// while the next round collects.
pub(super) struct Worker {
    pub(super) queue: Arc<Queue>,
    pub(super) machine: Arc<StateMachine>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) config: LocalConfig,
    pub(super) log: LogFile,
    /// Bytes of the last snapshot.
    pub(super) snapshot_bytes: u64,
    /// The log's length at which a snapshot was last tried in vain.
    pub(super) failed_at: u64,
}

/// The log cannot be written any more.
struct Offline(String);

impl Worker {
    pub(super) fn run(mut self) {
        let reason = "the thread that writes it has failed".to_owned();
        let mut fall = Fall { queue: Arc::clone(&self.queue), reason };
        if let Err(Offline(reason)) = self.rounds() {
            tracing::error!(log = %self.log.path().display(), reason, "the metadata log goes offline");
            fall.reason = reason;
        }
    }

    fn rounds(&mut self) -> Result<(), Offline> {
        self.mark()?;
        while let Some(round) = self.queue.take() {
            self.carry_out(round)?;
            if self.queue.is_empty() {
                self.mark()?;
            }
            self.snapshot_if_due()?;
        }
        self.log.sync().map_err(|error| self.offline("synced", &error))?;
        self.note_stop()
    }

    /// The last word of an orderly stop: the next start finds it out if any of the log is gone.
    fn note_stop(&self) -> Result<(), Offline> {
        match self.log.note_stop(&*self.disk, &self.dir) {
            Ok(()) => Ok(()),
            Err(WriteError::NotNow(error)) => {
                tracing::warn!(dir = %self.dir.display(), %error, "where the metadata log ends is not noted");
                Ok(())
            }
            Err(WriteError::Failed(error)) => Err(self.offline("noted to end", &error)),
        }
    }

    fn carry_out(&mut self, round: Vec<Waiting>) -> Result<(), Offline> {
        let is_too_old = match self.begin_newer(&round) {
            Ok(()) => false,
            Err(WriteError::NotNow(error)) => {
                tracing::warn!(dir = %self.dir.display(), %error, "no newer metadata log for now");
                true
            }
            Err(WriteError::Failed(error)) => {
                return Err(self.give_up(round, "replaced by a snapshot", &error));
            }
        };
        let first = self.log.next();
        let commands = round.iter().filter_map(|waiting| waiting.encoded.as_deref());
        let appended = if is_too_old { Err(AppendError::Full) } else { self.log.append(commands) };
        let full = match appended {
            Ok(()) => false,
            Err(AppendError::Full) => true,
            Err(AppendError::Failed(error)) => return Err(self.give_up(round, "written", &error)),
        };
        if self.log.next() != first
            && let Err(error) = self.log.sync()
        {
            return Err(self.give_up(round, "synced", &error));
        }
        let mut next = first;
        let (mut entries, mut answers) = (Vec::with_capacity(round.len()), Vec::with_capacity(round.len()));
        for Waiting { command, encoded, done } in round {
            let offset = encoded.map(|_| next);
            if offset.is_some() && full {
                done.answer(Err(ProposeError::StorageFull { dir: self.dir.clone() }));
                continue;
            }
            next = next.plus(i64::from(offset.is_some()));
            entries.push(Entry { offset, command });
            answers.push(done);
        }
        let responses = self.machine.apply(&entries);
        for (done, response) in answers.into_iter().zip(responses) {
            done.answer(Ok(response));
        }
        Ok(())
    }

    /// Says how far the log is synced, which matters when the next command is long in coming. A full disk can
    /// do without.
    fn mark(&mut self) -> Result<(), Offline> {
        match self.log.mark() {
            Ok(()) | Err(AppendError::Full) => Ok(()),
            Err(AppendError::Failed(error)) => Err(self.offline("written", &error)),
        }
    }

    /// Begins a new log after a snapshot when this one is long. If that cannot be done now, the log grows on.
    fn snapshot_if_due(&mut self) -> Result<(), Offline> {
        let limit = self.config.snapshot_after_bytes.max(self.snapshot_bytes);
        if self.log.is_empty() || self.log.length() <= self.failed_at + limit {
            return Ok(());
        }
        match self.snapshot() {
            Ok(()) => Ok(()),
            Err(WriteError::NotNow(error)) => {
                tracing::warn!(dir = %self.dir.display(), %error, "no snapshot of the metadata for now");
                self.failed_at = self.log.length();
                Ok(())
            }
            Err(WriteError::Failed(error)) => Err(self.offline("replaced by a snapshot", &error)),
        }
    }

    /// Begins a new log after a snapshot when this one is of a format that does not have the commands of `round`.
    fn begin_newer(&mut self, round: &[Waiting]) -> Result<(), WriteError> {
        let written = round.iter().filter(|waiting| waiting.encoded.is_some());
        let newest = written.map(|waiting| waiting.command.format_version()).max().unwrap_or_default();
        if self.log.has_version(newest) { Ok(()) } else { self.snapshot() }
    }

    fn snapshot(&mut self) -> Result<(), WriteError> {
        let next = self.log.next();
        let state = self.machine.state().upgraded();
        assert_eq!(state.offset().plus(1), next, "everything in the log is applied");
        let bytes = state.to_snapshot();
        log_file::write_whole(&*self.disk, &self.dir.join(names::of(next, names::SNAPSHOT)), &bytes)?;
        self.log = LogFile::create(&*self.disk, &self.dir, state.cluster_id(), next)?;
        if state.metadata_version() > self.machine.state().metadata_version() {
            self.machine.install(ClusterState::clone(&state));
        }
        self.snapshot_bytes = bytes.len() as u64;
        self.failed_at = 0;
        if let Err(error) = self.remove_older(next) {
            // Nothing needs them, and the next start removes them.
            tracing::warn!(dir = %self.dir.display(), %error, "old files of the metadata stay for now");
        }
        let log = self.log.path().display();
        tracing::debug!(%log, bytes = bytes.len(), "the metadata log begins anew after a snapshot");
        Ok(())
    }

    /// Removes the snapshots and logs from before `next`.
    fn remove_older(&self, next: Offset) -> std::io::Result<()> {
        let older = |name: &&String| {
            let offset = names::parse(name, names::SNAPSHOT).or_else(|| names::parse(name, names::LOG));
            offset.is_some_and(|offset| offset < next)
        };
        for name in self.disk.list(&self.dir)?.iter().filter(older) {
            self.disk.remove(&self.dir.join(name))?;
        }
        Ok(())
    }

    /// Whether the commands of this round are in the log will be known when it is opened anew.
    fn give_up(&self, round: Vec<Waiting>, what: &str, error: &std::io::Error) -> Offline {
        for waiting in round {
            waiting.done.answer(Err(ProposeError::UnknownOutcome));
        }
        self.offline(what, error)
    }

    fn offline(&self, what: &str, error: &std::io::Error) -> Offline {
        Offline(format!("{} could not be {what}: {error}", self.log.path().display()))
    }
}

/// Sees to it that nobody waits for a thread that has ended, however it has.
struct Fall {
    queue: Arc<Queue>,
    reason: String,
}

impl Drop for Fall {
    fn drop(&mut self) {
        self.queue.go_offline(std::mem::take(&mut self.reason));
    }
}
