//! What a member makes of a coordinator that refuses, moves and forgets.

use std::sync::Arc;
use std::time::Duration;

use thalweg_client::{
    Assignor, Client, ClientConfig, Consumer, ConsumerConfig, ErrorKind, OffsetReset, Range, RebalanceEvent,
};
use thalweg_protocol::messages::{ApiKey, Request};
use thalweg_protocol::{ErrorCode, TopicPartition};
use tokio::time::Instant;

use crate::fake::{Fake, Fate, TOPIC};

const PATIENCE: Duration = Duration::from_secs(10);

async fn member(fake: &Fake, config: ClientConfig) -> Consumer {
    let client = Client::connect(config).await.expect("the fake answers");
    let config = ConsumerConfig {
        offset_reset: OffsetReset::Earliest,
        heartbeat_interval_ms: 5,
        ..ConsumerConfig::group("group")
    };
    let mut member = client.consumer(config).expect("the configuration is right");
    member.subscribe([TOPIC]).expect("it has a group");
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(all(fake)));
    member
}

fn all(fake: &Fake) -> Vec<TopicPartition> {
    (0..fake.partitions() as i32).map(|partition| TopicPartition::new(TOPIC, partition)).collect()
}

/// Polls until something changes, and returns that one change.
async fn next_event(member: &mut Consumer) -> RebalanceEvent {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut events = member.poll(Duration::from_millis(10)).await.expect("the poll succeeds").events;
        if let Some(event) = events.pop() {
            assert_eq!(events, [], "one thing at a time");
            return event;
        }
        assert!(Instant::now() < deadline, "nothing happens");
    }
}

/// The member ids of all requests to join.
fn joins(fake: &Fake) -> Vec<String> {
    let id = |(_, _, request)| match request {
        Request::JoinGroup(request) => request.member_id.to_string(),
        _ => panic!("these are requests to join"),
    };
    fake.requests(ApiKey::JoinGroup).into_iter().map(id).collect()
}

#[tokio::test]
async fn joining_is_tried_again_until_it_succeeds() {
    let fake = Fake::new(2);
    fake.script(
        ApiKey::JoinGroup,
        [
            Fate::Lost,
            Fate::Refused(ErrorCode::NotCoordinator),
            Fate::Refused(ErrorCode::CoordinatorLoadInProgress),
            Fate::AnswerLost,
        ],
    );
    fake.script(
        ApiKey::SyncGroup,
        [
            Fate::Refused(ErrorCode::RebalanceInProgress),
            Fate::Refused(ErrorCode::UnknownMemberId),
            Fate::Lost,
        ],
    );
    let member = member(&fake, fake.config()).await;
    assert_eq!(member.assignment(), all(&fake));
    assert!(fake.requests(ApiKey::FindCoordinator).len() >= 3, "it may have moved");
    assert_eq!(joins(&fake).last().map(String::as_str), Some("member"));
}

#[tokio::test]
async fn a_rebalance_takes_nothing_from_whoever_keeps_it() {
    let fake = Fake::new(2);
    let mut member = member(&fake, fake.config()).await;
    let generation = member.group_metadata().expect("it is a member").generation;
    fake.script(ApiKey::Heartbeat, [Fate::Answered, Fate::Refused(ErrorCode::RebalanceInProgress)]);
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(Vec::new()));
    assert_eq!(member.assignment(), all(&fake));
    assert_eq!(member.group_metadata().expect("it is a member").generation, generation + 1);
}

#[tokio::test]
async fn a_rebalance_goes_on_without_polls() {
    let fake = Fake::new(2);
    let mut member = member(&fake, fake.config()).await;
    fake.script(ApiKey::Heartbeat, [Fate::Refused(ErrorCode::RebalanceInProgress)]);
    let deadline = Instant::now() + PATIENCE;
    // The polls are so short that they see nothing of it but its beginning.
    while joins(&fake).len() == 2 {
        assert!(Instant::now() < deadline, "it does not join");
        assert_eq!(member.poll(Duration::ZERO).await.expect("the poll succeeds").events, []);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let beats = |fake: &Fake| {
        let of_second = |(_, _, request): &(i32, i16, Request)| match request {
            Request::Heartbeat(request) => request.generation_id == 2,
            _ => panic!("these are heartbeats"),
        };
        fake.requests(ApiKey::Heartbeat).iter().filter(|request| of_second(request)).count()
    };
    while beats(&fake) < 3 {
        assert!(Instant::now() < deadline, "the heart has stopped");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(Vec::new()));
    assert_eq!(member.assignment(), all(&fake));
}

#[tokio::test]
async fn the_heart_beats_during_the_commit_before_a_rebalance() {
    let fake = Fake::new(1);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let config = ConsumerConfig {
        offset_reset: OffsetReset::Earliest,
        heartbeat_interval_ms: 5,
        auto_commit_interval_ms: Some(3_600_000),
        ..ConsumerConfig::group("group")
    };
    let eager: Vec<Arc<dyn Assignor>> = vec![Arc::new(Range)];
    let mut member = client.consumer_with(config, eager).expect("the configuration is right");
    member.subscribe([TOPIC]).expect("it has a group");
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(all(&fake)));
    while member.position(&all(&fake)[0]).is_none() {
        member.poll(Duration::from_millis(5)).await.expect("the poll succeeds");
    }
    fake.script(ApiKey::OffsetCommit, [Fate::Held]);
    fake.script(ApiKey::Heartbeat, [Fate::Refused(ErrorCode::RebalanceInProgress)]);
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Revoked(all(&fake)));
    let deadline = Instant::now() + PATIENCE;
    while fake.held() == 0 {
        assert!(Instant::now() < deadline, "nothing is committed");
        member.poll(Duration::from_millis(1)).await.expect("the poll succeeds");
    }
    let before = fake.requests(ApiKey::Heartbeat).len();
    while fake.requests(ApiKey::Heartbeat).len() < before + 3 {
        assert!(Instant::now() < deadline, "the heart has stopped");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(joins(&fake).len(), 2, "the commit comes first");
    fake.release();
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(all(&fake)));
    assert_eq!(fake.committed(0), Some(0));
}

