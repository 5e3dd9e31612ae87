//! What a share consumer makes of brokers that refuse, forget, move and break off (KIP-932).

use std::time::Duration;

use thalweg_client::{
    AcknowledgeType, AcquireMode, Client, Error, ErrorKind, ProducerConfig, ProducerRecord, ShareConsumer,
    ShareConsumerConfig, SharePolled,
};
use thalweg_protocol::messages::share_fetch::ShareFetchRequest;
use thalweg_protocol::messages::{ApiKey, Request};
use thalweg_protocol::{ErrorCode, Offset, TopicPartition};
use tokio::time::Instant;

use crate::fake::{Fake, Fate, TOPIC};

const PATIENCE: Duration = Duration::from_secs(20);
const HEARTBEAT: ApiKey = ApiKey::ShareGroupHeartbeat;
const FETCH: ApiKey = ApiKey::ShareFetch;
const ACKNOWLEDGE: ApiKey = ApiKey::ShareAcknowledge;
const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;

async fn consumer(fake: &Fake, config: ShareConsumerConfig) -> (Client, ShareConsumer) {
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let config = ShareConsumerConfig { fetch_max_wait_ms: 10, ..config };
    let mut consumer = client.share_consumer(config).expect("the configuration is right");
    consumer.subscribe([TOPIC]).expect("there is a topic");
    (client, consumer)
}

async fn write(client: &Client, partition: i32, values: &[&str]) {
    let producer = client.producer(ProducerConfig::default()).expect("the configuration is right");
    for value in values {
        let record = ProducerRecord::new(TOPIC, value.to_string()).partition(partition);
        producer.send(record).await.expect("there is room");
        producer.flush().await.expect("it is written");
    }
}

/// Polls until there is something.
async fn next(consumer: &mut ShareConsumer) -> Result<SharePolled, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "nothing happens");
        let polled = consumer.poll(Duration::from_millis(20)).await?;
        if !polled.batches.is_empty() || polled.outcomes.iter().any(|outcome| outcome.result.is_err()) {
            return Ok(polled);
        }
    }
}

/// The partitions and ranges that came.
fn ranges(polled: &SharePolled) -> Vec<(i32, i64, i64)> {
    let each = polled.batches.iter().flat_map(|batches| {
        let partition = batches.partition.partition;
        batches.ranges.iter().map(move |range| (partition, range.first.0, range.last.0))
    });
    each.collect()
}

fn fetches(fake: &Fake) -> Vec<(i32, ShareFetchRequest)> {
    let fetch = |(node, _, request)| match request {
        Request::ShareFetch(request) => (node, request),
        _ => panic!("these are fetches"),
    };
    fake.requests(FETCH).into_iter().map(fetch).collect()
}

/// Of a commit of one partition, why it failed.
async fn refusal(consumer: &mut ShareConsumer) -> Error {
    let mut results = consumer.commit().await;
    assert_eq!(results.len(), 1);
    results.remove(&TopicPartition::new(TOPIC, 0)).expect("it is partition 0").expect_err("it does not count")
}

#[tokio::test]
async fn what_is_said_goes_where_the_records_came_from_when_leaders_move() {
    let fake = Fake::new(2);
    let (client, mut consumer) = consumer(&fake, ShareConsumerConfig::group("group")).await;
    write(&client, 0, &["a", "b"]).await;
    assert_eq!(ranges(&next(&mut consumer).await.expect("it reads")), [(0, 0, 1)]);
    fake.move_leader(0, 2);
    write(&client, 0, &["c"]).await;
    assert_eq!(ranges(&next(&mut consumer).await.expect("it reads on")), [(0, 2, 2)]);
    assert!(consumer.commit().await.into_values().all(|result| result.is_ok()));
    assert_eq!(fake.said(), [(1, 0, 0, 1, ACCEPT), (2, 0, 2, 2, ACCEPT)]);
    let fetches = fetches(&fake);
    let at_new: Vec<_> = fetches.iter().filter(|(node, _)| *node == 2).collect();
    assert_eq!(at_new[0].1.share_session_epoch, 0, "it opens a session there");
    // The old leader is told that it is not asked for that partition any more.
    let is_told = |request: &ShareFetchRequest| {
        request.forgotten_topics_data.first().is_some_and(|topic| topic.partitions == [0])
    };
    assert!(fetches.iter().any(|(node, request)| *node == 1 && is_told(request)));
    assert_eq!(consumer.metrics().sessions, 2);
    consumer.close().await.expect("it leaves");
}

