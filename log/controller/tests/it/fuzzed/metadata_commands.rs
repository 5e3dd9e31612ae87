//! Commands as they stand in the metadata log, one on each line of the input, applied one after the other.

use thalweg_controller::{
    AlterClientQuotas, AlterResourceConfigs, ClusterState, Command, ConfigChange, ConfigOp, ConfigResource,
    EntityName, FeatureUpdate, FeatureUpgrade, QuotaChange, QuotaEntity, QuotaOp, QuotaValue,
    ResourceConfigChange, UpdateFeatures, apply,
};
use thalweg_protocol::{NodeId, Uuid};

/// What format 1 has left: every command of it.
const LOG: &[u8] = include_bytes!("../golden/format-1.log");

/// Bytes before its first frame, and of a frame before its command.
const HEADER: usize = 40;
const FRAME: usize = 25;

/// That of the log.
pub const CLUSTER: Uuid = Uuid(*b"a-cluster-for-us");

pub fn check(input: &[u8]) {
    let mut state = ClusterState::new(CLUSTER);
    for line in input.split(|&byte| byte == b'\n') {
        let Ok(command) = Command::decode(line) else { continue };
        let again = Command::decode(&command.encode());
        assert_eq!(again.as_ref(), Ok(&command), "a command is read as it is written");
        let offset = state.offset().plus(1);
        apply(&mut state, offset, &command);
        assert_eq!(state.offset(), offset);
    }
    check_state(&state);
}

/// What holds of every state that a log has led to.
pub fn check_state(state: &ClusterState) {
    let snapshot = state.to_snapshot();
    let read = ClusterState::from_snapshot(&snapshot).expect("a snapshot is read as it was written");
    assert_eq!(read, *state);
    assert_eq!(read.to_snapshot(), snapshot);
    let partitions: usize = state.topics().map(|topic| topic.partitions.len()).sum();
    assert_eq!(state.partition_count(), partitions as u64);
    for topic in state.topics() {
        assert_eq!(state.topic(&topic.name), Some(topic));
        assert_eq!(state.topic_by_id(topic.id), Some(topic));
        assert!(!topic.partitions.is_empty(), "{topic:?}");
    }
}

/// The commands of the log, and those that came later.
pub fn commands() -> Vec<Vec<u8>> {
    let mut commands = Vec::new();
    let mut rest = &LOG[HEADER..];
    while let Some(length) = rest.first_chunk().map(|&length| u32::from_be_bytes(length)) {
        let (frame, behind) = rest.split_at(8 + length as usize);
        if frame[8] == 1 {
            commands.push(frame[FRAME..].to_vec());
        }
        rest = behind;
    }
    let update =
        FeatureUpdate { feature: "group.version".into(), level: 1, upgrade: FeatureUpgrade::Upgrade };
    let features = UpdateFeatures { updates: vec![update], validate_only: false };
    let entity = QuotaEntity {
        user: Some(EntityName::Default),
        client_id: Some(EntityName::Named("me".into())),
        ip: None,
    };
    let op = QuotaOp { key: "producer_byte_rate".into(), value: QuotaValue::new(1024.0) };
    let quotas =
        AlterClientQuotas { entries: vec![QuotaChange { entity, ops: vec![op] }], validate_only: false };
    let change = |resource, key: &str, value: &str| ResourceConfigChange {
        resource,
        replace: false,
        ops: vec![ConfigOp { key: key.into(), change: ConfigChange::Set(value.into()) }],
    };
    let resources = vec![
        change(ConfigResource::Group("readers".into()), "consumer.session.timeout.ms", "50000"),
        change(ConfigResource::Node(NodeId(1)), "log.retention.ms", "100000"),
        change(ConfigResource::AllNodes, "log.cleanup.policy", "compact"),
    ];
    let configs = AlterResourceConfigs { resources, validate_only: false };
    let newer: [Command; 3] = [features.into(), quotas.into(), configs.into()];
    commands.extend(newer.map(|command| command.encode()));
    commands
}

/// Each command by itself behind those that make nodes and topics, and all in a row.
pub fn seeds() -> Vec<Vec<u8>> {
    let commands = commands();
    let beginning = commands[..7].join(&b"\n"[..]);
    let mut seeds: Vec<_> =
        commands.iter().map(|command| [&beginning[..], b"\n", command].concat()).collect();
    seeds.push(commands.join(&b"\n"[..]));
    seeds
}
