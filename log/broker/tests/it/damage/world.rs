//! A node with something of everything, and its files in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;
use thalweg_broker::BrokerConfig;
use thalweg_protocol::messages::alter_client_quotas::{
    AlterClientQuotasRequest, EntityData, EntryData, OpData,
};
use thalweg_protocol::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use thalweg_protocol::messages::init_producer_id::InitProducerIdRequest;
use thalweg_protocol::messages::share_acknowledge::{
    self, AcknowledgePartition, AcknowledgeTopic, ShareAcknowledgeRequest,
};
use thalweg_protocol::messages::share_fetch::{
    FetchPartition, FetchTopic, ShareFetchRequest, ShareFetchResponse,
};
use thalweg_protocol::messages::share_group_heartbeat::ShareGroupHeartbeatRequest;
use thalweg_protocol::record::BatchBuilder;
use thalweg_protocol::{Compression, ErrorCode, Uuid};

use crate::calls::{batch_at, create_topic_with, produce};
use crate::committing::commit_request;
use crate::consumer_groups;
use crate::grouping::{code, find_coordinator, join_request, sync_request};
use crate::harness::{Client, Harness, Way};
use crate::node_process::Node;
use crate::transaction_rules::Txn;

/// Content by path, relative to the data directory.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// How the node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Closed,
    Killed,
}

/// Plain records, compacted ones, some whose first were deleted, transactions, and what share groups read.
const TOPICS: [&str; 5] = ["plain", "kept", "cut", "t", "shared"];

/// 2013-01-01; nothing is deleted for its age.
pub const THEN_MS: i64 = 1_356_998_400_000;

pub struct World {
    stop: Stop,
    files: Files,
    place: TempDir,
}

/// The settings of a node here.
pub fn settings(config: &mut BrokerConfig) {
    config.offsets_topic_partitions = 1;
    config.transaction_topic_partitions = 1;
    config.share_state_topic_partitions = 1;
    config.cleaner_check_interval_ms = 50;
    // Its files are large, and damage to them is swept through elsewhere.
    config.journal_files = 0;
    config.topic_defaults.insert("retention.ms".to_owned(), "-1".to_owned());
}

/// The topic that a file belongs to; `None` for those of the node itself.
pub fn topic_of(path: &Path) -> Option<&str> {
    let directory = path.parent()?.to_str()?;
    Some(directory.rsplit_once('-')?.0)
}

impl World {
    pub async fn new(stop: Stop, test: &str) -> Self {
        let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let place = place.expect("a temporary directory");
        let dir = place.path().join("first");
        let node = Node::start(test, &dir).await;
        write(&node.connect().await, &dir).await;
        // Until it is written down that all of it is synced.
        tokio::time::sleep(Duration::from_millis(500)).await;
        match stop {
            Stop::Closed => node.stop().await,
            Stop::Killed => node.kill(),
        }
        let mut files = Files::new();
        read_tree(&dir, Path::new(""), &mut files);
        Self { stop, files, place }
    }

    pub fn stop(&self) -> Stop {
        self.stop
    }

    pub fn files(&self) -> &Files {
        &self.files
    }

    /// A directory with these files.
    pub fn place(&self, files: &Files) -> TempDir {
        let place = tempfile::tempdir_in(self.place.path()).expect("a temporary directory");
        // A directory stays where its last file goes.
        for path in self.files.keys() {
            let parent = place.path().join(path).parent().expect("it has one").to_owned();
            fs::create_dir_all(parent).expect("it can be made");
        }
        for (path, bytes) in files {
            fs::write(place.path().join(path), bytes).expect("it can be written");
        }
        place
    }

    pub fn config(&self, dir: &Path) -> BrokerConfig {
        let mut config = Harness::config(Way::InProcess, dir);
        settings(&mut config);
        // What is looked at stays as it is.
        config.cleaner_check_interval_ms = 3_600_000;
        config
    }
}

