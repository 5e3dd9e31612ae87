//! Tables of what happens to records, and a comparison with a model that knows one record at a time.

mod model;

use bytestring::ByteString;
use thalweg_protocol::{ErrorCode, Offset};

use super::*;

const LIMIT: i16 = 3;

fn span(first: i64, last: i64) -> Span {
    Span { first: Offset(first), last: Offset(last), is_for_consumers: true }
}

fn hidden(first: i64, last: i64) -> Span {
    Span { is_for_consumers: false, ..span(first, last) }
}

fn terms(mode: AcquireMode, max_records: u64) -> AcquireTerms {
    AcquireTerms { mode, max_records, batch_size: 1000, max_locks: 100, max_deliveries: LIMIT, until_ms: 30 }
}

fn ack_terms() -> AckTerms {
    AckTerms { max_deliveries: LIMIT, until_ms: 60 }
}

/// What a share-partition looks like: start, then each run as `first-last state×deliveries`.
fn show(partition: &SharePartition) -> String {
    let mut shown = format!("{}", partition.start.0);
    for (first, run) in &partition.runs {
        let state = match &run.state {
            RecordState::Available => "free".to_owned(),
            RecordState::Acquired(lock) => lock.member.to_string(),
            RecordState::Acknowledged => "done".to_owned(),
            RecordState::Archived => "archived".to_owned(),
        };
        shown += &format!(" {}-{} {state}×{}", first.0, run.last.0, run.deliveries);
    }
    shown
}