#[tokio::test]
async fn a_coordinator_that_never_settles_is_not_asked_for_ever() {
    let fake = Fake::new(1);
    let config = ClientConfig { api_timeout_ms: 5_000, ..fake.config() };
    let client = Client::connect(config).await.expect("the fake answers");
    let config = ConsumerConfig { heartbeat_interval_ms: 5, ..ConsumerConfig::group("group") };
    let mut member = client.consumer(config).expect("the configuration is right");
    member.subscribe([TOPIC]).expect("it has a group");
    fake.script(ApiKey::SyncGroup, [Fate::Refused(ErrorCode::RebalanceInProgress); 101]);
    let error = member.poll(PATIENCE).await.expect_err("the group does not settle");
    assert_eq!((error.kind(), fake.requests(ApiKey::SyncGroup).len()), (ErrorKind::Rejoin, 101), "{error}");
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(all(&fake)));
    fake.script(ApiKey::JoinGroup, [Fate::Refused(ErrorCode::MemberIdRequired)]);
    fake.script(ApiKey::Heartbeat, [Fate::Refused(ErrorCode::RebalanceInProgress)]);
    let error = loop {
        if let Err(error) = member.poll(PATIENCE).await {
            break error;
        }
    };
    assert_eq!(error.code(), Some(ErrorCode::MemberIdRequired), "it has one: {error}");
}

#[tokio::test]
async fn a_member_that_was_forgotten_has_lost_everything_and_joins_anew() {
    for code in [ErrorCode::UnknownMemberId, ErrorCode::IllegalGeneration] {
        let fake = Fake::new(2);
        let mut member = member(&fake, fake.config()).await;
        fake.script(ApiKey::Heartbeat, [Fate::Refused(code)]);
        assert_eq!(next_event(&mut member).await, RebalanceEvent::Lost(all(&fake)));
        assert_eq!(member.assignment(), []);
        assert!(member.group_metadata().is_err(), "its offsets would not be fenced");
        assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(all(&fake)));
        assert_eq!(joins(&fake), ["", "member", "", "member"]);
    }
}

#[tokio::test]
async fn what_was_lost_while_joining_is_told() {
    let fake = Fake::new(2);
    let mut member = member(&fake, fake.config()).await;
    fake.script(ApiKey::JoinGroup, [Fate::Refused(ErrorCode::UnknownMemberId)]);
    fake.script(ApiKey::Heartbeat, [Fate::Refused(ErrorCode::RebalanceInProgress)]);
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Lost(all(&fake)));
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(all(&fake)));
}

#[tokio::test]
async fn a_group_that_cannot_be_joined_is_told_and_tried_again() {
    let fake = Fake::new(1);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let mut member = client.consumer(ConsumerConfig::group("group")).expect("the configuration is right");
    member.subscribe([TOPIC]).expect("it has a group");
    fake.script(ApiKey::JoinGroup, [Fate::Answered, Fate::Refused(ErrorCode::InconsistentGroupProtocol)]);
    let error = member.poll(PATIENCE).await.expect_err("another kind of group");
    assert_eq!((error.kind(), error.code()), (ErrorKind::GiveUp, Some(ErrorCode::InconsistentGroupProtocol)));
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(all(&fake)));
}

#[tokio::test]
async fn lost_heartbeats_change_nothing() {
    let fake = Fake::new(1);
    let mut member = member(&fake, fake.config()).await;
    fake.script(ApiKey::Heartbeat, [Fate::Lost, Fate::Refused(ErrorCode::NotCoordinator), Fate::AnswerLost]);
    let deadline = Instant::now() + PATIENCE;
    while fake.requests(ApiKey::Heartbeat).len() < 5 {
        assert!(Instant::now() < deadline, "the heart has stopped");
        let polled = member.poll(Duration::from_millis(10)).await.expect("the poll succeeds");
        assert_eq!(polled.events, []);
    }
    assert_eq!(joins(&fake).len(), 2);
}

