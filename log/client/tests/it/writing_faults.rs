//! What the producer makes of lost, refused and late answers.

use std::time::Duration;

use fastrand::Rng;
use thalweg_client::{
    Client, ClientConfig, Delivery, Error, ErrorKind, Producer, ProducerConfig, ProducerRecord,
};
use thalweg_protocol::messages::{ApiKey, Request};
use thalweg_protocol::record::BatchHeader;
use thalweg_protocol::{ErrorCode, Offset, Records, partition_for_key};
use tokio::time::Instant;

use crate::fake::{Fake, Fate, TOPIC};

const PATIENCE: Duration = Duration::from_secs(10);

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

/// Waits until `is_so`.
async fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it does not come to that");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
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

/// Records that come while an earlier batch cannot be sent go into one batch, however short the linger time.
#[tokio::test]
async fn batches_grow_while_the_broker_is_busy() {
    const COUNT: usize = 32;
    for with_appender in [false, true] {
        let fake = Fake::new(1);
        fake.script(ApiKey::Produce, [Fate::Held]);
        let client = Client::connect(fake.config()).await.expect("the fake answers");
        let config = ProducerConfig { linger_ms: 0, max_in_flight: 1, ..ProducerConfig::default() };
        let producer = client.producer(config).expect("the configuration is right");
        let mut appender = producer.appender();
        let topic = appender.topic(TOPIC).await.expect("it exists");
        for number in 0..COUNT {
            let value = number.to_string();
            if with_appender {
                appender.append(topic, 0, 0, None, Some(value.as_bytes()), &[]).expect("there is room");
                appender.linger();
            } else {
                let record = ProducerRecord::new(TOPIC, value).partition(0);
                drop(producer.send(record).await.expect("there is room"));
            }
            // The first is on its way, the second waits behind it before the others come.
            until(|| number > 0 || !fake.requests(ApiKey::Produce).is_empty()).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        fake.release();
        appender.flush().await.expect("all are written");
        assert_eq!(fake.values(0), numbers(COUNT));
        let sizes: Vec<i32> = sent(&fake).iter().map(|header| header.records_count).collect();
        assert_eq!(sizes, [1, 1, COUNT as i32 - 2], "with_appender: {with_appender}");
    }
}

/// What is held back is sent when the batch before it has been given up.
#[tokio::test]
async fn a_batch_is_not_held_back_behind_one_that_was_given_up() {
    let fake = Fake::new(1);
    fake.script(ApiKey::Produce, [Fate::Held]);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let config = ProducerConfig {
        linger_ms: 0,
        max_in_flight: 1,
        delivery_timeout_ms: 200,
        ..ProducerConfig::default()
    };
    let producer = client.producer(config).expect("the configuration is right");
    let record = |value: &str| ProducerRecord::new(TOPIC, value.to_owned()).partition(0);
    let first = producer.send(record("0")).await.expect("there is room");
    until(|| !fake.requests(ApiKey::Produce).is_empty()).await;
    let second = producer.send(record("1")).await.expect("there is room");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let third = producer.send(record("2")).await.expect("there is room");
    assert!(matches!(second.await, Err(Error::TimedOut { .. })));
    fake.release();
    first.await.expect("it is written");
    third.await.expect("it is written");
    assert_eq!(fake.values(0), ["0", "2"]);
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
    until(|| fake.held() == 5).await;
    // A sixth would go at once; that it does not, takes a moment to see.
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
    until(|| fake.values(0).len() == 4).await;
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

/// A key that is in partition 0 of one, and in partition 1 of two.
fn moving_key() -> &'static [u8] {
    [&b"a"[..], b"b", b"c", b"d", b"e"]
        .into_iter()
        .find(|key| partition_for_key(key, 2) == 1)
        .expect("one of five is in partition 1")
}

#[tokio::test]
async fn keys_move_when_a_topic_gets_partitions() {
    let fake = Fake::new(1);
    let config = ClientConfig { metadata_max_age_ms: 5, ..fake.config() };
    let client = Client::connect(config).await.expect("the fake answers");
    let producer = client.producer(ProducerConfig { linger_ms: 0, ..ProducerConfig::default() });
    let producer = producer.expect("the configuration is right");
    let mut appender = producer.appender();
    let slot = appender.topic(TOPIC).await.expect("it is there");
    let keyed = || ProducerRecord::new(TOPIC, "sent").key(moving_key());
    assert_eq!(producer.send_and_wait(keyed()).await.expect("it is written").partition.partition, 0);
    assert_eq!(appender.partition_for(slot, Some(moving_key()), None), 0);
    let outside = appender.append(slot, 1, 0, None, Some(b"too early"), &[]);
    assert!(matches!(outside, Err(Error::UnknownPartition { partitions: 1, .. })));
    fake.add_partition();
    let deadline = Instant::now() + PATIENCE;
    while producer.send_and_wait(keyed()).await.expect("it is written").partition.partition == 0 {
        assert!(Instant::now() < deadline, "the producer keeps to one partition");
    }
    appender.linger();
    let partition = appender.partition_for(slot, Some(moving_key()), None);
    assert_eq!(partition, 1);
    appender.append(slot, partition, 0, Some(moving_key()), Some(b"appended"), &[]).expect("there is room");
    appender.flush().await.expect("it is written");
    assert_eq!(fake.values(1), ["sent", "appended"]);
    assert_eq!(
        (slot.partition_count(), appender.topic(TOPIC).await.map(|slot| slot.partition_count()).ok()),
        (1, Some(2))
    );
}

#[tokio::test]
async fn a_partition_that_is_named_is_asked_about_before_it_is_refused() {
    let fake = Fake::new(1);
    let producer = producer(&fake, ProducerConfig::default()).await;
    let named = || ProducerRecord::new(TOPIC, "v").partition(1);
    let refused = producer.send(named()).await.expect_err("there is only one");
    assert!(matches!(refused, Error::UnknownPartition { partitions: 1, .. }), "{refused}");
    fake.add_partition();
    producer.send_and_wait(named()).await.expect("it is there now");
    assert_eq!(fake.values(1), ["v"]);
}

#[tokio::test]
async fn a_topic_that_comes_back_with_fewer_partitions_is_written_to() {
    let fake = Fake::new(3);
    let config = ClientConfig { metadata_max_age_ms: 5, ..fake.config() };
    let client = Client::connect(config).await.expect("the fake answers");
    let producer = client.producer(ProducerConfig { linger_ms: 0, ..ProducerConfig::default() });
    let producer = producer.expect("the configuration is right");
    let mut appender = producer.appender();
    let slot = appender.topic(TOPIC).await.expect("it is there");
    let keys: Vec<[u8; 1]> = (0..20).map(|key| [key]).collect();
    for key in &keys {
        producer.send(ProducerRecord::new(TOPIC, "v").key(key.to_vec())).await.expect("there is room");
    }
    producer.flush().await.expect("all are written");
    fake.delete_topic();
    assert!(matches!(client.admin().describe_topic(TOPIC).await, Err(Error::UnknownTopic { .. })));
    fake.create_topic(1);
    client.admin().describe_topic(TOPIC).await.expect("it is back");
    for key in &keys {
        producer.send(ProducerRecord::new(TOPIC, "v").key(key.to_vec())).await.expect("there is room");
        appender.linger();
        let partition = appender.partition_for(slot, Some(key), None);
        appender.append(slot, partition, 0, Some(key), Some(b"v"), &[]).expect("there is room");
    }
    appender.flush().await.expect("all are written");
    assert_eq!(fake.values(0).len(), 40);
}

#[tokio::test]
async fn a_topic_that_was_deleted_is_written_to_when_it_is_back() {
    let fake = Fake::new(1);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let producer = client.producer(ProducerConfig { linger_ms: 0, ..ProducerConfig::default() });
    let producer = producer.expect("the configuration is right");
    producer.send_and_wait(ProducerRecord::new(TOPIC, "before")).await.expect("it is written");
    client.admin().delete_topic(TOPIC).await.expect("it is deleted");
    assert!(matches!(client.admin().describe_topic(TOPIC).await, Err(Error::UnknownTopic { .. })));
    let delivery = producer.send(ProducerRecord::new(TOPIC, "after")).await.expect("there is room");
    tokio::time::sleep(Duration::from_millis(10)).await;
    fake.create_topic(1);
    let delivered = tokio::time::timeout(PATIENCE, delivery).await.expect("it is noticed");
    delivered.expect("it is written");
    assert_eq!(fake.values(0), ["after"]);
}

#[tokio::test]
async fn an_unknown_leader_and_metadata_that_are_refused_are_asked_for_with_pauses() {
    let fake = Fake::new(1);
    let config = ClientConfig { retry_backoff_ms: 10, retry_backoff_max_ms: 20, ..fake.config() };
    let client = Client::connect(config).await.expect("the fake answers");
    let producer = client.producer(ProducerConfig { linger_ms: 0, ..ProducerConfig::default() });
    let producer = producer.expect("the configuration is right");
    client.partition_count(TOPIC).await.expect("it is there");
    fake.move_leader(0, 3);
    client.admin().describe_topic(TOPIC).await.expect("it is there");
    let delivery = producer.send(ProducerRecord::new(TOPIC, "v")).await.expect("there is room");
    let asked = || fake.requests(ApiKey::Metadata).len();
    let before = asked();
    tokio::time::sleep(Duration::from_millis(100)).await;
    fake.script(ApiKey::Metadata, [Fate::RefusedWhole(ErrorCode::ClusterAuthorizationFailed); 10_000]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let count = asked() - before;
    assert!((2..50).contains(&count), "{count} requests in a fifth of a second");
    fake.end_script(ApiKey::Metadata);
    fake.move_leader(0, 2);
    tokio::time::timeout(PATIENCE, delivery).await.expect("it is noticed").expect("it is written");
}

/// A producer that puts everything it is given before a flush into one batch.
async fn patient(fake: &Fake, config: ProducerConfig) -> Producer {
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let config = ProducerConfig { linger_ms: 60_000, ..config };
    client.producer(config).expect("the configuration is right")
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_halved_until_it_is_not() {
    for idempotent in [true, false] {
        let fake = Fake::new(1);
        fake.limit_batches(3);
        let producer = patient(&fake, ProducerConfig { idempotent, ..ProducerConfig::default() }).await;
        let first = send(&producer, 10).await;
        producer.flush().await.expect("all are written");
        for (number, delivery) in first.into_iter().enumerate() {
            assert_eq!(delivery.await.expect("it is written").offset, Some(Offset(number as i64)));
        }
        assert_eq!(fake.values(0), numbers(10), "idempotent: {idempotent}");
        assert_eq!(producer.metrics().taken_apart, 3, "10 = 5 + 5 = (2 + 3) + (2 + 3)");
        assert_eq!((producer.acknowledged(), producer.failed()), (10, 0));
        send(&producer, 2).await;
        producer.flush().await.expect("what comes later fits on");
        assert_eq!(fake.values(0).len(), 12);
        assert_eq!(producer.metrics().buffered_bytes, 0);
    }
    // One record alone cannot be halved.
    let fake = Fake::new(1);
    fake.limit_batches(0);
    let producer = patient(&fake, ProducerConfig::default()).await;
    let delivery = send(&producer, 1).await.pop().expect("one was sent");
    let error = producer.flush().await.expect_err("it is too large");
    assert_eq!((error.code(), error.kind()), (Some(ErrorCode::MessageTooLarge), ErrorKind::GiveUp));
    assert_eq!(delivery.await.expect_err("it is too large").code(), Some(ErrorCode::MessageTooLarge));
}

#[tokio::test]
async fn a_record_that_the_broker_names_fails_alone() {
    for (idempotent, bad) in [(true, &["3"][..]), (false, &["0", "9"]), (true, &["4", "5", "6"])] {
        let fake = Fake::new(1);
        fake.refuse_values(bad);
        let producer = patient(&fake, ProducerConfig { idempotent, ..ProducerConfig::default() }).await;
        let deliveries = send(&producer, 10).await;
        let error = producer.flush().await.expect_err("a record is refused");
        assert_eq!(error.code(), Some(ErrorCode::InvalidRecord), "{error}");
        assert!(error.to_string().contains("the fake does not like it"), "{error}");
        let good: Vec<String> = numbers(10).into_iter().filter(|number| !bad.contains(&&**number)).collect();
        assert_eq!(fake.values(0), good);
        let mut offset = 0;
        for (number, delivery) in deliveries.into_iter().enumerate() {
            match delivery.await {
                Ok(acknowledged) => {
                    assert_eq!(acknowledged.offset, Some(Offset(offset)), "record {number}");
                    offset += 1;
                }
                Err(error) => {
                    assert!(bad.contains(&&*number.to_string()), "record {number}: {error}");
                    assert_eq!(error.kind(), ErrorKind::GiveUp);
                }
            }
        }
        assert_eq!((producer.acknowledged(), producer.failed()), (good.len() as u64, bad.len() as u64));
        fake.refuse_values(&[]);
        send(&producer, 2).await;
        producer.flush().await.expect("what comes later is written");
        assert_eq!(fake.values(0).len(), good.len() + 2);
    }
    // All of them, or in a transaction: the batch fails as a whole.
    let fake = Fake::new(1);
    fake.refuse_values(&["0", "1"]);
    let producer = patient(&fake, ProducerConfig::default()).await;
    send(&producer, 2).await;
    assert_eq!(producer.flush().await.expect_err("refused").code(), Some(ErrorCode::InvalidRecord));
    assert_eq!((sent(&fake).len(), producer.failed()), (1, 2));
}

#[tokio::test]
async fn a_broker_that_wants_a_pause_gets_it() {
    const PAUSE: Duration = Duration::from_millis(80);
    let fake = Fake::new(1);
    fake.throttle(PAUSE.as_millis() as i32);
    let producer = producer(&fake, ProducerConfig::default()).await;
    let begun = Instant::now();
    for number in 1..=3 {
        send(&producer, 1).await;
        producer.flush().await.expect("it is written");
        let least = PAUSE * (number - 1);
        assert!(begun.elapsed() >= least, "request {number} came after {:?}", begun.elapsed());
    }
    assert_eq!(producer.metrics().requests, 3);
}
