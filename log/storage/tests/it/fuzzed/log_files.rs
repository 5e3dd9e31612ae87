//! A log of which one file holds the input: segment, indexes, snapshot of the producers, leader epochs and what else there is.
//!
//! The input is a byte that says how the log is opened, one for the file, and what is in it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use thalweg_protocol::{LeaderEpoch, Offset};
use thalweg_storage::{
    AppendOrigin, Cleaner, CleanerConfig, CleanupPolicy, Error, Log, LogConfig, Standing, TransactionResult,
};

use super::mending::mend;
use super::place::{Files, Place, read_tree};
use super::readers;
use crate::harness::{Make, NOW_MS, TOPIC_ID, World, append, commit, marker, partition, small};

/// The first byte of the input.
#[derive(Clone, Copy)]
struct How(u8);

impl How {
    const MENDED: u8 = 1 << 4;

    /// What is known of the log: that it was closed in order, that all of it was synced, nothing, or something.
    fn standing(self, end: Offset) -> Standing {
        match self.0 % 4 {
            0 => {
                Standing { synced_to: Some(end), high_watermark: end, is_clean: true, ..Standing::default() }
            }
            1 => Standing { synced_to: Some(end), ..Standing::default() },
            2 => Standing::default(),
            _ => Standing {
                synced_to: Some(Offset(end.0 / 2)),
                log_start: Offset(3),
                high_watermark: Offset(4),
                ..Standing::default()
            },
        }
    }

    fn without_indexes(self) -> bool {
        self.0 & (1 << 2) != 0
    }

    fn without_snapshots(self) -> bool {
        self.0 & (1 << 3) != 0
    }

    fn is_mended(self) -> bool {
        self.0 & Self::MENDED != 0
    }

    /// Compaction runs over it, too.
    fn is_cleaned(self) -> bool {
        self.0 & (1 << 5) != 0
    }

    /// The log with transactions, or the one that was compacted.
    fn base(self) -> &'static Base {
        let [with_transactions, compacted] = bases();
        if self.0 & (1 << 6) == 0 { with_transactions } else { compacted }
    }
}

/// A log that is in order.
struct Base {
    files: Files,
    end: Offset,
}

fn bases() -> &'static [Base; 2] {
    static BASES: OnceLock<[Base; 2]> = OnceLock::new();
    BASES.get_or_init(|| [with_transactions(), compacted()])
}

fn with_transactions() -> Base {
    let world = World::new();
    let log = world.create(&LogConfig { segment_bytes: 1000, ..small() });
    for n in 0..4 {
        let at = NOW_MS + 10 * i64::from(n);
        let epoch = LeaderEpoch(if n < 3 { 3 } else { 5 });
        let plain = Make::times(&[at, at + 5]).by(1, 0, 2 * n).batch();
        log.append_as_leader(&plain, epoch, AppendOrigin::Client { guard: None, awaits_sync: true })
            .expect("appended");
        let transactional =
            |id| Make::values(&["x"]).at(at).by(id, 0, n).in_transaction().unverified().batch();
        for id in [8, 9] {
            log.append_as_leader(&transactional(id), epoch, AppendOrigin::Coordinator).expect("appended");
        }
        let ends = |id, result| {
            let ends = thalweg_storage::MarkerAppend { leader_epoch: epoch, ..marker(id, 0, result) };
            log.append_marker(ends).expect("appended");
        };
        ends(9, TransactionResult::Abort);
        // The last one stays open.
        if n < 3 {
            ends(8, TransactionResult::Commit);
        }
    }
    finish(&world, &log)
}

fn compacted() -> Base {
    let world = World::new();
    let log = world.create(&to_compact(LogConfig { segment_bytes: 500, ..small() }));
    for n in 0..8 {
        let value = n.to_string();
        append(&log, Make::keyed(&[("same", Some(&*value)), (&*format!("key {n}"), Some("x"))]));
    }
    commit(&log);
    clean(&log).expect("it can be cleaned");
    finish(&world, &log)
}

fn finish(world: &World, log: &Log) -> Base {
    commit(log);
    log.close().expect("closed");
    Base { files: read_tree(&world.path("flights-0")), end: log.log_end_offset() }
}

fn to_compact(config: LogConfig) -> LogConfig {
    let cleanup_policy = CleanupPolicy { delete: false, compact: true };
    LogConfig { cleanup_policy, file_delete_delay_ms: 0, ..config }
}

