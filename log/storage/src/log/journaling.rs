//! A log's part in the journal of sync rounds; see `docs/formats/journal.md`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;
use thalweg_protocol::Offset;

use super::{Log, Offsets, Writer};
use crate::error::Error;
use crate::filesystem::StoredFile;
use crate::journal::{Entry, JournalRound, Need};
use crate::segment::Segment;

/// A log that may go into the journal. While this lives nobody else syncs, truncates or closes the log.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    log: &'a Arc<Log>,
    syncing: MutexGuard<'a, ()>,
}

/// A log whose unsynced end is to go into the journal. While this lives nobody else syncs, truncates or closes the log.
#[derive(Debug)]
pub(crate) struct Captured<'a> {
    log: &'a Arc<Log>,
    segment: Arc<Segment>,
    file: StoredFile,
    from: u64,
    to: u64,
    end: Offset,
    _syncing: MutexGuard<'a, ()>,
}

impl Log {
    /// What the log lacks to be synced, and the right to do it; `None` when somebody else has that.
    pub(crate) fn candidate(self: &Arc<Self>) -> Option<(Candidate<'_>, Need)> {
        let syncing = self.syncing.try_lock()?;
        let need = self.need(&*self.lock_writer().ok()?);
        Some((Candidate { log: self, syncing }, need))
    }

    fn need(&self, writer: &Writer) -> Need {
        match writer.unsynced.active {
            Some(from) if writer.unsynced.is_tail() && !self.topic_id.is_zero() => {
                Need::Tail(self.active().size_in_bytes() - from)
            }
            _ => Need::Other,
        }
    }

    /// Whether the log has anything that a round would sync.
    pub(crate) fn is_unsynced(&self) -> bool {
        let writer = self.writer.lock();
        writer.unsynced.active.is_some() || !writer.unsynced.is_tail()
    }

    /// Whether the journal has entries of the log that are not void.
    pub(super) fn has_entries(&self) -> bool {
        self.offsets.last_entry.load(Ordering::SeqCst) > self.void_to().0
    }

    pub(super) fn void_to(&self) -> JournalRound {
        JournalRound(self.offsets.void_to.load(Ordering::SeqCst))
    }

    /// The last round that the journal has begun; for the holder of `syncing` none with an entry of the log is going on.
    pub(super) fn journal_round(&self) -> JournalRound {
        self.checkpoint.as_ref().map(|checkpoint| checkpoint.journal_round()).unwrap_or_default()
    }

    /// Syncs in the log's own files what the journal has of it up to `round`. Appends and rounds do not wait for it. Blocks
    /// on the disk.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync).
    pub(crate) fn sync_entries(&self, round: JournalRound) -> Result<(), Error> {
        let (active, end, current, truncations) = {
            let _syncing = self.syncing.lock();
            if self.void_to() >= round {
                return Ok(());
            }
            let writer = self.lock_writer()?;
            if !writer.unsynced.is_tail() {
                drop(writer);
                return self.sync_locked().map(|_| ());
            }
            (self.active(), self.synced_offset(), self.journal_round(), writer.truncations)
        };
        active.log_file().sync(&self.environment)?;
        let _syncing = self.syncing.lock();
        let mut writer = self.lock_writer()?;
        // A truncation has made the entries void itself, and other records may have come.
        if writer.truncations == truncations {
            self.offsets.in_files.fetch_max(end.0, Ordering::SeqCst);
            self.offsets.void_to.fetch_max(current.0, Ordering::SeqCst);
            writer.unsynced.journaled &= self.has_entries();
        }
        Ok(())
    }

    /// Makes the journal's entries of the log void, lastingly, before a segment is replaced that they are about.
    pub(super) fn make_entries_void(&self) -> Result<(), Error> {
        let _syncing = self.syncing.lock();
        if self.has_entries() {
            self.sync_locked()?;
        }
        // Without a journal there are none, and on a full disk those of earlier runs may not be void yet.
        if self.journal_round() == JournalRound::default() { Ok(()) } else { self.save_void() }
    }

    /// Tells the checkpoint, lastingly, what the log's offsets are and which entries of the journal are void.
    pub(super) fn save_void(&self) -> Result<(), Error> {
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.record_doubly(&self.partition, || self.recorded_while_open())?;
            checkpoint.sync()?;
        }
        Ok(())
    }
}

