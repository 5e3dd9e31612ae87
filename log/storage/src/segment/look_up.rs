//! Finding batches in a segment by offset and by time.

use thalweg_protocol::Offset;
use thalweg_protocol::record::BatchHeader;

use super::{Segment, SegmentState};
use crate::batch_scan::{BatchScan, Scanned};
use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::index::TimeEntry;

/// Where a batch lies in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) position: u64,
    pub(crate) end: u64,
}

impl Segment {
    /// The first batch whose last offset is at or above `offset`; `None` when the segment ends before that.
    pub(crate) fn locate(
        &self,
        offset: Offset,
        state: &SegmentState,
        environment: &Environment,
    ) -> Result<Option<Located>, Error> {
        if let Some(found) = locate_recent(offset, state) {
            return Ok(found);
        }
        let relative = offset.0 - self.base_offset.0;
        let below =
            state.offsets.partition_point(|e| i64::from(e.relative_offset) <= relative, environment)?;
        let from = match below.checked_sub(1) {
            Some(at) => state.offsets.get(at, environment)?.position as u64,
            None => 0,
        };
        match self.scan_for(offset, from, state, environment)? {
            Search::Found(located) => Ok(Some(located)),
            Search::End => Ok(None),
            Search::Damage(_) if from > 0 => {
                // The index misleads. The batches tell themselves where they are.
                tracing::warn!(index = %state.offsets.path().display(), "the index is damaged, searching without it");
                match self.scan_for(offset, 0, state, environment)? {
                    Search::Found(located) => Ok(Some(located)),
                    Search::End => Ok(None),
                    Search::Damage(error) => Err(error),
                }
            }
            Search::Damage(error) => Err(error),
        }
    }

    fn scan_for(
        &self,
        offset: Offset,
        from: u64,
        state: &SegmentState,
        environment: &Environment,
    ) -> Result<Search, Error> {
        let file = self.log.get(environment)?;
        let path = self.log.path();
        let mut scan = BatchScan::new(environment, &file, path, from, state.size, BatchScan::LOOK_UP_WINDOW);
        let mut is_first = true;
        loop {
            match scan.next_header()? {
                Scanned::Batch { position, header } => {
                    let misled = is_first && from > 0 && header.base_offset > offset;
                    if header.base_offset < self.base_offset || misled {
                        let problem = Corruption::Gap { expected: offset, found: header.base_offset };
                        return Ok(Search::Damage(self.corrupt(position, problem)));
                    }
                    if header.last_offset() >= offset {
                        let end = position + header.size_in_bytes() as u64;
                        return Ok(Search::Found(Located { position, end }));
                    }
                    is_first = false;
                }
                Scanned::Damage { position, problem } => {
                    let problem = Corruption::Batch { expected: offset, problem };
                    return Ok(Search::Damage(self.corrupt(position, problem)));
                }
                Scanned::End => return Ok(Search::End),
            }
        }
    }

    pub(crate) fn corrupt(&self, position: u64, corruption: Corruption) -> Error {
        Error::Corrupt { path: self.log.path().to_owned(), position, corruption }
    }

    /// The last batch boundary the offset index knows at or before `position`, if it is not before `least`: where a
    /// read can end without cutting a batch.
    pub(crate) fn boundary_before(
        &self,
        position: u64,
        least: u64,
        state: &SegmentState,
        environment: &Environment,
    ) -> Result<Option<u64>, Error> {
        let below = state.offsets.partition_point(|e| e.position as u64 <= position, environment)?;
        let Some(at) = below.checked_sub(1) else { return Ok(None) };
        let boundary = state.offsets.get(at, environment)?.position as u64;
        Ok((boundary >= least && boundary <= state.size).then_some(boundary))
    }

    /// The first batch at or after `from` with a timestamp at or above `timestamp`, according to the headers.
    pub(crate) fn locate_time(
        &self,
        timestamp: i64,
        from: Offset,
        state: &SegmentState,
        environment: &Environment,
    ) -> Result<Option<(Located, BatchHeader)>, Error> {
        let below = state.times.partition_point(|e| e.timestamp < timestamp, environment)?;
        let start = match below.checked_sub(1) {
            // Every record up to this entry's offset is older.
            Some(at) => {
                let TimeEntry { relative_offset, .. } = state.times.get(at, environment)?;
                Offset(self.base_offset.0 + i64::from(relative_offset)).max(from)
            }
            None => from.max(self.base_offset),
        };
        let Some(Located { position, .. }) = self.locate(start, state, environment)? else { return Ok(None) };
        let file = self.log.get(environment)?;
        let path = self.log.path();
        let mut scan =
            BatchScan::new(environment, &file, path, position, state.size, BatchScan::LOOK_UP_WINDOW);
        loop {
            match scan.next_header()? {
                Scanned::Batch { position, header } if header.max_timestamp >= timestamp => {
                    let end = position + header.size_in_bytes() as u64;
                    return Ok(Some((Located { position, end }, header)));
                }
                Scanned::Batch { .. } => {}
                Scanned::Damage { position, problem } => {
                    return Err(self.corrupt(position, Corruption::Batch { expected: start, problem }));
                }
                Scanned::End => return Ok(None),
            }
        }
    }
}

enum Search {
    Found(Located),
    End,
    Damage(Error),
}

/// `Some` when the newest batches alone can tell.
fn locate_recent(offset: Offset, state: &SegmentState) -> Option<Option<Located>> {
    let at = state.recent.partition_point(|&(last_offset, _)| last_offset < offset);
    if at == 0 {
        // The first batch remembered is the answer only if nothing comes before it.
        let &(_, position) = state.recent.front()?;
        if position > 0 {
            return None;
        }
    }
    let Some(&(_, position)) = state.recent.get(at) else {
        return (at > 0).then_some(None);
    };
    let end = state.recent.get(at + 1).map_or(state.size, |&(_, next)| next);
    Some(Some(Located { position, end }))
}
