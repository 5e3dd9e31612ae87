//! A broker in this process, and what the tests do with it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use thalweg_broker::{Broker, BrokerConfig};
use thalweg_client::{
    Client, ClientConfig, CommittedOffset, ConsumerConfig, Isolation, NewTopic, OffsetReset, OffsetSpec,
    Producer, ProducerConfig, ProducerRecord,
};
use thalweg_protocol::{Offset, TopicPartition};
use thalweg_streams::{Event, Streams};
use tokio::runtime::Runtime;

/// A broker, a client of it, and a directory for states.
pub struct Cluster {
    runtime: Runtime,
    broker: Option<Broker>,
    client: Client,
    config: ClientConfig,
    pub directory: tempfile::TempDir,
}

/// A committed record of an output topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub partition: i32,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
}

/// How long a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

impl Cluster {
    /// An embedded broker.
    pub fn start(topics: &[(&str, i32)]) -> Self {
        Self::start_with(topics, BrokerConfig::default())
    }

    pub fn start_with(topics: &[(&str, i32)], broker: BrokerConfig) -> Self {
        // Shown with --nocapture and RUST_LOG; another test may have set it up.
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let _already = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let runtime = Runtime::new().expect("a runtime");
        let broker = BrokerConfig { data_dir: directory.path().join("log"), ..broker };
        let broker = runtime.block_on(Broker::start(broker)).expect("a broker");
        let config = ClientConfig::with_connector(std::sync::Arc::new(broker.connect()));
        let client = runtime.block_on(Client::connect(config.clone())).expect("connected");
        let cluster = Self { runtime, broker: Some(broker), client, config, directory };
        topics.iter().for_each(|&(topic, partitions)| cluster.create_topic(topic, partitions));
        cluster
    }

    pub fn client_config(&self) -> ClientConfig {
        self.config.clone()
    }

    pub fn producer(&self, config: ProducerConfig) -> Producer {
        let _entered = self.runtime.enter();
        self.client.producer(config).expect("a producer")
    }

    /// A transactional producer that has taken over its id.
    pub fn transactional(&self, config: ProducerConfig) -> Producer {
        let producer = self.producer(config);
        self.block_on(producer.init_transactions()).expect("the transactional id is taken over");
        producer
    }

    /// The end of each partition of a topic.
    pub fn ends(&self, topic: &str, isolation: Isolation) -> Vec<i64> {
        self.block_on(async {
            let count = self.client.partition_count(topic).await.expect("it exists");
            let wanted: Vec<_> =
                (0..count).map(|at| (TopicPartition::new(topic, at), OffsetSpec::Latest)).collect();
            let mut listed = self.client.admin().list_offsets(&wanted, isolation).await.expect("known");
            let mut end = |(at, _): &(TopicPartition, _)| listed.remove(at)?.offset;
            wanted.iter().map(|wanted| end(wanted).expect("an end").0).collect()
        })
    }

    /// Where the group `app` goes on in each partition of a topic.
    pub fn committed(&self, topic: &str) -> Vec<Option<i64>> {
        self.block_on(async {
            let count = self.client.partition_count(topic).await.expect("it exists");
            let wanted: Vec<_> = (0..count).map(|at| TopicPartition::new(topic, at)).collect();
            let committed = self.client.admin().committed_offsets("app", Some(&wanted), true).await;
            let committed = committed.expect("known");
            wanted.iter().map(|at| committed.get(at).map(|committed| committed.offset.0)).collect()
        })
    }

    /// Makes the group `app`, which must not run, go on at these offsets of a topic's partitions.
    pub fn set_committed(&self, topic: &str, offsets: impl IntoIterator<Item = i64>) {
        let offset =
            |(at, offset)| (TopicPartition::new(topic, at as i32), CommittedOffset::new(Offset(offset)));
        let offsets: Vec<_> = offsets.into_iter().enumerate().map(offset).collect();
        self.block_on(self.client.admin().commit_offsets("app", &offsets)).expect("committed");
    }

    pub fn create_topic(&self, topic: &str, partitions: i32) {
        let new = NewTopic::new(topic, partitions).config("retention.ms", "-1");
        self.block_on(self.client.admin().create_topic(new)).expect("created");
    }

    pub fn delete_topic(&self, topic: &str) {
        self.block_on(self.client.admin().delete_topic(topic)).expect("deleted");
    }

    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Sends the records and waits until all are written.
    pub fn produce<'r>(&self, topic: &str, records: impl IntoIterator<Item = (&'r str, &'r str, i64)>) {
        let producer = self.producer(ProducerConfig::default());
        self.block_on(async {
            for (key, value, timestamp) in records {
                let record = ProducerRecord::new(topic, value.to_owned()).key(key.to_owned());
                producer.send(record.timestamp(timestamp)).await.expect("sent");
            }
            producer.flush().await.expect("written");
        });
    }

    /// Reads the committed records of a topic up to its end.
    pub fn read(&self, topic: &str) -> Vec<Read> {
        let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::default() };
        self.block_on(async {
            let mut consumer = self.client.consumer(config).expect("a consumer");
            let count = self.client.partition_count(topic).await.expect("it exists");
            let partitions: Vec<_> = (0..count).map(|at| TopicPartition::new(topic, at)).collect();
            consumer.assign(partitions.clone()).expect("assigned");
            // Markers follow a commit a moment later: everything that is written is waited for.
            let wanted: Vec<_> =
                partitions.iter().map(|partition| (partition.clone(), OffsetSpec::Latest)).collect();
            let listed = self.client.admin().list_offsets(&wanted, Isolation::ReadUncommitted).await;
            let ends: BTreeMap<_, _> = listed
                .expect("known")
                .into_iter()
                .map(|(partition, listed)| (partition, listed.offset.expect("an end")))
                .collect();
            let mut read = Vec::new();
            let mut left = ends.clone();
            left.retain(|_, end| end.0 > 0);
            while !left.is_empty() {
                let polled = consumer.poll(Duration::from_millis(500)).await.expect("readable");
                for fetched in polled.batches {
                    if left.get(&fetched.partition).is_some_and(|end| fetched.next_offset >= *end) {
                        left.remove(&fetched.partition);
                    }
                    let partition = fetched.partition.partition;
                    for record in fetched.into_records() {
                        let record = record.expect("well-formed");
                        read.push(Read { partition, key: record.key, value: record.value });
                    }
                }
            }
            consumer.close().await.expect("closed");
            read
        })
    }

    /// The numbers of each key, in order.
    pub fn numbers(&self, topic: &str) -> BTreeMap<String, Vec<i64>> {
        let mut numbers: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for read in self.read(topic) {
            let key = String::from_utf8(read.key.expect("a key").to_vec()).expect("text");
            let value = read.value.expect("a value").as_ref().try_into().expect("8 bytes");
            numbers.entry(key).or_default().push(i64::from_be_bytes(value));
        }
        numbers
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(broker) = self.broker.take() {
            self.runtime.block_on(broker.shutdown()).expect("an orderly end");
        }
    }
}

/// Waits for an event; fails when the application does.
pub fn wait_for(streams: &Streams, what: &str, mut is_it: impl FnMut(&Event) -> bool) -> Event {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match streams.events().recv_deadline(deadline) {
            Ok(event) if is_it(&event) => return event,
            Ok(Event::Failed { reason }) => panic!("waiting for {what}: {reason}"),
            Ok(_) => {}
            Err(error) => panic!("waiting for {what}: {error}"),
        }
    }
}

/// Waits until `is_so`.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}
