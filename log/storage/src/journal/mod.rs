//! The journal of sync rounds: one write in place of a sync of each log. See `docs/formats/journal.md`.
//!
//! The thread that carries out a round [gathers](Journal::gather) the logs that have little unsynced and
//! [writes](Journal::write) it. Beside it one thread does the [upkeep](Journal::run): makes files, and syncs the segments of
//! a full one so that it can be used again.

mod buffer;
mod choose;
mod fields;
mod files;
mod header;
mod record;
mod replay;
mod round;
mod scan;
mod upkeep;
mod write;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

#[cfg(test)]
pub(crate) use choose::MOST_TAIL_BYTES;
pub(crate) use choose::Need;
pub(crate) use record::Entry;
pub(crate) use replay::{Replayed, replay, replay_one};
pub(crate) use round::JournalRound;
pub(crate) use write::Gathered;

use self::buffer::AlignedBuffer;
use self::files::{FIRST_RECORD, JournalFile};
use self::record::BLOCK;
use crate::environment::Environment;
use crate::error::Error;
use crate::filesystem::StoredFile;
use crate::log::Log;
use crate::segment::Segment;
use crate::synced_to::SyncedTo;

/// So many syncs must be replaced within a second for the first file to be made: a program that writes little shall not pay
/// for it with disk space.
const PAYING_SYNCS: u64 = 100;
const PAYING_TIME: Duration = Duration::from_secs(1);

/// How the journal is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalSettings {
    /// How many files it has at most.
    pub(crate) files: usize,
    /// The size of each; it is rounded to whole blocks.
    pub(crate) file_bytes: u64,
    /// A secret that every record repeats.
    pub(crate) salt: u64,
}

/// The journal of a data directory.
pub(crate) struct Journal {
    directory: PathBuf,
    environment: Environment,
    checkpoint: Arc<SyncedTo>,
    settings: JournalSettings,
    /// The first round of this process.
    run: JournalRound,
    /// Guards the file that is being filled; held by whoever writes a round, over the write. Taken after the lock of a log
    /// that lets only one sync it.
    filling: Mutex<Filling>,
    /// Guards which files there are and what is known of the rounds; held for a few instructions. Taken after `filling`.
    state: Mutex<State>,
    /// Signalled when there may be upkeep.
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Filling {
    current: Option<Used>,
    buffer: AlignedBuffer,
}

/// A file with records.
#[derive(Debug)]
struct Used {
    file: JournalFile,
    /// Where the next record will stand.
    position: u64,
    /// The segments that must be synced before it can be used again, by their address.
    owing: HashMap<usize, Owing>,
}

/// A segment that lacks what the journal has.
#[derive(Clone, Debug)]
struct Owing {
    log: Arc<Log>,
    segment: Arc<Segment>,
    /// Its file, which may have been deleted or renamed.
    file: StoredFile,
    /// The last round that has an entry of it.
    round: JournalRound,
}

#[derive(Debug)]
struct State {
    /// Files that can be used, the one that waits longest first.
    free: VecDeque<JournalFile>,
    /// Whether there is one that is being filled.
    has_current: bool,
    /// Files whose segments are to be synced, oldest first. No more than there are files.
    full: VecDeque<Used>,
    /// How many files there are, and how many there may be.
    files: usize,
    most_files: usize,
    /// Whether the rounds have been such that a file pays.
    pays: bool,
    /// How many syncs a record would have replaced since when.
    replaced: (u64, Instant),
    /// Whether a round found no file free.
    was_refused: bool,
    /// Whether nothing may be written any more: the file system refuses what it should not.
    is_retired: bool,
    /// How many records were written, and how many when the checkpoint was last told.
    records: u64,
    records_told: u64,
    /// Whether the current file has entries that segments lack.
    is_owing: bool,
    /// Until when nothing is tried again after a failure that passes.
    paused_until: Option<Instant>,
    last_tick: Instant,
    is_stopping: bool,
}

impl Journal {
    /// Takes over what files there are, none of which counts any more. Those of another size are removed, as are more than
    /// there may be.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn open(
        data_directory: &Path,
        settings: JournalSettings,
        checkpoint: Arc<SyncedTo>,
        environment: Environment,
    ) -> Result<Self, Error> {
        let settings = JournalSettings { file_bytes: whole_blocks(settings.file_bytes), ..settings };
        let directory = data_directory.join(files::DIRECTORY);
        files::remove_unfinished(&directory, &environment)?;
        let mut free = VecDeque::new();
        for found in files::find(&directory, true, &environment)? {
            let number = found.path.file_name().and_then(|name| name.to_str()?.parse::<usize>().ok());
            let fits = found.len == settings.file_bytes && number.is_some_and(|n| n < settings.files);
            match if fits { JournalFile::open(&found.path, &environment)? } else { None } {
                Some(file) => free.push_back(file),
                None => environment.remove(&found.path)?,
            }
        }
        let now = Instant::now();
        let state = State {
            files: free.len(),
            most_files: settings.files,
            free,
            has_current: false,
            full: VecDeque::new(),
            pays: false,
            replaced: (0, now),
            was_refused: false,
            is_retired: false,
            records: 0,
            records_told: 0,
            is_owing: false,
            paused_until: None,
            last_tick: now,
            is_stopping: false,
        };
        let run = checkpoint.journal_round().next();
        Ok(Self {
            directory,
            environment,
            checkpoint,
            settings,
            run,
            filling: Mutex::default(),
            state: Mutex::new(state),
            wake: Condvar::new(),
        })
    }

    /// Removes the journal of a directory that is to have none; nothing in it counts any more.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn remove(data_directory: &Path, environment: &Environment) -> Result<(), Error> {
        let directory = data_directory.join(files::DIRECTORY);
        files::remove_unfinished(&directory, environment)?;
        let found = files::find(&directory, true, environment)?;
        for found in &found {
            environment.remove(&found.path)?;
        }
        if found.is_empty() { Ok(()) } else { environment.remove(&directory) }
    }

    /// Ends [`run`](Self::run).
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.wake.notify_all();
    }

    /// Lets go of the logs, when nobody will write any more: they hold the rounds, which hold this.
    pub(crate) fn forget(&self) {
        let current = self.filling.lock().current.take();
        let full = std::mem::take(&mut self.state.lock().full);
        drop((current, full));
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// The size of a file: at least the headers and a record.
fn whole_blocks(bytes: u64) -> u64 {
    let least = FIRST_RECORD + BLOCK as u64;
    bytes.max(least) / BLOCK as u64 * BLOCK as u64
}
