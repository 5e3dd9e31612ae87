//! The state machine under cases, and under random interleavings.

mod harness;
mod interleavings;

use bytes::Bytes;
use thalweg_protocol::ErrorCode;

use super::{Action, GroupState, Leaver};
use crate::coordinator::JUMPS_MS;
use harness::{Harness, JoinSpec};

fn member(name: &'static str) -> JoinSpec {
    JoinSpec { name, ..JoinSpec::default() }
}

fn static_member(name: &'static str, instance: &'static str) -> JoinSpec {
    JoinSpec { name, instance: Some(instance), ..JoinSpec::default() }
}

#[test]
fn members_join_one_assigns_and_each_gets_its_part() {
    let mut h = Harness::new(0);
    let a = h.join(member("a")).expect("alone, it waits for nobody");
    assert_eq!((a.error, a.generation, a.leader.as_ref()), (ErrorCode::None, 1, "a"));
    assert_eq!(a.members.len(), 1);
    assert_eq!(h.sync("a", 1, &[("a", "all")]).expect("answered").assignment, "all");
    assert_eq!(h.group.state(), GroupState::Stable);

    let b = h.join_later(member("b"));
    assert_eq!(h.heartbeat("a", 1), ErrorCode::RebalanceInProgress);
    let a = h.join(JoinSpec { id: "a", ..member("a") }).expect("both are here");
    let b = h.joined(b).expect("both are here");
    assert_eq!((a.generation, b.generation), (2, 2));
    assert_eq!((a.leader.as_ref(), b.leader.as_ref()), ("a", "a"));
    assert_eq!((a.members.len(), b.members.len()), (2, 0), "only the leader is told who there is");

    let b = h.sync_later("b", 2, &[]);
    assert!(h.synced(b).is_none(), "the leader has not assigned yet");
    assert_eq!(h.sync("a", 2, &[("a", "one"), ("b", "two")]).expect("answered").assignment, "one");
    assert_eq!(h.synced(b).expect("answered").assignment, "two");
    assert_eq!(h.heartbeat("b", 2), ErrorCode::None);
    assert_eq!(h.heartbeat("b", 1), ErrorCode::IllegalGeneration);
    assert_eq!(h.heartbeat("c", 2), ErrorCode::UnknownMemberId);
}

#[test]
fn every_member_that_asks_without_an_id_can_come_back_with_the_one_it_is_given() {
    let mut h = Harness::new(0);
    for name in ["a", "b", "c"] {
        let refused = h.join(JoinSpec { known_id: true, ..member(name) }).expect("answered at once");
        assert_eq!((refused.error, refused.member_id.as_ref()), (ErrorCode::MemberIdRequired, name));
    }
    let tickets = ["a", "b", "c"].map(|id| h.join_later(JoinSpec { id, known_id: true, ..member(id) }));
    for ticket in tickets {
        let answer = h.joined(ticket).expect("all that were given ids have come");
        assert_eq!((answer.error, answer.generation), (ErrorCode::None, 1), "{}", answer.member_id);
    }
    assert_eq!(h.group.members().len(), 3);
}

#[test]
fn an_id_that_nobody_comes_back_with_lapses() {
    let mut h = Harness::new(0);
    h.join(JoinSpec { known_id: true, ..member("gone") }).expect("answered");
    let a = h.join_later(member("a"));
    assert!(h.joined(a).is_none(), "somebody may still come");
    h.pass(10_000);
    assert_eq!(h.joined(a).expect("nobody came").generation, 1);
    let late = h.join(JoinSpec { id: "gone", known_id: true, ..member("gone") }).expect("answered");
    assert_eq!(late.error, ErrorCode::UnknownMemberId);
}

#[test]
fn the_first_rebalance_waits_for_more_members() {
    let mut h = Harness::new(3_000);
    let a = h.join_later(member("a"));
    h.pass(2_000);
    let b = h.join_later(member("b"));
    h.pass(1_000);
    assert!(h.joined(a).is_none(), "one came while it waited, so it waits on");
    h.pass(3_000);
    let (a, b) = (h.joined(a).expect("the time is up"), h.joined(b).expect("the time is up"));
    assert_eq!((a.generation, b.generation), (1, 1));
}

