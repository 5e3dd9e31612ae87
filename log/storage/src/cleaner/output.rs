//! The segment that takes the place of one or several.

use std::io::IoSlice;
use std::path::PathBuf;

use thalweg_protocol::Offset;
use thalweg_protocol::record::BatchHeader;

use super::budget::{Budget, Halt};
use crate::config::LogConfig;
use crate::error::Error;
use crate::filesystem::{OpenMode, StoredFile};
use crate::index::{AbortedEntry, Entry, OffsetEntry, TimeEntry};
use crate::log::{Log, Replacement, Source};
use crate::segment::{FileKind, IndexBuilder, cleaned_name, encode_index};

/// What becomes of some segments that follow one another. As long as it is the same as before, and there is one only,
/// nothing is written.
pub(super) struct Output<'a> {
    log: &'a Log,
    sources: Vec<Source>,
    indexes: IndexBuilder,
    aborted: Vec<AbortedEntry>,
    size: u64,
    writing: Option<Writing>,
}

/// The file that batches are written to.
struct Writing {
    file: StoredFile,
    path: PathBuf,
    /// Bytes that are not in the file yet.
    buffer: Vec<u8>,
    written: u64,
    unsynced: u64,
}

/// The most segments that are replaced at a time: each has four files that are open then.
const MOST_SOURCES: usize = 32;
/// How many bytes are written at a time.
const BUFFER: usize = 1 << 20;
/// After how many bytes the file is synced: other files' syncs would have to wait for all that is unsynced.
const SYNC_STEP: u64 = 8 << 20;

impl<'a> Output<'a> {
    pub(super) fn new(log: &'a Log, first: Source, config: &LogConfig) -> Self {
        let indexes = IndexBuilder::new(first.segment.base_offset(), config.index_interval_bytes);
        Self { log, sources: vec![first], indexes, aborted: Vec::new(), size: 0, writing: None }
    }

    pub(super) fn base_offset(&self) -> Offset {
        self.sources[0].segment.base_offset()
    }

    /// How many bytes of batches there are so far.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether the next segment, as large as it is now, may become part of this one, to which `rest` bytes are still
    /// to be added.
    pub(super) fn may_join(&self, rest: u64, next: &Source, config: &LogConfig) -> bool {
        let most_bytes = config.most_segment_bytes();
        let size = self.size + rest;
        // A large segment that stays as it is is not written again for the sake of a small one.
        if self.writing.is_none() && size * 2 >= most_bytes {
            return false;
        }
        let entries = {
            let state = next.segment.state();
            [state.offsets.size_in_bytes(), state.times.size_in_bytes()]
        };
        let own =
            [self.indexes.offsets.len() * OffsetEntry::SIZE, self.indexes.times.len() * TimeEntry::SIZE];
        // One more entry where they meet.
        let most_entries = (config.segment_index_bytes as usize).saturating_sub(TimeEntry::SIZE);
        self.sources.len() < MOST_SOURCES
            && size + next.size <= most_bytes
            && next.end.0 - 1 - self.base_offset().0 <= i64::from(i32::MAX)
            && own.into_iter().zip(entries).all(|(own, more)| own + more <= most_entries)
    }

    /// Goes on with the next segment.
    pub(super) fn join(&mut self, next: Source, budget: &mut Budget<'_>) -> Result<(), Halt> {
        self.begin(budget)?;
        self.sources.push(next);
        Ok(())
    }

    /// Adds a batch as it is.
    pub(super) fn keep(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
        budget: &mut Budget<'_>,
    ) -> Result<(), Halt> {
        self.indexes.note(self.size, header);
        self.size += bytes.len() as u64;
        let Some(writing) = &mut self.writing else { return Ok(()) };
        writing.buffer.extend_from_slice(bytes);
        if writing.buffer.len() >= BUFFER {
            writing.flush(self.log, budget)?;
        }
        Ok(())
    }

