//! The lock on a data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;

use crate::directory::Holder;
use crate::error::{Error, Operation};

/// How often a lock is tried.
const ATTEMPTS: usize = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);

/// The directory and the lock file in it, locked as long as this lives. The operating system unlocks them when the process
/// ends, however it ends. They bypass the file system's seam: they are not about what lasts.
///
/// The file says who holds the directory. It may be removed by whoever takes it for a leftover, and with it goes its lock; that
/// of the directory stays. Where a file system does not lock directories, the file's has to do.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    /// Only held.
    _directory: Option<File>,
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
        let held = || {
            let Holder { pid, address } = File::open(&path).map(read_holder).unwrap_or(UNKNOWN);
            Error::DirectoryHeld { path: directory.to_owned(), pid, address }
        };
        let opened = File::open(directory).map_err(|source| Error::io(Operation::Lock, directory, source))?;
        let locked_directory = match patiently(|| opened.try_lock()) {
            Ok(()) => Some(opened),
            Err(TryLockError::WouldBlock) => return Err(held()),
            Err(TryLockError::Error(source)) if is_unsupported(&source) => None,
            Err(TryLockError::Error(source)) => {
                return Err(Error::io(Operation::Lock, directory, source));
            }
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match patiently(|| file.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held()),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let lock = Self { path, _directory: locked_directory, file: Mutex::new(file) };
        lock.write(None)?;
        Ok(lock)
    }

    /// Who holds the lock of a directory, if anybody does.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn holder(directory: &Path) -> Result<Option<Holder>, Error> {
        let path = directory.join(Self::FILE);
        let said = match existing(&path)? {
            Some(file) if is_held(&file, &path)? => return Ok(Some(read_holder(file))),
            Some(file) => Some(file),
            None => None,
        };
        match existing(directory)? {
            Some(opened) if is_held(&opened, directory)? => Ok(Some(said.map_or(UNKNOWN, read_holder))),
            _ => Ok(None),
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

/// A holder of whom nothing is known.
const UNKNOWN: Holder = Holder { pid: 0, address: None };

/// Tries more than once: whoever only looks who holds the lock holds it for a moment, too.
fn patiently(attempt: impl Fn() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_ATTEMPTS),
            other => return other,
        }
    }
    attempt()
}

/// A file or directory, if there is one.
fn existing(path: &Path) -> Result<Option<File>, Error> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io(Operation::Lock, path, source)),
    }
}

/// Whether somebody has locked it.
fn is_held(file: &File, path: &Path) -> Result<bool, Error> {
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) if is_unsupported(&source) => Ok(false),
        Err(TryLockError::Error(source)) => Err(Error::io(Operation::Lock, path, source)),
    }
}

/// Whether the file system has no such locks, as network file systems may have none on directories.
fn is_unsupported(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBADF | libc::EINVAL | libc::ENOLCK | libc::EOPNOTSUPP))
}

fn read_holder(mut file: File) -> Holder {
    let mut text = String::new();
    // What cannot be read says nothing, like what has not been written yet.
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
    let field = |name| text.lines().find_map(|line| line.strip_prefix(name));
    Holder {
        pid: field("pid: ").and_then(|pid| pid.parse().ok()).unwrap_or(0),
        address: field("address: ").map(str::to_owned),
    }
}
