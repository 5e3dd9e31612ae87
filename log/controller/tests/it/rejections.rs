//! What is not accepted, and why, one row each.

use std::collections::BTreeMap;

use thalweg_controller::{
    AllocateProducerIds, AlterClientQuotas, AlterResourceConfigs, AlterTopicConfigs, AssignmentFault,
    ChangeIsr, ClusterState, Command, ConfigChange, ConfigOp, ConfigResource, CreatePartitions, CreateTopics,
    DeleteTopics, ElectLeaders, ElectionKind, EntityName, FeatureDefinition, FeatureUpdate, FeatureUpgrade,
    FenceNode, GroupConfig, IsrChange, IsrFault, ManualPartition, MorePartitions, NewTopic, NodeEpoch,
    PartitionEpoch, PartitionRef, QuotaChange, QuotaEntity, QuotaOp, QuotaValue, RegisterNode, Rejection,
    ResourceConfigChange, Response, TopicConfigChange, TopicNameFault, TopicRef, UnregisterNode,
    UpdateFeatures, apply, limits,
};
use thalweg_protocol::{LeaderEpoch, NodeId, Offset, Uuid};

use crate::steps::{CLUSTER, create, manual, new_topic, register, same_content, topic_id};

/// Nodes 1 to 3, of which 3 is fenced; the topic `a.b` (id 2) with two partitions on 1 and 2.
fn state() -> ClusterState {
    let mut state = ClusterState::new(CLUSTER);
    let topic = NewTopic { assignment: manual(&[vec![1, 2], vec![2, 1]]), ..new_topic("a.b", 2) };
    let fence = FenceNode { node: NodeId(3), epoch: NodeEpoch(2), fenced: true };
    let commands: [Command; 5] =
        [register(1).into(), register(2).into(), register(3).into(), fence.into(), create(topic).into()];
    for command in commands {
        run(&mut state, command);
    }
    assert_eq!(state.partition_count(), 2);
    state
}

fn run(state: &mut ClusterState, command: impl Into<Command>) -> Response {
    let offset = Offset(state.offset().0 + 1);
    apply(state, offset, &command.into())
}

/// The rejections in a response, in order; `None` for what was accepted.
fn rejections(response: Response) -> Vec<Option<Rejection>> {
    match response {
        Response::CreateTopics(results)
        | Response::DeleteTopics(results)
        | Response::CreatePartitions(results)
        | Response::AlterTopicConfigs(results) => results.into_iter().map(Result::err).collect(),
        Response::ChangeIsr(results) | Response::ElectLeaders(results) => {
            results.into_iter().map(Result::err).collect()
        }
        Response::RegisterNode(result) | Response::UnregisterNode(result) | Response::FenceNode(result) => {
            vec![result.err()]
        }
        Response::AllocateProducerIds(result) => vec![result.err()],
        Response::AlterResourceConfigs(results) => results.into_iter().map(Result::err).collect(),
        Response::AlterClientQuotas(results) => results.into_iter().map(Result::err).collect(),
        Response::UpdateFeatures(results) => results.into_iter().map(Result::err).collect(),
    }
}

/// The command is rejected for this reason, and nothing has changed.
fn check(command: impl Into<Command>, expected: Rejection) {
    let mut state = state();
    let before = state.clone();
    let command = command.into();
    let response = run(&mut state, command.clone());
    assert_eq!(rejections(response), [Some(expected)], "{command:?}");
    assert!(same_content(&before, &state), "{command:?} changed something");
}

fn topic(partitions: i32, replication_factor: i16) -> NewTopic {
    NewTopic { partitions, replication_factor, ..new_topic("flights", 5) }
}

fn by_hand(assignment: Vec<ManualPartition>) -> NewTopic {
    NewTopic { assignment, ..new_topic("flights", 5) }
}

fn ids(nodes: &[i32]) -> Vec<NodeId> {
    nodes.iter().copied().map(NodeId).collect()
}

