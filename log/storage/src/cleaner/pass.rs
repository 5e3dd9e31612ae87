//! A round over one log: the map of the dirty part, then the copy of everything.

use thalweg_protocol::Offset;
use thalweg_protocol::record::{BatchHeader, RawRecords, RecordError};

use super::CleaningReport;
use super::budget::{Budget, Halt};
use super::judge::{Fate, Judge, Judged, Tools, records_of};
use super::offset_map::{KeyHasher, OffsetMap};
use super::output::{Output, give_up};
use super::transactions::Transactions;
use crate::batch_scan::{BatchScan, Scanned};
use crate::config::LogConfig;
use crate::error::Corruption;
use crate::filesystem::StoredFile;
use crate::log::{Cleanable, CleanedTo, Log, Source};

/// How many bytes are read at a time.
const WINDOW: usize = 1 << 20;

/// Cleans what may be cleaned of a log.
pub(super) fn clean(
    log: &Log,
    cleanable: Cleanable,
    memory_bytes: usize,
    hasher: KeyHasher,
    tools: &mut Tools,
    mut budget: Budget<'_>,
) -> Result<CleaningReport, Halt> {
    let config = log.config();
    let now_ms = log.environment().clock.now_ms();
    let (bytes_before, segments_before) = (log.size_in_bytes(), log.segment_count());
    let (map, map_end) = map_keys(log, &cleanable, memory_bytes, hasher, tools, &mut budget)?;
    let remembered = log.remembered();
    let judge = Judge {
        map: &map,
        map_end,
        remembered: &remembered,
        hasher,
        now_ms,
        delete_retention_ms: config.delete_retention_ms,
        tools,
        next_horizon_ms: None,
        removed: 0,
    };
    let transactions = Transactions::new(log);
    let is_complete = map_end >= cleanable.limit();
    let (gaps_below, truncations, end) =
        (cleanable.cleaned.gaps_below, cleanable.truncations, cleanable.limit());
    let mut pass = Pass { log, config: &config, judge, transactions, budget, gaps_below, truncations, end };
    // Whoever holds a segment that is replaced keeps its files open.
    let sources = cleanable.sources.into_iter().take_while(|source| source.segment.base_offset() < map_end);
    pass.copy_all(sources)?;
    let Pass { judge: Judge { next_horizon_ms, removed, .. }, budget, .. } = pass;
    let is_noted = log.set_cleaned(cleanable.truncations, |cleaned| {
        cleaned.to = map_end.max(cleaned.to);
        cleaned.next_horizon_ms = next_horizon_ms;
    })?;
    if !is_noted {
        return Err(Halt::Changed);
    }
    Ok(CleaningReport {
        bytes_before,
        bytes_after: log.size_in_bytes(),
        segments_before,
        segments_after: log.segment_count(),
        records_removed: removed,
        keys: map.len(),
        cleaned_to: map_end,
        is_complete,
        bytes_read: budget.read,
        bytes_written: budget.written,
    })
}

/// Notes the last offset of each key in the dirty part, as far as the memory goes. Returns also where that is.
fn map_keys(
    log: &Log,
    cleanable: &Cleanable,
    memory_bytes: usize,
    hasher: KeyHasher,
    tools: &mut Tools,
    budget: &mut Budget<'_>,
) -> Result<(OffsetMap, Offset), Halt> {
    let from = cleanable.cleaned.to;
    let end = cleanable.limit().max(from);
    let mut map = OffsetMap::new(memory_bytes, (end.0 - from.0) as u64);
    let mut transactions = Transactions::new(log);
    for source in cleanable.dirty() {
        let file = source.segment.log_file().get(log.environment())?;
        let mut reading = Reading::new(log, source, &file, cleanable.cleaned.gaps_below);
        while let Some((position, header)) = reading.next()? {
            budget.spend_read(header.size_in_bytes() as u64)?;
            if header.next_offset() <= from || header.is_control() || header.records_count == 0 {
                continue;
            }
            if header.is_transactional() && transactions.aborted(log, &header)?.is_some() {
                continue;
            }
            let bytes = reading.scan.batch(position, &header)?;
            let damaged = |problem| corrupt(source, position, &header, problem);
            let records = records_of(&header, bytes, &mut tools.scratch).map_err(damaged)?;
            for record in RawRecords::new(&header, records) {
                let record = record.map_err(damaged)?;
                let Some(key) = record.key.filter(|_| record.offset >= from) else { continue };
                if !map.insert(hasher.hash(key), record.offset) {
                    return Ok((map, record.offset));
                }
            }
        }
    }
    Ok((map, end))
}

/// The batches of a segment, from the first to the last.
struct Reading<'a> {
    source: &'a Source,
    scan: BatchScan<'a>,
    /// The offset that comes next, if none is missing.
    expected: Offset,
    /// Offsets may be missing below.
    gaps_below: Offset,
}

impl<'a> Reading<'a> {
    fn new(log: &'a Log, source: &'a Source, file: &'a StoredFile, gaps_below: Offset) -> Self {
        let path = source.segment.log_file().path();
        let scan = BatchScan::new(log.environment(), file, path, 0, source.size, WINDOW);
        Self { source, scan, expected: source.segment.base_offset(), gaps_below }
    }

