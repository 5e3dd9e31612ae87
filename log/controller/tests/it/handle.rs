//! What `Controller` makes of the answers of a driver, those of a driver for several nodes included.

use std::sync::{Arc, Mutex, mpsc};

use thalweg_controller::testing::{Act, ScriptedDriver};
use thalweg_controller::{
    AlterTopicConfigs, ConfigChange, ConfigOp, Controller, CreatePartitions, DeleteTopics, MorePartitions,
    ProposeError, Rejection, Subscription, TopicChange, TopicConfigChange, TopicRef,
};
use thalweg_protocol::NodeId;

use crate::steps::{CLUSTER, create, new_topic, register, topic_id};

struct Fixture {
    controller: Controller,
    driver: ScriptedDriver,
}

/// A controller with one node, whose driver then acts by the script.
fn fixture(script: impl IntoIterator<Item = Act>) -> Fixture {
    let driver = ScriptedDriver::new(CLUSTER);
    let controller = driver.controller();
    controller.propose(register(1)).unwrap().unwrap();
    driver.then(script);
    Fixture { controller, driver }
}

#[test]
fn a_driver_that_does_not_lead_says_who_does() {
    let Fixture { controller, .. } = fixture([Act::NotLeader(Some(NodeId(3))), Act::NotLeader(None)]);
    let before = controller.state();
    let error = controller.propose(create(new_topic("flights", 2))).unwrap_err();
    assert_eq!(error, ProposeError::NotLeader { leader: Some(NodeId(3)) });
    assert_eq!(error.to_string(), "this node does not lead the cluster's metadata; node 3 does");
    assert!(!error.is_outcome_unknown());
    let error = controller.propose(create(new_topic("flights", 2))).unwrap_err();
    assert_eq!(error, ProposeError::NotLeader { leader: None });
    assert!(Arc::ptr_eq(&before, &controller.state()));
}

#[test]
fn a_lost_answer_is_an_unknown_outcome_and_proposing_again_settles_it() {
    for act in [Act::Lose, Act::ApplyAndLoseAnswer] {
        let Fixture { controller, .. } = fixture([act]);
        let proposal = create(new_topic("flights", 2));
        let error = controller.propose(proposal.clone()).unwrap_err();
        assert!(error.is_outcome_unknown());
        // Whether or not it had taken effect: the same proposal again gives the same topic, once.
        let topic = controller.propose(proposal).unwrap().remove(0).unwrap();
        assert_eq!((topic.id, controller.state().topic_count()), (topic_id(2), 1));
        // Somebody else's proposal is another one.
        let other = controller.propose(create(new_topic("flights", 3))).unwrap().remove(0);
        assert_eq!(other, Err(Rejection::TopicAlreadyExists { name: "flights".into() }));
    }
}

#[test]
fn a_callback_is_called_once_also_when_the_answer_is_lost() {
    let Fixture { controller, .. } = fixture([Act::Lose]);
    let (sender, receiver) = mpsc::channel();
    for id in [2, 3] {
        let sender = sender.clone();
        controller.propose_then(create(new_topic(&format!("topic-{id}"), id)), move |result| {
            sender.send((id, result.map(|mut results| results.remove(0).map(|topic| topic.id)))).unwrap();
        });
    }
    drop(sender);
    let answers: Vec<_> = receiver.iter().collect();
    assert_eq!(answers, [(2, Err(ProposeError::UnknownOutcome)), (3, Ok(Ok(topic_id(3))))]);
}

#[test]
fn a_late_answer_finds_the_state_as_it_is_then() {
    let fixture = fixture([Act::Late, Act::Late]);
    let controller = &fixture.controller;
    let (sender, receiver) = mpsc::channel();
    for (name, id) in [("flights", 2), ("flights", 3)] {
        let (sender, seen) = (sender.clone(), controller.clone());
        controller.propose_then(create(new_topic(name, id)), move |result| {
            let here = seen.state().topic(name).map(|topic| topic.id);
            sender.send((result.unwrap().remove(0).map(|topic| topic.id), here)).unwrap();
        });
    }
    assert!(controller.state().topic("flights").is_none() && receiver.try_recv().is_err());
    std::thread::scope(|scope| scope.spawn(|| fixture.driver.release()).join().unwrap());
    // In the order of the proposals, and visible when the answer comes.
    assert_eq!(receiver.try_recv().unwrap(), (Ok(topic_id(2)), Some(topic_id(2))));
    let exists = Rejection::TopicAlreadyExists { name: "flights".into() };
    assert_eq!(receiver.try_recv().unwrap(), (Err(exists), Some(topic_id(2))));
}