#[test]
fn a_silent_member_is_given_up_and_the_others_rebalance() {
    let mut h = Harness::stable(&[member("a"), member("b")]);
    for _ in 0..4 {
        h.pass(3_000);
        assert_eq!(
            h.heartbeat("a", 1),
            if h.has_member("b") { ErrorCode::None } else { ErrorCode::RebalanceInProgress }
        );
    }
    assert!(!h.has_member("b"), "its session of 10 s has lapsed");
    let a = h.join(JoinSpec { id: "a", ..member("a") }).expect("alone");
    assert_eq!((a.generation, a.members.len()), (2, 1));
}

#[test]
fn whoever_joins_too_late_is_out_and_must_begin_anew() {
    let mut h = Harness::stable(&[member("a"), member("b")]);
    let c = h.join_later(member("c"));
    let a = h.join_later(JoinSpec { id: "a", ..member("a") });
    for _ in 0..10 {
        h.pass(6_000);
        h.heartbeat("b", 1);
    }
    assert_eq!(h.joined(a).expect("the rebalance timeout of 60 s has passed").generation, 2);
    assert_eq!(h.joined(c).expect("likewise").generation, 2);
    assert_eq!(h.heartbeat("b", 1), ErrorCode::UnknownMemberId);
    assert_eq!(
        h.join(JoinSpec { id: "b", ..member("b") }).expect("answered").error,
        ErrorCode::UnknownMemberId
    );
}

