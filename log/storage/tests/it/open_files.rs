//! Files are opened when they are needed, and not more than a number of them stays open.

use std::path::Path;
use std::sync::Arc;

use thalweg_storage::testing::ManualClock;
use thalweg_storage::{DiskFilesystem, Environment, Log, LogConfig, Standing};

use crate::harness::{Make, NOW_MS, TOPIC_ID, append, commit, partition, small, synced_to, values};

const MOST: usize = 20;
const LOGS: i32 = 4;

/// How many descriptors of this process are of files below `directory`.
fn open_below(directory: &Path) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("there is /proc");
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.starts_with(directory)).count()
}

fn environment(directory: &Path) -> Environment {
    Environment::new(Arc::new(DiskFilesystem), ManualClock::new(NOW_MS), directory).with_max_open_files(MOST)
}

fn open(directory: &Path, index: i32, config: &LogConfig, standing: Standing, on: &Environment) -> Arc<Log> {
    let path = directory.join(format!("flights-{index}"));
    Log::open(&path, partition("flights", index), TOPIC_ID, config.clone(), standing, on).expect("it opens")
}

#[test]
fn many_segments_take_few_descriptors() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let on = environment(path);
    let mut logs: Vec<_> =
        (0..LOGS).map(|index| open(path, index, &small(), Standing::default(), &on)).collect();
    let mut expected: Vec<Vec<String>> = vec![Vec::new(); logs.len()];
    for round in 0..200 {
        for (log, expected) in logs.iter().zip(&mut expected) {
            let value = format!("{round} of {}", log.partition());
            append(log, Make::values(&[&value]));
            expected.push(value);
        }
        if round % 5 == 0 {
            logs.iter().for_each(|log| commit(log));
        }
    }
    logs.iter().for_each(|log| commit(log));
    let segments = std::fs::read_dir(path.join("flights-0")).expect("it is there").count() / 5;
    assert!(segments > 20, "{segments} segments a log");
    let check = |logs: &[Arc<Log>], expected: &[Vec<String>]| {
        for (log, expected) in logs.iter().zip(expected) {
            assert_eq!(values(log), *expected);
            let open = open_below(path);
            assert!((1..=MOST + 1).contains(&open), "{open} files are open");
        }
    };
    check(&logs, &expected);
    for log in logs.drain(..) {
        log.close().expect("closed");
    }
    let on = environment(path);
    let standing = Standing { is_clean: true, ..synced_to(200) };
    let logs: Vec<_> = (0..LOGS).map(|index| open(path, index, &small(), standing, &on)).collect();
    check(&logs, &expected);
    for (log, expected) in logs.iter().zip(&mut expected) {
        append(log, Make::values(&["one more"]));
        expected.push("one more".to_owned());
        commit(log);
    }
    check(&logs, &expected);
}

#[test]
fn what_is_not_synced_stays_open_and_goes_when_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let on = environment(path);
    let count = 3 * MOST as i32;
    let logs: Vec<_> =
        (0..count).map(|index| open(path, index, &small(), Standing::default(), &on)).collect();
    assert!(open_below(path) <= MOST + 1, "new logs are synced");
    for log in &logs {
        append(log, Make::values(&["x"]));
    }
    let are_open = open_below(path);
    assert!(are_open >= logs.len(), "{are_open} files of {count} logs that are being written to are open");
    logs.iter().for_each(|log| commit(log));
    for log in &logs {
        assert_eq!(values(log), ["x"]);
    }
    // Each that is opened closes some, so many are read that were never written to.
    let others: Vec<_> =
        (count..2 * count).map(|index| open(path, index, &small(), Standing::default(), &on)).collect();
    assert_eq!(others.len(), logs.len());
    let are_open = open_below(path);
    assert!(are_open <= MOST + 1, "{are_open} files are open");
    for log in &logs {
        assert_eq!(values(log), ["x"]);
    }
}
