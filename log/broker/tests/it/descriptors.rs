//! A node that runs out of file descriptors: connections wait, what needs a file is refused so that clients try again, the
//! rest goes on; and when there are descriptors again, so does everything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_broker::BrokerConfig;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use thalweg_protocol::messages::metadata::MetadataRequest;
use tokio::time::{sleep, timeout};

use crate::calls::{PRODUCE, batch, create_topic, create_topic_with, fetch, only, produce_request, read_all};
use crate::committing::{commit_request, fetch_offset};
use crate::grouping::{code, find_coordinator};
use crate::harness::Client;
use crate::node_process::{self, Node};

/// So many descriptors the node may have.
const LIMIT: u64 = 512;

/// Partitions that could not be opened are tried again every five seconds.
const LONG: Duration = Duration::from_secs(30);

fn config(config: &mut BrokerConfig) {
    let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
    // SAFETY: the pointer is to a value that outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    // Files that are idle from one time to the next are closed, and none is deleted.
    config.retention_check_interval_ms = 100;
    config.topic_defaults.insert("retention.ms".to_owned(), "-1".to_owned());
}

/// Writes to a topic, and remembers what was acknowledged.
struct Writer {
    topic: String,
    /// Every value that was sent.
    sent: BTreeSet<String>,
    /// What was acknowledged, by offset.
    acknowledged: BTreeMap<i64, String>,
}

