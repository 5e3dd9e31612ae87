//! What can be asked of the cluster metadata. A command is only a proposal: whether it is valid is decided
//! when it is applied, on the state that stands at its place in the log.
//!
//! Commands are written to the metadata log as JSON (see docs/formats/metadata-log.md); their field names
//! are therefore part of a format.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use thalweg_protocol::{LeaderEpoch, NodeId, ProducerId, Uuid};

use crate::config_resource::ConfigResource;
use crate::ids::{NodeEpoch, PartitionEpoch};
use crate::json;
use crate::node::Node;
use crate::quota::{QuotaEntity, QuotaValue};
use crate::rejection::Rejection;
use crate::topic::{Partition, Topic};
use crate::topic_config::{ConfigDefinition, TopicConfig};

/// Creates topics; each one is decided by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateTopics {
    /// The topics. A name that occurs twice is refused for both.
    pub topics: Vec<NewTopic>,
    /// Answers what would happen and changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub validate_only: bool,
}

/// A topic to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTopic {
    /// `[a-zA-Z0-9._-]{1,249}`, not `.` or `..`.
    pub name: ByteString,
    /// The id that the topic gets, drawn by the proposer (the state machine has no randomness of its own).
    /// Proposing the same name and id again after an unknown outcome answers with the topic that the first
    /// attempt made.
    #[serde(with = "json::uuid")]
    pub id: Uuid,
    /// How many partitions, −1 for the default; −1 too where `assignment` is given.
    pub partitions: i32,
    /// How many replicas each has, −1 for the default; −1 too where `assignment` is given.
    pub replication_factor: i16,
    /// The replicas of each partition, chosen by hand; empty to have them spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assignment: Vec<ManualPartition>,
    /// Configs that differ from the defaults, as text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub configs: BTreeMap<String, String>,
}

/// The replicas of one partition, chosen by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManualPartition {
    /// The partition's index.
    pub partition: i32,
    /// Its replicas; the first one is the preferred leader.
    #[serde(with = "json::numbers")]
    pub replicas: Vec<NodeId>,
}

/// Deletes topics with all their records; each one is decided by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteTopics {
    /// The topics. One that is named twice is refused for both.
    pub topics: Vec<TopicRef>,
}

/// Names a topic one way or the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TopicRef {
    /// By its name.
    Name(ByteString),
    /// By its id, which does not find a topic that was deleted and created anew.
    Id(#[serde(with = "json::uuid")] Uuid),
}

/// Adds partitions to topics; each topic is decided by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreatePartitions {
    /// The topics. A name that occurs twice is refused for both.
    pub topics: Vec<MorePartitions>,
    /// Answers what would happen and changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub validate_only: bool,
}

/// The partitions to add to one topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MorePartitions {
    /// The topic's name.
    pub name: ByteString,
    /// How many partitions the topic has afterwards, those that exist included.
    pub count: i32,
    /// The replicas of each new partition, in the order of the partitions; empty to have them spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "json::number_lists")]
    pub assignment: Vec<Vec<NodeId>>,
}

/// Changes the configs of topics; each topic is decided by itself and changes wholly or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlterTopicConfigs {
    /// The topics. A name that occurs twice is refused for both.
    pub topics: Vec<TopicConfigChange>,
    /// Answers what would happen and changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub validate_only: bool,
}

/// The changes to the configs of one topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicConfigChange {
    /// The topic's name.
    pub name: ByteString,
    /// Starts from no configs at all instead of the topic's own (the AlterConfigs API;
    /// IncrementalAlterConfigs leaves this false).
    #[serde(default, skip_serializing_if = "is_false")]
    pub replace: bool,
    /// What to do; a key that occurs twice is refused.
    pub ops: Vec<ConfigOp>,
}

/// Changes the configs of nodes and groups; each is decided by itself and changes wholly or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlterResourceConfigs {
    /// The nodes and groups. One that occurs twice is refused for both.
    pub resources: Vec<ResourceConfigChange>,
    /// Answers what would happen and changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub validate_only: bool,
}

/// The changes to the configs of one node or group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceConfigChange {
    /// Whose configs they are.
    pub resource: ConfigResource,
    /// Starts from no configs at all instead of those it has.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replace: bool,
    /// What to do; a key that occurs twice is refused.
    pub ops: Vec<ConfigOp>,
}

/// One change to one config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigOp {
    /// The config's name.
    pub key: String,
    /// What to do with it.
    pub change: ConfigChange,
}

