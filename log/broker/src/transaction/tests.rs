//! The decisions about transactional ids, under cases and under random histories.

mod crashes;
mod driven;
mod histories;
mod whole_node;

use std::collections::BTreeSet;

use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};

use super::end::EndTransaction;
use super::init_producer_id::InitProducerId;
use super::partitions::{add_partitions, verify_partition};
use super::state::{
    Decision, EXHAUSTED_EPOCH, Outcome, Producer, Transaction, TransactionState, TransactionVersion,
};
use crate::coordinator::{JUMPS_MS, Now};
use Outcome::{Abort, Commit};
use TransactionVersion::{Classic, EpochBump};

const NOW: Now = Now { monotonic_ms: 5_000, wall_ms: 1_700_000_000_000 };

fn producer(id: i64, epoch: i16) -> Producer {
    Producer { id: ProducerId(id), epoch: ProducerEpoch(epoch) }
}

fn partitions(indexes: &[i32]) -> BTreeSet<TopicPartition> {
    indexes.iter().map(|at| TopicPartition::new("t", *at)).collect()
}

fn transaction(id: i64, epoch: i16, state: TransactionState) -> Transaction {
    let mut transaction = Transaction::new(ProducerId(id), 60_000, NOW);
    transaction.producer = producer(id, epoch);
    transaction.state = state;
    if state == TransactionState::Ongoing || state.is_prepared() {
        transaction.partitions = partitions(&[0, 1]);
        transaction.start_ms = NOW.wall_ms;
    }
    if state == TransactionState::Ongoing {
        transaction.deadline = Some(NOW.monotonic_ms + 60_000);
    }
    transaction
}

/// What a decision comes to: the answer, and the state that follows.
fn outcome<A: Copy + std::fmt::Debug>(
    decision: Result<Decision<A>, ErrorCode>,
) -> Result<(Option<A>, Option<Transaction>), &'static str> {
    match decision {
        Ok(Decision::Answer(answer)) => Ok((Some(answer), None)),
        Ok(Decision::Change { next, answer }) => Ok((Some(answer), Some(next))),
        Ok(Decision::EndFirst { next }) => Ok((None, Some(next))),
        Ok(Decision::Wait) => Err("WAIT"),
        Ok(Decision::NeedsProducerId) => Err("NEEDS_PRODUCER_ID"),
        Err(error) => Err(error.name()),
    }
}

fn init(
    current: Option<&Transaction>,
    given: Option<Producer>,
    fresh: Option<i64>,
) -> Result<(Option<Producer>, Option<Transaction>), &'static str> {
    let request = InitProducerId { timeout_ms: 30_000, given };
    outcome(request.decide(current, fresh.map(ProducerId), NOW))
}

#[test]
fn a_new_transactional_id_gets_a_fresh_producer_id_whatever_it_says() {
    assert_eq!(init(None, None, None), Err("NEEDS_PRODUCER_ID"));
    for given in [None, Some(producer(0, 0)), Some(producer(77, 5))] {
        let (answer, next) = init(None, given, Some(9)).expect("taken");
        assert_eq!(answer, Some(producer(9, 0)), "given {given:?}");
        let next = next.expect("it is written down");
        assert_eq!((next.state, next.timeout_ms), (TransactionState::Empty, 30_000));
    }
}