impl Writer {
    fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), sent: BTreeSet::new(), acknowledged: BTreeMap::new() }
    }

    async fn write(&mut self, client: &Client) -> ErrorCode {
        let value = format!("{} {}", self.sent.len(), "x".repeat(6_000));
        let mut request = produce_request(&self.topic, -1, vec![(0, batch([&value]))]);
        // The first sync of a log writes files: it is put off, and whoever waits for it is told to try again.
        request.timeout_ms = 300;
        self.sent.insert(value.clone());
        let answer = only(client.call(request, PRODUCE).await);
        if answer.error_code == 0 {
            assert_eq!(self.acknowledged.insert(answer.base_offset, value), None, "an offset is given once");
        }
        code(answer.error_code)
    }

    /// Writes until it is acknowledged.
    async fn write_again(&mut self, client: &Client) {
        let start = Instant::now();
        loop {
            match self.write(client).await {
                ErrorCode::None => return,
                refused => assert!(refused.is_retriable(), "{}: {refused}", self.topic),
            }
            assert!(start.elapsed() < LONG, "{} does not come back", self.topic);
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Everything that was acknowledged is there, in its place, and nothing that nobody sent.
    async fn check(&self, client: &Client) {
        let found: BTreeMap<_, _> = read_all(client, &self.topic, 0).await.into_iter().collect();
        for (offset, value) in &self.acknowledged {
            assert!(found.get(offset) == Some(value), "{}: offset {offset} is lost or another", self.topic);
        }
        assert!(found.values().all(|value| self.sent.contains(value)), "{}", self.topic);
    }
}

async fn delete(client: &Client, topic: &str) -> ErrorCode {
    let topic = DeleteTopicState { name: Some(topic.into()), ..Default::default() };
    let request = DeleteTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    code(client.call(request, 6).await.responses.remove(0).error_code)
}

/// Waits until the first record of a topic, whose file has been closed, can be read, or cannot for the moment.
async fn first_of(client: &Client, topic: &str) -> ErrorCode {
    code(fetch(client, topic, 0).await.error_code)
}

async fn commit(client: &Client, offset: i64) {
    let committed = client.call(commit_request("g", "plain", 0, offset), 9).await;
    assert_eq!(code(committed.topics[0].partitions[0].error_code), ErrorCode::None);
}

async fn metadata(client: &Client) {
    client.call(MetadataRequest { topics: Some(Vec::new()), ..Default::default() }, 9).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_descriptors_clients_wait_or_try_again() {
    if node_process::is_node() {
        return node_process::serve(config).await;
    }
    let dir = TempDir::new().expect("a temporary directory");
    let name = "descriptors::without_descriptors_clients_wait_or_try_again";
    let mut node = Node::start(name, dir.path()).await;
    let client = node.connect().await;
    let mut writers = [Writer::new("rolling"), Writer::new("plain")];
    let small = [("segment.bytes", "20000")];
    assert_eq!(create_topic_with(&client, "rolling", 1, &small).await.error_code, 0);
    create_topic(&client, "plain", 1).await;
    find_coordinator(&client, "g", 0).await;
    commit(&client, 0).await;
    for _ in 0..10 {
        for writer in &mut writers {
            writer.write_again(&client).await;
        }
    }
    // Until the files of old segments are closed.
    sleep(Duration::from_millis(1_000)).await;

    node.leave_descriptors(Some(0)).await;
    let waiting = node.connect().await;
    let mut served = tokio::spawn(async move { metadata(&waiting).await });
    let [rolling, plain] = &mut writers;
    let refused = loop {
        match rolling.write(&client).await {
            ErrorCode::None => assert!(rolling.sent.len() < 20, "a new segment needs descriptors"),
            refused => break refused,
        }
    };
    assert_eq!(refused, ErrorCode::KafkaStorageError);
    assert_eq!(first_of(&client, "rolling").await, ErrorCode::KafkaStorageError);
    // What needs no file goes on.
    for offset in 1..20 {
        plain.write_again(&client).await;
        commit(&client, offset).await;
    }
    plain.check(&client).await;
    metadata(&client).await;
    // The metadata takes the topic; its partition has no leader until there are descriptors.
    create_topic(&client, "new", 1).await;
    let mut new = Writer::new("new");
    assert!(new.write(&client).await.is_retriable());
    assert!(timeout(Duration::from_millis(300), &mut served).await.is_err(), "it has no descriptor");

    node.leave_descriptors(None).await;
    timeout(LONG, served).await.expect("it is accepted in the end").expect("it is answered");
    assert_eq!(first_of(&client, "rolling").await, ErrorCode::None);
    for writer in writers.iter_mut().chain([&mut new]) {
        writer.write_again(&client).await;
        writer.check(&client).await;
    }
    assert!(node.lives());
    node.stop().await;
    let node = Node::start(name, dir.path()).await;
    let client = node.connect().await;
    for writer in writers.iter().chain([&new]) {
        writer.check(&client).await;
    }
    find_coordinator(&client, "g", 0).await;
    assert_eq!(fetch_offset(&client, "g", "plain", true).await.committed_offset, 19);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_few_descriptors_left_nothing_is_done_by_halves() {
    if node_process::is_node() {
        return node_process::serve(config).await;
    }
    let dir = TempDir::new().expect("a temporary directory");
    let name = "descriptors::with_a_few_descriptors_left_nothing_is_done_by_halves";
    let mut node = Node::start(name, dir.path()).await;
    let client = node.connect().await;
    let mut writers = vec![Writer::new("a"), Writer::new("b")];
    let small = [("segment.bytes", "20000")];
    for topic in ["a", "b", "gone 0"].map(|topic| topic.replace(' ', "-")) {
        assert_eq!(create_topic_with(&client, &topic, 1, &small).await.error_code, 0);
    }
    let mut refusals = 0;
    for left in 0..16 {
        node.leave_descriptors(Some(left)).await;
        let mut taken = |code: ErrorCode, what: &str| {
            assert!(code == ErrorCode::None || code.is_retriable(), "{what} with {left} left: {code}");
            refusals += usize::from(code != ErrorCode::None);
        };
        for _ in 0..4 {
            for writer in &mut writers {
                taken(writer.write(&client).await, "produce");
            }
        }
        taken(first_of(&client, "a").await, "fetch");
        let (before, next) = (format!("gone-{left}"), format!("gone-{}", left + 1));
        taken(code(create_topic_with(&client, &next, 1, &small).await.error_code), "create");
        taken(delete(&client, &before).await, "delete");
        let mut new = Writer::new(&format!("new-{left}"));
        taken(code(create_topic_with(&client, &new.topic, 1, &small).await.error_code), "create");
        taken(new.write(&client).await, "produce");
        writers.push(new);
        node.leave_descriptors(None).await;
        // Some of these ask for what could not be done before.
        for writer in &mut writers[..2] {
            writer.write_again(&client).await;
        }
    }
    assert!(refusals > 20, "only {refusals} refusals");
    for writer in &mut writers {
        writer.write_again(&client).await;
        writer.check(&client).await;
    }
    // Without descriptors it cannot write down that it has stopped in order, and starts as after a kill.
    node.leave_descriptors(Some(0)).await;
    node.kill();
    let node = Node::start(name, dir.path()).await;
    let client = node.connect().await;
    for writer in &mut writers {
        writer.check(&client).await;
        writer.write_again(&client).await;
    }
    node.stop().await;
}