#[tokio::test]
async fn with_a_session_what_came_in_it_is_gone() {
    for (fate, is_known) in [
        (Fate::Refused(ErrorCode::ShareSessionNotFound), true),
        (Fate::Refused(ErrorCode::InvalidShareSessionEpoch), true),
        (Fate::AnswerLost, false),
        (Fate::Lost, false),
    ] {
        let fake = Fake::new(1);
        let (client, mut consumer) = consumer(&fake, ShareConsumerConfig::group("group").explicit()).await;
        let partition = TopicPartition::new(TOPIC, 0);
        write(&client, 0, &["a", "b"]).await;
        assert_eq!(ranges(&next(&mut consumer).await.expect("it reads")), [(0, 0, 1)]);
        fake.script(ACKNOWLEDGE, [fate]);
        consumer.acknowledge(&partition, Offset(0), AcknowledgeType::Accept).expect("it came");
        let error = refusal(&mut consumer).await;
        match is_known {
            true => assert!(matches!(error, Error::NotAcknowledged { .. }), "{fate:?}: {error}"),
            false => assert!(matches!(error, Error::AcknowledgementUnknown { .. }), "{fate:?}: {error}"),
        }
        let kind = if is_known { ErrorKind::Rejoin } else { ErrorKind::Ambiguous };
        assert_eq!(error.kind(), kind);
        // The other record came in the same session.
        consumer.acknowledge(&partition, Offset(1), AcknowledgeType::Accept).expect("it came");
        let error = refusal(&mut consumer).await;
        assert_eq!((error.kind(), error.code()), (ErrorKind::Rejoin, Some(ErrorCode::ShareSessionNotFound)));
        // It goes on in another one.
        write(&client, 0, &["c"]).await;
        assert_eq!(ranges(&next(&mut consumer).await.expect("it reads on")), [(0, 2, 2)], "{fate:?}");
        let epochs: Vec<i32> = fetches(&fake).iter().map(|(_, fetch)| fetch.share_session_epoch).collect();
        assert_eq!(epochs.iter().filter(|epoch| **epoch == 0).count(), 2, "{fate:?}: {epochs:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_written_down_at_present_is_said_again() {
    let fake = Fake::new(1);
    let (client, mut consumer) = consumer(&fake, ShareConsumerConfig::group("group")).await;
    write(&client, 0, &["a"]).await;
    next(&mut consumer).await.expect("it reads");
    let away = [ErrorCode::CoordinatorLoadInProgress, ErrorCode::CoordinatorNotAvailable];
    fake.script(ACKNOWLEDGE, away.map(Fate::Refused));
    assert!(consumer.commit().await.into_values().all(|result| result.is_ok()));
    assert_eq!(fake.said(), [(1, 0, 0, 0, ACCEPT)]);
    assert_eq!(fake.requests(ACKNOWLEDGE).len(), 3);
    // Not for ever.
    write(&client, 0, &["b"]).await;
    next(&mut consumer).await.expect("it reads");
    fake.script(ACKNOWLEDGE, std::iter::repeat_n(Fate::Refused(ErrorCode::NotCoordinator), 10_000));
    let error = refusal(&mut consumer).await;
    assert!(matches!(error, Error::AcknowledgementUnknown { .. } | Error::NotAcknowledged { .. }), "{error}");
    fake.end_script(ACKNOWLEDGE);
    // What is final is not repeated.
    write(&client, 0, &["c"]).await;
    next(&mut consumer).await.expect("it reads");
    let before = fake.requests(ACKNOWLEDGE).len();
    fake.script(ACKNOWLEDGE, [Fate::Refused(ErrorCode::InvalidRecordState)]);
    let error = refusal(&mut consumer).await;
    assert_eq!((error.kind(), error.code()), (ErrorKind::Rejoin, Some(ErrorCode::InvalidRecordState)));
    assert_eq!(fake.requests(ACKNOWLEDGE).len(), before + 1);
    let counted = consumer.metrics();
    assert_eq!((counted.records, counted.acknowledged, counted.acknowledge_failures), (3, 1, 2));
}

#[tokio::test]
async fn fetches_that_fail_are_tried_again_or_told() {
    let fake = Fake::new(1);
    fake.script(
        FETCH,
        [
            Fate::Lost,
            Fate::Refused(ErrorCode::NotLeaderOrFollower),
            Fate::Refused(ErrorCode::ShareSessionLimitReached),
            Fate::Refused(ErrorCode::UnknownTopicId),
        ],
    );
    let (client, mut consumer) = consumer(&fake, ShareConsumerConfig::group("group")).await;
    write(&client, 0, &["a"]).await;
    assert_eq!(ranges(&next(&mut consumer).await.expect("all of it passes")), [(0, 0, 0)]);
    for code in [ErrorCode::GroupAuthorizationFailed, ErrorCode::TopicAuthorizationFailed] {
        fake.script(FETCH, [Fate::Refused(code)]);
        let error = next(&mut consumer).await.map(|polled| ranges(&polled)).expect_err("it is told");
        assert_eq!((error.kind(), error.code()), (ErrorKind::GiveUp, Some(code)));
        write(&client, 0, &["b"]).await;
        next(&mut consumer).await.expect("it is tried again all the same");
    }
    assert!(consumer.metrics().fetch_failures >= 6);
}

#[tokio::test]
async fn a_member_that_is_lost_joins_again_and_one_that_is_refused_is_told() {
    let fake = Fake::new(1);
    let passes = [Fate::Lost, Fate::Refused(ErrorCode::NotCoordinator), Fate::Answered];
    fake.script(HEARTBEAT, passes.into_iter().chain([Fate::Refused(ErrorCode::UnknownMemberId)]));
    let (client, mut lost) = consumer(&fake, ShareConsumerConfig::group("group")).await;
    let deadline = Instant::now() + PATIENCE;
    while lost.metrics().losses == 0 {
        assert!(Instant::now() < deadline, "it is not noticed");
        lost.poll(Duration::from_millis(10)).await.expect("it passes");
    }
    write(&client, 0, &["a"]).await;
    next(&mut lost).await.expect("it has joined again");
    let joins = fake.requests(HEARTBEAT).into_iter().filter(
        |(_, _, request)| matches!(request, Request::ShareGroupHeartbeat(beat) if beat.member_epoch == 0),
    );
    assert_eq!(joins.count(), 4);
    drop(lost);

    let fake = Fake::new(1);
    fake.script(HEARTBEAT, [Fate::Refused(ErrorCode::GroupMaxSizeReached)]);
    let (_client, mut refused) = consumer(&fake, ShareConsumerConfig::group("group")).await;
    let error = next(&mut refused).await.map(|_| ()).expect_err("it is told");
    assert_eq!((error.kind(), error.code()), (ErrorKind::GiveUp, Some(ErrorCode::GroupMaxSizeReached)));
    refused.poll(Duration::from_millis(20)).await.expect("it is told once");
    refused.unsubscribe().await.expect("there is nothing to leave");
    refused.subscribe([TOPIC]).expect("it can be tried again");
    let deadline = Instant::now() + PATIENCE;
    while refused.assignment().is_empty() {
        assert!(Instant::now() < deadline, "it does not join");
        refused.poll(Duration::from_millis(20)).await.expect("it joins");
    }
}

#[tokio::test]
async fn a_damaged_batch_is_told_and_released_and_the_others_come() {
    let fake = Fake::new(1);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    write(&client, 0, &["a", "b", "c"]).await;
    fake.damage(0, 1);
    let (_client, mut consumer) = consumer(&fake, ShareConsumerConfig::group("group")).await;
    let error = next(&mut consumer).await.map(|_| ()).expect_err("it is told");
    assert!(
        matches!(&error, Error::UnreadableRecords { offset: Offset(1), next_offset: Offset(2), .. }),
        "{error}"
    );
    assert_eq!(ranges(&next(&mut consumer).await.expect("the others come")), [(0, 0, 0), (0, 2, 2)]);
    assert!(consumer.commit().await.into_values().all(|result| result.is_ok()));
    assert_eq!(fake.said(), [(1, 0, 0, 0, ACCEPT), (1, 0, 1, 1, RELEASE), (1, 0, 2, 2, ACCEPT)]);
}

#[tokio::test]
async fn what_a_broker_lacks_is_told() {
    let check = async |fake: Fake, config: ShareConsumerConfig, api: ApiKey| {
        let (_client, mut consumer) = consumer(&fake, config).await;
        let error = next(&mut consumer).await.map(|_| ()).expect_err("it is told");
        assert!(matches!(error, Error::UnsupportedVersion { api: lacks, .. } if lacks == api), "{error}");
        assert!(error.to_string().contains("; Apache Kafka has "), "it says what would do: {error}");
    };
    let group = || ShareConsumerConfig::group("group");
    check(Fake::new(1).without(HEARTBEAT), group(), HEARTBEAT).await;
    check(Fake::new(1).without(FETCH), group(), FETCH).await;
    let exact = ShareConsumerConfig { acquire_mode: AcquireMode::RecordLimit, ..group() };
    check(Fake::new(1).limit(FETCH, 1), exact, FETCH).await;

    let fake = Fake::new(1).limit(ACKNOWLEDGE, 1).limit(FETCH, 1);
    let (client, mut consumer) = consumer(&fake, group()).await;
    write(&client, 0, &["a"]).await;
    next(&mut consumer).await.expect("it reads");
    let partition = TopicPartition::new(TOPIC, 0);
    let error = consumer.acknowledge(&partition, Offset(0), AcknowledgeType::Renew).expect_err("it cannot");
    assert!(matches!(error, Error::UnsupportedVersion { .. }), "{error}");
    consumer.acknowledge(&partition, Offset(0), AcknowledgeType::Reject).expect("it is still before it");
    assert!(consumer.commit().await.into_values().all(|result| result.is_ok()));
}