fn clean(log: &Log) -> Result<(), Error> {
    let config = CleanerConfig { memory_bytes: 1 << 20, io_bytes_per_second: u64::MAX };
    Cleaner::new(&config, 42).clean_log(log).map(drop)
}

thread_local! {
    static PLACE: Place = Place::new();
}

pub fn check(input: &[u8]) {
    let &[how, file, ref content @ ..] = input else { return };
    let how = How(how);
    let base = how.base();
    let mut files = base.files.clone();
    let has_ending = |path: &Path, ending: &str| path.to_str().is_some_and(|path| path.ends_with(ending));
    let path = base.files.keys().nth(usize::from(file) % base.files.len()).expect("it is one of them");
    if how.without_indexes() {
        files.retain(|path, _| !has_ending(path, "index"));
    }
    if how.without_snapshots() {
        files.retain(|path, _| !has_ending(path, ".snapshot") && !has_ending(path, "checkpoint"));
    }
    let mut content = content.to_vec();
    if how.is_mended() {
        mend(path, &mut content);
    }
    files.insert(path.clone(), content);
    PLACE.with(|place| check_files(place, &files, how));
}

fn check_files(place: &Place, files: &Files, how: How) {
    place.put(files);
    let config = match how.is_cleaned() {
        true => to_compact(small()),
        false => LogConfig { segment_bytes: 1000, ..small() },
    };
    let open = |standing: Standing| -> Result<Arc<Log>, Error> {
        let (partition, environment) = (partition("flights", 0), place.environment());
        Log::open(&place.root(), partition, TOPIC_ID, config.clone(), standing, &environment)
    };
    let Some(log) = place.told(open(how.standing(how.base().end))) else { return };
    let was_whole = readers::read(place, &log, how.is_mended());
    if how.is_cleaned() && place.told(clean(&log)).is_some() && was_whole {
        assert!(readers::read(place, &log, how.is_mended()), "compaction has broken the log");
    }
    let Some(appended) = readers::append(place, &log) else { return };
    place.told(log.sync());
    let standing = readers::standing(&log, false);
    let end = log.log_end_offset();
    // Killed, and opened again; then stopped in order, and opened again.
    drop(log);
    let again = place.told(open(standing));
    assert!(again.is_some() || !was_whole, "a log that could be read and written does not open any more");
    let Some(log) = again else { return };
    assert_eq!(log.log_end_offset(), end, "after a kill");
    readers::assert_appended(place, &log, appended);
    if place.told(log.close()).is_none() {
        return;
    }
    let standing = readers::standing(&log, true);
    drop(log);
    let log = place.told(open(standing)).expect("what was gone through is in order");
    assert_eq!(log.log_end_offset(), end, "after an orderly stop");
    readers::assert_appended(place, &log, appended);
}

/// Each file of each log, opened in each way, as it is and with its checksums made anew.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (base, how_base) in bases().iter().zip([0, 1 << 6]) {
        let paths: Vec<&PathBuf> = base.files.keys().collect();
        for (at, path) in paths.iter().enumerate() {
            for how in [0, 1 | How::MENDED, 2 | 1 << 5, 3 | 1 << 2, 3 << 2 | How::MENDED] {
                seeds.push([&[how | how_base, at as u8][..], &base.files[*path]].concat());
            }
        }
    }
    seeds
}

/// The newest file of the log with transactions whose name ends so, with a change to it and good checksums, in a log that was
/// closed in order.
pub fn with_change(ending: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let files = &bases()[0].files;
    let is_meant = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(ending));
    let at = files.keys().cloned().collect::<Vec<_>>().iter().rposition(is_meant).expect("there is one");
    let mut bytes = files.values().nth(at).expect("it is there").clone();
    change(&mut bytes);
    [&[How::MENDED, at as u8][..], &bytes].concat()
}

/// The oldest segment of the log with transactions with a change to it, in a log that was all synced when the process was killed.
pub fn with_segment(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let files = &bases()[0].files;
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "log");
    let at = files.keys().position(is_segment).expect("there is one");
    let mut bytes = files.values().nth(at).expect("it is there").clone();
    change(&mut bytes);
    [&[1, at as u8][..], &bytes].concat()
}
