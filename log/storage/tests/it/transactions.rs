//! Transactions: markers, the last stable offset, the index of aborted ones, verification.

use thalweg_protocol::{Offset, ProducerEpoch, ProducerId};
use thalweg_storage::testing::Crash;
use thalweg_storage::{
    AbortedTransaction, ActiveProducer, AppendOrigin, Clock, Error, Log, MarkerAppend, ReadBound,
    TransactionProblem, TransactionResult,
};

use crate::harness::{EPOCH, Make, World, append, commit, marker, records, small, synced_to, try_append};

fn transactional(log: &Log, id: i64, sequence: i32) -> i64 {
    append(log, Make::values(&["a", "b"]).by(id, 0, sequence).in_transaction()).first_offset.0
}

fn end(log: &Log, id: i64, result: TransactionResult) -> i64 {
    log.append_marker(marker(id, 0, result)).expect("appended").first_offset.0
}

fn stable(log: &Log) -> i64 {
    log.last_stable_offset().0
}

#[test]
fn the_last_stable_offset_waits_for_markers_to_be_committed() {
    let world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["plain"]));
    commit(&log);
    assert_eq!(stable(&log), 1);
    assert_eq!(transactional(&log, 1, 0), 1);
    assert_eq!(transactional(&log, 2, 0), 3);
    append(&log, Make::values(&["plain"]));
    assert_eq!(stable(&log), 1);
    commit(&log);
    assert_eq!((log.high_watermark(), stable(&log)), (Offset(6), 1), "both are open");
    end(&log, 1, TransactionResult::Commit);
    assert_eq!(stable(&log), 1, "the marker at 6 is not committed");
    commit(&log);
    assert_eq!(stable(&log), 3, "2 is open");
    transactional(&log, 1, 2);
    end(&log, 2, TransactionResult::Abort);
    assert_eq!(stable(&log), 3);
    commit(&log);
    assert_eq!(stable(&log), 7, "the next transaction of 1");
    end(&log, 1, TransactionResult::Commit);
    commit(&log);
    assert_eq!(Offset(stable(&log)), log.log_end_offset());
    // A marker for a transaction of which nothing is here changes nothing.
    end(&log, 7, TransactionResult::Abort);
    commit(&log);
    assert_eq!(Offset(stable(&log)), log.log_end_offset());
}

#[test]
fn producers_are_told_with_what_they_have_open() {
    let world = World::new();
    let log = world.create(&small());
    assert_eq!(log.active_producers(), []);
    let active = |id, epoch, last_sequence, coordinator_epoch, start: Option<i64>| ActiveProducer {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(epoch),
        last_sequence,
        last_active_ms: world.clock.now_ms(),
        coordinator_epoch,
        transaction_start: start.map(Offset),
    };
    append(&log, Make::values(&["nobody's"]));
    transactional(&log, 7, 0);
    append(&log, Make::values(&["a", "b", "c"]).by(3, 4, 0));
    transactional(&log, 7, 2);
    let expected = vec![active(3, 4, Some(2), None, None), active(7, 0, Some(3), None, Some(1))];
    assert_eq!(log.active_producers(), expected);
    end(&log, 7, TransactionResult::Abort);
    // Its marker raises the epoch, in which nothing is written yet.
    log.append_marker(marker(9, 2, TransactionResult::Commit)).expect("appended");
    let expected = vec![
        active(3, 4, Some(2), None, None),
        active(7, 0, Some(3), Some(0), None),
        active(9, 2, None, Some(0), None),
    ];
    assert_eq!(log.active_producers(), expected);
}

#[test]
fn aborted_transactions_are_found_in_the_range_they_touch() {
    let mut world = World::new();
    let log = world.create(&small());
    // Two interleaved transactions of 1 and 2 every eight offsets; those of 1 are aborted.
    for n in 0..40 {
        transactional(&log, 2, 4 * n);
        transactional(&log, 1, 2 * n);
        transactional(&log, 2, 4 * n + 2);
        end(&log, 1, TransactionResult::Abort);
        end(&log, 2, TransactionResult::Commit);
    }
    commit(&log);
    assert!(log.segment_count() > 10);
    check_ranges(&log);
    let stays_open = transactional(&log, 1, 80);
    commit(&log);
    let standing = synced_to(log.log_end_offset().0);
    drop(log);
    world.crash(Crash::Dropped);
    let log = world.open(&small(), standing);
    log.set_high_watermark(log.log_end_offset());
    assert_eq!(stable(&log), stays_open);
    check_ranges(&log);
}

fn check_ranges(log: &Log) {
    for (from, to) in
        [(0, 320), (0, 1), (2, 3), (3, 4), (4, 6), (7, 10), (7, 11), (100, 140), (318, 320), (319, 320)]
    {
        let expected: Vec<AbortedTransaction> = (0..40)
            .map(|n| (8 * n + 2, 8 * n + 6))
            .filter(|&(first, marker)| marker >= from && first < to)
            .map(|(first, _)| AbortedTransaction { producer_id: ProducerId(1), first_offset: Offset(first) })
            .collect();
        let found = log.aborted_transactions(Offset(from), Offset(to)).expect("read");
        assert_eq!(found, expected, "[{from}, {to})");
    }
}

