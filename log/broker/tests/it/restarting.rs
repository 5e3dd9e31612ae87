//! What is there after a broker comes back.

use std::sync::Arc;

use thalweg_broker::{Broker, Error};
use thalweg_protocol::ErrorCode;

use crate::calls::{all_topics, batch, create_topic, delete_topic, list_offset, produce, read_all};
use crate::harness::{Harness, Way};

#[tokio::test]
async fn a_restart_keeps_everything() {
    for way in [Way::Tcp, Way::InProcess, Way::ThroughBytes] {
        let harness = Harness::start(way).await;
        let client = harness.connect().await;
        let id = create_topic(&client, "t", 2).await;
        for value in 0..10 {
            produce(&client, "t", batch([value.to_string(), "x".to_owned()])).await;
        }
        let before = read_all(&client, "t", 0).await;
        let (cluster_id, epoch) =
            (harness.broker.cluster_id(), list_offset(&client, "t", -1).await.leader_epoch);

        let harness = harness.restart().await;
        assert!(client.0.send(all_topics().into(), 9).await.is_err(), "{way:?}: it is closed");
        let client = harness.connect().await;
        assert_eq!(harness.broker.cluster_id(), cluster_id);
        let topic = client.call(all_topics(), 12).await.topics.remove(0);
        assert_eq!((topic.topic_id, topic.partitions.len()), (id, 2));
        assert_eq!(read_all(&client, "t", 0).await, before, "{way:?}");
        let latest = list_offset(&client, "t", -1).await;
        assert_eq!(latest.offset, 20);
        assert!(latest.leader_epoch > epoch, "a leader that comes back leads in a new epoch");
        assert_eq!(produce(&client, "t", batch(["more"])).await, 20);

        // Whoever still believes in the old epoch is told.
        let mut request = crate::calls::fetch_request("t", &[(0, 0)]);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        let response = client.call(request, crate::calls::FETCH).await;
        let code = response.responses[0].partitions[0].error_code;
        assert_eq!(ErrorCode::from(code), ErrorCode::FencedLeaderEpoch);
        harness.finish().await;
    }
}

#[tokio::test]
async fn a_broker_that_was_dropped_comes_back_with_what_it_acknowledged() {
    let dir = tempfile::TempDir::new().expect("a temporary directory");
    let config = Harness::config(Way::InProcess, dir.path());
    let broker = Broker::start(config.clone()).await.expect("it starts");
    let client = crate::harness::Client(broker.connect().open().expect("it runs"));
    create_topic(&client, "t", 1).await;
    for value in 0..10 {
        produce(&client, "t", batch([value.to_string()])).await;
    }
    drop(client);
    drop(broker);
    // The tasks of a dropped broker end by themselves, and with them its hold on the directory.
    let broker = loop {
        match Broker::start(config.clone()).await {
            Ok(broker) => break broker,
            Err(Error::Storage(thalweg_storage::Error::DirectoryHeld { .. })) => {
                tokio::task::yield_now().await
            }
            Err(error) => panic!("{error}"),
        }
    };
    let client = crate::harness::Client(broker.connect().open().expect("it runs"));
    assert_eq!(read_all(&client, "t", 0).await.len(), 10);
    broker.shutdown().await.expect("it stops in order");
}

#[tokio::test]
async fn a_directory_has_one_broker_at_a_time() {
    let harness = Harness::start(Way::Tcp).await;
    let config = Harness::config(Way::Tcp, harness.dir());
    let error = Broker::start(config).await.err().expect("the directory is held");
    let Error::Storage(thalweg_storage::Error::DirectoryHeld { address, .. }) = &error else {
        panic!("{error}");
    };
    assert_eq!(address.as_deref(), harness.broker.bootstrap().as_deref(), "it says where to find the holder");
    let connect = Arc::new(harness.broker.connect());
    harness.finish().await;
    assert!(connect.open().is_none(), "the broker has shut down");
}

