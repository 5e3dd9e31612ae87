//! Beginning a new segment.

use std::io::IoSlice;
use std::sync::Arc;

use thalweg_protocol::Offset;
use thalweg_protocol::record::BatchHeader;

use super::{Log, Writer};
use crate::config::LogConfig;
use crate::error::Error;
use crate::filesystem::{OnDemandFile, OpenMode};
use crate::index::{Entry, OffsetEntry, TimeEntry};
use crate::producers::encode_snapshot;
use crate::segment::{FileKind, Segment, SegmentState, file_name};

impl Log {
    /// Rolls the active segment when the next batch does not belong into it.
    pub(super) fn roll_if_needed(
        &self,
        writer: &mut Writer,
        next: &BatchHeader,
        config: &LogConfig,
    ) -> Result<(), Error> {
        let active = self.active();
        if fits(next, active.base_offset(), &active.state(), config) {
            return Ok(());
        }
        // A leader's batch may leave a gap. It comes to lie within the new segment if that can hold it.
        let end = self.log_end_offset();
        let fits_after_gap = within_offsets(next.last_offset(), end);
        self.roll(writer, if fits_after_gap { end } else { next.base_offset })
    }

    /// How many of these batches, the first of which fits, go into the active segment, and their bytes.
    pub(super) fn fitting(&self, headers: &[BatchHeader], config: &LogConfig) -> (usize, usize) {
        let active = self.active();
        let state = active.state();
        let mut size = 0;
        for (at, header) in headers.iter().enumerate() {
            let bytes = header.size_in_bytes();
            let fits = at == 0
                || fits(header, active.base_offset(), &state, config)
                    && state.size + (size + bytes) as u64 <= config.most_segment_bytes();
            if !fits {
                return (at, size);
            }
            size += bytes;
        }
        (headers.len(), size)
    }

    /// Ends the active segment, if it holds anything, and begins one at `base_offset`. Nothing changes on an error.
    pub(super) fn roll(&self, writer: &mut Writer, base_offset: Offset) -> Result<(), Error> {
        let active = self.active();
        if active.size_in_bytes() == 0 && within_offsets(base_offset, active.base_offset()) {
            return Ok(());
        }
        active.complete(&self.environment)?;
        let aborted = active.aborted_content(&self.environment)?;
        let next = Segment::create(&self.directory, base_offset, &self.environment)?;
        let snapshot = match self.write_snapshot(writer, base_offset) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                for kind in FileKind::OF_A_SEGMENT.into_iter().chain([FileKind::Snapshot]) {
                    self.environment.remove(&self.directory.join(file_name(base_offset, kind)))?;
                }
                return Err(error);
            }
        };
        active.release();
        let mut segments = Vec::clone(&self.segments());
        segments.push(Arc::new(next));
        *self.segments.write() = Arc::new(segments);
        writer.unsynced.aborted_sums |= writer.aborted_sums.enter(active.base_offset(), &aborted);
        writer.unsynced.closed.push(active);
        (writer.unsynced.active, writer.unsynced.journaled) = (None, false);
        writer.unsynced.snapshots.push(snapshot);
        writer.unsynced.directory = true;
        // On a relaxed topic too: this is when its bytes are synced.
        self.request_sync(0);
        Ok(())
    }

    /// Writes the producers' state as of `offset`. The file is synced with the log.
    pub(super) fn write_snapshot(&self, writer: &Writer, offset: Offset) -> Result<OnDemandFile, Error> {
        let path = self.directory.join(file_name(offset, FileKind::Snapshot));
        let file = self.environment.open(&path, OpenMode::Create)?;
        let bytes = encode_snapshot(&writer.producers);
        self.environment.write_at(&file, &path, &mut [IoSlice::new(&bytes)], 0)?;
        Ok(OnDemandFile::written(path, file))
    }
}

/// Whether a batch belongs into a segment: it does if that is empty, whatever its size.
fn fits(batch: &BatchHeader, base_offset: Offset, state: &SegmentState, config: &LogConfig) -> bool {
    let within_offsets = within_offsets(batch.last_offset(), base_offset);
    if state.size == 0 {
        return within_offsets;
    }
    let within_size = state.size + batch.size_in_bytes() as u64 <= config.most_segment_bytes();
    let within_time = state
        .first_timestamp
        .is_none_or(|first| first < 0 || batch.max_timestamp.saturating_sub(first) <= most_ms(config));
    let index_bytes = config.segment_index_bytes as usize;
    let within_indexes = state.offsets.size_in_bytes() + OffsetEntry::SIZE <= index_bytes
        && state.times.size_in_bytes() + 2 * TimeEntry::SIZE <= index_bytes;
    within_size && within_time && within_indexes && within_offsets
}

/// A compacted log must let go of a segment for it to be cleaned in time.
fn most_ms(config: &LogConfig) -> i64 {
    match config.cleanup_policy.compact {
        true => config.segment_ms.min(config.max_compaction_lag_ms),
        false => config.segment_ms,
    }
}

/// Offsets are stored as signed 32-bit differences.
fn within_offsets(offset: Offset, base_offset: Offset) -> bool {
    offset.0 - base_offset.0 <= i64::from(i32::MAX)
}
