use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use thalweg_client::{
    Assignor, CommittedOffset, Consumer, ConsumerConfig, ErrorKind, OffsetReset, ProducerConfig, Range,
    RebalanceEvent,
};
use thalweg_protocol::{Offset, TopicPartition};
use tokio::time::Instant;

use super::{Ground, PATIENCE, at, read, texts};

fn member(group: &str) -> ConsumerConfig {
    ConsumerConfig {
        offset_reset: OffsetReset::Earliest,
        session_timeout_ms: 6_000,
        heartbeat_interval_ms: 100,
        fetch_max_wait_ms: 50,
        ..ConsumerConfig::group(group)
    }
}

/// Polls all members in turn until `is_done`; returns the events of each.
async fn settle(
    members: &mut [&mut Consumer],
    mut is_done: impl FnMut(&[&mut Consumer]) -> bool,
) -> Vec<Vec<RebalanceEvent>> {
    let deadline = Instant::now() + PATIENCE;
    let mut events = vec![Vec::new(); members.len()];
    loop {
        for (member, events) in members.iter_mut().zip(&mut events) {
            let polled = member.poll(Duration::from_millis(20)).await.expect("the poll succeeds");
            events.extend(polled.events);
        }
        if is_done(members) {
            return events;
        }
        assert!(Instant::now() < deadline, "the group does not settle: {events:?}");
    }
}

/// How many partitions each member has, if together they have `count` different ones.
fn shares(members: &[&mut Consumer], count: usize) -> Option<Vec<usize>> {
    let all: Vec<TopicPartition> = members.iter().flat_map(|member| member.assignment()).collect();
    let distinct: BTreeSet<&TopicPartition> = all.iter().collect();
    (all.len() == count && distinct.len() == count)
        .then(|| members.iter().map(|member| member.assignment().len()).collect())
}

pub async fn members_share_partitions_and_take_over(ground: &Ground) {
    let topic = ground.topic(4).await;
    let group = ground.name("group");
    let mut first = ground.consumer(member(&group));
    first.subscribe([topic.as_str()]).expect("it has a group");
    settle(&mut [&mut first], |members| shares(members, 4) == Some(vec![4])).await;
    let mut second = ground.consumer(member(&group));
    second.subscribe([topic.as_str()]).expect("it has a group");
    let events =
        settle(&mut [&mut first, &mut second], |members| shares(members, 4) == Some(vec![2, 2])).await;
    let revoked = events[0].iter().filter_map(|event| match event {
        RebalanceEvent::Revoked(partitions) => Some(partitions.len()),
        _ => None,
    });
    assert_eq!(revoked.collect::<Vec<_>>(), [2], "only what moves is taken away: {events:?}");

    // Both read on, and one takes over what the other leaves.
    let producer = ground.producer(ProducerConfig::default());
    for partition in 0..4 {
        ground.write(&producer, &topic, partition, &["value"]).await;
    }
    assert_eq!(read(&mut first, 2).await.len() + read(&mut second, 2).await.len(), 4);
    first.commit().await.expect("it is a member");
    second.commit().await.expect("it is a member");
    first.close().await.expect("it leaves");
    settle(&mut [&mut second], |members| shares(members, 4) == Some(vec![4])).await;
    ground.write(&producer, &topic, 0, &["later"]).await;
    assert_eq!(texts(&read(&mut second, 1).await), ["later"], "what was committed is not read again");
    second.unsubscribe().await.expect("it leaves");
    assert!(second.assignment().is_empty());
}

pub async fn eager_members_give_up_everything_first(ground: &Ground) {
    let topic = ground.topic(3).await;
    let group = ground.name("group");
    let eager = || {
        let assignors: Vec<Arc<dyn Assignor>> = vec![Arc::new(Range)];
        ground.client.consumer_with(member(&group), assignors).expect("the configuration is right")
    };
    let (mut first, mut second) = (eager(), eager());
    first.subscribe([topic.as_str()]).expect("it has a group");
    settle(&mut [&mut first], |members| shares(members, 3) == Some(vec![3])).await;
    second.subscribe([topic.as_str()]).expect("it has a group");
    let mut sizes = Vec::new();
    let events = settle(&mut [&mut first, &mut second], |members| {
        sizes = shares(members, 3).unwrap_or_default();
        sizes.iter().all(|size| *size > 0) && sizes.len() == 2
    })
    .await;
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2]);
    let all: Vec<TopicPartition> = (0..3).map(|partition| at(&topic, partition)).collect();
    assert_eq!(events[0].first(), Some(&RebalanceEvent::Revoked(all)));
}

pub async fn a_subscription_can_grow(ground: &Ground) {
    let (topic, other) = (ground.topic(1).await, ground.topic(1).await);
    let assignors: Vec<Arc<dyn Assignor>> = vec![Arc::new(Range)];
    let config = member(&ground.name("group"));
    let mut eager = ground.client.consumer_with(config, assignors).expect("the configuration is right");
    eager.subscribe([topic.as_str()]).expect("it has a group");
    settle(&mut [&mut eager], |members| shares(members, 1) == Some(vec![1])).await;
    eager.subscribe([topic.as_str(), other.as_str()]).expect("it has a group");
    assert_eq!(eager.subscription().len(), 2);
    let polled = eager.poll(Duration::from_millis(20)).await.expect("the poll succeeds");
    assert_eq!(polled.events, [RebalanceEvent::Revoked(vec![at(&topic, 0)])]);
    assert_eq!(eager.assignment(), [], "it is being revoked");
    let offset = [(at(&topic, 0), CommittedOffset::new(Offset(0)))];
    eager.commit_offsets(&offset).await.expect("it is this member's until the next poll");
    let events = settle(&mut [&mut eager], |members| shares(members, 2) == Some(vec![2])).await;
    assert!(matches!(events[0].last(), Some(RebalanceEvent::Assigned(partitions)) if partitions.len() == 2));
}

