use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_client::{Election, ElectionType, Error, FeatureChange, FeatureUpdate, ProducerConfig};
use thalweg_protocol::{ErrorCode, NodeId};

use super::{Ground, at};

pub async fn leaders_are_elected(ground: &Ground) {
    let admin = ground.client.admin();
    let (topic, missing) = (ground.topic(2).await, ground.name("missing"));
    let wanted = [at(&topic, 0), at(&topic, 1), at(&missing, 0)];
    let mut elected = admin.elect_leaders(ElectionType::Preferred, &wanted).await;
    assert_eq!(elected.len(), 3);
    for partition in &wanted[..2] {
        let outcome = elected.remove(partition).expect("it has an answer");
        if let Some(outcome) = ground.offered(outcome) {
            assert_eq!(outcome, Election::NotNeeded, "its only replica leads");
        }
    }
    let error = elected.remove(&wanted[2]).expect("it has an answer").expect_err("there is no such topic");
    let is_told = matches!(error, Error::UnknownTopic { .. } | Error::UnsupportedVersion { .. });
    assert!(is_told, "{error}");
}

pub async fn logs_are_found_in_their_directories(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(2).await;
    let producer = ground.producer(ProducerConfig::default());
    ground.write(&producer, &topic, 1, &["something"]).await;
    let wanted = [at(&topic, 0), at(&topic, 1)];
    let brokers = admin.describe_log_dirs(None, Some(&wanted)).await.expect("it answers");
    let mut sizes = Vec::new();
    for (broker, dirs) in brokers {
        let Some(dirs) = ground.offered(dirs) else { return };
        for dir in &dirs {
            assert!(dir.failure.is_none() && !dir.path.is_empty(), "broker {broker}: {dir:?}");
            assert!(dir.usable_bytes <= dir.total_bytes, "{dir:?}");
        }
        let replicas = dirs.into_iter().flat_map(|dir| dir.replicas);
        sizes.extend(replicas.map(|(partition, replica)| (partition, replica.size_in_bytes)));
    }
    assert_eq!(sizes.iter().map(|(partition, _)| partition).collect::<Vec<_>>(), [&wanted[0], &wanted[1]]);
    assert_eq!(sizes[0].1, 0);
    assert!(sizes[1].1 > 60, "a batch has a header of 61 bytes: {sizes:?}");
    let away = admin.describe_log_dirs(Some(&[NodeId(99)]), None).await.expect("it answers");
    assert!(away[&NodeId(99)].is_err(), "{away:?}");
}

pub async fn features_are_described_and_validated(ground: &Ground) {
    let admin = ground.client.admin();
    let features = admin.describe_features().await.expect("it answers");
    let level = features.finalized["transaction.version"];
    assert!(features.supported["transaction.version"].contains(&level), "{features:?}");
    let update = |level| FeatureUpdate { level, change: FeatureChange::Upgrade };
    let unknown = ByteString::from_static("no.such.feature");
    let updates = BTreeMap::from([(unknown.clone(), update(1))]);
    let mut updated = admin.update_features(&updates, true).await;
    let error = updated.remove(&unknown).expect("it has an answer").expect_err("there is none");
    if ground.is_kafka {
        assert!(error.code().is_some(), "{error}");
        let same = ByteString::from_static("transaction.version");
        let updates = BTreeMap::from([(same.clone(), update(level))]);
        let updated = admin.update_features(&updates, true).await;
        assert!(updated[&same].is_ok(), "{updated:?}");
    }
}

pub async fn the_quorum_is_described(ground: &Ground) {
    let admin = ground.client.admin();
    let Some(quorum) = ground.offered(admin.describe_quorum().await) else { return };
    let leader = quorum.voters.iter().find(|voter| voter.id == quorum.leader);
    let leader = leader.expect("the leader is one of the voters");
    assert!(leader.end >= quorum.high_watermark && quorum.high_watermark.0 > 0, "{quorum:?}");
    let controller = admin.describe_cluster().await.expect("it answers").controller;
    assert_eq!(controller, Some(quorum.leader), "there is only one node");
}

pub async fn replicas_are_reassigned(ground: &Ground) {
    let admin = ground.client.admin();
    let topic = ground.topic(2).await;
    let leader = admin.describe_topic(&topic).await.expect("it is there").partitions[0].leader;
    let (here, away) = (at(&topic, 0), at(&topic, 1));
    let targets =
        BTreeMap::from([(here.clone(), Some(vec![leader])), (away.clone(), Some(vec![NodeId(99)]))]);
    let mut begun = admin.reassign_partitions(&targets).await;
    assert_eq!(begun.len(), 2);
    let answer = begun.remove(&here).expect("it has an answer");
    if ground.offered(answer).is_none() {
        return;
    }
    let error = begun.remove(&away).expect("it has an answer").expect_err("there is no such broker");
    assert_eq!(error.code(), Some(ErrorCode::InvalidReplicaAssignment));
    let moves = admin.list_reassignments(Some(&[here, away])).await.expect("it answers");
    assert!(moves.is_empty(), "{moves:?}");
}
