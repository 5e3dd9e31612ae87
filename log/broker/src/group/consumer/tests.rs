//! The state machine under cases, and under random interleavings.

mod harness;
mod interleavings;
mod migrating;

use thalweg_protocol::ErrorCode;

use super::{ConsumerState, GroupEpoch};
use crate::coordinator::JUMPS_MS;
use crate::group::commit::Commit;
use harness::{Beat, Harness, join, partitions};

/// The epochs of the members, and what each has.
fn check_members(h: &Harness, expected: &[(&str, i32, &[i32])]) {
    for (id, epoch, has) in expected {
        let current = h.group.image().current(id).unwrap_or_else(|| panic!("{id} is a member"));
        assert_eq!(current.epoch, GroupEpoch(*epoch), "{id}");
        assert_eq!(current.assignment(), partitions(has), "{id}");
    }
}

#[test]
fn a_second_member_gets_what_the_first_has_given_up() {
    let mut h = Harness::new(&[("t", 4)]);
    let a = h.beat(join("a", &["t"])).expect("taken");
    assert_eq!((a.epoch, a.assignment), (GroupEpoch(1), Some(partitions(&[0, 1, 2, 3]))));
    assert_eq!(h.group.state(), ConsumerState::Stable);

    let b = h.beat(join("b", &["t"])).expect("taken");
    assert_eq!((b.epoch, b.assignment), (GroupEpoch(2), Some(partitions(&[]))));
    assert_eq!(h.group.state(), ConsumerState::Reconciling);
    // It is told what to give up, and stays in its epoch until it has.
    let a = h.beat(Beat { epoch: 1, ..Beat::of("a") }).expect("a member");
    assert_eq!((a.epoch, a.assignment), (GroupEpoch(1), Some(partitions(&[0, 1]))));
    let a = h.beat(Beat { epoch: 1, owned: Some(&[0, 1, 2, 3]), ..Beat::of("a") }).expect("a member");
    assert_eq!((a.epoch, a.assignment), (GroupEpoch(1), None), "it has them still");
    let b = h.beat(Beat { epoch: 2, ..Beat::of("b") }).expect("a member");
    assert_eq!((b.epoch, b.assignment), (GroupEpoch(2), None), "nothing is free");
    let a = h.beat(Beat { epoch: 1, owned: Some(&[0, 1]), ..Beat::of("a") }).expect("a member");
    assert_eq!((a.epoch, a.assignment), (GroupEpoch(2), None), "it has what it shall have");
    let b = h.beat(Beat { epoch: 2, ..Beat::of("b") }).expect("a member");
    assert_eq!((b.epoch, b.assignment), (GroupEpoch(2), Some(partitions(&[2, 3]))));
    assert_eq!(h.group.state(), ConsumerState::Stable);
    check_members(&h, &[("a", 2, &[0, 1]), ("b", 2, &[2, 3])]);

    h.beat(Beat { epoch: -1, ..Beat::of("a") }).expect("it may go");
    let b = h.beat(Beat { epoch: 2, ..Beat::of("b") }).expect("a member");
    assert_eq!((b.epoch, b.assignment), (GroupEpoch(3), Some(partitions(&[0, 1, 2, 3]))));
    h.check_replay();
}

