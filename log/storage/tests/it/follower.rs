//! Following: appending what a leader has, truncating, beginning anew; and leader epochs.

use bytes::{Bytes, BytesMut};
use thalweg_protocol::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use thalweg_storage::testing::Crash;
use thalweg_storage::{EpochEnd, Error, Log, ReadBound, Standing, TransactionResult};

use crate::harness::{EPOCH, Make, World, append, commit, marker, small, synced_to, try_append, values};

/// Everything a leader has, as its followers fetch it.
fn fetched(log: &Log, from: i64) -> Bytes {
    let mut all = BytesMut::new();
    let mut next = Offset(from);
    while next < log.log_end_offset() {
        let info = log.read(next, 1 << 20, ReadBound::LogEnd, true).expect("read");
        let bytes = info.records.expect("some").read().expect("read");
        for batch in thalweg_protocol::record::Batches::new(bytes.clone()) {
            next = batch.expect("good").header().next_offset();
        }
        all.extend_from_slice(&bytes);
    }
    all.freeze()
}

fn leader(world: &World) -> std::sync::Arc<Log> {
    let log = world.create(&small());
    for n in 0..20 {
        append(&log, Make::values(&[&format!("{n}"), "x"]).by(1, 0, 2 * n));
        append(&log, Make::values(&["in a transaction"]).by(2, 0, n).in_transaction());
        let result = if n % 2 == 0 { TransactionResult::Abort } else { TransactionResult::Commit };
        log.append_marker(marker(2, 0, result)).expect("appended");
    }
    append(&log, Make::values(&["open"]).by(2, 0, 20).in_transaction());
    log
}

#[test]
fn a_follower_has_the_same_bytes_and_the_same_state() {
    let (leader_world, follower_world) = (World::new(), World::new());
    let leader = leader(&leader_world);
    for step in [1 << 20, 777, 100] {
        let follower = follower_world.create(&small());
        follower.restart_at(Offset(0)).expect("empty");
        let all = fetched(&leader, 0);
        let mut from = 0;
        while from < all.len() {
            // A fetch may end in the middle of a batch.
            let part = all.slice(from..all.len().min(from + step.max(200)));
            let info = follower.append_as_follower(&part).expect("appended");
            assert!(info.bytes > 0 && info.batches > 0);
            from += info.bytes;
        }
        assert_eq!(follower.log_end_offset(), leader.log_end_offset());
        assert_eq!(fetched(&follower, 0), all);
        assert_eq!(follower.latest_epoch(), Some(EPOCH));
        let range = (Offset(0), leader.log_end_offset());
        assert_eq!(
            follower.aborted_transactions(range.0, range.1).expect("read"),
            leader.aborted_transactions(range.0, range.1).expect("read")
        );
        assert!(follower.has_open_transaction(ProducerId(2), ProducerEpoch(0)));
        // It becomes the leader.
        assert!(append(&follower, Make::values(&["19", "x"]).by(1, 0, 38)).is_duplicate);
        assert!(matches!(
            try_append(&follower, Make::values(&["gap"]).by(1, 0, 41)),
            Err(Error::OutOfOrderSequence { .. })
        ));
        append(&follower, Make::values(&["next"]).by(1, 0, 40));
        let (leader_end, follower_end) = (leader.log_end_offset(), follower.log_end_offset());
        assert_eq!(follower_end, leader_end.plus(1));
    }
}

#[test]
fn a_follower_refuses_what_does_not_fit() {
    let (leader_world, follower_world) = (World::new(), World::new());
    let leader = leader(&leader_world);
    let follower = follower_world.create(&small());
    follower.append_as_follower(&fetched(&leader, 0)).expect("appended");
    let end = follower.log_end_offset();
    let again = follower.append_as_follower(&fetched(&leader, 0)).expect_err("it has that");
    assert!(
        matches!(again, Error::UnexpectedOffset { expected, found: Offset(0) } if expected == end),
        "{again}"
    );
    let mut damaged = BytesMut::from(&fetched(&leader, 0)[..]);
    damaged[70] ^= 1;
    let damaged = follower.append_as_follower(&damaged.freeze()).expect_err("the checksum");
    assert!(matches!(damaged, Error::InvalidBatch(_)), "{damaged}");
    assert_eq!(follower.log_end_offset(), end);
    let nothing = follower.append_as_follower(&fetched(&leader, 0).slice(..50)).expect("a cut batch");
    assert_eq!((nothing.bytes, nothing.log_end_offset), (0, end));
}

#[test]
fn truncation_takes_everything_back() {
    for to in [0, 1, 2, 30, 31, 77, 81] {
        let mut world = World::new();
        let log = leader(&world);
        log.sync().expect("synced");
        log.truncate_to(Offset(to)).expect("truncated");
        // Within a batch nothing can be kept of it: offsets go in fours, the first two of them one batch.
        let end = Offset(if to % 4 == 1 && to < 81 { to - 1 } else { to });
        assert_eq!((log.log_end_offset(), log.synced_offset()), (end, end), "to {to}");
        let check = |log: &Log| {
            assert_eq!(log.log_end_offset(), end);
            let aborted = log.aborted_transactions(Offset(0), Offset(1000)).expect("read");
            assert_eq!(aborted.len() as i64, (end.0 + 4) / 8, "markers at 3, 11, … of aborted ones");
            let is_open = log.has_open_transaction(ProducerId(2), ProducerEpoch(0));
            assert_eq!(is_open, end.0 % 4 == 3 || end == Offset(81), "to {to}");
        };
        check(&log);
        drop(log);
        world.crash(Crash::Dropped);
        let log = world.open(&small(), synced_to(end.0));
        check(&log);
        let sequence = ((end.0 + 3) / 4).min(20) * 2;
        if sequence > 0 {
            let last = format!("{}", sequence / 2 - 1);
            assert!(append(&log, Make::values(&[&last, "x"]).by(1, 0, sequence as i32 - 2)).is_duplicate);
            assert!(try_append(&log, Make::values(&["gap"]).by(1, 0, sequence as i32 + 1)).is_err());
        }
        append(&log, Make::values(&["next"]).by(1, 0, sequence as i32));
    }
}

