//! Reading batches.

use std::sync::Arc;

use thalweg_protocol::Offset;

use super::interface::{AbortedTransaction, ReadBound, ReadInfo};
use super::{Log, Offsets};
use crate::environment::Environment;
use crate::error::Error;
use crate::index::AbortedEntry;
use crate::segment::{Located, Segment};

/// How often a read starts over because retention has taken the segment from under it.
const MOST_ATTEMPTS: usize = 3;

/// A stretch of a segment.
struct Stretch {
    from: u64,
    to: u64,
    /// An offset at or above the end of the stretch.
    upper: Offset,
}

impl Log {
    /// Finds the batches from the one that holds `offset`, up to `bound` and `max_bytes`.
    ///
    /// The slice begins with the whole batch that contains `offset`. When that batch is larger than
    /// `max_bytes` it is returned alone if `at_least_one` is set, and nothing is otherwise. The last batch may
    /// be cut. An offset between the bound and the log's end gives an empty answer.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`]; I/O errors.
    pub fn read(
        &self,
        offset: Offset,
        max_bytes: u32,
        bound: ReadBound,
        at_least_one: bool,
    ) -> Result<ReadInfo, Error> {
        self.read_in(&self.environment, offset, max_bytes, bound, at_least_one)
    }

    /// The same where nobody may wait for the disk: `None` when something that has to be looked at is not in the page
    /// cache, or in a file that is not open. What the slice itself holds is not looked at.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_cached(
        &self,
        offset: Offset,
        max_bytes: u32,
        bound: ReadBound,
        at_least_one: bool,
    ) -> Result<Option<ReadInfo>, Error> {
        match self.read_in(&self.cached_only, offset, max_bytes, bound, at_least_one) {
            Err(error) if error.is_not_cached() => Ok(None),
            other => other.map(Some),
        }
    }

    fn read_in(
        &self,
        environment: &Environment,
        offset: Offset,
        max_bytes: u32,
        bound: ReadBound,
        at_least_one: bool,
    ) -> Result<ReadInfo, Error> {
        self.check_usable()?;
        let mut attempt = 1;
        loop {
            match self.try_read(environment, offset, max_bytes, bound, at_least_one) {
                Err(error) if error.is_not_found() && attempt < MOST_ATTEMPTS => attempt += 1,
                other => return other,
            }
        }
    }

    fn try_read(
        &self,
        environment: &Environment,
        offset: Offset,
        max_bytes: u32,
        bound: ReadBound,
        at_least_one: bool,
    ) -> Result<ReadInfo, Error> {
        let segments = self.segments();
        // In this order, so that each lies within the next; see `Offsets`.
        let high_watermark = self.high_watermark();
        let last_stable_offset = high_watermark.min(Offsets::load(&self.offsets.first_undecided));
        let log_end = self.log_end_offset();
        let log_start = self.log_start_offset();
        if offset < log_start || offset > log_end {
            return Err(Error::OffsetOutOfRange { offset, log_start, log_end });
        }
        let bound_offset = match bound {
            ReadBound::LogEnd => log_end,
            ReadBound::HighWatermark => high_watermark,
            ReadBound::LastStableOffset => last_stable_offset,
        };
        let mut info = ReadInfo {
            records: None,
            aborted_transactions: Vec::new(),
            log_start_offset: log_start,
            log_end_offset: log_end,
            high_watermark,
            last_stable_offset,
        };
        if offset >= bound_offset {
            return Ok(info);
        }
        let first = segments.partition_point(|s| s.base_offset() <= offset).saturating_sub(1);
        for (at, segment) in segments.iter().enumerate().skip(first) {
            let next_base = segments.get(at + 1).map(|next| next.base_offset());
            let looked_up =
                stretch_in(environment, segment, next_base, offset, bound_offset, max_bytes, at_least_one)?;
            let Some(stretch) = looked_up else {
                // Compaction may leave nothing from `offset` to the segment's end.
                continue;
            };
            if stretch.from < stretch.to {
                segment.check(stretch.from, stretch.to, environment)?;
                info.records = Some(segment.slice(stretch.from, stretch.to, environment)?);
                if bound == ReadBound::LastStableOffset {
                    info.aborted_transactions =
                        aborted_in(environment, &segments[at..], offset, stretch.upper)?;
                }
            }
            break;
        }
        Ok(info)
    }

    /// The transactions that were aborted with data in `[from, to)`, ordered by first offset.
    ///
    /// # Errors
    /// I/O errors.
    pub fn aborted_transactions(&self, from: Offset, to: Offset) -> Result<Vec<AbortedTransaction>, Error> {
        self.check_usable()?;
        let segments = self.segments();
        let first = segments.partition_point(|s| s.base_offset() <= from).saturating_sub(1);
        aborted_in(&self.environment, &segments[first..], from, to)
    }
}

