//! What a consumer may see of the bytes that a fetch returned: pure.

use std::collections::HashSet;
use std::iter::Peekable;
use std::vec;

use bytes::Bytes;
use thalweg_protocol::messages::fetch::AbortedTransaction;
use thalweg_protocol::record::{BatchHeader, Batches, ControlRecord, RecordBatch, RecordError};
use thalweg_protocol::{LeaderEpoch, Offset, Scratch};

/// A control batch has one small record; nothing near this size.
const CONTROL_BYTES: usize = 1 << 16;

/// The batches of a fetch that hold data for the consumer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Visible {
    pub(super) batches: Vec<RecordBatch>,
    /// The offset after the last batch, seen or not.
    pub(super) next_offset: Offset,
    /// The leader epoch of the last batch.
    pub(super) leader_epoch: Option<LeaderEpoch>,
}

/// A batch that cannot be read.
#[derive(Debug, PartialEq)]
pub(super) struct Damage {
    pub(super) offset: Offset,
    /// The offset behind it, as far as can be told.
    pub(super) next_offset: Offset,
    pub(super) source: RecordError,
}

/// Leaves out what is before `from`, control batches, and what the transactions in `aborted` wrote.
///
/// `aborted` holds the aborted transactions that reach into these bytes: the producer and the offset of its
/// first record. Each ends with its abort marker.
///
/// What comes before a damaged batch is returned without it: it is met again where the next fetch begins.
pub(super) fn visible(
    bytes: Bytes,
    from: Offset,
    mut aborted: Vec<AbortedTransaction>,
) -> Result<Visible, Damage> {
    aborted.sort_by_key(|transaction| transaction.first_offset);
    let mut sieve = Sieve {
        visible: Visible { next_offset: from, ..Visible::default() },
        from,
        aborted: aborted.into_iter().peekable(),
        aborting: HashSet::new(),
    };
    let mut batches = Batches::new(bytes);
    while let Some(batch) = batches.next() {
        let header = batch.as_ref().ok().map(|batch| *batch.header());
        let Err(source) = batch.and_then(|batch| sieve.take(batch)) else { continue };
        if sieve.visible.next_offset > from {
            return Ok(sieve.visible);
        }
        // Only the header of the batch behind it is beyond doubt.
        let behind = batches.next().and_then(Result::ok).map(|batch| batch.header().base_offset);
        return Err(Damage::new(from, header.as_ref(), behind, source));
    }
    if sieve.visible.leader_epoch.is_none() && batches.is_truncated() {
        // The first batch must come whole, however large it is (KIP-74).
        let first = RecordBatch::first(batches.remainder());
        first.map_err(|source| Damage::new(from, None, None, source))?;
    }
    Ok(sieve.visible)
}

impl Damage {
    fn new(from: Offset, header: Option<&BatchHeader>, behind: Option<Offset>, source: RecordError) -> Self {
        let offset = header.map_or(from, |header| header.base_offset);
        let next_offset = behind.or(header.map(BatchHeader::next_offset)).unwrap_or(offset);
        Self { offset, next_offset: next_offset.max(offset.max(from).plus(1)), source }
    }
}

/// What has been seen so far.
struct Sieve {
    visible: Visible,
    from: Offset,
    /// Those that begin behind what has been seen, in order.
    aborted: Peekable<vec::IntoIter<AbortedTransaction>>,
    /// The producers whose transactions end with an abort.
    aborting: HashSet<i64>,
}

impl Sieve {
    /// Takes the next batch in; leaves everything as it was, if that is damaged.
    fn take(&mut self, batch: RecordBatch) -> Result<(), RecordError> {
        let header = *batch.header();
        batch.verify()?;
        if header.next_offset() <= self.from {
            return Ok(());
        }
        let is_abort = header.is_control() && is_abort(&batch)?;
        self.visible.next_offset = header.next_offset();
        self.visible.leader_epoch = Some(header.partition_leader_epoch);
        while let Some(transaction) = self.aborted.next_if(|next| next.first_offset <= header.last_offset().0)
        {
            self.aborting.insert(transaction.producer_id);
        }
        if is_abort {
            self.aborting.remove(&header.producer_id.0);
        }
        let is_aborted = header.is_transactional() && self.aborting.contains(&header.producer_id.0);
        if !header.is_control() && !is_aborted && header.records_count > 0 {
            self.visible.batches.push(batch);
        }
        Ok(())
    }
}

