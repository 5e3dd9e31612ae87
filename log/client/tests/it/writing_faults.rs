//! What the producer makes of lost, refused and late answers.

use std::time::Duration;

use fastrand::Rng;
use thalweg_client::{Client, Delivery, Error, ErrorKind, Producer, ProducerConfig, ProducerRecord};
use thalweg_protocol::messages::{ApiKey, Request};
use thalweg_protocol::record::BatchHeader;
use thalweg_protocol::{ErrorCode, Offset, Records};

use crate::fake::{Fake, Fate, TOPIC};

/// A producer whose batches hold one or two of the records that these tests send.
async fn producer(fake: &Fake, config: ProducerConfig) -> Producer {
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let config = ProducerConfig { linger_ms: 0, batch_size: 150, ..config };
    client.producer(config).expect("the configuration is right")
}

async fn send(producer: &Producer, count: usize) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for number in 0..count {
        let record = ProducerRecord::new(TOPIC, format!("{number}")).partition(0).key(vec![b'k'; 40]);
        deliveries.push(producer.send(record).await.expect("there is room"));
    }
    deliveries
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// The headers of all batches that were sent.
fn sent(fake: &Fake) -> Vec<BatchHeader> {
    let requests = fake.requests(ApiKey::Produce).into_iter().flat_map(|(_, _, request)| match request {
        Request::Produce(request) => request.topic_data,
        _ => Vec::new(),
    });
    let partitions = requests.flat_map(|topic| topic.partition_data);
    partitions
        .map(|data| match data.records {
            Some(Records::Bytes(bytes)) => BatchHeader::parse(&bytes).expect("clients send batches"),
            _ => panic!("clients send bytes"),
        })
        .collect()
}

#[tokio::test]
async fn a_lost_answer_does_not_duplicate() {
    let fake = Fake::new(1);
    fake.script(ApiKey::Produce, [Fate::AnswerLost]);
    let producer = producer(&fake, ProducerConfig::default()).await;
    let deliveries = send(&producer, 1).await;
    let delivery = deliveries.into_iter().next().expect("one was sent").await;
    assert_eq!(delivery.expect("it is written").offset, Some(Offset(0)));
    assert_eq!(fake.values(0), numbers(1));
    assert_eq!(sent(&fake).len(), 2);
}

#[tokio::test]
async fn order_and_count_hold_whatever_gets_lost() {
    const COUNT: usize = 200;
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let fake = Fake::new(1);
        let fates = (0..150).map(|_| match rng.u8(..10) {
            0 => Fate::Lost,
            1 => Fate::AnswerLost,
            2 => Fate::Refused(ErrorCode::NotEnoughReplicas),
            3 => Fate::Refused(ErrorCode::NotLeaderOrFollower),
            _ => Fate::Answered,
        });
        fake.script(ApiKey::Produce, fates);
        let producer = producer(&fake, ProducerConfig::default()).await;
        let deliveries = send(&producer, COUNT).await;
        producer.flush().await.expect("all are written in the end");
        assert_eq!(fake.values(0), numbers(COUNT), "seed {seed}");
        for (number, delivery) in deliveries.into_iter().enumerate() {
            let offset = delivery.await.expect("it is written").offset;
            assert_eq!(offset, Some(Offset(number as i64)), "seed {seed}");
        }
    }
}

#[tokio::test]
async fn what_is_refused_for_good_leaves_the_others_in_order() {
    const COUNT: usize = 200;
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let fake = Fake::new(1);
        let fates = (0..150).map(|_| match rng.u8(..12) {
            0 => Fate::Lost,
            1 => Fate::Refused(ErrorCode::NotEnoughReplicas),
            2 => Fate::Refused(ErrorCode::InvalidRecord),
            _ => Fate::Answered,
        });
        fake.script(ApiKey::Produce, fates);
        let producer = producer(&fake, ProducerConfig::default()).await;
        let mut written = Vec::new();
        for (number, delivery) in send(&producer, COUNT).await.into_iter().enumerate() {
            match delivery.await {
                Ok(_) => written.push(number.to_string()),
                Err(error) => assert_eq!(error.code(), Some(ErrorCode::InvalidRecord), "seed {seed}"),
            }
        }
        assert!(written.len() < COUNT, "seed {seed} refuses nothing");
        assert_eq!(fake.values(0), written, "seed {seed}");
        assert_eq!(producer.flush().await.expect_err("some failed").code(), Some(ErrorCode::InvalidRecord));
    }
}

