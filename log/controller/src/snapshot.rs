//! The whole state as bytes and back. The layout is drawn in docs/formats/metadata-log.md.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use thalweg_protocol::{LeaderEpoch, NodeId, Offset, ProducerId, Uuid};

use crate::config_resource::ConfigResource;
use crate::ids::PartitionEpoch;
use crate::json;
use crate::node::Node;
use crate::quota::{QuotaEntity, Quotas};
use crate::state::{ClusterState, METADATA_VERSION};
use crate::topic::{Partition, Topic};

pub(crate) const FORMAT_VERSION: u32 = 3;

const MAGIC: [u8; 8] = *b"THALSNAP";
const HEADER: usize = 24;

/// Why a snapshot cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// It was written by a newer version.
    #[error(
        "the snapshot has format version {found}, and version {supported} is the newest that can be read"
    )]
    Newer {
        /// Its version.
        found: u32,
        /// The newest version that can be read.
        supported: u32,
    },
    /// It is not what was written.
    #[error("the snapshot is corrupt at byte {position}: {what}")]
    Corrupt {
        /// Where.
        position: usize,
        /// What is wrong.
        what: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    #[serde(with = "json::uuid")]
    cluster_id: Uuid,
    metadata_version: u16,
    #[serde(with = "json::number")]
    offset: Offset,
    #[serde(with = "json::number")]
    next_producer_id: ProducerId,
    nodes: Vec<std::borrow::Cow<'a, Node>>,
    topics: Vec<TopicDocument>,
    /// From version 2, as what follows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    features: BTreeMap<String, i16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    quotas: Vec<QuotaDocument>,
    /// From version 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resource_configs: Vec<ConfigsDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigsDocument {
    resource: ConfigResource,
    configs: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaDocument {
    entity: QuotaEntity,
    quotas: Quotas,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicDocument {
    name: ByteString,
    #[serde(with = "json::uuid")]
    id: Uuid,
    configs: BTreeMap<String, String>,
    partitions: Vec<PartitionDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionDocument {
    #[serde(with = "json::numbers")]
    replicas: Vec<NodeId>,
    #[serde(with = "json::numbers")]
    isr: Vec<NodeId>,
    #[serde(with = "json::number")]
    leader: NodeId,
    #[serde(with = "json::number")]
    leader_epoch: LeaderEpoch,
    #[serde(with = "json::number")]
    partition_epoch: PartitionEpoch,
}

/// Writes a state. Equal states give equal bytes.
pub(crate) fn encode(state: &ClusterState) -> Vec<u8> {
    let document = Document {
        cluster_id: state.cluster_id,
        metadata_version: state.metadata_version,
        offset: state.offset,
        next_producer_id: state.next_producer_id,
        nodes: state.nodes().map(|node| std::borrow::Cow::Borrowed(&**node)).collect(),
        topics: state.topics().map(|topic| topic_document(topic)).collect(),
        features: BTreeMap::clone(&state.features),
        quotas: state.quotas.iter().map(quota_document).collect(),
        resource_configs: state.resource_configs.iter().map(configs_document).collect(),
    };
    let mut bytes = vec![0; HEADER];
    serde_json::to_writer(&mut bytes, &document)
        .expect("a state has only string keys and no failing serializer");
    let body = (bytes.len() - HEADER) as u64;
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_be_bytes());
    bytes[12..20].copy_from_slice(&body.to_be_bytes());
    let crc = checksum(&bytes);
    bytes[20..HEADER].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Reads what [`encode`] has written, now or in an older version.
pub(crate) fn decode(bytes: &[u8]) -> Result<ClusterState, SnapshotError> {
    let corrupt = |position, what: &str| SnapshotError::Corrupt { position, what: what.to_owned() };
    let (header, body) =
        bytes.split_at_checked(HEADER).ok_or_else(|| corrupt(bytes.len(), "it ends within its header"))?;
    if header[..8] != MAGIC {
        return Err(corrupt(0, "it does not begin as a snapshot does"));
    }
    let version = u32::from_be_bytes(header[8..12].try_into().expect("four bytes"));
    if version > FORMAT_VERSION {
        return Err(SnapshotError::Newer { found: version, supported: FORMAT_VERSION });
    }
    let length = u64::from_be_bytes(header[12..20].try_into().expect("eight bytes"));
    if length != body.len() as u64 {
        return Err(corrupt(bytes.len(), "its length is not the one in its header"));
    }
    if header[20..] != checksum(bytes).to_be_bytes() {
        return Err(corrupt(HEADER, "the checksum does not fit the content"));
    }
    let document: Document<'_> =
        serde_json::from_slice(body).map_err(|error| corrupt(HEADER, &error.to_string()))?;
    if document.metadata_version > METADATA_VERSION {
        let found = u32::from(document.metadata_version);
        return Err(SnapshotError::Newer { found, supported: u32::from(METADATA_VERSION) });
    }
    state(document).map_err(|what| corrupt(HEADER, &what))
}

/// Of everything but the checksum itself.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..20]), &bytes[HEADER..])
}

fn quota_document((entity, quotas): (&QuotaEntity, &Quotas)) -> QuotaDocument {
    QuotaDocument { entity: entity.clone(), quotas: quotas.clone() }
}

fn configs_document((resource, configs): (&ConfigResource, &BTreeMap<String, String>)) -> ConfigsDocument {
    ConfigsDocument { resource: resource.clone(), configs: configs.clone() }
}

fn topic_document(topic: &Topic) -> TopicDocument {
    let partition = |partition: &Arc<Partition>| PartitionDocument {
        replicas: partition.replicas.clone(),
        isr: partition.isr.clone(),
        leader: partition.leader,
        leader_epoch: partition.leader_epoch,
        partition_epoch: partition.partition_epoch,
    };
    TopicDocument {
        name: topic.name.clone(),
        id: topic.id,
        configs: topic.overrides.clone(),
        partitions: topic.partitions.iter().map(partition).collect(),
    }
}

/// No log and no partition comes so far: what is counted from such numbers would leave the numbers there are.
const BEYOND_ALL_OFFSETS: i64 = i64::MAX / 2;
const BEYOND_ALL_EPOCHS: i32 = i32::MAX / 2;

fn check_numbers(document: &Document<'_>) -> Result<(), String> {
    if !(-1..BEYOND_ALL_OFFSETS).contains(&document.offset.0) {
        return Err(format!("no command stands at {}", document.offset));
    }
    let epochs = 0..BEYOND_ALL_EPOCHS;
    for topic in &document.topics {
        let is_possible = |partition: &PartitionDocument| {
            epochs.contains(&partition.leader_epoch.0) && epochs.contains(&partition.partition_epoch.0)
        };
        if !topic.partitions.iter().all(is_possible) {
            return Err(format!("the topic '{}' has an epoch that no partition comes to", topic.name));
        }
    }
    Ok(())
}

fn state(document: Document<'_>) -> Result<ClusterState, String> {
    check_numbers(&document)?;
    let mut state = ClusterState::new(document.cluster_id);
    state.metadata_version = document.metadata_version;
    state.offset = document.offset;
    state.next_producer_id = document.next_producer_id;
    let nodes = document.nodes.into_iter().map(|node| (node.id, Arc::new(node.into_owned())));
    state.nodes = Arc::new(nodes.collect());
    state.features = Arc::new(document.features);
    let quotas = document.quotas.into_iter().map(|document| (document.entity, document.quotas));
    state.quotas = Arc::new(quotas.collect());
    for ConfigsDocument { resource, configs } in &document.resource_configs {
        resource.check(configs).map_err(|error| format!("of {resource:?}, {error}"))?;
    }
    let configs = document.resource_configs.into_iter().map(|document| (document.resource, document.configs));
    state.resource_configs = Arc::new(configs.collect());
    for topic in document.topics {
        if state.topic(&topic.name).is_some() || state.topic_by_id(topic.id).is_some() {
            return Err(format!("the topic '{}' is in it twice", topic.name));
        }
        if topic.partitions.is_empty() {
            return Err(format!("the topic '{}' has no partitions", topic.name));
        }
        let partitions = topic.partitions.into_iter().map(|partition| Arc::new(partition.into())).collect();
        let name = topic.name.clone();
        let topic = Topic::new(topic.name, topic.id, partitions, topic.configs)
            .map_err(|error| format!("of the topic '{name}', {error}"))?;
        state.put_topic(topic);
    }
    Ok(state)
}

impl From<PartitionDocument> for Partition {
    fn from(document: PartitionDocument) -> Self {
        let PartitionDocument { replicas, isr, leader, leader_epoch, partition_epoch } = document;
        Self { replicas, isr, leader, leader_epoch, partition_epoch }
    }
}
