//! What a data directory has promised, and whether it keeps it.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_protocol::record::{Batches, ControlRecord, RecordBatch, TransactionMarker};
use thalweg_protocol::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Scratch};
use thalweg_storage::{AbortedTransaction, AppendOrigin, Log, ReadBound, TimeQuery, TransactionResult};

use super::day::config;
use crate::harness::{Make, World, partition};

/// What was promised of each topic.
#[derive(Debug, Default)]
pub struct Promises {
    topics: BTreeMap<String, Promise>,
}

/// What was promised of a topic of one partition.
#[derive(Debug, Default)]
pub struct Promise {
    /// Whether its creation was answered, and its deletion not asked for.
    pub exists: bool,
    /// Whether its deletion was answered.
    pub is_gone: bool,
    /// Every record below was acknowledged, or could be read by a consumer.
    committed: Offset,
    /// The log start offset lies between these.
    pub start_done: Offset,
    pub start_attempted: Offset,
    /// Whether a batch of producer 5 was ever appended, and whether one was found.
    had_producer_5: bool,
    has_producer_5: bool,
    /// The batches that may stand at an offset: one, but for those that a truncation may or may not have removed.
    batches: BTreeMap<Offset, Vec<Expected>>,
}

#[derive(Clone, Debug)]
enum Expected {
    Batch(RecordBatch),
    /// A marker has its time from the log.
    Marker(i64, TransactionResult),
}

impl Promise {
    /// Nothing below may be truncated.
    pub fn least_end(&self) -> Offset {
        self.committed
    }

    pub fn committed(&mut self, below: Offset) {
        self.committed = self.committed.max(below);
    }

    /// From here on records from `to` on may go: nobody was promised them.
    pub fn truncating(&mut self, to: Offset) {
        self.committed = self.committed.min(to);
    }

    /// Records from `to` on have gone and may not come back.
    pub fn truncated(&mut self, to: Offset) {
        self.batches.split_off(&to);
    }

    fn expect(&mut self, at: Offset, expected: Expected) {
        self.batches.entry(at).or_default().push(expected);
    }
}

macro_rules! ensure {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}

impl Promises {
    pub fn of(&mut self, topic: &str) -> &mut Promise {
        self.topics.entry(topic.to_owned()).or_default()
    }

    /// An append begins: from now on this batch may be found at `at`.
    pub fn attempt(&mut self, topic: &str, at: Offset, epoch: LeaderEpoch, batch: &RecordBatch) {
        let promise = self.of(topic);
        promise.had_producer_5 |= batch.header().producer_id == ProducerId(5);
        promise.expect(at, Expected::Batch(batch.clone().at(at, epoch)));
    }

    pub fn attempt_marker(&mut self, topic: &str, at: Offset, producer: i64, result: TransactionResult) {
        self.of(topic).expect(at, Expected::Marker(producer, result));
    }

    /// Opens the directory after a crash and compares. Goes on working a little, so that what is appended next
    /// is promised, too.
    pub fn check(&mut self, world: &World) -> Result<(), String> {
        let manager = world.try_manager(&config()).map_err(|error| format!("it does not open: {error}"))?;
        let mut offline = manager.offline_logs();
        // The checkpoint may remember a deleted log.
        offline.retain(|log| {
            !["c", "d"].contains(&&*log.partition.topic)
                || !matches!(&*log.error, thalweg_storage::Error::Vanished { .. })
        });
        ensure!(offline.is_empty(), "offline: {offline:?}");
        for (topic, promise) in &mut self.topics {
            let log = manager.log(&partition(topic, 0));
            ensure!(!(promise.is_gone && log.is_some()), "{topic} was deleted and is there");
            ensure!(!promise.exists || log.is_some(), "{topic} is not there");
            if let Some(log) = log {
                promise.check(&log).map_err(|broken| format!("{topic}: {broken}"))?;
                promise.go_on(&log).map_err(|error| format!("{topic} does not go on: {error}"))?;
            }
        }
        Ok(())
    }
}