impl<'a> Candidate<'a> {
    /// Captures what is unsynced now. Appends that come later ask for another round. `None` when by now there is too much of it,
    /// or more than the end of the active segment: appends go on, and may have rolled it.
    ///
    /// # Errors
    /// I/O errors; nothing is captured then.
    pub(crate) fn capture(self) -> Result<Option<Captured<'a>>, Error> {
        let Self { log, syncing } = self;
        log.leave_queue();
        let mut writer = log.lock_writer()?;
        if !log.need(&writer).is_small() {
            return Ok(None);
        }
        let segment = log.active();
        let file = segment.log_file().get_as_it_is(&log.environment)?;
        let to = segment.size_in_bytes();
        let from = writer.unsynced.active.take().unwrap_or(to);
        writer.unsynced.journaled = true;
        let end = log.log_end_offset();
        drop(writer);
        Ok(Some(Captured { log, segment, file, from, to, end, _syncing: syncing }))
    }
}

impl<'a> Captured<'a> {
    pub(crate) fn log(&self) -> &'a Arc<Log> {
        self.log
    }

    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub(crate) fn file(&self) -> &StoredFile {
        &self.file
    }

    /// What the journal says of it.
    pub(crate) fn entry(&self) -> Entry {
        let number = |n: u64| u32::try_from(n).expect("a segment is smaller than 2 GiB");
        Entry {
            topic_id: self.log.topic_id,
            partition: self.log.partition.clone(),
            base_offset: self.segment.base_offset(),
            position: number(self.from),
            len: number(self.to - self.from),
            end: self.end,
        }
    }

    /// Reads the bytes, as many as the entry says.
    pub(crate) fn read(&self, out: &mut [u8]) -> Result<(), Error> {
        self.segment.log_file().read_as_it_is(out, self.from, &self.log.environment)
    }

    /// The round that is about to be written has an entry of the log.
    pub(crate) fn enter(&self, round: JournalRound) {
        self.log.offsets.last_entry.store(round.0, Ordering::SeqCst);
    }

    /// The entry has reached the disk. Returns up to where the log is synced now.
    pub(crate) fn synced(self) -> Offset {
        self.log.offsets.synced.fetch_max(self.end.0, Ordering::SeqCst);
        Offsets::load(&self.log.offsets.synced)
    }

    /// The log does not go into the journal after all.
    pub(crate) fn give_back(self) -> &'a Arc<Log> {
        let mut writer = self.log.writer.lock();
        // If it was rolled meanwhile it is synced as a whole.
        if Arc::ptr_eq(&self.log.active(), &self.segment) {
            writer.unsynced.wrote(self.from);
        }
        self.log
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::record::BatchBuilder;
    use thalweg_protocol::{Compression, Compressor, LeaderEpoch, TopicPartition, Uuid};

    use super::*;
    use crate::config::LogConfig;
    use crate::environment::Environment;
    use crate::filesystem::DiskFilesystem;
    use crate::journal::MOST_TAIL_BYTES;
    use crate::log::{AppendOrigin, Standing};
    use crate::testing::ManualClock;

    fn append(log: &Log, len: usize) {
        let mut builder = BatchBuilder::new(Compression::None, None, 1024);
        builder.append(1, None, Some(&vec![1; len]), []).expect("it fits");
        let batch = builder.finish(&mut Compressor::new(), None);
        log.append_as_leader(&batch, LeaderEpoch(0), AppendOrigin::Coordinator).expect("it is appended");
    }

    #[test]
    fn what_changes_before_it_is_captured_is_looked_at_again() {
        // What is appended in between, and whether the log still goes into the journal.
        let most = MOST_TAIL_BYTES as usize;
        for (len, expected) in [(None, true), (Some(100), true), (Some(most), false), (Some(9 * most), false)]
        {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path();
            let environment = Environment::new(Arc::new(DiskFilesystem), ManualClock::new(1), path);
            let config = LogConfig { segment_bytes: 4 * MOST_TAIL_BYTES as u32, ..LogConfig::default() };
            let (partition, id) = (TopicPartition::new("t", 0), Uuid([7; 16]));
            let log = Log::open(path, partition, id, config, Standing::default(), &environment).expect("new");
            append(&log, 10);
            log.sync().expect("synced");
            append(&log, 10);
            let (candidate, need) = log.candidate().expect("nobody else syncs it");
            assert!(need.is_small());
            if let Some(len) = len {
                append(&log, len);
            }
            let captured = candidate.capture().expect("the disk works");
            let entry = captured.as_ref().map(Captured::entry);
            assert_eq!(entry.is_some(), expected, "{len:?}: {entry:?}");
            if let Some(entry) = entry {
                assert_eq!(u64::from(entry.position + entry.len), log.active().size_in_bytes());
            }
        }
    }
}
