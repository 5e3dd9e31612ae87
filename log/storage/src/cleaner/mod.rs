//! Log compaction: of each key the last record stays (KIP-534, KIP-58, KIP-354). `docs/formats/compaction.md` says what
//! becomes of batches and files.
//!
//! [`choose`] and [`judge`] decide, without I/O; [`pass`] reads and writes.

mod budget;
mod choose;
mod judge;
mod offset_map;
mod output;
mod pass;
mod throttle;
mod transactions;

use std::collections::HashSet;
use std::sync::Arc;

use thalweg_protocol::{Offset, TopicPartition};

use self::budget::{Budget, Halt};
use self::choose::{Candidate, choose};
use self::judge::Tools;
use self::offset_map::KeyHasher;
use self::throttle::Throttle;
use crate::config::CleanerConfig;
use crate::error::Error;
use crate::log::{Cleanable, Log, MOST_DECOMPRESSED};
use crate::manager::LogManager;

/// Cleans compacted logs, one after the other. Meant for a thread of its own.
#[derive(Debug)]
pub struct Cleaner {
    memory_bytes: usize,
    hasher: KeyHasher,
    throttle: Throttle,
    tools: Tools,
    /// Logs with damage that no cleaning must spread. Not tried again.
    damaged: HashSet<TopicPartition>,
}

/// What a round over one log has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleaningReport {
    /// The bytes of the log before.
    pub bytes_before: u64,
    /// And after.
    pub bytes_after: u64,
    /// How many segments were before.
    pub segments_before: usize,
    /// And after.
    pub segments_after: usize,
    /// How many records were taken out, markers included.
    pub records_removed: u64,
    /// How many keys the dirty part had.
    pub keys: usize,
    /// Up to where the log is clean.
    pub cleaned_to: Offset,
    /// Whether that is all there was: the map did not fill up.
    pub is_complete: bool,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
}

impl Cleaner {
    /// A cleaner whose key hashes depend on `secret`.
    pub fn new(config: &CleanerConfig, secret: u128) -> Self {
        Self {
            memory_bytes: config.memory_bytes,
            hasher: KeyHasher::new(secret),
            throttle: Throttle::new(config.io_bytes_per_second),
            tools: Tools::new(MOST_DECOMPRESSED),
            damaged: HashSet::new(),
        }
    }

    /// Cleans the logs that are due, the dirtiest first, until none is left or `should_stop` says so; it is asked a few
    /// hundred times a second at least. Returns how many rounds there were. Blocks on the disk, and sleeps to keep within
    /// the I/O budget. Errors are logged, and those that matter take the directory offline.
    pub fn run(&mut self, logs: &LogManager, should_stop: &dyn Fn() -> bool) -> usize {
        let mut rounds = 0;
        let mut had_their_turn = HashSet::new();
        while !should_stop() {
            let Some((log, cleanable)) = self.dirtiest(logs, &had_their_turn) else { break };
            match self.clean(&log, cleanable, should_stop) {
                Ok(report) => {
                    rounds += 1;
                    tracing::info!(partition = %log.partition(), ?report, "a log was cleaned");
                    if !report.is_complete {
                        continue;
                    }
                }
                Err(Halt::Stopped) => break,
                Err(Halt::Changed) => {}
                Err(Halt::Failed(error @ Error::Corrupt { .. })) => {
                    tracing::error!(partition = %log.partition(), %error, "a log is damaged and no longer cleaned");
                    self.damaged.insert(log.partition().clone());
                }
                Err(Halt::Failed(error)) => {
                    tracing::warn!(partition = %log.partition(), %error, "a log cannot be cleaned; it is tried again");
                }
            }
            had_their_turn.insert(log.partition().clone());
        }
        rounds
    }

    /// Cleans one log, however little of it is dirty. `None` when it is not compacted, or was changed meanwhile.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; I/O errors.
    pub fn clean_log(&mut self, log: &Log) -> Result<Option<CleaningReport>, Error> {
        let now_ms = log.environment().clock.now_ms();
        let Some(cleanable) = log.cleanable(now_ms)? else { return Ok(None) };
        match self.clean(log, cleanable, &|| false) {
            Ok(report) => Ok(Some(report)),
            Err(Halt::Failed(error)) => Err(error),
            Err(Halt::Stopped | Halt::Changed) => Ok(None),
        }
    }

    fn dirtiest(
        &self,
        logs: &LogManager,
        had_their_turn: &HashSet<TopicPartition>,
    ) -> Option<(Arc<Log>, Cleanable)> {
        let mut all: Vec<(Arc<Log>, Cleanable, Candidate)> = Vec::new();
        for log in logs.logs() {
            let id = log.partition();
            if had_their_turn.contains(id) || self.damaged.contains(id) {
                continue;
            }
            let now_ms = log.environment().clock.now_ms();
            match log.cleanable(now_ms) {
                Ok(Some(cleanable)) => {
                    let candidate = candidate(&log, &cleanable, now_ms);
                    all.push((log, cleanable, candidate));
                }
                Ok(None) | Err(Error::LogClosed { .. }) => {}
                Err(error) => {
                    tracing::warn!(partition = %id, %error, "a log cannot be looked at for cleaning")
                }
            }
        }
        let chosen = choose(all.iter().map(|(.., candidate)| *candidate))?;
        let (log, cleanable, _) = all.swap_remove(chosen);
        Some((log, cleanable))
    }

    fn clean(
        &mut self,
        log: &Log,
        cleanable: Cleanable,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<CleaningReport, Halt> {
        let Self { throttle, tools, .. } = self;
        let budget = Budget { throttle, should_stop, read: 0, written: 0 };
        pass::clean(log, cleanable, self.memory_bytes, self.hasher, tools, budget)
    }
}

fn candidate(log: &Log, cleanable: &Cleanable, now_ms: i64) -> Candidate {
    let config = log.config();
    let dirty_bytes = cleanable.dirty().iter().map(|source| source.size).sum();
    let all_bytes: u64 = cleanable.sources.iter().map(|source| source.size).sum();
    let oldest = cleanable.oldest_dirty_ms();
    Candidate {
        clean_bytes: all_bytes - dirty_bytes,
        dirty_bytes,
        min_dirty_ratio: config.min_cleanable_dirty_ratio,
        is_overdue: oldest.is_some_and(|oldest| now_ms.saturating_sub(oldest) > config.max_compaction_lag_ms),
        has_due_horizon: cleanable.cleaned.next_horizon_ms.is_some_and(|horizon| horizon <= now_ms),
    }
}