impl Promise {
    fn check(&mut self, log: &Log) -> Result<(), String> {
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        let allowed = self.start_done..=self.start_attempted;
        ensure!(allowed.contains(&start), "the log starts at {start}, not within {allowed:?}");
        ensure!(end >= self.committed, "the log ends at {end}, but {} was committed", self.committed);
        ensure!(log.high_watermark() <= end && log.synced_offset() == end, "unsynced after recovery");
        let batches = self.read(log, start, end)?;
        let mut epochs = BTreeMap::new();
        for batch in &batches {
            let header = batch.header();
            epochs.entry(header.partition_leader_epoch).or_insert(header.base_offset);
            let epoch = log.epoch_of_offset(header.last_offset());
            ensure!(epoch == Some(header.partition_leader_epoch), "{epoch:?} for {header:?}");
        }
        check_transactions(log, &batches)?;
        check_producers(log, &batches)?;
        check_time(log, &batches)
    }

    /// Reads the whole log and compares each batch with what was appended.
    fn read(&mut self, log: &Log, start: Offset, end: Offset) -> Result<Vec<RecordBatch>, String> {
        let mut found = Vec::new();
        let mut next = start;
        while next < end {
            let info =
                log.read(next, 1, ReadBound::LogEnd, true).map_err(|error| format!("at {next}: {error}"))?;
            let slice = info.records.ok_or_else(|| format!("nothing at {next}, before the end at {end}"))?;
            let bytes = slice.read().map_err(|error| error.to_string())?;
            let batch =
                Batches::new(bytes).next().ok_or("no whole batch")?.map_err(|error| error.to_string())?;
            batch.verify().map_err(|error| error.to_string())?;
            let header = *batch.header();
            let is_first = found.is_empty() && header.base_offset <= next && header.next_offset() > next;
            ensure!(is_first || header.base_offset == next, "{header:?} at {next}");
            let variants = self.batches.get(&header.base_offset).map_or(&[][..], |variants| variants);
            let is_expected = |expected: &Expected| match expected {
                Expected::Batch(expected) => expected.bytes() == batch.bytes(),
                Expected::Marker(producer, result) => {
                    let marker = marker_of(&batch);
                    header.producer_id == ProducerId(*producer)
                        && marker.is_some_and(|m| m.commit == (*result == TransactionResult::Commit))
                }
            };
            let variant = variants.iter().find(|expected| is_expected(expected));
            let variant = variant.ok_or_else(|| format!("{header:?} was never appended there"))?.clone();
            // Having been found once, it is the one.
            self.batches.insert(header.base_offset, vec![variant]);
            next = header.next_offset();
            found.push(batch);
        }
        ensure!(next == end, "the last batch ends at {next}, not at {end}");
        self.has_producer_5 = found.iter().any(|batch| batch.header().producer_id == ProducerId(5));
        Ok(found)
    }

    /// Appends, syncs, and so promises more.
    fn go_on(&mut self, log: &Log) -> Result<(), thalweg_storage::Error> {
        let epoch = LeaderEpoch(log.latest_epoch().map_or(0, |epoch| epoch.0) + 1);
        let at = log.log_end_offset();
        if self.had_producer_5 && !self.has_producer_5 {
            // Unless what became of the batches is not what is remembered, any sequence of it is the first.
            let batch = Make::values(&["unknown"]).by(5, 0, 777).batch();
            log.append_as_leader(&batch, epoch, AppendOrigin::Client { guard: None, awaits_sync: true })?;
            log.truncate_to(at)?;
        }
        // As long as the batch that was lost here, so that what followed that one would fit again.
        let lost = self.batches.get(&at).and_then(|variants| match variants.last() {
            Some(Expected::Batch(batch)) if !batch.header().is_idempotent() => Some(batch.clone()),
            _ => None,
        });
        let batch = lost.unwrap_or_else(|| Make::values(&["after the crash"]).batch());
        // Nothing that was there before may come back after this offset.
        self.batches.split_off(&at);
        self.expect(at, Expected::Batch(batch.clone().at(at, epoch)));
        log.append_as_leader(&batch, epoch, AppendOrigin::Coordinator)?;
        let synced = log.sync()?;
        log.set_high_watermark(synced);
        self.committed(synced);
        let start = log.log_start_offset();
        (self.start_done, self.start_attempted) = (start, start);
        self.exists = true;
        Ok(())
    }
}

