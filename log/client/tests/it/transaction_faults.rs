//! What transactions make of lost and refused answers, and of clusters from before KIP-890.

use std::time::Duration;

use thalweg_client::{Client, Error, ErrorKind, Producer, ProducerConfig, ProducerRecord};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::{ApiKey, Request};

use tokio::time::Instant;

use crate::fake::{Fake, Fate, TOPIC};

const PATIENCE: Duration = Duration::from_secs(10);

async fn transactional(fake: &Fake) -> Producer {
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let config = ProducerConfig { linger_ms: 0, ..ProducerConfig::transactional("id") };
    let producer = client.producer(config).expect("the configuration is right");
    producer.init_transactions().await.expect("it is taken over");
    producer
}

async fn send(producer: &Producer, value: &'static str) -> Result<(), Error> {
    let record = ProducerRecord::new(TOPIC, value).partition(0);
    producer.send_and_wait(record).await.map(|_| ())
}

fn epochs(fake: &Fake, api: ApiKey) -> Vec<i16> {
    let epoch = |(_, _, request)| match request {
        Request::EndTxn(request) => request.producer_epoch,
        Request::InitProducerId(request) => request.producer_epoch,
        _ => panic!("only these have an epoch"),
    };
    fake.requests(api).into_iter().map(epoch).collect()
}

#[tokio::test]
async fn a_lost_end_is_asked_for_again() {
    for fate in [Fate::Lost, Fate::AnswerLost, Fate::Refused(ErrorCode::CoordinatorLoadInProgress)] {
        let fake = Fake::new(1);
        let producer = transactional(&fake).await;
        producer.begin_transaction().expect("none is open");
        send(&producer, "a").await.expect("it is written");
        fake.script(ApiKey::EndTxn, [fate, fate]);
        producer.commit_transaction().await.expect("it is committed");
        assert_eq!(fake.ended(), [true], "{fate:?}");
        assert_eq!(epochs(&fake, ApiKey::EndTxn), [0, 0, 0], "the same end each time");
        producer.begin_transaction().expect("none is open");
        send(&producer, "b").await.expect("it is written under the next epoch");
        producer.commit_transaction().await.expect("it is committed");
        assert_eq!((fake.ended(), fake.values(0)), (vec![true, true], vec!["a".to_owned(), "b".to_owned()]));
    }
}

#[tokio::test]
async fn an_end_without_any_answer_is_ambiguous_until_the_id_is_taken_over_again() {
    for fate in [Fate::Lost, Fate::AnswerLost] {
        for fake in [Fake::new(1), Fake::new(1).with_old_transactions()] {
            let producer = transactional(&fake).await;
            producer.begin_transaction().expect("none is open");
            send(&producer, "a").await.expect("it is written");
            fake.script(ApiKey::EndTxn, [fate; 10_000]);
            let error = producer.commit_transaction().await.expect_err("no answer comes");
            assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
            assert!(matches!(error, Error::OutcomeUnknown { commit: true, .. }));
            let misuse = producer.begin_transaction().expect_err("it must be cleared up first");
            assert!(misuse.to_string().contains("init_transactions"), "{misuse}");
            assert!(matches!(producer.abort_transaction().await, Err(Error::Misuse { .. })));
            fake.end_script(ApiKey::EndTxn);
            producer.init_transactions().await.expect("it is taken over");
            let outcome = fate == Fate::AnswerLost;
            assert_eq!(fake.ended().first(), Some(&outcome), "aborted unless it was committed");
            assert_eq!(epochs(&fake, ApiKey::InitProducerId)[0], -1);
            producer.begin_transaction().expect("none is open");
            send(&producer, "b").await.expect("it is written");
            producer.commit_transaction().await.expect("it is committed");
            assert_eq!(fake.ended().last(), Some(&true));
        }
    }
}

/// Waits until `is_so`.
async fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it does not come to that");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Cancels `call`, which has begun, when `is_so`.
async fn cancel(call: impl Future<Output = Result<(), Error>>, is_so: impl Fn() -> bool) {
    tokio::select! {
        biased;
        ended = call => panic!("it is over: {ended:?}"),
        () = until(is_so) => {}
    }
}

#[tokio::test]
async fn an_end_that_is_cancelled_before_it_was_asked_for_can_be_tried_again() {
    for (first, then) in [(true, true), (true, false), (false, false), (false, true)] {
        let fake = Fake::new(1);
        let producer = transactional(&fake).await;
        producer.begin_transaction().expect("none is open");
        fake.script(ApiKey::Produce, [Fate::Held]);
        let record = ProducerRecord::new(TOPIC, "a").partition(0);
        let delivery = producer.send(record).await.expect("there is room");
        until(|| fake.held() == 1).await;
        let is_waiting = || fake.requests(ApiKey::EndTxn).is_empty();
        match first {
            true => cancel(producer.commit_transaction(), is_waiting).await,
            false => cancel(producer.abort_transaction(), is_waiting).await,
        }
        fake.release();
        match then {
            true => {
                let committed = producer.commit_transaction().await;
                assert_eq!(
                    committed.map_err(|error| error.kind()),
                    if first { Ok(()) } else { Err(ErrorKind::Abort) }
                );
            }
            false => producer.abort_transaction().await.expect("it is aborted"),
        }
        if !first && then {
            producer.abort_transaction().await.expect("only that is left");
        }
        delivery.await.expect("it was in flight");
        assert_eq!(fake.ended(), [first && then]);
        producer.begin_transaction().expect("none is open");
        send(&producer, "b").await.expect("it is written");
        producer.commit_transaction().await.expect("it is committed");
    }
}