#[tokio::test]
async fn the_leader_notices_new_partitions() {
    let fake = Fake::new(1);
    let mut member = member(&fake, ClientConfig { metadata_max_age_ms: 20, ..fake.config() }).await;
    fake.add_partition();
    let added = TopicPartition::new(TOPIC, 1);
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(vec![added]));
    assert_eq!(member.assignment(), all(&fake));
}

#[tokio::test]
async fn commits_are_tried_again_in_order_and_refusals_say_what_to_do() {
    let fake = Fake::new(1);
    let mut member = member(&fake, fake.config()).await;
    let partition = TopicPartition::new(TOPIC, 0);
    let offset = |offset: i64| [(partition.clone(), thalweg_client::CommittedOffset::new(offset.into()))];
    fake.script(ApiKey::OffsetCommit, [Fate::Lost, Fate::Refused(ErrorCode::CoordinatorNotAvailable)]);
    let first = member.commit_offsets_later(&offset(1));
    drop(member.commit_offsets_later(&offset(2)));
    member.commit_offsets(&offset(3)).await.expect("it is a member");
    first.await.expect("it was committed before");
    assert_eq!(fake.committed(0), Some(3));
    fake.script(ApiKey::OffsetCommit, [Fate::Refused(ErrorCode::IllegalGeneration)]);
    let error = member.commit_offsets(&offset(4)).await.expect_err("it is too late");
    assert_eq!(error.kind(), ErrorKind::Rejoin, "{error}");
    fake.script(ApiKey::OffsetCommit, [Fate::Refused(ErrorCode::OffsetMetadataTooLarge)]);
    let error = member.commit_offsets(&offset(5)).await.expect_err("it never fits");
    assert_eq!(error.kind(), ErrorKind::GiveUp, "{error}");
    assert_eq!(fake.committed(0), Some(3));
    let kept = member.committed(std::slice::from_ref(&partition)).await.expect("it answers");
    assert_eq!(kept[&partition].offset.0, 3);
    member.close().await.expect("it leaves");
    assert_eq!(fake.requests(ApiKey::LeaveGroup).len(), 1);
}

#[tokio::test]
async fn automatic_commits_do_not_pile_up() {
    let fake = Fake::new(1);
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let config = ConsumerConfig {
        offset_reset: OffsetReset::Earliest,
        auto_commit_interval_ms: Some(1),
        ..ConsumerConfig::group("group")
    };
    let mut reader = client.consumer(config).expect("the configuration is right");
    let partition = TopicPartition::new(TOPIC, 0);
    reader.assign([partition.clone()]).expect("it reads nothing yet");
    fake.script(ApiKey::OffsetCommit, [Fate::Held]);
    let deadline = Instant::now() + PATIENCE;
    while fake.held() == 0 {
        assert!(Instant::now() < deadline, "nothing is committed");
        reader.poll(Duration::from_millis(2)).await.expect("the poll succeeds");
    }
    for offset in 1..20 {
        reader.seek(&partition, offset.into()).expect("it is assigned");
        reader.poll(Duration::from_millis(2)).await.expect("the poll succeeds");
    }
    assert_eq!(fake.requests(ApiKey::OffsetCommit).len(), 1);
    fake.release();
    while fake.committed(0) != Some(19) {
        assert!(Instant::now() < deadline, "the newest is not committed");
        reader.poll(Duration::from_millis(2)).await.expect("the poll succeeds");
        assert!(fake.committed(0) < Some(1) || fake.committed(0) == Some(19), "an old one is committed");
    }
}

#[tokio::test]
async fn a_topic_that_somebody_else_looks_up_in_vain_is_noticed_when_it_is_back() {
    let fake = Fake::new(1);
    let config = ClientConfig { metadata_max_age_ms: 20, ..fake.config() };
    let client = Client::connect(config.clone()).await.expect("the fake answers");
    let config = ConsumerConfig { heartbeat_interval_ms: 5, ..ConsumerConfig::group("group") };
    let mut member = client.consumer(config).expect("the configuration is right");
    member.subscribe([TOPIC]).expect("it has a group");
    assert_eq!(next_event(&mut member).await, RebalanceEvent::Assigned(all(&fake)));
    client.admin().delete_topic(TOPIC).await.expect("it is deleted");
    assert!(client.partition_count(TOPIC).await.is_err());
    let mut events = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while !member.assignment().is_empty() {
        assert!(Instant::now() < deadline, "{events:?}");
        events.extend(member.poll(Duration::from_millis(10)).await.expect("the poll succeeds").events);
    }
    assert!(client.partition_count(TOPIC).await.is_err());
    fake.create_topic(2);
    while member.assignment() != all(&fake) {
        assert!(Instant::now() < deadline, "{events:?}");
        events.extend(member.poll(Duration::from_millis(10)).await.expect("the poll succeeds").events);
    }
}
