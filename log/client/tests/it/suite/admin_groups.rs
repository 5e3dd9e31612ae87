use std::time::Duration;

use bytestring::ByteString;
use thalweg_client::{
    CommittedOffset, Consumer, ConsumerConfig, Error, ErrorKind, GroupFilter, GroupState, GroupType,
    MemberRef, OffsetReset,
};
use thalweg_protocol::{ErrorCode, Offset};
use tokio::time::Instant;

use super::{Ground, PATIENCE, at};

/// A member of a group, polled until it has `partitions` of a topic.
async fn joined(ground: &Ground, config: ConsumerConfig, topic: &str, partitions: usize) -> Consumer {
    let config = ConsumerConfig {
        offset_reset: OffsetReset::Earliest,
        heartbeat_interval_ms: 100,
        fetch_max_wait_ms: 50,
        ..config
    };
    let mut consumer = ground.consumer(config);
    consumer.subscribe([topic]).expect("it has a group");
    let deadline = Instant::now() + PATIENCE;
    while consumer.assignment().len() != partitions {
        assert!(Instant::now() < deadline, "it got {:?}", consumer.assignment());
        consumer.poll(Duration::from_millis(50)).await.expect("the poll succeeds");
    }
    consumer
}

pub async fn groups_are_listed_and_described(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(3).await;
    let (group, offsets, missing) = (ground.name("group"), ground.name("offsets"), ground.name("missing"));
    let config = ConsumerConfig {
        rack: Some("a rack".to_owned()),
        group_instance_id: Some("one".to_owned()),
        ..ConsumerConfig::group(group.as_str())
    };
    let member = joined(ground, config, &topic, 3).await;
    let committed = [(at(&topic, 0), CommittedOffset::new(Offset(0)))];
    admin.commit_offsets(&offsets, &committed).await.expect("it is committed");

    let listed = admin.list_groups(&GroupFilter::default()).await.expect("it answers");
    assert!(listed.failed.is_empty(), "{:?}", listed.failed);
    let found = |name: &str| listed.found.iter().find(|listed| listed.group == name);
    let with_member = found(&group).expect("it is there");
    assert_eq!(&*with_member.protocol_type, "consumer");
    assert_eq!(with_member.state, Some(GroupState::Stable));
    assert_eq!(with_member.group_type, Some(GroupType::Classic));
    assert_eq!(found(&offsets).expect("it is there").state, Some(GroupState::Empty));
    let empty = GroupFilter { states: vec![GroupState::Empty], types: vec![GroupType::Classic] };
    let listed = admin.list_groups(&empty).await.expect("it answers").complete().expect("all answer");
    assert!(listed.iter().any(|listed| listed.group == offsets), "{listed:?}");
    assert!(!listed.iter().any(|listed| listed.group == group), "{listed:?}");

    let described = admin.describe_groups(&[&group, &offsets, &missing]).await;
    assert_eq!(described.len(), 3);
    let group = described[&*group].as_ref().expect("it is there");
    assert_eq!((&group.group_type, &group.state), (&GroupType::Classic, &GroupState::Stable));
    assert_eq!((&*group.assignor, group.epoch), ("cooperative-sticky", None));
    let [only] = group.members.as_slice() else { panic!("there is one member: {group:?}") };
    assert_eq!(only.id, member.group_metadata().expect("it is a member").member_id);
    assert_eq!((only.instance_id.as_deref(), only.rack.as_deref()), (Some("one"), Some("a rack")));
    assert_eq!(only.topics, [topic.as_str()]);
    assert_eq!(only.assignment, [0, 1, 2].map(|partition| at(&topic, partition)));
    if ground.config.connector.is_none() {
        assert_eq!((&*only.client_id, &*only.host), ("thalweg", "/127.0.0.1"));
    }
    let empty = described[&*offsets].as_ref().expect("it is there");
    assert_eq!((&empty.state, empty.members.len()), (&GroupState::Empty, 0));
    let error = described[&*missing].as_ref().expect_err("there is none");
    assert_eq!((error.code(), error.kind()), (Some(ErrorCode::GroupIdNotFound), ErrorKind::GiveUp));
    assert!(error.to_string().contains(&missing), "{error}");
}

