//! Everything that was ever appended to a log, and what of it must still be there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use thalweg_protocol::record::{
    BatchHeader, Batches, ControlRecord, OwnedRecord, RecordBatch, TransactionMarker,
};
use thalweg_protocol::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Scratch};
use thalweg_storage::{AppendOrigin, Log, ReadBound, TimeQuery};

macro_rules! ensure {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}

/// The history of a log: one batch after the other, without gaps.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub batches: Vec<RecordBatch>,
    /// Everything below was committed.
    pub committed: Offset,
}

/// A batch that is still in the log.
pub struct Found {
    pub header: BatchHeader,
    pub records: Vec<OwnedRecord>,
}

/// What a key has in the end: the offset, and the value or a tombstone.
type View = BTreeMap<Vec<u8>, (Offset, Option<Vec<u8>>)>;

/// How the transactions of a history went.
#[derive(Default)]
struct Transactions {
    /// First offset and marker of those that were aborted, with their producers.
    aborted: Vec<(ProducerId, Offset, Offset)>,
    open: BTreeMap<ProducerId, Offset>,
}

impl Model {
    pub fn end(&self) -> Offset {
        self.batches.last().map_or(Offset(0), |last| last.header().next_offset())
    }

    /// A batch is about to be appended.
    pub fn append(&mut self, batch: RecordBatch, leader_epoch: LeaderEpoch) {
        self.batches.push(batch.at(self.end(), leader_epoch));
    }

    /// The log ends here: what comes after was lost, which it may be if nobody was promised it.
    pub fn truncate(&mut self, end: Offset) -> Result<(), String> {
        ensure!(end >= self.committed, "the log ends at {end}, but {} was committed", self.committed);
        self.batches.retain(|batch| batch.header().base_offset < end);
        ensure!(self.end() == end, "{end} is within a batch, or after all of them");
        Ok(())
    }

    fn transactions(&self) -> Transactions {
        let mut found = Transactions::default();
        for batch in &self.batches {
            let header = batch.header();
            match marker_of(batch) {
                Some(marker) => {
                    if let Some(first) = found.open.remove(&header.producer_id)
                        && !marker.commit
                    {
                        found.aborted.push((header.producer_id, first, header.base_offset));
                    }
                }
                None if header.is_transactional() => {
                    found.open.entry(header.producer_id).or_insert(header.base_offset);
                }
                None => {}
            }
        }
        found
    }

    /// The records of committed transactions, and of none.
    fn committed_records(&self) -> Vec<OwnedRecord> {
        let transactions = self.transactions();
        let is_out = |header: &BatchHeader| {
            let (id, at) = (header.producer_id, header.base_offset);
            let is_aborted = transactions
                .aborted
                .iter()
                .any(|&(other, first, last)| id == other && first <= at && at <= last);
            let is_open = transactions.open.get(&id).is_some_and(|&first| first <= at);
            header.is_control() || header.is_transactional() && (is_aborted || is_open)
        };
        let kept = self.batches.iter().filter(|batch| !is_out(batch.header()));
        kept.flat_map(records_in).collect()
    }

    /// Compares the log with the history. Below `unique_below` each key must have one record at most, and from
    /// `complete_from` on all records must be there.
    pub fn check(
        &self,
        log: &Log,
        unique_below: Offset,
        complete_from: Offset,
    ) -> Result<Vec<Found>, String> {
        ensure!(
            log.log_end_offset() == self.end(),
            "it ends at {}, not {}",
            log.log_end_offset(),
            self.end()
        );
        let found = read_all(log)?;
        self.check_batches(&found)?;
        let committed = self.committed_records();
        let expected = view(committed.iter());
        let stable = self.transactions().open.values().min().copied().unwrap_or(self.end());
        log.set_high_watermark(self.end());
        ensure!(
            log.last_stable_offset() == stable,
            "stable up to {}, not {stable}",
            log.last_stable_offset()
        );
        for from in [Offset(0), Offset(self.end().0 / 2), Offset(self.end().0 * 3 / 4)] {
            let consumed = consume(log, from)?;
            let wanted: Vec<&OwnedRecord> =
                committed.iter().filter(|record| record.offset >= from && record.offset < stable).collect();
            // A reader that begins in the middle sees what was written since, or the end of it.
            check_view(&view(consumed.iter()), &view(wanted.iter().copied()), &expected, stable)?;
            let dirty: Vec<&OwnedRecord> = wanted.into_iter().filter(|r| r.offset >= complete_from).collect();
            let consumed_dirty: Vec<&OwnedRecord> =
                consumed.iter().filter(|record| record.offset >= complete_from).collect();
            ensure!(consumed_dirty == dirty, "from {complete_from} on everything must be there");
            let clean = consumed.iter().filter(|record| record.offset < unique_below);
            let mut seen = BTreeSet::new();
            for record in clean {
                ensure!(seen.insert(record.key.clone()), "{:?} comes twice below {unique_below}", record.key);
            }
        }
        self.check_producers(log)?;
        check_time(log, &found)?;
        Ok(found)
    }