pub async fn a_group_goes_on_where_it_committed(ground: &Ground) {
    let topic = ground.topic(1).await;
    let group = ground.name("group");
    let producer = ground.producer(ProducerConfig::default());
    ground.write(&producer, &topic, 0, &["a", "b", "c"]).await;
    let mut first = ground.consumer(member(&group));
    first.subscribe([topic.as_str()]).expect("it has a group");
    assert_eq!(read(&mut first, 3).await.len(), 3);
    let offset = CommittedOffset::with_metadata(Offset(1), "after a");
    first.commit_offsets(&[(at(&topic, 0), offset.clone())]).await.expect("it is a member");
    let kept = first.committed(&[at(&topic, 0)]).await.expect("it answers");
    assert_eq!(kept[&at(&topic, 0)], offset);
    first.close().await.expect("it leaves");

    let auto = ConsumerConfig { auto_commit_interval_ms: Some(3_600_000), ..member(&group) };
    let mut second = ground.consumer(auto);
    second.subscribe([topic.as_str()]).expect("it has a group");
    assert_eq!(texts(&read(&mut second, 2).await), ["b", "c"]);
    second.close().await.expect("it commits and leaves");
    let admin = ground.client.admin();
    let kept = admin.committed_offsets(&group, Some(&[at(&topic, 0)]), true).await.expect("it answers");
    assert_eq!(kept[&at(&topic, 0)].offset, Offset(3));
}

pub async fn a_static_member_keeps_its_partitions(ground: &Ground) {
    let topic = ground.topic(2).await;
    let group = ground.name("group");
    let named = |name: &str| {
        let config = ConsumerConfig { group_instance_id: Some(name.to_owned()), ..member(&group) };
        let mut consumer = ground.consumer(config);
        consumer.subscribe([topic.as_str()]).expect("it has a group");
        consumer
    };
    let (mut one, mut two) = (named("one"), named("two"));
    settle(&mut [&mut one, &mut two], |members| shares(members, 2) == Some(vec![1, 1])).await;
    let had = one.assignment();
    one.close().await.expect("it ends, but stays in the group");
    let mut again = named("one");
    let events = settle(&mut [&mut again, &mut two], |members| shares(members, 2) == Some(vec![1, 1])).await;
    assert_eq!(again.assignment(), had);
    assert_eq!(events[1], [], "the other member does not notice");

    let mut twin = named("one");
    settle(&mut [&mut twin], |members| !members[0].assignment().is_empty()).await;
    let deadline = Instant::now() + PATIENCE;
    let fenced = loop {
        if let Err(error) = again.poll(Duration::from_millis(20)).await {
            break error;
        }
        assert!(Instant::now() < deadline, "the older twin is not fenced");
    };
    assert_eq!(fenced.kind(), ErrorKind::Fenced, "{fenced}");
}

pub async fn a_static_member_with_another_subscription_enforces_a_rebalance(ground: &Ground) {
    let (topic, other) = (ground.topic(2).await, ground.topic(2).await);
    // The one that comes back leads the group, or does not.
    for returning in [0, 1] {
        let group = ground.name("group");
        let named = |number: usize, topics: &[&str]| {
            let name = ["one", "two"][number].to_owned();
            let config = ConsumerConfig { group_instance_id: Some(name), ..member(&group) };
            let mut consumer = ground.consumer(config);
            consumer.subscribe(topics.iter().copied()).expect("it has a group");
            consumer
        };
        let mut members = [named(0, &[&topic]), named(1, &[&topic])];
        let [one, two] = &mut members;
        settle(&mut [one, two], |members| shares(members, 2) == Some(vec![1, 1])).await;
        let back = named(returning, &[&topic, &other]);
        let gone = std::mem::replace(&mut members[returning], back);
        gone.close().await.expect("it ends, but stays in the group");
        let [one, two] = &mut members;
        settle(&mut [one, two], |members| shares(members, 2) == Some(vec![1, 1])).await;
        members[returning].enforce_rebalance();
        let [one, two] = &mut members;
        settle(&mut [one, two], |members| shares(members, 4).is_some()).await;
        let others = members[returning].assignment();
        assert_eq!(others.iter().filter(|partition| partition.topic == other).count(), 2);
    }
}

pub async fn a_member_without_polls_is_lost(ground: &Ground) {
    let topic = ground.topic(1).await;
    let group = ground.name("group");
    let config = ConsumerConfig { max_poll_interval_ms: 1_000, ..member(&group) };
    let mut slow = ground.consumer(config);
    slow.subscribe([topic.as_str()]).expect("it has a group");
    settle(&mut [&mut slow], |members| shares(members, 1) == Some(vec![1])).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let mut quick = ground.consumer(member(&group));
    quick.subscribe([topic.as_str()]).expect("it has a group");
    settle(&mut [&mut quick], |members| shares(members, 1) == Some(vec![1])).await;
    let offsets = [(at(&topic, 0), CommittedOffset::new(Offset(0)))];
    let error = slow.commit_offsets(&offsets).await.expect_err("its partition is the other's");
    assert_eq!(error.kind(), ErrorKind::Rejoin, "{error}");
    let polled = slow.poll(Duration::from_millis(20)).await.expect("the poll succeeds");
    assert_eq!(polled.events.first(), Some(&RebalanceEvent::Lost(vec![at(&topic, 0)])));
}