#[test]
fn names_and_ids_of_topics() {
    let name = |name: &str, reason| {
        let expected = Rejection::InvalidTopicName { name: name.into(), reason };
        check(create(new_topic(name, 5)), expected);
    };
    name("", TopicNameFault::Empty);
    name("..", TopicNameFault::Dots);
    name("a/b", TopicNameFault::Character);
    name(&"x".repeat(250), TopicNameFault::TooLong { length: 250 });
    check(create(new_topic("a.b", 5)), Rejection::TopicAlreadyExists { name: "a.b".into() });
    check(
        create(new_topic("a_b", 5)),
        Rejection::TopicNameCollides { name: "a_b".into(), existing: "a.b".into() },
    );
    for id in [0, 1, 2] {
        check(create(new_topic("flights", id)), Rejection::UnusableTopicId { id: topic_id(id) });
    }
}

#[test]
fn names_no_longer_collide_when_the_other_is_gone() {
    let mut state = state();
    run(&mut state, DeleteTopics { topics: vec![TopicRef::Id(topic_id(2))] });
    assert_eq!(rejections(run(&mut state, create(new_topic("a_b", 2)))), [None]);
    let collides = Rejection::TopicNameCollides { name: "a.b".into(), existing: "a_b".into() };
    assert_eq!(rejections(run(&mut state, create(new_topic("a.b", 3)))), [Some(collides)]);
}

#[test]
fn counts_of_partitions_and_replicas() {
    for count in [0, -2, i32::MIN] {
        check(create(topic(count, 1)), Rejection::InvalidPartitionCount { count });
    }
    for factor in [0, -2, i16::MIN] {
        check(create(topic(1, factor)), Rejection::InvalidReplicationFactor { factor });
    }
    check(create(topic(1, 3)), Rejection::NotEnoughNodes { factor: 3, available: 2 });
    check(create(topic(10_001, 1)), Rejection::TooManyPartitionsInRequest);
    check(create(topic(i32::MAX, 1)), Rejection::TooManyPartitionsInRequest);

    let mut empty = ClusterState::new(CLUSTER);
    let none = Rejection::NotEnoughNodes { factor: 1, available: 0 };
    assert_eq!(rejections(run(&mut empty, create(topic(-1, -1)))), [Some(none)]);
}

#[test]
fn the_limit_of_partitions_holds_for_a_whole_request_and_for_the_cluster() {
    let mut state = state();
    let topics = [(4_000, 5), (6_000, 6), (1, 7)];
    let topic = |(partitions, id): (i32, u8)| NewTopic { partitions, ..new_topic(&format!("t{id}"), id) };
    let request = CreateTopics { topics: topics.map(topic).to_vec(), validate_only: false };
    let too_many = Some(Rejection::TooManyPartitionsInRequest);
    assert_eq!(rejections(run(&mut state, request)), [None, None, too_many]);

    for index in 0..98_u8 {
        let mut topic = topic((10_000, 100));
        topic.name = format!("u{index}").into();
        topic.id.0[0] = index + 1;
        assert_eq!(rejections(run(&mut state, create(topic))), [None]);
    }
    assert_eq!(state.partition_count(), limits::MAX_PARTITIONS - 9_998);
    let over = Rejection::TooManyPartitions { count: limits::MAX_PARTITIONS + 1 };
    assert_eq!(rejections(run(&mut state, create(topic((9_999, 8))))), [Some(over)]);
    assert_eq!(rejections(run(&mut state, create(topic((9_998, 8))))), [None]);
}

