//! Compacted topics, the broker's own among them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use thalweg_broker::{AllowAll, Broker};
use thalweg_protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use thalweg_protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use thalweg_protocol::record::BatchBuilder;
use thalweg_protocol::{Compression, ErrorCode};

use crate::calls::{batches, create_topic, create_topic_with, fetch, list_offset, produce};
use crate::committing::{commit_request, fetch_offset};
use crate::grouping::find_coordinator;
use crate::harness::{Client, Harness, Way, pass_over};
use crate::kcat::{has_kcat, kcat};

/// Tries again until `is_done`.
async fn until<T>(mut what: impl AsyncFnMut() -> T, is_done: impl Fn(&T) -> bool) -> T {
    loop {
        let found = what().await;
        if is_done(&found) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn start() -> Harness {
    Harness::start_with(Way::Tcp, |config| config.cleaner_check_interval_ms = 50, AllowAll).await
}

/// Goes on with the same directory, and the settings of [`start`].
async fn restart(harness: Harness) -> Harness {
    let dir = harness.stop().await;
    let mut config = Harness::config(Way::Tcp, dir.path());
    config.cleaner_check_interval_ms = 50;
    let broker = Broker::start(config).await.expect("the broker starts again");
    Harness::of(Way::Tcp, broker, dir)
}

async fn set_config(client: &Client, topic: &str, name: &str, value: &str) {
    let config = AlterableConfig { name: name.into(), config_operation: 0, value: Some(value.into()) };
    let resource =
        AlterConfigsResource { resource_type: 2, resource_name: topic.into(), configs: vec![config] };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let answer = client.call(request, 1).await.responses.remove(0);
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::None, "{answer:?}");
}

fn keyed(records: &[(String, Option<String>)], compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(compression, None, 1024);
    for (key, value) in records {
        let value = value.as_ref().map(String::as_bytes);
        builder.append(1_357_000_000_000, Some(key.as_bytes()), value, []).expect("there is room");
    }
    builder.finish(&mut Default::default(), None).into_bytes()
}

/// Offset, key and value of every record.
async fn read_all(client: &Client, topic: &str) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let mut scratch = thalweg_protocol::Scratch::new(1 << 20);
    let mut all = Vec::new();
    let (mut next, end) = (0, list_offset(client, topic, -1).await.offset);
    while next < end {
        let data = fetch(client, topic, next).await;
        assert_eq!(ErrorCode::from(data.error_code), ErrorCode::None);
        for batch in batches(&data) {
            batch.verify().expect("good batches");
            for record in batch.records(&mut scratch).expect("it decompresses") {
                let record = record.expect("good records");
                if record.offset.0 >= next {
                    all.push((record.offset.0, text(record.key.expect("a key")), record.value.map(text)));
                }
            }
            next = batch.header().next_offset().0;
        }
    }
    all
}

