//! The coordinator of groups on a disk that syncs when it is told to.

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset, Uuid};
use thalweg_storage::testing::Crash;

use super::consumer::ConsumerState;
use super::{
    Assignment, Commit, CommitPartition, CommitTopic, GroupEpoch, GroupState, Heartbeat, Join, Protocol,
    Sync, Ticket,
};
use crate::coordinator::rig::Rig;
use crate::coordinator::{JUMPS_MS, Shard};

const GROUP: ByteString = ByteString::from_static("g");
const WEEK_MS: i64 = 7 * 24 * 3_600_000;

fn join() -> Join {
    Join {
        ticket: Ticket(0),
        member_id: ByteString::new(),
        instance_id: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 60_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: "consumer".into(),
        protocols: vec![Protocol { name: "range".into(), metadata: Bytes::from_static(b"topics") }],
        needs_known_id: false,
        can_skip_assignment: true,
        fresh_member_id: "a".into(),
    }
}

fn sync() -> Sync {
    Sync {
        ticket: Ticket(0),
        member_id: "a".into(),
        instance_id: None,
        generation: 1,
        protocol_type: None,
        protocol: None,
        assignments: [("a".into(), Bytes::from_static(b"all"))].into(),
    }
}

fn commit(offset: i64, member_id: &'static str, generation: i32) -> Commit {
    let partition = CommitPartition {
        partition: 0,
        offset: Offset(offset),
        leader_epoch: LeaderEpoch(-1),
        metadata: ByteString::new(),
    };
    Commit {
        group: GROUP,
        member_id: member_id.into(),
        instance_id: None,
        generation,
        knows_epochs: true,
        retention_ms: None,
        topics: vec![CommitTopic { name: "t".into(), id: Uuid::ZERO, partitions: vec![partition] }],
        producer: None,
    }
}

#[tokio::test]
async fn an_assignment_is_given_out_only_when_it_lasts() {
    let rig = Rig::new().await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    let joined = shard.join(&GROUP, join()).expect("taken");
    let (joined, rounds) = rig.rounds(joined).await;
    assert_eq!((joined.expect("answered").generation, rounds), (1, 0), "joining writes nothing");
    let synced = shard.sync(&GROUP, sync()).expect("taken");
    let (synced, rounds) = rig.rounds(synced).await;
    assert_eq!((&*synced.expect("answered").assignment, rounds), (&b"all"[..], 1));
    drop(shard);

    let rig = rig.restart(Crash::Dropped).await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    assert_eq!(shard.heartbeat(&GROUP, "a", None, 1), ErrorCode::None);
    assert_eq!(shard.describe(&GROUP).expect("it is there").state, GroupState::Stable);
}

#[tokio::test]
async fn an_assignment_that_cannot_be_written_is_refused() {
    let rig = Rig::new().await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    let joined = rig.done(shard.join(&GROUP, join()).expect("taken")).await;
    assert_eq!(joined.expect("answered").error, ErrorCode::None);
    rig.filesystem.set_full(true);
    let synced = rig.done(shard.sync(&GROUP, sync()).expect("taken")).await;
    assert_eq!(synced.expect("answered").error, ErrorCode::CoordinatorNotAvailable);
    let refused = shard.commit(&commit(3, "a", 1), || Ok(()));
    assert!(refused.is_err(), "the group rebalances, and the disk is full");
}

