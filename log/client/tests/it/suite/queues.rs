//! Share groups (KIP-932): queues on topics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytestring::ByteString;
use thalweg_client::{
    AcknowledgeType, AcquireMode, ConfigChanges, ConfigResource, Error, ErrorKind, ProducerConfig,
    ProducerRecord, ShareConsumer, ShareConsumerConfig, SharePolled,
};
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::{ErrorCode, Offset};
use tokio::time::{Instant, sleep};

use super::lossy::Loss;
use super::{Ground, PATIENCE, at};

use AcknowledgeType::{Accept, Reject, Release, Renew};

/// How long nothing has to come until it is taken that nothing will.
const QUIET: Duration = Duration::from_millis(700);

/// A record that was delivered: its offset, value and how often it was.
pub(super) type Delivered = (i64, String, i16);

/// A new share group that begins at the start, with these configs.
pub(super) async fn share_group(ground: &Ground, configs: &[(&str, &str)]) -> String {
    let group = ground.name("share");
    let of = ConfigChanges::of(ConfigResource::Group(ByteString::from(group.as_str())));
    let of = of.set("share.auto.offset.reset", "earliest");
    let changes = configs.iter().fold(of, |of, (name, value)| of.set(*name, *value));
    for result in ground.client.admin().alter_configs(&[changes], false).await.into_values() {
        result.expect("the group takes its configs");
    }
    group
}

/// How long locks may be made: Kafka's brokers have a minimum.
fn lock(ground: &Ground, ms: u64) -> (Duration, String) {
    let ms = if ground.is_kafka { ms.max(15_000) } else { ms };
    (Duration::from_millis(ms), ms.to_string())
}

pub(super) fn member(ground: &Ground, config: ShareConsumerConfig, topic: &str) -> ShareConsumer {
    let mut consumer = ground.client.share_consumer(config).expect("the configuration is right");
    consumer.subscribe([topic]).expect("there is a topic");
    consumer
}

fn delivered(polled: SharePolled) -> Vec<Delivered> {
    let mut all = Vec::new();
    for batches in polled.batches {
        let count = batches.records_count();
        let before = all.len();
        for record in batches.into_records() {
            let record = record.expect("nothing is damaged");
            let value = record.record.value.unwrap_or_default().to_vec();
            let value = String::from_utf8(value).expect("tests write text");
            all.push((record.record.offset.0, value, record.delivery_count));
        }
        assert_eq!(all.len() - before, count, "there is a record for each offset");
    }
    all
}

/// Polls until records come.
pub(super) async fn take(consumer: &mut ShareConsumer) -> Vec<Delivered> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "nothing comes");
        let polled = consumer.poll(Duration::from_millis(500)).await.expect("the poll succeeds");
        let records = delivered(polled);
        if !records.is_empty() {
            return records;
        }
    }
}

/// Polls until so many records have come.
async fn take_all(consumer: &mut ShareConsumer, count: usize) -> Vec<Delivered> {
    let mut all = Vec::new();
    while all.len() < count {
        all.extend(take(consumer).await);
    }
    all
}

/// Whether nothing comes for a while.
async fn is_quiet(consumer: &mut ShareConsumer) -> bool {
    let until = Instant::now() + QUIET;
    while Instant::now() < until {
        let polled = consumer.poll(Duration::from_millis(200)).await.expect("the poll succeeds");
        if !polled.batches.is_empty() {
            eprintln!("{:?}", delivered(polled));
            return false;
        }
    }
    true
}

pub(super) async fn committed(consumer: &mut ShareConsumer) {
    for (partition, result) in consumer.commit().await {
        result.unwrap_or_else(|error| panic!("{partition}: {error}"));
    }
}

pub(super) fn of(values: &[(i64, &str, i16)]) -> Vec<Delivered> {
    values.iter().map(|(offset, value, count)| (*offset, value.to_string(), *count)).collect()
}

/// The same records, delivered so often.
fn times_over(records: &[Delivered], times: i16) -> Vec<Delivered> {
    records.iter().map(|(offset, value, _)| (*offset, value.clone(), times)).collect()
}

