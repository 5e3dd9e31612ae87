//! Log compaction: what stays, what goes, and that nothing notices.

mod chance;
mod faults;
mod model;
mod rules;
mod sweep;
mod together;

use thalweg_storage::{Cleaner, CleanerConfig, CleaningReport, CleanupPolicy, Log, LogConfig};

/// A compacted log that rolls soon, indexes every batch, and forgets tombstones after a second.
fn compacted() -> LogConfig {
    LogConfig {
        segment_bytes: 500,
        index_interval_bytes: 1,
        cleanup_policy: CleanupPolicy { delete: false, compact: true },
        delete_retention_ms: 1000,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    }
}

/// A cleaner that does not dawdle.
fn cleaner() -> Cleaner {
    cleaner_with(1 << 20)
}

fn cleaner_with(memory_bytes: usize) -> Cleaner {
    Cleaner::new(&CleanerConfig { memory_bytes, io_bytes_per_second: u64::MAX }, 42)
}

pub fn clean(log: &Log) -> CleaningReport {
    cleaner().clean_log(log).expect("it can be cleaned").expect("it is compacted")
}
