//! Deleting old segments.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use thalweg_protocol::Offset;

use super::{Log, Offsets, Writer};
use crate::config::LogConfig;
use crate::error::Error;
use crate::filesystem::DirectoryEntry;
use crate::gradual_removal;
use crate::segment::{DELETED_SUFFIX, FileKind, Segment, file_name, parse_file_name};

/// Files that wait to be removed.
#[derive(Debug)]
pub(super) struct Trash {
    /// On the monotonic clock.
    due_ms: i64,
    /// With their lengths, in bytes.
    files: Vec<(PathBuf, u64)>,
}

impl Log {
    /// Raises the log start offset to `offset`, which must not pass the high watermark; whole segments below
    /// it are deleted. Returns the log start offset. It lasts when this returns. Blocks on the disk.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`]; I/O errors.
    pub fn delete_records(&self, offset: Offset) -> Result<Offset, Error> {
        let _changing = self.lock_changing()?;
        let _syncing = self.syncing.lock();
        {
            let _writer = self.lock_writer()?;
            let log_end = self.high_watermark();
            if offset > log_end {
                return Err(Error::OffsetOutOfRange { offset, log_start: self.log_start_offset(), log_end });
            }
        }
        self.raise_log_start(offset)?;
        Ok(self.log_start_offset())
    }

    /// Deletes segments that are too old, too many bytes, or below the log start offset, unlinks the files of
    /// those deleted a while ago, forgets expired producers and closes idle files. To be called every so often,
    /// on a thread that may block. Returns the number of segments deleted.
    ///
    /// The active segment is never deleted: when it is due, it is rolled first.
    ///
    /// # Errors
    /// I/O errors.
    pub fn apply_retention(&self) -> Result<usize, Error> {
        let changing = self.lock_changing()?;
        let syncing = self.syncing.lock();
        let deleted = self.delete_old_segments();
        self.close_idle_files();
        // Removing large files takes long, and rounds wait for whoever syncs, a deletion for whoever changes segments.
        drop((syncing, changing));
        // What it frees may be what the others lacked.
        self.remove_trash(self.environment.clock.monotonic_ms())?;
        deleted
    }

    /// For the holder of `changing` and `syncing`. Returns the number of segments deleted.
    fn delete_old_segments(&self) -> Result<usize, Error> {
        let config = self.config();
        let clock = &self.environment.clock;
        let now_ms = clock.now_ms();
        let new_start = {
            let mut writer = self.lock_writer()?;
            // A producer is silent for as long as it is, whatever the wall clock is set to.
            let jumped_ms = writer.pace.jumped_ms(now_ms, clock.monotonic_ms());
            writer.producers.clock_jumped(jumped_ms, now_ms);
            writer.producers.expire(now_ms, config.producer_expiration_ms);
            self.start_after_retention(&mut writer, &config, now_ms)?.or_else(|| self.overdue_start())
        };
        new_start.map_or(Ok(0), |offset| self.raise_log_start(offset))
    }