#[tokio::test]
async fn without_idempotence_order_holds_too() {
    for seed in 0..10 {
        let mut rng = Rng::with_seed(seed);
        let fake = Fake::new(1);
        fake.script(
            ApiKey::Produce,
            (0..60).map(|_| if rng.u8(..3) == 0 { Fate::Lost } else { Fate::Answered }),
        );
        let config = ProducerConfig { idempotent: false, ..ProducerConfig::default() };
        let producer = producer(&fake, config).await;
        send(&producer, 100).await;
        producer.flush().await.expect("all are written in the end");
        assert_eq!(fake.values(0), numbers(100), "seed {seed}");
        assert!(sent(&fake).iter().all(|header| !header.is_idempotent()));
    }
}

#[tokio::test]
async fn at_most_five_requests_are_in_flight() {
    let fake = Fake::new(1);
    fake.script(ApiKey::Produce, [Fate::Held; 5]);
    let producer = producer(&fake, ProducerConfig::default()).await;
    let deliveries = send(&producer, 40).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!((fake.held(), sent(&fake).len()), (5, 5));
    let sequences: Vec<i32> = sent(&fake).iter().map(|header| header.base_sequence).collect();
    assert!(sequences.is_sorted() && sequences[0] == 0);
    fake.release();
    for delivery in deliveries {
        delivery.await.expect("it is written");
    }
    assert_eq!(fake.values(0), numbers(40));
}

#[tokio::test]
async fn a_producer_follows_the_leader_as_told() {
    let fake = Fake::new(1);
    let producer = producer(&fake, ProducerConfig::default()).await;
    for delivery in send(&producer, 4).await {
        delivery.await.expect("it is written");
    }
    fake.move_leader(0, 2);
    send(&producer, 50).await;
    producer.flush().await.expect("all are written");
    assert_eq!(fake.values(0)[4..], numbers(50));
    let nodes: Vec<i32> = fake.requests(ApiKey::Produce).iter().map(|(node, ..)| *node).collect();
    assert_eq!(nodes.last(), Some(&2));
    assert!(
        nodes.iter().filter(|node| **node == 1).count() <= 9,
        "the old leader is asked no more than five times"
    );
}

