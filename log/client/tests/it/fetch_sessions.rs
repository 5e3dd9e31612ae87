//! Consumers whose fetch sessions come and go (KIP-227).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use thalweg_broker::{Broker, BrokerConfig};
use thalweg_client::{
    Client, ClientConfig, Consumer, ConsumerConfig, NewTopic, OffsetReset, ProducerConfig, ProducerRecord,
};
use thalweg_protocol::TopicPartition;
use tokio::time::Instant;

/// How long something may take that normally takes a moment.
const PATIENCE: Duration = Duration::from_secs(30);

const PARTITIONS: i32 = 8;
const ROUNDS: usize = 40;

async fn reader(client: &Client) -> Consumer {
    let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::default() };
    let mut consumer = client.consumer(config).expect("the configuration is right");
    let partitions = (0..PARTITIONS).map(|partition| TopicPartition::new("t", partition));
    consumer.assign(partitions).expect("it reads nothing yet");
    consumer
}

/// Polls until `count` records of each partition have come, in order.
async fn read_all(mut consumer: Consumer, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    let mut values: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
    while values.values().map(Vec::len).sum::<usize>() < count * PARTITIONS as usize {
        assert!(Instant::now() < deadline, "only these came: {values:?}");
        let polled = consumer.poll(Duration::from_millis(100)).await.expect("the poll succeeds");
        for batches in polled.batches {
            let partition = batches.partition.partition;
            for record in batches.into_records() {
                let value = record.expect("nothing is damaged").value.expect("it has a value");
                let value = std::str::from_utf8(&value).expect("text").parse().expect("a number");
                values.entry(partition).or_default().push(value);
            }
        }
    }
    let expected: Vec<usize> = (0..count).collect();
    assert!(values.values().all(|values| *values == expected), "{values:?}");
}

/// With room for one session only, and none that may keep it, consumers take it from one another all the time; without
/// room they do without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_that_lose_their_sessions_read_everything() {
    for sessions in [0, 1, 100] {
        let directory = TempDir::new().expect("there is room for a directory");
        let config = BrokerConfig {
            data_dir: directory.path().to_owned(),
            fetch_sessions: sessions,
            fetch_session_min_idle_ms: 0,
            ..BrokerConfig::default()
        };
        let broker = Broker::start(config).await.expect("the broker starts");
        let config = ClientConfig::with_connector(Arc::new(broker.connect()));
        let client = Client::connect(config).await.expect("the broker answers");
        client.admin().create_topic(NewTopic::new("t", PARTITIONS)).await.expect("the topic is created");
        let mut readers = Vec::new();
        for _ in 0..3 {
            readers.push(tokio::spawn(read_all(reader(&client).await, ROUNDS)));
        }
        let producer = client.producer(ProducerConfig::default()).expect("the configuration is right");
        for round in 0..ROUNDS {
            for partition in 0..PARTITIONS {
                let record = ProducerRecord::new("t", round.to_string()).partition(partition);
                producer.send(record).await.expect("there is room");
            }
            producer.flush().await.expect("all are written");
        }
        for reader in readers {
            reader.await.expect("it reads everything");
        }
        drop((producer, client));
        broker.shutdown().await.expect("everything can be synced");
    }
}
