//! Groups whose coordinator assigns (KIP-848), and topics found by a pattern.

use std::collections::BTreeSet;
use std::time::Duration;

use thalweg_client::{
    Client, ClientConfig, Consumer, ConsumerConfig, Error, ErrorKind, GroupProtocol, GroupState, GroupType,
    NewTopic, OffsetReset, ProducerConfig, RebalanceEvent,
};
use thalweg_protocol::TopicPartition;
use tokio::time::Instant;

use super::{Ground, PATIENCE, at, read, texts};

fn member(group: &str) -> ConsumerConfig {
    ConsumerConfig {
        group_protocol: GroupProtocol::Consumer,
        offset_reset: OffsetReset::Earliest,
        fetch_max_wait_ms: 50,
        ..ConsumerConfig::group(group)
    }
}

/// A member that subscribes to a topic, if the broker has such groups.
async fn joining(ground: &Ground, config: ConsumerConfig, topic: &str) -> Option<Consumer> {
    let mut consumer = ground.consumer(config);
    consumer.subscribe([topic]).expect("it has a group");
    // Until the first answer.
    let deadline = Instant::now() + PATIENCE;
    while consumer.group_metadata().is_err() {
        assert!(Instant::now() < deadline, "the coordinator does not answer");
        match consumer.poll(Duration::from_millis(20)).await {
            Ok(_) => {}
            Err(error) => ground.offered::<()>(Err(error))?,
        }
    }
    Some(consumer)
}

async fn settle(members: &mut [&mut Consumer], count: usize, each: usize) -> Vec<Vec<RebalanceEvent>> {
    let deadline = Instant::now() + PATIENCE;
    let mut events = vec![Vec::new(); members.len()];
    loop {
        for (member, events) in members.iter_mut().zip(&mut events) {
            events.extend(member.poll(Duration::from_millis(20)).await.expect("the poll succeeds").events);
        }
        let all: Vec<TopicPartition> = members.iter().flat_map(|member| member.assignment()).collect();
        let distinct: BTreeSet<&TopicPartition> = all.iter().collect();
        let is_even = members.iter().all(|member| member.assignment().len() == each);
        if all.len() == count && distinct.len() == count && is_even {
            return events;
        }
        assert!(Instant::now() < deadline, "the group does not settle: {events:?}");
    }
}

pub async fn the_coordinator_shares_partitions_out(ground: &Ground) {
    let topic = ground.topic(4).await;
    let group = ground.name("group");
    let Some(mut first) = joining(ground, member(&group), &topic).await else { return };
    settle(&mut [&mut first], 4, 4).await;
    let producer = ground.producer(ProducerConfig::default());
    for partition in 0..4 {
        ground.write(&producer, &topic, partition, &["early"]).await;
    }
    assert_eq!(read(&mut first, 4).await.len(), 4);
    first.commit().await.expect("it is a member");

    let mut second = joining(ground, member(&group), &topic).await.expect("the first could join");
    let events = settle(&mut [&mut first, &mut second], 4, 2).await;
    let revoked: Vec<usize> = events[0]
        .iter()
        .filter_map(|event| match event {
            RebalanceEvent::Revoked(partitions) => Some(partitions.len()),
            _ => None,
        })
        .collect();
    assert_eq!(revoked, [2], "only what moves is taken away: {events:?}");
    // The epoch has risen since; a commit goes under the newest.
    first.commit().await.expect("it is a member");
    for partition in 0..4 {
        ground.write(&producer, &topic, partition, &["late"]).await;
    }
    let mut values = texts(&read(&mut first, 2).await);
    values.extend(texts(&read(&mut second, 2).await));
    assert_eq!(values, ["late"; 4], "what was committed is not read again");

    let described = ground.client.admin().describe_groups(&[&group]).await.remove(&*group);
    let described = described.expect("it has an answer").expect("it is there");
    assert_eq!((&described.group_type, &described.state), (&GroupType::Consumer, &GroupState::Stable));
    assert_eq!(described.members.len(), 2);
    for member in &described.members {
        assert_eq!(
            (member.assignment.len(), member.target.as_ref().map(Vec::len)),
            (2, Some(2)),
            "{member:?}"
        );
        assert_eq!(member.epoch, described.epoch);
    }
    second.commit().await.expect("it is a member");
    second.close().await.expect("it leaves");
    settle(&mut [&mut first], 4, 4).await;
    first.close().await.expect("it leaves");
}

