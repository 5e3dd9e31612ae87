//! What a member makes of a coordinator that refuses, forgets and reassigns (KIP-848).

use std::time::Duration;

use thalweg_client::{
    Client, Consumer, ConsumerConfig, Error, ErrorKind, GroupProtocol, OffsetReset, RebalanceEvent,
};
use thalweg_protocol::messages::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use thalweg_protocol::messages::{ApiKey, Request};
use thalweg_protocol::{ErrorCode, TopicPartition};
use tokio::time::Instant;

use crate::fake::{Fake, Fate, TOPIC};

const PATIENCE: Duration = Duration::from_secs(20);
const HEARTBEAT: ApiKey = ApiKey::ConsumerGroupHeartbeat;

fn partitions(indexes: &[i32]) -> Vec<TopicPartition> {
    indexes.iter().map(|index| TopicPartition::new(TOPIC, *index)).collect()
}

async fn member(fake: &Fake, config: ConsumerConfig) -> Consumer {
    let client = Client::connect(fake.config()).await.expect("the fake answers");
    let config = ConsumerConfig {
        group_protocol: GroupProtocol::Consumer,
        offset_reset: OffsetReset::Earliest,
        fetch_max_wait_ms: 10,
        ..config
    };
    let mut consumer = client.consumer(config).expect("the configuration is right");
    consumer.subscribe([TOPIC]).expect("it has a group");
    consumer
}

/// Polls until there is an event, or an error.
async fn next(consumer: &mut Consumer) -> Result<Vec<RebalanceEvent>, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "nothing happens");
        let polled = consumer.poll(Duration::from_millis(20)).await?;
        if !polled.events.is_empty() {
            return Ok(polled.events);
        }
    }
}

fn heartbeats(fake: &Fake) -> Vec<ConsumerGroupHeartbeatRequest> {
    let heartbeat = |(_, _, request)| match request {
        Request::ConsumerGroupHeartbeat(request) => request,
        _ => panic!("these are heartbeats"),
    };
    fake.requests(HEARTBEAT).into_iter().map(heartbeat).collect()
}

/// The partitions that the newest heartbeat which reports any says the member has.
fn reported(fake: &Fake) -> Option<Vec<i32>> {
    let reports = heartbeats(fake).into_iter().filter_map(|request| request.topic_partitions);
    reports.last().map(|topics| topics.into_iter().flat_map(|topic| topic.partitions).collect())
}

#[tokio::test]
async fn what_passes_is_tried_again_and_everything_said_anew() {
    let fake = Fake::new(2);
    fake.script(
        HEARTBEAT,
        [
            Fate::Lost,
            Fate::Refused(ErrorCode::CoordinatorLoadInProgress),
            Fate::Refused(ErrorCode::NotCoordinator),
            Fate::Refused(ErrorCode::UnreleasedInstanceId),
        ],
    );
    let mut consumer = member(&fake, ConsumerConfig::group("group")).await;
    let events = next(&mut consumer).await.expect("it joins");
    assert_eq!(events, [RebalanceEvent::Assigned(partitions(&[0, 1]))]);
    let joins = heartbeats(&fake);
    assert!(joins[..5].iter().all(|request| request.member_epoch == 0), "{joins:?}");
    assert!(
        joins[..5]
            .iter()
            .all(|request| request.member_id == joins[0].member_id && !request.member_id.is_empty())
    );
    let topics = joins[4].subscribed_topic_names.as_deref().expect("it says what it wants");
    assert_eq!(topics, [TOPIC]);

    // What was told once is left out, until an answer is lost.
    fake.script(HEARTBEAT, [Fate::Answered, Fate::AnswerLost]);
    let seen = heartbeats(&fake).len();
    let deadline = Instant::now() + PATIENCE;
    while heartbeats(&fake).len() < seen + 8 {
        assert!(Instant::now() < deadline, "there are no heartbeats");
        assert!(consumer.poll(Duration::from_millis(5)).await.expect("nothing happens").events.is_empty());
    }
    let later = heartbeats(&fake).split_off(seen);
    let says: Vec<bool> = later.iter().map(|request| request.subscribed_topic_names.is_some()).collect();
    assert_eq!(says.iter().filter(|says| **says).count(), 1, "once after the loss: {says:?}");
    assert_eq!(reported(&fake), Some(vec![0, 1]));
}

