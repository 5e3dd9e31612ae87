//! A queue whose broker stops, is killed and comes back.

use std::path::Path;
use std::time::Duration;

use bytestring::ByteString;
use tempfile::TempDir;
use thalweg_broker::{Broker, BrokerConfig};
use thalweg_client::{
    AcknowledgeType, Client, ClientConfig, ConfigChanges, ConfigResource, NewTopic, ProducerConfig,
    ProducerRecord, ShareConsumer, ShareConsumerConfig,
};
use thalweg_protocol::{Offset, TopicPartition};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);
const GROUP: &str = "workers";
const TOPIC: &str = "jobs";

async fn broker(directory: &Path, listen: &str) -> (Broker, String) {
    let config = BrokerConfig {
        data_dir: directory.to_owned(),
        listen: vec![listen.to_owned()],
        ..BrokerConfig::default()
    };
    let broker = Broker::start(config).await.expect("the broker starts");
    let bootstrap = broker.bootstrap().expect("it listens");
    (broker, bootstrap)
}

async fn client(bootstrap: &str) -> Client {
    Client::connect(ClientConfig::with_bootstrap(bootstrap)).await.expect("the broker answers")
}

fn member(client: &Client) -> ShareConsumer {
    let config = ShareConsumerConfig::group(GROUP).explicit();
    let mut consumer = client.share_consumer(config).expect("the configuration is right");
    consumer.subscribe([TOPIC]).expect("there is a topic");
    consumer
}

/// Polls until so many records have come: their offsets and how often they were delivered.
async fn take(consumer: &mut ShareConsumer, count: usize) -> Vec<(i64, i16)> {
    let deadline = Instant::now() + PATIENCE;
    let mut all = Vec::new();
    while all.len() < count {
        assert!(Instant::now() < deadline, "only {all:?} came");
        let polled = consumer.poll(Duration::from_millis(300)).await.expect("what fails passes");
        for batches in polled.batches {
            for record in batches.into_records() {
                let record = record.expect("nothing is damaged");
                all.push((record.record.offset.0, record.delivery_count));
            }
        }
    }
    all.sort_unstable();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_outlives_the_broker() {
    let directory = TempDir::new().expect("there is room");
    let (first, bootstrap) = broker(directory.path(), "127.0.0.1:0").await;
    let connected = client(&bootstrap).await;
    connected.admin().create_topic(NewTopic::new(TOPIC, 1)).await.expect("it is created");
    let group = ConfigResource::Group(ByteString::from_static(GROUP));
    let changes = ConfigChanges::of(group).set("share.auto.offset.reset", "earliest");
    for result in connected.admin().alter_configs(&[changes], false).await.into_values() {
        result.expect("the group takes its configs");
    }
    let producer = connected.producer(ProducerConfig::default()).expect("the configuration is right");
    for number in 0..5 {
        producer.send(ProducerRecord::new(TOPIC, number.to_string())).await.expect("there is room");
    }
    producer.flush().await.expect("all are written");
    let partition = TopicPartition::new(TOPIC, 0);
    let mut consumer = member(&connected);
    assert_eq!(take(&mut consumer, 5).await.len(), 5);
    for (offset, what) in [
        (0, AcknowledgeType::Accept),
        (1, AcknowledgeType::Release),
        (2, AcknowledgeType::Reject),
        (4, AcknowledgeType::Accept),
    ] {
        consumer.acknowledge(&partition, Offset(offset), what).expect("it was delivered");
    }
    for result in consumer.commit().await.into_values() {
        result.expect("it is written down");
    }
    // What a broker that is killed leaves behind is what is in its files at that moment.
    let killed = TempDir::new().expect("there is room");
    copy(directory.path(), killed.path());
    let (again, elsewhere) = broker(killed.path(), "127.0.0.1:0").await;
    let other = client(&elsewhere).await;
    let mut heir = member(&other);
    assert_eq!(take(&mut heir, 2).await, [(1, 2), (3, 1)], "what nobody is done with");
    drop((heir, other));
    again.shutdown().await.expect("it stops");

    // The same consumer goes on when its broker is back, though what it had is not its any more.
    consumer.acknowledge(&partition, Offset(3), AcknowledgeType::Accept).expect("it was delivered");
    first.shutdown().await.expect("it stops");
    let (second, _) = broker(directory.path(), &bootstrap).await;
    let deadline = Instant::now() + PATIENCE;
    let mut failures = 0;
    let mut all = Vec::new();
    while all.len() < 2 {
        assert!(Instant::now() < deadline, "only {all:?} came");
        let polled = consumer.poll(Duration::from_millis(300)).await.expect("what fails passes");
        failures += polled.outcomes.iter().filter(|outcome| outcome.result.is_err()).count();
        for batches in polled.batches {
            for range in &batches.ranges {
                all.push((range.first.0, range.last.0));
                let offsets = range.first..=range.last;
                consumer.acknowledge_range(&partition, offsets, AcknowledgeType::Accept).expect("they came");
            }
        }
    }
    all.sort_unstable();
    assert_eq!((all, failures), (vec![(1, 1), (3, 3)], 1));
    for result in consumer.commit().await.into_values() {
        result.expect("it is written down");
    }
    consumer.close().await.expect("it leaves");
    drop((producer, connected));
    second.shutdown().await.expect("it stops");
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&to).expect("it is not there");
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("it can be copied");
        }
    }
}
