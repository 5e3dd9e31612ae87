//! The settings of a log and of a data directory: units, defaults and the reasons for them.

use thalweg_protocol::Compression;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What decides a record's timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer does: batches are stored as they come.
    #[default]
    CreateTime,
    /// The leader does, when it appends: batches are re-stamped and their CRC computed anew.
    LogAppendTime,
}

/// When a log may drop records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Old segments are deleted by age and size.
    pub delete: bool,
    /// Only the last record of each key need be kept. Offsets of a compacted log may have gaps.
    pub compact: bool,
}

impl Default for CleanupPolicy {
    fn default() -> Self {
        Self { delete: true, compact: false }
    }
}

/// What an acknowledged record can survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Every append joins the next round of syncs, and the high watermark stays at or below the synced offset.
    #[default]
    Synced,
    /// Kafka's way: replicas instead of syncs. Segments are synced when they are rolled.
    Relaxed,
}

/// The settings of one partition's log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// A segment never grows past this many bytes (a single larger batch apart). 1 GiB, as in Kafka: large
    /// enough that segments are few, small enough that retention moves in useful steps.
    pub segment_bytes: u32,
    /// A segment is rolled when a record is this many ms newer than its first. 7 days, so that retention by
    /// time works on a slow topic too.
    pub segment_ms: i64,
    /// Bytes of batches between two entries of the sparse indexes. 4096: one page is read to find a batch.
    pub index_interval_bytes: u32,
    /// The size in bytes at which a segment's offset or time index is full and the segment is rolled. 10 MiB.
    pub segment_index_bytes: u32,
    /// A segment is deleted when its newest record is older than this many ms; −1 keeps it. A segment none of whose
    /// records has a timestamp goes with the one after it. 7 days.
    pub retention_ms: i64,
    /// Oldest segments are deleted while the rest holds at least this many bytes; −1 keeps all.
    pub retention_bytes: i64,
    /// The largest batch that is accepted, in bytes, header included. 1 MiB and 12 bytes, as in Kafka.
    pub max_message_bytes: u32,
    /// The codec that batches of producers are compressed anew with where they come with another one, and its level (see
    /// [`Compressor::compress`](thalweg_protocol::Compressor::compress)). None: they are stored as they come.
    pub compression: Option<(Compression, Option<i32>)>,
    /// Whose timestamps are stored.
    pub timestamp_type: TimestampType,
    /// With [`TimestampType::CreateTime`], how many ms a record may be older than the clock. Unlimited.
    pub timestamp_before_max_ms: i64,
    /// With [`TimestampType::CreateTime`], how many ms a record may be newer than the clock. 1 hour, because one
    /// record from the far future would keep its segment from time retention.
    pub timestamp_after_max_ms: i64,
    /// Deletion, compaction or both.
    pub cleanup_policy: CleanupPolicy,
    /// A compacted log is cleaned when more than this part of the bytes that could be cleaned has not been yet.
    /// 0.5: at most half of a log is superseded, and each byte is copied about twice.
    pub min_cleanable_dirty_ratio: f64,
    /// A segment of a compacted log is left alone while it holds a record younger than this many ms. 0.
    pub min_compaction_lag_ms: i64,
    /// A compacted log is cleaned, whatever its ratio, when a record has waited for that for this many ms; its active
    /// segment is rolled for it. Unlimited.
    pub max_compaction_lag_ms: i64,
    /// How many ms a tombstone remains after everything older of its key is gone. 1 day: a reader that begins at
    /// the start and gets to the end within that time sees every deletion.
    pub delete_retention_ms: i64,
    /// Whether appends are synced before they count as committed.
    pub durability: Durability,
    /// How many ms a deleted segment's files keep lying under their `.deleted` name. 60,000: time to notice a
    /// wrong setting.
    pub file_delete_delay_ms: i64,
    /// A producer's sequence numbers are forgotten this many ms after its last batch. 1 day: long after its
    /// last retry.
    pub producer_expiration_ms: i64,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 7 * DAY_MS,
            index_interval_bytes: 4096,
            segment_index_bytes: 10 << 20,
            retention_ms: 7 * DAY_MS,
            retention_bytes: -1,
            max_message_bytes: (1 << 20) + 12,
            compression: None,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 60 * 60 * 1000,
            cleanup_policy: CleanupPolicy::default(),
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            delete_retention_ms: DAY_MS,
            durability: Durability::Synced,
            file_delete_delay_ms: 60_000,
            producer_expiration_ms: DAY_MS,
        }
    }
}

impl LogConfig {
    /// The most bytes of a segment: positions are stored as signed 32-bit integers.
    pub(crate) fn most_segment_bytes(&self) -> u64 {
        u64::from(self.segment_bytes).min(i32::MAX as u64)
    }
}

/// The settings of a [`LogManager`](crate::LogManager).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerConfig {
    /// How many logs are opened and recovered at a time. 4: recovery waits for the disk more than for a core.
    pub recovery_threads: usize,
    /// How many files the journal of sync rounds has at most; with 0 there is none. It makes a round of several logs one write
    /// in place of a sync of each, for which every byte is written twice. The files are made when rounds are such that
    /// this pays, two at first. Default 0: whoever has one directory of many logs switches it on.
    pub journal_files: usize,
    /// The size in bytes of each of them. 32 MiB: the segments are synced a few megabytes at a time then.
    pub journal_file_bytes: u64,
}

impl Default for ManagerConfig {
    fn default() -> Self {
        Self { recovery_threads: 4, journal_files: 0, journal_file_bytes: 32 << 20 }
    }
}

/// The settings of a [`Cleaner`](crate::Cleaner).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanerConfig {
    /// The most bytes that the map from keys to offsets may have. 128 MiB, as Kafka's: 4.2 million keys at a time.
    /// It is as small as the log allows, and freed after each round.
    pub memory_bytes: usize,
    /// The most bytes that are read and written in a second. 128 MiB: a fraction of what a solid-state disk does, so
    /// that producers and consumers hardly notice.
    pub io_bytes_per_second: u64,
}

impl Default for CleanerConfig {
    fn default() -> Self {
        Self { memory_bytes: 128 << 20, io_bytes_per_second: 128 << 20 }
    }
}