/// Writes values as one batch.
pub(super) async fn write_batch(ground: &Ground, topic: &str, values: &[&str]) {
    let config = ProducerConfig { linger_ms: 200, ..ProducerConfig::default() };
    let producer = ground.producer(config);
    let mut deliveries = Vec::new();
    for value in values {
        let record = ProducerRecord::new(topic, value.to_string()).partition(0);
        deliveries.push(producer.send(record).await.expect("there is room"));
    }
    for delivery in deliveries {
        delivery.await.expect("it is written");
    }
}

pub async fn members_share_records_and_each_is_delivered_once(ground: &Ground) {
    const RECORDS: usize = 400;
    let topic = ground.topic(4).await;
    let group = share_group(ground, &[]).await;
    let config = ShareConsumerConfig { max_poll_records: 20, ..ShareConsumerConfig::group(&*group) };
    let mut members = [member(ground, config.clone(), &topic), member(ground, config.clone(), &topic)];
    let producer = ground.producer(ProducerConfig { linger_ms: 0, ..ProducerConfig::default() });
    for number in 0..RECORDS {
        let record = ProducerRecord::new(topic.as_str(), number.to_string()).partition(number as i32 % 4);
        producer.send(record).await.expect("there is room");
        if number % 10 == 9 {
            producer.flush().await.expect("all are written");
        }
    }
    let deadline = Instant::now() + PATIENCE;
    let mut shares = [BTreeSet::new(), BTreeSet::new()];
    while shares[0].len() + shares[1].len() < RECORDS {
        assert!(Instant::now() < deadline, "{} and {} came", shares[0].len(), shares[1].len());
        for (member, share) in members.iter_mut().zip(&mut shares) {
            let polled = member.poll(Duration::from_millis(100)).await.expect("the poll succeeds");
            for (_, value, count) in delivered(polled) {
                assert_eq!(count, 1, "{value} was delivered once");
                assert!(share.insert(value));
            }
        }
    }
    assert!(shares[0].is_disjoint(&shares[1]), "no record went to both");
    assert!(shares.iter().all(|share| !share.is_empty()), "both have work");
    assert!(members[0].lock_timeout().is_some());
    for member in &mut members {
        committed(member).await;
    }
    let [first, second] = members;
    let counted = [first.metrics(), second.metrics()];
    assert_eq!(counted.map(|counted| counted.records).iter().sum::<u64>(), RECORDS as u64);
    assert_eq!(counted.map(|counted| counted.acknowledged).iter().sum::<u64>(), RECORDS as u64);
    first.close().await.expect("it leaves");
    second.close().await.expect("it leaves");
    let mut third = member(ground, config, &topic);
    assert!(is_quiet(&mut third).await, "all is done with");
    third.close().await.expect("it leaves");
}

