//! Making what was appended last.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thalweg_protocol::Offset;

use super::Log;
use super::aborted_sums::ABORTED_SUMS_FILE;
use super::cleaned_to::CLEANED_TO_FILE;
use crate::error::Error;
use crate::filesystem::OnDemandFile;
use crate::segment::{Segment, parse_file_name};

/// The file of the leader epochs.
pub(super) const EPOCHS_FILE: &str = "leader-epoch-checkpoint";

/// What was changed since the last sync.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    /// Segments that were ended, with their indexes.
    pub(super) closed: Vec<Arc<Segment>>,
    pub(super) snapshots: Vec<OnDemandFile>,
    /// From where on the active segment was written to, in bytes.
    pub(super) active: Option<u64>,
    /// Whether the journal has bytes of the active segment that were not synced there.
    pub(super) journaled: bool,
    /// Whether files were created, renamed or removed.
    pub(super) directory: bool,
    /// Whether the file of the leader epochs is out of date.
    pub(super) epochs: bool,
    /// Whether the file that says how far the log is cleaned is out of date.
    pub(super) cleaned: bool,
    /// Whether the file of the checksums of indexes is out of date.
    pub(super) aborted_sums: bool,
}

impl Log {
    /// Makes everything appended so far last, and returns the offset up to which it does. Blocks on the disk.
    ///
    /// # Errors
    /// After an error of the sync itself the directory is offline: it is never tried again. After a
    /// [retriable](Error::is_retriable) one nothing has changed.
    pub fn sync(&self) -> Result<Offset, Error> {
        let _syncing = self.syncing.lock();
        self.sync_locked()
    }

    /// [`sync`](Self::sync) for the holder of `syncing`.
    pub(super) fn sync_locked(&self) -> Result<Offset, Error> {
        // Whoever puts the log into the journal holds `syncing`, so this one makes its entries void.
        let round = self.journal_round();
        let (mut unsynced, active, end, texts) = {
            let mut writer = self.lock_writer()?;
            let unsynced = std::mem::take(&mut writer.unsynced);
            let epochs = unsynced.epochs.then(|| (EPOCHS_FILE, writer.epochs.encode()));
            let cleaned = unsynced.cleaned.then(|| (CLEANED_TO_FILE, writer.cleaned.encode()));
            let sums = unsynced.aborted_sums.then(|| (ABORTED_SUMS_FILE, writer.aborted_sums.encode()));
            (unsynced, self.active(), self.log_end_offset(), [epochs, cleaned, sums])
        };
        if let Err(error) = self.carry_out(&mut unsynced, &active, texts) {
            if error.is_retriable() {
                self.writer.lock().unsynced.take_back(unsynced, &active, &self.active());
            }
            return Err(error);
        }
        self.offsets.synced.fetch_max(end.0, Ordering::SeqCst);
        self.offsets.in_files.fetch_max(end.0, Ordering::SeqCst);
        self.offsets.void_to.fetch_max(round.0, Ordering::SeqCst);
        Ok(self.synced_offset())
    }

    fn carry_out(
        &self,
        unsynced: &mut Unsynced,
        active: &Segment,
        texts: [Option<(&str, String)>; 3],
    ) -> Result<(), Error> {
        let environment = &self.environment;
        for segment in &unsynced.closed {
            segment.log_file().sync(environment)?;
            segment.sync_indexes(environment)?;
        }
        for snapshot in &unsynced.snapshots {
            snapshot.sync(environment)?;
        }
        if unsynced.active.is_some() || unsynced.journaled {
            active.log_file().sync(environment)?;
        }
        for (name, text) in texts.into_iter().flatten() {
            environment.replace(&self.directory.join(name), text.as_bytes())?;
            unsynced.directory = true;
        }
        if unsynced.directory {
            environment.sync_directory(&self.directory)?;
        }
        Ok(())
    }
}

impl Unsynced {
    /// Whether at most the end of the active segment is unsynced.
    pub(super) fn is_tail(&self) -> bool {
        let Self { closed, snapshots, active: _, journaled: _, directory, epochs, cleaned, aborted_sums } =
            self;
        closed.is_empty() && snapshots.is_empty() && !directory && !epochs && !cleaned && !aborted_sums
    }

    /// Notes that the active segment was written to at `position`.
    pub(super) fn wrote(&mut self, position: u64) {
        self.active = Some(self.active.map_or(position, |from| from.min(position)));
    }

    /// Forgets the segments before the one that begins with `first`, and their snapshots: they are deleted.
    pub(super) fn forget_below(&mut self, first: Offset) {
        self.closed.retain(|segment| segment.base_offset() >= first);
        self.snapshots.retain(|snapshot| {
            let name = snapshot.path().file_name().and_then(|name| name.to_str());
            name.and_then(parse_file_name).is_none_or(|(offset, _)| offset >= first)
        });
    }

    /// Adds what an earlier sync had taken and could not finish.
    fn take_back(&mut self, earlier: Self, active_then: &Arc<Segment>, active_now: &Arc<Segment>) {
        self.closed.splice(0..0, earlier.closed);
        self.snapshots.extend(earlier.snapshots);
        // If it was rolled meanwhile it is among the closed ones.
        if Arc::ptr_eq(active_then, active_now) {
            if let Some(from) = earlier.active {
                self.wrote(from);
            }
            self.journaled |= earlier.journaled;
        }
        self.directory |= earlier.directory;
        self.epochs |= earlier.epochs;
        self.cleaned |= earlier.cleaned;
        self.aborted_sums |= earlier.aborted_sums;
    }
}
