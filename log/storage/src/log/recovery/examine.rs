//! Finding out what a segment on disk holds.

use std::path::Path;

use thalweg_protocol::record::BatchHeader;
use thalweg_protocol::{LeaderEpoch, Offset};

use super::inventory::SegmentFiles;
use crate::batch_scan::{BatchScan, Scanned};
use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::filesystem::{OpenMode, StoredFile};
use crate::index::{AbortedEntry, Entry, OffsetEntry, TimeEntry};
use crate::log::aborted_sums::AbortedSums;
use crate::segment::{FileKind, IndexBuilder, Newest, SegmentState, file_name};

/// A segment on disk, and what is known of it.
pub(super) struct Examined {
    pub(super) base_offset: Offset,
    /// Up to where there are good batches, in bytes.
    pub(super) size: u64,
    /// The offset after the last good batch.
    pub(super) next_offset: Offset,
    pub(super) newest: Newest,
    pub(super) first_timestamp: Option<i64>,
    /// The indexes, when the batches were gone through; `None` when those on disk are good.
    pub(super) rebuilt: Option<Rebuilt>,
    /// What follows the good batches, if it is not the end.
    pub(super) damage: Option<(u64, Corruption)>,
}

/// What going through all batches of a segment gives.
pub(super) struct Rebuilt {
    pub(super) indexes: IndexBuilder,
    pub(super) epochs: Vec<(LeaderEpoch, Offset)>,
}

/// Examines segments of one log.
pub(super) struct Examiner<'a> {
    pub(super) directory: &'a Path,
    pub(super) environment: &'a Environment,
    pub(super) index_interval_bytes: u32,
    /// Offsets may be missing between the batches below: they were compacted away.
    pub(super) gaps_below: Offset,
    /// What the indexes of aborted transactions were like.
    pub(super) aborted_sums: &'a AbortedSums,
}