pub async fn a_static_member_comes_back_to_its_partitions(ground: &Ground) {
    let topic = ground.topic(2).await;
    let group = ground.name("group");
    let config =
        |instance: &str| ConsumerConfig { group_instance_id: Some(instance.to_owned()), ..member(&group) };
    let Some(mut first) = joining(ground, config("a"), &topic).await else { return };
    let mut second = joining(ground, config("b"), &topic).await.expect("the first could join");
    settle(&mut [&mut first, &mut second], 2, 1).await;
    let had = first.assignment();
    first.close().await.expect("it goes away");
    let mut back = joining(ground, config("a"), &topic).await.expect("the first could join");
    settle(&mut [&mut back, &mut second], 2, 1).await;
    assert_eq!(back.assignment(), had);
    back.close().await.expect("it goes away");
    second.close().await.expect("it goes away");
}

pub async fn an_assignor_that_the_coordinator_lacks_is_told(ground: &Ground) {
    let topic = ground.topic(1).await;
    let remote_assignor = Some("no-such-assignor".to_owned());
    let config = ConsumerConfig { remote_assignor, ..member(&ground.name("group")) };
    let mut consumer = ground.consumer(config);
    consumer.subscribe([topic.as_str()]).expect("it has a group");
    let deadline = Instant::now() + PATIENCE;
    let error = loop {
        assert!(Instant::now() < deadline, "nothing is told");
        if let Err(error) = consumer.poll(Duration::from_millis(20)).await {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::GiveUp, "{error}");
    let is_told = error.to_string().contains("no-such-assignor");
    assert!(is_told || matches!(error, Error::UnsupportedVersion { .. }), "{error}");
}

pub async fn topics_are_found_by_a_pattern(ground: &Ground) {
    let config = ClientConfig { metadata_max_age_ms: 200, ..ground.config.clone() };
    let client = Client::connect(config).await.expect("the broker answers");
    let stem = ground.name("pattern");
    let (early, late) = (format!("{stem}-early"), format!("{stem}-late"));
    let new = |name: &str| NewTopic::new(name, 1);
    let admin = client.admin();
    admin.create_topic(new(&early)).await.expect("it is created");
    admin.create_topic(new(&format!("x{stem}-other"))).await.expect("it is created");
    for protocol in [GroupProtocol::Classic, GroupProtocol::Consumer] {
        let config = ConsumerConfig { group_protocol: protocol, ..member(&ground.name("group")) };
        let mut consumer = client.consumer(config).expect("the configuration is right");
        consumer.subscribe_pattern(&format!("{stem}-.*")).expect("it is right");
        let mut wanted = vec![at(&early, 0)];
        if protocol == GroupProtocol::Consumer {
            wanted.push(at(&late, 0));
        }
        let deadline = Instant::now() + PATIENCE;
        let mut is_there = protocol == GroupProtocol::Consumer;
        loop {
            match consumer.poll(Duration::from_millis(20)).await {
                Ok(_) => {}
                Err(error) if protocol == GroupProtocol::Consumer => {
                    return assert!(ground.offered::<()>(Err(error)).is_none());
                }
                Err(error) => panic!("the poll fails: {error}"),
            }
            match consumer.assignment() == wanted {
                true if is_there => break,
                true => {
                    admin.create_topic(new(&late)).await.expect("it is created");
                    wanted.push(at(&late, 0));
                    is_there = true;
                }
                false => assert!(Instant::now() < deadline, "it reads {:?}", consumer.assignment()),
            }
        }
        consumer.close().await.expect("it leaves");
    }
}
