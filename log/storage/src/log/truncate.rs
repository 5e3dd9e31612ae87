//! Removing records from the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thalweg_protocol::Offset;

use super::recovery::rebuild_producers;
use super::sync::EPOCHS_FILE;
use super::{CleanedTo, Log, Offsets, Writer};
use crate::batch_scan::{BatchScan, Scanned};
use crate::error::Error;
use crate::producers::UndecidedTransactions;
use crate::segment::{FileKind, Located, Place, Segment, file_name, parse_file_name};

impl Log {
    /// Removes every record from `offset` on, as a follower that diverged from its leader does. What remains is
    /// synced when this returns. Blocks on the disk.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] below the log start offset; I/O errors, after which the log must be opened
    /// again.
    pub fn truncate_to(&self, offset: Offset) -> Result<(), Error> {
        let _changing = self.lock_changing()?;
        let _syncing = self.syncing.lock();
        let (log_start, log_end) = (self.log_start_offset(), self.log_end_offset());
        if offset < log_start {
            return Err(Error::OffsetOutOfRange { offset, log_start, log_end });
        }
        if offset < log_end {
            // A batch that holds the offset goes as a whole.
            let (position, offset) = self.place_of(offset)?;
            if offset < log_start {
                return self.restart_locked(log_start);
            }
            self.lower_offsets(offset)?;
            let mut writer = self.lock_writer()?;
            self.cut(&mut writer, position, offset)?;
        }
        let mut writer = self.lock_writer()?;
        // Epochs that began at or after the end are gone, even if no record is (KAFKA-10706).
        if writer.epochs.truncate_to(offset) {
            self.save_epochs(&writer)?;
        }
        drop(writer);
        self.sync_locked().map(|_| ())
    }

    /// Removes every record and begins anew at `offset`, as a follower whose leader no longer has the offset
    /// it needs does. Syncs, and blocks on the disk.
    ///
    /// # Errors
    /// I/O errors, after which the log must be opened again.
    pub fn restart_at(&self, offset: Offset) -> Result<(), Error> {
        let _changing = self.lock_changing()?;
        let _syncing = self.syncing.lock();
        self.restart_locked(offset)
    }

    /// [`restart_at`](Self::restart_at) for the holder of `changing` and `syncing`.
    fn restart_locked(&self, offset: Offset) -> Result<(), Error> {
        self.lower_offsets(self.log_start_offset())?;
        let mut writer = self.lock_writer()?;
        // The checkpoint knows by now that nothing is synced: whatever a crash leaves counts as a torn tail.
        self.remove_snapshots(|_| true)?;
        let all = self.segments();
        for segment in all.iter().rev() {
            self.remove_segment(segment)?;
        }
        self.environment.sync_directory(&self.directory)?;
        let first = Segment::create(&self.directory, offset, &self.environment)?;
        *self.segments.write() = Arc::new(vec![Arc::new(first)]);
        writer.epochs.clear();
        writer.producers = Default::default();
        writer.truncations += 1;
        writer.cleaned = CleanedTo { to: offset, ..CleanedTo::default() };
        writer.unsynced = Default::default();
        writer.unsynced.aborted_sums = writer.aborted_sums.keep(offset, offset);
        writer.unsynced.directory = true;
        writer.unsynced.cleaned = true;
        self.replace_undecided(&writer);
        self.save_epochs(&writer)?;
        // The synced offset first: the checkpoint may be told at any time.
        let Offsets { synced, in_files, log_end, log_start, high_watermark, .. } = &self.offsets;
        for each in [in_files, synced, log_end, log_start, high_watermark] {
            Offsets::store(each, offset);
        }
        drop(writer);
        self.sync_locked()?;
        self.save_standing()
    }

