use std::time::Duration;

use thalweg_client::{
    CommittedOffset, Error, ErrorKind, Isolation, NewPartitions, NewTopic, OffsetSpec, ProducerConfig,
    ProducerRecord,
};
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::{ErrorCode, NodeId, Offset};

use super::lossy::Loss;
use super::{Ground, at};

pub async fn a_topic_is_created_described_and_deleted(ground: &Ground) {
    let admin = ground.client.admin();
    let name = ground.name("topic");
    let created = admin.create_topic(NewTopic::new(name.as_str(), 3)).await.expect("it is created");
    assert_eq!((&*created.name, created.partitions), (name.as_str(), Some(3)));

    let described = admin.describe_topic(&name).await.expect("it is there");
    assert_eq!(described.id, created.id);
    assert!(!described.id.is_zero() && !described.is_internal);
    assert_eq!(described.partitions.len(), 3);
    for partition in &described.partitions {
        assert_ne!(partition.leader, NodeId::NONE);
        assert_eq!(partition.replicas, partition.isr);
    }
    let cluster = admin.describe_cluster().await.expect("it answers");
    assert!(cluster.brokers.iter().any(|broker| broker.id == described.partitions[0].leader));
    let listed = admin.list_topics().await.expect("it answers");
    assert!(listed.iter().any(|topic| topic.name == name));

    admin.delete_topic(&name).await.expect("it is deleted");
    assert!(matches!(admin.describe_topic(&name).await, Err(Error::UnknownTopic { .. })));
}

pub async fn refusals_say_what_and_why(ground: &Ground) {
    let admin = ground.client.admin();
    let name = ground.topic(1).await;
    let refused = admin.create_topic(NewTopic::new(name.as_str(), 1)).await.expect_err("it exists");
    assert_eq!((refused.code(), refused.kind()), (Some(ErrorCode::TopicAlreadyExists), ErrorKind::GiveUp));
    assert!(refused.to_string().contains(&name), "{refused}");
    let bad = ground.name("bad/name");
    let results = admin
        .create_topics(vec![NewTopic::new(bad.as_str(), 1), NewTopic::new(ground.name("zero"), 0)])
        .await;
    let codes: Vec<_> =
        results.expect("it answers").into_iter().map(|result| result.err().and_then(|e| e.code())).collect();
    assert_eq!(codes, [Some(ErrorCode::InvalidTopicException), Some(ErrorCode::InvalidPartitions)]);
    let missing = ground.name("missing");
    assert!(matches!(admin.delete_topic(&missing).await, Err(Error::UnknownTopic { .. })));
    let producer = ground.producer(ProducerConfig::default());
    let unknown =
        producer.send(ProducerRecord::new(missing.as_str(), "v")).await.expect_err("there is no topic");
    assert_eq!(unknown.kind(), ErrorKind::GiveUp);
    let outside = producer.send(ProducerRecord::new(name.as_str(), "v").partition(7)).await;
    assert!(matches!(outside, Err(Error::UnknownPartition { partitions: 1, .. })));
}

pub async fn offsets_are_listed(ground: &Ground) {
    let topic = ground.topic(2).await;
    let producer = ground.producer(ProducerConfig::default());
    for (value, timestamp) in [("a", 1_000), ("b", 3_000), ("c", 2_000)] {
        let record = ProducerRecord::new(topic.as_str(), value).partition(0).timestamp(timestamp);
        producer.send_and_wait(record).await.expect("it is written");
    }
    let admin = ground.client.admin();
    let specs = [
        (OffsetSpec::Earliest, Some(0)),
        (OffsetSpec::Latest, Some(3)),
        (OffsetSpec::MaxTimestamp, Some(1)),
        (OffsetSpec::Timestamp(1_001), Some(1)),
        (OffsetSpec::Timestamp(9_000), None),
    ];
    for (spec, expected) in specs {
        let listed = admin.list_offsets(&[(at(&topic, 0), spec)], Isolation::ReadCommitted).await;
        let offset = listed.expect("it answers")[&at(&topic, 0)].offset;
        assert_eq!(offset, expected.map(Offset), "{spec:?}");
    }
    let both = [(at(&topic, 0), OffsetSpec::Latest), (at(&topic, 1), OffsetSpec::Latest)];
    let listed = admin.list_offsets(&both, Isolation::ReadUncommitted).await.expect("it answers");
    assert_eq!(listed[&at(&topic, 1)].offset, Some(Offset(0)));
}

pub async fn records_are_deleted(ground: &Ground) {
    let topic = ground.topic(1).await;
    let producer = ground.producer(ProducerConfig::default());
    ground.write(&producer, &topic, 0, &["a", "b", "c"]).await;
    let admin = ground.client.admin();
    let starts = admin.delete_records(&[(at(&topic, 0), Offset(2))]).await.expect("they are deleted");
    assert_eq!(starts[&at(&topic, 0)], Offset(2));
    let listed = admin.list_offsets(&[(at(&topic, 0), OffsetSpec::Earliest)], Isolation::ReadCommitted).await;
    assert_eq!(listed.expect("it answers")[&at(&topic, 0)].offset, Some(Offset(2)));
    let beyond = admin.delete_records(&[(at(&topic, 0), Offset(9))]).await.expect_err("there are only three");
    assert_eq!(beyond.code(), Some(ErrorCode::OffsetOutOfRange));
}

