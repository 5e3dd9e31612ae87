//! Days of which chance decides what happens.

use std::collections::BTreeMap;

use fastrand::Rng;
use thalweg_protocol::{LeaderEpoch, Offset};
use thalweg_storage::{Error, LogConfig, TransactionResult};

use super::day::{Day, config, create};
use super::promises::Promises;
use crate::harness::{Make, NOW_MS, World, partition};

/// How much happens on a day at most.
const STEPS: usize = 40;

/// What is known of the producers of a topic.
#[derive(Default)]
struct Writers {
    /// Other producers after a truncation: they would not know what became of their batches.
    generation: i64,
    next_sequence: BTreeMap<i64, i32>,
    has_open_transaction: bool,
}

/// Works until the disk fails, or the day ends with an orderly stop.
pub fn work(world: &World, promises: &mut Promises, day: i64, random: &mut Rng) -> Result<(), Error> {
    let manager = world.try_manager(&config())?;
    for topic in ["a", "b"] {
        if manager.log(&partition(topic, 0)).is_none() {
            create(&manager, promises, topic)?;
        }
    }
    let latest = manager.logs().iter().filter_map(|log| log.latest_epoch()).max();
    let leader_epoch = LeaderEpoch(latest.map_or(0, |epoch| epoch.0 + 1));
    let mut today = Day {
        manager: &manager,
        promises,
        sequence: 0,
        time: NOW_MS + 10_000 * day,
        leader_epoch,
        is_journaled: world.is_journaled(),
        rounds: 0,
    };
    today.begin()?;
    let mut writers: BTreeMap<&str, Writers> = BTreeMap::new();
    for _ in 0..random.usize(1..STEPS) {
        if random.u8(0..4) == 0 {
            manager.keep_up_journal()?;
        }
        let topic = ["a", "b"][random.usize(0..2)];
        let known = writers.entry(topic).or_default();
        step(&mut today, topic, known, 1000 * day, random)?;
    }
    if random.bool() { manager.close() } else { Ok(()) }
}

fn step(
    day: &mut Day<'_, '_>,
    topic: &str,
    known: &mut Writers,
    first_producer: i64,
    random: &mut Rng,
) -> Result<(), Error> {
    let log = day.log(topic);
    let producer = first_producer + 10 * known.generation;
    match random.u8(0..21) {
        0..5 => {
            let values: Vec<String> =
                (0..random.usize(1..4)).map(|n| "x".repeat(n + random.usize(0..80))).collect();
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            day.append(topic, Make::values(&values))
        }
        5..9 => produce(day, topic, known, producer + 1, false),
        9..11 => {
            produce(day, topic, known, producer + 2, true)?;
            known.has_open_transaction = true;
            Ok(())
        }
        11 if known.has_open_transaction => {
            known.has_open_transaction = false;
            let result = if random.bool() { TransactionResult::Commit } else { TransactionResult::Abort };
            day.end(topic, producer + 2, result)
        }
        12..15 => day.round(),
        // Synced, and not committed.
        15 if day.is_journaled && random.bool() => day.journal_round(),
        15 => log.sync().map(|_| ()),
        16 => {
            let to = random.i64(
                day.promises.of(topic).least_end().0.max(log.log_start_offset().0)..=log.log_end_offset().0,
            );
            day.promises.of(topic).truncating(Offset(to));
            log.truncate_to(Offset(to))?;
            day.promises.of(topic).truncated(log.log_end_offset());
            *known = Writers { generation: known.generation + 1, ..Writers::default() };
            Ok(())
        }
        17 => {
            let to = Offset(random.i64(log.log_start_offset().0..=log.high_watermark().0));
            day.promises.of(topic).start_attempted = to;
            log.delete_records(to)?;
            day.promises.of(topic).start_done = to;
            Ok(())
        }
        18 => {
            day.promises.of(topic).start_attempted = log.high_watermark();
            log.set_config(LogConfig { retention_bytes: random.i64(0..2000), ..config() });
            log.apply_retention()?;
            log.set_config(config());
            day.promises.of(topic).start_attempted = log.log_start_offset();
            day.promises.of(topic).start_done = log.log_start_offset();
            Ok(())
        }
        19 => {
            let to = log.log_end_offset().plus(random.i64(0..20));
            day.promises.of(topic).truncating(Offset(0));
            day.promises.of(topic).start_attempted = to;
            log.restart_at(to)?;
            day.promises.of(topic).truncated(Offset(0));
            day.promises.of(topic).start_done = to;
            *known = Writers { generation: known.generation + 1, ..Writers::default() };
            Ok(())
        }
        _ => {
            day.leader_epoch.0 += 1;
            log.begin_leader_epoch(day.leader_epoch)
        }
    }
}

fn produce(
    day: &mut Day<'_, '_>,
    topic: &str,
    known: &mut Writers,
    producer: i64,
    transactional: bool,
) -> Result<(), Error> {
    let sequence = known.next_sequence.entry(producer).or_default();
    let make = Make::values(&["idempotent", "records"]).by(producer, 0, *sequence);
    *sequence += 2;
    day.append(topic, if transactional { make.in_transaction() } else { make })
}
