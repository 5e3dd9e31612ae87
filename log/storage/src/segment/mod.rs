//! A segment: a file of batches and its indexes.

mod files;
mod index_builder;
mod log_file;
mod look_up;
mod state;
mod unchecked;

use std::io::IoSlice;
use std::path::Path;

use parking_lot::{RwLock, RwLockReadGuard};
use thalweg_protocol::record::BatchHeader;
use thalweg_protocol::{LogSlice, Offset};

use crate::environment::Environment;
use crate::error::Error;
use crate::filesystem::{OnDemandFile, OpenMode};
use crate::index::{AbortedEntry, IndexFile, OffsetEntry, TimeEntry};

pub(crate) use files::{
    CLEANED_SUFFIX, DELETED_SUFFIX, FileKind, TEMPORARY_SUFFIX, cleaned_name, file_name, parse_file_name,
    parse_swap_name, swap_name,
};
pub(crate) use index_builder::{IndexBuilder, encode_index};
use log_file::LogFile;
pub(crate) use look_up::{Located, Place, Walk};
pub(crate) use state::{Newest, SegmentState};
pub(crate) use unchecked::Unchecked;

/// A stretch of the log in one file, named by the offset of its first record.
#[derive(Debug)]
pub(crate) struct Segment {
    base_offset: Offset,
    log: LogFile,
    /// Guards what an append changes after it has written: the size up to which the file holds batches, the
    /// indexes, the largest timestamp. Readers hold it while they look something up in memory.
    state: RwLock<SegmentState>,
    /// What of it nobody has looked at since the log was opened.
    unchecked: Option<Unchecked>,
}