#[tokio::test]
async fn an_end_that_is_cancelled_after_it_was_asked_for_is_ambiguous() {
    for commit in [true, false] {
        for fate in [Fate::Held, Fate::Lost] {
            let fake = Fake::new(1);
            let producer = transactional(&fake).await;
            producer.begin_transaction().expect("none is open");
            send(&producer, "a").await.expect("it is written");
            fake.script(ApiKey::EndTxn, [fate; 10_000]);
            let is_asked = || !fake.requests(ApiKey::EndTxn).is_empty();
            match commit {
                true => cancel(producer.commit_transaction(), is_asked).await,
                false => cancel(producer.abort_transaction(), is_asked).await,
            }
            for misuse in [
                producer.commit_transaction().await,
                producer.abort_transaction().await,
                producer.begin_transaction(),
            ] {
                let misuse = misuse.expect_err("it must be cleared up first");
                assert!(misuse.to_string().contains("init_transactions"), "{misuse}");
            }
            fake.end_script(ApiKey::EndTxn);
            producer.init_transactions().await.expect("it is taken over");
            assert_eq!(fake.ended(), [commit && fate == Fate::Held]);
            producer.begin_transaction().expect("none is open");
            send(&producer, "b").await.expect("it is written");
            producer.commit_transaction().await.expect("it is committed");
        }
    }
}

#[tokio::test]
async fn a_take_over_whose_answer_was_lost_comes_before_everything_else() {
    let fake = Fake::new(1);
    let producer = transactional(&fake).await;
    fake.script(ApiKey::InitProducerId, [Fate::AnswerLost; 10_000]);
    let error = producer.init_transactions().await.expect_err("no answer comes");
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    let misuse = producer.begin_transaction().expect_err("its identity may be an older one");
    assert!(misuse.to_string().contains("init_transactions"), "{misuse}");
    fake.end_script(ApiKey::InitProducerId);
    producer.init_transactions().await.expect("it is taken over");
    producer.begin_transaction().expect("none is open");
    send(&producer, "a").await.expect("it is written");
    producer.commit_transaction().await.expect("it is committed");
}

#[tokio::test]
async fn before_kip_890_an_abort_without_a_newer_epoch_comes_before_everything_else() {
    let fake = Fake::new(1).with_old_transactions();
    let producer = transactional(&fake).await;
    producer.begin_transaction().expect("none is open");
    send(&producer, "a").await.expect("it is written");
    fake.script(ApiKey::InitProducerId, [Fate::Lost; 10_000]);
    let error = producer.abort_transaction().await.expect_err("there is no newer epoch");
    assert_eq!((error.kind(), fake.ended()), (ErrorKind::Retry, vec![false]), "{error}");
    let misuse = producer.begin_transaction().expect_err("sequence numbers may have a gap");
    assert!(misuse.to_string().contains("init_transactions"), "{misuse}");
    fake.end_script(ApiKey::InitProducerId);
    producer.init_transactions().await.expect("it is taken over");
    producer.begin_transaction().expect("none is open");
    send(&producer, "b").await.expect("it is written");
    producer.commit_transaction().await.expect("it is committed");
    assert_eq!(fake.ended(), [false, true]);
}

#[tokio::test]
async fn an_end_that_was_never_tried_is_not_ambiguous() {
    let fake = Fake::new(1);
    let producer = transactional(&fake).await;
    producer.begin_transaction().expect("none is open");
    send(&producer, "a").await.expect("it is written");
    fake.script(ApiKey::EndTxn, [Fate::Refused(ErrorCode::CoordinatorNotAvailable); 10_000]);
    let error = producer.commit_transaction().await.expect_err("there is no coordinator");
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    fake.end_script(ApiKey::EndTxn);
    producer.commit_transaction().await.expect("it can be tried again");
    assert_eq!(fake.ended(), [true]);
}