fn marker_of(batch: &RecordBatch) -> Option<TransactionMarker> {
    let mut scratch = Scratch::new(1024);
    let record = batch.records(&mut scratch).ok()?.next()?.ok()?;
    match ControlRecord::parse(&record).ok()? {
        ControlRecord::EndTransaction(marker) => Some(marker),
        ControlRecord::Other(_) => None,
    }
}

/// The open and the aborted transactions are those that the surviving batches tell of.
fn check_transactions(log: &Log, batches: &[RecordBatch]) -> Result<(), String> {
    let mut open: BTreeMap<ProducerId, Offset> = BTreeMap::new();
    let mut aborted = Vec::new();
    for batch in batches {
        let header = batch.header();
        match marker_of(batch).filter(|_| header.is_control()) {
            Some(marker) => {
                if let Some(first_offset) = open.remove(&header.producer_id)
                    && !marker.commit
                {
                    aborted.push(AbortedTransaction { producer_id: header.producer_id, first_offset });
                }
            }
            None if header.is_transactional() => {
                open.entry(header.producer_id).or_insert(header.base_offset);
            }
            None => {}
        }
    }
    let producers: BTreeSet<ProducerId> = batches.iter().map(|batch| batch.header().producer_id).collect();
    for producer in producers {
        let is_open = log.has_open_transaction(producer, ProducerEpoch(0));
        ensure!(
            is_open == open.contains_key(&producer),
            "transaction of {producer}: open according to the log: {is_open}"
        );
    }
    aborted.sort_by_key(|aborted| aborted.first_offset);
    let end = log.log_end_offset();
    let found = log.aborted_transactions(log.log_start_offset(), end).map_err(|error| error.to_string())?;
    // Data before the log's start is not read above.
    let is_complete = log.log_start_offset() == Offset(0);
    ensure!(!is_complete || found == aborted, "aborted are {aborted:?}, the index has {found:?}");
    log.set_high_watermark(end);
    let stable = open.values().min().copied().unwrap_or(end);
    ensure!(
        log.last_stable_offset() == stable || !is_complete && log.last_stable_offset() < stable,
        "last stable offset {}, not {stable}",
        log.last_stable_offset()
    );
    Ok(())
}

/// The newest batch of each producer is recognized when it is sent again, and its next sequence is known.
fn check_producers(log: &Log, batches: &[RecordBatch]) -> Result<(), String> {
    let newest: BTreeMap<ProducerId, &RecordBatch> = batches
        .iter()
        .filter(|batch| batch.header().is_idempotent() && !batch.header().is_control())
        .map(|batch| (batch.header().producer_id, batch))
        .collect();
    for (producer, last) in newest {
        let epoch = LeaderEpoch(i32::MAX);
        let origin = AppendOrigin::Client { guard: None, awaits_sync: true };
        let info = log
            .append_as_leader(last, epoch, origin)
            .map_err(|error| format!("a retry is refused: {error}"))?;
        ensure!(
            info.is_duplicate && info.first_offset == last.header().base_offset,
            "a retry of {:?} is answered with {info:?}",
            last.header()
        );
        let gap = Make::values(&["gap"]).by(producer.0, 0, last.header().last_sequence() + 2).batch();
        ensure!(log.append_as_leader(&gap, epoch, origin).is_err(), "a gap in the sequence is not noticed");
    }
    Ok(())
}

fn check_time(log: &Log, batches: &[RecordBatch]) -> Result<(), String> {
    let newest = batches.iter().map(|batch| batch.header().max_timestamp).max();
    let found = log.offset_for_time(TimeQuery::MaxTimestamp).map_err(|error| error.to_string())?;
    ensure!(found.map(|found| found.timestamp) == newest, "newest is {newest:?}, not {found:?}");
    for batch in batches {
        let header = batch.header();
        let first = batches.iter().find(|b| b.header().max_timestamp >= header.max_timestamp);
        let first = first.map(|b| b.header().base_offset.max(log.log_start_offset()));
        let found =
            log.offset_for_time(TimeQuery::At(header.max_timestamp)).map_err(|error| error.to_string())?;
        ensure!(
            found.map(|found| found.offset) == first,
            "{} is at {first:?}, not {found:?}",
            header.max_timestamp
        );
    }
    Ok(())
}
