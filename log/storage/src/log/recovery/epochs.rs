//! Whether the leader epochs that a log's file names are those of its batches. The file is Kafka's and has no checksum.

use std::sync::Arc;

use thalweg_protocol::Offset;
use thalweg_protocol::record::BatchHeader;

use crate::batch_scan::{BatchScan, Scanned};
use crate::environment::Environment;
use crate::error::Error;
use crate::leader_epochs::LeaderEpochs;
use crate::segment::{Located, Segment};

/// How many epochs are looked up in the batches, the newest: a start must not take long, and the others are asked for by
/// whoever was away for that long.
const LOOKED_UP: usize = 16;

/// Compares the file with the batches where epochs begin, and at the log's end.
pub(super) fn are_true(
    epochs: &LeaderEpochs,
    segments: &[Arc<Segment>],
    (log_start, log_end): (Offset, Offset),
    gaps_below: Offset,
    environment: &Environment,
) -> Result<bool, Error> {
    let batch_at = |offset| batch_at(segments, offset, environment);
    let last = if log_end > log_start { batch_at(Offset(log_end.0 - 1))? } else { None };
    // Batches of before there were epochs name none.
    let last = last.filter(|last| last.partition_leader_epoch.0 >= 0);
    if last.is_some_and(|last| epochs.of_offset(last.last_offset()) != Some(last.partition_leader_epoch)) {
        return Ok(false);
    }
    let begun = epochs.newest_first().filter(|&(_, start)| start < log_end);
    for (epoch, start) in begun.take(LOOKED_UP) {
        // What was compacted away may have been the begin of an epoch, or all of it.
        let has_gaps = start < gaps_below;
        let is_of_epoch = |header: BatchHeader| match has_gaps {
            true => header.partition_leader_epoch >= epoch,
            false => header.partition_leader_epoch == epoch,
        };
        let begins = |header: BatchHeader| has_gaps || start <= log_start || header.base_offset == start;
        if batch_at(start)?.is_some_and(|header| !is_of_epoch(header) || !begins(header)) {
            return Ok(false);
        }
        let before = if start > log_start { batch_at(Offset(start.0 - 1))? } else { None };
        if before.is_some_and(|before| before.last_offset() < start && before.partition_leader_epoch >= epoch)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The header of the batch that holds the offset, or of the next one in its segment.
fn batch_at(
    segments: &[Arc<Segment>],
    offset: Offset,
    environment: &Environment,
) -> Result<Option<BatchHeader>, Error> {
    let at = segments.partition_point(|segment| segment.base_offset() <= offset).saturating_sub(1);
    let segment = &segments[at];
    let Some(Located { position, end }) = segment.locate(offset, environment)?.batch() else {
        return Ok(None);
    };
    let (file, path) = (segment.log_file().get(environment)?, segment.log_file().path());
    let mut scan = BatchScan::new(environment, &file, path, position, end, BatchHeader::SIZE);
    match scan.next_header()? {
        Scanned::Batch { header, .. } => Ok(Some(header)),
        Scanned::Damage { .. } | Scanned::End => Ok(None),
    }
}