impl Examiner<'_> {
    /// Looks only at what the ends of the indexes say, and at the batches after that. `None` when the indexes are
    /// not plausible, or anything is wrong with those batches.
    pub(super) fn glance(&self, base_offset: Offset, files: SegmentFiles) -> Result<Option<Examined>, Error> {
        let Some(lengths) = files.indexes else { return Ok(None) };
        let sizes = [OffsetEntry::SIZE, TimeEntry::SIZE, AbortedEntry::SIZE];
        if lengths.iter().zip(sizes).any(|(len, size)| len % size as u64 != 0) {
            return Ok(None);
        }
        let (path, file) = self.open(base_offset)?;
        let mut state = SegmentState::new(self.directory, base_offset, lengths);
        state.size = files.log;
        let last = state.offsets.last(self.environment)?;
        let from = match last {
            Some(OffsetEntry { position, .. }) if position <= 0 || position as u64 >= files.log => {
                return Ok(None);
            }
            Some(OffsetEntry { position, .. }) => position as u64,
            None => 0,
        };
        let mut scan = self.scan(&file, &path, from, files.log, BatchScan::LOOK_UP_WINDOW);
        let mut next_offset = None;
        loop {
            match scan.next_header()? {
                Scanned::Batch { header, .. } => {
                    let is_expected = match (next_offset, last) {
                        (Some(next), _) => self.continues(next, &header),
                        (None, Some(entry)) => {
                            header.last_offset().0 == base_offset.0 + i64::from(entry.relative_offset)
                        }
                        (None, None) => self.continues(base_offset, &header),
                    };
                    if !is_expected {
                        return Ok(None);
                    }
                    next_offset = Some(header.next_offset());
                }
                Scanned::Damage { .. } => return Ok(None),
                Scanned::End => break,
            }
        }
        let next_offset = next_offset.unwrap_or(base_offset);
        if !self.is_plausible(&state, base_offset, next_offset, &file, &path)? {
            return Ok(None);
        }
        Ok(Some(Examined {
            base_offset,
            size: files.log,
            next_offset,
            newest: state.find_newest(&file, &path, self.environment)?,
            first_timestamp: self.first_timestamp(&file, &path, files.log)?,
            rebuilt: None,
            damage: None,
        }))
    }

    /// Whether the index of aborted transactions and the last entry of the time index can be true.
    fn is_plausible(
        &self,
        state: &SegmentState,
        base_offset: Offset,
        next_offset: Offset,
        file: &StoredFile,
        path: &Path,
    ) -> Result<bool, Error> {
        if self.aborted_sums.has(base_offset) {
            let content = state.transactions.content(self.environment)?;
            if !self.aborted_sums.fits(base_offset, &content) {
                return Ok(false);
            }
        }
        // All of these: there are few, and no batch shows that one is wrong.
        let mut before = Offset(base_offset.0 - 1);
        let (in_file, in_memory) = state.transactions.rest(|_| false);
        let in_file = in_file.iter().flat_map(|part| part.entries(0, self.environment));
        for entry in in_file.chain(in_memory.into_iter().map(Ok)) {
            let AbortedEntry { first_offset, last_offset, last_stable_offset, .. } = entry?;
            let is_ordered = before < last_offset && last_offset < next_offset;
            if !is_ordered || first_offset >= last_offset || last_stable_offset > last_offset.plus(1) {
                return Ok(false);
            }
            before = last_offset;
        }
        let Some(entry) = state.times.last(self.environment)? else {
            // Every batch may be without a timestamp; whether they are is soon seen when there are few.
            return Ok(
                state.offsets.is_empty() || state.find_newest(file, path, self.environment)?.timestamp < 0
            );
        };
        let offset = base_offset.plus(i64::from(entry.relative_offset));
        // The last entry is of the newest record, or entries are missing, or a batch behind the indexes is damaged.
        let newest = state.find_newest(file, path, self.environment)?;
        if !(base_offset..next_offset).contains(&offset) || newest.timestamp > entry.timestamp {
            return Ok(false);
        }
        let relative = i64::from(entry.relative_offset);
        let below =
            state.offsets.partition_point(|e| i64::from(e.relative_offset) <= relative, self.environment)?;
        let from = match below.checked_sub(1) {
            Some(at) => state.offsets.get(at, self.environment)?.position as u64,
            None => 0,
        };
        let mut scan = self.scan(file, path, from, state.size, BatchScan::LOOK_UP_WINDOW);
        while let Scanned::Batch { header, .. } = scan.next_header()? {
            if header.last_offset() >= offset {
                return Ok(
                    header.last_offset() == offset && header.newest_record_timestamp() == entry.timestamp
                );
            }
        }
        Ok(false)
    }

    /// Goes through all batches, verifies each, and builds the indexes anew.
    pub(super) fn go_through(&self, base_offset: Offset, files: SegmentFiles) -> Result<Examined, Error> {
        let (path, file) = self.open(base_offset)?;
        let mut scan = self.scan(&file, &path, 0, files.log, BatchScan::WHOLE_WINDOW);
        let indexes = IndexBuilder::new(base_offset, self.index_interval_bytes);
        let mut rebuilt = Rebuilt { indexes, epochs: Vec::new() };
        let mut examined = Examined {
            base_offset,
            size: 0,
            next_offset: base_offset,
            newest: Newest { timestamp: -1, offset: base_offset },
            first_timestamp: None,
            rebuilt: None,
            damage: None,
        };
        loop {
            let expected = examined.next_offset;
            let (position, header) = match scan.next_verified()? {
                Scanned::Batch { position, header } => (position, header),
                Scanned::Damage { position, damage } => {
                    examined.damage = Some((position, damage.corruption(expected)));
                    break;
                }
                Scanned::End => break,
            };
            let relative = i32::try_from(header.last_offset().0 - base_offset.0);
            if !self.continues(expected, &header) || relative.is_err() {
                let found = header.base_offset;
                examined.damage = Some((position, Corruption::Gap { expected, found }));
                break;
            };
            let epoch = header.partition_leader_epoch;
            match rebuilt.epochs.last() {
                Some(&(last, _)) if epoch < last => {
                    // The checksum does not cover it.
                    let what = "the leader epoch goes back";
                    examined.damage = Some((position, Corruption::Malformed { what }));
                    break;
                }
                Some(&(last, _)) if epoch == last => {}
                _ => rebuilt.epochs.push((epoch, header.base_offset)),
            }
            rebuilt.indexes.note(position, &header);
            examined.size = position + header.size_in_bytes() as u64;
            examined.next_offset = header.next_offset();
        }
        rebuilt.indexes.complete();
        examined.newest = rebuilt.indexes.newest;
        examined.first_timestamp = rebuilt.indexes.first_timestamp;
        examined.rebuilt = Some(rebuilt);
        Ok(examined)
    }

    /// The leader epochs of a segment whose batches were not gone through.
    pub(super) fn epochs_in(&self, examined: &Examined) -> Result<Vec<(LeaderEpoch, Offset)>, Error> {
        let (path, file) = self.open(examined.base_offset)?;
        let mut scan = self.scan(&file, &path, 0, examined.size, BatchScan::WHOLE_WINDOW);
        let mut epochs: Vec<(LeaderEpoch, Offset)> = Vec::new();
        while let Scanned::Batch { header, .. } = scan.next_header()? {
            if epochs.last().is_none_or(|&(epoch, _)| epoch != header.partition_leader_epoch) {
                epochs.push((header.partition_leader_epoch, header.base_offset));
            }
        }
        Ok(epochs)
    }

    fn continues(&self, expected: Offset, header: &BatchHeader) -> bool {
        header.base_offset == expected
            || header.base_offset > expected && header.base_offset <= self.gaps_below
    }

    /// Whether a segment may begin at `next` after one that begins at `base` and ends at `end`. What is compacted
    /// away leaves gaps within segments only, but for one that is too large for any.
    pub(super) fn may_follow(&self, base: Offset, end: Offset, next: Offset) -> bool {
        next == end || next > end && next <= self.gaps_below && next.0 - base.0 > i64::from(i32::MAX)
    }

    fn first_timestamp(&self, file: &StoredFile, path: &Path, size: u64) -> Result<Option<i64>, Error> {
        let head = size.min(BatchHeader::SIZE as u64) as usize;
        let mut bytes = [0; BatchHeader::SIZE];
        self.environment.read_at(file, path, &mut bytes[..head], 0)?;
        Ok(BatchHeader::parse(&bytes[..head]).ok().map(|header| header.newest_record_timestamp()))
    }

    fn open(&self, base_offset: Offset) -> Result<(std::path::PathBuf, StoredFile), Error> {
        let path = self.directory.join(file_name(base_offset, FileKind::Log));
        let file = self.environment.open(&path, OpenMode::Read)?;
        Ok((path, file))
    }

    fn scan<'s>(
        &'s self,
        file: &'s StoredFile,
        path: &'s Path,
        from: u64,
        end: u64,
        window: usize,
    ) -> BatchScan<'s> {
        BatchScan::new(self.environment, file, path, from, end, window)
    }
}