#[tokio::test]
async fn a_batch_that_gets_no_answer_in_time_is_of_unknown_fate() {
    let fake = Fake::new(1);
    fake.script(ApiKey::Produce, [Fate::AnswerLost; 1_000]);
    let config = ProducerConfig { delivery_timeout_ms: 60, ..ProducerConfig::default() };
    let producer = producer(&fake, config).await;
    let delivery = send(&producer, 1).await.pop().expect("one was sent");
    let error = delivery.await.expect_err("no answer came");
    assert!(matches!(error, Error::DeliveryUnknown { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    fake.end_script(ApiKey::Produce);
    producer.flush().await.expect_err("it is told");
    // The next record goes under a newer epoch: the broker may have the first one, or not.
    for delivery in send(&producer, 1).await {
        delivery.await.expect("it is written");
    }
    let last = *sent(&fake).last().expect("batches were sent");
    assert_eq!((last.producer_epoch.0, last.base_sequence), (1, 0));
    assert_eq!(fake.values(0), ["0", "0"]);
}

#[tokio::test]
async fn an_append_without_room_says_so_and_loses_nothing() {
    let fake = Fake::new(1);
    fake.script(ApiKey::Produce, [Fate::Held; 100]);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let config = ProducerConfig {
        buffer_memory: 20_000,
        batch_size: 2_000,
        max_block_ms: 30,
        ..ProducerConfig::default()
    };
    let producer = client.producer(config).expect("the configuration is right");
    let mut appender = producer.appender();
    let slot = appender.topic(TOPIC).await.expect("it is there");
    let mut appended = 0;
    let full = loop {
        let value = appended.to_string();
        match appender.append(slot, 0, 0, Some(&[b'k'; 100]), Some(value.as_bytes()), &[]) {
            Ok(()) => appended += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::BufferFull { limit: 20_000 }), "{full}");
    assert!((100..200).contains(&appended), "{appended} records of some 120 bytes");
    assert!(matches!(appender.room().await, Err(Error::BufferFull { .. })), "nothing has been answered");
    let full = producer.send(ProducerRecord::new(TOPIC, "late").partition(0)).await;
    assert!(matches!(full, Err(Error::BufferFull { .. })));
    fake.end_script(ApiKey::Produce);
    fake.release();
    appender.room().await.expect("there is room");
    appender.append(slot, 0, 0, None, Some(b"last"), &[]).expect("there is room");
    appender.flush().await.expect("all are written");
    let mut expected = numbers(appended);
    expected.push("last".to_owned());
    assert_eq!(fake.values(0), expected);
}

#[tokio::test]
async fn dropping_the_producer_sends_what_waits() {
    let fake = Fake::new(1);
    let producer = producer(&fake, ProducerConfig { linger_ms: 60_000, ..ProducerConfig::default() }).await;
    let deliveries = send(&producer, 3).await;
    let mut appender = producer.appender();
    let slot = appender.topic(TOPIC).await.expect("it is there");
    appender.append(slot, 0, 0, None, Some(b"3"), &[]).expect("there is room");
    drop((appender, producer));
    for delivery in deliveries {
        delivery.await.expect("it is written");
    }
    for _ in 0..1_000 {
        if fake.values(0).len() == 4 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut values = fake.values(0);
    values.sort_unstable();
    assert_eq!(values, numbers(4));
}

#[tokio::test]
async fn a_broker_of_old_is_spoken_to_in_its_versions() {
    let fake =
        Fake::new(1).limit(ApiKey::Produce, 7).limit(ApiKey::InitProducerId, 1).limit(ApiKey::Metadata, 5);
    let producer = producer(&fake, ProducerConfig::default()).await;
    send(&producer, 3).await;
    producer.flush().await.expect("all are written");
    assert!(fake.requests(ApiKey::Produce).iter().all(|(_, version, _)| *version == 7));
    assert!(fake.requests(ApiKey::Metadata).iter().all(|(_, version, _)| *version == 5));
    let new = Fake::new(1).limit(ApiKey::Produce, 2);
    let producer = self::producer(&new, ProducerConfig::default()).await;
    let delivery = send(&producer, 1).await.pop().expect("one was sent");
    let error = delivery.await.expect_err("there is no version in common");
    assert!(matches!(error, Error::UnsupportedVersion { .. }), "{error}");
}

#[tokio::test]
async fn a_cluster_that_is_down_at_first_is_waited_for() {
    let fake = Fake::new(1);
    // The fake asks this script for connections.
    fake.script(ApiKey::SaslHandshake, [Fate::Lost; 5]);
    let producer = producer(&fake, ProducerConfig::default()).await;
    send(&producer, 1).await;
    producer.flush().await.expect("it is written");
    let down = Fake::new(1);
    down.script(ApiKey::SaslHandshake, [Fate::Lost; 10_000]);
    let error = Client::connect(down.config()).await.err().expect("nobody answers");
    assert!(matches!(error, Error::TimedOut { last: Some(_), .. }), "{error}");
    assert!(error.to_string().contains("the script says so"), "{error}");
}