#[test]
fn an_existing_one_is_bumped_for_a_new_instance_and_for_its_own_and_fenced_for_a_zombie() {
    use TransactionState::{CompleteAbort, CompleteCommit, Empty, Ongoing, PrepareAbort, PrepareCommit};
    for state in [Empty, CompleteCommit, CompleteAbort] {
        let current = transaction(7, 3, state);
        for (given, expected) in [
            (None, Ok(producer(7, 4))),
            (Some(producer(7, 3)), Ok(producer(7, 4))),
            (Some(producer(7, 2)), Err("PRODUCER_FENCED")),
            (Some(producer(7, 4)), Err("PRODUCER_FENCED")),
            (Some(producer(0, 0)), Err("PRODUCER_FENCED")),
            (Some(producer(8, 3)), Err("PRODUCER_FENCED")),
        ] {
            let found = init(Some(&current), given, None).map(|(answer, _)| answer.expect("answered"));
            assert_eq!(found, expected, "{state:?}, given {given:?}");
        }
    }
    for state in [PrepareCommit, PrepareAbort] {
        let current = transaction(7, 3, state);
        assert_eq!(init(Some(&current), None, None), Err("WAIT"));
        assert_eq!(init(Some(&current), Some(producer(7, 1)), None), Err("PRODUCER_FENCED"));
    }
    let current = transaction(7, 3, Ongoing);
    for given in [None, Some(producer(7, 3))] {
        let (answer, next) = init(Some(&current), given, None).expect("aborted first");
        let next = next.expect("a prepared state");
        assert_eq!((answer, next.state, next.producer), (None, PrepareAbort, producer(7, 4)));
        assert_eq!(next.partitions, current.partitions);
        let complete = next.complete(NOW);
        assert_eq!(init(Some(&complete), None, None).expect("bumped").0, Some(producer(7, 5)));
    }
    for zombie in [producer(7, 2), producer(0, 0)] {
        let found = init(Some(&current), Some(zombie), None);
        assert_eq!(found, Err("PRODUCER_FENCED"), "the open transaction is not touched");
    }
}

#[test]
fn a_producer_may_ask_again_after_a_lost_answer_until_another_one_comes() {
    let current = transaction(7, 3, TransactionState::Empty);
    let (_, bumped) = init(Some(&current), Some(producer(7, 3)), None).expect("bumped");
    let bumped = bumped.expect("written down");
    let (again, change) = init(Some(&bumped), Some(producer(7, 3)), None).expect("a retry");
    assert_eq!((again, change), (Some(producer(7, 4)), None));
    let (_, other) = init(Some(&bumped), None, None).expect("another instance");
    assert_eq!(init(other.as_ref(), Some(producer(7, 3)), None), Err("PRODUCER_FENCED"));
    assert_eq!(init(other.as_ref(), Some(producer(7, 4)), None), Err("PRODUCER_FENCED"));

    let mut opened = bumped;
    opened.state = TransactionState::Ongoing;
    assert_eq!(init(Some(&opened), Some(producer(7, 3)), None), Err("PRODUCER_FENCED"));
}

#[test]
fn exhausted_epochs_take_a_fresh_producer_id() {
    let last = EXHAUSTED_EPOCH.0;
    let current = transaction(7, last, TransactionState::Empty);
    for given in [None, Some(producer(7, last))] {
        assert_eq!(init(Some(&current), given, None), Err("NEEDS_PRODUCER_ID"));
        let (answer, next) = init(Some(&current), given, Some(9)).expect("rotated");
        assert_eq!(answer, Some(producer(9, 0)));
        let again = init(next.as_ref(), Some(producer(7, last)), Some(10));
        let expected =
            if given.is_some() { Ok((Some(producer(9, 0)), None)) } else { Err("PRODUCER_FENCED") };
        assert_eq!(again, expected, "a retry, if it was this producer that asked");
    }
    // The end of a transaction, too.
    let ongoing = transaction(7, last, TransactionState::Ongoing);
    assert_eq!(end(&ongoing, producer(7, last), Commit, EpochBump, None), Err("NEEDS_PRODUCER_ID"));
    let (answer, prepared) = end(&ongoing, producer(7, last), Commit, EpochBump, Some(9)).expect("prepared");
    let prepared = prepared.expect("written down");
    assert_eq!(
        (answer, prepared.producer),
        (Some(producer(9, 0)), producer(7, i16::MAX)),
        "markers fence the old id"
    );
    assert_eq!(add(&prepared, producer(9, 0), &[0]), Err("WAIT"), "the successor waits for the markers");
    let complete = prepared.complete(NOW);
    assert_eq!((complete.producer, complete.previous_producer_id), (producer(9, 0), ProducerId(7)));
    let retry = end(&complete, producer(7, last), Commit, EpochBump, None);
    assert_eq!(retry, Ok((Some(producer(9, 0)), None)));
    assert_eq!(end(&complete, producer(7, last), Abort, EpochBump, None), Err("INVALID_TXN_STATE"));
    let opened = add(&complete, producer(9, 0), &[0]).expect("opened").expect("written down");
    assert_eq!(end(&opened, producer(7, last), Commit, EpochBump, None), Err("INVALID_PRODUCER_ID_MAPPING"));
}