impl Segment {
    /// Makes the files of a new segment. They last once the directory is synced.
    pub(crate) fn create(
        directory: &Path,
        base_offset: Offset,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let path_of = |kind| directory.join(file_name(base_offset, kind));
        let created = (|| {
            for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
                environment.open(&path_of(kind), OpenMode::Create)?;
            }
            environment.open(&path_of(FileKind::Log), OpenMode::Create)
        })();
        match created {
            Ok(file) => {
                let log = LogFile::new(OnDemandFile::created(path_of(FileKind::Log), file, environment));
                let state = SegmentState::new(directory, base_offset, [0; 3]);
                Ok(Self { base_offset, log, state: RwLock::new(state), unchecked: None })
            }
            Err(error) => {
                // Left behind, they would later look like a segment in the middle of another one.
                for kind in FileKind::OF_A_SEGMENT {
                    environment.remove(&path_of(kind))?;
                }
                Err(error)
            }
        }
    }

    /// A segment whose files exist.
    pub(crate) fn existing(directory: &Path, base_offset: Offset, state: SegmentState) -> Self {
        let log = LogFile::new(OnDemandFile::new(directory.join(file_name(base_offset, FileKind::Log))));
        Self { base_offset, log, state: RwLock::new(state), unchecked: None }
    }

    /// The same, but one that was only glanced at.
    pub(crate) fn glanced_at(self, unchecked: Unchecked) -> Self {
        Self { unchecked: Some(unchecked), ..self }
    }

    pub(crate) fn base_offset(&self) -> Offset {
        self.base_offset
    }

    pub(crate) fn log_file(&self) -> &LogFile {
        &self.log
    }

    /// What appends change. Not to be held while a file is read or written.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, SegmentState> {
        self.state.read()
    }

    pub(crate) fn size_in_bytes(&self) -> u64 {
        self.state.read().size
    }

    /// Writes batches at the end, or with `may_gather` later with others. Nobody sees them until they are
    /// [noted](Self::note); only the holder of the log's writer lock may call this. After an error what was half written
    /// is taken back.
    pub(crate) fn write(
        &self,
        parts: &mut [IoSlice<'_>],
        may_gather: bool,
        environment: &Environment,
    ) -> Result<(), Error> {
        self.log.append(parts, self.size_in_bytes(), may_gather, environment)
    }

    /// Enters a batch that was written at the segment's end into the indexes and shows it to readers.
    pub(crate) fn note(
        &self,
        header: &BatchHeader,
        index_interval_bytes: u32,
        environment: &Environment,
    ) -> Result<(), Error> {
        self.state.write().note(header, index_interval_bytes, environment)
    }

    /// Enters an aborted transaction.
    pub(crate) fn note_aborted(&self, aborted: AbortedEntry, environment: &Environment) -> Result<(), Error> {
        self.state.write().transactions.push(aborted, environment)
    }

    /// Completes the files, and gives back the space that is reserved for more, when nothing more will be appended or the log is
    /// closed.
    pub(crate) fn complete(&self, environment: &Environment) -> Result<(), Error> {
        self.log.end_at(self.size_in_bytes(), environment)?;
        self.state.write().complete(environment)
    }

    /// The content of the index of aborted transactions, which must be complete.
    pub(crate) fn aborted_content(&self, environment: &Environment) -> Result<Vec<u8>, Error> {
        self.state.read().transactions.content(environment)
    }

    /// Releases what only an active segment needs in memory.
    pub(crate) fn release(&self) {
        self.state.write().release();
    }

    /// Syncs the index files, which must be complete.
    pub(crate) fn sync_indexes(&self, environment: &Environment) -> Result<(), Error> {
        let state = self.state.read();
        state.offsets.sync(environment)?;
        state.times.sync(environment)?;
        state.transactions.sync(environment)
    }

    /// Cuts the segment so that it ends at `position`, where the batch `next_offset` began.
    pub(crate) fn truncate(
        &self,
        position: u64,
        next_offset: Offset,
        environment: &Environment,
    ) -> Result<(), Error> {
        let file = self.log.get(environment)?;
        if let Some(unchecked) = &self.unchecked {
            unchecked.truncate(position);
        }
        let mut state = self.state.write();
        state.truncate(position, next_offset, environment)?;
        state.newest = state.find_newest(&file, self.log.path(), environment)?;
        drop(state);
        self.log.set_len(position, environment)
    }

    /// Gives the descriptors of a segment that is synced and not read from back.
    pub(crate) fn close_if_idle(&self) {
        self.log.close_if_idle();
        let state = self.state.read();
        state.offsets.close_if_idle();
        state.times.close_if_idle();
        state.transactions.close_if_idle();
    }

    /// Opens every file of the segment and keeps it open: its names are about to be given to others, and whoever
    /// still reads from it must not look into those.
    pub(crate) fn pin(&self, environment: &Environment) -> Result<(), Error> {
        self.log.pin(environment)?;
        let state = self.state.read();
        state.offsets.pin(environment)?;
        state.times.pin(environment)?;
        state.transactions.pin(environment)
    }

    /// Takes [`pin`](Self::pin) back.
    pub(crate) fn unpin(&self) {
        self.log.unpin();
        let state = self.state.read();
        state.offsets.unpin();
        state.times.unpin();
        state.transactions.unpin();
    }

    /// Gives all descriptors back.
    pub(crate) fn close(&self) {
        self.log.close();
        let state = self.state.read();
        state.offsets.close();
        state.times.close();
        state.transactions.close();
    }

    /// A stretch of the file.
    pub(crate) fn slice(&self, from: u64, to: u64, environment: &Environment) -> Result<LogSlice, Error> {
        let file = self.log.get(environment)?.file;
        let len = u32::try_from(to - from).expect("a segment is smaller than 2 GiB");
        Ok(LogSlice { file, position: from, len })
    }
}

/// The paths of a segment's indexes, each with the length of its file.
pub(crate) type IndexLengths = [u64; 3];

fn open_indexes(
    directory: &Path,
    base_offset: Offset,
    lengths: IndexLengths,
) -> (IndexFile<OffsetEntry>, IndexFile<TimeEntry>, IndexFile<AbortedEntry>) {
    let path_of = |kind| directory.join(file_name(base_offset, kind));
    let [offsets, times, transactions] = lengths;
    (
        IndexFile::new(path_of(FileKind::OffsetIndex), offsets),
        IndexFile::new(path_of(FileKind::TimeIndex), times),
        IndexFile::new(path_of(FileKind::TransactionIndex), transactions),
    )
}
