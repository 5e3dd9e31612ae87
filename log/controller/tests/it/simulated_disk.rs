//! A disk in memory that dies at a chosen operation, forgets what was not synced, fills up, or waits.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use thalweg_controller::{Disk, DiskDirectory, DiskFile};

#[derive(Clone, Default)]
pub struct SimulatedDisk {
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Condvar>,
}

#[derive(Default)]
struct Inner {
    dirs: BTreeSet<PathBuf>,
    files: BTreeMap<u64, Content>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    next_file: u64,
    operations: u64,
    dies_at: Option<u64>,
    file_syncs: u64,
    faults: Faults,
    gate: Gate,
}

#[derive(Clone, Default)]
struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
}

/// What else goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Syncs of files whose name ends so do nothing.
    pub skips_file_syncs: Option<&'static str>,
    /// Syncs of directories do nothing.
    pub skips_dir_syncs: bool,
    /// Syncs of files fail.
    pub fails_file_syncs: bool,
    /// Writes fail.
    pub fails_writes: bool,
    /// Bytes that fit on the disk.
    pub capacity: Option<usize>,
    /// The operation of this number, counted from 1, fails with this error of the system, and none else does.
    pub fails_once: Option<(u64, i32)>,
    /// Files cannot be made, with this error of the system.
    pub fails_creations: Option<i32>,
    /// Directories cannot be opened, with this error of the system.
    pub fails_opening_dirs: Option<i32>,
    /// Files cannot be removed.
    pub fails_removals: bool,
}

#[derive(Clone, Copy, Default)]
struct Gate {
    closed: bool,
    waiting: usize,
}

/// What a crash leaves of what was not synced.
#[derive(Clone, Copy, Debug)]
pub enum Survival {
    /// All of it: the process was killed, not the machine.
    All,
    /// Nothing.
    Nothing,
    /// Files have their length, and zeros in it.
    Zeros,
}

impl SimulatedDisk {
    /// A disk with these files, all in `dir`.
    pub fn with_files(dir: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Self {
        let disk = Self::default();
        disk.create_dir(dir).unwrap();
        for (path, bytes) in files {
            let mut file = disk.create(path).unwrap();
            file.write(bytes).unwrap();
            file.sync().unwrap();
        }
        disk.open_dir(dir).unwrap().sync().unwrap();
        disk
    }

    /// Every file and what is in it.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let inner = self.inner.lock().unwrap();
        inner.names.iter().map(|(path, id)| (path.clone(), inner.files[id].current.clone())).collect()
    }

    /// Dies at this operation, counted from now, and does only half of it if it is a write.
    pub fn die_at(&self, operation: u64) {
        let mut inner = self.inner.lock().unwrap();
        inner.dies_at = Some(inner.operations + operation);
    }

    /// How many operations there have been.
    pub fn operations(&self) -> u64 {
        self.inner.lock().unwrap().operations
    }

    pub fn is_dead(&self) -> bool {
        let inner = self.inner.lock().unwrap();
        inner.dies_at.is_some_and(|at| inner.operations >= at)
    }

    /// The disk after a crash.
    pub fn after_crash(&self, survival: Survival) -> Self {
        let inner = self.inner.lock().unwrap();
        let content = |Content { current, durable }: &Content| {
            let bytes = match survival {
                Survival::All => current.clone(),
                Survival::Nothing => durable.clone(),
                Survival::Zeros => {
                    let mut bytes = durable.clone();
                    bytes.resize(current.len().max(bytes.len()), 0);
                    bytes
                }
            };
            Content { current: bytes.clone(), durable: bytes }
        };
        let names = match survival {
            Survival::All => inner.names.clone(),
            Survival::Nothing | Survival::Zeros => inner.durable_names.clone(),
        };
        let survived = Inner {
            dirs: inner.dirs.clone(),
            files: inner.files.iter().map(|(&id, file)| (id, content(file))).collect(),
            durable_names: names.clone(),
            names,
            next_file: inner.next_file,
            ..Inner::default()
        };
        Self { inner: Arc::new(Mutex::new(survived)), changed: Arc::default() }
    }

    pub fn set_faults(&self, faults: Faults) {
        self.inner.lock().unwrap().faults = faults;
    }

    /// How often files were synced, in vain or not.
    pub fn file_syncs(&self) -> u64 {
        self.inner.lock().unwrap().file_syncs
    }

    /// Lets syncs of files wait.
    pub fn close_gate(&self) {
        self.inner.lock().unwrap().gate.closed = true;
    }

    /// Waits until a sync waits.
    pub fn await_sync(&self) {
        let inner = self.inner.lock().unwrap();
        drop(self.changed.wait_while(inner, |inner| inner.gate.waiting == 0).unwrap());
    }

    pub fn open_gate(&self) {
        self.inner.lock().unwrap().gate.closed = false;
        self.changed.notify_all();
    }

