//! What the consumer makes of lost, refused and late answers.

use std::time::Duration;

use thalweg_client::{
    Client, Consumer, ConsumerConfig, Error, ErrorKind, FetchedBatches, OffsetReset, ProducerConfig,
    ProducerRecord,
};
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::{ErrorCode, Offset, TopicPartition};
use tokio::time::Instant;

use crate::fake::{Fake, Fate, TOPIC};

const PATIENCE: Duration = Duration::from_secs(10);

/// A fake with records `0`, `1`, … in each partition, two a batch, and a reader from their start.
async fn reader(partitions: i32, count: usize) -> (Fake, Consumer) {
    reader_with(partitions, count, ConsumerConfig::default()).await
}

async fn reader_with(partitions: i32, count: usize, config: ConsumerConfig) -> (Fake, Consumer) {
    let fake = Fake::new(partitions as usize);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let lingering = ProducerConfig { linger_ms: 60_000, ..ProducerConfig::default() };
    let producer = client.producer(lingering).expect("the configuration is right");
    for number in 0..count {
        for partition in 0..partitions {
            let record = ProducerRecord::new(TOPIC, format!("{number}")).partition(partition);
            producer.send(record).await.expect("there is room");
        }
        if number % 2 == 1 {
            producer.flush().await.expect("all are written");
        }
    }
    producer.flush().await.expect("all are written");
    let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..config };
    let mut reader = client.consumer(config).expect("the configuration is right");
    reader.assign((0..partitions).map(|at| TopicPartition::new(TOPIC, at))).expect("it reads nothing yet");
    (fake, reader)
}

async fn read(reader: &mut Consumer, count: usize) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut values = Vec::new();
    while values.len() < count {
        assert!(Instant::now() < deadline, "only {values:?} came");
        for batches in reader.poll(Duration::from_millis(20)).await.expect("the poll succeeds").batches {
            values.extend(batches.into_records().map(|record| {
                let value = record.expect("nothing is damaged").value.unwrap_or_default();
                String::from_utf8(value.to_vec()).expect("the test writes text")
            }));
        }
    }
    values
}

#[tokio::test]
async fn fetches_are_tried_again_until_they_succeed() {
    let (fake, mut reader) = reader(1, 4).await;
    fake.script(
        ApiKey::Fetch,
        [
            Fate::Lost,
            Fate::AnswerLost,
            Fate::Refused(ErrorCode::NotLeaderOrFollower),
            Fate::Refused(ErrorCode::UnknownTopicId),
            Fate::Refused(ErrorCode::FencedLeaderEpoch),
            Fate::Refused(ErrorCode::KafkaStorageError),
        ],
    );
    assert_eq!(read(&mut reader, 4).await, ["0", "1", "2", "3"]);
    assert!(fake.requests(ApiKey::Fetch).len() >= 7);
}

#[tokio::test]
async fn a_reader_that_gets_nothing_says_why() {
    let patient = ConsumerConfig { stall_timeout_ms: Some(60_000), ..ConsumerConfig::default() };
    let hasty = ConsumerConfig { stall_timeout_ms: Some(100), ..ConsumerConfig::default() };
    for (config, is_told) in [(ConsumerConfig::default(), false), (patient, false), (hasty, true)] {
        let (fake, mut reader) = reader_with(2, 2, config).await;
        assert_eq!(read(&mut reader, 4).await.len(), 4);
        assert!(reader.trouble().is_none());
        fake.script(ApiKey::Fetch, std::iter::repeat_n(Fate::Lost, 100_000));
        let until = Instant::now() + Duration::from_millis(350);
        let mut told = 0;
        while Instant::now() < until {
            match reader.poll(until - Instant::now()).await {
                Ok(polled) => assert!(polled.is_empty()),
                Err(error) => {
                    told += 1;
                    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
                    assert!(
                        matches!(&error, Error::TimedOut { last: Some(_), after_ms: 100, .. }),
                        "{error}"
                    );
                }
            }
        }
        assert!(if is_told { (1..=3).contains(&told) } else { told == 0 }, "told {told} times");
        let (error, lasted) = reader.trouble().expect("nothing can be read");
        assert!(matches!(error, Error::Connection { .. }) && lasted > Duration::from_millis(200), "{error}");
        fake.end_script(ApiKey::Fetch);
        reader.seek(&TopicPartition::new(TOPIC, 0), Offset(0)).expect("it is assigned");
        assert_eq!(read(&mut reader, 2).await, ["0", "1"]);
    }
}