fn size_of(dir: &Path, topic: &str) -> u64 {
    let directories =
        std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    let of_topic = directories.filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(topic))
    });
    let files = of_topic.flat_map(|path| std::fs::read_dir(path).expect("a directory"));
    // One that was just removed has no size.
    files.map(|entry| entry.and_then(|entry| entry.metadata()).map_or(0, |metadata| metadata.len())).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_record_of_each_key_is_kept() {
    let harness = start().await;
    let client = harness.connect().await;
    let configs = [("cleanup.policy", "compact"), ("segment.bytes", "4096"), ("delete.retention.ms", "0")];
    let created = create_topic_with(&client, "t", 1, &configs).await;
    assert_eq!(created.error_code, 0, "{created:?}");
    let mut expected: BTreeMap<String, Option<String>> = BTreeMap::new();
    for n in 0..600 {
        let value = |at: usize| (n % 7 != at).then(|| format!("value {n} {}", "x".repeat(n % 50)));
        let records: Vec<(String, Option<String>)> =
            (0..3).map(|at| (format!("key {}", (n * (at + 3)) % 37), value(at))).collect();
        expected.extend(records.iter().cloned());
        produce(&client, "t", keyed(&records, Compression::ALL[n % 5])).await;
    }
    // What comes now fills the active segment, and deletes the rest.
    for key in 0..10 {
        let record = (format!("key {key}"), None);
        expected.insert(record.0.clone(), None);
        produce(&client, "t", keyed(&[record], Compression::None)).await;
    }
    for n in 0..60 {
        let record = ("filler".to_owned(), Some(format!("{n} {}", "y".repeat(100))));
        expected.insert(record.0.clone(), record.1.clone());
        produce(&client, "t", keyed(&[record], Compression::None)).await;
    }
    let end = list_offset(&client, "t", -1).await.offset;
    assert_eq!(end, 1870);
    let is_done = |found: &Vec<(i64, String, Option<String>)>| {
        // The active segment, and of what is before it one of each key.
        found.len() < 120 && !found.iter().any(|(offset, _, value)| *offset < 1700 && value.is_none())
    };
    let found = until(async || read_all(&client, "t").await, is_done).await;
    let check = |found: &[(i64, String, Option<String>)]| {
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order");
        let last: BTreeMap<_, _> = found.iter().map(|(_, key, value)| (key.clone(), value.clone())).collect();
        for (key, value) in &expected {
            match last.get(key) {
                Some(found) => assert_eq!(found, value, "{key}"),
                None => assert_eq!(value, &None, "{key} is gone"),
            }
        }
    };
    check(&found);

    // Whatever the policy is by now, gaps are no damage.
    set_config(&client, "t", "cleanup.policy", "delete").await;
    set_config(&client, "t", "retention.ms", "-1").await;
    let harness = restart(harness).await;
    let client = harness.connect().await;
    check(&read_all(&client, "t").await);
    assert_eq!(list_offset(&client, "t", -1).await.offset, end);
    assert_eq!(produce(&client, "t", keyed(&[("new".to_owned(), None)], Compression::None)).await, end);

    if has_kcat() {
        let address = harness.broker.addresses()[0].to_string();
        let last = tokio::task::spawn_blocking(move || {
            let format = ["-f", "%o\\t%k\\t%s\\t%S\\n", "-q", "-e", "-o", "beginning"];
            let lines = kcat(&[&["-b", &address, "-C", "-t", "t"][..], &format].concat(), b"");
            let lines = String::from_utf8(lines).expect("text");
            let fields = lines.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
            // A null has the length −1.
            fields.map(|f| (f[1].clone(), (f[3] != "-1").then(|| f[2].clone()))).collect::<BTreeMap<_, _>>()
        });
        let last = last.await.expect("kcat reads it");
        for (key, value) in expected.iter().filter(|(_, value)| value.is_some()) {
            assert_eq!(last.get(key), Some(value), "{key}, by kcat");
        }
    } else {
        pass_over("the_last_record_of_each_key_is_kept", "kcat");
    }
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_coordinators_write_stays_small() {
    let harness = start().await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "g", 0).await;
    find_coordinator(&client, "tx", 1).await;
    for topic in ["__consumer_offsets", "__transaction_state"] {
        set_config(&client, topic, "segment.bytes", "20000").await;
        set_config(&client, topic, "segment.index.bytes", "1000").await;
    }
    let init = InitProducerIdRequest {
        transactional_id: Some("tx".into()),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    let init = async |client: &Client| -> InitProducerIdResponse {
        let answer = async || client.call(init.clone(), 5).await;
        until(answer, |answer| !ErrorCode::from(answer.error_code).is_retriable()).await
    };
    let mut epoch = -1;
    for offset in 1..=1500 {
        let response = client.call(commit_request("g", "t", 0, offset), 9).await;
        assert_eq!(response.topics[0].partitions[0].error_code, 0);
        let producer = init(&client).await;
        assert_eq!((producer.error_code, producer.producer_epoch), (0, epoch + 1));
        epoch += 1;
    }
    // Of 1500 records of about 110 and 130 bytes each.
    for topic in ["__consumer_offsets", "__transaction_state"] {
        until(async || size_of(harness.dir(), topic), |size| *size < 60_000).await;
    }
    let harness = restart(harness).await;
    let client = harness.connect().await;
    assert_eq!(fetch_offset(&client, "g", "t", false).await.committed_offset, 1500);
    assert_eq!(init(&client).await.producer_epoch, epoch + 1);
    harness.finish().await;
}
