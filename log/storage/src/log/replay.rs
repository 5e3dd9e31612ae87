//! Rebuilding the producers' state from the batches.

use std::sync::Arc;

use bytes::Bytes;
use thalweg_protocol::Offset;
use thalweg_protocol::Scratch;
use thalweg_protocol::record::{ControlRecord, RecordBatch, TransactionMarker};

use crate::batch_scan::{BatchScan, Scanned};
use crate::environment::Environment;
use crate::error::Error;
use crate::index::AbortedEntry;
use crate::producers::{CompletedTransaction, ProducerStates};
use crate::segment::{Located, Segment};

/// A transaction that the replayed batches ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) transaction: CompletedTransaction,
    pub(super) is_aborted: bool,
}

impl From<CompletedTransaction> for AbortedEntry {
    fn from(ended: CompletedTransaction) -> Self {
        Self {
            producer_id: ended.producer_id,
            first_offset: ended.first_offset,
            last_offset: ended.last_offset,
            last_stable_offset: ended.last_stable_offset,
        }
    }
}

/// Applies the batches of `segment` from the one that holds `from` on to `states`.
///
/// The producers count as active now: when they really were is known only to the clock of that time.
pub(super) fn replay(
    segment: &Segment,
    from: Offset,
    states: &mut ProducerStates,
    environment: &Environment,
) -> Result<Vec<Ended>, Error> {
    let mut all_ended = Vec::new();
    let now_ms = environment.clock.now_ms();
    let Some(Located { position, .. }) = segment.locate(from, environment)?.batch() else {
        return Ok(all_ended);
    };
    let size = segment.size_in_bytes();
    let file = segment.log_file().get(environment)?;
    let path = segment.log_file().path();
    let mut scan = BatchScan::new(environment, &file, path, position, size, BatchScan::WHOLE_WINDOW);
    loop {
        let (position, header) = match scan.next_header()? {
            Scanned::Batch { position, header } => (position, header),
            Scanned::Damage { position, damage } => {
                return Err(segment.corrupt(position, damage.corruption(from)));
            }
            Scanned::End => return Ok(all_ended),
        };
        if !header.is_idempotent() {
            continue;
        }
        if !header.is_control() {
            states.apply(&header, now_ms);
            continue;
        }
        let Some(marker) = parse_marker(scan.batch(position, &header)?) else { continue };
        let ended = states.apply_marker(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            header.base_offset,
            now_ms,
        );
        all_ended.extend(ended.map(|transaction| Ended { transaction, is_aborted: !marker.commit }));
    }
}

/// How far before a snapshot batches are looked for, in bytes: more than the five batches that one producer may have in
/// flight when each is as large as the default `max.message.bytes` allows (1 MiB), little enough to read at every start.
const RECALLED_BYTES: u64 = 6 << 20;

/// Recalls the batches before the snapshot at `from`, which knows only the last one of each producer: a producer may
/// have five in flight when a broker stops, and will send all of them again.
pub(super) fn recall(
    segments: &[Arc<Segment>],
    from: Offset,
    states: &mut ProducerStates,
    environment: &Environment,
) -> Result<(), Error> {
    let before = segments.partition_point(|s| s.base_offset() < from);
    let mut remaining = RECALLED_BYTES;
    let mut newest_first = Vec::new();
    for segment in segments[..before].iter().rev() {
        let size = segment.size_in_bytes();
        let begin = match size.saturating_sub(remaining) {
            0 => 0,
            wanted => segment.boundary_before(wanted, environment)?.unwrap_or(0),
        };
        let file = segment.log_file().get(environment)?;
        let path = segment.log_file().path();
        let mut scan = BatchScan::new(environment, &file, path, begin, size, BatchScan::LOOK_UP_WINDOW);
        let mut headers = Vec::new();
        while let Scanned::Batch { header, .. } = scan.next_header()? {
            if header.is_idempotent() && !header.is_control() && header.base_offset < from {
                headers.push(header);
            }
        }
        newest_first.push(headers);
        remaining = remaining.saturating_sub(size - begin);
        if remaining == 0 || begin > 0 {
            break;
        }
    }
    newest_first.reverse();
    states.recall(&newest_first.concat());
    Ok(())
}

/// What a control batch says about a transaction's end.
pub(super) fn parse_marker(batch: &[u8]) -> Option<TransactionMarker> {
    let batch = RecordBatch::only(Bytes::copy_from_slice(batch)).ok()?;
    let mut scratch = Scratch::new(batch.size_in_bytes());
    let record = batch.records(&mut scratch).ok()?.next()?.ok()?;
    match ControlRecord::parse(&record).ok()? {
        ControlRecord::EndTransaction(marker) => Some(marker),
        ControlRecord::Other(_) => None,
    }
}
