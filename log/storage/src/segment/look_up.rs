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
        let entry = entry.filter(|entry| 0 < entry.position && (entry.position as u64) < size);
        match self.scan_for(offset, entry, size, environment)? {
            Search::Found(place) => Ok(place),
            Search::Damage(_) if entry.is_some() => {
                // The index misleads. The batches tell themselves where they are.
                tracing::warn!(segment = %self.log.path().display(), "the index is damaged, searching without it");
                match self.scan_for(offset, None, size, environment)? {
                    Search::Found(place) => Ok(place),
                    Search::Damage(error) => Err(error),
                }
            }
            Search::Damage(error) => Err(error),
        }
    }

    /// Goes from batch to batch, from the one that `entry` of the index is of.
    fn scan_for(
        &self,
        offset: Offset,
        entry: Option<OffsetEntry>,
        size: u64,
        environment: &Environment,
    ) -> Result<Search, Error> {
        let file = self.log.get(environment)?;
        let path = self.log.path();
        let from = entry.map_or(0, |entry| entry.position as u64);
        let mut scan = BatchScan::new(environment, &file, path, from, size, BatchScan::LOOK_UP_WINDOW);
        let mut of_entry = entry.map(|entry| self.base_offset.plus(i64::from(entry.relative_offset)));
        let mut expected = None;
        loop {
            match scan.next_header()? {
                Scanned::Batch { position, header } => {
                    let is_in_order = match (of_entry.take(), expected) {
                        // Of several batches that were appended at once it names the last.
                        (Some(last_offset), _) => header.last_offset() <= last_offset,
                        (None, expected) => self.may_follow(expected, &header),
                    };
                    if !is_in_order {
                        let expected = expected.unwrap_or(offset);
                        let problem = Corruption::Gap { expected, found: header.base_offset };
                        return Ok(Search::Damage(self.corrupt(position, problem)));
                    }
                    expected = Some(header.next_offset());
                    if header.last_offset() >= offset {
                        let end = position + header.size_in_bytes() as u64;
                        return Ok(Search::Found(Place::Batch(Located { position, end })));
                    }
                }
                Scanned::Damage { position, damage } => {
                    return Ok(Search::Damage(self.corrupt(position, damage.corruption(offset))));
                }
                Scanned::End => return Ok(Search::Found(Place::End(size))),
            }
        }
    }

    /// Whether a batch may come next where this offset is expected; the segment's own at its begin.
    fn may_follow(&self, expected: Option<Offset>, header: &BatchHeader) -> bool {
        let expected = expected.unwrap_or(self.base_offset);
        match &self.unchecked {
            Some(unchecked) => unchecked.continues(expected, header),
            None => header.base_offset >= expected,
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
        let Some(entry) = looked_up.first_high(low, environment)? else { return Ok(None) };
        let last_offset = self.base_offset.plus(i64::from(entry.relative_offset));
        // What is too low would hide aborted transactions.
        let is_true =
            self.unchecked.is_none() || self.ends_at(entry.position as u64, last_offset, environment)?;
        Ok(is_true.then(|| last_offset.plus(1)))
    }

    /// Whether a batch stands at `position` that ends at or before this offset.
    fn ends_at(&self, position: u64, last_offset: Offset, environment: &Environment) -> Result<bool, Error> {
        // In this order: what the file then has is at least as much.
        let size = self.size_in_bytes();
        let (file, path) = (self.log.get(environment)?, self.log.path());
        let mut scan = BatchScan::new(environment, &file, path, position, size, BatchHeader::SIZE);
        let found = scan.next_header()?;
        Ok(matches!(found, Scanned::Batch { header, .. } if header.last_offset() <= last_offset))
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
        // Every record up to this entry's offset is older.
        let entry = looked_up.last_low(low, environment)?;
        let start = match entry.map(|entry| (entry, self.base_offset.plus(i64::from(entry.relative_offset))))
        {
            Some((entry, offset)) if offset > from && self.is_newest_at(&entry, offset, environment)? => {
                offset
            }
            _ => from.max(self.base_offset),
        };
        let position = self.locate(start, environment)?.position();
        let file = self.log.get(environment)?;
        let path = self.log.path();
        let scan = BatchScan::new(environment, &file, path, position, size, BatchScan::LOOK_UP_WINDOW);
        let mut walk = Walk::new(self, scan, start);
        while let Some((position, header)) = walk.next()? {
            if header.newest_record_timestamp() >= timestamp {
                let end = position + header.size_in_bytes() as u64;
                return Ok(Some((Located { position, end }, header)));
            }
        }
        Ok(None)
    }
}

/// Goes from batch to batch for an answer that nobody checks after this. Of what was there when the log was opened, headers may be
/// damaged: each batch is verified, and must follow the one before it, since its checksum does not cover its offset.
pub(crate) struct Walk<'a> {
    segment: &'a Segment,
    scan: BatchScan<'a>,
    /// What the search is for, until there was a batch.
    start: Offset,
    expected: Option<Offset>,
}

impl<'a> Walk<'a> {
    /// Goes where `scan` goes, from the batch of `start`.
    pub(crate) fn new(segment: &'a Segment, scan: BatchScan<'a>, start: Offset) -> Self {
        Self { segment, scan, start, expected: None }
    }

    /// The next batch and where it stands; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, BatchHeader)>, Error> {
        let found = match self.segment.unchecked {
            Some(_) => self.scan.next_verified()?,
            None => self.scan.next_header()?,
        };
        match found {
            Scanned::Batch { position, header } => {
                if let Some(expected) = self.expected
                    && !self.segment.may_follow(Some(expected), &header)
                {
                    let problem = Corruption::Gap { expected, found: header.base_offset };
                    return Err(self.segment.corrupt(position, problem));
                }
                self.expected = Some(header.next_offset());
                Ok(Some((position, header)))
            }
            Scanned::Damage { position, damage } => {
                let expected = self.expected.unwrap_or(self.start);
                Err(self.segment.corrupt(position, damage.corruption(expected)))
            }
            Scanned::End => Ok(None),
        }
    }
}

impl Segment {
    /// Whether the batch that ends with this offset is the one that an entry of the time index is of.
    fn is_newest_at(
        &self,
        entry: &TimeEntry,
        offset: Offset,
        environment: &Environment,
    ) -> Result<bool, Error> {
        if self.unchecked.is_none() {
            return Ok(true);
        }
        let Some(Located { position, end }) = self.locate(offset, environment)?.batch() else {
            return Ok(false);
        };
        let (file, path) = (self.log.get(environment)?, self.log.path());
        let mut scan = BatchScan::new(environment, &file, path, position, end, BatchHeader::SIZE);
        let Scanned::Batch { header, .. } = scan.next_header()? else { return Ok(false) };
        Ok(header.last_offset() == offset && header.newest_record_timestamp() == entry.timestamp)
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
