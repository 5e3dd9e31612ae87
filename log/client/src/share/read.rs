//! What is in the bytes that a share fetch returned, and which of what was acquired has a record: pure.

use bytes::Bytes;
use thalweg_protocol::record::{BatchHeader, Batches, RecordBatch, RecordError};
use thalweg_protocol::{Offset, Scratch};

use super::acquired::AcquiredRange;
use crate::batch_records::DECOMPRESSED_BYTES;

/// Records side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) first: Offset,
    pub(super) last: Offset,
}

/// What a share fetch brought of one partition.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The batches with records that were acquired.
    pub(super) batches: Vec<RecordBatch>,
    /// What was acquired and has records.
    pub(super) ranges: Vec<AcquiredRange>,
    /// What was acquired and has none: compacted away, or the ends of transactions.
    pub(super) gaps: Vec<Stretch>,
    /// What was acquired and cannot be read.
    pub(super) unread: Vec<Stretch>,
    /// Why the first of it cannot be read.
    pub(super) damage: Option<Damage>,
}

/// A batch that cannot be read.
#[derive(Debug)]
pub(super) struct Damage {
    pub(super) offset: Offset,
    /// The offset behind it, as far as can be told.
    pub(super) next_offset: Offset,
    pub(super) source: RecordError,
}

/// What an offset of the log has for consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Record,
    Gap,
    Unread,
}

/// Finds the records of what was `acquired`, whose ranges are in order.
pub(super) fn contents(bytes: Bytes, acquired: &[AcquiredRange]) -> Contents {
    let mut contents = Contents::default();
    let mut places: Vec<(Stretch, Place)> = Vec::new();
    let mut scratch = Scratch::new(DECOMPRESSED_BYTES);
    let mut batches = Batches::new(bytes);
    for batch in batches.by_ref() {
        let Ok(batch) = batch else { break };
        let header = *batch.header();
        let is_wanted = acquired.iter().any(|range| is_in(range, &header));
        if !is_wanted {
            continue;
        }
        match batch.verify().and_then(|()| note_places(&batch, &mut places, &mut scratch)) {
            Ok(true) => contents.batches.push(batch),
            Ok(false) => {}
            Err(source) => {
                let (offset, next_offset) = (header.base_offset, header.next_offset());
                places.push((Stretch { first: offset, last: header.last_offset() }, Place::Unread));
                contents.damage.get_or_insert(Damage { offset, next_offset, source });
            }
        }
    }
    // Nothing is known of what lies behind the last whole batch: not that it has no records.
    let behind = places.last().map_or(Offset(i64::MIN), |(stretch, _)| stretch.last);
    for range in acquired {
        contents.sort(range, &places, behind);
    }
    if contents.damage.is_none() && !contents.unread.is_empty() {
        let source = RecordBatch::first(batches.remainder()).err();
        let offset = contents.unread.first().map_or(Offset(0), |stretch| stretch.first);
        let next_offset = contents.unread.last().map_or(offset, |stretch| stretch.last.plus(1));
        contents.damage = source.map(|source| Damage { offset, next_offset, source });
    }
    contents
}

fn is_in(range: &AcquiredRange, header: &BatchHeader) -> bool {
    range.first <= header.last_offset() && header.base_offset <= range.last
}

/// Notes where the batch has records; returns whether there are any.
fn note_places(
    batch: &RecordBatch,
    places: &mut Vec<(Stretch, Place)>,
    scratch: &mut Scratch,
) -> Result<bool, RecordError> {
    let header = batch.header();
    let whole = Stretch { first: header.base_offset, last: header.last_offset() };
    if header.is_control() || header.records_count <= 0 {
        places.push((whole, Place::Gap));
        return Ok(false);
    }
    if header.records_count == header.last_offset_delta.saturating_add(1) {
        places.push((whole, Place::Record));
        return Ok(true);
    }
    // Compaction has taken records out: only the records themselves say which are left.
    let before = places.len();
    let mut next = whole.first;
    let records = batch.records(scratch)?;
    for record in records {
        let at = record.map(|record| record.offset).inspect_err(|_| places.truncate(before))?;
        if at > next {
            places.push((Stretch { first: next, last: Offset(at.0 - 1) }, Place::Gap));
        }
        match places.get_mut(before..).and_then(<[_]>::last_mut) {
            Some((stretch, Place::Record)) if stretch.last.plus(1) == at => stretch.last = at,
            _ => places.push((Stretch { first: at, last: at }, Place::Record)),
        }
        next = at.plus(1);
    }
    if next <= whole.last {
        places.push((Stretch { first: next, last: whole.last }, Place::Gap));
    }
    Ok(true)
}

impl Contents {
    /// Sorts a range by what its offsets have. `behind` is the last offset of which anything is known.
    fn sort(&mut self, range: &AcquiredRange, places: &[(Stretch, Place)], behind: Offset) {
        let mut next = range.first;
        let from = places.partition_point(|(stretch, _)| stretch.last < range.first);
        for (stretch, place) in places.iter().skip(from) {
            if stretch.first > range.last {
                break;
            }
            // Between batches there is nothing.
            self.push(range, next, Offset(stretch.first.0 - 1), Place::Gap);
            let last = stretch.last.min(range.last);
            self.push(range, next.max(stretch.first), last, *place);
            next = next.max(last.plus(1));
        }
        self.push(range, next, range.last.min(behind), Place::Gap);
        self.push(range, next.max(behind.plus(1)), range.last, Place::Unread);
    }