fn end(
    current: &Transaction,
    producer: Producer,
    outcome_asked: Outcome,
    version: TransactionVersion,
    fresh: Option<i64>,
) -> Result<(Option<Producer>, Option<Transaction>), &'static str> {
    let request = EndTransaction { producer, outcome: outcome_asked, version };
    outcome(request.decide(Some(current), fresh.map(ProducerId), NOW))
}

fn add(
    current: &Transaction,
    producer: Producer,
    added: &[i32],
) -> Result<Option<Transaction>, &'static str> {
    outcome(add_partitions(Some(current), producer, &partitions(added), EpochBump, NOW)).map(|(_, next)| next)
}

#[test]
fn partitions_are_added_once_by_the_current_producer_while_nothing_is_being_ended() {
    use TransactionState::{CompleteAbort, CompleteCommit, Empty, Ongoing, PrepareAbort, PrepareCommit};
    for state in [Empty, CompleteCommit, CompleteAbort] {
        let next = add(&transaction(7, 3, state), producer(7, 3), &[0, 5]).expect("added").expect("changed");
        assert_eq!((next.state, next.partitions), (Ongoing, partitions(&[0, 5])));
        assert_eq!((next.start_ms, next.deadline), (NOW.wall_ms, Some(65_000)));
    }
    let current = transaction(7, 3, Ongoing);
    assert_eq!(add(&current, producer(7, 3), &[0]), Ok(None), "it is there already");
    let next = add(&current, producer(7, 3), &[2]).expect("added").expect("changed");
    assert_eq!(next.partitions, partitions(&[0, 1, 2]));
    assert_eq!(next.deadline, current.deadline, "the clock runs from the beginning");
    for state in [PrepareCommit, PrepareAbort] {
        assert_eq!(add(&transaction(7, 3, state), producer(7, 3), &[0]), Err("WAIT"));
    }
    for (who, expected) in [
        (producer(7, 2), "PRODUCER_FENCED"),
        (producer(7, 4), "PRODUCER_FENCED"),
        (producer(8, 3), "INVALID_PRODUCER_ID_MAPPING"),
    ] {
        assert_eq!(add(&current, who, &[0]), Err(expected));
        assert_eq!(add(&transaction(7, 3, PrepareCommit), who, &[0]), Err(expected));
    }
    let nobody = add_partitions(None, producer(7, 3), &partitions(&[0]), Classic, NOW);
    assert_eq!(nobody, Err(ErrorCode::InvalidProducerIdMapping));
}

#[test]
fn partitions_are_verified_against_the_ongoing_transaction() {
    use TransactionState::{CompleteCommit, Empty, Ongoing, PrepareCommit};
    for (state, who, at, expected) in [
        (Ongoing, producer(7, 3), 0, Ok(())),
        (Ongoing, producer(7, 3), 9, Err(ErrorCode::TransactionAbortable)),
        (Ongoing, producer(7, 2), 0, Err(ErrorCode::ProducerFenced)),
        (Ongoing, producer(8, 3), 0, Err(ErrorCode::InvalidProducerIdMapping)),
        (Empty, producer(7, 3), 0, Err(ErrorCode::TransactionAbortable)),
        (CompleteCommit, producer(7, 3), 0, Err(ErrorCode::TransactionAbortable)),
        (PrepareCommit, producer(7, 3), 0, Err(ErrorCode::ConcurrentTransactions)),
    ] {
        let current = transaction(7, 3, state);
        let found = verify_partition(Some(&current), who, &TopicPartition::new("t", at));
        assert_eq!(found, expected, "{state:?} {who:?} {at}");
    }
    let nobody = verify_partition(None, producer(7, 3), &TopicPartition::new("t", 0));
    assert_eq!(nobody, Err(ErrorCode::InvalidProducerIdMapping));
}

