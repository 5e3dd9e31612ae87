//! Idempotent producers: duplicates, gaps, epochs.

use thalweg_protocol::{Offset, ProducerEpoch, ProducerId};
use thalweg_storage::testing::Crash;
use thalweg_storage::{AppendInfo, AppendOrigin, Error, LogConfig, Standing, TransactionResult};

use crate::harness::{EPOCH, Make, World, append, commit, marker, small, synced_to, try_append};

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    New,
    DuplicateOf(i64),
    Gap,
    Fenced,
}

fn outcome(result: Result<AppendInfo, Error>) -> Outcome {
    match result {
        Ok(info) if info.is_duplicate => Outcome::DuplicateOf(info.first_offset.0),
        Ok(_) => Outcome::New,
        Err(Error::OutOfOrderSequence { .. }) => Outcome::Gap,
        Err(Error::ProducerFenced { .. }) => Outcome::Fenced,
        Err(other) => panic!("{other}"),
    }
}

/// Two records by producer 1 with this epoch and base sequence.
fn send(log: &thalweg_storage::Log, epoch: i16, sequence: i32) -> Outcome {
    outcome(try_append(log, Make::values(&["a", "b"]).by(1, epoch, sequence)))
}

#[test]
fn sequences_are_checked() {
    use Outcome::{DuplicateOf, Fenced, Gap, New};
    // Epoch and base sequence of each batch of two records, and what becomes of it.
    let table: &[&[(i16, i32, Outcome)]] = &[
        // In order, a retry of each, a gap, a step back to what is no longer remembered.
        &[(0, 0, New), (0, 2, New), (0, 2, DuplicateOf(2)), (0, 0, DuplicateOf(0)), (0, 6, Gap), (0, 4, New)],
        // Part of a batch that was appended is not a retry of it.
        &[(0, 0, New), (0, 1, Gap)],
        // Five batches are remembered, whoever retries the sixth from the end has waited too long.
        &[
            (0, 0, New),
            (0, 2, New),
            (0, 4, New),
            (0, 6, New),
            (0, 8, New),
            (0, 10, New),
            (0, 2, DuplicateOf(2)),
            (0, 10, DuplicateOf(10)),
            (0, 0, Gap),
        ],
        // A producer that is not known may begin anywhere: its records may have been deleted.
        &[(0, 40, New), (0, 42, New), (0, 40, DuplicateOf(0))],
        // A new epoch begins with 0 and fences the old one.
        &[
            (0, 0, New),
            (1, 2, Gap),
            (1, 0, New),
            (0, 2, Fenced),
            (0, 0, Fenced),
            (1, 0, DuplicateOf(2)),
            (1, 2, New),
        ],
        // Sequences wrap.
        &[(0, i32::MAX - 1, New), (0, 0, New), (0, i32::MAX - 1, DuplicateOf(0)), (0, 2, New)],
        &[(0, i32::MAX, New), (0, 1, New), (0, i32::MAX, DuplicateOf(0)), (0, 0, Gap)],
    ];
    for case in table {
        // As it is, and with every batch sent to a log that was just restarted.
        for restarts in [false, true] {
            let mut world = World::new();
            let mut log = world.create(&small());
            for (at, &(epoch, sequence, expected)) in case.iter().enumerate() {
                // After a restart a snapshot may know only the last batch; here the batches are replayed.
                assert_eq!(
                    send(&log, epoch, sequence),
                    expected,
                    "batch {at} of {case:?}, restarts: {restarts}"
                );
                if restarts {
                    commit(&log);
                    let standing = synced_to(log.log_end_offset().0);
                    drop(log);
                    world.crash(Crash::Dropped);
                    log = world.open(&LogConfig { segment_bytes: 1 << 20, ..small() }, standing);
                }
            }
        }
    }
}