    /// Lowers the synced offset and the high watermark, and tells the checkpoint before anything is removed:
    /// it must never claim more than there is, and the journal must not bring it back.
    fn lower_offsets(&self, offset: Offset) -> Result<(), Error> {
        self.check_usable()?;
        if self.has_entries() {
            // What only the journal has would go with its entries.
            self.sync_locked()?;
        }
        self.offsets.in_files.fetch_min(offset.0, Ordering::SeqCst);
        self.offsets.synced.fetch_min(offset.0, Ordering::SeqCst);
        self.offsets.high_watermark.fetch_min(offset.0, Ordering::SeqCst);
        self.save_void()
    }

    /// Where the batch that holds `offset` begins: its position in its segment, and its base offset. The end of
    /// the segment, if what held the offset was compacted away.
    fn place_of(&self, offset: Offset) -> Result<(u64, Offset), Error> {
        let segments = self.segments();
        let at = segments.partition_point(|s| s.base_offset() <= offset).max(1) - 1;
        let segment = &segments[at];
        let Located { position, end } = match segment.locate(offset, &self.environment)? {
            Place::Batch(located) => located,
            Place::End(position) => return Ok((position, offset)),
        };
        let file = segment.log_file().get(&self.environment)?;
        let (path, window) = (segment.log_file().path(), BatchScan::LOOK_UP_WINDOW);
        match BatchScan::new(&self.environment, &file, path, position, end, window).next_header()? {
            Scanned::Batch { header, .. } => Ok((position, offset.min(header.base_offset))),
            Scanned::Damage { position, damage } => Err(segment.corrupt(position, damage.corruption(offset))),
            Scanned::End => Ok((position, offset)),
        }
    }

    /// Removes the batches from the one on that begins with `offset`, at `position` of its segment.
    fn cut(&self, writer: &mut Writer, position: u64, offset: Offset) -> Result<(), Error> {
        // Snapshots first: one that outlived its batches would later speak of other batches.
        self.remove_snapshots(|at| at > offset)?;
        self.environment.sync_directory(&self.directory)?;
        let segments = self.segments();
        let kept = segments.partition_point(|s| s.base_offset() <= offset).max(1);
        // Newest first, so that a crash leaves no gap.
        for segment in segments[kept..].iter().rev() {
            self.remove_segment(segment)?;
        }
        *self.segments.write() = Arc::new(segments[..kept].to_vec());
        let last = &segments[kept - 1];
        last.truncate(position, offset, &self.environment)?;
        Offsets::store(&self.offsets.log_end, offset);
        writer.truncations += 1;
        if writer.cleaned.to > offset {
            writer.cleaned.to = offset;
            writer.unsynced.cleaned = true;
        }
        writer.aborted_sums.keep(Offset(0), last.base_offset());
        writer.unsynced.closed.retain(|closed| closed.base_offset() < last.base_offset());
        writer.unsynced.snapshots.clear();
        writer.unsynced.wrote(0);
        writer.unsynced.directory = true;
        writer.producers = rebuild_producers(&self.directory, &segments[..kept], offset, &self.environment)?;
        self.replace_undecided(writer);
        Ok(())
    }

    fn remove_segment(&self, segment: &Segment) -> Result<(), Error> {
        segment.close();
        for kind in FileKind::OF_A_SEGMENT {
            self.environment.remove(&self.directory.join(file_name(segment.base_offset(), kind)))?;
        }
        Ok(())
    }

    fn remove_snapshots(&self, is_due: impl Fn(Offset) -> bool) -> Result<(), Error> {
        for entry in self.environment.list(&self.directory)? {
            if matches!(parse_file_name(&entry.name), Some((at, FileKind::Snapshot)) if is_due(at)) {
                self.environment.remove(&self.directory.join(entry.name))?;
            }
        }
        Ok(())
    }

    fn replace_undecided(&self, writer: &Writer) {
        let mut undecided = self.undecided.lock();
        *undecided = UndecidedTransactions::new(writer.producers.open_transactions());
        self.publish_undecided(&undecided);
    }

    fn save_epochs(&self, writer: &Writer) -> Result<(), Error> {
        let path = self.directory.join(EPOCHS_FILE);
        self.environment.replace(&path, writer.epochs.encode().as_bytes())?;
        self.environment.sync_directory(&self.directory)
    }
}