#[test]
fn observers_see_every_change_in_order_before_the_answer() {
    let Fixture { controller, .. } = fixture([]);
    let seen: Arc<Mutex<Vec<(i64, i64, usize)>>> = Arc::default();
    let log = Arc::clone(&seen);
    let subscription = controller.subscribe(move |old, new| {
        let changes = new.topic_changes_since(old).len();
        log.lock().unwrap().push((old.offset().0, new.offset().0, changes));
    });
    let answered = Arc::clone(&seen);
    controller.propose_then(create(new_topic("a", 2)), move |_| {
        assert_eq!(answered.lock().unwrap().len(), 1);
    });
    controller.propose(create(new_topic("b", 3))).unwrap().remove(0).unwrap();
    // A rejection moves the offset and nothing else.
    controller.propose(create(new_topic("b", 4))).unwrap().remove(0).unwrap_err();
    assert_eq!(*seen.lock().unwrap(), [(0, 1, 1), (1, 2, 1), (2, 3, 0)]);
    drop(subscription);
    controller.propose(create(new_topic("c", 5))).unwrap().remove(0).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[test]
fn changes_tell_a_topic_created_anew_from_one_that_changed() {
    let Fixture { controller, .. } = fixture([]);
    for (name, id) in [("anew", 2), ("changed", 3), ("deleted", 4), ("same", 5)] {
        controller.propose(create(new_topic(name, id))).unwrap().remove(0).unwrap();
    }
    let old = controller.state();
    let delete = ["anew", "deleted"].map(|name| TopicRef::Name(name.into())).to_vec();
    controller.propose(DeleteTopics { topics: delete }).unwrap();
    controller.propose(create(new_topic("anew", 6))).unwrap();
    let more = vec![MorePartitions { name: "changed".into(), count: 2, assignment: vec![] }];
    controller.propose(CreatePartitions { topics: more, validate_only: false }).unwrap();
    let new = controller.state();
    let show = |change: TopicChange| match change {
        TopicChange::Created(topic) => format!("created {}", topic.name),
        TopicChange::Deleted(topic) => format!("deleted {}", topic.name),
        TopicChange::Changed { old, new } => {
            format!("{} from {} to {} partitions", new.name, old.partitions.len(), new.partitions.len())
        }
    };
    let shown: Vec<String> = new.topic_changes_since(&old).into_iter().map(show).collect();
    assert_eq!(shown, ["deleted anew", "created anew", "changed from 1 to 2 partitions", "deleted deleted"]);
    // What was asked for is so already: nothing changes.
    let ops = vec![ConfigOp { key: "retention.ms".into(), change: ConfigChange::Delete }];
    let topics = vec![TopicConfigChange { name: "same".into(), replace: true, ops }];
    controller.propose(AlterTopicConfigs { topics, validate_only: false }).unwrap().remove(0).unwrap();
    assert_eq!(controller.state().topic_changes_since(&new), []);
    assert_eq!(new.topic_by_id(topic_id(2)), None);
    assert_eq!(new.topic_by_id(topic_id(6)).map(|topic| topic.name.as_ref()), Some("anew"));
}

#[test]
fn an_observer_may_end_its_own_subscription_and_begin_others() {
    let Fixture { controller, .. } = fixture([]);
    let (sender, calls) = std::sync::mpsc::channel();
    let own: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let (held, again) = (Arc::clone(&own), controller.clone());
    let subscription = controller.subscribe(move |_, new| {
        let sender = sender.clone();
        sender.send(("first", new.offset().0)).unwrap();
        let next = again.subscribe(move |_, new| sender.send(("second", new.offset().0)).unwrap());
        // The one before ends here.
        *held.lock().unwrap() = Some(next);
    });
    *own.lock().unwrap() = Some(subscription);
    for (name, id) in [("a", 2), ("b", 3)] {
        controller.propose(create(new_topic(name, id))).unwrap().remove(0).unwrap();
    }
    let calls: Vec<_> = calls.try_iter().map(|(who, _)| who).collect();
    assert_eq!(calls, ["first", "second"]);
}