#[test]
fn nothing_of_a_refused_batch_remains() {
    let world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["a", "b"]).by(1, 0, 0));
    let size = log.size_in_bytes();
    assert_eq!(send(&log, 0, 3), Outcome::Gap);
    assert!(try_append(&log, Make::values(&["c"]).by(1, 0, 2).in_transaction().unverified()).is_err());
    assert_eq!((log.log_end_offset(), log.size_in_bytes()), (Offset(2), size));
    assert_eq!(send(&log, 0, 2), Outcome::New);
}

#[test]
fn a_duplicate_gets_the_answer_of_the_first_time() {
    let world = World::new();
    let config = LogConfig { timestamp_type: thalweg_storage::TimestampType::LogAppendTime, ..small() };
    let log = world.create(&config);
    let make = || Make::values(&["a", "b", "c"]).by(1, 0, 0);
    let first = append(&log, make());
    world.clock.advance(1000);
    append(&log, Make::values(&["d"]).by(1, 0, 3));
    let again = append(&log, make());
    assert_eq!(again, AppendInfo { is_duplicate: true, ..first });
    assert_eq!(log.log_end_offset(), Offset(4));
}

#[test]
fn a_clean_restart_remembers_five_batches() {
    let mut world = World::new();
    let log = world.create(&small());
    for n in 0..30 {
        assert_eq!(send(&log, 0, 2 * n), Outcome::New);
    }
    log.close().expect("closed");
    drop(log);
    world.crash(Crash::Dropped);
    let log = world.open(&small(), Standing { is_clean: true, ..synced_to(60) });
    for sequence in [50, 52, 54, 56, 58, 50] {
        assert_eq!(send(&log, 0, sequence), Outcome::DuplicateOf(i64::from(sequence)));
    }
    assert_eq!(send(&log, 0, 48), Outcome::Gap);
    assert_eq!(send(&log, 0, 61), Outcome::Gap);
    assert_eq!(send(&log, 0, 60), Outcome::New);
}

#[test]
fn producers_expire_by_the_clock_not_by_their_records() {
    let world = World::new();
    let log = world.create(&LogConfig { retention_ms: -1, ..small() });
    // Records of long ago, as when history is loaded.
    let old = |sequence| Make::times(&[1000, 2000]).by(1, 0, sequence);
    append(&log, old(0));
    append(&log, Make::values(&["open"]).by(2, 0, 0).in_transaction());
    world.clock.advance(LogConfig::default().producer_expiration_ms - 1);
    log.apply_retention().expect("done");
    assert!(append(&log, old(0)).is_duplicate, "not yet");
    world.clock.advance(1);
    log.apply_retention().expect("done");
    assert!(!append(&log, old(0)).is_duplicate, "forgotten");
    assert!(log.has_open_transaction(ProducerId(2), ProducerEpoch(0)), "not while its transaction is open");
}

#[test]
fn a_marker_raises_the_epoch() {
    let world = World::new();
    let log = world.create(&small());
    append(&log, Make::values(&["a", "b"]).by(1, 4, 0).in_transaction());
    log.append_marker(marker(1, 5, TransactionResult::Commit)).expect("appended");
    assert_eq!(send(&log, 4, 2), Outcome::Fenced);
    assert_eq!(send(&log, 5, 2), Outcome::Gap);
    assert_eq!(send(&log, 5, 0), Outcome::New);
}

#[test]
fn a_coordinator_needs_no_sequence() {
    let world = World::new();
    let log = world.create(&small());
    // Group coordinators write offsets in the name of a producer, without sequence.
    let batch = Make::values(&["offset"]).by(1, 0, -1).in_transaction().batch();
    log.append_as_leader(&batch, EPOCH, AppendOrigin::Coordinator).expect("appended");
    log.append_as_leader(&batch, EPOCH, AppendOrigin::Coordinator).expect("and again");
    assert!(log.has_open_transaction(ProducerId(1), ProducerEpoch(0)));
    let error = log
        .append_as_leader(&batch, EPOCH, AppendOrigin::Client { guard: None, awaits_sync: true })
        .expect_err("no sequence");
    assert!(matches!(error, Error::InvalidBatch(_)), "{error}");
}
