//! Kafka's own reader prints our files as we do.
//!
//! Needs the words that run one of Kafka's classes, in `THALWEG_KAFKA_RUN`: `make test` sets it. Without it only our
//! side is looked at.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use thalweg_protocol::record::{BatchHeader, Batches};
use thalweg_protocol::{Compression, LeaderEpoch, Offset};
use thalweg_storage::{
    Cleaner, CleanerConfig, CleanupPolicy, DiskFilesystem, Environment, Log, LogConfig, Standing,
    TransactionResult,
};

use crate::harness::{Make, NOW_MS, TOPIC_ID, append, commit, marker, partition};
use thalweg_storage::testing::ManualClock;

/// A log on the real disk with everything in it that a log can have.
fn write(directory: &Path) {
    let environment = Environment::new(Arc::new(DiskFilesystem), ManualClock::new(NOW_MS), directory);
    let config = LogConfig { segment_bytes: 40_000, index_interval_bytes: 600, ..LogConfig::default() };
    let path = directory.join("flights-0");
    let log = Log::open(&path, partition("flights", 0), TOPIC_ID, config, Standing::default(), &environment);
    let log = log.expect("the log opens");
    let mut random = fastrand::Rng::with_seed(7);
    for n in 0..900_i64 {
        // Out of order, with some far ahead.
        let time = NOW_MS + 10 * n + random.i64(-300..300) + if n % 97 == 0 { 5000 } else { 0 };
        let long = "x".repeat(random.usize(0..200));
        let make = Make::values(&["some value", &long, "another"]).at(time);
        let make = make.compressed(Compression::ALL[random.usize(0..5)]);
        match n % 10 {
            0..5 => append(&log, make),
            5..8 => append(&log, make.by(1, 0, 3 * (n / 10 * 3 + n % 10 - 5) as i32)),
            8 => append(&log, make.by(2, 0, 3 * (n / 10) as i32).in_transaction()),
            _ => {
                let result = if n % 20 == 9 { TransactionResult::Abort } else { TransactionResult::Commit };
                log.append_marker(marker(2, 0, result)).expect("appended")
            }
        };
    }
    append(&log, Make::values(&["an open transaction"]).by(4, 1, 0).in_transaction());
    commit(&log);
    log.close().expect("closed");
}

/// A compacted log after several rounds of its cleaner.
fn write_cleaned(directory: &Path) {
    let clock = ManualClock::new(NOW_MS);
    let environment = Environment::new(Arc::new(DiskFilesystem), clock.clone(), directory);
    let config = LogConfig {
        segment_bytes: 20_000,
        index_interval_bytes: 300,
        cleanup_policy: CleanupPolicy { delete: false, compact: true },
        ..LogConfig::default()
    };
    let path = directory.join("flights-0");
    let log = Log::open(&path, partition("flights", 0), TOPIC_ID, config, Standing::default(), &environment);
    let log = log.expect("the log opens");
    let mut cleaner = Cleaner::new(&CleanerConfig::default(), 1);
    let mut random = fastrand::Rng::with_seed(8);
    for n in 0..1500_i32 {
        let keys = [0; 3].map(|_| format!("key {}", random.u32(0..200)));
        let value = "x".repeat(random.usize(0..100));
        let records = [(&*keys[0], Some(&*value)), (&*keys[1], None), (&*keys[2], Some("short"))];
        let make = Make::keyed(&records[..random.usize(1..4)]).at(NOW_MS + i64::from(n));
        let make = make.compressed(Compression::ALL[random.usize(0..5)]);
        match n % 10 {
            0..6 => append(&log, make),
            6 => append(&log, Make::keyed(&[("idempotent", None)]).by(1, 0, n / 10)),
            7 | 8 => append(
                &log,
                Make::keyed(&[("in", Some("one"))]).by(2, 0, n / 10 * 2 + n % 10 - 7).in_transaction(),
            ),
            _ => {
                let result = if n % 20 == 9 { TransactionResult::Abort } else { TransactionResult::Commit };
                log.append_marker(marker(2, 0, result)).expect("appended")
            }
        };
        if n % 400 == 399 {
            clock.advance(40_000_000);
            commit(&log);
            cleaner.clean_log(&log).expect("cleaned").expect("compacted");
        }
    }
    // Of the producers nothing remains but what says who they are.
    append(&log, Make::keyed(&[("idempotent", None), ("in", None)]));
    let filler = "x".repeat(1000);
    for n in 0..40 {
        append(&log, Make::keyed(&[(&format!("filler {n}"), Some(&filler))]));
    }
    commit(&log);
    cleaner.clean_log(&log).expect("cleaned").expect("compacted");
    log.close().expect("closed");
}