#[tokio::test]
async fn an_abort_that_was_never_tried_leaves_nothing_to_commit() {
    let fake = Fake::new(1);
    let producer = transactional(&fake).await;
    producer.begin_transaction().expect("none is open");
    send(&producer, "a").await.expect("it is written");
    let record = ProducerRecord::new(TOPIC, "given up").partition(0);
    fake.script(ApiKey::Produce, [Fate::Refused(ErrorCode::NotEnoughReplicas); 10_000]);
    let given_up = producer.send(record).await.expect("there is room");
    fake.script(ApiKey::EndTxn, [Fate::Refused(ErrorCode::CoordinatorNotAvailable); 10_000]);
    let error = producer.abort_transaction().await.expect_err("there is no coordinator");
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    assert!(given_up.await.is_err(), "it will not be written");
    fake.end_script(ApiKey::Produce);
    fake.end_script(ApiKey::EndTxn);
    let error = producer.commit_transaction().await.expect_err("records of it are missing");
    assert_eq!(error.kind(), ErrorKind::Abort, "{error}");
    assert_eq!(send(&producer, "b").await.expect_err("it would be lost").kind(), ErrorKind::Abort);
    producer.abort_transaction().await.expect("it is aborted");
    assert_eq!(fake.ended(), [false]);
    producer.begin_transaction().expect("none is open");
    send(&producer, "c").await.expect("it is written");
    producer.commit_transaction().await.expect("it is committed");
    assert_eq!(fake.ended(), [false, true]);
}

#[tokio::test]
async fn a_refusal_of_the_end_says_what_to_do() {
    for (code, kind) in [
        (ErrorCode::ProducerFenced, ErrorKind::Fenced),
        (ErrorCode::InvalidProducerEpoch, ErrorKind::Fenced),
        (ErrorCode::TransactionAbortable, ErrorKind::Abort),
        (ErrorCode::InvalidTxnState, ErrorKind::Abort),
    ] {
        let fake = Fake::new(1);
        let producer = transactional(&fake).await;
        producer.begin_transaction().expect("none is open");
        send(&producer, "a").await.expect("it is written");
        fake.script(ApiKey::EndTxn, [Fate::Refused(code)]);
        let error = producer.commit_transaction().await.expect_err("it is refused");
        assert_eq!(error.kind(), kind, "{error}");
        if kind == ErrorKind::Abort {
            producer.abort_transaction().await.expect("it is aborted");
            assert_eq!(fake.ended(), [false]);
            producer.begin_transaction().expect("none is open");
        }
    }
}

#[tokio::test]
async fn one_refused_batch_fails_the_transaction() {
    let fake = Fake::new(1);
    let producer = transactional(&fake).await;
    producer.begin_transaction().expect("none is open");
    send(&producer, "a").await.expect("it is written");
    fake.script(ApiKey::Produce, [Fate::Refused(ErrorCode::InvalidRecord)]);
    assert_eq!(send(&producer, "b").await.expect_err("it is refused").code(), Some(ErrorCode::InvalidRecord));
    let after = send(&producer, "c").await.expect_err("nothing matters any more");
    assert_eq!(after.kind(), ErrorKind::Abort, "{after}");
    let error = producer.commit_transaction().await.expect_err("it cannot be committed");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Abort, Some(ErrorCode::InvalidRecord)));
    producer.abort_transaction().await.expect("it is aborted");
    producer.begin_transaction().expect("none is open");
    send(&producer, "d").await.expect("it is written");
    producer.commit_transaction().await.expect("it is committed");
    assert_eq!((fake.ended(), fake.values(0)), (vec![false, true], vec!["a".to_owned(), "d".to_owned()]));
}

#[tokio::test]
async fn before_kip_890_partitions_are_added_first_and_an_abort_raises_the_epoch() {
    let fake = Fake::new(2).with_old_transactions();
    let producer = transactional(&fake).await;
    for commits in [true, true, false, true] {
        producer.begin_transaction().expect("none is open");
        send(&producer, "a").await.expect("it is written");
        send(&producer, "b").await.expect("it is written");
        if commits {
            producer.commit_transaction().await.expect("it is committed");
        } else {
            producer.abort_transaction().await.expect("it is aborted");
        }
    }
    assert_eq!(fake.ended(), [true, true, false, true]);
    assert_eq!(fake.requests(ApiKey::AddPartitionsToTxn).len(), 4, "once a transaction and partition");
    assert!(fake.requests(ApiKey::Produce).iter().all(|(_, version, _)| *version < 12));
    assert_eq!(epochs(&fake, ApiKey::EndTxn), [0, 0, 0, 1]);
    assert_eq!(epochs(&fake, ApiKey::InitProducerId), [-1, 0]);

    fake.script(ApiKey::AddPartitionsToTxn, [Fate::Refused(ErrorCode::ConcurrentTransactions); 3]);
    producer.begin_transaction().expect("none is open");
    send(&producer, "c").await.expect("it is written once the last transaction is over");
    fake.script(ApiKey::Produce, [Fate::Refused(ErrorCode::ProducerFenced)]);
    assert_eq!(send(&producer, "d").await.expect_err("it is fenced").kind(), ErrorKind::Fenced);
    assert_eq!(producer.commit_transaction().await.expect_err("it is fenced").kind(), ErrorKind::Fenced);
}
