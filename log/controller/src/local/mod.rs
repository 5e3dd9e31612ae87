//! The driver for one node: a log on the local disk.

mod disk;
mod frame;
mod log_file;
mod names;
mod queue;
mod recovery;
mod stopped;
mod worker;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};

use thalweg_protocol::{Offset, Uuid};

pub use disk::{Disk, DiskDirectory, DiskFile, OsDisk};
use log_file::LogFile;
use queue::Queue;
use recovery::Recovered;
use worker::Worker;

use crate::command::Command;
use crate::config::LocalConfig;
use crate::controller::Controller;
use crate::driver::{Done, Driver};
use crate::error::Error;
use crate::state_machine::StateMachine;

/// Commands that are applied at once when a log is replayed.
const REPLAYED_AT_ONCE: usize = 1_024;

/// Writes commands to a log on the local disk, a round of them with each fsync, and applies them then.
///
/// Who proposes waits in a queue; one thread takes all that waits, writes and syncs it, applies and answers
/// it.
pub struct LocalDriver {
    queue: Arc<Queue>,
    worker: ThreadId,
    /// Held by whoever waits for the end of the thread: it is joined once, and nobody passes before that.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LocalDriver {
    /// Makes the metadata of a new cluster in `dir`, which is created if need be, and opens it. Metadata that
    /// is there is left as it is, and is an error, unless it is that of a cluster to which nothing has
    /// happened: then the node has crashed when it started for the first time.
    pub fn create(
        disk: Arc<dyn Disk>,
        dir: &Path,
        cluster_id: Uuid,
        config: LocalConfig,
    ) -> Result<Controller, Error> {
        disk.create_dir(dir).map_err(|source| Error::io("create", dir, source))?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            let synced = disk.open_dir(parent).and_then(|mut parent| parent.sync());
            synced.map_err(|source| Error::io("sync", parent, source))?;
        }
        if !recovery::is_unused(&*disk, dir)? {
            return Err(Error::AlreadyFormatted { dir: dir.to_owned() });
        }
        LogFile::create(&*disk, dir, cluster_id, Offset(0))
            .map_err(|error| Error::io("create the metadata log in", dir, error.into_source()))?;
        Self::open(disk, dir, cluster_id, config)
    }

    /// Opens the metadata that [`create`](Self::create) has made in `dir`. What a crash has left half done is
    /// finished or undone; anything else that is not as it was written is an error.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        cluster_id: Uuid,
        config: LocalConfig,
    ) -> Result<Controller, Error> {
        let Recovered { state, snapshot_bytes, entries, log: path, tail, leftovers } =
            recovery::recover(&*disk, dir, cluster_id)?;
        if tail.torn > 0 {
            let (log, bytes) = (path.display(), tail.torn);
            tracing::warn!(%log, bytes, "the end of the metadata log, cut by a crash, is dropped");
        }
        let log = LogFile::open(&*disk, &path, tail).map_err(|source| Error::io("open", &path, source))?;
        for leftover in leftovers {
            disk.remove(&leftover).map_err(|source| Error::io("remove", &leftover, source))?;
        }
        let machine = Arc::new(StateMachine::new(state));
        for entries in entries.chunks(REPLAYED_AT_ONCE) {
            machine.apply(entries);
        }
        let queue = Arc::new(Queue::new(dir.to_owned(), config.clone()));
        let worker = Worker {
            queue: Arc::clone(&queue),
            machine: Arc::clone(&machine),
            disk,
            dir: dir.to_owned(),
            config,
            log,
            snapshot_bytes,
            failed_at: 0,
        };
        let thread = thread::Builder::new()
            .name("metadata-log".to_owned())
            .spawn(move || worker.run())
            .map_err(|source| Error::io("start a thread for", dir, source))?;
        let driver = Self { queue, worker: thread.thread().id(), thread: Mutex::new(Some(thread)) };
        Ok(Controller::new(machine, driver))
    }
}

impl Driver for LocalDriver {
    fn propose(&self, command: Command, done: Done) {
        self.queue.push(command, done);
    }

    fn close(&self) {
        self.queue.close();
        // An answer or an observer may close the log: then this is the thread itself, which ends by itself.
        if thread::current().id() == self.worker {
            return;
        }
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the metadata log had failed");
        }
    }
}

impl Drop for LocalDriver {
    fn drop(&mut self) {
        self.close();
    }
}
