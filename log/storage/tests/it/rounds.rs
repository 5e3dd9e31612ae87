//! Rounds of syncs.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thalweg_protocol::{Offset, TopicPartition};
use thalweg_storage::testing::{Crash, OperationKind};
use thalweg_storage::{Durability, LogConfig, LogManager, SyncListener, SyncRounds};

use crate::harness::{Make, TOPIC_ID, World, append, commit, partition, values};

const PATIENCE: Duration = Duration::from_secs(20);

type Synced = (TopicPartition, Result<Offset, String>);

fn listener() -> (SyncListener, Receiver<Synced>) {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let listener: SyncListener = Arc::new(move |log, result| {
        let result = result.map_err(|error| error.to_string());
        // Nobody may listen any more.
        let _ = sender.lock().send((log.partition().clone(), result));
    });
    (listener, receiver)
}

fn make(manager: &LogManager, count: i32, config: &LogConfig) {
    for n in 0..count {
        manager.create(&partition("flights", n), TOPIC_ID, config.clone()).expect("made");
    }
}

fn data_syncs(world: &World) -> usize {
    let performed = world.disk.performed();
    let is_data = |path: &std::path::Path| path.extension() == Some("log".as_ref());
    performed.iter().filter(|o| o.kind == OperationKind::Sync && is_data(&o.path)).count()
}

#[test]
fn every_append_to_a_durable_log_is_synced_in_a_round() {
    let mut world = World::new();
    let manager = world.manager(&LogConfig::default());
    make(&manager, 3, &LogConfig::default());
    let (listener, synced) = listener();
    manager.start_sync_rounds(2, listener);
    for n in 0..50 {
        let log = manager.log(&partition("flights", n % 3)).expect("there");
        let end = append(&log, Make::values(&["x"])).last_offset.plus(1);
        loop {
            let (who, offset) = synced.recv_timeout(PATIENCE).expect("a round");
            if who == *log.partition() && offset == Ok(end) {
                break;
            }
        }
        assert_eq!(log.synced_offset(), end);
    }
    // What was answered survives, and the checkpoint knows all but the last round.
    drop(manager);
    world.crash(Crash::Dropped);
    let manager = world.manager(&LogConfig::default());
    let found: usize = manager.logs().iter().map(|log| values(log).len()).sum();
    assert_eq!(found, 50);
}

#[test]
fn what_is_not_synced_counts_on_a_relaxed_topic_alone() {
    for (durability, before_the_sync) in [(Durability::Synced, Offset(2)), (Durability::Relaxed, Offset(5))] {
        let config = LogConfig { durability, ..LogConfig::default() };
        let world = World::new();
        let log = world.create(&config);
        assert_eq!(log.settled_offset(), Offset(0));
        append(&log, Make::values(&["one", "two"]));
        log.sync().expect("synced");
        append(&log, Make::values(&["three", "four", "five"]));
        assert_eq!(
            (log.synced_offset(), log.settled_offset()),
            (Offset(2), before_the_sync),
            "{durability:?}"
        );
        log.sync().expect("synced");
        assert_eq!((log.synced_offset(), log.settled_offset()), (Offset(5), Offset(5)), "{durability:?}");
    }
}

#[test]
fn appends_that_come_together_share_a_round() {
    let world = World::new();
    let log = world.create(&LogConfig::default());
    commit(&log);
    let (listener, synced) = listener();
    // The listener of the first round waits, as a slow disk would, while the next one collects.
    let gate = Arc::new(Mutex::new(()));
    let waiting = Arc::clone(&gate);
    let slow: SyncListener = Arc::new(move |log, result| {
        listener(log, result);
        drop(waiting.lock());
    });
    let rounds = SyncRounds::new(1, slow);
    rounds.attach(&log);
    let closed = gate.lock();
    append(&log, Make::values(&["first"]));
    assert_eq!(synced.recv_timeout(PATIENCE).expect("a round").1, Ok(Offset(1)));
    let before = data_syncs(&world);
    for _ in 0..100 {
        append(&log, Make::values(&["together"]));
    }
    drop(closed);
    assert_eq!(synced.recv_timeout(PATIENCE).expect("a round").1, Ok(Offset(101)));
    assert_eq!(data_syncs(&world) - before, 1, "one sync for a hundred appends");
    assert_eq!(rounds.rounds(), 2);
}

#[test]
fn relaxed_logs_are_synced_when_they_roll() {
    let world = World::new();
    let config = LogConfig { durability: Durability::Relaxed, segment_bytes: 300, ..LogConfig::default() };
    let manager = world.manager(&config);
    make(&manager, 1, &config);
    let (listener, synced) = listener();
    manager.start_sync_rounds(1, listener);
    let log = manager.log(&partition("flights", 0)).expect("there");
    append(&log, Make::values(&["x"]));
    assert!(synced.recv_timeout(Duration::from_millis(50)).is_err(), "no round for an append");
    while log.segment_count() == 1 {
        append(&log, Make::values(&["x"]));
    }
    synced.recv_timeout(PATIENCE).expect("a round for the roll").1.expect("synced");
    assert!(log.synced_offset() > Offset(0));
}

