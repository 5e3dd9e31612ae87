//! What clients are told when the cluster's metadata is kept by others: by a controller that does not lead, that loses
//! proposals or their answers, or that is late.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_broker::{AllowAll, Broker, Error};
use thalweg_controller::testing::{Act, ScriptedDriver};
use thalweg_protocol::messages::find_coordinator::FindCoordinatorRequest;
use thalweg_protocol::messages::init_producer_id::InitProducerIdRequest;
use thalweg_protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use thalweg_protocol::{ErrorCode, NodeId, Uuid};
use tokio::time::{sleep, timeout};

use crate::calls::{batch, create_topic, produce};
use crate::changes::{Change, partitions};
use crate::grouping::code;
use crate::harness::{Client, Harness, Way};

const CLUSTER: Uuid = Uuid(*b"a-cluster-for-us");

/// Far longer than anything here takes.
pub const LONG: Duration = Duration::from_secs(20);

pub const NOT_LEADER: Act = Act::NotLeader(Some(NodeId(7)));

async fn start_in(dir: &TempDir, driver: &ScriptedDriver) -> Result<Broker, Error> {
    let config = Harness::config(Way::InProcess, dir.path());
    Broker::start_with_controller(config, Arc::new(AllowAll), driver.controller()).await
}

pub async fn start() -> (Harness, ScriptedDriver) {
    let (dir, driver) = (TempDir::new().expect("a temporary directory"), ScriptedDriver::new(CLUSTER));
    let broker = start_in(&dir, &driver).await.expect("it starts");
    (Harness::of(Way::InProcess, broker, dir), driver)
}