#[test]
fn whoever_never_asks_for_its_assignment_is_out() {
    let mut h = Harness::new(3_000);
    let tickets = ["a", "b"].map(|name| h.join_later(member(name)));
    h.pass(6_000);
    assert!(tickets.iter().all(|ticket| h.joined(*ticket).is_some()));
    let a = h.sync_later("a", 1, &[("a", "x"), ("b", "y")]);
    assert_eq!(h.synced(a).expect("the leader's own").assignment, "x");
    for _ in 0..10 {
        h.pass(6_000);
        h.heartbeat("a", 1);
        h.heartbeat("b", 1);
    }
    assert!(!h.has_member("b"), "60 s without SyncGroup");
    assert_eq!(h.group.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_jump_of_the_wall_clock_ends_no_session_and_no_rebalance_and_prolongs_none() {
    for jump_ms in JUMPS_MS {
        let mut h = Harness::stable(&[member("a"), member("b")]);
        h.pass(3_000);
        h.heartbeat("a", 1);
        h.heartbeat("b", 1);
        h.now.wall_ms += jump_ms;
        h.pass(9_999);
        assert!(h.has_member("a") && h.has_member("b"), "{jump_ms}: their sessions of 10 s are not over");
        assert_eq!(h.heartbeat("a", 1), ErrorCode::None);
        h.pass(1);
        assert_eq!((h.has_member("a"), h.has_member("b")), (true, false), "{jump_ms}");

        // It has 60 s for the rebalance that follows.
        let c = h.join_later(member("c"));
        h.now.wall_ms += jump_ms;
        for _ in 0..10 {
            assert!(h.joined(c).is_none(), "{jump_ms}: it waits for the other");
            h.heartbeat("a", 1);
            h.pass(5_999);
        }
        h.heartbeat("a", 1);
        h.pass(10);
        assert_eq!(h.joined(c).expect("the time is up").generation, 2, "{jump_ms}");
        assert!(!h.has_member("a"), "{jump_ms}");
    }
}

#[test]
fn a_static_member_comes_back_without_a_rebalance_and_its_old_self_is_fenced() {
    let mut h = Harness::stable(&[member("a"), static_member("s1", "s")]);
    let s = h.join(static_member("s2", "s")).expect("nothing to wait for");
    assert_eq!((s.error, s.generation, s.member_id.as_ref()), (ErrorCode::None, 1, "s2"));
    assert_eq!((s.leader.as_ref(), s.members.len()), ("a", 0));
    assert_eq!(h.group.state(), GroupState::Stable);
    assert_eq!(h.sync("s2", 1, &[]).expect("answered").assignment, "for s1", "it keeps its assignment");
    assert_eq!(h.group.heartbeat("s1", Some("s"), 1, h.now), ErrorCode::FencedInstanceId);
    assert_eq!(h.group.heartbeat("s2", Some("s"), 1, h.now), ErrorCode::None);
    assert_eq!(h.group.heartbeat("s2", Some("other"), 1, h.now), ErrorCode::UnknownMemberId);
    let old = h.join(JoinSpec { id: "s1", ..static_member("s1", "s") }).expect("answered");
    assert_eq!(old.error, ErrorCode::FencedInstanceId);
}

#[test]
fn a_static_leader_comes_back_and_leaves_the_assignment_alone() {
    for (can_skip, leader, skips) in [(true, "s2", true), (false, "s1", false)] {
        let mut h = Harness::stable(&[static_member("s1", "s"), member("a")]);
        let s = h.join(JoinSpec { can_skip, ..static_member("s2", "s") }).expect("nothing to wait for");
        assert_eq!((s.error, s.leader.as_ref(), s.skip_assignment), (ErrorCode::None, leader, skips));
        assert_eq!(s.members.len(), if can_skip { 2 } else { 0 });
        assert_eq!(h.group.leader().expect("there is one"), "s2");
    }
}

#[test]
fn a_static_member_that_waits_is_fenced_when_its_successor_comes() {
    let mut h = Harness::stable(&[member("a"), static_member("s1", "s")]);
    let old = h.join_later(JoinSpec { id: "s1", protocols: &[("range", "new")], ..static_member("s1", "s") });
    let new = h.join_later(static_member("s2", "s"));
    assert_eq!(h.joined(old).expect("answered").error, ErrorCode::FencedInstanceId);
    h.join(JoinSpec { id: "a", ..member("a") }).expect("all are here");
    assert_eq!(h.joined(new).expect("all are here").error, ErrorCode::None);
}

#[test]
fn members_leave_by_member_id_or_by_instance_id() {
    let mut h = Harness::stable(&[member("a"), static_member("s1", "s"), member("b")]);
    let leaver = |member: &'static str, instance: Option<&'static str>| Leaver {
        member_id: member.into(),
        instance_id: instance.map(Into::into),
    };
    for (who, expected) in [
        (leaver("", Some("nobody")), ErrorCode::UnknownMemberId),
        (leaver("s9", Some("s")), ErrorCode::FencedInstanceId),
        (leaver("", Some("s")), ErrorCode::None),
        (leaver("b", None), ErrorCode::None),
        (leaver("b", None), ErrorCode::UnknownMemberId),
        (leaver("a", None), ErrorCode::None),
    ] {
        assert_eq!(h.leave(&who), expected, "{who:?}");
    }
    assert_eq!((h.group.state(), h.group.members().len()), (GroupState::Empty, 0));
    assert!(h.last_stored().members.is_empty(), "the empty group is written");
}

#[test]
fn an_assignment_that_cannot_be_written_is_not_given_out() {
    let mut h = Harness::stable(&[member("a"), member("b")]);
    let b = h.join_later(JoinSpec { id: "b", protocols: &[("range", "new")], ..member("b") });
    h.join(JoinSpec { id: "a", ..member("a") }).expect("both are here");
    assert_eq!(h.joined(b).expect("both are here").generation, 2);
    h.hold_stores = true;
    let b = h.sync_later("b", 2, &[]);
    let a = h.sync_later("a", 2, &[("a", "x"), ("b", "y")]);
    assert!(h.synced(a).is_none() && h.synced(b).is_none(), "nothing is given out before it is committed");
    h.release_stores(Err(ErrorCode::CoordinatorNotAvailable));
    for ticket in [a, b] {
        assert_eq!(h.synced(ticket).expect("answered").error, ErrorCode::CoordinatorNotAvailable);
    }
    assert_eq!(h.group.state(), GroupState::PreparingRebalance);
}

#[test]
fn the_protocol_is_one_that_all_support_and_most_prefer() {
    let both: &[(&str, &str)] = &[("range", "r"), ("sticky", "s")];
    let turned: &[(&str, &str)] = &[("sticky", "s"), ("range", "r")];
    for (protocols, expected) in [
        ([both, both, turned], "range"),
        ([both, turned, turned], "sticky"),
        ([both, turned, &[("sticky", "s")]], "sticky"),
    ] {
        let mut h = Harness::new(1_000);
        let tickets: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .zip(protocols)
            .map(|(name, protocols)| h.join_later(JoinSpec { protocols, ..member(name) }))
            .collect();
        h.pass(2_000);
        for ticket in tickets {
            assert_eq!(h.joined(ticket).expect("answered").protocol.expect("chosen"), expected);
        }
    }
    let mut h = Harness::stable(&[member("a")]);
    for refused in [
        JoinSpec { protocols: &[("other", "")], ..member("x") },
        JoinSpec { protocol_type: "connect", ..member("x") },
    ] {
        assert_eq!(h.join(refused).expect("answered").error, ErrorCode::InconsistentGroupProtocol);
    }
    for refused in [JoinSpec { protocols: &[], ..member("x") }, JoinSpec { protocol_type: "", ..member("x") }]
    {
        assert_eq!(
            Harness::new(0).join(refused).expect("answered").error,
            ErrorCode::InconsistentGroupProtocol
        );
    }
}

#[test]
fn what_a_client_takes_the_group_to_be_is_checked_in_sync() {
    let mut h = Harness::new(0);
    h.join(member("a")).expect("alone");
    for (protocol_type, protocol, expected) in [
        (Some("connect"), Some("range"), ErrorCode::InconsistentGroupProtocol),
        (Some("consumer"), Some("sticky"), ErrorCode::InconsistentGroupProtocol),
        (Some("consumer"), Some("range"), ErrorCode::None),
    ] {
        let mut sync = h.sync_request("a", 1, &[("a", "x")]);
        sync.protocol_type = protocol_type.map(Into::into);
        sync.protocol = protocol.map(Into::into);
        let ticket = sync.ticket;
        h.act(|group, now, actions| group.sync(sync, now, actions));
        assert_eq!(h.synced(ticket).expect("answered").error, expected);
    }
}

#[test]
fn a_lost_answer_is_given_again() {
    let mut h = Harness::stable(&[member("a"), member("b")]);
    let b = h.join(JoinSpec { id: "b", ..member("b") }).expect("nothing has changed");
    assert_eq!((b.generation, b.error), (1, ErrorCode::None));
    assert_eq!(h.group.state(), GroupState::Stable);
    let a = h.join_later(JoinSpec { id: "a", ..member("a") });
    assert!(h.joined(a).is_none(), "the leader may want to assign anew");
    let again = h.join_later(JoinSpec { id: "a", ..member("a") });
    assert_eq!(h.joined(a).expect("given up for the new one").error, ErrorCode::RebalanceInProgress);
    h.join(JoinSpec { id: "b", ..member("b") }).expect("all are here");
    assert_eq!(h.joined(again).expect("all are here").generation, 2);
    let a = h.join(JoinSpec { id: "a", ..member("a") }).expect("CompletingRebalance");
    assert_eq!((a.generation, a.members.len()), (2, 2));
}

#[test]
fn commits_are_checked_against_the_membership() {
    let mut h = Harness::new(0);
    assert_eq!(h.group.check_commit("", None, -1, false), Ok(()), "an empty group keeps anybody's offsets");
    h.join(static_member("s1", "s")).expect("alone");
    let completing =
        vec![("s1", None, 1, false, Err(ErrorCode::RebalanceInProgress)), ("s1", None, 1, true, Ok(()))];
    let stable = vec![
        ("s1", None, 1, false, Ok(())),
        ("s1", Some("s"), 1, false, Ok(())),
        ("s0", Some("s"), 1, false, Err(ErrorCode::FencedInstanceId)),
        ("s1", None, 0, false, Err(ErrorCode::IllegalGeneration)),
        ("s1", None, -1, false, Err(ErrorCode::IllegalGeneration)),
        ("x", None, 1, false, Err(ErrorCode::UnknownMemberId)),
        ("x", None, 1, true, Err(ErrorCode::UnknownMemberId)),
        ("", None, -1, false, Err(ErrorCode::UnknownMemberId)),
        ("", None, -1, true, Ok(())),
    ];
    let check = |h: &Harness, cases: Vec<(_, _, _, _, _)>| {
        for (member, instance, generation, transactional, expected) in cases {
            let found = h.group.check_commit(member, instance, generation, transactional);
            assert_eq!(found, expected, "{member} {instance:?} {generation} {transactional}");
        }
    };
    check(&h, completing);
    h.sync("s1", 1, &[("s1", "x")]).expect("answered");
    check(&h, stable);
}

#[test]
fn a_group_comes_back_from_what_was_written() {
    let mut h = Harness::stable(&[member("a"), static_member("s1", "s")]);
    let mut back = Harness::restored(h.last_stored().clone(), h.now);
    assert_eq!((back.group.state(), back.group.generation()), (GroupState::Stable, 1));
    assert_eq!(back.heartbeat("a", 1), ErrorCode::None);
    assert_eq!(back.sync("a", 1, &[]).expect("answered").assignment, "for a");
    let s = back.join(static_member("s2", "s")).expect("nothing to wait for");
    assert_eq!((s.generation, s.error), (1, ErrorCode::None));
    back.pass(20_000);
    assert!(back.group.is_deserted(), "nobody is heard of: every session lapses");
    h.leave(&Leaver { member_id: "a".into(), instance_id: None });
    h.leave(&Leaver { member_id: "s1".into(), instance_id: None });
    let empty = Harness::restored(h.last_stored().clone(), h.now);
    assert_eq!((empty.group.state(), empty.group.generation()), (GroupState::Empty, 2));
}

#[test]
fn limits_are_kept() {
    let mut h = Harness::new(0);
    for session_timeout_ms in [5_999, 1_800_001, -1] {
        let refused = h.join(JoinSpec { session_timeout_ms, ..member("a") }).expect("answered");
        assert_eq!(refused.error, ErrorCode::InvalidSessionTimeout);
    }
    let mut h = Harness::stable(&[member("a"), member("b"), member("c")]);
    assert_eq!(h.join(member("d")).expect("answered").error, ErrorCode::GroupMaxSizeReached);
    h.act(|group, now, actions| {
        group.bury(now);
        assert_eq!(
            group.leave(&Leaver { member_id: "a".into(), instance_id: None }, now, actions),
            ErrorCode::CoordinatorNotAvailable
        );
    });
    assert_eq!(
        h.join(JoinSpec { id: "a", ..member("a") }).expect("answered").error,
        ErrorCode::CoordinatorNotAvailable
    );
    assert_eq!(h.heartbeat("a", 1), ErrorCode::CoordinatorNotAvailable);
}

#[test]
fn subscriptions_pass_through_unread() {
    let mut h = Harness::new(0);
    let a = h.join(JoinSpec { protocols: &[("range", "any \u{0} bytes")], ..member("a") }).expect("alone");
    assert_eq!(a.members[0].metadata, Bytes::from_static(b"any \0 bytes"));
    let stored = h.actions_of(|group, now, actions| {
        let sync = super::Sync {
            ticket: super::Ticket(1_000),
            member_id: "a".into(),
            instance_id: None,
            generation: 1,
            protocol_type: None,
            protocol: None,
            assignments: [("a".into(), Bytes::from_static(b"\xff"))].into(),
        };
        group.sync(sync, now, actions);
    });
    let [Action::Store { metadata, .. }] = stored.as_slice() else { panic!("{stored:?}") };
    assert_eq!(metadata.members[0].assignment, Bytes::from_static(b"\xff"));
    assert_eq!(metadata.members[0].subscription, Bytes::from_static(b"any \0 bytes"));
}

#[test]
fn a_leader_that_asks_again_gets_what_is_being_written() {
    let mut h = Harness::new(0);
    h.join(member("a")).expect("alone");
    h.hold_stores = true;
    let first = h.sync_later("a", 1, &[("a", "first")]);
    let second = h.sync_later("a", 1, &[("a", "second")]);
    assert_eq!(h.synced(first).expect("turned away").error, ErrorCode::RebalanceInProgress);
    assert!(h.synced(second).is_none());
    h.hold_stores = false;
    h.release_stores(Ok(()));
    assert_eq!(h.synced(second).expect("it is written").assignment, "first");
    assert_eq!(h.last_stored().members[0].assignment, "first", "the log says what the members are told");

    // What could not be written may be sent again, in the next generation.
    let a = h.join(JoinSpec { id: "a", ..member("a") }).expect("alone");
    assert_eq!(a.generation, 2);
    assert_eq!(h.sync("a", 2, &[("a", "third")]).expect("answered").assignment, "third");
}
