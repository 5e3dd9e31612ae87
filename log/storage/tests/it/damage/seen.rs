//! Everything that a log shows to its readers.

use std::collections::BTreeSet;

use thalweg_protocol::record::{Batches, ControlRecord, OwnedRecord};
use thalweg_protocol::{LeaderEpoch, Offset, ProducerId, Scratch};
use thalweg_storage::{EpochEnd, Log, ReadBound, TimeQuery, TimestampOffset};

use crate::harness::NOW_MS;

#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    bounds: [Offset; 2],
    records: Vec<OwnedRecord>,
    /// What a reader of committed records gets.
    committed: Vec<OwnedRecord>,
    by_time: Vec<Option<TimestampOffset>>,
    epochs: Vec<EpochEnd>,
    last_sequences: Vec<(ProducerId, Option<i32>)>,
}

impl Seen {
    /// Tells the first thing that is not as it was.
    pub fn compare(&self, expected: &Self) -> Result<(), String> {
        let differs = |what: &str, found: String, expected: String| match found == expected {
            true => Ok(()),
            false => Err(format!("other {what}:\n    {found}\n  instead of\n    {expected}")),
        };
        let short = |records: &[OwnedRecord]| {
            let one = |r: &OwnedRecord| format!("{}@{}={:?}", r.offset, r.timestamp, r.value);
            records.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        let debug = |value: &dyn std::fmt::Debug| format!("{value:?}");
        differs("bounds", debug(&self.bounds), debug(&expected.bounds))?;
        differs("records", short(&self.records), short(&expected.records))?;
        differs("committed records", short(&self.committed), short(&expected.committed))?;
        differs("offsets by time", debug(&self.by_time), debug(&expected.by_time))?;
        differs("epochs", debug(&self.epochs), debug(&expected.epochs))?;
        differs("sequences", debug(&self.last_sequences), debug(&expected.last_sequences))
    }
}

impl Seen {
    /// The same for a reader who does not look at leader epochs.
    pub fn without_epochs(&self) -> Self {
        let without_epoch =
            |found: &TimestampOffset| TimestampOffset { leader_epoch: LeaderEpoch::UNKNOWN, ..*found };
        Self {
            by_time: self.by_time.iter().map(|found| found.as_ref().map(without_epoch)).collect(),
            epochs: Vec::new(),
            ..self.clone()
        }
    }

    /// Whether no more than so many of the last records are missing.
    pub fn is_all_but_the_last(&self, most: i64, expected: &Self) -> bool {
        let [start, end] = self.bounds;
        let is_near = start == expected.bounds[0]
            && (expected.bounds[1].0 - most..=expected.bounds[1].0).contains(&end.0);
        is_near
            && expected.records.starts_with(&self.records)
            && expected.committed.starts_with(&self.committed)
    }

    /// Whether all is there, and some of the deleted records before.
    pub fn is_more_at_the_start_than(&self, expected: &Self) -> bool {
        let [start, end] = self.bounds;
        start < expected.bounds[0]
            && expected.bounds[0] > Offset(0)
            && end == expected.bounds[1]
            && self.records.ends_with(&expected.records)
            && self.last_sequences == expected.last_sequences
    }
}

/// The logs have what the sweeps are about.
pub fn check_whole(all: &[Seen]) {
    let [settled, plain, kept, cut] = all else { panic!("four logs") };
    let values = |seen: &[OwnedRecord]| {
        seen.iter()
            .map(|r| String::from_utf8(r.value.clone().expect("a value").to_vec()).expect("text"))
            .collect::<Vec<_>>()
    };
    let count = |of: &[OwnedRecord], value: &str| values(of).iter().filter(|found| *found == value).count();
    assert_eq!([count(&settled.records, "aborted"), count(&settled.committed, "aborted")], [8, 0]);
    assert_eq!([count(&settled.records, "committed"), count(&settled.committed, "committed")], [8, 8]);
    assert_eq!(plain.records.len(), 19);
    assert_eq!(plain.epochs[3].end_offset, Offset(10));
    assert!(kept.records.len() < 18, "it was compacted");
    assert_eq!((cut.bounds[0], cut.records[0].offset), (Offset(5), Offset(5)));
}

/// Looks at everything as careful clients do.
///
/// # Errors
/// What told that something is wrong.
pub fn look(log: &Log) -> Result<Seen, String> {
    let told = |error: thalweg_storage::Error| error.to_string();
    let synced = log.sync().map_err(told)?;
    log.set_high_watermark(synced);
    let times = (-1..120).step_by(4).map(|ms| TimeQuery::At(NOW_MS + ms)).chain([TimeQuery::MaxTimestamp]);
    let mut last_sequences: Vec<_> =
        log.active_producers().into_iter().map(|p| (p.producer_id, p.last_sequence)).collect();
    last_sequences.sort();
    Ok(Seen {
        bounds: [log.log_start_offset(), log.log_end_offset()],
        records: read(log, ReadBound::HighWatermark)?,
        committed: read(log, ReadBound::LastStableOffset)?,
        by_time: times.map(|query| log.offset_for_time(query)).collect::<Result<_, _>>().map_err(told)?,
        epochs: (0..7).map(|epoch| log.end_offset_for_epoch(LeaderEpoch(epoch))).collect(),
        last_sequences,
    })
}

/// Reads as a client does that checks checksums, in small steps.
fn read(log: &Log, bound: ReadBound) -> Result<Vec<OwnedRecord>, String> {
    let mut found = Vec::new();
    let mut scratch = Scratch::new(1 << 20);
    let mut next = log.log_start_offset();
    let mut aborting = BTreeSet::new();
    loop {
        let info = log.read(next, 300, bound, true).map_err(|error| error.to_string())?;
        let Some(slice) = info.records else { break };
        let mut aborted = info.aborted_transactions.into_iter().peekable();
        let before = next;
        // The broker logs where it read; a client knows the partition.
        let wrong = |what: String| format!("{}: {what}", log.directory().display());
        for batch in Batches::new(slice.read().expect("the file is there")) {
            let batch = batch.map_err(|error| wrong(error.to_string()))?;
            batch.verify().map_err(|error| wrong(error.to_string()))?;
            let header = *batch.header();
            if bound == ReadBound::LastStableOffset {
                while let Some(aborted) = aborted.next_if(|a| a.first_offset <= header.last_offset()) {
                    aborting.insert(aborted.producer_id);
                }
            }
            let is_skipped = header.is_transactional() && aborting.contains(&header.producer_id);
            for record in batch.decode(&mut scratch).map_err(|error| wrong(error.to_string()))? {
                let record = record.map_err(|error| wrong(error.to_string()))?;
                if record.offset >= next && !is_skipped && !header.is_control() {
                    found.push(record);
                }
            }
            if header.is_control() {
                let all = batch.records(&mut scratch).map_err(|error| wrong(error.to_string()))?;
                for record in all {
                    let record = record.map_err(|error| wrong(error.to_string()))?;
                    if let Ok(ControlRecord::EndTransaction(marker)) = ControlRecord::parse(&record)
                        && !marker.commit
                    {
                        aborting.remove(&header.producer_id);
                    }
                }
            }
            next = next.max(header.next_offset());
        }
        if next <= before {
            return Err(wrong("a read makes no progress".to_owned()));
        }
    }
    Ok(found)
}