#[tokio::test]
async fn a_member_that_is_taken_for_dead_joins_again() {
    for code in [ErrorCode::UnknownMemberId, ErrorCode::FencedMemberEpoch] {
        let fake = Fake::new(1);
        let mut consumer = member(&fake, ConsumerConfig::group("group")).await;
        let assigned = [RebalanceEvent::Assigned(partitions(&[0]))];
        assert_eq!(next(&mut consumer).await.expect("it joins"), assigned);
        fake.script(HEARTBEAT, [Fate::Refused(code)]);
        let lost = next(&mut consumer).await.expect("it loses its place");
        assert_eq!(lost.first(), Some(&RebalanceEvent::Lost(partitions(&[0]))), "{code}");
        let again = match lost.len() {
            1 => next(&mut consumer).await.expect("it joins"),
            _ => lost[1..].to_vec(),
        };
        assert_eq!(again, assigned, "{code}");
        assert_eq!(consumer.metrics().losses, 1);
        consumer.close().await.expect("it leaves");
        assert_eq!(heartbeats(&fake).last().map(|request| request.member_epoch), Some(-1));
    }
}

#[tokio::test]
async fn what_is_taken_away_lasts_until_the_next_poll_and_is_then_reported() {
    let fake = Fake::new(3);
    let mut consumer = member(&fake, ConsumerConfig::group("group")).await;
    next(&mut consumer).await.expect("it joins");
    fake.assign(&[1]);
    let events = next(&mut consumer).await.expect("it is told");
    assert_eq!(events, [RebalanceEvent::Revoked(partitions(&[0, 2]))]);
    assert_eq!(consumer.assignment(), partitions(&[1]));
    consumer.commit().await.expect("they are its own until the next poll");
    assert_eq!(reported(&fake), Some(vec![0, 1, 2]), "it has them all the while");
    let deadline = Instant::now() + PATIENCE;
    while reported(&fake) != Some(vec![1]) {
        assert!(Instant::now() < deadline, "it reports {:?}", reported(&fake));
        consumer.poll(Duration::from_millis(5)).await.expect("nothing happens");
    }
    fake.assign(&[1, 2]);
    let events = next(&mut consumer).await.expect("it is told");
    assert_eq!(events, [RebalanceEvent::Assigned(partitions(&[2]))]);
}

#[tokio::test]
async fn a_commit_under_an_old_epoch_goes_under_the_newer_one() {
    let fake = Fake::new(1);
    let mut consumer = member(&fake, ConsumerConfig::group("group")).await;
    next(&mut consumer).await.expect("it joins");
    consumer.seek(&partitions(&[0])[0], thalweg_protocol::Offset(7)).expect("it is assigned");
    fake.script(ApiKey::OffsetCommit, [Fate::Refused(ErrorCode::StaleMemberEpoch); 2]);
    consumer.commit().await.expect("the member is still in the group");
    assert_eq!(fake.committed(0), Some(7));
    fake.script(ApiKey::OffsetCommit, [Fate::Refused(ErrorCode::UnknownMemberId)]);
    let error = consumer.commit().await.expect_err("the coordinator says that it is not");
    assert_eq!(error.kind(), ErrorKind::Rejoin);
}

#[tokio::test]
async fn a_member_that_is_replaced_or_refused_for_good_is_told_and_ends() {
    for (code, kind) in [
        (ErrorCode::FencedInstanceId, ErrorKind::Fenced),
        (ErrorCode::GroupAuthorizationFailed, ErrorKind::GiveUp),
    ] {
        let fake = Fake::new(1);
        let group_instance_id = Some("instance".to_owned());
        let config = ConsumerConfig { group_instance_id, ..ConsumerConfig::group("group") };
        let mut consumer = member(&fake, config).await;
        next(&mut consumer).await.expect("it joins");
        fake.script(HEARTBEAT, [Fate::Refused(code)]);
        let error = next(&mut consumer).await.expect_err("it is out");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(consumer.assignment().is_empty());
        let lost = next(&mut consumer).await.expect("what it had is told");
        assert_eq!(lost, [RebalanceEvent::Lost(partitions(&[0]))]);
        let seen = heartbeats(&fake).len();
        consumer.poll(Duration::from_millis(50)).await.expect("nothing happens any more");
        assert_eq!(heartbeats(&fake).len(), seen);
    }
}

#[tokio::test]
async fn a_member_without_polls_leaves() {
    let fake = Fake::new(1);
    let config = ConsumerConfig { max_poll_interval_ms: 60, ..ConsumerConfig::group("group") };
    let mut consumer = member(&fake, config).await;
    next(&mut consumer).await.expect("it joins");
    let deadline = Instant::now() + PATIENCE;
    while heartbeats(&fake).last().is_none_or(|request| request.member_epoch != -1) {
        assert!(Instant::now() < deadline, "it stays");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let lost = next(&mut consumer).await.expect("it is told");
    assert_eq!(lost.first(), Some(&RebalanceEvent::Lost(partitions(&[0]))));
}