    fn step<T>(&self, act: impl FnOnce(&mut Inner) -> io::Result<T>) -> io::Result<T> {
        let mut inner = self.inner.lock().unwrap();
        match inner.operation() {
            Health::Alive => act(&mut inner),
            health => Err(health.error()),
        }
    }

    fn open(&self, id: u64, path: &Path) -> Box<dyn DiskFile> {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        Box::new(SimulatedFile { disk: self.clone(), id, name })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Alive,
    /// This operation fails.
    Failing(i32),
    /// It dies with this operation.
    Dying,
    Dead,
}

impl Health {
    fn error(self) -> io::Error {
        match self {
            Self::Failing(errno) => io::Error::from_raw_os_error(errno),
            _ => dead(),
        }
    }
}

impl Inner {
    fn operation(&mut self) -> Health {
        self.operations += 1;
        match self.dies_at {
            Some(at) if self.operations == at => Health::Dying,
            Some(at) if self.operations > at => Health::Dead,
            _ => match self.faults.fails_once {
                Some((at, errno)) if self.operations == at => Health::Failing(errno),
                _ => Health::Alive,
            },
        }
    }

    fn free(&self) -> usize {
        let used: usize = self.names.values().map(|id| self.files[id].current.len()).sum();
        self.faults.capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(used))
    }
}

fn dead() -> io::Error {
    io::Error::other("the disk is dead")
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk for SimulatedDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.step(|inner| {
            inner.dirs.insert(dir.to_owned());
            Ok(())
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let inner = self.inner.lock().unwrap();
        if !inner.dirs.contains(dir) {
            return Err(not_found());
        }
        let inside = inner.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let inner = self.inner.lock().unwrap();
        let id = inner.names.get(path).ok_or_else(not_found)?;
        Ok(inner.files[id].current.clone())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let id = self.step(|inner| {
            if let Some(errno) = inner.faults.fails_creations {
                return Err(io::Error::from_raw_os_error(errno));
            }
            let id = inner.next_file;
            inner.next_file += 1;
            inner.files.insert(id, Content::default());
            inner.names.insert(path.to_owned(), id);
            Ok(id)
        })?;
        Ok(self.open(id, path))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let id = *self.inner.lock().unwrap().names.get(path).ok_or_else(not_found)?;
        Ok(self.open(id, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|inner| {
            let id = inner.names.remove(from).ok_or_else(not_found)?;
            inner.names.insert(to.to_owned(), id);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(|inner| match inner.faults.fails_removals {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => inner.names.remove(path).map(drop).ok_or_else(not_found),
        })
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDirectory>> {
        self.step(|inner| match inner.faults.fails_opening_dirs {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        })?;
        Ok(Box::new(SimulatedDirectory { disk: self.clone(), path: dir.to_owned() }))
    }
}

struct SimulatedDirectory {
    disk: SimulatedDisk,
    path: PathBuf,
}

impl DiskDirectory for SimulatedDirectory {
    fn sync(&mut self) -> io::Result<()> {
        let dir = self.path.as_path();
        self.disk.step(|inner| {
            if !inner.faults.skips_dir_syncs {
                inner.durable_names.retain(|path, _| path.parent() != Some(dir));
                let inside = inner.names.iter().filter(|(path, _)| path.parent() == Some(dir));
                inner.durable_names.extend(inside.map(|(path, &id)| (path.clone(), id)));
            }
            Ok(())
        })
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    id: u64,
    /// What it was called when it was opened.
    name: String,
}

impl DiskFile for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.disk.inner.lock().unwrap();
        let health = inner.operation();
        let free = inner.free();
        let fails = health != Health::Alive || inner.faults.fails_writes;
        let written = match health {
            Health::Dead => 0,
            _ if fails => bytes.len() / 2,
            _ => bytes.len().min(free),
        };
        inner.files.get_mut(&self.id).unwrap().current.extend(&bytes[..written]);
        match () {
            () if fails => Err(health.error()),
            () if written < bytes.len() => Err(io::ErrorKind::StorageFull.into()),
            () => Ok(()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.disk.inner.lock().unwrap();
        if inner.gate.closed {
            inner.gate.waiting += 1;
            self.disk.changed.notify_all();
            inner = self.disk.changed.wait_while(inner, |inner| inner.gate.closed).unwrap();
            inner.gate.waiting -= 1;
        }
        inner.file_syncs += 1;
        let health = inner.operation();
        if health != Health::Alive || inner.faults.fails_file_syncs {
            return Err(health.error());
        }
        if !inner.faults.skips_file_syncs.is_some_and(|suffix| self.name.ends_with(suffix)) {
            let file = inner.files.get_mut(&self.id).unwrap();
            file.durable = file.current.clone();
        }
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.disk.step(|inner| {
            inner.files.get_mut(&self.id).unwrap().current.truncate(length as usize);
            Ok(())
        })
    }
}
