//! A file system that crashes.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::disk::{Disk, Fate};
use crate::filesystem::{DirectoryEntry, DiskFilesystem, Filesystem, OpenMode, Reservation, StoredFile};

/// Real files in a directory of its own, with a memory of what was synced: it can crash at any operation that
/// changes something, and then shows what the disk would have kept. It can also run full, run out of
/// descriptors, fail, or skip a sync.
#[derive(Debug)]
pub struct SimulatedFilesystem {
    root: PathBuf,
    /// Guards everything: one operation at a time.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    disk: Disk,
    performed: Vec<Performed>,
    has_crashed: bool,
    crash_at: Option<usize>,
    ignored_sync: Option<usize>,
    failure: Option<(usize, i32)>,
    is_full: bool,
    is_out_of_descriptors: bool,
    is_cold: bool,
    is_unreadable: bool,
    promises_no_space: bool,
    /// Up to where there is space for a file even when the disk is full, by its number.
    reserved: HashMap<u64, u64>,
}

/// What a crash leaves of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// All of it: the process was killed and the page cache lives on.
    Kept,
    /// None of it: the power went.
    Dropped,
    /// Any of it: some writes whole, some in part, some as zeros, some not at all, seeded.
    Torn(u64),
}

/// An operation that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A file or directory was made, or a file emptied by opening it.
    Create,
    /// Bytes were written.
    Write,
    /// Bytes were written to a file whose writes reach the disk before they return.
    WriteThrough,
    /// The length of a file was set.
    SetLen,
    /// A file was synced.
    Sync,
    /// A directory was synced.
    SyncDirectory,
    /// A file or directory was renamed.
    Rename,
    /// A file or directory was removed.
    Remove,
}

/// An operation that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    /// What was done.
    pub kind: OperationKind,
    /// To what, relative to the root.
    pub path: PathBuf,
    /// Whether a sync found anything to sync, or setting a length changed it; true for everything else.
    pub was_needed: bool,
    /// Where in the file bytes were written; 0 for everything else.
    pub position: u64,
}

impl fmt::Display for Performed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.path.display())
    }
}

/// Added to a file's number where what is written to it reaches the disk at once.
const THROUGH: u64 = 1 << 63;
/// What positions, lengths and memory must be multiples of then.
const BLOCK: usize = 4096;

/// What an operation is to do.
enum Order {
    Do,
    /// Do half of it, then fail with this error.
    Half(io::Error),
    /// Say it is done.
    Pretend,
}

impl SimulatedFilesystem {
    /// A file system in `root`, whose contents count as synced. Paths outside of it are an error.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let state = State {
            disk: Disk::load(&root),
            performed: Vec::new(),
            has_crashed: false,
            crash_at: None,
            ignored_sync: None,
            failure: None,
            is_full: false,
            is_out_of_descriptors: false,
            is_cold: false,
            is_unreadable: false,
            promises_no_space: false,
            reserved: HashMap::new(),
        };
        Self { root, state: Mutex::new(state) }
    }

    /// Crashes at the `n`th changing operation from 0: a write is half done, anything else is not done, and
    /// everything after it fails.
    pub fn crash_at(&self, n: usize) {
        self.state.lock().crash_at = Some(n);
    }

    /// The `n`th changing operation, which must be a sync, does nothing and says it did; or it must be a write that reaches the
    /// disk when it returns, and does not.
    pub fn ignore_sync(&self, n: usize) {
        self.state.lock().ignored_sync = Some(n);
    }

    /// The `n`th changing operation fails with this error number, a write after half of it.
    pub fn fail_at(&self, n: usize, errno: i32) {
        self.state.lock().failure = Some((n, errno));
    }

    /// From now on writes fail for want of space, after half of them, or no longer do.
    pub fn set_full(&self, is_full: bool) {
        self.state.lock().is_full = is_full;
    }

    /// From now on no space is reserved, as on a file system that cannot do that.
    pub fn promise_no_space(&self) {
        self.state.lock().promises_no_space = true;
    }

    /// From now on opening fails for want of descriptors, or no longer does.
    pub fn set_out_of_descriptors(&self, is_out: bool) {
        self.state.lock().is_out_of_descriptors = is_out;
    }

    /// From now on nothing is in the page cache, or everything is.
    pub fn set_cold(&self, is_cold: bool) {
        self.state.lock().is_cold = is_cold;
    }

    /// From now on reading a file fails as it does where the disk cannot, or no longer does.
    pub fn set_unreadable(&self, is_unreadable: bool) {
        self.state.lock().is_unreadable = is_unreadable;
    }

    /// The changing operations so far, failed ones included.
    pub fn performed(&self) -> Vec<Performed> {
        self.state.lock().performed.clone()
    }

    /// Ends this file system and leaves in the root what a crash would. Whatever still uses it gets errors.
    pub fn crash(&self, crash: Crash) {
        let mut state = self.state.lock();
        state.has_crashed = true;
        match crash {
            Crash::Kept => {}
            Crash::Dropped => state.disk.restore(&self.root, &mut Fate::Dropped),
            Crash::Torn(seed) => state.disk.restore(&self.root, &mut Fate::Random(seed)),
        }
    }

    fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).expect("only paths below the root are used")
    }
}