fn is_abort(batch: &RecordBatch) -> Result<bool, RecordError> {
    let mut scratch = Scratch::new(CONTROL_BYTES);
    let Some(record) = batch.records(&mut scratch)?.next() else { return Ok(false) };
    let control = ControlRecord::parse(&record?)?;
    Ok(matches!(control, ControlRecord::EndTransaction(marker) if !marker.commit))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use thalweg_protocol::record::{BatchBuilder, BatchProducer, TransactionMarker};
    use thalweg_protocol::{Compression, Compressor, ProducerEpoch, ProducerId};

    use super::*;

    enum Part {
        /// Records of a producer, in a transaction or not.
        Data(i64, bool, i32),
        Commit(i64),
        Abort(i64),
    }

    use Part::{Abort, Commit, Data};

    fn log(parts: &[Part]) -> Bytes {
        let mut bytes = BytesMut::new();
        let mut offset = Offset(0);
        for part in parts {
            let batch = match *part {
                Data(producer, transactional, records) => {
                    let mut builder = BatchBuilder::new(Compression::None, None, 0);
                    for _ in 0..records {
                        builder.append(0, None, Some(b"v"), []).expect("it fits");
                    }
                    let producer = BatchProducer {
                        id: ProducerId(producer),
                        epoch: ProducerEpoch(0),
                        base_sequence: 0,
                        transactional,
                    };
                    builder.finish(&mut Compressor::new(), Some(&producer))
                }
                Commit(id) | Abort(id) => {
                    let marker =
                        TransactionMarker { commit: matches!(part, Commit(_)), coordinator_epoch: 0 };
                    marker.to_batch(ProducerId(id), ProducerEpoch(0), 0)
                }
            };
            let batch = batch.at(offset, LeaderEpoch(3));
            offset = batch.header().next_offset();
            bytes.extend_from_slice(batch.bytes());
        }
        bytes.freeze()
    }

    fn check(parts: &[Part], from: i64, aborted: &[(i64, i64)], bases: &[i64], next: i64) {
        let aborted = aborted
            .iter()
            .map(|&(producer_id, first_offset)| AbortedTransaction { producer_id, first_offset })
            .collect();
        let visible = visible(log(parts), Offset(from), aborted).expect("nothing is damaged");
        let seen: Vec<i64> = visible.batches.iter().map(|batch| batch.header().base_offset.0).collect();
        assert_eq!((seen.as_slice(), visible.next_offset.0), (bases, next));
    }

    #[test]
    fn aborted_transactions_are_left_out_and_only_they() {
        // Offsets: 0–1 producer 1, 2 plain, 3 producer 2, 4 abort 1, 5–6 producer 1 again, 7 commit 2, 8
        // commit 1.
        let parts = [
            Data(1, true, 2),
            Data(-1, false, 1),
            Data(2, true, 1),
            Abort(1),
            Data(1, true, 2),
            Commit(2),
            Commit(1),
        ];
        check(&parts, 0, &[(1, 0)], &[2, 3, 5], 9);
        check(&parts, 0, &[], &[0, 2, 3, 5], 9);
        check(&parts, 1, &[(1, 0)], &[2, 3, 5], 9);
    }

    #[test]
    fn a_producer_may_abort_twice_in_one_fetch() {
        let parts = [Data(1, true, 1), Abort(1), Data(1, true, 1), Abort(1), Data(1, true, 1), Commit(1)];
        check(&parts, 0, &[(1, 2), (1, 0)], &[4], 6);
    }

    #[test]
    fn a_fetch_in_the_middle_of_a_batch_gets_the_whole_batch() {
        let parts = [Data(-1, false, 5), Data(-1, false, 5)];
        check(&parts, 7, &[], &[5], 10);
        check(&parts, 5, &[], &[5], 10);
        check(&parts, 10, &[], &[], 10);
    }

    #[test]
    fn only_control_batches_move_the_position_too() {
        check(&[Data(1, true, 1), Abort(1)], 0, &[(1, 0)], &[], 2);
    }

    #[test]
    fn a_cut_off_batch_ends_a_fetch_unless_it_is_the_first() {
        let bytes = log(&[Data(-1, false, 1), Data(-1, false, 1)]);
        let seen =
            visible(bytes.slice(..bytes.len() - 1), Offset(0), Vec::new()).expect("the first is whole");
        assert_eq!((seen.batches.len(), seen.next_offset), (1, Offset(1)));
        let cut = bytes.slice(..bytes.len() / 2 - 1);
        let damage = visible(cut, Offset(0), Vec::new()).expect_err("the first is not whole");
        assert!(matches!(damage.source, RecordError::Truncated { .. }), "{damage:?}");
        assert_eq!((damage.offset, damage.next_offset), (Offset(0), Offset(1)));
    }

    /// The log with one bit flipped in the batch `at`, so many bytes from its start.
    fn damaged(parts: &[Part], at: usize, position: usize) -> Bytes {
        let whole = log(parts);
        let before = Batches::new(whole.clone()).take(at).map(|batch| batch.expect("it is whole"));
        let start: usize = before.map(|batch| batch.size_in_bytes()).sum();
        let mut bytes = BytesMut::from(&whole[..]);
        bytes[start + position] ^= 0x80;
        bytes.freeze()
    }

    #[test]
    fn what_comes_before_damage_is_seen_and_the_damage_then() {
        const LAST_OFFSET_DELTA: usize = 23;
        let parts = [Data(-1, false, 3), Data(-1, false, 4), Data(-1, false, 5)];
        let last = BatchHeader::SIZE + 2;
        for (at, position, from, next) in [
            (0, last, 0, 3),
            (0, last, 1, 3),
            (1, last, 3, 7),
            (1, last, 5, 7),
            // Where it claims to end is damaged, too: before its beginning.
            (0, LAST_OFFSET_DELTA, 0, 3),
            (1, LAST_OFFSET_DELTA, 3, 7),
            (2, last, 7, 12),
            (2, LAST_OFFSET_DELTA, 7, 8),
        ] {
            let start = [0, 3, 7][at];
            let bytes = damaged(&parts, at, position);
            if at > 0 {
                let seen = visible(bytes.clone(), Offset(0), Vec::new()).expect("the first is whole");
                assert_eq!((seen.batches.len(), seen.next_offset), (at, Offset(start)));
            }
            let base = Batches::new(bytes.clone()).take(at).map(|batch| batch.expect("a header"));
            let rest = bytes.slice(base.map(|batch| batch.size_in_bytes()).sum::<usize>()..);
            let damage = visible(rest, Offset(from), Vec::new()).expect_err("a bit is flipped");
            assert!(matches!(damage.source, RecordError::Checksum { .. }), "{damage:?}");
            assert_eq!((damage.offset, damage.next_offset), (Offset(start), Offset(next)), "{at} {position}");
        }
    }

    #[test]
    fn a_damaged_marker_is_told_too() {
        let parts = [Data(1, true, 1), Abort(1), Data(1, true, 1), Commit(1)];
        let aborted = || vec![AbortedTransaction { producer_id: 1, first_offset: 0 }];
        let bytes = damaged(&parts, 1, BatchHeader::SIZE + 2);
        let seen = visible(bytes.clone(), Offset(0), aborted()).expect("the first is whole");
        assert_eq!((seen.batches.len(), seen.next_offset), (0, Offset(1)));
        let damage = visible(bytes.slice(log(&parts[..1]).len()..), Offset(1), aborted());
        let damage = damage.expect_err("a bit is flipped");
        assert_eq!((damage.offset, damage.next_offset), (Offset(1), Offset(2)));
    }
}