#[test]
fn a_committed_read_brings_the_aborted_ones_and_stops_at_the_stable_offset() {
    let world = World::new();
    let log = world.create(&small());
    transactional(&log, 1, 0);
    end(&log, 1, TransactionResult::Abort);
    append(&log, Make::values(&["plain"]));
    let open = transactional(&log, 2, 0);
    append(&log, Make::values(&["behind it"]));
    commit(&log);
    let read = |bound| log.read(Offset(0), 1 << 20, bound, true).expect("read");
    let info = read(ReadBound::LastStableOffset);
    assert_eq!(info.last_stable_offset, Offset(open));
    assert_eq!(
        info.aborted_transactions,
        [AbortedTransaction { producer_id: ProducerId(1), first_offset: Offset(0) }]
    );
    assert_eq!(records(&log, Offset(0), ReadBound::LastStableOffset).len(), 4);
    assert!(read(ReadBound::HighWatermark).aborted_transactions.is_empty());
    assert_eq!(records(&log, Offset(0), ReadBound::HighWatermark).len(), 7);
}

#[test]
fn a_long_open_transaction_is_listed_with_the_short_ones_inside_it() {
    let world = World::new();
    let log = world.create(&small());
    let first = transactional(&log, 1, 0);
    for n in 0..20 {
        transactional(&log, 2, 2 * n);
        end(&log, 2, TransactionResult::Abort);
    }
    end(&log, 1, TransactionResult::Abort);
    commit(&log);
    let found = log.aborted_transactions(Offset(30), Offset(31)).expect("read");
    let of_the_long_one = AbortedTransaction { producer_id: ProducerId(1), first_offset: Offset(first) };
    assert_eq!(found[0], of_the_long_one, "ordered by first offset, though its marker comes last");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_transaction_must_be_verified_before_it_begins_here() {
    let world = World::new();
    let log = world.create(&small());
    let batch = |sequence| Make::values(&["x"]).by(1, 0, sequence).in_transaction().batch();
    let append = |sequence, guard| {
        log.append_as_leader(&batch(sequence), EPOCH, AppendOrigin::Client { guard, awaits_sync: true })
    };
    let verify = || log.begin_verification(ProducerId(1), ProducerEpoch(0));
    let not_verified = |result: Result<_, Error>| {
        let problem = TransactionProblem::NotVerified;
        matches!(result, Err(Error::InvalidTransactionState { problem: found, .. }) if found == problem)
    };
    assert!(not_verified(append(0, None)));
    let guard = verify();
    assert!(guard.is_some());
    assert_eq!(verify(), guard, "a second request of the same epoch is the same verification");
    // The transaction ends while the coordinator is asked, as when an abort overtakes a late batch.
    end(&log, 1, TransactionResult::Abort);
    assert!(not_verified(append(0, guard)), "the guard is void");
    let guard = verify();
    append(0, guard).expect("verified");
    assert_eq!(verify(), None, "open: nothing to verify");
    append(1, None).expect("open");
    end(&log, 1, TransactionResult::Commit);
    assert!(not_verified(append(2, None)), "the next one");
    assert!(append(1, None).expect("a retry").is_duplicate, "a retry needs no verification");
}

#[test]
fn a_batch_outside_of_its_open_transaction_is_refused() {
    let world = World::new();
    let log = world.create(&small());
    transactional(&log, 1, 0);
    let error = try_append(&log, Make::values(&["x"]).by(1, 0, 2)).expect_err("not transactional");
    let problem = TransactionProblem::NotTransactional;
    assert!(
        matches!(error, Error::InvalidTransactionState { problem: found, .. } if found == problem),
        "{error}"
    );
}

#[test]
fn markers_of_old_epochs_and_coordinators_are_fenced() {
    let world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["x"]).by(1, 5, 0).in_transaction());
    let good = MarkerAppend { coordinator_epoch: 3, ..marker(1, 5, TransactionResult::Commit) };
    let old_epoch = MarkerAppend { producer_epoch: ProducerEpoch(4), ..good };
    assert!(matches!(log.append_marker(old_epoch), Err(Error::ProducerFenced { .. })));
    log.append_marker(good).expect("appended");
    let old_coordinator = MarkerAppend { coordinator_epoch: 2, ..good };
    assert!(matches!(
        log.append_marker(old_coordinator),
        Err(Error::CoordinatorFenced { current: 3, found: 2 })
    ));
    log.append_marker(MarkerAppend { coordinator_epoch: 4, ..good }).expect("a newer coordinator");
}

#[test]
fn a_late_marker_does_not_end_the_next_transaction() {
    let world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["x"]).by(1, 5, 0).in_transaction());
    // The coordinator raised the epoch to 6 for this marker, and the producer goes on with 6 (KIP-890).
    let bumped = MarkerAppend { epoch_is_bumped: true, ..marker(1, 6, TransactionResult::Commit) };
    log.append_marker(bumped).expect("appended");
    log.append_marker(bumped).expect("a retry when nothing is open is harmless");
    append(&log, Make::values(&["y"]).by(1, 6, 0).in_transaction());
    assert!(matches!(log.append_marker(bumped), Err(Error::ProducerFenced { .. })));
    assert!(log.has_open_transaction(ProducerId(1), ProducerEpoch(6)));
}