    fn push(&mut self, range: &AcquiredRange, first: Offset, last: Offset, place: Place) {
        if last < first {
            return;
        }
        match place {
            Place::Record => {
                let delivery_count = range.delivery_count;
                match self.ranges.last_mut() {
                    Some(before)
                        if before.last.plus(1) == first && before.delivery_count == delivery_count =>
                    {
                        before.last = last;
                    }
                    _ => self.ranges.push(AcquiredRange { first, last, delivery_count }),
                }
            }
            Place::Gap => self.gaps.push(Stretch { first, last }),
            Place::Unread => self.unread.push(Stretch { first, last }),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use thalweg_protocol::record::{BatchBuilder, TransactionMarker};
    use thalweg_protocol::{Compression, Compressor, LeaderEpoch, ProducerEpoch, ProducerId};

    use super::*;

    /// Batches of so many records one after the other; 0 is the end of a transaction.
    fn log(sizes: &[i64]) -> Bytes {
        let mut bytes = BytesMut::new();
        let mut offset = Offset(0);
        for size in sizes {
            let mut builder = BatchBuilder::new(Compression::None, None, 0);
            for _ in 0..*size {
                builder.append(0, None, Some(b"v"), []).expect("it fits");
            }
            let batch = match size {
                0 => {
                    let marker = TransactionMarker { commit: true, coordinator_epoch: 0 };
                    marker.to_batch(ProducerId(1), ProducerEpoch(0), 0)
                }
                _ => builder.finish(&mut Compressor::new(), None),
            };
            let batch = batch.at(offset, LeaderEpoch(0));
            offset = batch.header().next_offset();
            bytes.extend_from_slice(batch.bytes());
        }
        bytes.freeze()
    }

    type Sorted = (Vec<(i64, i64, i16)>, Vec<(i64, i64)>, Vec<(i64, i64)>);

    fn sorted(bytes: Bytes, acquired: &[(i64, i64, i16)]) -> (Sorted, Contents) {
        let range = |(first, last, delivery_count): &(i64, i64, i16)| AcquiredRange {
            first: Offset(*first),
            last: Offset(*last),
            delivery_count: *delivery_count,
        };
        let contents = contents(bytes, &acquired.iter().map(range).collect::<Vec<_>>());
        let each = |stretches: &[Stretch]| stretches.iter().map(|s| (s.first.0, s.last.0)).collect();
        let ranges = contents.ranges.iter().map(|r| (r.first.0, r.last.0, r.delivery_count)).collect();
        ((ranges, each(&contents.gaps), each(&contents.unread)), contents)
    }

    #[test]
    fn what_was_acquired_is_sorted_by_what_there_is() {
        // Offsets 0–2, 3–4, the end of a transaction at 5, and 6–9.
        let sizes = [3, 2, 0, 4];
        for (acquired, ranges, gaps, unread, batches) in [
            (&[(0, 9, 1)][..], &[(0, 4, 1), (6, 9, 1)][..], &[(5, 5)][..], &[][..], 3),
            (&[(1, 1, 2), (7, 8, 1)], &[(1, 1, 2), (7, 8, 1)], &[], &[], 2),
            (&[(3, 3, 1), (4, 6, 1)], &[(3, 4, 1), (6, 6, 1)], &[(5, 5)], &[], 2),
            (&[(3, 3, 1), (4, 4, 2)], &[(3, 3, 1), (4, 4, 2)], &[], &[], 1),
            // The log does not reach so far as far as can be seen.
            (&[(9, 12, 1)], &[(9, 9, 1)], &[], &[(10, 12)], 1),
            (&[], &[], &[], &[], 0),
        ] {
            let (found, contents) = sorted(log(&sizes), acquired);
            let expected = (ranges.to_vec(), gaps.to_vec(), unread.to_vec());
            assert_eq!((found, contents.batches.len()), (expected, batches), "{acquired:?}");
        }
    }

    #[test]
    fn holes_between_batches_are_gaps() {
        let (first, second) = (log(&[2]), log(&[2]));
        let moved = RecordBatch::only(second).expect("one batch").at(Offset(7), LeaderEpoch(0));
        let bytes = [&first[..], moved.bytes()].concat();
        let (found, _) = sorted(Bytes::from(bytes), &[(0, 8, 1)]);
        assert_eq!(found, (vec![(0, 1, 1), (7, 8, 1)], vec![(2, 6)], vec![]));
    }

    #[test]
    fn a_damaged_batch_is_left_out_alone_and_what_is_cut_off_is_unread() {
        let sizes = [3, 2, 4];
        let at = log(&sizes[..1]).len() + BatchHeader::SIZE + 2;
        let mut bytes = BytesMut::from(&log(&sizes)[..]);
        bytes[at] ^= 0x80;
        let (found, contents) = sorted(bytes.freeze(), &[(0, 8, 1)]);
        assert_eq!(found, (vec![(0, 2, 1), (5, 8, 1)], vec![], vec![(3, 4)]));
        let damage = contents.damage.expect("a bit is flipped");
        assert_eq!((damage.offset, damage.next_offset), (Offset(3), Offset(5)));
        let whole = log(&sizes);
        let (found, contents) = sorted(whole.slice(..whole.len() - 1), &[(0, 8, 1)]);
        assert_eq!(found, (vec![(0, 4, 1)], vec![], vec![(5, 8)]));
        assert!(matches!(contents.damage, Some(Damage { source: RecordError::Truncated { .. }, .. })));
    }
}
