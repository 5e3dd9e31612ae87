//! Share groups as who manages them sees them: members, offsets, and their end.

use std::collections::BTreeMap;

use thalweg_client::{
    AcknowledgeType, Admin, CommittedOffset, Error, ErrorKind, GroupFilter, GroupState, GroupType, Result,
    ShareConsumerConfig, ShareGroupDescription, ShareGroupOffset, TopicPartition,
};
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::{ErrorCode, Offset};

use super::lossy::Loss;
use super::queues::{committed, member, of, share_group, take, write_batch};
use super::{Ground, at};

async fn described(admin: &Admin, group: &str) -> Result<ShareGroupDescription> {
    admin.describe_share_groups(&[group]).await.remove(group).expect("it has an answer")
}

/// Where a group begins and its lag, in the partitions that were asked for or in all; nothing is refused.
async fn places(
    admin: &Admin,
    group: &str,
    partitions: Option<&[TopicPartition]>,
) -> BTreeMap<TopicPartition, Option<(i64, Option<u64>)>> {
    let offsets = admin.share_group_offsets(group, partitions).await.expect("it answers");
    let place = |found: ShareGroupOffset| (found.start_offset.0, found.lag);
    offsets.into_iter().map(|(at, found)| (at, found.expect("it is told").map(place))).collect()
}

/// Has `group` begin at this offset.
async fn begin_at(admin: &Admin, group: &str, partition: &TopicPartition, start: i64) {
    let altered = admin.alter_share_group_offsets(group, &[(partition.clone(), Offset(start))]).await;
    altered.expect("nobody is in it").remove(partition).expect("it has an answer").expect("it is altered");
}

fn codes<K: Ord, R>(results: &BTreeMap<K, Result<R>>) -> Vec<Option<ErrorCode>> {
    results.values().map(|result| result.as_ref().err().and_then(Error::code)).collect()
}

pub async fn share_groups_are_listed_and_described(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(2).await;
    let group = share_group(ground, &[]).await;
    let (empty, classic, missing) = (ground.name("empty"), ground.name("classic"), ground.name("missing"));
    write_batch(ground, &topic, &["a"]).await;
    let config =
        ShareConsumerConfig { rack: Some("a rack".to_owned()), ..ShareConsumerConfig::group(&*group) };
    let mut consumer = member(ground, config, &topic);
    take(&mut consumer).await;
    begin_at(&admin, &empty, &at(&topic, 0), 0).await;
    let offset = [(at(&topic, 0), CommittedOffset::new(Offset(0)))];
    admin.commit_offsets(&classic, &offset).await.expect("it is committed");

    let shared = GroupFilter { types: vec![GroupType::Share], ..GroupFilter::default() };
    for filter in [GroupFilter::default(), shared.clone()] {
        let listed = admin.list_groups(&filter).await.expect("it answers").complete().expect("all answer");
        for (name, state) in [(&group, GroupState::Stable), (&empty, GroupState::Empty)] {
            let found = listed.iter().find(|listed| listed.group == *name).expect("it is there");
            assert_eq!((&found.group_type, &found.state), (&Some(GroupType::Share), &Some(state)));
            assert_eq!(&*found.protocol_type, "share");
        }
        assert_eq!(listed.iter().any(|listed| listed.group == classic), filter != shared);
    }

    let all = admin.describe_share_groups(&[&group, &empty, &classic, &missing, &missing]).await;
    assert_eq!(all.len(), 4);
    let with_member = all[&*group].as_ref().expect("it is there");
    assert_eq!((&with_member.state, &*with_member.assignor), (&GroupState::Stable, "simple"));
    let [only] = with_member.members.as_slice() else { panic!("there is one member: {with_member:?}") };
    assert!(!only.id.is_empty());
    assert_eq!((only.rack.as_deref(), &*only.topics), (Some("a rack"), &[topic.as_str().into()][..]));
    assert_eq!(only.assignment, [at(&topic, 0), at(&topic, 1)]);
    assert!(with_member.epoch > 0 && with_member.assignment_epoch == with_member.epoch, "{with_member:?}");
    assert_eq!(only.epoch, with_member.epoch);
    if ground.config.connector.is_none() {
        assert_eq!((&*only.client_id, &*only.host), ("thalweg", "/127.0.0.1"));
    }
    let without = all[&*empty].as_ref().expect("it is there");
    assert_eq!((&without.state, without.members.len()), (&GroupState::Empty, 0));
    for name in [&classic, &missing] {
        let error = all[&**name].as_ref().expect_err("there is no such share group");
        assert_eq!((error.code(), error.kind()), (Some(ErrorCode::GroupIdNotFound), ErrorKind::GiveUp));
        assert!(error.to_string().contains(&format!("group {name}")), "{error}");
    }
    // Nor is it a group of another type.
    let other = admin.describe_groups(&[&group]).await;
    assert_eq!(codes(&other), [Some(ErrorCode::GroupIdNotFound)]);

    let before = with_member.epoch;
    consumer.close().await.expect("it leaves");
    let left = described(&admin, &group).await.expect("it stays");
    assert_eq!((left.state, left.members.len()), (GroupState::Empty, 0));
    assert!(left.epoch > before && left.assignment_epoch == left.epoch, "{} {}", left.epoch, before);
}

