//! Quotas, features and elections when the cluster's metadata is kept by a controller that does not lead, that loses
//! proposals or their answers, or that is late.

use std::ops::RangeInclusive;

use thalweg_controller::testing::{Act, ScriptedDriver};
use thalweg_controller::{
    ChangeIsr, CreateTopics, FenceNode, IsrChange, ManualPartition, NewTopic, RegisterNode,
};
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::alter_client_quotas::{
    AlterClientQuotasRequest, EntityData, EntryData, OpData,
};
use thalweg_protocol::messages::describe_client_quotas::{ComponentData, DescribeClientQuotasRequest};
use thalweg_protocol::messages::elect_leaders::{ElectLeadersRequest, TopicPartitions};
use thalweg_protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use thalweg_protocol::messages::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};
use thalweg_protocol::{ErrorCode, NodeId, Uuid};
use tokio::time::timeout;

use crate::controllers::{LONG, NOT_LEADER, late, start};
use crate::grouping::code;
use crate::harness::Client;
use crate::versions::api_versions;

const FEATURE: &str = "transaction.version";
const QUOTA: &str = "producer_byte_rate";
const RATE: f64 = 1e9;

/// The broker under test, and the one that is preferred to it.
const HERE: NodeId = NodeId(1);
const PREFERRED: NodeId = NodeId(2);

/// A request that changes something about the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClusterChange {
    /// Gives a client, whose name is that of the change, a quota.
    SetQuota,
    /// Lowers a feature's level from 2 to 1.
    LowerFeature,
    /// Has the preferred leader lead a topic, whose name is that of the change.
    ElectPreferred,
}

impl ClusterChange {
    const ALL: [Self; 3] = [Self::SetQuota, Self::LowerFeature, Self::ElectPreferred];

    fn versions(self) -> RangeInclusive<i16> {
        let api = match self {
            Self::SetQuota => ApiKey::AlterClientQuotas,
            Self::LowerFeature => ApiKey::UpdateFeatures,
            Self::ElectPreferred => ApiKey::ElectLeaders,
        };
        *api.versions().start()..=api.last_stable_version()
    }

    /// Whether the request says how long it waits.
    fn has_timeout(self) -> bool {
        self != Self::SetQuota
    }

    /// Sees to it that there is something to change.
    async fn prepare(self, client: &Client, driver: &ScriptedDriver, name: &str) {
        match self {
            Self::SetQuota => {}
            Self::LowerFeature => {
                let raised = update_feature(client, 2, 1, 1, 10_000).await;
                assert_eq!(raised, ErrorCode::None);
            }
            Self::ElectPreferred => follow_preferred(driver, name),
        }
    }

    async fn send(self, client: &Client, name: &str, version: i16, timeout_ms: i32) -> ErrorCode {
        match self {
            Self::SetQuota => {
                let part = EntityData { entity_type: "client-id".into(), entity_name: Some(name.into()) };
                let op = OpData { key: QUOTA.into(), value: RATE, remove: false };
                let entries = vec![EntryData { entity: vec![part], ops: vec![op] }];
                let request = AlterClientQuotasRequest { entries, validate_only: false };
                code(client.call(request, version).await.entries[0].error_code)
            }
            Self::LowerFeature => update_feature(client, 1, 2, version, timeout_ms).await,
            Self::ElectPreferred => {
                let topic = TopicPartitions { topic: name.into(), partitions: vec![0] };
                let request = ElectLeadersRequest {
                    topic_partitions: Some(vec![topic]),
                    timeout_ms,
                    ..Default::default()
                };
                let answer = client.call(request, version).await;
                let result = code(answer.replica_election_results[0].partition_result[0].error_code);
                if version >= 1 && answer.error_code != 0 {
                    assert_eq!(code(answer.error_code), result, "the whole is refused as its part is");
                }
                result
            }
        }
    }

    /// Whether it has been made, as other clients see it.
    async fn is_made(self, client: &Client, name: &str) -> bool {
        match self {
            Self::SetQuota => {
                let component = ComponentData {
                    entity_type: "client-id".into(),
                    match_type: 0,
                    r#match: Some(name.into()),
                };
                let request = DescribeClientQuotasRequest { components: vec![component], strict: true };
                let entries = client.call(request, 1).await.entries.expect("it answers");
                entries.iter().flat_map(|entry| &entry.values).any(|value| value.key == QUOTA)
            }
            Self::LowerFeature => {
                let answer = client.call(api_versions(), 4).await;
                let mut features = answer.finalized_features.iter();
                let level =
                    features.find(|feature| feature.name == FEATURE).map(|found| found.max_version_level);
                level == Some(1)
            }
            Self::ElectPreferred => {
                let topic = MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
                let request = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
                client.call(request, 12).await.topics[0].partitions[0].leader_id == PREFERRED.0
            }
        }
    }

    /// What is answered where it has been made before.
    fn repeated(self) -> ErrorCode {
        match self {
            Self::SetQuota | Self::LowerFeature => ErrorCode::None,
            Self::ElectPreferred => ErrorCode::ElectionNotNeeded,
        }
    }
}

