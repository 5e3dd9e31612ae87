//! What the cleaner asks of a log.

use std::sync::Arc;

use thalweg_protocol::Offset;

use super::read::aborted_entries;
use super::{CleanedTo, Log, Writer};
use crate::config::LogConfig;
use crate::environment::Environment;
use crate::error::Error;
use crate::index::AbortedEntry;
use crate::producers::Remembered;
use crate::segment::Segment;

/// A segment that may be cleaned.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) segment: Arc<Segment>,
    /// Where the next segment begins.
    pub(crate) end: Offset,
    pub(crate) size: u64,
}

/// What of a log may be cleaned.
#[derive(Debug)]
pub(crate) struct Cleanable {
    /// The segments, from the log's first on.
    pub(crate) sources: Vec<Source>,
    /// How far they were cleaned before.
    pub(crate) cleaned: CleanedTo,
    /// How often the log has been truncated.
    pub(crate) truncations: u64,
}

impl Cleanable {
    /// The segments that have not been cleaned as a whole.
    pub(crate) fn dirty(&self) -> &[Source] {
        let first = self.sources.partition_point(|source| source.end <= self.cleaned.to);
        &self.sources[first..]
    }

    /// Where the last of the segments ends.
    pub(crate) fn limit(&self) -> Offset {
        self.sources.last().map_or(self.cleaned.to, |last| last.end)
    }

    /// When the oldest dirty record was made, in ms since 1970.
    pub(crate) fn oldest_dirty_ms(&self) -> Option<i64> {
        let first = |source: &Source| source.segment.state().first_timestamp.filter(|&time| time >= 0);
        self.dirty().iter().find_map(first)
    }
}

impl Log {
    /// What of the log may be cleaned; `None` when it is not compacted. Where a record has waited too long for
    /// that in the active segment, it is rolled.
    ///
    /// # Errors
    /// [`Error::LogClosed`]; I/O errors.
    pub(crate) fn cleanable(&self, now_ms: i64) -> Result<Option<Cleanable>, Error> {
        let config = self.config();
        if !config.cleanup_policy.compact {
            return Ok(None);
        }
        // A swap that was not finished needs the files that a new round would write to.
        drop(self.lock_changing()?);
        let (cleaned, truncations) = {
            let mut writer = self.lock_writer()?;
            self.roll_overdue(&mut writer, &config, now_ms)?;
            (writer.cleaned, writer.truncations)
        };
        let segments = self.segments();
        let bound = self.last_stable_offset().min(self.synced_offset());
        let with_ends = segments.iter().zip(segments.iter().skip(1).map(|next| next.base_offset()));
        let mut sources = Vec::new();
        for (segment, end) in with_ends.take_while(|&(_, end)| end <= bound) {
            let (size, newest) = {
                let state = segment.state();
                (state.size, state.newest.timestamp)
            };
            let is_too_young = config.min_compaction_lag_ms > 0
                && newest >= 0
                && now_ms.saturating_sub(newest) < config.min_compaction_lag_ms;
            if end > cleaned.to && is_too_young {
                break;
            }
            sources.push(Source { segment: Arc::clone(segment), end, size });
        }
        Ok(Some(Cleanable { sources, cleaned, truncations }))
    }

    fn roll_overdue(&self, writer: &mut Writer, config: &LogConfig, now_ms: i64) -> Result<(), Error> {
        let active = self.active();
        let first = active.state().first_timestamp;
        let is_overdue = first
            .is_some_and(|first| first >= 0 && now_ms.saturating_sub(first) > config.max_compaction_lag_ms);
        if is_overdue { self.roll(writer, self.log_end_offset()) } else { Ok(()) }
    }

    /// Notes how far the log is cleaned; it lasts when this returns. Returns false, and notes nothing, when the log has
    /// been truncated since `truncations` was counted: other batches have come in the place of the cleaned ones.
    /// Blocks on the disk.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn set_cleaned(
        &self,
        truncations: u64,
        change: impl FnOnce(&mut CleanedTo),
    ) -> Result<bool, Error> {
        {
            let mut writer = self.lock_writer()?;
            if writer.truncations != truncations {
                return Ok(false);
            }
            let before = writer.cleaned;
            change(&mut writer.cleaned);
            if before == writer.cleaned && !writer.unsynced.cleaned {
                return Ok(true);
            }
            writer.unsynced.cleaned = true;
        }
        self.sync().map(|_| true)
    }

    /// The batches that must stay for the log to know its producers.
    pub(crate) fn remembered(&self) -> Remembered {
        self.writer.lock().producers.remembered()
    }

    /// The transactions that were aborted with data or a marker in `[from, to)`, in no order.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn aborted_between(&self, from: Offset, to: Offset) -> Result<Vec<AbortedEntry>, Error> {
        let segments = self.segments();
        let first = segments.partition_point(|s| s.base_offset() <= from).saturating_sub(1);
        aborted_entries(&self.environment, &segments[first..], from, to)
    }

    /// Whether any transaction was aborted in the log.
    pub(crate) fn has_aborted(&self) -> bool {
        self.segments().iter().any(|segment| !segment.state().transactions.is_empty())
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }
}
