//! What becomes of a batch. Pure: the batch, the map and the clock decide.

use thalweg_protocol::Offset;
use thalweg_protocol::record::{BatchHeader, BatchRewriter, RawRecords, RecordError, write_without_records};
use thalweg_protocol::{Compression, Scratch};

use super::offset_map::{KeyHasher, OffsetMap};
use crate::producers::Remembered;

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays as it is.
    Kept,
    /// A batch with this header takes its place: [`Judge::rewritten`].
    Rewritten(BatchHeader),
    /// It goes.
    Gone,
}

/// A batch, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged<'a> {
    pub(super) header: &'a BatchHeader,
    pub(super) bytes: &'a [u8],
    /// Whether it is data of a transaction that was aborted.
    pub(super) is_aborted: bool,
    /// Whether it ends a transaction of which some data is left.
    pub(super) is_needed_marker: bool,
    /// Whether it is the last one of what becomes a segment.
    pub(super) is_last: bool,
    /// How many bytes it may become at most.
    pub(super) room: u64,
}

/// What all batches of a round are judged by.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    pub(super) map: &'a OffsetMap,
    /// Where the map ends: nothing is known of keys from there on.
    pub(super) map_end: Offset,
    pub(super) remembered: &'a Remembered,
    pub(super) hasher: KeyHasher,
    pub(super) now_ms: i64,
    pub(super) delete_retention_ms: i64,
    pub(super) tools: &'a mut Tools,
    /// The earliest horizon of what was kept for it.
    pub(super) next_horizon_ms: Option<i64>,
    /// How many records were taken out.
    pub(super) removed: u64,
}

/// Buffers and contexts that outlive a round.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) scratch: Scratch,
    rewriter: BatchRewriter,
    /// Which records of a batch are kept.
    kept: Vec<bool>,
    /// A batch that was written anew.
    out: Vec<u8>,
}

/// Setting a horizon makes a record larger by at most this many bytes: its timestamp delta and its length grow.
const GROWTH: u64 = 10;

impl Tools {
    /// Tools for batches that decompress to at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        let (kept, out) = Default::default();
        Self { scratch: Scratch::new(limit), rewriter: BatchRewriter::new(), kept, out }
    }
}

/// The records of a batch as they are before compression.
pub(super) fn records_of<'a>(
    header: &BatchHeader,
    bytes: &'a [u8],
    scratch: &'a mut Scratch,
) -> Result<&'a [u8], RecordError> {
    let payload = &bytes[BatchHeader::SIZE..];
    match header.compression()? {
        Compression::None => Ok(payload),
        compression => scratch.decompress(compression, payload),
    }
}