    /// The log start offset that retention demands, if it demands one.
    fn start_after_retention(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<Option<Offset>, Error> {
        if !config.cleanup_policy.delete {
            return Ok(None);
        }
        let segments = self.segments();
        // Only what is committed and synced may go: the rest is still on its way somewhere.
        let limit = self.high_watermark().min(self.synced_offset());
        let ends = || segments.iter().skip(1).map(|s| s.base_offset()).chain([self.log_end_offset()]);
        let deletable = segments.iter().zip(ends()).take_while(|&(_, end)| end <= limit);
        let mut excess = match config.retention_bytes {
            ..0 => 0,
            most => self.size_in_bytes().saturating_sub(most as u64),
        };
        let mut new_start = None;
        for (segment, end) in deletable {
            let (size, newest) = {
                let state = segment.state();
                (state.size, state.newest.timestamp)
            };
            let is_old = config.retention_ms >= 0
                && newest >= 0
                && now_ms.saturating_sub(newest) > config.retention_ms;
            let is_too_much = size > 0 && size <= excess;
            excess = excess.saturating_sub(size);
            match is_old || is_too_much {
                true => new_start = Some(end),
                // Records without a timestamp, or none that compaction has left: it goes with the next one.
                false if newest < 0 => {}
                false => break,
            }
        }
        if let Some(new_start) = new_start {
            tracing::info!(
                partition = %self.partition,
                from = self.log_start_offset().0,
                to = new_start.0,
                retention_ms = config.retention_ms,
                retention_bytes = config.retention_bytes,
                "retention deletes records"
            );
            if new_start == self.log_end_offset() {
                self.roll(writer, new_start)?;
            }
        }
        Ok(new_start)
    }

    /// The log start offset, if there are segments below it: whoever raised it could not make it last, or lacked a
    /// descriptor.
    fn overdue_start(&self) -> Option<Offset> {
        let start = self.log_start_offset();
        self.segments().get(1).is_some_and(|second| second.base_offset() <= start).then_some(start)
    }

    /// Raises the log start offset and deletes the segments below it; for the holder of `changing` and `syncing`.
    pub(super) fn raise_log_start(&self, offset: Offset) -> Result<usize, Error> {
        {
            let mut writer = self.lock_writer()?;
            if offset > self.log_start_offset() {
                // Before the checkpoint is told: what a round tells it later must not be less.
                Offsets::store(&self.offsets.log_start, offset);
                if writer.epochs.begin_at(offset) {
                    writer.unsynced.epochs = true;
                }
            }
        }
        // A missing first segment is damage, unless the checkpoint knows that it was deleted.
        self.save_standing()?;
        // Nobody else takes any out meanwhile.
        let below = self.segments().iter().skip(1).take_while(|next| next.base_offset() <= offset).count();
        if below == 0 {
            return Ok(0);
        }
        // Once they are out of the list it would be too late to find that there is no descriptor for this.
        let entries = self.environment.list(&self.directory)?;
        let dropped = {
            let mut writer = self.lock_writer()?;
            let segments = self.segments();
            *self.segments.write() = Arc::new(segments[below..].to_vec());
            writer.unsynced.forget_below(segments[below].base_offset());
            writer.aborted_sums.keep(segments[below].base_offset(), Offset(i64::MAX));
            segments[..below].to_vec()
        };
        self.move_to_trash(&dropped, entries)?;
        Ok(dropped.len())
    }

    /// Tells the checkpoint, lastingly, what the log's offsets are.
    pub(super) fn save_standing(&self) -> Result<(), Error> {
        if let Some(checkpoint) = &self.checkpoint {
            // A line that is lost must not bring deleted records back.
            checkpoint.record_doubly(&self.partition, || self.recorded_while_open())?;
            checkpoint.sync()?;
        }
        Ok(())
    }

    /// Renames the files of segments that are no longer in the list, and the snapshots before the first that is.
    fn move_to_trash(&self, dropped: &[Arc<Segment>], entries: Vec<DirectoryEntry>) -> Result<(), Error> {
        let environment = &self.environment;
        let first_kept = self.segments()[0].base_offset();
        let mut lens: BTreeMap<String, u64> =
            entries.into_iter().map(|entry| (entry.name, entry.len)).collect();
        let mut names: Vec<String> = dropped
            .iter()
            .flat_map(|s| FileKind::OF_A_SEGMENT.map(|kind| file_name(s.base_offset(), kind)))
            .collect();
        let is_due =
            |name: &str| matches!(parse_file_name(name), Some((at, FileKind::Snapshot)) if at < first_kept);
        names.extend(lens.keys().filter(|name| is_due(name)).cloned());
        let mut files = Vec::with_capacity(names.len());
        let mut failure = None;
        for name in names {
            let to = self.directory.join(format!("{name}{DELETED_SUFFIX}"));
            let len = lens.remove(&name).unwrap_or(0);
            let from = self.directory.join(name);
            match environment.rename(&from, &to) {
                // On a full disk there may be no room for a longer name. Whatever the reason, nobody else knows of the file.
                Err(error) if !error.is_not_found() => {
                    files.push((from, len));
                    failure = failure.or(Some(error));
                }
                _ => files.push((to, len)),
            }
        }
        dropped.iter().for_each(|segment| segment.close());
        let due_ms = environment.clock.monotonic_ms().saturating_add(self.config().file_delete_delay_ms);
        self.writer.lock().trash.push(Trash { due_ms, files });
        match failure {
            Some(error) if !error.is_retriable() => Err(error),
            _ => environment.sync_directory(&self.directory),
        }
    }

    /// Removes the files of deleted segments that have waited long enough, or all while the disk is full. What cannot be removed
    /// now waits on. Returns whether there were any. Blocks on the disk.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn remove_trash(&self, monotonic_ms: i64) -> Result<bool, Error> {
        let is_due =
            |trash: &mut Trash| trash.due_ms <= monotonic_ms || self.environment.health.is_short_of_space();
        let mut due: Vec<Trash> = self.writer.lock().trash.extract_if(.., is_due).collect();
        let is_any = !due.is_empty();
        while let Some(mut trash) = due.pop() {
            while let Some((file, len)) = trash.files.pop() {
                if let Err(error) = gradual_removal::remove(&file, len, &self.environment) {
                    trash.files.push((file, len));
                    due.push(trash);
                    self.writer.lock().trash.extend(due);
                    return Err(error);
                }
            }
        }
        Ok(is_any)
    }

    /// For the holder of `syncing`: no sync is going on.
    fn close_idle_files(&self) {
        let segments = self.segments();
        let unsynced = self.writer.lock().unsynced.closed.clone();
        let (_, closed) = segments.split_last().expect("a log has at least one segment");
        for segment in closed {
            if !unsynced.iter().any(|other| Arc::ptr_eq(other, segment)) {
                segment.close_if_idle();
            }
        }
    }
}