fn read_tree(root: &Path, below: &Path, files: &mut Files) {
    for entry in fs::read_dir(root.join(below)).expect("a directory") {
        let entry = entry.expect("an entry");
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            read_tree(root, &path, files);
        } else {
            files.insert(path, fs::read(entry.path()).expect("it can be read"));
        }
    }
}

async fn write(client: &Client, dir: &Path) {
    let mut ids = BTreeMap::new();
    for topic in TOPICS {
        let mut configs = vec![("segment.bytes", "4096")];
        if topic == "kept" {
            configs.extend([("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.01")]);
            configs.push(("file.delete.delay.ms", "0"));
        }
        let created = create_topic_with(client, topic, 1, &configs).await;
        assert_eq!(created.error_code, 0, "{created:?}");
        ids.insert(topic, created.topic_id);
    }
    find_coordinator(client, "g", 0).await;
    find_coordinator(client, "tx", 1).await;
    for turn in 0..8 {
        let at = THEN_MS + 1_000 * turn;
        for topic in ["plain", "cut", "shared"] {
            produce(
                client,
                topic,
                batch_at(at, (0..3).map(|n| format!("{topic} {turn} {n} {}", "x".repeat(420)))),
            )
            .await;
        }
        produce(client, "kept", keyed(at, &[("same", &format!("{turn}")), (&format!("key {turn}"), "x")]))
            .await;
    }
    delete_records(client, "cut", 5).await;
    transactions(client).await;
    groups(client, ids["plain"]).await;
    share_group(client, ids["shared"]).await;
    quota(client).await;
    // Until the first segments of the compacted topic are one.
    while fs::read(dir.join("kept-0/00000000000000000000.log")).is_ok_and(|log| log.len() > 3_000) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn keyed(timestamp: i64, records: &[(&str, &str)]) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None, None, 1024);
    for (key, value) in records {
        let value = format!("{value} {}", "x".repeat(400));
        builder.append(timestamp, Some(key.as_bytes()), Some(value.as_bytes()), []).expect("there is room");
    }
    builder.finish(&mut Default::default(), None).into_bytes()
}

async fn delete_records(client: &Client, topic: &str, offset: i64) {
    let partition = DeleteRecordsPartition { partition_index: 0, offset };
    let topic = DeleteRecordsTopic { name: topic.into(), partitions: vec![partition] };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000 };
    let deleted = client.call(request, 2).await;
    assert_eq!(deleted.topics[0].partitions[0].error_code, 0, "{deleted:?}");
}

/// The transactional ids: one that has committed, one that has aborted, one whose transaction is open, and one that is new.
pub const TRANSACTIONAL_IDS: [&str; 4] = ["committed", "aborted", "open", "new"];

