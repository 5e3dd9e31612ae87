//! The directory of an application's state on this machine.
//!
//! ```text
//! <state_dir>/<application_id>/lock        held while the application runs
//! <state_dir>/<application_id>/process     the process id: 32 hexadecimal digits, made once
//! <state_dir>/<application_id>/0_3/        the database of task 3 of sub-topology 0
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::backend::Backend;
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
        Ok(Self {
            path,
            process_id,
            kind: config.state,
            #[cfg(feature = "rocksdb")]
            shared: RocksShared::new(config.state_memory_bytes / 2),
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
    pub(crate) fn backend(&self, task: TaskId, has_stores: bool) -> Result<Arc<dyn Backend>, Error> {
        let kind = if has_stores { self.kind } else { StateKind::Memory };
        match kind {
            StateKind::Memory => Ok(Arc::new(MemoryBackend::default())),
            #[cfg(feature = "rocksdb")]
            StateKind::RocksDb => {
                let backend = RocksBackend::open(&self.task_path(task), &self.shared);
                match backend {
                    Ok(backend) => Ok(Arc::new(backend)),
                    Err(reason) => Err(Error::State { task, store: String::new(), reason }),
                }
            }
        }
    }

    /// Deletes the state of a task, which must be closed.
    pub(crate) fn drop_task(&self, task: TaskId) -> Result<(), Error> {
        let path = self.task_path(task);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::StateFile { path, source }),
            _ => Ok(()),
        }
    }
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
}