#[test]
fn epochs_fence_members_that_have_lost_the_thread() {
    let mut h = Harness::new(&[("t", 2)]);
    h.settle(&["a", "b"]);
    let epoch = h.epoch_of("a");
    for (member, epoch, owned, expected) in [
        ("a", epoch + 1, None, ErrorCode::FencedMemberEpoch),
        ("a", epoch - 1, None, ErrorCode::FencedMemberEpoch),
        ("a", epoch - 1, Some(&[0, 1][..]), ErrorCode::FencedMemberEpoch),
        ("nobody", epoch, None, ErrorCode::UnknownMemberId),
        ("nobody", -1, None, ErrorCode::UnknownMemberId),
        ("", 0, Some(&[]), ErrorCode::InvalidRequest),
        ("a", -3, None, ErrorCode::InvalidRequest),
        ("a", -2, None, ErrorCode::InvalidRequest),
    ] {
        let refused = h.beat(Beat { epoch, owned, ..Beat::of(member) });
        assert_eq!(refused.expect_err("refused").code, expected, "{member} in {epoch} with {owned:?}");
    }
    // The answer that told it of its epoch may have been lost.
    let again = h.beat(Beat { epoch: epoch - 1, owned: Some(&[]), ..Beat::of("a") }).expect("taken");
    assert_eq!(again.epoch, GroupEpoch(epoch));
    // One that has lost everything begins anew under its id; the epoch of the group tells it from who it was.
    let anew = h.beat(join("a", &["t"])).expect("taken");
    assert_eq!((anew.epoch, anew.assignment.map(|all| all.len())), (GroupEpoch(epoch + 1), Some(1)));
    let refused = h.beat(Beat { epoch, ..Beat::of("a") });
    assert_eq!(refused.expect_err("who it was is fenced").code, ErrorCode::FencedMemberEpoch);
    h.check_replay();
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut h = Harness::new(&[("t", 2)]);
    let code = |h: &mut Harness, beat: Beat| h.beat(beat).expect_err("refused").code;
    for (beat, expected) in [
        (Beat { rebalance_timeout_ms: None, ..join("a", &["t"]) }, ErrorCode::InvalidRequest),
        (Beat { topics: None, ..join("a", &["t"]) }, ErrorCode::InvalidRequest),
        (Beat { owned: None, ..join("a", &["t"]) }, ErrorCode::InvalidRequest),
        (Beat { owned: Some(&[0]), ..join("a", &["t"]) }, ErrorCode::InvalidRequest),
        (Beat { instance: Some(""), ..join("a", &["t"]) }, ErrorCode::InvalidRequest),
        (Beat { assignor: Some("sticky"), ..join("a", &["t"]) }, ErrorCode::UnsupportedAssignor),
        (Beat { regex: Some("("), ..join("a", &["t"]) }, ErrorCode::InvalidRegularExpression),
    ] {
        assert_eq!(code(&mut h, beat), expected, "{beat:?}");
    }
    for id in ["a", "b", "c"] {
        h.beat(join(id, &["t"])).expect("taken");
    }
    assert_eq!(code(&mut h, join("d", &["t"])), ErrorCode::GroupMaxSizeReached);
    h.beat(join("a", &["t"])).expect("it is here already");
}