#[test]
fn a_batch_that_holds_the_log_start_can_be_truncated() {
    let mut world = World::new();
    let log = world.create(&small());
    for n in 0..20 {
        append(&log, Make::values(&["a", "b", "c"]).by(1, 0, 3 * n));
    }
    commit(&log);
    log.delete_records(Offset(31)).expect("deleted");
    log.truncate_to(Offset(32)).expect("truncated");
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(31), Offset(31)));
    append(&log, Make::values(&["anew"]));
    commit(&log);
    drop(log);
    world.crash(Crash::Dropped);
    let log = world.open(&small(), Standing { log_start: Offset(31), ..synced_to(32) });
    assert_eq!((log.log_start_offset(), values(&log)), (Offset(31), vec!["anew".to_owned()]));
}

#[test]
fn a_log_begins_anew_where_the_leader_says() {
    let mut world = World::new();
    let log = leader(&world);
    commit(&log);
    log.restart_at(Offset(5000)).expect("restarted");
    let offsets = (log.log_start_offset(), log.log_end_offset(), log.high_watermark(), log.synced_offset());
    assert_eq!(offsets, (Offset(5000), Offset(5000), Offset(5000), Offset(5000)));
    assert_eq!(log.latest_epoch(), None);
    assert_eq!(append(&log, Make::values(&["a"]).by(1, 0, 77)).first_offset, Offset(5000));
    commit(&log);
    drop(log);
    world.crash(Crash::Dropped);
    let log = world.open(&small(), Standing { log_start: Offset(5000), ..synced_to(5001) });
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(5000), Offset(5001)));
    assert_eq!(values(&log), ["a"]);
}

#[test]
fn epochs_tell_where_to_truncate() {
    let mut world = World::new();
    let log = world.create(&small());
    let origin = thalweg_storage::AppendOrigin::Coordinator;
    let lead = |log: &Log, epoch: i32, batches: usize| {
        log.begin_leader_epoch(LeaderEpoch(epoch)).expect("newer");
        for _ in 0..batches {
            log.append_as_leader(&Make::values(&["a", "b"]).batch(), LeaderEpoch(epoch), origin)
                .expect("appended");
        }
    };
    lead(&log, 1, 5);
    lead(&log, 2, 0);
    lead(&log, 5, 3);
    let check = |log: &Log, ends: &[(i32, i32, i64)]| {
        for &(asked, epoch, end_offset) in ends {
            let expected = EpochEnd { epoch: LeaderEpoch(epoch), end_offset: Offset(end_offset) };
            assert_eq!(log.end_offset_for_epoch(LeaderEpoch(asked)), expected, "of {asked}");
        }
    };
    check(&log, &[(0, 0, 0), (1, 1, 10), (2, 1, 10), (4, 1, 10), (5, 5, 16), (6, -1, -1)]);
    let stale = log.begin_leader_epoch(LeaderEpoch(4)).expect_err("older");
    assert!(
        matches!(stale, Error::StaleLeaderEpoch { current: LeaderEpoch(5), found: LeaderEpoch(4) }),
        "{stale}"
    );
    log.begin_leader_epoch(LeaderEpoch(5)).expect("the same");
    // An epoch that began at the end and has no record goes, even though no record does (KAFKA-10706).
    log.begin_leader_epoch(LeaderEpoch(7)).expect("newer");
    log.sync().expect("synced");
    log.truncate_to(Offset(16)).expect("nothing to truncate");
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(5)));
    drop(log);
    world.crash(Crash::Dropped);
    let log = world.open(&small(), synced_to(16));
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(5)));
    log.truncate_to(Offset(8)).expect("truncated");
    check(&log, &[(1, 1, 8), (5, -1, -1)]);
    lead(&log, 8, 2);
    commit(&log);
    log.delete_records(Offset(9)).expect("deleted");
    check(&log, &[(1, 1, 9), (8, 8, 12)]);
    assert_eq!(log.epoch_of_offset(Offset(9)), Some(LeaderEpoch(8)));
}

#[test]
fn the_newest_epoch_is_remembered_without_a_record_of_it() {
    let mut world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["a"]));
    commit(&log);
    log.begin_leader_epoch(LeaderEpoch(9)).expect("newer");
    log.sync().expect("synced");
    drop(log);
    world.crash(Crash::Dropped);
    let log = world.open(&small(), synced_to(1));
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(9)));
    assert!(matches!(try_append(&log, Make::values(&["b"])), Err(Error::StaleLeaderEpoch { .. })));
}
