//! Making what was appended last.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thalweg_protocol::Offset;

use super::Log;
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
    /// Whether the active segment was written to.
    pub(super) active: bool,
    /// Whether files were created, renamed or removed.
    pub(super) directory: bool,
    /// Whether the file of the leader epochs is out of date.
    pub(super) epochs: bool,
    /// Whether the file that says how far the log is cleaned is out of date.
    pub(super) cleaned: bool,
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
        let (mut unsynced, active, end, texts) = {
            let mut writer = self.lock_writer()?;
            let unsynced = std::mem::take(&mut writer.unsynced);
            let epochs = unsynced.epochs.then(|| (EPOCHS_FILE, writer.epochs.encode()));
            let cleaned = unsynced.cleaned.then(|| (CLEANED_TO_FILE, writer.cleaned.encode()));
            (unsynced, self.active(), self.log_end_offset(), [epochs, cleaned])
        };
        if let Err(error) = self.carry_out(&mut unsynced, &active, texts) {
            if error.is_retriable() {
                self.writer.lock().unsynced.take_back(unsynced, &active, &self.active());
            }
            return Err(error);
        }
        self.offsets.synced.fetch_max(end.0, Ordering::SeqCst);
        Ok(self.synced_offset())
    }

    fn carry_out(
        &self,
        unsynced: &mut Unsynced,
        active: &Segment,
        texts: [Option<(&str, String)>; 2],
    ) -> Result<(), Error> {
        let environment = &self.environment;
        for segment in &unsynced.closed {
            segment.log_file().sync(environment)?;
            segment.sync_indexes(environment)?;
        }
        for snapshot in &unsynced.snapshots {
            snapshot.sync(environment)?;
        }
        if unsynced.active {
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
        self.active |= earlier.active && Arc::ptr_eq(active_then, active_now);
        self.directory |= earlier.directory;
        self.epochs |= earlier.epochs;
        self.cleaned |= earlier.cleaned;
    }
}
