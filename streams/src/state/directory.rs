//! The directory of an application's state on this machine.
//!
//! ```text
//! <state_dir>/<application_id>/lock        held while the application runs
//! <state_dir>/<application_id>/process     the process id: 32 hexadecimal digits, made once
//! <state_dir>/<application_id>/0_3/        the database of task 3 of sub-topology 0
//! <state_dir>/<application_id>/0_3.dropped/  one that is being deleted
//! ```

#[cfg(feature = "rocksdb")]
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "rocksdb")]
use std::sync::Weak;

#[cfg(feature = "rocksdb")]
use parking_lot::Mutex;

use super::backend::Backend;
#[cfg(feature = "rocksdb")]
use super::backend::BackendError;
use super::memory::MemoryBackend;
#[cfg(feature = "rocksdb")]
use super::rocksdb::{RocksBackend, RocksShared};
use crate::config::{StateKind, StreamsConfig};
use crate::error::Error;
use crate::program::TaskId;

/// The directory, held by this process.
pub(crate) struct StateDirectory {
    path: PathBuf,
    /// Identifies this instance of the application over restarts.
    process_id: String,
    kind: StateKind,
    #[cfg(feature = "rocksdb")]
    shared: RocksShared,
    /// Guards what tells whether a task's database is open, by anyone; held for a look.
    #[cfg(feature = "rocksdb")]
    in_use: Mutex<BTreeMap<TaskId, Weak<()>>>,
    /// Keeps others out; released when it is closed.
    _lock: File,
}

impl StateDirectory {
    /// Takes the directory for this process, and makes it if it is not there.
    pub(crate) fn open(config: &StreamsConfig) -> Result<Self, Error> {
        let path = config.state_dir.join(&config.application_id);
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::StateFile { path, source }
        };
        fs::create_dir_all(&path).map_err(failed(&path))?;
        let lock_path = path.join("lock");
        let lock = File::create(&lock_path).map_err(failed(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(Error::StateInUse { directory: path }),
            Err(fs::TryLockError::Error(source)) => return Err(Error::StateFile { path: lock_path, source }),
        }
        let process_path = path.join("process");
        let process_id = process_id(&process_path).map_err(failed(&process_path))?;
        finish_deletions(&path).map_err(failed(&path))?;
        Ok(Self {
            path,
            process_id,
            kind: config.state,
            #[cfg(feature = "rocksdb")]
            shared: RocksShared::new(config.state_memory_bytes / 2),
            #[cfg(feature = "rocksdb")]
            in_use: Mutex::default(),
            _lock: lock,
        })
    }

    /// The id of this instance of the application, which survives restarts.
    pub(crate) fn process_id(&self) -> &str {
        &self.process_id
    }

    fn task_path(&self, task: TaskId) -> PathBuf {
        self.path.join(task.to_string())
    }

    /// The tasks whose state lies here.
    pub(crate) fn tasks(&self) -> Vec<TaskId> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut tasks: Vec<TaskId> = names.filter_map(|name| name.parse().ok()).collect();
        tasks.sort();
        tasks
    }

    /// Opens the state of a task that has stores; without any, memory will do.
    ///
    /// # Errors
    /// [`Error::StateDamaged`] when it must be dropped; [`Error::StateHeld`] while somebody has it open.
    #[cfg_attr(not(feature = "rocksdb"), expect(unused_variables, reason = "state in memory has no place"))]
    pub(crate) fn backend(&self, task: TaskId, has_stores: bool) -> Result<Arc<dyn Backend>, Error> {
        let kind = if has_stores { self.kind } else { StateKind::Memory };
        match kind {
            StateKind::Memory => Ok(Arc::new(MemoryBackend::default())),
            #[cfg(feature = "rocksdb")]
            StateKind::RocksDb => {
                let mut in_use = self.in_use.lock();
                if in_use.get(&task).is_some_and(|in_use| in_use.strong_count() > 0) {
                    return Err(Error::StateHeld { task });
                }
                let store = String::new();
                match RocksBackend::open(&self.task_path(task), &self.shared) {
                    Ok(backend) => {
                        in_use.insert(task, backend.in_use());
                        Ok(Arc::new(backend))
                    }
                    Err(BackendError::Damaged(reason)) => Err(Error::StateDamaged { task, store, reason }),
                    Err(BackendError::Failed(reason)) => Err(Error::State { task, store, reason }),
                }
            }
        }
    }

    /// Deletes the state of a task, which must be closed.
    pub(crate) fn drop_task(&self, task: TaskId) -> Result<(), Error> {
        let path = self.task_path(task);
        // Renamed first, so that a crash in between leaves no half of a database where it is looked for.
        let doomed = self.path.join(format!("{task}{DROPPED}"));
        let dropped = remove(&doomed).and_then(|()| match fs::rename(&path, &doomed) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed.and_then(|()| remove(&doomed)),
        });
        dropped.map_err(|source| Error::StateFile { path, source })
    }
}