#[tokio::test]
async fn the_directory_remembers_the_node() {
    let dir = tempfile::TempDir::new().expect("a temporary directory");
    let config =
        |node_id| thalweg_broker::BrokerConfig { node_id, ..Harness::config(Way::InProcess, dir.path()) };
    let broker = Broker::start(config(Some(5))).await.expect("it starts");
    let client = crate::harness::Client(broker.connect().open().expect("it runs"));
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["kept"])).await;
    drop(client);
    broker.shutdown().await.expect("it stops in order");
    for other in [1, 4, 6] {
        let error = Broker::start(config(Some(other))).await.err().expect("it is not that node's");
        assert!(
            matches!(&error, Error::NodeId { found, asked, .. } if (found.0, asked.0) == (5, other)),
            "{error}"
        );
    }
    for same in [None, Some(5)] {
        let broker = Broker::start(config(same)).await.expect("it starts again");
        let client = crate::harness::Client(broker.connect().open().expect("it runs"));
        let all = client.call(all_topics(), 12).await;
        assert_eq!((all.brokers.len(), all.brokers[0].node_id), (1, 5), "the refused ones have left nothing");
        assert_eq!(read_all(&client, "t", 0).await, [(0, "kept".to_owned())]);
        drop(client);
        broker.shutdown().await.expect("it stops in order");
    }
}

#[tokio::test]
async fn the_lock_file_names_an_address_that_works_here() {
    let advertise = |config: &mut thalweg_broker::BrokerConfig| {
        config.advertised = Some("public.example:9092".to_owned())
    };
    let harness = Harness::start_with(Way::Tcp, advertise, thalweg_broker::AllowAll).await;
    let holder = thalweg_storage::DataDirectory::holder(harness.dir()).expect("read").expect("held");
    assert_eq!(holder.address, Some(harness.broker.addresses()[0].to_string()));
    harness.finish().await;
}

#[tokio::test]
async fn a_partition_whose_directory_vanished_is_offline_until_its_topic_is_deleted() {
    let harness = Harness::start(Way::InProcess).await;
    let client = harness.connect().await;
    let id = create_topic(&client, "t", 2).await;
    create_topic(&client, "other", 1).await;
    produce(&client, "t", batch(["acknowledged"])).await;
    let dir = harness.stop().await;
    std::fs::remove_dir_all(dir.path().join("t-0")).expect("it was there");
    let mut harness = Harness::resume(Way::InProcess, dir).await;
    for _ in 0..2 {
        let client = harness.connect().await;
        let topics = client.call(all_topics(), 12).await.topics;
        let topic = topics.iter().find(|topic| topic.topic_id == id).expect("it is there");
        let codes: Vec<_> = topic.partitions.iter().map(|partition| partition.error_code != 0).collect();
        assert_eq!(codes, [true, false], "one partition is offline");
        assert!(!harness.dir().join("t-0").exists(), "nothing was begun anew");
        produce(&client, "other", batch(["goes on"])).await;
        create_topic(&client, "new", 1).await;
        produce(&client, "new", batch(["new"])).await;
        delete_topic(&client, "new").await;
        drop(client);
        harness = harness.restart().await;
    }
    delete_topic(&harness.connect().await, "t").await;
    make_anew(&harness, id).await;
    let dir = harness.stop().await;
    assert!(dir.path().join("clean-shutdown").exists(), "nothing is offline any more");
}