#[tokio::test]
async fn a_reader_is_told_that_its_topic_is_gone() {
    let config = ConsumerConfig { stall_timeout_ms: Some(200), ..ConsumerConfig::default() };
    let (fake, mut reader) = reader_with(1, 2, config).await;
    assert_eq!(read(&mut reader, 2).await, ["0", "1"]);
    fake.delete_topic();
    fake.script(ApiKey::Fetch, std::iter::repeat_n(Fate::Refused(ErrorCode::UnknownTopicId), 100_000));
    let error = loop {
        match reader.poll(PATIENCE).await {
            Ok(polled) => assert!(polled.is_empty()),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, Error::UnknownTopic { topic } if topic == TOPIC), "{error}");
}

#[tokio::test]
async fn a_reader_follows_the_leader() {
    let (fake, mut reader) = reader(1, 2).await;
    assert_eq!(read(&mut reader, 2).await, ["0", "1"]);
    fake.move_leader(0, 2);
    reader.seek(&TopicPartition::new(TOPIC, 0), Offset(0)).expect("it is assigned");
    assert_eq!(read(&mut reader, 2).await, ["0", "1"]);
    assert_eq!(fake.requests(ApiKey::Fetch).last().map(|(node, ..)| *node), Some(2));
}

#[tokio::test]
async fn an_answer_from_before_a_seek_is_dropped() {
    let (fake, mut reader) = reader(1, 4).await;
    let partition = TopicPartition::new(TOPIC, 0);
    fake.script(ApiKey::Fetch, [Fate::Held]);
    while fake.held() == 0 {
        assert!(reader.poll(Duration::from_millis(5)).await.expect("the poll succeeds").is_empty());
    }
    reader.seek(&partition, Offset(3)).expect("it is assigned");
    fake.release();
    assert_eq!(read(&mut reader, 1).await, ["3"]);
    fake.script(ApiKey::Fetch, [Fate::Held]);
    reader.seek(&partition, Offset(0)).expect("it is assigned");
    while fake.held() == 0 {
        assert!(reader.poll(Duration::from_millis(5)).await.expect("the poll succeeds").is_empty());
    }
    reader.assign([]).expect("it was assigned");
    fake.release();
    assert!(reader.poll(Duration::from_millis(20)).await.expect("the poll succeeds").is_empty());
    assert_eq!(reader.assignment(), []);
}

#[tokio::test]
async fn a_broker_has_one_fetch_at_a_time() {
    let (fake, mut reader) = reader(3, 2).await;
    fake.move_leader(2, 2);
    fake.script(ApiKey::Fetch, [Fate::Held; 2]);
    let end = Instant::now() + Duration::from_millis(60);
    while Instant::now() < end {
        assert!(reader.poll(Duration::from_millis(5)).await.expect("the poll succeeds").is_empty());
    }
    let nodes: Vec<i32> = fake.requests(ApiKey::Fetch).iter().map(|(node, ..)| *node).collect();
    assert!(nodes == [1, 2] || nodes == [2, 1] || nodes == [1], "{nodes:?}");
    fake.release();
    assert_eq!(read(&mut reader, 6).await.len(), 6);
}