async fn update_feature(
    client: &Client,
    level: i16,
    upgrade_type: i8,
    version: i16,
    timeout_ms: i32,
) -> ErrorCode {
    let mut update =
        FeatureUpdateKey { feature: FEATURE.into(), max_version_level: level, ..Default::default() };
    if version == 0 {
        update.allow_downgrade = upgrade_type != 1;
    } else {
        update.upgrade_type = upgrade_type;
    }
    let request = UpdateFeaturesRequest { timeout_ms, feature_updates: vec![update], ..Default::default() };
    let answer = client.call(request, version).await;
    if version < 2 {
        assert_eq!(answer.results[0].error_code, answer.error_code);
    }
    code(answer.error_code)
}

/// Makes a topic whose preferred leader is in sync, and does not lead.
fn follow_preferred(driver: &ScriptedDriver, name: &str) {
    let controller = driver.controller();
    let register = RegisterNode {
        node: PREFERRED,
        uuid: Uuid(*b"the other broker"),
        host: "localhost".into(),
        port: 9,
        rack: None,
    };
    let preferred = controller.propose(register).expect("it has an answer").expect("it is taken in");
    let topic = NewTopic {
        name: name.to_owned().into(),
        id: Uuid(fastrand::u128(..).to_be_bytes()),
        partitions: -1,
        replication_factor: -1,
        assignment: vec![ManualPartition { partition: 0, replicas: vec![PREFERRED, HERE] }],
        configs: Default::default(),
    };
    let create = CreateTopics { topics: vec![topic], validate_only: false };
    controller.propose(create).expect("it has an answer").remove(0).expect("it is made");
    for fenced in [true, false] {
        let fence = FenceNode { node: PREFERRED, epoch: preferred.epoch, fenced };
        controller.propose(fence).expect("it has an answer").expect("it is registered");
    }
    let state = controller.state();
    let topic = state.topic(name).expect("it has been made");
    let partition = &topic.partitions[0];
    assert_eq!(partition.leader, HERE);
    let change = ChangeIsr {
        node: HERE,
        epoch: state.node(HERE).expect("it has registered").epoch,
        partitions: vec![IsrChange {
            topic: topic.id,
            partition: 0,
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            isr: vec![HERE, PREFERRED],
        }],
    };
    controller.propose(change).expect("it has an answer").remove(0).expect("it leads");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_has_no_answer_is_made_wholly_or_not_at_all() {
    let (harness, driver) = start().await;
    let client = harness.connect().await;
    for change in ClusterChange::ALL {
        for version in change.versions() {
            for (act, expected, is_made) in [
                (NOT_LEADER, ErrorCode::NotController, false),
                (Act::NotLeader(None), ErrorCode::NotController, false),
                (Act::Lose, ErrorCode::RequestTimedOut, false),
                (Act::ApplyAndLoseAnswer, ErrorCode::RequestTimedOut, true),
            ] {
                let name = format!("{change:?}-{act:?}-{version}").replace(['(', ')', ' '], "-");
                change.prepare(&client, &driver, &name).await;
                assert!(!change.is_made(&client, &name).await, "{name}");
                driver.then([act]);
                assert_eq!(change.send(&client, &name, version, 10_000).await, expected, "{name}");
                assert_eq!(change.is_made(&client, &name).await, is_made, "{name}");
                // The client tries again.
                let again = if is_made { change.repeated() } else { ErrorCode::None };
                assert_eq!(change.send(&client, &name, version, 10_000).await, again, "{name}");
                assert!(change.is_made(&client, &name).await, "{name}");
            }
        }
    }
    assert_eq!(driver.acts_left(), 0);
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_comes_late_is_waited_for_as_long_as_the_request_says() {
    let (harness, driver) = start().await;
    let (client, other) = (harness.connect().await, harness.connect().await);
    for change in ClusterChange::ALL {
        for version in change.versions() {
            let name = format!("{change:?}-{version}");
            change.prepare(&client, &driver, &name).await;
            driver.then([Act::Late]);
            let (waiting, named) = (client.clone(), name.clone());
            let answer = tokio::spawn(async move { change.send(&waiting, &named, version, 15_000).await });
            late(&driver, 1).await;
            assert!(!change.is_made(&other, &name).await && !answer.is_finished(), "{name}");
            driver.release();
            let answer = timeout(LONG, answer).await.expect("it is answered").expect("it is answered");
            assert_eq!(answer, ErrorCode::None, "{name}");
            assert!(change.is_made(&other, &name).await, "{name}");
            if !change.has_timeout() {
                continue;
            }
            // What is made after that is made nevertheless.
            let name = format!("{change:?}-late-{version}");
            change.prepare(&client, &driver, &name).await;
            driver.then([Act::Late]);
            let answer = timeout(LONG, change.send(&client, &name, version, 50)).await;
            assert_eq!(answer.expect("it is answered"), ErrorCode::RequestTimedOut, "{name}");
            assert!(!change.is_made(&other, &name).await, "{name}");
            driver.release();
            assert!(change.is_made(&other, &name).await, "{name}");
            assert_eq!(change.send(&client, &name, version, 10_000).await, change.repeated(), "{name}");
        }
    }
    harness.finish().await;
}