#[tokio::test]
async fn a_log_whose_topic_id_is_damaged_is_not_taken_for_a_deleted_topics() {
    let harness = Harness::start(Way::InProcess).await;
    let client = harness.connect().await;
    for topic in ["lost", "changed"] {
        create_topic(&client, topic, 1).await;
        produce(&client, topic, batch(["acknowledged"])).await;
    }
    drop(client);
    let dir = harness.stop().await;
    let metadata = |topic: &str| dir.path().join(format!("{topic}-0/partition.metadata"));
    std::fs::remove_file(metadata("lost")).expect("it was there");
    let id = std::fs::read_to_string(metadata("changed")).expect("it is there");
    let (before, last) = id.trim_end().split_at(id.trim_end().len() - 2);
    let other = if last.starts_with('A') { "BA" } else { "AA" };
    std::fs::write(metadata("changed"), format!("{before}{other}\n")).expect("it is written");
    let harness = Harness::resume(Way::InProcess, dir).await;
    let client = harness.connect().await;
    assert_eq!(read_all(&client, "lost", 0).await, [(0, "acknowledged".to_owned())]);
    let topics = client.call(all_topics(), 12).await.topics;
    let changed = topics.iter().find(|topic| topic.name.as_deref() == Some("changed")).expect("it is there");
    assert_ne!(changed.partitions[0].error_code, 0, "it is offline");
    let segment = harness.dir().join("changed-0/00000000000000000000.log");
    assert!(std::fs::metadata(segment).is_ok_and(|segment| segment.len() > 0), "and it is still there");
    drop(client);
    harness.finish().await;
}

#[tokio::test]
async fn a_topic_with_a_damaged_partition_can_be_deleted_and_made_anew() {
    // The second time the topic is deleted by a broker that does not get to the logs: it is killed at once.
    for is_killed in [false, true] {
        let harness = Harness::start(Way::InProcess).await;
        let client = harness.connect().await;
        let id = create_topic(&client, "t", 2).await;
        produce(&client, "t", batch(["synced"])).await;
        let dir = harness.stop().await;
        // Without the marker of an orderly stop the batches are verified.
        std::fs::remove_file(dir.path().join("clean-shutdown")).expect("it stopped in order");
        let segment = dir.path().join("t-0/00000000000000000000.log");
        let mut bytes = std::fs::read(&segment).expect("the log is there");
        *bytes.last_mut().expect("a batch") ^= 1;
        std::fs::write(&segment, bytes).expect("it can be written");

        let harness = Harness::resume(Way::InProcess, dir).await;
        let client = harness.connect().await;
        let topic = client.call(all_topics(), 12).await.topics.remove(0);
        let codes: Vec<_> = topic.partitions.iter().map(|partition| partition.error_code != 0).collect();
        assert_eq!((topic.topic_id, codes), (id, vec![true, false]), "one partition is offline");
        if is_killed {
            // As if the log had not been reached: it is back under its name.
            let name = std::ffi::OsStr::new("t-0");
            let kept = tempfile::TempDir::new().expect("a temporary directory");
            copy(&harness.dir().join(name), &kept.path().join(name));
            delete_topic(&client, "t").await;
            let dir = harness.stop().await;
            copy(&kept.path().join(name), &dir.path().join(name));
            let harness = Harness::resume(Way::InProcess, dir).await;
            make_anew(&harness, id).await;
            assert_eq!(stray(&harness), ["t-0"], "the metadata may have lost the topic as well");
            harness.finish().await;
        } else {
            delete_topic(&client, "t").await;
            let names: Vec<_> = std::fs::read_dir(harness.dir())
                .expect("the directory is there")
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
                .filter(|name| name.starts_with("t-") && !name.ends_with("-delete"))
                .collect();
            assert_eq!(names, [""; 0], "no log is left");
            make_anew(&harness, id).await;
            harness.finish().await;
        }
    }
}

/// Of which partitions there are logs that were in the way of others.
fn stray(harness: &Harness) -> Vec<String> {
    let entries = std::fs::read_dir(harness.dir()).expect("the directory is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let strays = names.filter(|name| name.ends_with("-stray"));
    strays.map(|name| name.split('.').next().unwrap_or_default().to_owned()).collect()
}

async fn make_anew(harness: &Harness, before: thalweg_protocol::Uuid) {
    let client = harness.connect().await;
    assert_ne!(create_topic(&client, "t", 2).await, before);
    assert_eq!(produce(&client, "t", batch(["anew"])).await, 0);
    assert_eq!(read_all(&client, "t", 0).await, [(0, "anew".to_owned())]);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).expect("it is not there");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it can be copied");
    }
}
