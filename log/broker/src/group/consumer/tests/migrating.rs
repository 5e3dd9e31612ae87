//! Groups that change from one protocol to the other.

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::records::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicPartition,
};

use super::harness::{Beat, Harness, LIMITS, join, partitions};
use crate::group::classic::{ClassicGroup, GroupLimits, GroupState, Heir, Protocol};
use crate::group::consumer::{Changes, ConsumerGroup, ConsumerLimits, GroupEpoch};

const CLASSIC_LIMITS: GroupLimits = GroupLimits {
    initial_rebalance_delay_ms: 0,
    min_session_timeout_ms: 1,
    max_session_timeout_ms: 100_000,
    max_members: 3,
};

fn subscription(topics: &[&'static str]) -> Bytes {
    let topics = topics.iter().map(|topic| ByteString::from_static(topic)).collect();
    ConsumerProtocolSubscription { topics, ..Default::default() }.to_bytes(1).expect("short")
}

fn assignment(partitions: &[i32]) -> Bytes {
    let topic = TopicPartition { topic: "t".into(), partitions: partitions.to_vec() };
    let assignment = ConsumerProtocolAssignment { assigned_partitions: vec![topic], user_data: None };
    assignment.to_bytes(1).expect("short")
}

/// A member of a classic group that reads `t`.
fn heir(id: &'static str, said: Bytes, assigned: &[i32]) -> Heir {
    Heir {
        id: id.into(),
        instance_id: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        protocols: vec![Protocol { name: "range".into(), metadata: said }],
        assignment: assignment(assigned),
    }
}

fn classic(h: &Harness, heirs: Vec<Heir>) -> ClassicGroup {
    ClassicGroup::inherit("g".into(), 7, heirs, CLASSIC_LIMITS, h.now)
}

/// Upgrades the group that `h` drives from `classic`.
fn upgrade(h: &mut Harness, classic: &ClassicGroup) {
    let (topics, now) = (h.topics(), h.now);
    h.take(|group, _, _, changes| {
        *group = ConsumerGroup::succeed(classic, LIMITS, &topics, now, changes).map_err(|r| r.code)?;
        Ok::<_, ErrorCode>(())
    })
    .expect("it can be upgraded");
}

#[test]
fn a_classic_group_goes_on_where_it_stood() {
    let mut h = Harness::new(&[("t", 4)]);
    let members = vec![heir("a", subscription(&["t"]), &[0, 1]), heir("b", subscription(&["t"]), &[2, 3])];
    let group = classic(&h, members);
    upgrade(&mut h, &group);
    for (id, has) in [("a", &[0, 1][..]), ("b", &[2, 3])] {
        let current = h.group.image().current(id).expect("it is a member");
        assert_eq!((current.epoch, current.assignment()), (GroupEpoch(7), partitions(has)), "{id}");
        assert_eq!(h.group.heartbeat_classic(&id.into(), None, 7, h.now), ErrorCode::None, "{id}");
    }
    // One of the consumer protocol joins: the others are to join again.
    let c = h.beat(join("c", &["t"])).expect("taken");
    assert_eq!((c.epoch, c.assignment), (GroupEpoch(8), Some(partitions(&[]))));
    for id in ["a", "b"] {
        let told = h.group.heartbeat_classic(&id.into(), None, 7, h.now);
        assert_eq!(told, ErrorCode::RebalanceInProgress, "{id}");
    }
    h.check_replay();
    // They do not, and are given up; sessions go on as they were.
    h.pass(10_000);
    assert_eq!(h.group.image().members().keys().collect::<Vec<_>>(), ["c"]);
}

#[test]
fn what_cannot_be_understood_stays_classic() {
    let h = Harness::new(&[("t", 4)]);
    let small = ConsumerLimits { max_members: 1, ..LIMITS };
    let good = || heir("a", subscription(&["t"]), &[0]);
    let unread = heir("b", Bytes::from_static(b"?"), &[1]);
    for (members, limits, expected) in [
        (vec![good()], LIMITS, true),
        (vec![good(), unread], LIMITS, false),
        (vec![good(), heir("b", subscription(&["t"]), &[1])], small, false),
    ] {
        let group = classic(&h, members);
        let mut changes = Changes::default();
        let upgraded = ConsumerGroup::succeed(&group, limits, &h.topics(), h.now, &mut changes);
        let code = upgraded.map(|_| ()).map_err(|refusal| refusal.code);
        assert_eq!(code, if expected { Ok(()) } else { Err(ErrorCode::GroupIdNotFound) });
    }
}

#[test]
fn a_partition_that_a_leader_gave_twice_has_one_owner() {
    let mut h = Harness::new(&[("t", 2)]);
    let members = vec![heir("a", subscription(&["t"]), &[0, 1]), heir("b", subscription(&["t"]), &[1])];
    let group = classic(&h, members);
    upgrade(&mut h, &group);
    assert_eq!(h.group.image().current("a").expect("a member").assignment(), partitions(&[0, 1]));
    assert_eq!(h.group.image().current("b").expect("a member").assignment(), partitions(&[]));
}

#[test]
fn when_the_last_of_the_consumer_protocol_has_gone_the_others_are_a_classic_group_again() {
    let mut h = Harness::new(&[("t", 4)]);
    let group = classic(&h, vec![heir("a", subscription(&["t"]), &[0, 1, 2, 3])]);
    upgrade(&mut h, &group);
    assert!(h.group.is_all_classic());
    h.beat(join("c", &["t"])).expect("taken");
    assert!(!h.group.is_all_classic());
    h.beat(Beat { epoch: -1, ..Beat::of("c") }).expect("it may go");
    assert!(h.group.is_all_classic());
    let back = h.group.hand_over(CLASSIC_LIMITS, &h.topics(), h.now);
    assert_eq!((back.state(), back.generation()), (GroupState::Stable, h.group.image().epoch().0));
    assert_eq!(back.protocol().map(|name| &**name), Some("range"));
    let member = &back.members()["a"];
    let told = ConsumerProtocolAssignment::from_bytes(member.assignment.clone()).expect("it can be read");
    let told: Vec<i32> = told.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect();
    assert_eq!(
        told,
        h.group.image().target("a").expect("one").iter().map(|p| p.partition).collect::<Vec<_>>()
    );
    assert_eq!(member.metadata("range"), subscription(&["t"]));
    let restored = ClassicGroup::restore(back.stored_form(), CLASSIC_LIMITS, h.now);
    assert_eq!((restored.state(), restored.members().len()), (GroupState::Stable, 1));
}
