//! Finding batches in a segment by offset and by time.
//!
//! The segment's lock is held for what is in memory only: a reader that waits for the disk must not keep an append
//! waiting.

use thalweg_protocol::Offset;
use thalweg_protocol::record::BatchHeader;

use super::{Segment, SegmentState};
use crate::batch_scan::{BatchScan, Scanned};
use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::index::{OffsetEntry, TimeEntry};

/// Where a batch lies in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) position: u64,
    pub(crate) end: u64,
}

/// Where an offset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this batch, or before it and after the one before.
    Batch(Located),
    /// After the last batch, which ends at this position.
    End(u64),
}

impl Place {
    pub(crate) fn batch(self) -> Option<Located> {
        match self {
            Self::Batch(located) => Some(located),
            Self::End(_) => None,
        }
    }

    /// Where what is at or above the offset begins.
    pub(crate) fn position(self) -> u64 {
        match self {
            Self::Batch(located) => located.position,
            Self::End(position) => position,
        }
    }
}

impl Segment {
    /// Finds the first batch whose last offset is at or above `offset`.
    pub(crate) fn locate(&self, offset: Offset, environment: &Environment) -> Result<Place, Error> {
        let relative = offset.0 - self.base_offset.0;
        let low = |entry: &OffsetEntry| i64::from(entry.relative_offset) <= relative;
        let (looked_up, size) = {
            let state = self.state.read();
            if let Some(found) = locate_recent(offset, &state) {
                return Ok(found);
            }
            (state.offsets.look_up(low, false), state.size)
        };
        let entry = looked_up.last_low(low, environment)?;
        // A damaged index may point anywhere.
        let from = entry.map_or(0, |entry| entry.position as u64);
        let from = if from < size { from } else { 0 };
        match self.scan_for(offset, from, size, environment)? {
            Search::Found(place) => Ok(place),
            Search::Damage(_) if from > 0 => {
                // The index misleads. The batches tell themselves where they are.
                tracing::warn!(segment = %self.log.path().display(), "the index is damaged, searching without it");
                match self.scan_for(offset, 0, size, environment)? {
                    Search::Found(place) => Ok(place),
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
        size: u64,
        environment: &Environment,
    ) -> Result<Search, Error> {
        let file = self.log.get(environment)?;
        let path = self.log.path();
        let mut scan = BatchScan::new(environment, &file, path, from, size, BatchScan::LOOK_UP_WINDOW);
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
                        return Ok(Search::Found(Place::Batch(Located { position, end })));
                    }
                    is_first = false;
                }
                Scanned::Damage { position, damage } => {
                    return Ok(Search::Damage(self.corrupt(position, damage.corruption(offset))));
                }
                Scanned::End => return Ok(Search::Found(Place::End(size))),
            }
        }
    }

    pub(crate) fn corrupt(&self, position: u64, corruption: Corruption) -> Error {
        Error::Corrupt { path: self.log.path().to_owned(), position, corruption }
    }

    /// The last batch boundary the offset index knows at or before `position`: where a read can end without
    /// cutting a batch.
    pub(crate) fn boundary_before(
        &self,
        position: u64,
        environment: &Environment,
    ) -> Result<Option<u64>, Error> {
        let low = |entry: &OffsetEntry| entry.position as u64 <= position;
        let looked_up = self.state.read().offsets.look_up(low, false);
        let entry = looked_up.last_low(low, environment)?;
        Ok(entry.map(|entry| entry.position as u64))
    }

    /// An offset above all that lies before `position`, if the offset index tells one.
    pub(crate) fn offset_above(
        &self,
        position: u64,
        environment: &Environment,
    ) -> Result<Option<Offset>, Error> {
        let low = |entry: &OffsetEntry| (entry.position as u64) < position;
        let looked_up = self.state.read().offsets.look_up(low, true);
        let entry = looked_up.first_high(low, environment)?;
        Ok(entry.map(|entry| self.base_offset.plus(i64::from(entry.relative_offset) + 1)))
    }

    /// The first batch at or after `from` with a timestamp at or above `timestamp`, according to the headers.
    pub(crate) fn locate_time(
        &self,
        timestamp: i64,
        from: Offset,
        environment: &Environment,
    ) -> Result<Option<(Located, BatchHeader)>, Error> {
        let low = |entry: &TimeEntry| entry.timestamp < timestamp;
        let (looked_up, size) = {
            let state = self.state.read();
            (state.times.look_up(low, false), state.size)
        };
        let start = match looked_up.last_low(low, environment)? {
            // Every record up to this entry's offset is older.
            Some(entry) => self.base_offset.plus(i64::from(entry.relative_offset)).max(from),
            None => from.max(self.base_offset),
        };
        let position = self.locate(start, environment)?.position();
        let file = self.log.get(environment)?;
        let path = self.log.path();
        let mut scan = BatchScan::new(environment, &file, path, position, size, BatchScan::LOOK_UP_WINDOW);
        loop {
            match scan.next_header()? {
                Scanned::Batch { position, header } if header.newest_record_timestamp() >= timestamp => {
                    let end = position + header.size_in_bytes() as u64;
                    return Ok(Some((Located { position, end }, header)));
                }
                Scanned::Batch { .. } => {}
                Scanned::Damage { position, damage } => {
                    return Err(self.corrupt(position, damage.corruption(start)));
                }
                Scanned::End => return Ok(None),
            }
        }
    }
}

enum Search {
    Found(Place),
    Damage(Error),
}

/// `Some` when the newest batches alone can tell.
fn locate_recent(offset: Offset, state: &SegmentState) -> Option<Place> {
    let at = state.recent.partition_point(|&(last_offset, _)| last_offset < offset);
    if at == 0 {
        // The first batch remembered is the answer only if nothing comes before it.
        let &(_, position) = state.recent.front()?;
        if position > 0 {
            return None;
        }
    }
    let Some(&(_, position)) = state.recent.get(at) else {
        return Some(Place::End(state.size));
    };
    let end = state.recent.get(at + 1).map_or(state.size, |&(_, next)| next);
    Some(Place::Batch(Located { position, end }))
}