#[test]
fn assignments_by_hand() {
    let fault = |assignment: Vec<ManualPartition>, partition, reason| {
        check(create(by_hand(assignment)), Rejection::InvalidReplicaAssignment { partition, reason });
    };
    fault(manual(&[vec![1], vec![]]), 1, AssignmentFault::Empty);
    fault(manual(&[vec![1, 1]]), 0, AssignmentFault::Repeated { node: NodeId(1) });
    fault(manual(&[vec![1], vec![4]]), 1, AssignmentFault::UnknownNode { node: NodeId(4) });
    fault(manual(&[vec![1, 2], vec![1]]), 1, AssignmentFault::Uneven { found: 1, expected: 2 });
    fault(manual(&[vec![3]]), 0, AssignmentFault::AllFenced);
    let numbered = |partition| ManualPartition { partition, replicas: ids(&[1]) };
    fault(vec![numbered(1)], 1, AssignmentFault::NotConsecutive { first: 0 });
    fault(vec![numbered(0), numbered(0)], 0, AssignmentFault::NotConsecutive { first: 0 });
    fault(vec![numbered(0), numbered(2)], 2, AssignmentFault::NotConsecutive { first: 0 });
    fault(vec![numbered(-1), numbered(0)], -1, AssignmentFault::NotConsecutive { first: 0 });
    for (partitions, replication_factor) in [(1, -1), (-1, 1)] {
        let topic = NewTopic { partitions, replication_factor, ..by_hand(manual(&[vec![1]])) };
        check(create(topic), Rejection::CountsBesideAssignment);
    }
}

#[test]
fn a_fenced_replica_is_not_in_sync_at_first() {
    let mut state = state();
    assert_eq!(rejections(run(&mut state, create(by_hand(manual(&[vec![3, 2, 1]]))))), [None]);
    let partition = state.partition("flights", 0).expect("it was created");
    assert_eq!((&partition.isr, partition.leader), (&ids(&[2, 1]), NodeId(2)));
}

#[test]
fn what_is_named_twice_is_refused_twice() {
    let mut state = state();
    let topics = vec![new_topic("x", 5), new_topic("y", 6), new_topic("x", 7)];
    let twice = |topic: &str| Some(Rejection::DuplicateTopic { topic: topic.into() });
    let response = run(&mut state, CreateTopics { topics, validate_only: false });
    assert_eq!(rejections(response), [twice("x"), None, twice("x")]);
    let topics = ["y", "a.b"].map(|name| TopicRef::Name(name.into())).into_iter();
    let topics = topics.chain([TopicRef::Id(topic_id(2))]).collect();
    assert_eq!(rejections(run(&mut state, DeleteTopics { topics })), [None, twice("a.b"), twice("a.b")]);
}

#[test]
fn topics_and_partitions_that_are_not_there() {
    let (name, id) = (|| "flights".into(), topic_id(9));
    let unknown = || Rejection::UnknownTopic { name: name() };
    check(DeleteTopics { topics: vec![TopicRef::Name(name())] }, unknown());
    check(DeleteTopics { topics: vec![TopicRef::Id(id)] }, Rejection::UnknownTopicId { id });
    let more = MorePartitions { name: name(), count: 4, assignment: vec![] };
    check(CreatePartitions { topics: vec![more], validate_only: false }, unknown());
    let change = TopicConfigChange { name: name(), replace: false, ops: vec![] };
    check(AlterTopicConfigs { topics: vec![change], validate_only: false }, unknown());
    let elect = |topic: &str, partition| ElectLeaders {
        kind: ElectionKind::Preferred,
        partitions: vec![PartitionRef { topic: topic.into(), partition }],
    };
    check(elect("flights", 0), unknown());
    for partition in [2, -1] {
        check(elect("a.b", partition), Rejection::UnknownPartition { topic: "a.b".into(), partition });
    }
    check(elect("a.b", 0), Rejection::ElectionNotNeeded { leader: NodeId(1) });
}

