//! What a consumer may see of the bytes that a fetch returned: pure.

use std::collections::HashSet;

use bytes::Bytes;
use thalweg_protocol::messages::fetch::AbortedTransaction;
use thalweg_protocol::record::{Batches, ControlRecord, RecordBatch, RecordError};
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

/// Leaves out what is before `from`, control batches, and what the transactions in `aborted` wrote.
///
/// `aborted` holds the aborted transactions that reach into these bytes: the producer and the offset of its
/// first record. Each ends with its abort marker.
pub(super) fn visible(
    bytes: Bytes,
    from: Offset,
    mut aborted: Vec<AbortedTransaction>,
) -> Result<Visible, RecordError> {
    aborted.sort_by_key(|transaction| transaction.first_offset);
    let mut aborted = aborted.into_iter().peekable();
    let mut aborting: HashSet<i64> = HashSet::new();
    let mut visible = Visible { next_offset: from, ..Visible::default() };
    let mut batches = Batches::new(bytes);
    for batch in &mut batches {
        let batch = batch?;
        let header = *batch.header();
        if header.next_offset() <= from {
            continue;
        }
        batch.verify()?;
        visible.next_offset = header.next_offset();
        visible.leader_epoch = Some(header.partition_leader_epoch);
        while let Some(transaction) = aborted.next_if(|next| next.first_offset <= header.last_offset().0) {
            aborting.insert(transaction.producer_id);
        }
        if header.is_control() {
            if !aborting.is_empty() && is_abort(&batch)? {
                aborting.remove(&header.producer_id.0);
            }
            continue;
        }
        if header.is_transactional() && aborting.contains(&header.producer_id.0) {
            continue;
        }
        if header.records_count > 0 {
            visible.batches.push(batch);
        }
    }
    if visible.leader_epoch.is_none() && batches.is_truncated() {
        // The first batch must come whole, however large it is (KIP-74).
        RecordBatch::first(batches.remainder())?;
    }
    Ok(visible)
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
        assert!(matches!(visible(cut, Offset(0), Vec::new()), Err(RecordError::Truncated { .. })));
    }

    #[test]
    fn a_flipped_bit_is_found() {
        let mut bytes = BytesMut::from(&log(&[Data(-1, false, 1)])[..]);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let found = visible(bytes.freeze(), Offset(0), Vec::new());
        assert!(matches!(found, Err(RecordError::Checksum { .. })));
    }
}