pub async fn a_share_group_tells_where_it_is(ground: &Ground) {
    let admin = ground.client.admin();
    let (topic, other) = (ground.topic(1).await, ground.topic(1).await);
    let group = share_group(ground, &[]).await;
    let partition = at(&topic, 0);
    write_batch(ground, &topic, &["a", "b", "c", "d"]).await;
    let mut consumer = member(ground, ShareConsumerConfig::group(&*group).explicit(), &topic);
    assert_eq!(take(&mut consumer).await.len(), 4);
    for (offset, said) in [
        (0, AcknowledgeType::Accept),
        (1, AcknowledgeType::Release),
        (2, AcknowledgeType::Reject),
        (3, AcknowledgeType::Release),
    ] {
        consumer.acknowledge(&partition, Offset(offset), said).expect("it was delivered");
    }
    committed(&mut consumer).await;
    // Two are left, and one behind the first of them is done with. Kafka notes that it begins later with its next word.
    let start = if ground.is_kafka { 0 } else { 1 };
    let expected = BTreeMap::from([(partition.clone(), Some((start, Some(2))))]);
    assert_eq!(places(&admin, &group, None).await, expected);
    let found = admin.share_group_offsets(&group, Some(std::slice::from_ref(&partition))).await;
    let found = found.expect("it answers").remove(&partition).expect("it has an answer");
    assert!(found.expect("it is told").expect("it has begun").leader_epoch.0 >= 0);

    // It has begun nowhere else.
    let mut elsewhere = vec![at(&other, 0), at(&ground.name("no-topic"), 0)];
    if !ground.is_kafka {
        // Kafka 4.4 never answers for a partition that a topic does not have.
        elsewhere.push(at(&topic, 9));
    }
    let asked = [&elsewhere[..], &[partition]].concat();
    let found = places(&admin, &group, Some(&asked)).await;
    assert_eq!(found.len(), asked.len());
    assert!(elsewhere.iter().all(|partition| found[partition].is_none()), "{found:?}");
    let missing = ground.name("missing");
    assert_eq!(places(&admin, &missing, None).await, BTreeMap::new());
    let found = places(&admin, &missing, Some(&asked)).await;
    assert!(found.len() == asked.len() && found.values().all(Option::is_none), "{found:?}");
    let nameless = admin.share_group_offsets("", Some(&asked)).await.expect_err("it has no name");
    assert_ne!(nameless.kind(), ErrorKind::Retry, "{nameless}");
    consumer.close().await.expect("it leaves");
}

pub async fn a_share_group_goes_on_where_it_is_told(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(1).await;
    let (group, partition) = (share_group(ground, &[]).await, at(&topic, 0));
    let config = ShareConsumerConfig::group(&*group);
    write_batch(ground, &topic, &["a", "b", "c"]).await;
    let all = of(&[(0, "a", 1), (1, "b", 1), (2, "c", 1)]);
    let mut consumer = member(ground, config.clone(), &topic);
    assert_eq!(take(&mut consumer).await, all);
    committed(&mut consumer).await;
    let offsets = [(partition.clone(), Offset(1))];
    let refused = admin.alter_share_group_offsets(&group, &offsets).await.expect_err("somebody is in it");
    assert_eq!((refused.code(), refused.kind()), (Some(ErrorCode::NonEmptyGroup), ErrorKind::GiveUp));
    assert!(refused.to_string().contains(&group), "{refused}");
    consumer.close().await.expect("it leaves");

    // What there is not keeps nothing else from being altered.
    let (no_partition, no_topic) = (at(&topic, 9), at(&ground.name("no-topic"), 0));
    let offsets =
        [(partition.clone(), Offset(1)), (no_partition.clone(), Offset(0)), (no_topic.clone(), Offset(0))];
    let altered = admin.alter_share_group_offsets(&group, &offsets).await.expect("nobody is in it");
    assert!(altered[&partition].is_ok() && altered.len() == 3, "{altered:?}");
    let error = altered[&no_partition].as_ref().expect_err("there is none");
    assert!(matches!(error, Error::UnknownPartition { partitions: 1, .. }), "{error}");
    let error = altered[&no_topic].as_ref().expect_err("there is none");
    assert!(matches!(error, Error::UnknownTopic { .. }), "{error}");
    let expected = BTreeMap::from([(partition.clone(), Some((1, Some(2))))]);
    assert_eq!(places(&admin, &group, Some(std::slice::from_ref(&partition))).await, expected);
    let mut consumer = member(ground, config.clone(), &topic);
    assert_eq!(take(&mut consumer).await, all[1..]);
    committed(&mut consumer).await;
    consumer.close().await.expect("it leaves");

    begin_at(&admin, &group, &partition, -1).await;
    let anew = places(&admin, &group, Some(std::slice::from_ref(&partition))).await;
    assert_eq!(anew[&partition], None);
    let mut consumer = member(ground, config, &topic);
    assert_eq!(take(&mut consumer).await, all);
    consumer.close().await.expect("it leaves");

    let made = ground.name("made");
    assert!(admin.alter_share_group_offsets(&made, &[]).await.expect("nothing is asked").is_empty());
    begin_at(&admin, &made, &partition, 2).await;
    assert_eq!(described(&admin, &made).await.expect("it is made").state, GroupState::Empty);
    let classic = ground.name("classic");
    let offset = [(partition.clone(), CommittedOffset::new(Offset(0)))];
    admin.commit_offsets(&classic, &offset).await.expect("it is committed");
    let refused = admin.alter_share_group_offsets(&classic, &[(partition, Offset(0))]).await;
    assert_eq!(refused.expect_err("it is of another type").code(), Some(ErrorCode::GroupIdNotFound));
}