    /// The next batch, which is good and where it should be: what is damaged must not be copied.
    fn next(&mut self) -> Result<Option<(u64, BatchHeader)>, Halt> {
        match self.scan.next_verified()? {
            Scanned::Batch { position, header } => {
                let (found, expected) = (header.base_offset, self.expected);
                let is_expected = found == expected || found > expected && found <= self.gaps_below;
                if !is_expected || header.next_offset() > self.source.end {
                    let gap = Corruption::Gap { expected, found };
                    return Err(Halt::Failed(self.source.segment.corrupt(position, gap)));
                }
                self.expected = header.next_offset();
                Ok(Some((position, header)))
            }
            Scanned::End => Ok(None),
            Scanned::Damage { position, damage } => {
                Err(Halt::Failed(self.source.segment.corrupt(position, damage.corruption(self.expected))))
            }
        }
    }
}

fn corrupt(source: &Source, position: u64, header: &BatchHeader, problem: RecordError) -> Halt {
    let corruption = Corruption::Batch { expected: header.base_offset, problem };
    Halt::Failed(source.segment.corrupt(position, corruption))
}

/// The copy.
struct Pass<'a, 'b> {
    log: &'a Log,
    config: &'a LogConfig,
    judge: Judge<'a>,
    transactions: Transactions,
    budget: Budget<'b>,
    /// Offsets may be missing below, before this round.
    gaps_below: Offset,
    /// How often the log had been truncated when the round began.
    truncations: u64,
    /// Where the last segment of the round ends.
    end: Offset,
}

impl<'a> Pass<'a, '_> {
    fn copy_all(&mut self, sources: impl Iterator<Item = Source>) -> Result<(), Halt> {
        let mut sources = sources.peekable();
        let mut output: Option<Output<'a>> = None;
        while let Some(source) = sources.next() {
            let joined = match &mut output {
                None => {
                    output = Some(Output::new(self.log, source.clone(), self.config));
                    Ok(())
                }
                Some(output) => output.join(source.clone(), &mut self.budget),
            };
            let current = output.as_mut().expect("it was just set");
            let copied = joined.and_then(|()| self.copy(&source, sources.peek(), current));
            let goes_on = copied.inspect_err(|_| give_up(self.log, current.base_offset()))?;
            if !goes_on {
                let full = output.take().expect("it was just set");
                self.replace(full)?;
            }
        }
        Ok(())
    }

    /// Copies the batches of a segment that have to stay. Returns whether the next segment is to be joined.
    fn copy(
        &mut self,
        source: &Source,
        next: Option<&Source>,
        output: &mut Output<'_>,
    ) -> Result<bool, Halt> {
        let file = source.segment.log_file().get(self.log.environment())?;
        let mut reading = Reading::new(self.log, source, &file, self.gaps_below);
        let may_join =
            |output: &Output<'_>, rest| next.is_some_and(|n| output.may_join(rest, n, self.config));
        let mut goes_on = source.size == 0 && may_join(output, 0);
        while let Some((position, header)) = reading.next()? {
            let size = header.size_in_bytes() as u64;
            self.budget.spend_read(size)?;
            let aborted = match header.is_transactional() {
                true => self.transactions.aborted(self.log, &header)?,
                false => None,
            };
            let is_control = header.is_control();
            let is_needed_marker = is_control && self.transactions.ended(header.producer_id);
            let after = source.size - (position + size);
            if after == 0 {
                goes_on = may_join(output, size);
            }
            let bytes = reading.scan.batch(position, &header)?;
            let judged = Judged {
                header: &header,
                bytes,
                is_aborted: aborted.is_some() && !is_control,
                is_needed_marker,
                is_last: after == 0 && !goes_on,
                room: (i32::MAX as u64).saturating_sub(output.size() + after),
            };
            let fate =
                self.judge.judge(&judged).map_err(|problem| corrupt(source, position, &header, problem))?;
            match fate {
                Fate::Kept => output.keep(&header, bytes, &mut self.budget)?,
                Fate::Rewritten(header) => {
                    output.change(&header, self.judge.rewritten(), &mut self.budget)?;
                }
                Fate::Gone => {
                    output.leave_out(&mut self.budget)?;
                    continue;
                }
            }
            if !is_control {
                self.transactions.kept(&header);
            } else if let Some(aborted) = aborted.filter(|_| is_needed_marker) {
                output.note_aborted(aborted);
            }
        }
        Ok(goes_on)
    }

    /// Puts a new segment in the place of those it was made from.
    fn replace(&mut self, mut output: Output<'_>) -> Result<(), Halt> {
        let base_offset = output.base_offset();
        let replaced = self.try_replace(&mut output);
        if replaced.is_err() {
            give_up(self.log, base_offset);
        }
        replaced
    }

    fn try_replace(&mut self, output: &mut Output<'_>) -> Result<(), Halt> {
        let Some(replacement) = output.finish(&mut self.budget)? else { return Ok(()) };
        // Before there are any.
        let raise = |cleaned: &mut CleanedTo| cleaned.gaps_below = cleaned.gaps_below.max(self.end);
        let is_noted = self.log.set_cleaned(self.truncations, raise)?;
        match is_noted && self.log.swap(replacement)? {
            true => Ok(()),
            false => Err(Halt::Changed),
        }
    }
}