#[test]
fn a_static_member_comes_back_to_what_it_had() {
    let mut h = Harness::new(&[("t", 2)]);
    let static_join = |id| Beat { instance: Some("i"), ..join(id, &["t"]) };
    h.beat(static_join("a1")).expect("taken");
    h.beat(join("b", &["t"])).expect("taken");
    h.settle(&["a1", "b"]);
    let epoch = h.epoch_of("a1");
    let had = h.group.image().current("a1").expect("it is there").assignment();
    let refused = h.beat(static_join("a2")).expect_err("the first has not left");
    assert_eq!(refused.code, ErrorCode::UnreleasedInstanceId);
    let left = h.beat(Beat { epoch: -2, instance: Some("i"), ..Beat::of("a1") }).expect("it may leave");
    assert_eq!(left.epoch, GroupEpoch(-2));
    let b = h.beat(Beat { epoch, ..Beat::of("b") }).expect("a member");
    assert_eq!((b.epoch, b.assignment), (GroupEpoch(epoch), None), "nobody gets what it had");
    let back = h.beat(static_join("a2")).expect("taken");
    assert_eq!((back.epoch, back.assignment), (GroupEpoch(epoch), Some(had)), "nothing has changed");
    for (id, expected) in [("a1", ErrorCode::FencedInstanceId), ("a3", ErrorCode::FencedInstanceId)] {
        let refused = h.beat(Beat { epoch, instance: Some("i"), ..Beat::of(id) });
        assert_eq!(refused.expect_err("fenced").code, expected, "{id}");
    }
    let unknown = h.beat(Beat { epoch, instance: Some("j"), ..Beat::of("a2") });
    assert_eq!(unknown.expect_err("nobody has it").code, ErrorCode::UnknownMemberId);
    h.check_replay();
    // One that does not come back is given up.
    h.beat(Beat { epoch: -2, instance: Some("i"), ..Beat::of("a2") }).expect("it may leave");
    h.pass_while(50_000, &["b"]);
    assert_eq!(h.group.image().members().keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn whoever_is_late_is_given_up() {
    // "a" sends heartbeats but never gives anything up.
    let mut h = Harness::new(&[("t", 4)]);
    h.beat(join("a", &["t"])).expect("taken");
    h.beat(join("b", &["t"])).expect("taken");
    for _ in 0..6 {
        h.beat(Beat { epoch: 1, ..Beat::of("a") }).expect("a member, for now");
        h.beat(Beat { epoch: 2, ..Beat::of("b") }).expect("a member");
        h.pass(10_000);
    }
    assert_eq!(h.group.image().members().keys().collect::<Vec<_>>(), ["b"], "a minute is over");
    let refused = h.beat(Beat { epoch: 1, ..Beat::of("a") });
    assert_eq!(refused.expect_err("it is gone").code, ErrorCode::UnknownMemberId);
    let b = h.beat(Beat { epoch: 2, ..Beat::of("b") }).expect("a member");
    assert_eq!(b.assignment, Some(partitions(&[0, 1, 2, 3])));
    h.pass(45_000);
    assert_eq!(h.group.state(), ConsumerState::Empty, "nobody is heard of");
    h.check_replay();
}

#[test]
fn a_jump_of_the_wall_clock_gives_nobody_up_and_nobody_more_time() {
    for jump_ms in JUMPS_MS {
        let mut h = Harness::new(&[("t", 4)]);
        h.beat(join("a", &["t"])).expect("taken");
        h.beat(join("b", &["t"])).expect("taken");
        // "a" gives nothing up, for which it has 60 s, and "b" is not heard of, for which it has 45 s.
        h.beat(Beat { epoch: 1, ..Beat::of("a") }).expect("a member");
        h.now.wall_ms += jump_ms;
        h.pass(44_999);
        assert_eq!(h.group.image().members().len(), 2, "{jump_ms}");
        h.beat(Beat { epoch: 1, ..Beat::of("a") }).expect("a member");
        h.pass(1);
        assert_eq!(h.group.image().members().keys().collect::<Vec<_>>(), ["a"], "{jump_ms}");
        h.check_replay();

        let mut h = Harness::new(&[("t", 4)]);
        h.beat(join("a", &["t"])).expect("taken");
        h.beat(join("c", &["t"])).expect("taken");
        let epoch = h.epoch_of("a");
        h.beat(Beat { epoch, ..Beat::of("a") }).expect("a member");
        h.now.wall_ms += jump_ms;
        for _ in 0..5 {
            h.pass(10_000);
            h.settle(&["c"]);
            h.beat(Beat { epoch, ..Beat::of("a") }).expect("it has time");
        }
        h.pass(9_999);
        assert_eq!(h.group.image().members().len(), 2, "{jump_ms}");
        h.pass(1);
        assert_eq!(h.group.image().members().keys().collect::<Vec<_>>(), ["c"], "{jump_ms}");
    }
}

#[test]
fn topics_come_grow_and_go() {
    let mut h = Harness::new(&[("t", 1)]);
    let a = h.beat(join("a", &["t", "late"])).expect("taken");
    assert_eq!(a.assignment, Some(partitions(&[0])));
    h.create("late", 1);
    let a = h.beat(Beat { epoch: 1, ..Beat::of("a") }).expect("a member");
    assert_eq!((a.epoch, a.assignment), (GroupEpoch(2), Some(h.all(&[("t", 1), ("late", 1)]))));
    h.grow("t", 3);
    let a = h.beat(Beat { epoch: 2, ..Beat::of("a") }).expect("a member");
    assert_eq!((a.epoch, a.assignment), (GroupEpoch(3), Some(h.all(&[("t", 3), ("late", 1)]))));
    h.create("other", 1);
    let a = h.beat(Beat { epoch: 3, ..Beat::of("a") }).expect("a member");
    assert_eq!((a.epoch, a.assignment), (GroupEpoch(3), None), "nobody reads it");
    let left = h.all(&[("t", 3)]);
    h.delete("late");
    let a = h.beat(Beat { epoch: 3, ..Beat::of("a") }).expect("a member");
    assert_eq!((a.epoch, a.assignment), (GroupEpoch(3), Some(left)), "it is to give up what is gone");
    h.check_replay();
}

#[test]
fn members_read_by_pattern() {
    let mut h = Harness::new(&[("t", 1), ("t2", 1), ("u", 1), ("__consumer_offsets", 4)]);
    let by = |id, pattern| Beat { topics: None, regex: Some(pattern), ..join(id, &[]) };
    let a = h.beat(by("a", "t.*")).expect("taken");
    assert_eq!(a.assignment, Some(h.all(&[("t", 1), ("t2", 1)])));
    let a = h.beat(Beat { epoch: 1, regex: Some(".*"), ..Beat::of("a") }).expect("a member");
    assert_eq!(a.assignment, Some(h.all(&[("t", 1), ("t2", 1), ("u", 1)])), "the broker's own are left out");
    assert_eq!(h.group.image().regexes().keys().collect::<Vec<_>>(), [".*"], "the other is forgotten");
    h.create("new", 1);
    let a = h.beat(Beat { epoch: 2, ..Beat::of("a") }).expect("a member");
    assert_eq!(a.assignment, Some(h.all(&[("t", 1), ("t2", 1), ("u", 1), ("new", 1)])));
    // By name from now on.
    let a = h.beat(Beat { epoch: 3, regex: Some(""), topics: Some(&["u"]), ..Beat::of("a") });
    assert_eq!(a.expect("a member").assignment, Some(h.all(&[("u", 1)])));
    assert!(h.group.image().regexes().is_empty());
    h.check_replay();
}

#[test]
fn most_members_choose_the_assignor() {
    let mut h = Harness::new(&[("t", 4), ("u", 4)]);
    let reads = |id, assignor| Beat { assignor, ..join(id, &["t", "u"]) };
    h.beat(reads("a", Some("range"))).expect("taken");
    h.beat(reads("b", None)).expect("taken");
    assert_eq!(h.group.describe().assignor.name(), "range");
    let targets = h.group.image().targets();
    let on = |id: &str, topic: &str| {
        let topic = h.topics().topic(topic).expect("it is there").0;
        let of_topic = targets[id].iter().filter(|partition| partition.topic_id == topic);
        of_topic.map(|partition| partition.partition).collect::<Vec<_>>()
    };
    assert_eq!((on("a", "t"), on("a", "u")), (vec![0, 1], vec![0, 1]));
    h.beat(reads("c", Some("uniform"))).expect("taken");
    assert_eq!(h.group.describe().assignor.name(), "uniform", "it comes first in a tie");
}

#[test]
fn what_cannot_be_written_has_not_happened() {
    let mut h = Harness::new(&[("t", 2)]);
    h.settle(&["a"]);
    let before = h.group.image().clone();
    h.is_full = true;
    let refused = h.beat(join("b", &["t"])).expect_err("the disk is full");
    assert_eq!(refused.code, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(h.group.image(), &before);
    h.is_full = false;
    h.beat(join("b", &["t"])).expect("taken");
    h.check_replay();
}

#[test]
fn commits_come_from_members_of_the_epoch_or_with_what_they_had_before() {
    let mut h = Harness::new(&[("t", 4)]);
    h.settle(&["a"]);
    let a = h.epoch_of("a");
    h.settle(&["a", "b"]);
    let now = h.epoch_of("a");
    assert!(now > a);
    use ErrorCode::{None as Taken, StaleMemberEpoch, UnknownMemberId, UnsupportedVersion};
    for (member, epoch, knows_epochs, partition, expected) in [
        ("a", now, true, 0, Taken),
        ("a", now, true, 3, Taken),
        ("a", a, true, 0, Taken),
        ("a", a, true, 3, StaleMemberEpoch),
        ("a", now + 1, true, 0, StaleMemberEpoch),
        ("a", -1, true, 0, StaleMemberEpoch),
        ("a", now, false, 0, UnsupportedVersion),
        ("b", a, true, 3, StaleMemberEpoch),
        ("nobody", now, true, 0, UnknownMemberId),
        ("", -1, true, 0, UnknownMemberId),
    ] {
        let found = h.group.check_commit(&h.commit(member, epoch, knows_epochs, partition));
        let found = found.err().unwrap_or(Taken);
        assert_eq!(found, expected, "{member} in {epoch} of {partition}");
    }
    let producer = crate::transaction::Producer {
        id: thalweg_protocol::ProducerId(1),
        epoch: thalweg_protocol::ProducerEpoch(0),
    };
    for (member, epoch, expected) in [
        ("a", now, Taken),
        ("a", now + 1, ErrorCode::IllegalGeneration),
        ("nobody", now, UnknownMemberId),
        ("", -1, Taken),
    ] {
        let commit = Commit { producer: Some(producer), ..h.commit(member, epoch, true, 0) };
        let found = h.group.check_commit(&commit).err().unwrap_or(Taken);
        assert_eq!(found, expected, "{member:?} in {epoch}, in a transaction");
    }
    for (member, epoch, expected) in [
        (Option::None, -1, Taken),
        (Some("a"), now, Taken),
        (Some("a"), a, StaleMemberEpoch),
        (Some("nobody"), now, UnknownMemberId),
    ] {
        let found = h.group.check_fetch(member, epoch).err().unwrap_or(Taken);
        assert_eq!(found, expected, "{member:?} in {epoch}");
    }
}