    /// What is left of a batch is what it was.
    fn check_batches(&self, found: &[Found]) -> Result<(), String> {
        let originals: HashMap<Offset, &RecordBatch> =
            self.batches.iter().map(|batch| (batch.header().base_offset, batch)).collect();
        for Found { header, records } in found {
            let original = originals.get(&header.base_offset);
            let original = original.ok_or_else(|| format!("{header:?} was never appended"))?;
            let what_stays = |h: &BatchHeader| {
                let producer = (h.producer_id, h.producer_epoch, h.base_sequence, h.last_sequence());
                (h.last_offset(), h.partition_leader_epoch, producer, h.is_transactional(), h.is_control())
            };
            let (left, before) = (what_stays(header), what_stays(original.header()));
            ensure!(left == before, "{header:?} was {:?}", original.header());
            let before = records_in(original);
            for record in records {
                ensure!(before.contains(record), "{record:?} is none of {before:?}");
            }
        }
        Ok(())
    }

    /// The newest batch of each producer is recognized when it is sent again, and its next sequence is known.
    fn check_producers(&self, log: &Log) -> Result<(), String> {
        let (epoch, origin) =
            (LeaderEpoch(i32::MAX), AppendOrigin::Client { guard: None, awaits_sync: true });
        let mut newest: BTreeMap<ProducerId, (ProducerEpoch, Option<&RecordBatch>)> = BTreeMap::new();
        for batch in self.batches.iter().filter(|batch| batch.header().is_idempotent()) {
            let header = batch.header();
            let known = newest.entry(header.producer_id).or_insert((header.producer_epoch, None));
            if header.producer_epoch != known.0 {
                *known = (header.producer_epoch, None);
            }
            if !header.is_control() {
                known.1 = Some(batch);
            }
        }
        for (&id, &(current, newest)) in &newest {
            let is_open = self.transactions().open.contains_key(&id);
            ensure!(
                log.has_open_transaction(id, current) == is_open,
                "a transaction of {id} is open: {is_open}"
            );
            let Some(newest) = newest else { continue };
            let info = log
                .append_as_leader(newest, epoch, origin)
                .map_err(|error| format!("a retry of {:?} is refused: {error}", newest.header()))?;
            ensure!(
                info.is_duplicate && info.first_offset == newest.header().base_offset,
                "a retry of {:?} is answered with {info:?}",
                newest.header()
            );
        }
        Ok(())
    }
}

/// What a read sees in the end is what was written since, but for deletions that need not be seen any more, and for
/// what came before where that is all there is.
fn check_view(seen: &View, wanted: &View, all: &View, stable: Offset) -> Result<(), String> {
    for (key, (offset, value)) in wanted {
        match seen.get(key) {
            Some(found) => {
                ensure!(found == &(*offset, value.clone()), "{key:?} is {found:?}, not {offset} {value:?}")
            }
            None => ensure!(value.is_none(), "{key:?} is gone, which was {value:?} at {offset}"),
        }
    }
    for (key, (offset, value)) in seen {
        let last = all.get(key).filter(|(last, _)| *last < stable);
        ensure!(
            wanted.contains_key(key) && last.is_none_or(|last| *last == (*offset, value.clone())),
            "{key:?} is {value:?} at {offset}, which it should not be: {last:?}"
        );
    }
    Ok(())
}

fn view<'a>(records: impl Iterator<Item = &'a OwnedRecord>) -> View {
    let key = |record: &OwnedRecord| record.key.as_ref().map(|key| key.to_vec());
    let value = |record: &OwnedRecord| (record.offset, record.value.as_ref().map(|value| value.to_vec()));
    records.filter_map(|record| Some((key(record)?, value(record)))).collect()
}