/// What to do with one config (KIP-339).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigChange {
    /// Gives it this value.
    Set(String),
    /// Takes it back to its default.
    Delete,
    /// Adds these elements to a list, those it has already excepted.
    Append(String),
    /// Takes these elements from a list.
    Subtract(String),
}

/// A node tells that it has started: with its first registration, or again after each start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterNode {
    /// The node's id, not negative.
    #[serde(with = "json::number")]
    pub node: NodeId,
    /// The id of its data directory, which stays over restarts: a wiped node does not come back under an id
    /// that still has replicas to its name.
    #[serde(with = "json::uuid")]
    pub uuid: Uuid,
    /// Where clients reach it.
    pub host: ByteString,
    /// Where clients reach it.
    pub port: u16,
    /// The rack it stands in: replicas are spread over racks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<ByteString>,
}

/// Takes a node out of the cluster for good. Its replicas must have been moved elsewhere before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnregisterNode {
    /// The node's id.
    #[serde(with = "json::number")]
    pub node: NodeId,
}

/// Fences a node that stopped sending heartbeats, or lets it back in. A fenced node leads nothing and leaves
/// the ISR of every partition that has another member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FenceNode {
    /// The node's id.
    #[serde(with = "json::number")]
    pub node: NodeId,
    /// The registration that this is about.
    #[serde(with = "json::number")]
    pub epoch: NodeEpoch,
    /// Whether the node is out or in.
    pub fenced: bool,
}

/// A leader changes the ISR of partitions it leads (AlterPartition); each one is decided by itself and only
/// takes effect if nothing else has changed the partition since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeIsr {
    /// The node that leads these partitions.
    #[serde(with = "json::number")]
    pub node: NodeId,
    /// Its registration.
    #[serde(with = "json::number")]
    pub epoch: NodeEpoch,
    /// The changes.
    pub partitions: Vec<IsrChange>,
}

/// The new ISR of one partition, conditional on the leader epoch and the partition epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IsrChange {
    /// The topic's id.
    #[serde(with = "json::uuid")]
    pub topic: Uuid,
    /// The partition's index.
    pub partition: i32,
    /// The epoch in which the proposer leads.
    #[serde(with = "json::number")]
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch that the change is based on.
    #[serde(with = "json::number")]
    pub partition_epoch: PartitionEpoch,
    /// The whole new ISR: replicas of the partition, the leader among them.
    #[serde(with = "json::numbers")]
    pub isr: Vec<NodeId>,
}

/// Elects leaders on an operator's word; each partition is decided by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElectLeaders {
    /// Who may be elected.
    pub kind: ElectionKind,
    /// The partitions.
    pub partitions: Vec<PartitionRef>,
}

/// Who may be elected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElectionKind {
    /// The first replica, if it is live and in sync.
    Preferred,
    /// Any live replica where none is in sync: what the others had beyond it is lost.
    Unclean,
}

/// Names a partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionRef {
    /// The topic's name.
    pub topic: ByteString,
    /// The partition's index.
    pub partition: i32,
}

/// Reserves a block of producer ids for a node to hand out (KIP-730).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllocateProducerIds {
    /// The node.
    #[serde(with = "json::number")]
    pub node: NodeId,
    /// Its registration.
    #[serde(with = "json::number")]
    pub epoch: NodeEpoch,
}

/// Consecutive producer ids that nobody else is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdBlock {
    /// The first one.
    pub first: ProducerId,
    /// How many there are.
    pub len: u32,
}

/// Changes the quotas of clients; each entity is decided by itself and changes wholly or not at all (KIP-546).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlterClientQuotas {
    /// The entities. One that occurs twice is refused both times.
    pub entries: Vec<QuotaChange>,
    /// Answers what would happen and changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub validate_only: bool,
}

/// The changes to the quotas of one entity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaChange {
    /// Whom they are for.
    pub entity: QuotaEntity,
    /// What to do; a quota that occurs twice is refused.
    pub ops: Vec<QuotaOp>,
}

/// One change to one quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaOp {
    /// The quota's name.
    pub key: String,
    /// How much it is from now on; `None` takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<QuotaValue>,
}

/// Changes the levels of features, of all or of none (KIP-584, KIP-1022).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateFeatures {
    /// The features; one that occurs twice is refused.
    pub updates: Vec<FeatureUpdate>,
    /// Answers what would happen and changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub validate_only: bool,
}

/// The change to the level of one feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureUpdate {
    /// The feature's name.
    pub feature: String,
    /// The level that it gets.
    pub level: i16,
    /// Which way the level may go.
    pub upgrade: FeatureUpgrade,
}