/// Waits for `count` proposals that are late.
pub async fn late(driver: &ScriptedDriver, count: usize) {
    let start = Instant::now();
    while driver.waiting() < count {
        assert!(start.elapsed() < LONG, "{} proposals came", driver.waiting());
        sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_has_no_answer_is_made_wholly_or_not_at_all() {
    let (harness, driver) = start().await;
    let client = harness.connect().await;
    let mut changed = Vec::new();
    for change in Change::ALL {
        for (act, expected, is_made) in [
            (NOT_LEADER, ErrorCode::NotController, false),
            (Act::NotLeader(None), ErrorCode::NotController, false),
            (Act::Lose, ErrorCode::RequestTimedOut, false),
            (Act::ApplyAndLoseAnswer, ErrorCode::RequestTimedOut, true),
        ] {
            let topic = format!("{change:?}-{act:?}").replace(['(', ')', ' '], "-");
            change.prepare(&client, &topic).await;
            for version in change.versions() {
                // What has been made already tells nothing more.
                if !is_made || version == *change.versions().start() {
                    driver.then([act]);
                    let answer = change.send(&client, &topic, version, 10_000).await;
                    assert_eq!(answer, expected, "{topic}, version {version}");
                    assert_eq!(change.is_made(&client, &topic).await, is_made, "{topic}, version {version}");
                    let has_log = harness.dir().join(format!("{topic}-0")).exists();
                    let had_log = change != Change::Create;
                    let deletes = change == Change::Delete;
                    assert_eq!(
                        has_log,
                        if is_made { !deletes } else { had_log },
                        "{topic}, version {version}"
                    );
                }
            }
            // The client tries again.
            let again = if is_made { change.repeated() } else { ErrorCode::None };
            assert_eq!(
                change.send(&client, &topic, *change.versions().end(), 10_000).await,
                again,
                "{topic}"
            );
            assert!(change.is_made(&client, &topic).await, "{topic}");
            if change != Change::Delete {
                assert_eq!(produce(&client, &topic, batch(["it takes writes"])).await, 0, "{topic}");
            }
            changed.push((change, topic));
        }
    }
    assert_eq!(driver.acts_left(), 0);
    // Another start finds the same.
    let dir = harness.stop().await;
    let broker = start_in(&dir, &driver).await.expect("it starts again");
    let harness = Harness::of(Way::InProcess, broker, dir);
    let client = harness.connect().await;
    for (change, topic) in changed {
        assert!(change.is_made(&client, &topic).await, "{topic}");
    }
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_comes_late_is_waited_for_as_long_as_the_request_says() {
    let (harness, driver) = start().await;
    let (client, other) = (harness.connect().await, harness.connect().await);
    create_topic(&other, "other", 1).await;
    for change in Change::ALL {
        let version = *change.versions().end();
        let topic = format!("{change:?}");
        change.prepare(&client, &topic).await;
        // Others are served meanwhile, and find nothing of it.
        driver.then([Act::Late]);
        let (waiting, named) = (client.clone(), topic.clone());
        let answer = tokio::spawn(async move { change.send(&waiting, &named, version, 15_000).await });
        late(&driver, 1).await;
        produce(&other, "other", batch(["meanwhile"])).await;
        assert!(!change.is_made(&other, &topic).await && !answer.is_finished(), "{topic}");
        driver.release();
        let answer = timeout(LONG, answer).await.expect("it is answered").expect("it is answered");
        assert_eq!(answer, ErrorCode::None, "{topic}");
        assert!(change.is_made(&other, &topic).await, "{topic}");
    }
    // These say how long they wait. What is made after that is made nevertheless.
    for change in [Change::Create, Change::Delete, Change::AddPartitions] {
        for version in change.versions() {
            let topic = format!("{change:?}-late-{version}");
            change.prepare(&client, &topic).await;
            driver.then([Act::Late]);
            let answer = timeout(LONG, change.send(&client, &topic, version, 50)).await;
            assert_eq!(answer.expect("it is answered"), ErrorCode::RequestTimedOut, "{topic}");
            assert!(!change.is_made(&other, &topic).await, "{topic}");
            driver.release();
            assert!(change.is_made(&other, &topic).await, "{topic}");
            let again = change.send(&client, &topic, version, 10_000).await;
            assert_eq!(again, change.repeated(), "{topic}");
        }
    }
    harness.finish().await;
}

async fn auto_created(client: &Client, topic: &str, version: i16) -> ErrorCode {
    let topics = vec![MetadataRequestTopic { name: Some(topic.into()), ..Default::default() }];
    let request =
        MetadataRequest { topics: Some(topics), allow_auto_topic_creation: true, ..Default::default() };
    code(client.call(request, version).await.topics[0].error_code)
}

async fn found_coordinator(client: &Client, key_type: i8) -> ErrorCode {
    let request =
        FindCoordinatorRequest { key_type, coordinator_keys: vec!["key".into()], ..Default::default() };
    code(client.call(request, 6).await.coordinators[0].error_code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_is_made_on_the_way_is_there_or_looked_for_again() {
    let (harness, driver) = start().await;
    let client = harness.connect().await;
    for (act, answer) in [
        (NOT_LEADER, ErrorCode::LeaderNotAvailable),
        (Act::Lose, ErrorCode::LeaderNotAvailable),
        // It is there, and that is what the client wants to know.
        (Act::ApplyAndLoseAnswer, ErrorCode::None),
    ] {
        for version in [1, 4, 12, 13] {
            let topic = format!("{act:?}-{version}").replace(['(', ')', ' '], "-");
            driver.then([act]);
            assert_eq!(auto_created(&client, &topic, version).await, answer, "{topic}");
            assert_eq!(partitions(&client, &topic).await.is_some(), answer == ErrorCode::None, "{topic}");
            assert_eq!(auto_created(&client, &topic, version).await, ErrorCode::None, "{topic}");
            assert_eq!(produce(&client, &topic, batch(["it takes writes"])).await, 0, "{topic}");
        }
    }
    for key_type in [0, 1] {
        for act in [NOT_LEADER, Act::Lose] {
            driver.then([act]);
            let answer = found_coordinator(&client, key_type).await;
            assert_eq!(answer, ErrorCode::CoordinatorNotAvailable, "{key_type} {act:?}");
        }
        driver.then([Act::ApplyAndLoseAnswer]);
        assert_eq!(found_coordinator(&client, key_type).await, ErrorCode::None, "{key_type}");
    }
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn producer_ids_are_asked_for_again_and_given_once() {
    let (dir, driver) = (TempDir::new().expect("a temporary directory"), ScriptedDriver::new(CLUSTER));
    let mut given = Vec::new();
    for transactional_id in [None, Some("an id"), None, Some("another")] {
        // A broker that has just started has no ids left.
        let broker = start_in(&dir, &driver).await.expect("it starts");
        let client = Client(broker.connect().open().expect("the broker runs"));
        crate::grouping::find_coordinator(&client, "an id", 1).await;
        let request = InitProducerIdRequest {
            transactional_id: transactional_id.map(Into::into),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        for act in [NOT_LEADER, Act::Lose, Act::ApplyAndLoseAnswer] {
            driver.then([act]);
            let answer = client.call(request.clone(), 5).await;
            let answer = (code(answer.error_code), answer.producer_id, answer.producer_epoch);
            let expected = (ErrorCode::CoordinatorLoadInProgress, -1, -1);
            assert_eq!(answer, expected, "{transactional_id:?}, {act:?}");
        }
        let answer = client.call(request, 5).await;
        assert_eq!((code(answer.error_code), answer.producer_epoch), (ErrorCode::None, 0));
        given.push(answer.producer_id);
        broker.shutdown().await.expect("it closes");
    }
    assert!(given.is_sorted_by(|one, next| one < next), "{given:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_the_metadata_does_not_take_in_does_not_start() {
    let (dir, driver) = (TempDir::new().expect("a temporary directory"), ScriptedDriver::new(CLUSTER));
    for (act, reason) in [
        (NOT_LEADER, "this node does not lead the cluster's metadata; node 7 does"),
        (Act::Lose, "it is not known whether the change took effect"),
        (Act::ApplyAndLoseAnswer, "it is not known whether the change took effect"),
    ] {
        driver.then([act]);
        let refused = start_in(&dir, &driver).await.err().expect("it is not taken in");
        assert_eq!(refused.to_string(), format!("cannot register with the cluster's metadata: {reason}"));
    }
    // The directory is free for another start, which registers the same node.
    let broker = start_in(&dir, &driver).await.expect("it starts");
    assert_eq!(driver.controller().state().nodes().count(), 1);
    assert_eq!(broker.cluster_id(), CLUSTER);
    broker.shutdown().await.expect("it closes");
    // And no other cluster's.
    let other = ScriptedDriver::new(Uuid(*b"another-cluster-"));
    let refused = start_in(&dir, &other).await.err().expect("the directory is another cluster's");
    assert!(matches!(refused, Error::Storage(_)), "{refused}");
}