#[test]
fn transactions_end_as_the_table_of_states_says() {
    use TransactionState::{CompleteAbort, CompleteCommit, Empty, Ongoing, PrepareAbort, PrepareCommit};
    const WAIT: Result<(i16, Option<TransactionState>), &str> = Err("WAIT");
    const INVALID: Result<(i16, Option<TransactionState>), &str> = Err("INVALID_TXN_STATE");
    const FENCED: Result<(i16, Option<TransactionState>), &str> = Err("PRODUCER_FENCED");
    // The transactional id is at epoch 3. Answer: the next epoch and the state that follows.
    for (state, epoch, asked, version, expected) in [
        (Ongoing, 3, Commit, Classic, Ok((3, Some(PrepareCommit)))),
        (Ongoing, 3, Abort, Classic, Ok((3, Some(PrepareAbort)))),
        (Ongoing, 3, Commit, EpochBump, Ok((4, Some(PrepareCommit)))),
        (Ongoing, 3, Abort, EpochBump, Ok((4, Some(PrepareAbort)))),
        (Ongoing, 2, Commit, Classic, FENCED),
        (Ongoing, 2, Abort, EpochBump, FENCED),
        (Ongoing, 2, Commit, EpochBump, FENCED),
        (Ongoing, 4, Commit, EpochBump, FENCED),
        (PrepareCommit, 3, Commit, Classic, WAIT),
        (PrepareCommit, 3, Abort, Classic, INVALID),
        (PrepareAbort, 3, Abort, Classic, WAIT),
        (PrepareAbort, 3, Commit, Classic, INVALID),
        (PrepareCommit, 2, Commit, EpochBump, WAIT),
        (PrepareCommit, 2, Abort, EpochBump, INVALID),
        (PrepareCommit, 3, Abort, EpochBump, WAIT),
        (PrepareCommit, 1, Commit, EpochBump, FENCED),
        (CompleteCommit, 3, Commit, Classic, Ok((3, None))),
        (CompleteCommit, 3, Abort, Classic, INVALID),
        (CompleteAbort, 3, Abort, Classic, Ok((3, None))),
        (CompleteAbort, 3, Commit, Classic, INVALID),
        (CompleteCommit, 2, Commit, Classic, FENCED),
        (CompleteCommit, 2, Commit, EpochBump, Ok((3, None))),
        (CompleteCommit, 2, Abort, EpochBump, INVALID),
        (CompleteAbort, 2, Abort, EpochBump, Ok((3, None))),
        (CompleteAbort, 2, Commit, EpochBump, FENCED),
        (PrepareAbort, 2, Commit, EpochBump, FENCED),
        (PrepareAbort, 2, Abort, EpochBump, WAIT),
        (CompleteAbort, 1, Abort, EpochBump, FENCED),
        (CompleteCommit, 3, Commit, EpochBump, INVALID),
        (CompleteCommit, 3, Abort, EpochBump, Ok((4, Some(CompleteAbort)))),
        (Empty, 3, Abort, EpochBump, Ok((4, Some(CompleteAbort)))),
        (Empty, 3, Commit, EpochBump, INVALID),
        (Empty, 3, Abort, Classic, INVALID),
        (Empty, 2, Abort, EpochBump, FENCED),
    ] {
        let current = transaction(7, 3, state);
        let found = end(&current, producer(7, epoch), asked, version, None)
            .map(|(answer, next)| (answer.expect("answered").epoch.0, next.map(|next| next.state)));
        assert_eq!(found, expected, "{state:?}, epoch {epoch}, {asked:?}, {version:?}");
    }
    let current = transaction(7, 3, Ongoing);
    assert_eq!(end(&current, producer(8, 3), Commit, EpochBump, None), Err("INVALID_PRODUCER_ID_MAPPING"));
}

