//! A working day of a data directory: everything that changes files, in a fixed order.

use thalweg_protocol::record::RecordBatch;
use thalweg_protocol::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use thalweg_storage::{AppendOrigin, Error, Log, LogConfig, LogManager, MarkerAppend, TransactionResult};

use super::promises::{Promise, Promises};
use crate::harness::{Make, NOW_MS, TOPIC_ID, World, marker, partition};

/// Topics that have something unsynced in every round with a journal, so that other logs are not alone in it.
pub(super) const BESIDE: [&str; 2] = ["beside", "besides"];

pub fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 450,
        index_interval_bytes: 1,
        retention_ms: -1,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    }
}

/// Does everything, and notes what was promised, until the disk fails.
pub fn work(world: &World, promises: &mut Promises) -> Result<(), Error> {
    let manager = world.try_manager(&config())?;
    create(&manager, promises, "a")?;
    create(&manager, promises, "b")?;
    let is_journaled = world.is_journaled();
    let (time, leader_epoch) = (NOW_MS, LeaderEpoch(0));
    let mut day =
        Day { manager: &manager, promises, sequence: 0, time, leader_epoch, is_journaled, rounds: 0 };
    day.begin()?;
    day.morning()?;
    day.noon()?;
    let Day { promises, sequence, time, .. } = day;
    manager.close()?;
    drop(manager);

    let manager = world.try_manager(&config())?;
    let leader_epoch = LeaderEpoch(2);
    let mut day = Day { manager: &manager, promises, sequence, time, leader_epoch, is_journaled, rounds: 0 };
    day.begin()?;
    day.evening()
}

pub(super) fn create(manager: &LogManager, promises: &mut Promises, topic: &str) -> Result<(), Error> {
    manager.create(&partition(topic, 0), TOPIC_ID, config())?;
    promises.of(topic).exists = true;
    Ok(())
}

pub(super) struct Day<'m, 'p> {
    pub(super) manager: &'m LogManager,
    pub(super) promises: &'p mut Promises,
    /// The next sequence number of producer 1, which writes to `a`.
    pub(super) sequence: i32,
    pub(super) time: i64,
    pub(super) leader_epoch: LeaderEpoch,
    /// Whether the rounds go through the journal.
    pub(super) is_journaled: bool,
    pub(super) rounds: usize,
}