fn files(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("flights-0")).expect("a directory");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect();
    found.sort();
    found
}

fn base(path: &Path) -> i64 {
    path.file_stem().and_then(|stem| stem.to_str()).expect("a name").parse().expect("an offset")
}

/// Position and header of every batch.
fn batches(path: &Path) -> Vec<(usize, BatchHeader)> {
    let mut position = 0;
    Batches::new(Bytes::from(fs::read(path).expect("read")))
        .map(|batch| {
            let batch = batch.expect("whole batches");
            batch.verify().expect("good batches");
            position += batch.size_in_bytes();
            (position - batch.size_in_bytes(), *batch.header())
        })
        .collect()
}

fn entries<const N: usize>(path: &Path) -> Vec<[u8; N]> {
    let bytes = fs::read(path).expect("read");
    assert_eq!(bytes.len() % N, 0, "{}", path.display());
    bytes.chunks_exact(N).map(|entry| entry.try_into().expect("as long")).collect()
}

fn number<const N: usize>(entry: &[u8], at: usize) -> [u8; N] {
    entry[at..at + N].try_into().expect("within the entry")
}

/// Compares the indexes of a segment with its batches.
fn check_indexes(log: &Path) {
    let base = base(log);
    let batches: BTreeMap<usize, BatchHeader> = batches(log).into_iter().collect();
    let index = entries::<8>(&log.with_extension("index"));
    assert!(index.len() > 5, "a sparse index");
    for entry in &index {
        let position = u32::from_be_bytes(number(entry, 4)) as usize;
        let last_offset = base + i64::from(i32::from_be_bytes(number(entry, 0)));
        assert_eq!(batches[&position].last_offset(), Offset(last_offset));
    }
    let with_records = || batches.values().filter(|batch| batch.records_count > 0);
    let times = entries::<12>(&log.with_extension("timeindex"));
    for entry in &times {
        let (time, offset) =
            (i64::from_be_bytes(number(entry, 0)), base + i64::from(i32::from_be_bytes(number(entry, 8))));
        let newest =
            with_records().filter(|b| b.last_offset() <= Offset(offset)).map(|b| b.max_timestamp).max();
        assert_eq!(newest, Some(time));
    }
    let newest = with_records().map(|batch| batch.max_timestamp).max();
    assert_eq!(times.last().map(|entry| i64::from_be_bytes(number(entry, 0))), newest, "of the segment");
}

#[test]
fn indexes_say_what_the_batches_are() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path());
    let logs = files(directory.path(), ".log");
    assert!(logs.len() >= 4, "{} segments", logs.len());
    let mut aborted = 0;
    for log in &logs {
        check_indexes(log);
        aborted += entries::<34>(&log.with_extension("txnindex")).len();
    }
    assert_eq!(aborted, 45);
    let epochs =
        fs::read_to_string(directory.path().join("flights-0/leader-epoch-checkpoint")).expect("read");
    assert_eq!(epochs, "0\n1\n3 0\n");
    let metadata = fs::read_to_string(directory.path().join("flights-0/partition.metadata")).expect("read");
    assert_eq!(metadata, format!("version: 0\ntopic_id: {TOPIC_ID}\n"));
}

