//! A data directory of which one file holds the input: whose it is, how far its logs were synced, the journal, and its logs.
//!
//! The input is a byte that says how the directory was left, one for the file, and what is in it. Of a large file it is what to
//! change: a place of two bytes, a length of one, and so many bytes.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use thalweg_protocol::{Offset, Uuid};
use thalweg_storage::testing::Crash;
use thalweg_storage::{DataDirectory, Error, Identity, LogConfig, LogManager, ManagerConfig};

use super::mending::mend;
use super::place::{Files, Place, read_tree};
use super::readers;
use crate::harness::{Make, TOPIC_ID, World, append, commit, partition, small};

/// Larger files are changed and not replaced.
const LARGE: usize = 4096;

/// In the first byte of the input.
const MENDED: u8 = 1 << 4;

const TOPICS: [&str; 2] = ["plain", "cut"];

/// The directory of a process that has closed it, was killed, or lost its power: then segments lack what the journal has.
fn bases() -> &'static [Files; 3] {
    static BASES: OnceLock<[Files; 3]> = OnceLock::new();
    BASES.get_or_init(|| [None, Some(Crash::Kept), Some(Crash::Dropped)].map(write))
}

fn config() -> LogConfig {
    LogConfig { segment_bytes: 1000, ..small() }
}

fn write(crash: Option<Crash>) -> Files {
    let mut world = World::journaled();
    let manager = world.manager(&config());
    let logs =
        TOPICS.map(|topic| manager.create(&partition(topic, 0), TOPIC_ID, config()).expect("it can be made"));
    let [plain, cut] = &logs;
    for n in 0..5 {
        append(plain, Make::values(&["a record"]).by(1, 0, n));
        append(plain, Make::values(&["of a transaction"]).by(2, 0, n).in_transaction());
        append(cut, Make::values(&["one", "two"]));
    }
    logs.iter().for_each(|log| commit(log));
    manager.sync_all().expect("synced");
    cut.delete_records(Offset(5)).expect("deleted");
    manager.keep_up_journal().expect("its files are made");
    for n in 5..8 {
        append(plain, Make::values(&["late"]).by(1, 0, n));
        append(cut, Make::values(&["late"]));
        manager.sync_round().expect("synced");
        logs.iter().for_each(|log| {
            log.set_high_watermark(log.synced_offset());
        });
    }
    if crash.is_none() {
        manager.close().expect("closed");
    }
    drop((manager, logs));
    world.crash(crash.unwrap_or(Crash::Kept));
    read_tree(&world.path(""))
}

thread_local! {
    static PLACE: Place = Place::new();
}

pub fn check(input: &[u8]) {
    let &[how, file, ref content @ ..] = input else { return };
    let base = &bases()[usize::from(how & 3) % 3];
    let mut files = base.clone();
    let (path, before) = base.iter().nth(usize::from(file) % base.len()).expect("it is one of them");
    let mut content = match before.len() > LARGE {
        true => changed(before, content),
        false => content.to_vec(),
    };
    if how & MENDED != 0 {
        mend(path, &mut content);
    }
    files.insert(path.clone(), content);
    PLACE.with(|place| check_files(place, &files, how & MENDED != 0));
}

fn changed(before: &[u8], mut changes: &[u8]) -> Vec<u8> {
    let mut bytes = before.to_vec();
    while let &[high, low, len, ref rest @ ..] = changes {
        let at = usize::from(u16::from_be_bytes([high, low]));
        let (part, behind) = rest.split_at(usize::from(len).min(rest.len()));
        if let Some(place) = bytes.get_mut(at..at + part.len()) {
            place.copy_from_slice(part);
        }
        changes = behind;
    }
    bytes
}

fn open(place: &Place) -> Result<LogManager, Error> {
    let fresh = Identity { cluster_id: Uuid([1; 16]), node_uuid: Uuid([2; 16]) };
    let directory = DataDirectory::open(&place.root(), fresh, None, place.environment())?;
    let settings = ManagerConfig { recovery_threads: 1, ..World::journaled().config };
    LogManager::open(Arc::new(directory), settings, &|_, _| config())
}

fn check_files(place: &Place, files: &Files, is_forged: bool) {
    place.put(files);
    let Some(manager) = place.told(open(place)) else { return };
    let mut appended = Vec::new();
    for topic in TOPICS {
        let partition = partition(topic, 0);
        match (manager.log(&partition), manager.offline_log(&partition)) {
            (Some(log), _) => {
                let was_whole = readers::read(place, &log, is_forged);
                if let Some(offset) = readers::append(place, &log) {
                    appended.push((partition, offset, was_whole));
                }
            }
            (None, Some(offline)) => {
                let (error, root) = (offline.error.to_string(), place.root());
                assert!(error.contains(root.to_str().expect("UTF-8")), "the message names no file: {error}");
            }
            (None, None) => panic!("{topic} is neither there nor offline"),
        }
    }
    let is_synced = place.told(manager.sync_all()).is_some();
    let is_closed = place.told(manager.close()).is_some();
    drop(manager);
    if !is_synced || !is_closed {
        return;
    }
    let manager = place.told(open(place)).expect("a directory that was closed in order opens again");
    for (partition, offset, was_whole) in appended {
        match manager.log(&partition) {
            Some(log) => readers::assert_appended(place, &log, offset),
            None => assert!(!was_whole, "a log that could be read and written does not open any more"),
        }
    }
}

/// Each file of each directory, as it is and with its checksums made anew; of the journal what stands at the front of each block.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (base, how) in bases().iter().zip(0_u8..) {
        for (bytes, at) in base.values().zip(0_u8..) {
            for how in [how, how | MENDED] {
                seeds.push([&[how, at][..], &content(bytes)].concat());
            }
        }
    }
    seeds
}

fn content(bytes: &[u8]) -> Vec<u8> {
    if bytes.len() <= LARGE {
        return bytes.to_vec();
    }
    let mut changes = Vec::new();
    for (block, at) in bytes.chunks(LARGE).zip((0_usize..).step_by(LARGE)) {
        if block.iter().any(|&byte| byte != 0) {
            changes.extend((at as u16).to_be_bytes());
            changes.push(160);
            changes.extend(&block[..160]);
        }
    }
    changes
}

/// A file of the directory of a killed process with a change to it, and good checksums.
pub fn with_change(path: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let base = &bases()[1];
    let at = base.keys().position(|found| found == Path::new(path)).expect("it is there");
    let mut bytes = content(&base[Path::new(path)]);
    change(&mut bytes);
    [&[1 | MENDED, at as u8][..], &bytes].concat()
}