#[test]
fn partitions_to_add() {
    let more = |count, assignment: Vec<Vec<NodeId>>| CreatePartitions {
        topics: vec![MorePartitions { name: "a.b".into(), count, assignment }],
        validate_only: false,
    };
    check(more(0, vec![]), Rejection::InvalidPartitionCount { count: 0 });
    for count in [1, 2] {
        let topic = "a.b".into();
        check(more(count, vec![]), Rejection::NotMorePartitions { topic, current: 2, count });
    }
    check(more(i32::MAX, vec![]), Rejection::TooManyPartitionsInRequest);
    let fault = |assignment, partition, reason| {
        check(more(4, assignment), Rejection::InvalidReplicaAssignment { partition, reason });
    };
    fault(vec![ids(&[1, 2])], 2, AssignmentFault::Count { found: 1, expected: 2 });
    fault(vec![ids(&[1, 2]), ids(&[1])], 3, AssignmentFault::Uneven { found: 1, expected: 2 });
    fault(vec![ids(&[1, 2]), ids(&[1, 9])], 3, AssignmentFault::UnknownNode { node: NodeId(9) });
}

#[test]
fn configs() {
    let alter = |ops: &[(&str, ConfigChange)]| AlterTopicConfigs {
        topics: vec![TopicConfigChange {
            name: "a.b".into(),
            replace: false,
            ops: ops
                .iter()
                .map(|(key, change)| ConfigOp { key: (*key).into(), change: change.clone() })
                .collect(),
        }],
        validate_only: false,
    };
    let set = |value: &str| ConfigChange::Set(value.into());
    let invalid =
        |key: &str, reason: &str| Rejection::InvalidConfig { key: key.into(), reason: reason.into() };
    let topic = |key: &str, value: &str| NewTopic {
        configs: BTreeMap::from([(key.into(), value.into())]),
        ..new_topic("flights", 5)
    };
    let negative = invalid("retention.ms", "-2 is less than -1");
    check(create(topic("retention.ms", "-2")), negative.clone());
    check(alter(&[("retention.ms", set("-2"))]), negative);
    check(
        alter(&[("segment.ms", set("5")), ("nonsense", set("1"))]),
        invalid("nonsense", "topics have no such config"),
    );
    check(alter(&[("nonsense", ConfigChange::Delete)]), invalid("nonsense", "topics have no such config"));
    let no_list = "it is not a list: it can be set and deleted, not appended to or subtracted from";
    check(alter(&[("retention.ms", ConfigChange::Append("1".into()))]), invalid("retention.ms", no_list));
    check(alter(&[("retention.ms", ConfigChange::Subtract("1".into()))]), invalid("retention.ms", no_list));
    check(
        alter(&[("segment.ms", set("5")), ("segment.ms", ConfigChange::Delete)]),
        Rejection::DuplicateConfig { key: "segment.ms".into() },
    );
}

#[test]
fn configs_are_set_appended_subtracted_deleted_and_replaced() {
    let mut state = state();
    let mut alter = |replace, key: &str, change: ConfigChange| {
        let ops = vec![ConfigOp { key: key.into(), change }];
        let topics = vec![TopicConfigChange { name: "a.b".into(), replace, ops }];
        let response = run(&mut state, AlterTopicConfigs { topics, validate_only: false });
        assert_eq!(rejections(response), [None]);
        let topic = state.topic("a.b").expect("it is there");
        (topic.overrides.clone(), topic.config.cleanup_policy, topic.config.retention_ms)
    };
    let policy = |delete, compact| thalweg_controller::CleanupPolicy { delete, compact };
    let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let week = 604_800_000;
    let key = "cleanup.policy";
    assert_eq!(
        alter(false, key, ConfigChange::Append("compact,delete".into())),
        (map(&[(key, "delete,compact")]), policy(true, true), week)
    );
    assert_eq!(
        alter(false, key, ConfigChange::Subtract("delete".into())),
        (map(&[(key, "compact")]), policy(false, true), week)
    );
    assert_eq!(
        alter(false, "retention.ms", ConfigChange::Set("-1".into())),
        (map(&[(key, "compact"), ("retention.ms", "-1")]), policy(false, true), -1)
    );
    assert_eq!(
        alter(false, key, ConfigChange::Delete),
        (map(&[("retention.ms", "-1")]), policy(true, false), -1)
    );
    assert_eq!(
        alter(true, key, ConfigChange::Set("compact".into())),
        (map(&[(key, "compact")]), policy(false, true), week)
    );
}