#[test]
fn kafka_prints_the_same() {
    let Some(kafka) = kafka("kafka_prints_the_same") else { return };
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path());
    compare(&kafka, directory.path());
    let in_last_snapshot =
        files(directory.path(), ".snapshot").last().map_or(0, |last| producers(last).len());
    assert_eq!(in_last_snapshot, 3);
    let aborted: usize = files(directory.path(), ".txnindex").iter().map(|file| aborted(file).len()).sum();
    assert_eq!(aborted, 45);
}

#[test]
fn kafka_prints_a_cleaned_log_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    write_cleaned(directory.path());
    let logs = files(directory.path(), ".log");
    let all: Vec<BatchHeader> = logs.iter().flat_map(|log| batches(log)).map(|(_, header)| header).collect();
    logs.iter().take(logs.len() - 1).for_each(|log| check_indexes(log));
    let count = |is_one: fn(&BatchHeader) -> bool| all.iter().filter(|header| is_one(header)).count();
    assert!(count(|header| header.records_count == 0) >= 5, "batches without records");
    assert!(count(|header| header.has_delete_horizon()) > 50, "batches with a horizon");
    assert!(
        count(|header| header.records_count > 0 && header.records_count <= header.last_offset_delta) > 20
    );
    assert!(all.len() < 900 && logs.len() < 8, "{} batches in {} segments", all.len(), logs.len());
    let Some(kafka) = kafka("kafka_prints_a_cleaned_log_as_it_is") else { return };
    compare(&kafka, directory.path());
}

/// The words that run one of Kafka's classes; `None` when `test` is passed over because there are none.
fn kafka(test: &str) -> Option<String> {
    let words = std::env::var("THALWEG_KAFKA_RUN").ok();
    if words.is_none() {
        let must_run = std::env::var_os("THALWEG_TESTS_MUST_RUN").is_some();
        assert!(!must_run, "{test} needs Kafka's tools");
        eprintln!("SKIPPED: {test} needs Kafka's tools, in THALWEG_KAFKA_RUN");
    }
    words
}

/// Whether Kafka prints the batches of each segment as we do, and has no complaint about the other files.
fn compare(kafka: &str, directory: &Path) {
    for log in files(directory, ".log") {
        let (text, _) = dump(kafka, &log, &["--deep-iteration"]);
        let printed: Vec<String> =
            text.lines().filter(|line| line.starts_with("baseOffset:")).map(str::to_owned).collect();
        let ours: Vec<String> =
            batches(&log).iter().map(|(position, header)| line_of(*position, header)).collect();
        assert_eq!(printed, ours, "{}", log.display());
        let records = text.lines().filter(|line| line.starts_with("| offset:")).count();
        let counted: i32 = batches(&log).iter().map(|(_, header)| header.records_count).sum();
        assert_eq!(records, counted as usize);
    }
    for suffix in [".index", ".timeindex", ".txnindex", ".snapshot"] {
        for file in files(directory, suffix) {
            let (text, errors) = dump(kafka, &file, &["--verify-index-only"]);
            for complaint in ["Mismatch", "mismatch", "out of order", "orrupt", "Exception", "rror"] {
                let is_silent = !text.contains(complaint) && !errors.contains(complaint);
                assert!(is_silent, "{}:\n{text}{errors}", file.display());
            }
            let ours = match suffix {
                ".index" => offsets(&file),
                ".timeindex" => times(&file),
                ".txnindex" => aborted(&file),
                _ => producers(&file),
            };
            let (text, _) = dump(kafka, &file, &[]);
            let printed: Vec<&str> = text.lines().filter(|line| !line.starts_with("Dumping ")).collect();
            assert_eq!(printed, ours, "{}", file.display());
        }
    }
}

/// The entries of an offset index as Kafka prints them.
fn offsets(file: &Path) -> Vec<String> {
    let line = |entry: &[u8; 8]| {
        let offset = base(file) + i64::from(i32::from_be_bytes(number(entry, 0)));
        format!("offset: {offset} position: {}", i32::from_be_bytes(number(entry, 4)))
    };
    entries(file).iter().map(line).collect()
}

