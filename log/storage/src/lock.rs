//! The lock on a data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;

use crate::directory::Holder;
use crate::error::{Error, Operation};

/// Whoever only looks who holds the lock holds it for a moment, too.
const ATTEMPTS: usize = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);

/// The lock file, locked as long as this lives. The operating system unlocks it when the process ends, however
/// it ends. It bypasses the file system's seam: it is not about what lasts.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    /// Guards what is written into the file.
    file: Mutex<File>,
}

impl Lock {
    /// The name of the lock file in its directory.
    pub(crate) const FILE: &str = "lock";
    /// What its content begins with.
    pub(crate) const BEGINNING: &str = "pid: ";

    /// Takes the lock of a directory that exists.
    ///
    /// # Errors
    /// [`Error::DirectoryHeld`]; I/O errors.
    pub(crate) fn take(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(Self::FILE);
        let failed = |source| Error::io(Operation::Lock, &path, source);
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        for attempt in 1.. {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => std::thread::sleep(BETWEEN_ATTEMPTS),
                Err(TryLockError::WouldBlock) => {
                    let Holder { pid, address } = read_holder(&mut file);
                    return Err(Error::DirectoryHeld { path: directory.to_owned(), pid, address });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        let lock = Self { path, file: Mutex::new(file) };
        lock.write(None)?;
        Ok(lock)
    }

    /// Who holds the lock of a directory, if anybody does.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn holder(directory: &Path) -> Result<Option<Holder>, Error> {
        let path = directory.join(Self::FILE);
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|source| Error::io(Operation::Lock, &path, source))?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(read_holder(&mut file))),
            Err(TryLockError::Error(source)) => Err(Error::io(Operation::Lock, &path, source)),
        }
    }

    /// Writes who holds the lock, for others to read.
    pub(crate) fn write(&self, address: Option<&str>) -> Result<(), Error> {
        let mut text = format!("pid: {}\n", std::process::id());
        if let Some(address) = address {
            text.push_str(&format!("address: {address}\n"));
        }
        let mut file = self.file.lock();
        let written = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64))
            .map_err(|source| Error::io(Operation::Write, &self.path, source));
        match written {
            // What holds is the lock, not what is in it.
            Err(Error::StorageFull { .. }) => {
                file.set_len(0).map_err(|source| Error::io(Operation::Truncate, &self.path, source))
            }
            other => other,
        }
    }
}

fn read_holder(file: &mut File) -> Holder {
    let mut text = String::new();
    // What cannot be read says nothing, like what has not been written yet.
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
    let field = |name| text.lines().find_map(|line| line.strip_prefix(name));
    Holder {
        pid: field("pid: ").and_then(|pid| pid.parse().ok()).unwrap_or(0),
        address: field("address: ").map(str::to_owned),
    }
}