impl Day<'_, '_> {
    /// Makes what only days with a journal have.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        if !self.is_journaled {
            return Ok(());
        }
        for topic in BESIDE {
            if self.manager.log(&partition(topic, 0)).is_none() {
                create(self.manager, self.promises, topic)?;
            }
            // A log that rolls does not go into the journal.
            self.log(topic).set_config(LogConfig { segment_bytes: 10_000, ..config() });
        }
        self.manager.keep_up_journal()
    }

    pub(super) fn log(&self, topic: &str) -> std::sync::Arc<Log> {
        self.manager.log(&partition(topic, 0)).expect("it exists")
    }

    pub(super) fn append(&mut self, topic: &str, make: Make) -> Result<(), Error> {
        self.time += 7;
        let log = self.log(topic);
        let batch: RecordBatch = make.at(self.time).batch();
        let header = batch.header();
        let guard = match header.is_transactional() {
            true => log.begin_verification(header.producer_id, header.producer_epoch),
            false => None,
        };
        self.promises.attempt(topic, log.log_end_offset(), self.leader_epoch, &batch);
        let origin = AppendOrigin::Client { guard, awaits_sync: self.is_journaled };
        log.append_as_leader(&batch, self.leader_epoch, origin)?;
        Ok(())
    }

    /// Appends a batch of the idempotent producer 1.
    fn produce(&mut self, topic: &str) -> Result<(), Error> {
        let value = format!("sequence {}", self.sequence);
        let make = Make::values(&[&value, "and another"]).by(1, 0, self.sequence);
        self.sequence += 2;
        self.append(topic, make)
    }

    pub(super) fn end(&mut self, topic: &str, producer: i64, result: TransactionResult) -> Result<(), Error> {
        let log = self.log(topic);
        self.promises.attempt_marker(topic, log.log_end_offset(), producer, result);
        log.append_marker(MarkerAppend { leader_epoch: self.leader_epoch, ..marker(producer, 0, result) })?;
        Ok(())
    }

    /// A round: what it has synced is committed.
    pub(super) fn round(&mut self) -> Result<(), Error> {
        self.rounds += 1;
        if self.is_journaled {
            self.journal_round()?;
            self.acknowledge();
            // Upkeep comes now and then.
            return if self.rounds.is_multiple_of(3) { self.manager.keep_up_journal() } else { Ok(()) };
        }
        for log in self.manager.logs() {
            log.sync()?;
        }
        self.acknowledge();
        self.manager.sync_all()
    }

    /// What is in the journal is synced, and of the other topics nobody has been told.
    pub(super) fn journal_round(&mut self) -> Result<(), Error> {
        // A record has several sectors.
        let value = "beside".repeat(60);
        for topic in BESIDE {
            self.append(topic, Make::values(&[&value]))?;
        }
        self.manager.sync_round()?;
        for topic in BESIDE {
            let log = self.log(topic);
            self.promises.of(topic).committed(log.set_high_watermark(log.synced_offset()));
        }
        Ok(())
    }

    fn acknowledge(&mut self) {
        for log in self.manager.logs() {
            let readable = log.set_high_watermark(log.settled_offset());
            self.promises.of(&log.partition().topic).committed(readable);
        }
    }

    fn morning(&mut self) -> Result<(), Error> {
        self.log("a").begin_leader_epoch(LeaderEpoch(0))?;
        self.append("a", Make::values(&["one", "two", "three"]))?;
        self.append("b", Make::values(&["one"]))?;
        self.round()?;
        for _ in 0..4 {
            self.produce("a")?;
            self.round()?;
        }
        // Two rolls within one round.
        for _ in 0..6 {
            self.produce("a")?;
        }
        self.round()?;
        self.append("a", Make::values(&["in", "a", "transaction"]).by(2, 0, 0).in_transaction())?;
        self.append("a", Make::values(&["in another"]).by(3, 0, 0).in_transaction())?;
        self.produce("a")?;
        self.end("a", 2, TransactionResult::Abort)?;
        self.round()?;
        self.append("a", Make::values(&["still in it"]).by(3, 0, 1).in_transaction())?;
        self.round()
    }

    fn noon(&mut self) -> Result<(), Error> {
        self.leader_epoch = LeaderEpoch(1);
        self.log("a").begin_leader_epoch(LeaderEpoch(1))?;
        self.produce("a")?;
        self.end("a", 3, TransactionResult::Commit)?;
        self.round()?;
        let a = self.log("a");
        self.promises.of("a").start_attempted = Offset(9);
        a.delete_records(Offset(9))?;
        self.promises.of("a").start_done = Offset(9);
        a.set_config(LogConfig { retention_bytes: 900, ..config() });
        self.promises.of("a").start_attempted = a.high_watermark();
        a.apply_retention()?;
        self.promises.of("a").start_attempted = a.log_start_offset();
        self.promises.of("a").start_done = a.log_start_offset();
        a.apply_retention()?;
        a.set_config(config());
        self.truncate_b()?;
        create(self.manager, self.promises, "c")?;
        self.append("c", Make::values(&["short-lived"]))?;
        self.promises.of("c").exists = false;
        self.manager.delete(&partition("c", 0))?;
        self.promises.of("c").is_gone = true;
        self.make_anew()?;
        self.produce("a")?;
        self.round()
    }

    /// A log is deleted and made anew, with the same id: nothing of the old one may come back.
    fn make_anew(&mut self) -> Result<(), Error> {
        create(self.manager, self.promises, "d")?;
        self.append("d", Make::values(&["of the old one", "and more of it"]))?;
        self.round()?;
        self.append("d", Make::values(&["of the old one, too"]))?;
        self.round()?;
        self.promises.of("d").exists = false;
        self.manager.delete(&partition("d", 0))?;
        *self.promises.of("d") = Promise::default();
        create(self.manager, self.promises, "d")?;
        self.append("d", Make::values(&["anew"]))?;
        self.round()
    }

    /// Some of `b` was synced but never committed: another leader has another idea of it.
    fn truncate_b(&mut self) -> Result<(), Error> {
        let b = self.log("b");
        let committed = b.log_end_offset();
        for n in 0..7 {
            let make = Make::values(&[&format!("never committed {n}"), "nor this"]);
            // Of this producer nothing may be remembered.
            self.append("b", if n > 2 { make.by(5, 0, 2 * n - 6) } else { make })?;
        }
        b.sync()?;
        self.append("b", Make::values(&["not even synced"]))?;
        if self.is_journaled {
            self.journal_round()?;
            self.append("b", Make::values(&["the journal has it"]))?;
            self.journal_round()?;
        }
        // Within a batch, which goes as a whole.
        let to = committed.plus(5);
        self.promises.of("b").truncating(committed);
        b.truncate_to(to)?;
        self.promises.of("b").truncated(committed.plus(4));
        self.append("b", Make::values(&["another history"]))?;
        for _ in 0..6 {
            self.append("b", Make::values(&["of which", "nothing", "was known"]))?;
        }
        self.round()
    }

    fn evening(&mut self) -> Result<(), Error> {
        for topic in ["a", "b"] {
            self.log(topic).begin_leader_epoch(self.leader_epoch)?;
        }
        self.produce("a")?;
        self.append("b", Make::values(&["good evening"]))?;
        self.round()?;
        for _ in 0..3 {
            self.produce("a")?;
        }
        // A follower that is too far behind begins anew.
        self.promises.of("b").truncating(Offset(0));
        self.promises.of("b").start_attempted = Offset(500);
        self.log("b").restart_at(Offset(500))?;
        self.promises.of("b").truncated(Offset(0));
        self.promises.of("b").start_done = Offset(500);
        self.append("b", Make::values(&["anew"]))?;
        self.round()?;
        assert!(!self.log("a").has_open_transaction(ProducerId(3), ProducerEpoch(0)));
        self.manager.run_retention();
        self.manager.remove_deleted();
        self.manager.close()
    }
}