/// The entries of a time index as Kafka prints them.
fn times(file: &Path) -> Vec<String> {
    let line = |entry: &[u8; 12]| {
        let offset = base(file) + i64::from(i32::from_be_bytes(number(entry, 8)));
        format!("timestamp: {} offset: {offset}", i64::from_be_bytes(number(entry, 0)))
    };
    entries(file).iter().map(line).collect()
}

/// The aborted transactions of a segment as Kafka prints them.
fn aborted(file: &Path) -> Vec<String> {
    let line = |entry: &[u8; 34]| {
        let [id, first, last, stable] = [2, 10, 18, 26].map(|at| i64::from_be_bytes(number(entry, at)));
        let version = i16::from_be_bytes(number(entry, 0));
        format!(
            "version: {version} producerId: {id} firstOffset: {first} lastOffset: {last} lastStableOffset: {stable}"
        )
    };
    entries(file).iter().map(line).collect()
}

/// The producers of a snapshot as Kafka prints them.
fn producers(file: &Path) -> Vec<String> {
    const HEAD: usize = 10;
    let bytes = fs::read(file).expect("read");
    let (head, entries) = bytes.split_at(HEAD);
    let count = u32::from_be_bytes(number(head, 6)) as usize;
    assert_eq!(entries.len(), 46 * count, "{}", file.display());
    entries.chunks_exact(46).map(producer).collect()
}

fn producer(entry: &[u8]) -> String {
    let int = |at| i32::from_be_bytes(number(entry, at));
    let long = |at| i64::from_be_bytes(number(entry, at));
    let epoch = i16::from_be_bytes(number(entry, 8));
    let transaction = match long(38) {
        -1 => ".empty".to_owned(),
        first => format!("[{first}]"),
    };
    let head = format!(
        "producerId: {} producerEpoch: {epoch} coordinatorEpoch: {} currentTxnFirstOffset: OptionalLong{transaction} \
         lastTimestamp: {} ",
        long(0),
        int(34),
        long(26)
    );
    let (last_sequence, last_offset, delta) = (int(10), long(14), int(22));
    match last_offset {
        -1 => head,
        _ => format!(
            "{head}firstSequence: {} lastSequence: {last_sequence} lastOffset: {last_offset} offsetDelta: {delta} timestamp: {}",
            last_sequence - delta,
            long(26)
        ),
    }
}

/// What Kafka prints of a file, and what it complains of.
fn dump(kafka: &str, file: &Path, arguments: &[&str]) -> (String, String) {
    let mut words = kafka.split(' ');
    let output = Command::new(words.next().expect("a command"))
        .args(words)
        .arg("org.apache.kafka.tools.DumpLogSegments")
        .args(arguments)
        .arg("--files")
        .arg(file)
        .output()
        .expect("it runs");
    let [text, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{text}{errors}");
    (text, errors)
}

/// A batch as Kafka prints it.
fn line_of(position: usize, h: &BatchHeader) -> String {
    let LeaderEpoch(epoch) = h.partition_leader_epoch;
    let horizon = match h.has_delete_horizon() {
        true => format!("[{}]", h.base_timestamp),
        false => ".empty".to_owned(),
    };
    format!(
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {epoch} isTransactional: {} isControl: {} deleteHorizonMs: OptionalLong{horizon} \
         position: {position} {}: {} size: {} magic: 2 compresscodec: {} crc: {} isvalid: true",
        h.base_offset,
        h.last_offset(),
        h.records_count,
        h.base_sequence,
        h.last_sequence(),
        h.producer_id,
        h.producer_epoch,
        h.is_transactional(),
        h.is_control(),
        "CreateTime",
        h.max_timestamp,
        h.size_in_bytes(),
        h.compression().expect("known"),
        h.crc,
    )
}