async fn transactions(client: &Client) {
    for id in TRANSACTIONAL_IDS {
        let request = InitProducerIdRequest {
            transactional_id: Some(id.into()),
            // Longer than all of this takes.
            transaction_timeout_ms: 900_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let answer = loop {
            let answer = client.call(request.clone(), 5).await;
            if !code(answer.error_code).is_retriable() {
                break answer;
            }
        };
        let mut txn = Txn { id, producer: answer.producer_id, epoch: answer.producer_epoch };
        if id == "new" {
            continue;
        }
        for sequence in 0..3 {
            let value = format!("{id} {sequence} {}", "x".repeat(600));
            assert_eq!(txn.produce(client, sequence, &value, 12).await, ErrorCode::None);
        }
        if id != "open" {
            assert_eq!(txn.commit_offset(client, 3, 5).await, ErrorCode::None);
            assert_eq!(txn.end(client, id == "committed", 5).await, ErrorCode::None);
        }
    }
}

/// The groups: of offsets alone, with a member of the classic protocol, and with one of the consumer protocol.
pub const GROUPS: [&str; 3] = ["offsets", "classic", "consumer"];

async fn groups(client: &Client, plain: Uuid) {
    for offset in 1..10 {
        for (topic, more) in [("plain", 0), ("cut", 5)] {
            let committed = client.call(commit_request("offsets", topic, 0, offset + more), 9).await;
            assert_eq!(committed.topics[0].partitions[0].error_code, 0);
        }
    }
    let mut request = join_request("classic", "", None);
    (request.session_timeout_ms, request.rebalance_timeout_ms) = (1_800_000, 60_000);
    request.member_id = client.call(request.clone(), 9).await.member_id;
    let joined = client.call(request.clone(), 9).await;
    assert_eq!(code(joined.error_code), ErrorCode::None);
    let member = request.member_id.to_string();
    let synced = client.call(sync_request("classic", &member, 1, &[(&member, "everything")]), 5).await;
    assert_eq!(code(synced.error_code), ErrorCode::None);
    let mut commit = commit_request("classic", "plain", 0, 11);
    (commit.member_id, commit.generation_id_or_member_epoch) = (request.member_id, 1);
    assert_eq!(client.call(commit, 9).await.topics[0].partitions[0].error_code, 0);
    let joined = client.call(consumer_groups::join("consumer", "a member", &["plain"]), 1).await;
    assert_eq!((code(joined.error_code), joined.member_epoch), (ErrorCode::None, 1));
    let assigned = joined.assignment.expect("it is told what it has");
    assert_eq!(assigned.topic_partitions[0].topic_id, plain);
}

async fn share_group(client: &Client, topic_id: Uuid) {
    find_coordinator(client, "share", 0).await;
    let beat = ShareGroupHeartbeatRequest {
        group_id: "share".into(),
        member_id: "m".into(),
        subscribed_topic_names: Some(vec!["shared".into()]),
        ..Default::default()
    };
    assert_eq!(code(client.call(beat, 1).await.error_code), ErrorCode::None);
    let fetch = async |epoch: i32| -> ShareFetchResponse {
        let request = ShareFetchRequest {
            group_id: Some("share".into()),
            member_id: Some("m".into()),
            share_session_epoch: epoch,
            max_wait_ms: 5_000,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 100,
            batch_size: 100,
            topics: vec![FetchTopic {
                topic_id,
                partitions: vec![FetchPartition { partition_index: 0, ..Default::default() }],
            }],
            ..Default::default()
        };
        let answer = client.call(request, 2).await;
        assert_eq!(code(answer.error_code), ErrorCode::None, "{answer:?}");
        answer
    };
    // It begins at the end, with what comes then.
    fetch(0).await;
    produce(client, "shared", batch_at(THEN_MS + 50_000, (0..6).map(|n| format!("shared late {n}")))).await;
    let acquired = fetch(1).await;
    let range = &acquired.responses[0].partitions[0].acquired_records[0];
    let batch = share_acknowledge::AcknowledgementBatch {
        first_offset: range.first_offset,
        last_offset: range.first_offset + 3,
        // Two are accepted, one comes back, one is rejected.
        acknowledge_types: vec![1, 1, 2, 3],
    };
    let partition = AcknowledgePartition { partition_index: 0, acknowledgement_batches: vec![batch] };
    let request = ShareAcknowledgeRequest {
        group_id: Some("share".into()),
        member_id: Some("m".into()),
        share_session_epoch: 2,
        topics: vec![AcknowledgeTopic { topic_id, partitions: vec![partition] }],
        ..Default::default()
    };
    let answer = client.call(request, 2).await;
    assert_eq!(code(answer.responses[0].partitions[0].error_code), ErrorCode::None, "{answer:?}");
}

async fn quota(client: &Client) {
    let entity = EntityData { entity_type: "user".into(), entity_name: Some("u".into()) };
    let op = OpData { key: "producer_byte_rate".into(), value: 1e9, remove: false };
    let entries = vec![EntryData { entity: vec![entity], ops: vec![op] }];
    let answer = client.call(AlterClientQuotasRequest { entries, validate_only: false }, 1).await;
    assert_eq!(answer.entries[0].error_code, 0);
}