#[test]
fn a_delayed_end_does_not_end_the_next_transaction() {
    let first = transaction(7, 3, TransactionState::Ongoing);
    let (next, prepared) = end(&first, producer(7, 3), Commit, EpochBump, None).expect("prepared");
    let complete = prepared.expect("written down").complete(NOW);
    let second = add(&complete, next.expect("answered"), &[0]).expect("opened").expect("written down");
    for asked in [Commit, Abort] {
        assert_eq!(end(&second, producer(7, 3), asked, EpochBump, None), Err("PRODUCER_FENCED"));
    }
}

#[test]
fn a_transaction_that_is_open_too_long_is_aborted_and_its_producer_fenced() {
    let current = transaction(7, 3, TransactionState::Ongoing);
    let at = |monotonic_ms| Now { monotonic_ms, ..NOW };
    assert_eq!(current.expire(None, at(64_999)), None);
    let Some(Decision::EndFirst { next }) = current.expire(None, at(65_000)) else { panic!("it is late") };
    assert_eq!((next.state, next.producer), (TransactionState::PrepareAbort, producer(7, 4)));
    assert_eq!(next.expire(None, at(100_000)), None);
    let complete = next.complete(NOW);
    for version in [Classic, EpochBump] {
        let late = end(&complete, producer(7, 3), Commit, version, None);
        assert_eq!(late, Err("PRODUCER_FENCED"), "{version:?}");
    }
    assert_eq!(add(&complete, producer(7, 3), &[0]), Err("PRODUCER_FENCED"));
    assert_eq!(init(Some(&complete), Some(producer(7, 3)), None), Err("PRODUCER_FENCED"));
}

#[test]
fn a_jump_of_the_wall_clock_ends_no_transaction_and_prolongs_none() {
    for jump_ms in JUMPS_MS {
        let at = |ms| Now { monotonic_ms: NOW.monotonic_ms + ms, wall_ms: NOW.wall_ms + jump_ms };
        let opened = transaction(7, 3, TransactionState::Empty);
        let Ok(Decision::Change { next: open, .. }) =
            add_partitions(Some(&opened), producer(7, 3), &partitions(&[0]), Classic, at(0))
        else {
            panic!("it is opened")
        };
        for current in [&open, &transaction(7, 3, TransactionState::Ongoing)] {
            assert_eq!(current.expire(None, at(59_999)), None, "{jump_ms}");
            let expired = current.expire(None, at(60_000));
            assert!(matches!(expired, Some(Decision::EndFirst { .. })), "{jump_ms}: {expired:?}");
        }
        // A restart has nothing but the wall clock: never more than the timeout is left.
        let mut resumed = transaction(7, 3, TransactionState::Ongoing);
        resumed.resume(at(10));
        let left = if jump_ms > 0 { 0 } else { 60_000 };
        assert_eq!(resumed.deadline, Some(NOW.monotonic_ms + 10 + left), "{jump_ms}");
    }
}

#[test]
fn what_is_left_of_the_timeout_counts_after_a_restart() {
    for (started_ms_ago, left) in [(0, 60_000), (20_000, 40_000), (90_000, 0), (-30_000, 60_000)] {
        let mut transaction = transaction(7, 3, TransactionState::Ongoing);
        transaction.start_ms = NOW.wall_ms - started_ms_ago;
        transaction.resume(NOW);
        assert_eq!(transaction.deadline, Some(NOW.monotonic_ms + left), "started {started_ms_ago} ms ago");
    }
}