pub async fn a_share_group_forgets_offsets_and_is_deleted(ground: &Ground) {
    let admin = ground.client.admin();
    let (topic, other, missing) = (ground.topic(1).await, ground.topic(1).await, ground.name("missing"));
    let group = share_group(ground, &[]).await;
    let config = ShareConsumerConfig::group(&*group);
    write_batch(ground, &topic, &["a", "b"]).await;
    let all = of(&[(0, "a", 1), (1, "b", 1)]);
    let mut consumer = member(ground, config.clone(), &topic);
    assert_eq!(take(&mut consumer).await, all);
    committed(&mut consumer).await;
    let refused = admin.delete_share_group_offsets(&group, &[&topic]).await.expect_err("somebody is in it");
    assert_eq!((refused.code(), refused.kind()), (Some(ErrorCode::NonEmptyGroup), ErrorKind::GiveUp));
    assert_eq!(codes(&admin.delete_groups(&[&group]).await), [Some(ErrorCode::NonEmptyGroup)]);
    consumer.close().await.expect("it leaves");

    // It has read nothing of the other.
    let deleted = admin.delete_share_group_offsets(&group, &[&topic, &other, &missing]).await;
    let deleted = deleted.expect("nobody is in it");
    assert!(deleted[&*topic].is_ok() && deleted[&*other].is_ok() && deleted.len() == 3, "{deleted:?}");
    let error = deleted[&*missing].as_ref().expect_err("there is none");
    assert!(matches!(error, Error::UnknownTopic { .. }), "{error}");
    assert_eq!(places(&admin, &group, None).await, BTreeMap::new());
    let mut consumer = member(ground, config.clone(), &topic);
    assert_eq!(take(&mut consumer).await, all, "it begins anew");
    committed(&mut consumer).await;
    consumer.close().await.expect("it leaves");

    let refused = admin.delete_share_group_offsets(&missing, &[&topic]).await.expect_err("there is none");
    assert_eq!(refused.code(), Some(ErrorCode::GroupIdNotFound));
    let deleted = admin.delete_groups(&[&group, &missing]).await;
    assert_eq!((deleted[&*group].is_ok(), deleted[&*missing].is_ok()), (true, false), "{deleted:?}");
    let gone = described(&admin, &group).await.expect_err("it is gone");
    assert_eq!(gone.code(), Some(ErrorCode::GroupIdNotFound));
    assert_eq!(places(&admin, &group, None).await, BTreeMap::new());
    let mut consumer = member(ground, config, &topic);
    assert_eq!(take(&mut consumer).await, all, "it is another group");
    consumer.close().await.expect("it leaves");
}

pub async fn lost_answers_about_share_groups_make_no_failures(ground: &Ground) {
    let (lossy, client) = ground.lossy().await;
    let (admin, topic, group) = (client.admin(), ground.topic(1).await, ground.name("share"));
    let partition = at(&topic, 0);
    let offsets = [(partition.clone(), Offset(0))];
    lossy.lose(Some(Loss::Answer(ApiKey::AlterShareGroupOffsets)));
    let altered = admin.alter_share_group_offsets(&group, &offsets).await.expect("nobody refuses");
    let error = altered[&partition].as_ref().expect_err("no answer comes");
    assert!(matches!(error, Error::TimedOut { .. }) && error.kind() == ErrorKind::Retry, "{error}");
    lossy.lose(Some(Loss::Answer(ApiKey::DeleteShareGroupOffsets)));
    begin_at(&admin, &group, &partition, 0).await;
    let deleted = admin.delete_share_group_offsets(&group, &[&topic]).await.expect("nobody refuses");
    assert_eq!(deleted[&*topic].as_ref().expect_err("no answer comes").kind(), ErrorKind::Retry);
    lossy.lose(Some(Loss::Request(ApiKey::DescribeShareGroupOffsets)));
    // What has been deleted before is no failure now.
    let deleted = admin.delete_share_group_offsets(&group, &[&topic]).await.expect("nobody refuses");
    assert!(deleted[&*topic].is_ok(), "{deleted:?}");
    let error = admin.share_group_offsets(&group, None).await.expect_err("no answer comes");
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
}