#[test]
fn nodes() {
    check(register(-1), Rejection::InvalidNodeId { node: NodeId(-1) });
    let wiped = RegisterNode { uuid: Uuid([8; 16]), ..register(1) };
    check(wiped, Rejection::NodeIdTaken { node: NodeId(1), owner: Uuid([7; 16]) });
    check(UnregisterNode { node: NodeId(4) }, Rejection::UnknownNode { node: NodeId(4) });
    check(
        UnregisterNode { node: NodeId(2) },
        Rejection::NodeHoldsReplicas { node: NodeId(2), partitions: 2 },
    );
    let stale = Rejection::StaleNodeEpoch { node: NodeId(2), epoch: NodeEpoch(0), current: NodeEpoch(1) };
    let (node, epoch) = (NodeId(2), NodeEpoch(0));
    check(FenceNode { node, epoch, fenced: true }, stale.clone());
    check(AllocateProducerIds { node, epoch }, stale.clone());
    check(ChangeIsr { node, epoch, partitions: vec![isr_change(2, 0, &[1])] }, stale);
    let unknown = Rejection::UnknownNode { node: NodeId(4) };
    check(AllocateProducerIds { node: NodeId(4), epoch: NodeEpoch(0) }, unknown);
}

fn isr_change(topic: u8, partition: i32, isr: &[i32]) -> IsrChange {
    IsrChange {
        topic: topic_id(topic),
        partition,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        isr: ids(isr),
    }
}

#[test]
fn changes_of_the_isr() {
    let isr =
        |change: IsrChange| ChangeIsr { node: NodeId(1), epoch: NodeEpoch(0), partitions: vec![change] };
    check(isr(isr_change(9, 0, &[1])), Rejection::UnknownTopicId { id: topic_id(9) });
    check(isr(isr_change(2, 2, &[1])), Rejection::UnknownPartition { topic: "a.b".into(), partition: 2 });
    check(isr(isr_change(2, 1, &[1])), Rejection::NotLeader { node: NodeId(1), leader: NodeId(2) });
    let reason = IsrFault::WithoutLeader;
    check(isr(isr_change(2, 0, &[2])), Rejection::InvalidIsr { reason });
}

#[test]
fn a_node_that_starts_again_leads_in_a_new_epoch_and_its_old_registration_is_worth_nothing() {
    let mut state = state();
    let before = state.partition("a.b", 0).expect("it is there").leader_epoch;
    assert_eq!(rejections(run(&mut state, register(1))), [None]);
    let partition = state.partition("a.b", 0).expect("it is there");
    assert_eq!((partition.leader, partition.leader_epoch.0), (NodeId(1), before.0 + 1));
    assert_eq!(state.partition("a.b", 1).expect("it is there").leader_epoch, before);
    let old = AllocateProducerIds { node: NodeId(1), epoch: NodeEpoch(0) };
    let stale = Rejection::StaleNodeEpoch { node: NodeId(1), epoch: NodeEpoch(0), current: NodeEpoch(5) };
    assert_eq!(rejections(run(&mut state, old)), [Some(stale)]);
}

/// Sets the only quota of a user.
fn quota(user: &str, key: &str, value: f64) -> QuotaChange {
    QuotaChange {
        entity: QuotaEntity { user: Some(EntityName::Named(user.into())), ..QuotaEntity::default() },
        ops: vec![QuotaOp { key: key.into(), value: QuotaValue::new(value) }],
    }
}

fn quotas(entries: Vec<QuotaChange>) -> AlterClientQuotas {
    AlterClientQuotas { entries, validate_only: false }
}