#[tokio::test]
async fn the_next_fetch_is_on_its_way_before_the_last_is_processed() {
    let (fake, mut reader) = reader(1, 2).await;
    let partition = TopicPartition::new(TOPIC, 0);
    while reader.poll(Duration::from_millis(20)).await.expect("the poll succeeds").batches.is_empty() {}
    let fetches = fake.requests(ApiKey::Fetch).len();
    assert!(fetches >= 2, "one was sent when the first was returned");
    assert_eq!(reader.position(&partition), Some(Offset(2)));
}

#[tokio::test]
async fn damage_is_told_after_what_comes_before_it_and_can_be_stepped_over() {
    let (fake, mut reader) = reader(2, 6).await;
    fake.damage(0, 1);
    let partition = TopicPartition::new(TOPIC, 0);
    let mut values = [Vec::new(), Vec::new()];
    let mut damage = None;
    let deadline = Instant::now() + PATIENCE;
    while values[0].len() < 4 || values[1].len() < 6 {
        assert!(Instant::now() < deadline, "only {values:?} came");
        match reader.poll(Duration::from_millis(20)).await {
            Ok(polled) => {
                for batches in polled.batches {
                    let at = batches.partition.partition as usize;
                    values[at].extend(batches.into_records().map(|record| {
                        let value = record.expect("what is damaged does not come").value.unwrap_or_default();
                        String::from_utf8(value.to_vec()).expect("the test writes text")
                    }));
                }
            }
            Err(Error::DamagedBatch { partition: at, offset, next_offset, .. }) => {
                assert_eq!((at, offset), (partition.clone(), Offset(2)));
                assert_eq!(values[0], ["0", "1"], "what is whole comes first");
                assert_eq!(damage.replace(next_offset), None, "it is told once");
                reader.seek(&partition, next_offset).expect("it is assigned");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(damage, Some(Offset(4)));
    assert_eq!(values[0], ["0", "1", "4", "5"]);
    assert_eq!(values[1], ["0", "1", "2", "3", "4", "5"], "the other partition is whole");
}

#[tokio::test]
async fn a_fetch_that_is_refused_as_a_whole_is_told_and_tried_again() {
    for code in [ErrorCode::ClusterAuthorizationFailed, ErrorCode::InvalidRequest] {
        let (fake, mut reader) = reader(1, 2).await;
        fake.script(ApiKey::Fetch, [Fate::RefusedWhole(code); 3]);
        let mut told = 0;
        let deadline = Instant::now() + PATIENCE;
        while told < 3 {
            assert!(Instant::now() < deadline, "it is not told");
            match reader.poll(PATIENCE).await {
                Ok(polled) => assert!(polled.is_empty(), "{polled:?}"),
                Err(error) => {
                    assert_eq!((error.kind(), error.code()), (ErrorKind::GiveUp, Some(code)), "{error}");
                    told += 1;
                }
            }
        }
        assert_eq!(read(&mut reader, 2).await, ["0", "1"], "the position has not moved");
    }
    let (fake, mut reader) = reader(1, 2).await;
    let passing =
        [ErrorCode::UnknownServerError, ErrorCode::FetchSessionIdNotFound, ErrorCode::KafkaStorageError];
    fake.script(ApiKey::Fetch, passing.map(Fate::RefusedWhole));
    assert_eq!(read(&mut reader, 2).await, ["0", "1"], "what passes is not told");
}

#[tokio::test]
async fn a_broker_that_is_too_old_is_told_and_can_be_replaced() {
    let (fake, mut reader) = reader(1, 2).await;
    fake.clone().limit(ApiKey::Fetch, 1);
    fake.script(ApiKey::Fetch, [Fate::Lost]);
    for _ in 0..3 {
        let error = reader.poll(PATIENCE).await.expect_err("there is no version in common");
        assert!(matches!(error, Error::UnsupportedVersion { api: ApiKey::Fetch, .. }), "{error}");
    }
    fake.clone().limit(ApiKey::Fetch, ApiKey::Fetch.last_stable_version());
    fake.break_connections();
    let deadline = Instant::now() + PATIENCE;
    let mut count = 0;
    while count < 2 {
        assert!(Instant::now() < deadline, "nothing is read");
        if let Ok(polled) = reader.poll(Duration::from_millis(20)).await {
            count += polled.batches.iter().map(FetchedBatches::records_count).sum::<usize>();
        }
    }
}

#[tokio::test]
async fn a_poll_that_is_cancelled_loses_nothing() {
    let (_, mut reader) = reader(1, 6).await;
    let mut cancelled = 0;
    let deadline = Instant::now() + PATIENCE;
    let mut count = 0;
    while count < 6 {
        assert!(Instant::now() < deadline, "only {count} came");
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => cancelled += 1,
            polled = reader.poll(PATIENCE) => {
                let batches = polled.expect("the poll succeeds").batches;
                count += batches.iter().map(|batches| batches.records_count()).sum::<usize>();
            }
        }
    }
    assert!(cancelled > 0);
}

#[tokio::test]
async fn a_log_that_was_cut_is_read_on_from_the_cut_or_it_is_told() {
    for reset in [OffsetReset::Earliest, OffsetReset::Latest, OffsetReset::None] {
        let (fake, mut reader) = reader(1, 6).await;
        assert_eq!(read(&mut reader, 6).await.len(), 6);
        let partition = TopicPartition::new(TOPIC, 0);
        let client = Client::connect(fake.config()).await.expect("the fake answers");
        let config = ConsumerConfig { offset_reset: reset, ..ConsumerConfig::group("group") };
        let mut other = client.consumer(config).expect("the configuration is right");
        other.assign([partition.clone()]).expect("it reads nothing yet");
        other.seek(&partition, Offset(0)).expect("it is assigned");
        assert_eq!(read(&mut other, 6).await.len(), 6);
        // The new leader had only four of them, and has got others since.
        fake.truncate(0, 4, &["new", "newer", "newest"]);
        client.admin().list_topics().await.expect("it answers");
        if reset == OffsetReset::None {
            let error = loop {
                match other.poll(Duration::from_millis(20)).await {
                    Ok(polled) => assert!(polled.batches.is_empty(), "{polled:?}"),
                    Err(error) => break error,
                }
            };
            let Error::LogTruncated { position, divergent, .. } = &error else { panic!("{error}") };
            assert_eq!((*position, *divergent), (Offset(6), Some(Offset(4))));
            assert_eq!(error.kind(), ErrorKind::GiveUp);
            other.seek(&partition, Offset(4)).expect("it is assigned");
        }
        assert_eq!(read(&mut other, 3).await, ["new", "newer", "newest"], "{reset:?}");
        assert_eq!(other.metrics().truncations, 1);
    }
}

#[tokio::test]
async fn a_new_leader_that_has_everything_is_read_on() {
    let (fake, mut reader) = reader(1, 4).await;
    assert_eq!(read(&mut reader, 4).await.len(), 4);
    assert_eq!(fake.requests(ApiKey::OffsetForLeaderEpoch).len(), 0, "nothing was in doubt");
    fake.script(ApiKey::OffsetForLeaderEpoch, [Fate::Lost, Fate::Refused(ErrorCode::NotLeaderOrFollower)]);
    fake.truncate(0, 4, &["next"]);
    assert_eq!(read(&mut reader, 1).await, ["next"]);
    assert_eq!(fake.requests(ApiKey::OffsetForLeaderEpoch).len(), 3);
    assert_eq!(reader.metrics().truncations, 0);
}

#[tokio::test]
async fn fetches_wait_when_the_broker_wants_a_pause() {
    let (fake, mut reader) = reader(1, 2).await;
    fake.throttle(50);
    let begun = Instant::now();
    let before = reader.metrics().fetches;
    while begun.elapsed() < Duration::from_millis(300) {
        reader.poll(Duration::from_millis(5)).await.expect("the poll succeeds");
    }
    let fetches = reader.metrics().fetches - before;
    assert!((2..=7).contains(&fetches), "one in 50 ms: {fetches}");
}