pub async fn groups_are_deleted_when_they_are_empty(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(1).await;
    let (group, offsets, missing) = (ground.name("group"), ground.name("offsets"), ground.name("missing"));
    let mut member = joined(ground, ConsumerConfig::group(group.as_str()), &topic, 1).await;
    let committed = [(at(&topic, 0), CommittedOffset::new(Offset(0)))];
    member.commit_offsets(&committed).await.expect("it is a member");
    admin.commit_offsets(&offsets, &committed).await.expect("it is committed");
    let deleted = admin.delete_groups(&[&group, &offsets, &missing]).await;
    let codes =
        [&group, &offsets, &missing].map(|group| deleted[&**group].as_ref().err().and_then(Error::code));
    assert_eq!(codes, [Some(ErrorCode::NonEmptyGroup), None, Some(ErrorCode::GroupIdNotFound)]);
    member.close().await.expect("it leaves");
    let deleted = admin.delete_groups(&[&group, &offsets]).await;
    let codes = [&group, &offsets].map(|group| deleted[&**group].as_ref().err().and_then(Error::code));
    assert_eq!(codes, [None, Some(ErrorCode::GroupIdNotFound)]);
}

pub async fn members_are_put_out(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(2).await;
    let group = ground.name("group");
    let config = ConsumerConfig {
        group_instance_id: Some("static".to_owned()),
        session_timeout_ms: 45_000,
        ..ConsumerConfig::group(group.as_str())
    };
    // A static member that goes away keeps its place, until somebody puts it out.
    joined(ground, config, &topic, 2).await.close().await.expect("it goes away");
    let instance = MemberRef::Instance(ByteString::from_static("static"));
    let stranger = MemberRef::Id(ByteString::from_static("stranger"));
    let asked = [stranger.clone(), instance.clone()];
    let removed = admin.remove_members(&group, &asked, "it will not come back").await.expect("it answers");
    let out = removed[&instance].as_ref().expect("it was there");
    assert_eq!(out.instance_id.as_deref(), Some("static"));
    let error = removed[&stranger].as_ref().expect_err("it was not there");
    assert_eq!(error.code(), Some(ErrorCode::UnknownMemberId));
    let described = admin.describe_groups(&[&group]).await.remove(&*group).expect("it has an answer");
    assert!(described.expect("it is there").members.is_empty());

    let member = joined(ground, ConsumerConfig::group(group.as_str()), &topic, 2).await;
    let id = member.group_metadata().expect("it is a member").member_id;
    let removed = admin.remove_all_members(&group, "all out").await.expect("it answers");
    assert_eq!(removed.len(), 1);
    assert_eq!(
        removed[&MemberRef::Id(id.clone())].as_ref().map(|out| &out.id).ok(),
        Some(&id),
        "{removed:?}"
    );
}

pub async fn a_group_forgets_offsets(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(3).await;
    let group = ground.name("group");
    let committed: Vec<_> =
        (0..2).map(|partition| (at(&topic, partition), CommittedOffset::new(Offset(1)))).collect();
    admin.commit_offsets(&group, &committed).await.expect("they are committed");
    // Nothing is committed for the last.
    let forgotten = [at(&topic, 0), at(&topic, 2)];
    let Some(deleted) = ground.offered(admin.delete_offsets(&group, &forgotten).await) else { return };
    assert!(forgotten.iter().all(|partition| deleted[partition].is_ok()), "{deleted:?}");
    let kept = admin.committed_offsets(&group, None, false).await.expect("it answers");
    assert_eq!(kept.keys().collect::<Vec<_>>(), [&at(&topic, 1)]);

    let _member = joined(ground, ConsumerConfig::group(group.as_str()), &topic, 3).await;
    let refused = admin.delete_offsets(&group, &[at(&topic, 1)]).await.expect("it answers");
    let error = refused[&at(&topic, 1)].as_ref().expect_err("a member subscribes to it");
    assert_eq!(error.code(), Some(ErrorCode::GroupSubscribedToTopic));
    let missing = admin.delete_offsets(&ground.name("missing"), &forgotten).await.expect_err("there is none");
    assert_eq!(missing.code(), Some(ErrorCode::GroupIdNotFound));
}