pub async fn groups_offsets_are_kept(ground: &Ground) {
    let topic = ground.topic(2).await;
    let group = ground.name("group");
    let admin = ground.client.admin();
    let committed = CommittedOffset::with_metadata(Offset(7), "what I want to keep");
    admin.commit_offsets(&group, &[(at(&topic, 1), committed.clone())]).await.expect("it is committed");
    let wanted = [at(&topic, 0), at(&topic, 1)];
    let kept = admin.committed_offsets(&group, Some(&wanted), true).await.expect("it answers");
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[&at(&topic, 1)], committed);
    let all = admin.committed_offsets(&group, None, false).await.expect("it answers");
    assert_eq!(all, kept);
}

pub async fn topics_are_validated_and_deleted_together(ground: &Ground) {
    let admin = ground.client.admin();
    let (there, new) = (ground.topic(1).await, ground.name("new"));
    let wanted = [NewTopic::new(new.as_str(), 3), NewTopic::new(there.as_str(), 1)];
    let validated = admin.validate_topics(&wanted).await.expect("it answers");
    assert_eq!(validated[0].as_ref().map(|topic| &*topic.name).ok(), Some(new.as_str()), "{validated:?}");
    let refused = validated[1].as_ref().expect_err("it exists");
    assert_eq!(refused.code(), Some(ErrorCode::TopicAlreadyExists));
    assert!(matches!(admin.describe_topic(&new).await, Err(Error::UnknownTopic { .. })));

    let leader = admin.describe_topic(&there).await.expect("it is there").partitions[0].leader;
    let placed = NewTopic::with_assignment(new.as_str(), vec![vec![leader], vec![leader]]);
    admin.create_topic(placed).await.expect("it is created");
    let described = admin.describe_topic(&new).await.expect("it is there");
    assert_eq!(described.partitions.len(), 2);
    assert_eq!(described.partitions[1].replicas, [leader]);

    let missing = ground.name("missing");
    let deleted = admin.delete_topics(&[&there, &missing, &new]).await;
    assert_eq!(deleted.len(), 3);
    assert!(deleted[&*there].is_ok() && deleted[&*new].is_ok(), "{deleted:?}");
    assert!(matches!(deleted[&*missing], Err(Error::UnknownTopic { .. })), "{deleted:?}");
}

pub async fn partitions_are_added(ground: &Ground) {
    let admin = ground.client.admin();
    let (topic, missing) = (ground.topic(2).await, ground.name("missing"));
    let wanted = [NewPartitions::new(topic.as_str(), 5), NewPartitions::new(missing.as_str(), 2)];
    for validate_only in [true, false] {
        let added = admin.create_partitions(&wanted, validate_only).await;
        assert!(added[&*topic].is_ok(), "{added:?}");
        assert!(matches!(added[&*missing], Err(Error::UnknownTopic { .. })), "{added:?}");
        let described = admin.describe_topic(&topic).await.expect("it is there");
        assert_eq!(described.partitions.len(), if validate_only { 2 } else { 5 });
    }
    let producer = ground.producer(ProducerConfig::default());
    ground.write(&producer, &topic, 4, &["in a new partition"]).await;
    let fewer = admin.create_partitions(&[NewPartitions::new(topic.as_str(), 3)], false).await;
    let refused = fewer[&*topic].as_ref().expect_err("there are five");
    assert_eq!((refused.code(), refused.kind()), (Some(ErrorCode::InvalidPartitions), ErrorKind::GiveUp));
}

pub async fn lost_answers_make_no_failures(ground: &Ground) {
    let topic = ground.topic(1).await;
    let group = ground.name("group");
    let committed = [(at(&topic, 0), CommittedOffset::new(Offset(0)))];
    ground.client.admin().commit_offsets(&group, &committed).await.expect("it is committed");
    let (lossy, client) = ground.lossy().await;
    let admin = client.admin();
    let for_a_while = async |api| {
        lossy.lose(Some(Loss::Answer(api)));
        tokio::time::sleep(Duration::from_millis(150)).await;
        lossy.lose(None);
    };
    let wanted = [NewPartitions::new(topic.as_str(), 3)];
    let (added, ()) =
        tokio::join!(admin.create_partitions(&wanted, false), for_a_while(ApiKey::CreatePartitions));
    assert!(added[&*topic].is_ok(), "{added:?}");
    let again = admin.create_partitions(&wanted, false).await;
    assert!(again[&*topic].is_err(), "nobody has lost this answer: {again:?}");
    let groups = [group.as_str()];
    let (deleted, ()) = tokio::join!(admin.delete_groups(&groups), for_a_while(ApiKey::DeleteGroups));
    assert!(deleted[&*group].is_ok(), "{deleted:?}");
    let again = admin.delete_groups(&groups).await;
    assert_eq!(again[&*group].as_ref().err().and_then(Error::code), Some(ErrorCode::GroupIdNotFound));
}