impl State {
    fn check(&self) -> io::Result<()> {
        if self.has_crashed { Err(io::Error::other("the machine has crashed")) } else { Ok(()) }
    }

    /// Counts an operation that changes something and says what is to become of it; whether there is space for a write for sure.
    fn begin(&mut self, kind: OperationKind, path: &Path, is_reserved: bool) -> io::Result<Order> {
        self.check()?;
        let n = self.performed.len();
        self.performed.push(Performed { kind, path: path.to_owned(), was_needed: true, position: 0 });
        if self.crash_at == Some(n) {
            self.has_crashed = true;
            return Ok(Order::Half(io::Error::other("the machine crashes")));
        }
        if let Some((at, errno)) = self.failure
            && at == n
        {
            return Ok(Order::Half(io::Error::from_raw_os_error(errno)));
        }
        if self.is_full && kind == OperationKind::Write && !is_reserved {
            return Ok(Order::Half(io::Error::from_raw_os_error(libc::ENOSPC)));
        }
        let is_sync = matches!(kind, OperationKind::Sync | OperationKind::SyncDirectory);
        Ok(if is_sync && self.ignored_sync == Some(n) { Order::Pretend } else { Order::Do })
    }

    /// The operation that was just begun.
    fn last(&mut self) -> &mut Performed {
        self.performed.last_mut().expect("it was just begun")
    }

    /// For operations that are done whole or not at all.
    fn begin_whole(&mut self, kind: OperationKind, path: &Path) -> io::Result<bool> {
        match self.begin(kind, path, false)? {
            Order::Do => Ok(true),
            Order::Pretend => Ok(false),
            Order::Half(error) => Err(error),
        }
    }
}

impl Filesystem for SimulatedFilesystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<StoredFile> {
        let mut state = self.state.lock();
        state.check()?;
        if state.is_out_of_descriptors {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let relative = self.relative(path);
        let existing = state.disk.find(relative);
        if mode == OpenMode::Create {
            state.begin_whole(OperationKind::Create, relative)?;
        }
        let is_through = mode == OpenMode::Through;
        // What is written through is read back by others, so it goes into the real file as everything does.
        let StoredFile { file, .. } =
            DiskFilesystem.open(path, if is_through { OpenMode::Write } else { mode })?;
        let id = match existing {
            Some(id) => {
                if mode == OpenMode::Create {
                    state.disk.set_len(id, 0);
                }
                id
            }
            None => state.disk.add_file(relative, file.clone()),
        };
        // One of its own, so that how many hold it says what it does on a real one.
        let file = Arc::new(file.try_clone()?);
        Ok(StoredFile { file, id: if is_through { id | THROUGH } else { id } })
    }