    /// Adds what a batch has become.
    pub(super) fn change(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
        budget: &mut Budget<'_>,
    ) -> Result<(), Halt> {
        self.begin(budget)?;
        self.keep(header, bytes, budget)
    }

    /// Leaves a batch out.
    pub(super) fn leave_out(&mut self, budget: &mut Budget<'_>) -> Result<(), Halt> {
        self.begin(budget)
    }

    /// Enters an aborted transaction, in the order of their markers.
    pub(super) fn note_aborted(&mut self, aborted: AbortedEntry) {
        self.aborted.push(aborted);
    }

    /// Begins to write, with what has stayed the same.
    fn begin(&mut self, budget: &mut Budget<'_>) -> Result<(), Halt> {
        if self.writing.is_some() {
            return Ok(());
        }
        // The directory may be another log's by now.
        self.log.check_usable()?;
        let environment = self.log.environment();
        let path = self.log.directory().join(cleaned_name(self.base_offset(), FileKind::Log));
        let file = environment.open(&path, OpenMode::Create)?;
        let buffer = Vec::with_capacity(BUFFER + BUFFER / 4);
        let writing = self.writing.insert(Writing { file, path, buffer, written: 0, unsynced: 0 });
        let source = self.sources[0].segment.log_file();
        let from = source.get(environment)?;
        while writing.written < self.size {
            let len = (self.size - writing.written).min(BUFFER as u64);
            writing.buffer.resize(len as usize, 0);
            environment.read_at(&from, source.path(), &mut writing.buffer, writing.written)?;
            budget.spend_read(len)?;
            writing.flush(self.log, budget)?;
        }
        Ok(())
    }

    /// Completes and syncs the files. `None` when nothing was written.
    pub(super) fn finish(&mut self, budget: &mut Budget<'_>) -> Result<Option<Replacement>, Halt> {
        let Some(writing) = &mut self.writing else { return Ok(None) };
        writing.flush(self.log, budget)?;
        self.log.check_usable()?;
        let environment = self.log.environment();
        environment.sync(&writing.file, &writing.path)?;
        self.indexes.complete();
        let IndexBuilder { offsets, times, newest, first_timestamp, .. } = &self.indexes;
        let contents = [encode_index(offsets), encode_index(times), encode_index(&self.aborted)];
        let kinds = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex];
        for (kind, content) in kinds.into_iter().zip(&contents) {
            let path = self.log.directory().join(cleaned_name(self.sources[0].segment.base_offset(), kind));
            let file = environment.open(&path, OpenMode::Create)?;
            environment.write_at(&file, &path, &mut [IoSlice::new(content)], 0)?;
            environment.sync(&file, &path)?;
            budget.spend_write(content.len() as u64)?;
        }
        Ok(Some(Replacement {
            end: self.sources[self.sources.len() - 1].end,
            sources: self.sources.drain(..).map(|source| source.segment).collect(),
            size: self.size,
            newest: *newest,
            first_timestamp: *first_timestamp,
            index_lengths: contents.map(|content| content.len() as u64),
        }))
    }
}

impl Writing {
    fn flush(&mut self, log: &Log, budget: &mut Budget<'_>) -> Result<(), Halt> {
        let environment = log.environment();
        let len = self.buffer.len() as u64;
        environment.write_at(&self.file, &self.path, &mut [IoSlice::new(&self.buffer)], self.written)?;
        self.buffer.clear();
        self.written += len;
        self.unsynced += len;
        if self.unsynced >= SYNC_STEP {
            environment.sync(&self.file, &self.path)?;
            self.unsynced = 0;
        }
        budget.spend_write(len)
    }
}

/// Removes the files of an output that is given up; what cannot be removed now is when the log is opened again.
pub(super) fn give_up(log: &Log, base_offset: Offset) {
    let removed: Result<(), Error> = log.remove_cleaned(base_offset);
    if let Err(error) = removed {
        tracing::warn!(partition = %log.partition(), %error, "files of a cleaning that was given up remain");
    }
}