#[test]
fn quotas_of_clients() {
    let nobody = QuotaChange { entity: QuotaEntity::default(), ops: Vec::new() };
    check(quotas(vec![nobody]), Rejection::InvalidQuotaEntity { reason: "it names nobody" });
    let key = || "producer_byte_rate".to_owned();
    check(
        quotas(vec![quota("u", "producer_byte_rate", 0.0)]),
        Rejection::InvalidQuota { key: key(), reason: "it must be more than 0" },
    );
    let mut twice = quota("u", "producer_byte_rate", 1.0);
    twice.ops.push(twice.ops[0].clone());
    check(quotas(vec![twice]), Rejection::InvalidQuota { key: key(), reason: "it occurs more than once" });

    let mut state = state();
    let set = vec![quota("u", "producer_byte_rate", 1.0), quota("v", "request_percentage", 50.0)];
    let asked = AlterClientQuotas { entries: set.clone(), validate_only: true };
    assert_eq!(rejections(run(&mut state, asked)), [None, None]);
    assert!(state.quotas().is_empty());
    assert_eq!(rejections(run(&mut state, quotas(set.clone()))), [None, None]);
    assert_eq!(state.quotas()[&set[0].entity].get("producer_byte_rate").map(|rate| rate.get()), Some(1.0));
    let reread = ClusterState::from_snapshot(&state.to_snapshot()).expect("it was just written");
    assert_eq!(reread, state);
    // One that has no quota left is forgotten.
    let mut gone = set[0].clone();
    gone.ops[0].value = None;
    assert_eq!(rejections(run(&mut state, quotas(vec![gone]))), [None]);
    assert_eq!(state.quotas().keys().collect::<Vec<_>>(), [&set[1].entity]);
    // The same entity twice: neither is carried out.
    let both = rejections(run(&mut state, quotas(vec![set[0].clone(), set[0].clone()])));
    assert!(both.iter().all(Option::is_some) && state.quotas().len() == 1, "{both:?}");
    for user in 1..limits::MAX_QUOTA_ENTITIES {
        assert_eq!(
            rejections(run(&mut state, quotas(vec![quota(&user.to_string(), "request_percentage", 1.0)]))),
            [None]
        );
    }
    let rejected = rejections(run(&mut state, quotas(vec![set[0].clone()])));
    assert_eq!(rejected, [Some(Rejection::TooManyQuotaEntities)]);
}

fn group(name: &str) -> ConfigResource {
    ConfigResource::Group(name.to_owned().into())
}

fn set(key: &str, value: &str) -> ConfigOp {
    ConfigOp { key: key.into(), change: ConfigChange::Set(value.into()) }
}

fn alter(resource: ConfigResource, ops: Vec<ConfigOp>) -> AlterResourceConfigs {
    let change = ResourceConfigChange { resource, replace: false, ops };
    AlterResourceConfigs { resources: vec![change], validate_only: false }
}