/// What the name of a task's directory ends in while it is being deleted.
const DROPPED: &str = ".dropped";

/// Deletes a directory that may be gone already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Deletes what an earlier process began to delete.
fn finish_deletions(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.ends_with(DROPPED)) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn process_id(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) if text.len() == 32 && text.bytes().all(|c| c.is_ascii_hexdigit()) => return Ok(text),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let id = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
    // A crash in between leaves the old file or the new one, never half of it.
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(id.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_held_by_one_and_keeps_its_id() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let config = StreamsConfig::new("app", root.path());
        let first = StateDirectory::open(&config).expect("free");
        let id = first.process_id().to_owned();
        assert!(matches!(StateDirectory::open(&config), Err(Error::StateInUse { .. })));
        let other = StateDirectory::open(&StreamsConfig::new("other", root.path())).expect("free");
        assert_ne!(other.process_id(), id);
        drop(first);
        let again = StateDirectory::open(&config).expect("free again");
        assert_eq!(again.process_id(), id);
    }

    #[cfg(feature = "rocksdb")]
    #[test]
    fn a_tasks_state_is_one_directory() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = StateDirectory::open(&StreamsConfig::new("app", root.path())).expect("free");
        let task = TaskId { subtopology: 1, partition: 12 };
        drop(directory.backend(task, true).expect("opened"));
        drop(directory.backend(TaskId { subtopology: 0, partition: 0 }, false).expect("opened"));
        assert_eq!(directory.tasks(), [task]);
        directory.drop_task(task).expect("deleted");
        directory.drop_task(task).expect("deleted already");
        assert_eq!(directory.tasks(), []);
    }

    #[cfg(feature = "rocksdb")]
    #[test]
    fn a_condemned_state_is_opened_by_nobody_until_it_is_dropped() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let config = StreamsConfig::new("app", root.path());
        let directory = StateDirectory::open(&config).expect("free");
        let task = TaskId { subtopology: 0, partition: 3 };
        let backend = directory.backend(task, true).expect("opened");
        backend.condemn("a block is not what it was");
        assert!(matches!(directory.backend(task, true), Err(Error::StateHeld { .. })));
        drop(backend);
        let is_refused = |directory: &StateDirectory| match directory.backend(task, true) {
            Err(Error::StateDamaged { reason, .. }) => reason == "a block is not what it was",
            _ => false,
        };
        assert!(is_refused(&directory));
        drop(directory);
        let directory = StateDirectory::open(&config).expect("free");
        assert!(is_refused(&directory), "a restart changes nothing");
        directory.drop_task(task).expect("deleted");
        let backend = directory.backend(task, true).expect("made anew");
        assert_eq!(backend.damage(), None);
    }

    #[test]
    fn a_deletion_that_was_cut_short_is_finished() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let config = StreamsConfig::new("app", root.path());
        let left = root.path().join("app").join("0_3.dropped");
        fs::create_dir_all(&left).expect("made");
        fs::write(left.join("000008.sst"), "left over").expect("written");
        let directory = StateDirectory::open(&config).expect("free");
        assert_eq!(directory.tasks(), []);
        assert!(!left.exists());
    }
}