impl Judge<'_> {
    /// The batch of the last [`Fate::Rewritten`].
    pub(super) fn rewritten(&self) -> &[u8] {
        &self.tools.out
    }

    /// Judges a batch whose checksum is good.
    ///
    /// # Errors
    /// When its records are not what they should be.
    pub(super) fn judge(&mut self, batch: &Judged<'_>) -> Result<Fate, RecordError> {
        let header = batch.header;
        if header.records_count == 0 {
            return Ok(if self.must_stay(batch) { Fate::Kept } else { Fate::Gone });
        }
        if header.is_control() {
            return self.judge_marker(batch);
        }
        if batch.is_aborted {
            return Ok(self.without_records(batch));
        }
        // In what has been cleaned, and has no successor here, only deletions can be due.
        let is_settled = self.map.is_empty() && !header.has_delete_horizon();
        if is_settled || header.base_offset >= self.map_end {
            return Ok(Fate::Kept);
        }
        self.judge_records(batch)
    }

    /// Whether a batch stays even without records.
    fn must_stay(&self, batch: &Judged<'_>) -> bool {
        batch.is_last || self.remembered.holds(batch.header)
    }

    /// Of a marker: the transaction that it ends has no data left, unless the marker is needed.
    fn judge_marker(&mut self, batch: &Judged<'_>) -> Result<Fate, RecordError> {
        let header = batch.header;
        // Those of Kafka's own quorum name no producer.
        if batch.is_needed_marker || !header.is_transactional() {
            return Ok(Fate::Kept);
        }
        let must_stay = self.must_stay(batch);
        match horizon_of(header) {
            Some(horizon) if horizon <= self.now_ms && !must_stay => {
                self.removed += 1;
                Ok(Fate::Gone)
            }
            Some(horizon) => {
                if !must_stay {
                    self.wait_for(horizon);
                }
                Ok(Fate::Kept)
            }
            None if self.may_get_horizon(batch, 1) => {
                let horizon = self.new_horizon();
                if !must_stay {
                    self.wait_for(horizon);
                }
                self.rewrite(batch, Some(horizon), |_| true).map(Fate::Rewritten)
            }
            None => Ok(Fate::Kept),
        }
    }

    fn judge_records(&mut self, batch: &Judged<'_>) -> Result<Fate, RecordError> {
        let header = batch.header;
        let horizon = horizon_of(header);
        let is_due = horizon.is_some_and(|horizon| horizon <= self.now_ms);
        let Tools { scratch, kept, .. } = &mut *self.tools;
        kept.clear();
        let mut count = 0;
        let mut has_tombstone = false;
        for record in RawRecords::new(header, records_of(header, batch.bytes, scratch)?) {
            let record = record?;
            let is_kept = record.offset >= self.map_end || {
                let is_last =
                    |key| self.map.get(self.hasher.hash(key)).is_none_or(|last| record.offset >= last);
                let is_latest = record.key.is_some_and(is_last);
                has_tombstone |= is_latest && !record.has_value && !is_due;
                is_latest && (record.has_value || !is_due)
            };
            count += usize::from(is_kept);
            kept.push(is_kept);
        }
        if count == 0 {
            return Ok(self.without_records(batch));
        }
        let gets_horizon = has_tombstone && horizon.is_none() && self.may_get_horizon(batch, count as u64);
        let new_horizon = gets_horizon.then(|| self.new_horizon());
        if has_tombstone && let Some(horizon) = horizon.or(new_horizon) {
            self.wait_for(horizon);
        }
        let all = self.tools.kept.len();
        if count == all && new_horizon.is_none() {
            return Ok(Fate::Kept);
        }
        self.removed += (all - count) as u64;
        let kept = std::mem::take(&mut self.tools.kept);
        let rewritten = self.rewrite(batch, new_horizon, |at| kept[at]);
        self.tools.kept = kept;
        rewritten.map(Fate::Rewritten)
    }

    fn without_records(&mut self, batch: &Judged<'_>) -> Fate {
        self.removed += batch.header.records_count as u64;
        if !self.must_stay(batch) {
            return Fate::Gone;
        }
        self.tools.out.clear();
        Fate::Rewritten(write_without_records(batch.header, &mut self.tools.out))
    }

    fn rewrite(
        &mut self,
        batch: &Judged<'_>,
        new_horizon: Option<i64>,
        is_kept: impl Fn(usize) -> bool,
    ) -> Result<BatchHeader, RecordError> {
        let Tools { scratch, rewriter, out, .. } = &mut *self.tools;
        let mut rewriting = rewriter.begin(batch.header, new_horizon);
        let records = records_of(batch.header, batch.bytes, scratch)?;
        for (at, record) in RawRecords::new(batch.header, records).enumerate() {
            let record = record?;
            if is_kept(at) {
                rewriting.keep(&record);
            }
        }
        out.clear();
        Ok(rewriting.finish(out))
    }

    /// Whether everything older of the batch's keys, or of its transaction, is gone after this round, and there is
    /// room for the horizon.
    fn may_get_horizon(&self, batch: &Judged<'_>, records: u64) -> bool {
        let size = batch.bytes.len() as u64;
        batch.header.next_offset() <= self.map_end && size + GROWTH * records <= batch.room
    }

    fn new_horizon(&self) -> i64 {
        self.now_ms.saturating_add(self.delete_retention_ms)
    }

    fn wait_for(&mut self, horizon: i64) {
        self.next_horizon_ms = Some(self.next_horizon_ms.map_or(horizon, |next| next.min(horizon)));
    }
}

fn horizon_of(header: &BatchHeader) -> Option<i64> {
    header.has_delete_horizon().then_some(header.base_timestamp)
}
