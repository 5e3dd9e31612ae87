//! Logs to which chance decides what happens, compared with their history.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use thalweg_protocol::record::{RecordBatch, TransactionMarker};
use thalweg_protocol::{Compression, LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use thalweg_storage::testing::Crash;
use thalweg_storage::{
    AppendOrigin, Error, Log, LogConfig, LogManager, MarkerAppend, Standing, TransactionResult,
};

use super::model::Model;
use super::{cleaner_with, compacted};
use crate::harness::{Make, NOW_MS, World, partition, try_append};

/// What is known of a producer.
#[derive(Clone, Copy, Debug, Default)]
struct Producer {
    epoch: i16,
    sequence: i32,
    is_open: bool,
}

/// A log with its history.
pub struct Life {
    pub world: World,
    pub log: Arc<Log>,
    /// Of the directory that the log is in, if it is in one.
    pub manager: Option<LogManager>,
    pub model: Model,
    pub config: LogConfig,
    pub clean_below: Offset,
    producers: BTreeMap<i64, Producer>,
    commits: usize,
    pub leader_epoch: LeaderEpoch,
    time: i64,
}

/// Producers of these ids are idempotent only; those above are transactional, and from the last on by KIP-890.
const IDEMPOTENT: std::ops::Range<i64> = 1..3;
const TRANSACTIONAL: std::ops::Range<i64> = 3..6;
const BUMPING: i64 = 5;

impl Life {
    /// A new log on its own.
    pub fn new(config: LogConfig) -> Self {
        let world = World::new();
        let log = world.create(&config);
        Self::of(world, log, None, config)
    }

    /// The life of an empty log.
    pub fn of(world: World, log: Arc<Log>, manager: Option<LogManager>, config: LogConfig) -> Self {
        Self {
            log,
            world,
            manager,
            config,
            model: Model::default(),
            clean_below: Offset(0),
            producers: BTreeMap::new(),
            commits: 0,
            leader_epoch: LeaderEpoch(0),
            time: NOW_MS,
        }
    }

    fn make(&mut self, random: &mut Rng) -> Make {
        self.time += random.i64(0..50);
        let count = random.usize(1..5);
        let keys: Vec<String> = (0..count).map(|_| format!("key {}", random.u8(0..12))).collect();
        let values: Vec<String> = (0..count).map(|_| "v".repeat(random.usize(0..60))).collect();
        let value = |at: usize, is_tombstone| if is_tombstone { None } else { Some(values[at].as_str()) };
        let records: Vec<(&str, Option<&str>)> = keys
            .iter()
            .enumerate()
            .map(|(at, key)| (key.as_str(), value(at, random.u8(0..4) == 0)))
            .collect();
        let compression = Compression::ALL[random.usize(0..5)];
        Make::keyed(&records).at(self.time).compressed(compression)
    }

    pub fn append(&mut self, make: Make) -> Result<(), Error> {
        let batch: RecordBatch = make.batch();
        let header = batch.header();
        let guard = match header.is_transactional() {
            true => self.log.begin_verification(header.producer_id, header.producer_epoch),
            false => None,
        };
        self.model.append(batch.clone(), self.leader_epoch);
        self.log
            .append_as_leader(&batch, self.leader_epoch, AppendOrigin::Client { guard, awaits_sync: true })
            .map(|_| ())
    }

    pub fn produce(&mut self, id: i64, make: Make) -> Result<(), Error> {
        let producer = self.producers.entry(id).or_default();
        let make = make.by(id, producer.epoch, producer.sequence);
        producer.sequence += make.batch().header().records_count;
        let make = if TRANSACTIONAL.contains(&id) {
            producer.is_open = true;
            make.in_transaction()
        } else {
            make
        };
        self.append(make)
    }

    pub fn end(&mut self, id: i64, commit: bool) -> Result<(), Error> {
        let producer = self.producers.entry(id).or_default();
        producer.is_open = false;
        if id == BUMPING {
            *producer = Producer { epoch: producer.epoch + 1, ..Producer::default() };
        }
        let (producer_id, epoch) = (ProducerId(id), ProducerEpoch(producer.epoch));
        let content = TransactionMarker { commit, coordinator_epoch: 0 };
        let now_ms = self.world.environment().clock.now_ms();
        self.model.append(content.to_batch(producer_id, epoch, now_ms), self.leader_epoch);
        let marker = MarkerAppend {
            producer_id,
            producer_epoch: epoch,
            result: if commit { TransactionResult::Commit } else { TransactionResult::Abort },
            coordinator_epoch: 0,
            epoch_is_bumped: id == BUMPING,
            leader_epoch: self.leader_epoch,
        };
        self.log.append_marker(marker).map(|_| ())
    }

    /// A round: what it has synced is committed.
    pub fn commit(&mut self) -> Result<(), Error> {
        let synced = match &self.manager {
            Some(manager) if self.world.is_journaled() => {
                // With another log beside it, or it would not go into the journal.
                try_append(&manager.log(&partition("beside", 0)).expect("there"), Make::values(&["beside"]))?;
                manager.sync_round()?;
                self.log.synced_offset()
            }
            _ => self.log.sync()?,
        };
        self.log.set_high_watermark(synced);
        self.model.committed = synced;
        self.commits += 1;
        match &self.manager {
            Some(manager) if !self.world.is_journaled() => manager.sync_all(),
            Some(manager) if self.commits.is_multiple_of(3) => manager.keep_up_journal(),
            _ => Ok(()),
        }
    }

    pub fn clean(&mut self, memory_bytes: usize) -> Result<(), Error> {
        let report = cleaner_with(memory_bytes).clean_log(&self.log)?;
        let cleaned_to = report.map_or(Offset(0), |report| report.cleaned_to);
        self.clean_below = self.clean_below.max(cleaned_to);
        Ok(())
    }

    pub fn step(&mut self, random: &mut Rng) -> Result<(), Error> {
        match random.u8(0..40) {
            0..8 => {
                let make = self.make(random);
                self.append(make)
            }
            8..14 => {
                let make = self.make(random);
                self.produce(random.i64(IDEMPOTENT), make)
            }
            14..22 => {
                let make = self.make(random);
                self.produce(random.i64(TRANSACTIONAL), make)
            }
            22..27 => {
                let open = self.producers.iter().filter(|(_, producer)| producer.is_open).map(|(&id, _)| id);
                match random.choice(open.collect::<Vec<i64>>()) {
                    Some(id) => self.end(id, random.bool()),
                    None => Ok(()),
                }
            }
            27..32 => self.commit(),
            32..36 => self.clean([400, 1000, 1 << 20][random.usize(0..3)]),
            36 => {
                self.world.clock.advance(random.i64(0..700));
                Ok(())
            }
            37 => {
                self.leader_epoch.0 += 1;
                self.log.begin_leader_epoch(self.leader_epoch)
            }
            _ => {
                self.config.segment_bytes = random.u32(200..3000);
                self.config.index_interval_bytes = random.u32(1..300);
                self.config.min_compaction_lag_ms = if random.u8(0..4) == 0 { 500 } else { 0 };
                self.log.set_config(self.config.clone());
                Ok(())
            }
        }
    }

    /// Closes the log, or lets it crash, and opens it again, perhaps without its snapshots and some of its indexes.
    fn reopen(&mut self, random: &mut Rng) {
        self.commit().expect("synced");
        let end = self.log.log_end_offset();
        let is_clean = random.bool();
        if is_clean {
            self.log.close().expect("closed");
        }
        self.world.crash([Crash::Kept, Crash::Dropped][random.usize(0..2)]);
        let directory = self.world.path("flights-0");
        if random.bool() {
            for entry in std::fs::read_dir(&directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                let name = path.to_string_lossy().into_owned();
                let is_lost = name.ends_with(".snapshot") || name.ends_with("index") && random.u8(0..3) == 0;
                if is_lost {
                    std::fs::remove_file(path).expect("removed");
                }
            }
            self.world.crash(Crash::Kept);
        }
        let standing =
            Standing { synced_to: Some(end), high_watermark: end, is_clean, ..Standing::default() };
        self.log = self.world.open(&self.config, standing);
    }
}

#[test]
fn whatever_happens_the_last_value_of_each_key_is_there() {
    let mut removed = 0;
    for seed in 0..150 {
        let mut random = Rng::with_seed(seed);
        let mut life = Life::new(compacted());
        for at in 0..random.usize(50..250) {
            let before = life.model.batches.len();
            let result = life.step(&mut random);
            assert!(result.is_ok(), "seed {seed}, step {at}: {result:?}");
            if random.u8(0..20) == 0 {
                life.reopen(&mut random);
            }
            if before == life.model.batches.len() || at % 16 == 0 {
                let found = life.model.check(&life.log, life.clean_below, life.clean_below);
                let found = found.unwrap_or_else(|broken| panic!("seed {seed}, step {at}: {broken}"));
                // The check raises the high watermark.
                life.commit().expect("synced");
                removed += life.model.batches.len() - found.len();
            }
        }
    }
    assert!(removed > 10_000, "only {removed} batches were missed by the checks");
}