/// What to read from a segment; `None` when it has nothing at or above `offset`.
fn stretch_in(
    environment: &Environment,
    segment: &Segment,
    next_base: Option<Offset>,
    offset: Offset,
    bound: Offset,
    max_bytes: u32,
    at_least_one: bool,
) -> Result<Option<Stretch>, Error> {
    let Some(first) = segment.locate(offset, environment)?.batch() else { return Ok(None) };
    let end = match next_base {
        Some(next_base) if next_base <= bound => segment.size_in_bytes(),
        _ => segment.locate(bound, environment)?.position(),
    };
    let Located { position: from, end: first_end } = first;
    let most = u64::from(max_bytes);
    let to = if first_end > end {
        // The bound lies within the first batch.
        from
    } else if first_end - from > most {
        if at_least_one { first_end } else { from }
    } else if end - from <= most {
        end
    } else {
        let boundary = segment.boundary_before(from + most, environment)?;
        boundary.filter(|&boundary| boundary >= first_end).unwrap_or(from + most)
    };
    let upper = if to < end { segment.offset_above(to, environment)? } else { None };
    Ok(Some(Stretch { from, to, upper: upper.unwrap_or(bound).min(bound) }))
}

fn aborted_in(
    environment: &Environment,
    segments: &[Arc<Segment>],
    from: Offset,
    to: Offset,
) -> Result<Vec<AbortedTransaction>, Error> {
    let entries = aborted_entries(environment, segments, from, to)?.into_iter();
    let transaction =
        |AbortedEntry { producer_id, first_offset, .. }| AbortedTransaction { producer_id, first_offset };
    let mut found: Vec<AbortedTransaction> = entries.map(transaction).collect();
    found.sort_by_key(|aborted| (aborted.first_offset, aborted.producer_id));
    Ok(found)
}

/// Looks for aborted transactions in these segments, the first of which holds `from`: a transaction is
/// entered where its marker is, so at or after its data.
pub(super) fn aborted_entries(
    environment: &Environment,
    segments: &[Arc<Segment>],
    from: Offset,
    to: Offset,
) -> Result<Vec<AbortedEntry>, Error> {
    let mut found = Vec::new();
    'segments: for segment in segments {
        let (in_file, in_memory) = {
            let state = segment.state();
            if state.transactions.is_empty() {
                continue;
            }
            state.transactions.rest(|entry| entry.last_offset < from)
        };
        let first = match &in_file {
            Some(part) => part.search(|entry| entry.last_offset < from, environment)?.0,
            None => 0,
        };
        let in_file = in_file.iter().flat_map(|part| part.entries(first, environment));
        for entry in in_file.chain(in_memory.into_iter().map(Ok)) {
            let entry = entry?;
            if entry.last_offset < from {
                continue;
            }
            if entry.first_offset < to {
                found.push(entry);
            }
            if entry.last_stable_offset >= to {
                // No transaction that ends later began before `to`.
                break 'segments;
            }
        }
    }
    Ok(found)
}