/// All batches from the start to the end, read with many small reads from wherever the last one ended.
pub fn read_all(log: &Log) -> Result<Vec<Found>, String> {
    let mut found: Vec<Found> = Vec::new();
    let (mut next, end) = (log.log_start_offset(), log.log_end_offset());
    while next < end {
        let info =
            log.read(next, 1, ReadBound::LogEnd, true).map_err(|error| format!("at {next}: {error}"))?;
        let slice = info.records.ok_or_else(|| format!("nothing at {next}, before the end at {end}"))?;
        let batch = Batches::new(slice.read().map_err(|error| error.to_string())?).next();
        let batch = batch.ok_or("no whole batch")?.map_err(|error| error.to_string())?;
        batch.verify().map_err(|error| error.to_string())?;
        let header = *batch.header();
        ensure!(header.next_offset() > next, "{header:?} for {next}");
        ensure!(
            found.last().is_none_or(|last| last.header.last_offset() < header.base_offset),
            "back to {header:?}"
        );
        next = header.next_offset();
        found.push(Found { header, records: records_in(&batch) });
    }
    ensure!(next == end, "the last batch ends at {next}, not at {end}");
    Ok(found)
}

/// What a consumer that reads committed data gets from `from` on.
fn consume(log: &Log, from: Offset) -> Result<Vec<OwnedRecord>, String> {
    let mut consumed = Vec::new();
    let mut skipping: BTreeSet<ProducerId> = BTreeSet::new();
    let mut next = from;
    loop {
        let info = log
            .read(next, 400, ReadBound::LastStableOffset, true)
            .map_err(|error| format!("at {next}: {error}"))?;
        let Some(slice) = info.records else { return Ok(consumed) };
        let mut aborted = info.aborted_transactions.into_iter().peekable();
        let before = next;
        for batch in Batches::new(slice.read().map_err(|error| error.to_string())?) {
            let batch = batch.map_err(|error| error.to_string())?;
            let header = batch.header();
            while let Some(begun) = aborted.next_if(|a| a.first_offset <= header.last_offset()) {
                skipping.insert(begun.producer_id);
            }
            if header.is_control() {
                if marker_of(&batch).is_some_and(|marker| !marker.commit) {
                    skipping.remove(&header.producer_id);
                }
            } else if !header.is_transactional() || !skipping.contains(&header.producer_id) {
                consumed.extend(records_in(&batch).into_iter().filter(|record| record.offset >= next));
            }
            next = header.next_offset().max(next);
        }
        ensure!(next > before, "a read at {before} makes no progress");
    }
}

pub fn records_in(batch: &RecordBatch) -> Vec<OwnedRecord> {
    let mut scratch = Scratch::new(1 << 20);
    let decoded = batch.decode(&mut scratch).expect("it decompresses");
    decoded.into_iter().map(|record| record.expect("a good record")).collect()
}

pub fn marker_of(batch: &RecordBatch) -> Option<TransactionMarker> {
    if !batch.header().is_control() {
        return None;
    }
    let mut scratch = Scratch::new(1024);
    let record = batch.records(&mut scratch).ok()?.next()?.ok()?;
    match ControlRecord::parse(&record).ok()? {
        ControlRecord::EndTransaction(marker) => Some(marker),
        ControlRecord::Other(_) => None,
    }
}

fn check_time(log: &Log, found: &[Found]) -> Result<(), String> {
    let all = || found.iter().flat_map(|batch| &batch.records);
    let newest = all().map(|record| record.timestamp).max();
    let answer = log.offset_for_time(TimeQuery::MaxTimestamp).map_err(|error| error.to_string())?;
    ensure!(answer.map(|a| a.timestamp) == newest, "newest is {newest:?}, not {answer:?}");
    for time in all().map(|record| record.timestamp).collect::<BTreeSet<i64>>() {
        let first = all().find(|record| record.timestamp >= time).map(|record| record.offset);
        let answer = log.offset_for_time(TimeQuery::At(time)).map_err(|error| error.to_string())?;
        ensure!(answer.map(|a| a.offset) == first, "{time} is at {first:?}, not {answer:?}");
    }
    Ok(())
}