/// Which way the level of a feature may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureUpgrade {
    /// Up.
    Upgrade,
    /// Down, if nothing is lost by it.
    SafeDowngrade,
    /// Down, whatever is lost by it.
    UnsafeDowngrade,
}

/// One answer for each element of the request, in its order.
pub type Results<T> = Vec<Result<T, Rejection>>;

/// The first version of the format in which all these configs mean something.
fn newest<'a>(configs: impl Iterator<Item = &'a String>) -> u32 {
    let since = configs.filter_map(|key| TopicConfig::definition(key)).map(ConfigDefinition::since);
    since.max().map_or(1, u32::from)
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A command that can be proposed, and the type of its response.
pub trait Proposal: Into<Command> {
    /// What a proposal of this type is answered with.
    type Response: Send + 'static;

    /// Takes the response out of the enum; `None` if it answers another command.
    fn response(response: Response) -> Option<Self::Response>;
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident -> $response:ty;)*) => {
        /// Any command.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Command {
            $($(#[$doc])* $name($name),)*
        }

        /// The answer to a command that was applied; which variant it is follows from the command.
        ///
        /// Where a topic, partition or node is answered, it is as it stands after the command, or, if the
        /// command took it away, as it last stood.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Response {
            $($(#[$doc])* $name($response),)*
        }

        $(impl From<$name> for Command {
            fn from(command: $name) -> Self {
                Self::$name(command)
            }
        }

        impl Proposal for $name {
            type Response = $response;

            fn response(response: Response) -> Option<Self::Response> {
                match response {
                    Response::$name(response) => Some(response),
                    _ => None,
                }
            }
        })*
    };
}

commands! {
    /// See [`CreateTopics`].
    CreateTopics -> Results<Arc<Topic>>;
    /// See [`DeleteTopics`].
    DeleteTopics -> Results<Arc<Topic>>;
    /// See [`CreatePartitions`].
    CreatePartitions -> Results<Arc<Topic>>;
    /// See [`AlterTopicConfigs`].
    AlterTopicConfigs -> Results<Arc<Topic>>;
    /// See [`RegisterNode`].
    RegisterNode -> Result<Arc<Node>, Rejection>;
    /// See [`UnregisterNode`].
    UnregisterNode -> Result<Arc<Node>, Rejection>;
    /// See [`FenceNode`].
    FenceNode -> Result<Arc<Node>, Rejection>;
    /// See [`ChangeIsr`].
    ChangeIsr -> Results<Arc<Partition>>;
    /// See [`ElectLeaders`].
    ElectLeaders -> Results<Arc<Partition>>;
    /// See [`AllocateProducerIds`].
    AllocateProducerIds -> Result<ProducerIdBlock, Rejection>;
    /// See [`AlterClientQuotas`].
    AlterClientQuotas -> Results<()>;
    /// See [`AlterResourceConfigs`].
    AlterResourceConfigs -> Results<()>;
    /// See [`UpdateFeatures`].
    UpdateFeatures -> Results<i16>;
}

impl Command {
    /// Whether the command only asks what would happen. A driver evaluates such a command in order with the
    /// others but need not write it to its log.
    pub fn is_validate_only(&self) -> bool {
        match self {
            Self::CreateTopics(command) => command.validate_only,
            Self::CreatePartitions(command) => command.validate_only,
            Self::AlterTopicConfigs(command) => command.validate_only,
            Self::AlterClientQuotas(command) => command.validate_only,
            Self::AlterResourceConfigs(command) => command.validate_only,
            Self::UpdateFeatures(command) => command.validate_only,
            _ => false,
        }
    }

    /// The first version of the metadata log's format that has this command.
    pub(crate) fn format_version(&self) -> u32 {
        match self {
            Self::AlterResourceConfigs(_) => 3,
            Self::AlterClientQuotas(_) | Self::UpdateFeatures(_) => 2,
            Self::CreateTopics(command) => {
                newest(command.topics.iter().flat_map(|topic| topic.configs.keys()))
            }
            Self::AlterTopicConfigs(command) => {
                newest(command.topics.iter().flat_map(|topic| &topic.ops).map(|op| &op.key))
            }
            _ => 1,
        }
    }

    /// The command as it stands in the metadata log.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a command has only string keys and no failing serializer")
    }

    /// Reads what [`Command::encode`] wrote. The text of the error says what was not understood: a command
    /// or a field that this version does not know is an error, never ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}