#[tokio::test]
async fn offsets_go_when_nobody_has_been_in_the_group_for_long() {
    let rig = Rig::new().await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    rig.done(shard.join(&GROUP, join()).expect("taken")).await.expect("answered");
    rig.done(shard.sync(&GROUP, sync()).expect("taken")).await.expect("answered");
    shard.commit(&commit(7, "a", 1), || Ok(())).expect("it is a member");
    let offset = || {
        let fetched =
            shard.fetch(&GROUP, (None, -1), Some(&[("t".into(), vec![0])]), true).expect("anybody may know");
        fetched.topics[0].1[0].committed.clone().expect("no transaction").map(|committed| committed.offset.0)
    };
    rig.wall.advance(2 * WEEK_MS);
    shard.expire_offsets();
    assert_eq!(offset(), Some(7), "somebody is there");
    let leaver = super::Leaver { member_id: "a".into(), instance_id: None };
    assert_eq!(shard.leave(&GROUP, &[leaver]), Ok(vec![ErrorCode::None]));
    rig.wall.advance(WEEK_MS - 1);
    shard.expire_offsets();
    assert_eq!(offset(), Some(7), "it is not a week yet");
    rig.wall.advance(1);
    shard.expire_offsets();
    assert_eq!((offset(), shard.list()), (None, vec![]), "the group goes with its last offset");
    rig.settle().await;
    drop(shard);
    let rig = rig.restart(Crash::Dropped).await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    assert_eq!(shard.list(), []);
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_forgets_no_offsets() {
    for jump_ms in JUMPS_MS {
        let rig = Rig::new().await;
        let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
        let is_kept = || {
            shard.expire_offsets();
            !shard.list().is_empty()
        };
        shard.commit(&commit(7, "", -1), || Ok(())).expect("nobody is in the group");
        rig.wall.advance(WEEK_MS / 2);
        rig.wall.jump(jump_ms);
        assert!(is_kept(), "{jump_ms}: it is half of a week");
        rig.wall.advance(WEEK_MS / 2 - 1);
        assert!(is_kept(), "{jump_ms}: not quite a week");
        rig.wall.jump(-jump_ms);
        assert!(is_kept(), "{jump_ms}: nor when the clock is set right");
        rig.wall.advance(1);
        assert!(!is_kept(), "{jump_ms}: a week is over");
    }
}

#[tokio::test]
async fn a_group_of_which_nothing_came_is_not_kept() {
    let rig = Rig::new().await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    let refused = Join { session_timeout_ms: 0, ..join() };
    let answer = rig.done(shard.join(&GROUP, refused).expect("answered later")).await;
    assert_eq!(answer.expect("answered").error, ErrorCode::InvalidSessionTimeout);
    let unknown = Join { member_id: "a".into(), ..join() };
    assert_eq!(shard.join(&GROUP, unknown).map(|_| ()), Err(ErrorCode::UnknownMemberId));
    assert_eq!(shard.commit(&commit(1, "a", 1), || Ok(())), Err(ErrorCode::IllegalGeneration));
    let refused = shard.commit(&commit(1, "", -1), || Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(refused, Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(shard.list(), []);
    assert_eq!(shard.journal().committed(Offset(-1)).await, Ok(()), "nothing was written");
}

/// The first heartbeat of a member that reads `t`.
fn heartbeat(member_id: &'static str) -> Heartbeat {
    Heartbeat {
        member_id: member_id.into(),
        epoch: GroupEpoch::JOINING,
        instance_id: None,
        rack_id: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        rebalance_timeout_ms: Some(60_000),
        topics: Some(["t".into()].into()),
        regex: None,
        assignor: None,
        owned: Some(Assignment::new()),
    }
}

#[tokio::test]
async fn what_the_broker_assigns_is_given_out_only_when_it_lasts() {
    let rig = Rig::new().await;
    rig.filesystem.promise_no_space();
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    let (told, last) = shard.consumer_heartbeat(&GROUP, &heartbeat("a")).expect("taken");
    assert_eq!((told.epoch, told.assignment.map(|all| all.len())), (GroupEpoch(1), Some(2)));
    let last = last.expect("it rests on records");
    assert!(!shard.journal().is_committed(last), "the answer has to wait");
    rig.done(shard.journal().committed(last)).await.expect("the disk works");
    // One that says nothing new rests on the same.
    let again = Heartbeat { epoch: GroupEpoch(1), topics: None, owned: None, ..heartbeat("a") };
    let (told, rests_on) = shard.consumer_heartbeat(&GROUP, &again).expect("taken");
    assert_eq!((told.assignment, rests_on), (None, Some(last)));

    let before = shard.describe_consumer(&GROUP).expect("it is there");
    rig.filesystem.set_full(true);
    let refused = shard.consumer_heartbeat(&GROUP, &heartbeat("b")).map(|_| ());
    let refused = refused.expect_err("the disk is full");
    assert_eq!(refused.code, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(shard.describe_consumer(&GROUP).expect("it is there"), before, "nothing has happened");
    rig.filesystem.set_full(false);
    shard.consumer_heartbeat(&GROUP, &heartbeat("b")).expect("taken");
    drop(shard);

    // The second had not been told when the power went.
    let rig = rig.restart(Crash::Dropped).await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    assert_eq!(shard.describe_consumer(&GROUP).expect("it is there"), before);
    assert_eq!(before.state, ConsumerState::Stable);
    let gone = Heartbeat { epoch: GroupEpoch(2), ..again.clone() };
    let gone = shard.consumer_heartbeat(&GROUP, &Heartbeat { member_id: "b".into(), ..gone });
    assert_eq!(gone.map(|_| ()).expect_err("it is to join again").code, ErrorCode::UnknownMemberId);
}

#[tokio::test]
async fn a_consumer_group_goes_with_its_last_offset() {
    let rig = Rig::new().await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    shard.consumer_heartbeat(&GROUP, &heartbeat("a")).expect("taken");
    shard.commit(&commit(7, "a", 1), || Ok(())).expect("it is a member");
    rig.wall.advance(2 * WEEK_MS);
    let leaves = Heartbeat { epoch: GroupEpoch::LEAVING, ..heartbeat("a") };
    shard.consumer_heartbeat(&GROUP, &leaves).expect("it may go");
    rig.wall.advance(WEEK_MS - 1);
    shard.expire_offsets();
    assert_eq!(shard.list().len(), 1, "it is not a week yet that nobody is there");
    rig.wall.advance(1);
    shard.expire_offsets();
    assert_eq!(shard.list(), []);
    rig.settle().await;
    drop(shard);
    let rig = rig.restart(Crash::Dropped).await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    assert_eq!(shard.list(), []);
}