enum Step {
    /// Member, where the read began, batches, mode and number of records: the ranges that it gets.
    Acquire(&'static str, i64, Vec<Span>, AcquireTerms, &'static [(i64, i64, i16)]),
    /// Member, first, last, types: what is answered.
    Ack(&'static str, i64, i64, &'static [i8], Result<(), ErrorCode>),
    Release(&'static str),
    Expire(u64),
    LogStart(i64),
    LogEnd(i64),
}

use AcquireMode::{BatchOptimized, RecordLimit};
use Step::{Ack, Acquire, Expire, LogEnd, LogStart, Release};

fn check(start: i64, steps: Vec<(Step, &'static str)>) {
    let mut partition = SharePartition::new(Offset(start));
    for (at, (step, expected)) in steps.into_iter().enumerate() {
        match step {
            Acquire(member, from, spans, terms, ranges) => {
                let acquired = partition.acquire(&member.into(), Offset(from), &spans, terms);
                let acquired: Vec<_> =
                    acquired.iter().map(|range| (range.first.0, range.last.0, range.deliveries)).collect();
                assert_eq!(acquired, ranges, "step {at}");
            }
            Ack(member, first, last, types, answer) => {
                let batch = AckBatch::new(first, last, types, true).expect("a sound batch");
                let decided = partition.acknowledge(member, &[batch], ack_terms());
                assert_eq!(decided.as_ref().map(|_| ()).map_err(|code| *code), answer, "step {at}");
                apply(&mut partition, decided.unwrap_or_default());
            }
            Release(member) => {
                let released = partition.release(member, LIMIT);
                apply(&mut partition, released);
            }
            Expire(now) => {
                let expired = partition.expire(now, LIMIT);
                apply(&mut partition, expired);
            }
            LogStart(offset) => partition.log_starts_at(Offset(offset)),
            LogEnd(offset) => assert!(partition.log_ends_at(Offset(offset)), "step {at}"),
        }
        assert_eq!(show(&partition), expected, "step {at}");
    }
}

/// Applies a transition, and checks what it was said to lead to.
fn apply(partition: &mut SharePartition, transition: Transition) {
    let (start, done) = (partition.start_after(&transition), partition.done_count_after(&transition));
    partition.apply(transition);
    assert_eq!((partition.start(), partition.done_count()), (start, done));
}

#[test]
fn records_go_to_one_member_and_the_start_moves_over_what_is_done() {
    check(
        10,
        vec![
            (
                Acquire("a", 10, vec![span(8, 12), span(13, 14)], terms(BatchOptimized, 2), &[(10, 12, 1)]),
                "10 10-12 a×1",
            ),
            (
                Acquire("b", 10, vec![span(8, 12), span(13, 14)], terms(BatchOptimized, 9), &[(13, 14, 1)]),
                "10 10-12 a×1 13-14 b×1",
            ),
            (Ack("b", 13, 13, &[1], Ok(())), "10 10-12 a×1 13-13 done×1 14-14 b×1"),
            (Ack("a", 10, 11, &[1, 3], Ok(())), "12 12-12 a×1 13-13 done×1 14-14 b×1"),
            (Ack("a", 12, 12, &[1], Ok(())), "14 14-14 b×1"),
            (Ack("b", 14, 14, &[0], Ok(())), "15"),
        ],
    );
}

#[test]
fn records_are_redelivered_until_the_limit() {
    check(
        0,
        vec![
            (Acquire("a", 0, vec![span(0, 3)], terms(BatchOptimized, 9), &[(0, 3, 1)]), "0 0-3 a×1"),
            (Ack("a", 0, 1, &[2], Ok(())), "0 0-1 free×1 2-3 a×1"),
            (Expire(29), "0 0-1 free×1 2-3 a×1"),
            (Expire(30), "0 0-3 free×1"),
            (Acquire("b", 0, vec![span(0, 3)], terms(RecordLimit, 2), &[(0, 1, 2)]), "0 0-1 b×2 2-3 free×1"),
            // Whoever goes may have perished of them.
            (Release("b"), "0 0-1 free×2 2-3 free×1"),
            // What comes to its last delivery comes alone.
            (
                Acquire("b", 0, vec![span(0, 3)], terms(RecordLimit, 9), &[(0, 0, 3)]),
                "0 0-0 b×3 1-1 free×2 2-3 free×1",
            ),
            (
                Acquire("c", 1, vec![span(0, 3)], terms(BatchOptimized, 9), &[(1, 1, 3)]),
                "0 0-0 b×3 1-1 c×3 2-3 free×1",
            ),
            (Release("b"), "1 1-1 c×3 2-3 free×1"),
            (
                Acquire("b", 2, vec![span(2, 5)], terms(RecordLimit, 9), &[(2, 3, 2), (4, 5, 1)]),
                "1 1-1 c×3 2-3 b×2 4-5 b×1",
            ),
            (Ack("c", 1, 1, &[2], Ok(())), "2 2-3 b×2 4-5 b×1"),
            // Nor does it come along with others.
            (Ack("b", 3, 4, &[2], Ok(())), "2 2-2 b×2 3-3 free×2 4-4 free×1 5-5 b×1"),
            (
                Acquire("c", 3, vec![span(2, 5)], terms(BatchOptimized, 9), &[(3, 3, 3)]),
                "2 2-2 b×2 3-3 c×3 4-4 free×1 5-5 b×1",
            ),
            (Expire(30), "2 2-2 free×2 3-3 archived×3 4-5 free×1"),
        ],
    );
}

/// Which ranges are acquired one after the other where every reader perishes.
#[track_caller]
fn check_narrowing(limit: i16, spans: &[Span], terms: AcquireTerms, expected: &[(i64, i64, i16)]) {
    let terms = AcquireTerms { max_deliveries: limit, ..terms };
    let mut partition = SharePartition::new(Offset(0));
    let mut ranges = Vec::new();
    while ranges.len() < expected.len() {
        let from = partition.next_fetch(100).expect("there is something to read");
        let acquired = partition.acquire(&"a".into(), from, spans, terms);
        ranges.extend(acquired.iter().map(|range| (range.first.0, range.last.0, range.deliveries)));
        let released = partition.release("a", limit);
        apply(&mut partition, released);
    }
    assert_eq!(ranges, expected);
}

#[test]
fn ranges_near_the_limit_are_halved() {
    let many = terms(BatchOptimized, 100);
    // What is left of a batch goes by its length.
    let expected = [
        (0, 5, 1),
        (0, 5, 2),
        (0, 5, 3),
        (0, 2, 4),
        (0, 0, 5),
        (1, 1, 5),
        (2, 2, 5),
        (3, 5, 4),
        (3, 3, 5),
        (4, 4, 5),
        (5, 5, 5),
    ];
    check_narrowing(5, &[span(0, 5)], many, &expected);
    // Small batches count together, as many as are told as one range.
    let single: Vec<_> = (0..20).map(|at| span(at, at)).collect();
    let expected = [
        (0, 19, 1),
        (0, 19, 2),
        (0, 19, 3),
        (0, 19, 4),
        (0, 9, 5),
        (0, 4, 6),
        (0, 0, 7),
        (1, 1, 7),
        (2, 2, 7),
    ];
    check_narrowing(7, &single, many, &expected);
    let small = AcquireTerms { batch_size: 4, ..many };
    let expected = [
        (0, 3, 1),
        (4, 5, 1),
        (0, 3, 2),
        (4, 5, 2),
        (0, 3, 3),
        (4, 5, 3),
        (0, 1, 4),
        (0, 0, 5),
        (1, 1, 5),
        (2, 3, 4),
    ];
    check_narrowing(5, &single[..6], small, &expected);
    // Fresh records do not come along.
    let mixed = AcquireTerms { max_records: 2, ..terms(RecordLimit, 2) };
    check_narrowing(3, &single, mixed, &[(0, 1, 1), (0, 1, 2), (0, 0, 3), (1, 1, 3), (2, 3, 1)]);
}

#[test]
fn acknowledgements_count_as_a_whole_or_not_at_all() {
    let invalid_state = Err(ErrorCode::InvalidRecordState);
    check(
        5,
        vec![
            (Acquire("a", 5, vec![span(5, 9)], terms(BatchOptimized, 9), &[(5, 9, 1)]), "5 5-9 a×1"),
            (Ack("b", 5, 5, &[1], invalid_state), "5 5-9 a×1"),
            (Ack("a", 5, 10, &[1], Err(ErrorCode::InvalidRequest)), "5 5-9 a×1"),
            (Ack("a", 7, 7, &[1], Ok(())), "5 5-6 a×1 7-7 done×1 8-9 a×1"),
            (Ack("a", 6, 7, &[1], invalid_state), "5 5-6 a×1 7-7 done×1 8-9 a×1"),
            // A renewed lock ends later.
            (Ack("a", 8, 9, &[4, 1], Ok(())), "5 5-6 a×1 7-7 done×1 8-8 a×1 9-9 done×1"),
            (Expire(30), "5 5-6 free×1 7-7 done×1 8-8 a×1 9-9 done×1"),
            (Expire(60), "5 5-6 free×1 7-7 done×1 8-8 free×1 9-9 done×1"),
            // What is done long since can be said again.
            (Ack("a", 0, 4, &[1], Ok(())), "5 5-6 free×1 7-7 done×1 8-8 free×1 9-9 done×1"),
        ],
    );
}

#[test]
fn what_is_not_there_is_given_up() {
    check(
        0,
        vec![
            // Offsets 3 and 4 were compacted away; 5 is the end of a transaction.
            (
                Acquire(
                    "a",
                    0,
                    vec![span(0, 2), hidden(5, 5), span(6, 7)],
                    terms(BatchOptimized, 9),
                    &[(0, 2, 1), (6, 7, 1)],
                ),
                "0 0-2 a×1 3-5 archived×0 6-7 a×1",
            ),
            (Release("a"), "0 0-2 free×1 3-5 archived×0 6-7 free×1"),
            // Retention has deleted the beginning, compaction what was there besides.
            (LogStart(1), "1 1-2 free×1 3-5 archived×0 6-7 free×1"),
            (Acquire("a", 1, vec![span(7, 7)], terms(BatchOptimized, 9), &[(7, 7, 2)]), "7 7-7 a×2"),
            (LogStart(20), "20"),
            (Ack("a", 7, 7, &[1], Ok(())), "20"),
            // The log has lost its tail: what comes there now is new.
            (LogEnd(19), "19"),
            (Acquire("a", 19, vec![span(19, 22)], terms(BatchOptimized, 9), &[(19, 22, 1)]), "19 19-22 a×1"),
            (LogEnd(21), "19 19-20 a×1"),
            (Ack("a", 19, 20, &[1], Ok(())), "21"),
            // A read from before a reset finds nothing.
            (Acquire("a", 22, vec![span(22, 23)], terms(BatchOptimized, 9), &[]), "21"),
        ],
    );
}

#[test]
fn locks_are_limited_and_ranges_cut_at_batches() {
    let few = |mode, locks| AcquireTerms { max_locks: locks, ..terms(mode, 100) };
    let small = AcquireTerms { batch_size: 2, ..terms(BatchOptimized, 100) };
    check(
        0,
        vec![
            (Acquire("a", 0, vec![span(0, 9)], few(BatchOptimized, 4), &[(0, 3, 1)]), "0 0-3 a×1"),
            (Acquire("b", 4, vec![span(0, 9)], few(RecordLimit, 4), &[]), "0 0-3 a×1"),
            (
                Acquire(
                    "b",
                    4,
                    vec![span(0, 9), span(10, 10), span(11, 11)],
                    small,
                    &[(4, 9, 1), (10, 11, 1)],
                ),
                "0 0-3 a×1 4-11 b×1",
            ),
        ],
    );
    let mut partition = SharePartition::new(Offset(0));
    assert_eq!(partition.next_fetch(4), Some(Offset(0)));
    partition.acquire(&"a".into(), Offset(0), &[span(0, 3)], few(BatchOptimized, 4));
    assert_eq!((partition.next_fetch(4), partition.next_fetch(5)), (None, Some(Offset(4))));
    assert_eq!(
        (partition.next_deadline(), partition.holds("a"), partition.holds("b")),
        (Some(30), true, false)
    );
}

#[test]
fn requests_that_contradict_themselves_are_refused() {
    for (first, last, types, may_renew) in [
        (-1, 3, &[1][..], true),
        (3, 2, &[1], true),
        (0, 2, &[1, 1], true),
        (0, 2, &[], true),
        (0, 0, &[5], true),
        (0, 0, &[-1], true),
        (0, 0, &[4], false),
        (0, i64::MAX, &[1], true),
    ] {
        let read = AckBatch::new(first, last, types, may_renew);
        assert_eq!(read, Err(ErrorCode::InvalidRequest), "{first} {last} {types:?}");
    }
    let mut partition = SharePartition::new(Offset(0));
    let member = ByteString::from("a");
    partition.acquire(&member, Offset(0), &[span(0, 9)], terms(BatchOptimized, 9));
    let batch = |first, last| AckBatch::new(first, last, &[1], false).expect("a sound batch");
    let overlapping = partition.acknowledge("a", &[batch(0, 4), batch(4, 5)], ack_terms());
    assert_eq!(overlapping, Err(ErrorCode::InvalidRequest));
    let apart = partition.acknowledge("a", &[batch(0, 4), batch(6, 6)], ack_terms());
    assert_eq!(apart.map(|transition| transition.changes.len()), Ok(2));
}
