//! What administration makes of a cluster that is slow to agree, and of answers that get lost.

use std::time::Duration;

use thalweg_client::{Client, Error, ErrorKind, NewTopic, TransactionFilter};
use thalweg_protocol::messages::{ApiKey, Request};
use thalweg_protocol::{ErrorCode, Uuid};

use crate::fake::{Fake, Fate, TOPIC};

#[tokio::test]
async fn created_topics_can_be_used_at_once() {
    let fake = Fake::new(0);
    fake.delete_topic();
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let unheard = Fate::Refused(ErrorCode::UnknownTopicOrPartition);
    fake.script(ApiKey::Metadata, [unheard; 3]);
    let asked = fake.requests(ApiKey::Metadata).len();
    let created = client.admin().create_topics(vec![NewTopic::new(TOPIC, 1)]).await.expect("it answers");
    assert!(created.iter().all(Result::is_ok), "{created:?}");
    assert_eq!(fake.requests(ApiKey::Metadata).len() - asked, 4);
}

#[tokio::test]
async fn a_created_topic_is_no_failure_because_it_cannot_be_asked_about() {
    let fake = Fake::new(0);
    fake.delete_topic();
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    fake.script(ApiKey::Metadata, [Fate::Lost, Fate::AnswerLost]);
    client.admin().create_topic(NewTopic::new(TOPIC, 1)).await.expect("it is created");
}

/// How many topics each request to create some had.
fn asked_for(fake: &Fake) -> Vec<usize> {
    let topics = |(_, _, request)| match request {
        Request::CreateTopics(request) => request.topics.len(),
        _ => panic!("these create topics"),
    };
    fake.requests(ApiKey::CreateTopics).into_iter().map(topics).collect()
}

#[tokio::test]
async fn only_what_was_refused_is_asked_for_again() {
    let fake = Fake::new(0);
    fake.delete_topic();
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let wanted = || vec![NewTopic::new("a", 1), NewTopic::new("b", 1), NewTopic::new(TOPIC, 1)];
    // The last is refused, by its name.
    fake.script(ApiKey::CreateTopics, [Fate::Refused(ErrorCode::NotController); 2]);
    let created = client.admin().create_topics(wanted()).await.expect("it answers");
    let names: Vec<_> = created.iter().map(|topic| topic.as_ref().map(|topic| &*topic.name).ok()).collect();
    assert_eq!(names, [Some("a"), Some("b"), Some(TOPIC)], "{created:?}");
    assert_eq!(asked_for(&fake), [3, 1, 1]);

    let fake = Fake::new(0);
    fake.delete_topic();
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    fake.script(ApiKey::CreateTopics, [Fate::Refused(ErrorCode::NotController); 10_000]);
    let created = client.admin().create_topics(wanted()).await.expect("two are created");
    assert!(created[0].is_ok() && created[1].is_ok(), "{created:?}");
    let error = created[2].as_ref().expect_err("its refusal stays");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Retry, Some(ErrorCode::NotController)), "{error}");
}

#[tokio::test]
async fn a_lost_answer_makes_no_failure_of_what_was_done() {
    for fate in [Fate::Lost, Fate::AnswerLost] {
        let fake = Fake::new(0);
        fake.delete_topic();
        let client = Client::connect(fake.config()).await.expect("the fake answers");
        let admin = client.admin();
        fake.script(ApiKey::CreateTopics, [fate]);
        let created = admin.create_topic(NewTopic::new(TOPIC, 2)).await.expect("it is created");
        if fate == Fate::AnswerLost {
            assert_eq!((created.id, created.partitions), (Uuid([2; 16]), Some(2)), "what there is");
        }
        let other = admin.create_topic(NewTopic::new(TOPIC, 2)).await.expect_err("it exists");
        assert_eq!(other.code(), Some(ErrorCode::TopicAlreadyExists));
        fake.script(ApiKey::CreateTopics, [fate]);
        let other = admin.create_topic(NewTopic::new(TOPIC, 3)).await.expect_err("another one exists");
        assert_eq!(other.code(), Some(ErrorCode::TopicAlreadyExists));

        fake.script(ApiKey::DeleteTopics, [fate]);
        admin.delete_topic(TOPIC).await.expect("it is deleted");
        assert!(matches!(admin.delete_topic(TOPIC).await, Err(Error::UnknownTopic { .. })));
        fake.create_topic(1);
        fake.script(ApiKey::DeleteTopics, [Fate::Refused(ErrorCode::NotController)]);
        admin.delete_topic(TOPIC).await.expect("it is deleted");
    }
}

#[tokio::test]
async fn a_deleted_topic_is_deleted_though_the_cluster_cannot_be_asked() {
    let fake = Fake::new(1);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    fake.script(ApiKey::Metadata, [Fate::RefusedWhole(ErrorCode::ClusterAuthorizationFailed); 10_000]);
    client.admin().delete_topic(TOPIC).await.expect("it is deleted");
}

#[tokio::test]
async fn an_answer_from_before_nobody_cared_is_not_taken_for_a_new_one() {
    let fake = Fake::new(1);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    fake.script(ApiKey::Metadata, [Fate::Held]);
    tokio::select! {
        biased;
        count = client.partition_count(TOPIC) => panic!("it is held back, but says {count:?}"),
        () = async { while fake.held() == 0 { tokio::task::yield_now().await } } => {}
    }
    fake.add_partition();
    fake.release();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let described = client.admin().describe_topic(TOPIC).await.expect("it is there");
    assert_eq!(described.partitions.len(), 2);
}

#[tokio::test]
async fn what_a_broker_lacks_is_done_otherwise_or_told() {
    let fake = Fake::new(1).without(ApiKey::DescribeCluster).without(ApiKey::ListTransactions);
    let admin = Client::connect(fake.config()).await.expect("the fake answers").admin();
    let cluster = admin.describe_cluster().await.expect("its metadata tells the same");
    let ids: Vec<i32> = cluster.brokers.iter().map(|broker| broker.id.0).collect();
    assert_eq!(ids, [1, 2]);

    let listed = admin.list_transactions(&TransactionFilter::default()).await.expect("the brokers are known");
    assert_eq!((listed.found.len(), listed.failed.len()), (0, 2), "each of them lacks it");
    let error = listed.complete().expect_err("nobody can say");
    assert_eq!(error.kind(), ErrorKind::GiveUp);
    let text = "node-1:1 does not offer ListTransactions in a version from 0 to 2 or any other; Apache Kafka has \
                ListTransactions since 3.0 (its version 2 since 4.1): ask a broker that does, or do without";
    assert_eq!(error.to_string(), text);
}