    fn read_at(&self, file: &StoredFile, out: &mut [u8], position: u64) -> io::Result<()> {
        {
            let state = self.state.lock();
            state.check()?;
            if state.is_unreadable {
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
        }
        DiskFilesystem.read_at(file, out, position)
    }

    fn read_cached_at(&self, file: &StoredFile, out: &mut [u8], position: u64) -> io::Result<bool> {
        let is_cold = self.state.lock().is_cold;
        if is_cold { Ok(false) } else { self.read_at(file, out, position).map(|()| true) }
    }

    fn write_at(&self, file: &StoredFile, parts: &mut [IoSlice<'_>], position: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let is_through = file.id & THROUGH != 0;
        let id = file.id & !THROUGH;
        let is_aligned = |number: usize| number.is_multiple_of(BLOCK);
        if is_through
            && !(is_aligned(position as usize)
                && parts.iter().all(|part| is_aligned(part.as_ptr() as usize) && is_aligned(part.len())))
        {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let path = state.disk.path_of(id);
        let is_reserved = state.reserved.get(&id).is_some_and(|to| position + bytes.len() as u64 <= *to);
        let is_ignored = state.ignored_sync == Some(state.performed.len());
        let kind = if is_through { OperationKind::WriteThrough } else { OperationKind::Write };
        let order = state.begin(kind, &path, is_reserved)?;
        state.last().position = position;
        let (result, len) = match order {
            Order::Half(error) => (Err(error), bytes.len() / 2),
            Order::Do | Order::Pretend => (Ok(()), bytes.len()),
        };
        DiskFilesystem.write_at(file, &mut [IoSlice::new(&bytes[..len])], position)?;
        if !is_through {
            bytes.truncate(len);
        }
        if is_through && result.is_ok() && !is_ignored {
            state.disk.wrote_through(id, position, &bytes);
        } else {
            // What goes past the page cache may reach the disk in any order, the last sector first.
            state.disk.wrote(id, position, bytes);
        }
        result
    }

    fn reserve(&self, file: &StoredFile, _from: u64, to: u64) -> io::Result<Reservation> {
        let mut state = self.state.lock();
        state.check()?;
        Ok(match (state.promises_no_space, state.is_full) {
            (true, _) => Reservation::Unsupported,
            (false, true) => Reservation::NoSpace,
            (false, false) => {
                state.reserved.insert(file.id, to);
                Reservation::Made
            }
        })
    }

    fn set_len(&self, file: &StoredFile, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.reserved.remove(&file.id);
        let path = state.disk.path_of(file.id);
        let is_needed = file.file.metadata()?.len() != len;
        state.begin_whole(OperationKind::SetLen, &path)?;
        state.last().was_needed = is_needed;
        DiskFilesystem.set_len(file, len)?;
        state.disk.set_len(file.id, len);
        Ok(())
    }

    fn sync(&self, file: &StoredFile) -> io::Result<()> {
        let mut state = self.state.lock();
        let path = state.disk.path_of(file.id);
        let is_needed = state.disk.has_unsynced(file.id);
        let is_real = state.begin_whole(OperationKind::Sync, &path)?;
        state.last().was_needed = is_needed;
        if is_real {
            state.disk.sync_file(file.id);
        }
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        // The directory that the root lies in is none of ours.
        let Ok(relative) = path.strip_prefix(&self.root) else { return state.check() };
        if state.is_out_of_descriptors {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        if state.begin_whole(OperationKind::SyncDirectory, relative)? {
            state.disk.sync_directory(relative);
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let (from_relative, to_relative) = (self.relative(from), self.relative(to));
        let Some(id) = state.disk.find(from_relative) else { return Err(io::ErrorKind::NotFound.into()) };
        state.begin_whole(OperationKind::Rename, to_relative)?;
        DiskFilesystem.rename(from, to)?;
        state.disk.set_names(&[(from_relative, None), (to_relative, Some(id))]);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check()?;
        let relative = self.relative(path);
        if state.disk.find(relative).is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.begin_whole(OperationKind::Remove, relative)?;
        DiskFilesystem.remove(path)?;
        state.disk.set_names(&[(relative, None)]);
        Ok(())
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check()?;
        let Ok(relative) = path.strip_prefix(&self.root) else {
            return DiskFilesystem.create_directory(path);
        };
        if relative.as_os_str().is_empty() || state.disk.find(relative).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.begin_whole(OperationKind::Create, relative)?;
        DiskFilesystem.create_directory(path)?;
        state.disk.add_directory(relative);
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirectoryEntry>> {
        let state = self.state.lock();
        state.check()?;
        if state.is_out_of_descriptors {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        DiskFilesystem.list(path)
    }
}