#[test]
fn configs_of_nodes_and_groups() {
    use ConfigResource::{AllNodes, Node};
    let invalid =
        |key: &str, reason: &str| Rejection::InvalidConfig { key: key.into(), reason: reason.into() };
    for (resource, op, expected) in [
        (group(""), set("share.isolation.level", "read_committed"), None),
        (Node(NodeId(-1)), set("log.retention.ms", "1"), None),
        (
            group("g"),
            set("consumer.session.timeout.ms", "1"),
            Some(invalid("consumer.session.timeout.ms", "1 is not between 45000 and 60000")),
        ),
        (group("g"), set("no.such", "1"), Some(invalid("no.such", "groups have no config 'no.such'"))),
        (
            group("g"),
            ConfigOp { key: "no.such".into(), change: ConfigChange::Delete },
            Some(invalid("no.such", "groups have no config 'no.such'")),
        ),
        (
            group("g"),
            ConfigOp { key: "share.isolation.level".into(), change: ConfigChange::Append("x".into()) },
            Some(invalid(
                "share.isolation.level",
                "it is not a list: it can be set and deleted, not appended to or subtracted from",
            )),
        ),
        (
            AllNodes,
            set("num.partitions", "3"),
            Some(invalid(
                "num.partitions",
                "nodes have no config 'num.partitions' that can be changed while they run",
            )),
        ),
        (
            Node(NodeId(1)),
            set("log.retention.ms", "soon"),
            Some(invalid("log.retention.ms", "'soon' is not a 64-bit integer")),
        ),
        (
            Node(NodeId(1)),
            set("background.threads", "0"),
            Some(invalid("background.threads", "'0' is not a number above 0")),
        ),
    ] {
        let mut state = state();
        let rejected = rejections(run(&mut state, alter(resource.clone(), vec![op.clone()])));
        match expected {
            Some(expected) => assert_eq!(rejected, [Some(expected)], "{resource:?} {op:?}"),
            None => {
                let is_nobody = matches!(rejected[0], Some(Rejection::InvalidConfigResource { .. }));
                assert!(is_nobody, "{resource:?}: {rejected:?}");
            }
        }
        assert!(state.resource_configs().is_empty());
    }
    let twice = vec![set("log.retention.ms", "1"), set("log.retention.ms", "2")];
    check(alter(AllNodes, twice), Rejection::DuplicateConfig { key: "log.retention.ms".into() });
    let crossed =
        vec![set("log.cleaner.min.compaction.lag.ms", "9"), set("log.cleaner.max.compaction.lag.ms", "5")];
    assert!(rejections(run(&mut state(), alter(AllNodes, crossed)))[0].is_some());
}

#[test]
fn configs_of_nodes_and_groups_are_kept() {
    let mut state = state();
    let node = ConfigResource::Node(NodeId(1));
    let asked = AlterResourceConfigs {
        validate_only: true,
        ..alter(node.clone(), vec![set("log.retention.ms", "1")])
    };
    assert_eq!(rejections(run(&mut state, asked)), [None]);
    assert!(state.resource_configs().is_empty());
    let list = |change| ConfigOp { key: "log.cleanup.policy".into(), change };
    let delete = |key: &str| ConfigOp { key: key.into(), change: ConfigChange::Delete };
    for (ops, replace, expected) in [
        (
            vec![set("background.threads", "9"), list(ConfigChange::Append("compact".into()))],
            false,
            vec!["9", "delete,compact"],
        ),
        (vec![list(ConfigChange::Subtract("delete".into()))], false, vec!["9", "compact"]),
        (vec![set("log.retention.ms", "5")], true, vec!["5"]),
        (vec![delete("log.retention.ms"), delete("log.retention.bytes")], false, vec![]),
    ] {
        let change = ResourceConfigChange { resource: node.clone(), replace, ops };
        let command = AlterResourceConfigs { resources: vec![change], validate_only: false };
        assert_eq!(rejections(run(&mut state, command)), [None]);
        let configs: Vec<_> =
            state.configs_of(&node).into_iter().flat_map(|configs| configs.values()).collect();
        assert_eq!(configs, expected);
        let reread = ClusterState::from_snapshot(&state.to_snapshot()).expect("it was just written");
        assert_eq!(reread, state);
    }
    // What is left without configs is forgotten.
    assert!(state.resource_configs().is_empty());
    let both = alter(group("g"), vec![set("consumer.session.timeout.ms", "50000")]);
    let both = AlterResourceConfigs {
        resources: [both.resources.clone(), both.resources].concat(),
        validate_only: false,
    };
    assert!(rejections(run(&mut state, both)).iter().all(Option::is_some));
    run(&mut state, alter(group("g"), vec![set("consumer.session.timeout.ms", "50000")]));
    let node_wide = GroupConfig { consumer_heartbeat_interval_ms: 100, ..GroupConfig::default() };
    let config = state.group_config(&"g".into(), node_wide.clone());
    assert_eq!((config.consumer_session_timeout_ms, config.consumer_heartbeat_interval_ms), (50_000, 100));
    assert_eq!(state.group_config(&"other".into(), node_wide.clone()), node_wide);
    for name in 1..limits::MAX_CONFIG_RESOURCES {
        run(
            &mut state,
            alter(group(&name.to_string()), vec![set("share.isolation.level", "read_committed")]),
        );
    }
    let rejected = rejections(run(&mut state, alter(node, vec![set("log.retention.ms", "5")])));
    assert_eq!(rejected, [Some(Rejection::TooManyConfigResources)]);
}

