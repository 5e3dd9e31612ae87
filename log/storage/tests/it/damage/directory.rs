//! A data directory with a log of each kind, and its files in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_protocol::{LeaderEpoch, Offset, Uuid};
use thalweg_storage::testing::{Crash, ManualClock};
use thalweg_storage::{
    AppendOrigin, Cleaner, CleanerConfig, CleanupPolicy, DataDirectory, DiskFilesystem, Environment,
    Identity, Log, LogConfig, LogManager, TransactionResult,
};

use crate::harness::{self, Make, NOW_MS, TOPIC_ID, append, commit, marker, partition, small};

/// Content by path, relative to the directory.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// How the process that wrote the directory ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Closed,
    Killed,
    /// Segments lack what only the journal has.
    PowerCut,
}

/// The logs: transactions, plain records in two epochs, compacted records, and one whose first records were deleted.
const NAMES: [&str; 4] = ["settled", "plain", "kept", "cut"];

pub struct World {
    files: Files,
    place: tempfile::TempDir,
}

fn config_of(topic: &str) -> LogConfig {
    match topic {
        "kept" => LogConfig {
            cleanup_policy: CleanupPolicy { delete: false, compact: true },
            file_delete_delay_ms: 0,
            ..small()
        },
        // Three segments of each.
        "settled" => LogConfig { segment_bytes: 1500, ..small() },
        _ => small(),
    }
}

impl World {
    pub fn new(stop: Stop) -> Self {
        let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self { files: write(stop), place: place.expect("a temporary directory") }
    }

    pub fn files(&self) -> Files {
        self.files.clone()
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter()
    }

    /// The log that a file belongs to; `None` for those of the directory itself.
    pub fn owner(&self, path: &Path) -> Option<&'static str> {
        NAMES.into_iter().find(|name| path.starts_with(format!("{name}-0")))
    }

    /// Opens a directory with these files.
    pub fn open(&self, files: &Files) -> Result<LogManager, String> {
        let root = self.place.path().join("data");
        if root.exists() {
            fs::remove_dir_all(&root).expect("it can be removed");
        }
        fs::create_dir(&root).expect("it can be made");
        // A directory stays where its last file goes.
        for path in self.files.keys() {
            let parent = root.join(path).parent().expect("it has one").to_owned();
            fs::create_dir_all(parent).expect("it can be made");
        }
        for (path, bytes) in files {
            fs::write(root.join(path), bytes).expect("it can be written");
        }
        let environment = Environment::new(Arc::new(DiskFilesystem), ManualClock::new(NOW_MS), &root);
        let fresh = Identity { cluster_id: Uuid([1; 16]), node_uuid: Uuid([2; 16]) };
        let directory = DataDirectory::open(&root, fresh, None, environment).map_err(|e| e.to_string())?;
        if directory.identity() != fresh {
            return Err(format!("it is taken for that of {:?}", directory.identity()));
        }
        let config = harness::World::journaled().config;
        let opened =
            LogManager::open(Arc::new(directory), config, &|partition, _| config_of(&partition.topic));
        opened.map_err(|error| error.to_string())
    }
}

/// Writes the directory, and gives what a stop leaves of it.
fn write(stop: Stop) -> Files {
    let mut world = harness::World::journaled();
    let manager = world.manager(&small());
    let create = |topic: &str| {
        manager.create(&partition(topic, 0), TOPIC_ID, config_of(topic)).expect("it can be made")
    };
    let logs = NAMES.map(create);
    let [settled, plain, kept, cut] = &logs;
    for n in 0..8 {
        write_transactions(settled, n);
        // Markers have the time of the clock.
        world.clock.advance(10);
        let epoch = LeaderEpoch(if n < 5 { 3 } else { 5 });
        let times = [NOW_MS + 10 * i64::from(n), NOW_MS + 10 * i64::from(n) + 5];
        let batch = Make::times(&times).by(1, 0, 2 * n).batch();
        plain
            .append_as_leader(&batch, epoch, AppendOrigin::Client { guard: None, awaits_sync: true })
            .expect("appended");
        append(kept, Make::keyed(&[("same", Some(&*n.to_string())), (&*format!("key {n}"), Some("x"))]));
        append(cut, Make::values(&[&*format!("{n} and"), &*format!("{n} more")]));
    }
    logs.iter().for_each(|log| commit(log));
    let clean = CleanerConfig { memory_bytes: 1 << 20, io_bytes_per_second: u64::MAX };
    Cleaner::new(&clean, 42).clean_log(kept).expect("it can be cleaned");
    manager.sync_all().expect("synced");
    cut.delete_records(Offset(5)).expect("deleted");
    // What comes now goes through the journal.
    manager.keep_up_journal().expect("its files are made");
    for n in 8..11 {
        append(settled, Make::values(&["late"]).at(NOW_MS + 1000));
        let batch = Make::times(&[NOW_MS + 10 * i64::from(n)]).by(1, 0, 8 + n).batch();
        plain
            .append_as_leader(&batch, LeaderEpoch(5), AppendOrigin::Client { guard: None, awaits_sync: true })
            .expect("appended");
        append(kept, Make::keyed(&[("late", Some(&*n.to_string()))]));
        append(cut, Make::values(&["late"]));
        manager.sync_round().expect("synced");
        logs.iter().for_each(|log| {
            log.set_high_watermark(log.synced_offset());
        });
    }
    if stop == Stop::Closed {
        manager.close().expect("closed");
    }
    drop((manager, logs));
    world.crash(if stop == Stop::PowerCut { Crash::Dropped } else { Crash::Kept });
    let mut files = Files::new();
    read_tree(&world.path(""), Path::new(""), &mut files);
    files
}

/// Each turn has a transaction that commits and one that is aborted, and a record of neither.
fn write_transactions(log: &Log, n: i32) {
    let at = NOW_MS + 10 * i64::from(n);
    append(log, Make::values(&["plain"]).at(at));
    append(log, Make::values(&["aborted"]).at(at).by(9, 0, n).in_transaction());
    append(log, Make::values(&["committed"]).at(at).by(8, 0, n).in_transaction());
    log.append_marker(marker(9, 0, TransactionResult::Abort)).expect("appended");
    log.append_marker(marker(8, 0, TransactionResult::Commit)).expect("appended");
}

fn read_tree(root: &Path, below: &Path, files: &mut Files) {
    for entry in fs::read_dir(root.join(below)).expect("a directory") {
        let entry = entry.expect("an entry");
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            read_tree(root, &path, files);
        } else {
            files.insert(path, fs::read(entry.path()).expect("it can be read"));
        }
    }
}