#[test]
fn the_checkpoint_is_told_even_when_nothing_follows() {
    let mut world = World::new();
    let manager = world.manager(&LogConfig::default());
    make(&manager, 1, &LogConfig::default());
    let (listener, synced) = listener();
    manager.start_sync_rounds(1, listener);
    let log = manager.log(&partition("flights", 0)).expect("there");
    append(&log, Make::values(&["x"]));
    synced.recv_timeout(PATIENCE).expect("a round").1.expect("synced");
    let begun = Instant::now();
    let told = || std::fs::read_to_string(world.path("synced-to")).expect("there").contains("flights 0 1 0");
    while !told() {
        assert!(begun.elapsed() < PATIENCE, "the checkpoint does not know");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop((manager, log));
    world.crash(Crash::Kept);
    // From now on the loss of that record is corruption.
    let path = world.path("flights-0/00000000000000000000.log");
    std::fs::write(&path, []).expect("emptied");
    world.crash(Crash::Kept);
    let manager = world.manager(&LogConfig::default());
    assert_eq!(manager.offline_logs().len(), 1);
}

#[test]
fn a_round_that_fails_tells_the_listener() {
    let world = World::new();
    let log = world.create(&LogConfig::default());
    commit(&log);
    let (listener, synced) = listener();
    let rounds = SyncRounds::new(2, listener);
    rounds.attach(&log);
    world.disk.fail_at(world.disk.performed().len() + 1, libc::EIO);
    append(&log, Make::values(&["x"]));
    let (_, result) = synced.recv_timeout(PATIENCE).expect("an answer");
    assert!(result.expect_err("the disk fails").contains("sync"));
    assert_eq!(log.synced_offset(), Offset(0));
}

#[test]
fn a_sync_that_was_put_off_is_made_up_for() {
    let world = World::new();
    let log = world.create(&LogConfig::default());
    let (listener, synced) = listener();
    let rounds = SyncRounds::new(1, listener);
    append(&log, Make::values(&["x"]));
    world.disk.set_full(true);
    rounds.request(&log);
    assert!(synced.recv_timeout(Duration::from_millis(150)).is_err(), "the epochs cannot be written");
    world.disk.set_full(false);
    assert_eq!(synced.recv_timeout(PATIENCE).expect("by itself").1, Ok(Offset(1)));
}

#[test]
fn a_sync_that_was_put_off_does_not_wait_for_the_others_to_fall_silent() {
    let world = World::new();
    let manager = world.manager(&LogConfig::default());
    make(&manager, 2, &LogConfig::default());
    let [starved, busy] = [0, 1].map(|n| manager.log(&partition("flights", n)).expect("there"));
    append(&busy, Make::values(&["x"]));
    commit(&busy);
    append(&starved, Make::values(&["x"]));
    let (listener, synced) = listener();
    let rounds = SyncRounds::new(1, listener);
    world.disk.set_full(true);
    rounds.request(&starved);
    // One round after the other, so that there is never a pause.
    let begun = Instant::now();
    loop {
        rounds.request(&busy);
        let (who, result) = synced.recv_timeout(PATIENCE).expect("a round");
        if who == *starved.partition() {
            assert_eq!(result, Ok(Offset(1)));
            return;
        }
        if rounds.rounds() > 50 {
            world.disk.set_full(false);
        }
        assert!(begun.elapsed() < PATIENCE, "{} rounds went by", rounds.rounds());
    }
}

fn checkpoint_syncs(world: &World) -> usize {
    let performed = world.disk.performed();
    let is_checkpoint = |path: &std::path::Path| path.file_name() == Some("synced-to".as_ref());
    performed.iter().filter(|o| o.kind == OperationKind::Sync && is_checkpoint(&o.path)).count()
}

#[test]
fn the_checkpoint_is_told_now_and_then_and_when_all_is_quiet() {
    let world = World::new();
    let manager = world.manager(&LogConfig::default());
    make(&manager, 1, &LogConfig::default());
    let log = manager.log(&partition("flights", 0)).expect("there");
    let (listener, synced) = listener();
    manager.start_sync_rounds(2, listener);
    let (begun, before) = (Instant::now(), checkpoint_syncs(&world));
    let mut rounds = 0;
    while begun.elapsed() < Duration::from_millis(350) {
        append(&log, Make::values(&["x"]));
        synced.recv_timeout(PATIENCE).expect("a round").1.expect("synced");
        rounds += 1;
    }
    let (told, most) = (checkpoint_syncs(&world) - before, begun.elapsed().as_millis() / 100 + 2);
    assert!(rounds > 10 && told > 0 && told as u128 <= most, "{told} of {most} in {rounds} rounds");
    // The last round, too, without another one.
    let deadline = Instant::now() + PATIENCE;
    while checkpoint_syncs(&world) - before == told {
        assert!(Instant::now() < deadline, "the checkpoint never hears of the last rounds");
        std::thread::sleep(Duration::from_millis(10));
    }
}