#[test]
fn levels_of_features() {
    use FeatureUpgrade::{SafeDowngrade, UnsafeDowngrade, Upgrade};
    let update = |feature: &str, level, upgrade| FeatureUpdate { feature: feature.into(), level, upgrade };
    let feature = FeatureDefinition::find("transaction.version").expect("there is one");
    for (name, level, upgrade, is_accepted) in [
        ("transaction.version", 2, Upgrade, true),
        ("transaction.version", 1, Upgrade, false),
        ("transaction.version", 1, SafeDowngrade, true),
        ("transaction.version", 0, UnsafeDowngrade, true),
        ("transaction.version", -1, UnsafeDowngrade, false),
        ("transaction.version", 3, Upgrade, false),
        ("group.version", 1, Upgrade, true),
        ("group.version", 0, UnsafeDowngrade, false),
        ("share.version", 0, SafeDowngrade, true),
        ("share.version", 2, Upgrade, true),
        ("share.version", 3, Upgrade, false),
        ("share.version", -1, UnsafeDowngrade, false),
        ("no.such", 1, Upgrade, false),
    ] {
        let mut state = state();
        let updates = vec![update(name, level, upgrade)];
        let rejected = rejections(run(&mut state, UpdateFeatures { updates, validate_only: false }));
        assert_eq!(rejected[0].is_none(), is_accepted, "{name} {level} {upgrade:?}: {rejected:?}");
        let is_its = is_accepted && name == feature.name;
        assert_eq!(state.feature_level(feature), if is_its { level } else { 2 });
        let reread = ClusterState::from_snapshot(&state.to_snapshot()).expect("it was just written");
        assert_eq!(reread, state);
    }
    // All or none.
    let mut state = state();
    let updates = vec![update("transaction.version", 1, SafeDowngrade), update("no.such", 1, Upgrade)];
    let rejected = rejections(run(&mut state, UpdateFeatures { updates, validate_only: false }));
    assert!(rejected[0].is_none() && rejected[1].is_some());
    assert_eq!(state.feature_level(feature), 2);
    // What is lowered is not raised by a request to lower it.
    run(
        &mut state,
        UpdateFeatures {
            updates: vec![update("transaction.version", 0, SafeDowngrade)],
            validate_only: false,
        },
    );
    let updates = vec![update("transaction.version", 1, SafeDowngrade)];
    assert!(rejections(run(&mut state, UpdateFeatures { updates, validate_only: false }))[0].is_some());
}

#[test]
fn configs_of_newer_rules_are_not_known_by_older_ones() {
    for (version, is_known) in [(1, false), (2, true)] {
        let mut state = ClusterState::at_version(CLUSTER, version);
        run(&mut state, register(1));
        let configs = BTreeMap::from([("remote.storage.enable".to_owned(), "false".to_owned())]);
        let created = rejections(run(&mut state, create(NewTopic { configs, ..new_topic("new", 2) })));
        assert_eq!(created[0].is_none(), is_known, "{created:?}");
        run(&mut state, create(new_topic("plain", 3)));
        let set = ConfigOp { key: "local.retention.ms".into(), change: ConfigChange::Set("-1".into()) };
        let change = TopicConfigChange { name: "plain".into(), replace: false, ops: vec![set] };
        let altered = AlterTopicConfigs { topics: vec![change], validate_only: false };
        assert_eq!(rejections(run(&mut state, altered))[0].is_none(), is_known);
    }
}