pub async fn released_records_come_again_and_rejected_ones_do_not(ground: &Ground) {
    let topic = ground.topic(1).await;
    let group = share_group(ground, &[]).await;
    write_batch(ground, &topic, &["a", "b", "c", "d"]).await;
    let mut consumer = member(ground, ShareConsumerConfig::group(&*group).explicit(), &topic);
    let partition = at(&topic, 0);
    let first = take(&mut consumer).await;
    assert_eq!(first, of(&[(0, "a", 1), (1, "b", 1), (2, "c", 1), (3, "d", 1)]));
    assert_eq!(consumer.assignment(), std::slice::from_ref(&partition));

    // Something is to be said of each.
    consumer.acknowledge(&partition, Offset(0), Accept).expect("it was delivered");
    let unsaid = consumer.poll(Duration::ZERO).await.expect_err("three are left");
    assert!(matches!(unsaid, Error::Misuse { operation: "poll", .. }), "{unsaid}");
    consumer.acknowledge(&partition, Offset(1), Accept).expect("it was delivered");
    consumer.acknowledge(&partition, Offset(1), Release).expect("it has not been told yet");
    consumer.acknowledge_range(&partition, Offset(2)..=Offset(3), Reject).expect("they were delivered");
    for wrong in [4, 17] {
        let error = consumer.acknowledge(&partition, Offset(wrong), Accept).expect_err("there is none");
        assert!(matches!(error, Error::Misuse { operation: "acknowledge", .. }), "{error}");
    }
    let results = consumer.commit().await;
    assert!(matches!(results.get(&partition), Some(Ok(()))) && results.len() == 1, "{results:?}");
    let error = consumer.acknowledge(&partition, Offset(0), Accept).expect_err("it was told");
    assert_eq!(error.kind(), ErrorKind::GiveUp);
    assert!(consumer.commit().await.is_empty(), "nothing is left to be told");

    assert_eq!(take(&mut consumer).await, of(&[(1, "b", 2)]));
    consumer.acknowledge(&partition, Offset(1), Release).expect("it was delivered");
    // What is said travels with the next fetch; how it went is told by a poll.
    assert_eq!(take(&mut consumer).await, of(&[(1, "b", 3)]));
    consumer.acknowledge(&partition, Offset(1), Accept).expect("it was delivered");
    let polled = consumer.poll(QUIET).await.expect("the poll succeeds");
    let told: Vec<_> = polled.outcomes.iter().flat_map(|outcome| outcome.offsets.clone()).collect();
    assert!(polled.batches.is_empty() && polled.outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert!(told.contains(&(Offset(1)..=Offset(1))), "{told:?}");
    assert!(is_quiet(&mut consumer).await);
    let counted = consumer.metrics();
    assert_eq!((counted.records, counted.redeliveries, counted.acknowledge_failures), (6, 2, 0));
    consumer.close().await.expect("it leaves");
}

pub async fn records_that_are_kept_too_long_go_to_others(ground: &Ground) {
    let (time, text) = lock(ground, 1_000);
    let topic = ground.topic(1).await;
    let group = share_group(ground, &[("share.record.lock.duration.ms", &text)]).await;
    let partition = at(&topic, 0);
    let config = ShareConsumerConfig::group(&*group).explicit();
    write_batch(ground, &topic, &["a", "b"]).await;
    let mut slow = member(ground, config.clone(), &topic);
    assert_eq!(take(&mut slow).await, of(&[(0, "a", 1), (1, "b", 1)]));
    assert_eq!(slow.lock_timeout(), Some(time));
    let mut other = member(ground, config, &topic);
    assert_eq!(take(&mut other).await, of(&[(0, "a", 2), (1, "b", 2)]));
    other.acknowledge_range(&partition, Offset(0)..=Offset(1), Accept).expect("they were delivered");
    committed(&mut other).await;
    slow.acknowledge(&partition, Offset(1), Accept).expect("it was delivered");
    let late = slow.commit().await.remove(&partition).expect("it has a result");
    match late {
        // What lies before everything that is not done with is not looked at any more.
        Ok(()) => {}
        Err(error) => {
            assert!(matches!(error, Error::NotAcknowledged { .. }), "{error}");
            assert_eq!(
                (error.kind(), error.code()),
                (ErrorKind::Rejoin, Some(ErrorCode::InvalidRecordState))
            );
        }
    }
    other.close().await.expect("it leaves");
    // What it never said anything of is its no more either, and nobody gets it again.
    slow.close().await.expect("it leaves");
    let mut third = member(ground, ShareConsumerConfig::group(&*group), &topic);
    assert!(is_quiet(&mut third).await);
}

pub async fn a_record_that_is_renewed_stays(ground: &Ground) {
    let (time, text) = lock(ground, 3_000);
    let topic = ground.topic(1).await;
    let group = share_group(ground, &[("share.record.lock.duration.ms", &text)]).await;
    let partition = at(&topic, 0);
    let config = ShareConsumerConfig::group(&*group).explicit();
    write_batch(ground, &topic, &["long", "short"]).await;
    let mut patient = member(ground, config.clone(), &topic);
    let begun = Instant::now();
    assert_eq!(take(&mut patient).await.len(), 2);
    patient.acknowledge(&partition, Offset(1), Accept).expect("it was delivered");
    let mut other = member(ground, config, &topic);
    while begun.elapsed() < time + time / 2 {
        patient.acknowledge(&partition, Offset(0), Renew).expect("it is still its own");
        committed(&mut patient).await;
        // It may poll on meanwhile.
        let polled = patient.poll(Duration::from_millis(200)).await.expect("the poll succeeds");
        assert!(polled.batches.is_empty());
        let polled = other.poll(Duration::from_millis(200)).await.expect("the poll succeeds");
        assert!(polled.batches.is_empty(), "nobody else gets it");
    }
    patient.acknowledge(&partition, Offset(0), Accept).expect("it is still its own");
    committed(&mut patient).await;
    assert!(is_quiet(&mut other).await);
}

pub async fn a_record_that_is_delivered_too_often_is_given_up(ground: &Ground) {
    let topic = ground.topic(1).await;
    let group = share_group(ground, &[("share.delivery.count.limit", "2")]).await;
    let partition = at(&topic, 0);
    write_batch(ground, &topic, &["poison", "good"]).await;
    let mut consumer = member(ground, ShareConsumerConfig::group(&*group).explicit(), &topic);
    assert_eq!(take(&mut consumer).await, of(&[(0, "poison", 1), (1, "good", 1)]));
    consumer.acknowledge(&partition, Offset(0), Release).expect("it was delivered");
    consumer.acknowledge(&partition, Offset(1), Accept).expect("it was delivered");
    assert_eq!(take(&mut consumer).await, of(&[(0, "poison", 2)]));
    consumer.acknowledge(&partition, Offset(0), Release).expect("it was delivered");
    committed(&mut consumer).await;
    assert!(is_quiet(&mut consumer).await, "it is given up");
    write_batch(ground, &topic, &["later"]).await;
    assert_eq!(take(&mut consumer).await, of(&[(2, "later", 1)]));
}

pub async fn what_a_consumer_leaves_behind_comes_again(ground: &Ground) {
    let topic = ground.topic(1).await;
    let group = share_group(ground, &[]).await;
    write_batch(ground, &topic, &["a", "b", "c"]).await;
    let config = ShareConsumerConfig::group(&*group);
    let all = of(&[(0, "a", 1), (1, "b", 1), (2, "c", 1)]);
    // A consumer of its own connections, which end with it.
    let mut dies = member(ground, config.clone(), &topic);
    assert_eq!(take(&mut dies).await, all);
    drop(dies);
    let mut closes = member(ground, config.clone(), &topic);
    let again = take(&mut closes).await;
    assert_eq!(again, times_over(&all, 2));
    // Only what it said something of is done with.
    closes.acknowledge(&at(&topic, 0), Offset(0), Accept).expect("it was delivered");
    closes.close().await.expect("it leaves");
    let mut leaves = member(ground, config.clone(), &topic);
    let again = take(&mut leaves).await;
    assert_eq!(again, times_over(&all[1..], 3));
    leaves.unsubscribe().await.expect("it leaves");
    assert!(leaves.subscription().is_empty() && leaves.assignment().is_empty());
    let error = leaves.poll(Duration::ZERO).await.expect_err("it reads nothing");
    assert!(matches!(error, Error::Misuse { operation: "poll", .. }), "{error}");
    leaves.subscribe([topic.as_str()]).expect("it can come back");
    let again = take_all(&mut leaves, 2).await;
    assert_eq!(again, times_over(&all[1..], 4));
    committed(&mut leaves).await;
    assert!(is_quiet(&mut leaves).await);
}

pub async fn transactions_are_delivered_as_the_group_says(ground: &Ground) {
    let topic = ground.topic(1).await;
    let producer = ground.transactional(&ground.name("id")).await;
    for (value, commits) in [("one", true), ("two", false), ("three", true)] {
        producer.begin_transaction().expect("none is open");
        ground.write(&producer, &topic, 0, &[value]).await;
        match commits {
            true => producer.commit_transaction().await.expect("it is committed"),
            false => producer.abort_transaction().await.expect("it is aborted"),
        }
    }
    for (level, expected) in [
        ("read_committed", &[(0, "one", 1), (4, "three", 1)][..]),
        ("read_uncommitted", &[(0, "one", 1), (2, "two", 1), (4, "three", 1)]),
    ] {
        let group = share_group(ground, &[("share.isolation.level", level)]).await;
        let mut consumer = member(ground, ShareConsumerConfig::group(&*group), &topic);
        let mut all = take_all(&mut consumer, expected.len()).await;
        all.sort();
        assert_eq!(all, of(expected), "{level}");
        committed(&mut consumer).await;
        assert!(is_quiet(&mut consumer).await, "the ends of transactions are nobody's");
        consumer.close().await.expect("it leaves");
    }
}

pub async fn a_number_of_records_is_kept_to(ground: &Ground) {
    let topic = ground.topic(1).await;
    let group = share_group(ground, &[]).await;
    write_batch(ground, &topic, &["0", "1", "2", "3", "4", "5", "6"]).await;
    let exact = ShareConsumerConfig {
        max_poll_records: 3,
        acquire_mode: AcquireMode::RecordLimit,
        ..ShareConsumerConfig::group(&*group)
    };
    let whole = ShareConsumerConfig { acquire_mode: AcquireMode::BatchOptimized, ..exact.clone() };
    let mut exact = member(ground, exact, &topic);
    assert_eq!(take(&mut exact).await, of(&[(0, "0", 1), (1, "1", 1), (2, "2", 1)]));
    let mut whole = member(ground, whole, &topic);
    assert_eq!(take(&mut whole).await.len(), 4, "what is free of the batch");
    committed(&mut whole).await;
    // The other three, and not a record of those that were never its own.
    drop(exact);
    let again = take(&mut whole).await;
    assert_eq!(again.iter().map(|(offset, _, _)| *offset).collect::<Vec<_>>(), [0, 1, 2]);
}

pub async fn a_lost_answer_leaves_open_what_was_said(ground: &Ground) {
    let topic = ground.topic(1).await;
    let group = share_group(ground, &[]).await;
    write_batch(ground, &topic, &["a"]).await;
    let (lossy, client) = ground.lossy().await;
    let mut consumer = client.share_consumer(ShareConsumerConfig::group(&*group)).expect("it is right");
    consumer.subscribe([topic.as_str()]).expect("there is a topic");
    assert_eq!(take(&mut consumer).await, of(&[(0, "a", 1)]));
    lossy.lose(Some(Loss::Answer(ApiKey::ShareAcknowledge)));
    let results: BTreeMap<_, _> = consumer.commit().await;
    let error = results[&at(&topic, 0)].as_ref().expect_err("the answer is lost");
    assert!(matches!(error, Error::AcknowledgementUnknown { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    lossy.lose(None);
    write_batch(ground, &topic, &["b"]).await;
    // It did count, and the consumer goes on in another session.
    assert_eq!(take(&mut consumer).await, of(&[(1, "b", 1)]));
    committed(&mut consumer).await;
    let counted = consumer.metrics();
    assert_eq!((counted.acknowledged, counted.acknowledge_failures, counted.sessions), (1, 1, 2));
}

pub async fn a_name_that_is_taken_is_told(ground: &Ground) {
    let topic = ground.topic(1).await;
    let group = ground.name("group");
    let mut reader = ground.consumer(thalweg_client::ConsumerConfig::group(&*group));
    reader.subscribe([topic.as_str()]).expect("it has a group");
    let deadline = Instant::now() + PATIENCE;
    while reader.assignment().is_empty() {
        assert!(Instant::now() < deadline, "it does not join");
        reader.poll(Duration::from_millis(50)).await.expect("the poll succeeds");
    }
    let mut consumer = member(ground, ShareConsumerConfig::group(&*group), &topic);
    let error = loop {
        match consumer.poll(Duration::from_millis(200)).await {
            Ok(_) => assert!(Instant::now() < deadline, "it is not told"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::GiveUp, "{error}");
    sleep(Duration::from_millis(50)).await;
    consumer.poll(Duration::from_millis(50)).await.expect("it is told once");
    let config = ShareConsumerConfig { max_poll_records: 0, ..ShareConsumerConfig::group("group") };
    for wrong in [ShareConsumerConfig::default(), config] {
        let refused = ground.client.share_consumer(wrong).err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::GiveUp));
    }
}
