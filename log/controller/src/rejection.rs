//! Why a command, or one element of it, was not accepted.

use bytestring::ByteString;
use thalweg_protocol::{LeaderEpoch, NodeId, Uuid};

use crate::ids::{NodeEpoch, PartitionEpoch};
use crate::limits;

/// Why a command, or one element of it, was not accepted. The texts are meant for the person behind the
/// client; the variants, for the mapping to wire error codes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// INVALID_TOPIC_EXCEPTION.
    #[error("the topic name '{name}' is not valid: {reason}")]
    InvalidTopicName {
        /// As it was asked for.
        name: ByteString,
        /// What is wrong with it.
        reason: TopicNameFault,
    },
    /// INVALID_TOPIC_EXCEPTION: `.` and `_` are the same in metric names.
    #[error(
        "the topic name '{name}' collides with the existing topic '{existing}': '.' and '_' count as the same"
    )]
    TopicNameCollides {
        /// As it was asked for.
        name: ByteString,
        /// The topic that stands in the way.
        existing: ByteString,
    },
    /// TOPIC_ALREADY_EXISTS.
    #[error("the topic '{name}' already exists")]
    TopicAlreadyExists {
        /// Its name.
        name: ByteString,
    },
    /// INVALID_REQUEST: the id is zero, reserved, or taken by another topic. The proposer draws another one.
    #[error("the topic id {id} cannot be used")]
    UnusableTopicId {
        /// The id.
        id: Uuid,
    },
    /// INVALID_REQUEST: none of the elements that name this topic is carried out.
    #[error("the topic '{topic}' occurs more than once in the request")]
    DuplicateTopic {
        /// The topic's name or id, as the request has it.
        topic: String,
    },
    /// UNKNOWN_TOPIC_OR_PARTITION.
    #[error("there is no topic '{name}'")]
    UnknownTopic {
        /// As it was asked for.
        name: ByteString,
    },
    /// UNKNOWN_TOPIC_ID.
    #[error("there is no topic with the id {id}")]
    UnknownTopicId {
        /// As it was asked for.
        id: Uuid,
    },
    /// UNKNOWN_TOPIC_OR_PARTITION.
    #[error("the topic '{topic}' has no partition {partition}")]
    UnknownPartition {
        /// The topic's name.
        topic: ByteString,
        /// As it was asked for.
        partition: i32,
    },
    /// INVALID_PARTITIONS.
    #[error("the number of partitions must be at least 1, and is {count}")]
    InvalidPartitionCount {
        /// As it was asked for.
        count: i32,
    },
    /// INVALID_PARTITIONS.
    #[error(
        "the topic '{topic}' has {current} partitions already, and is to have {count}: they can only be added"
    )]
    NotMorePartitions {
        /// The topic's name.
        topic: ByteString,
        /// How many it has.
        current: i32,
        /// How many were asked for.
        count: i32,
    },
    /// POLICY_VIOLATION.
    #[error(
        "one request may create {} partitions at most, and asks for more",
        limits::MAX_PARTITIONS_PER_COMMAND
    )]
    TooManyPartitionsInRequest,
    /// POLICY_VIOLATION.
    #[error("the cluster may hold {} partitions at most, and would hold {count}", limits::MAX_PARTITIONS)]
    TooManyPartitions {
        /// How many there would be.
        count: u64,
    },
    /// INVALID_REPLICATION_FACTOR.
    #[error("the replication factor must be at least 1, and is {factor}")]
    InvalidReplicationFactor {
        /// As it was asked for.
        factor: i16,
    },
    /// INVALID_REPLICATION_FACTOR.
    #[error("the replication factor is {factor}, but only {available} nodes are available")]
    NotEnoughNodes {
        /// As it was asked for.
        factor: i16,
        /// Nodes that are registered and not fenced.
        available: usize,
    },
    /// INVALID_REQUEST.
    #[error(
        "replicas are assigned by hand: the number of partitions and the replication factor must both be -1"
    )]
    CountsBesideAssignment,
    /// INVALID_REPLICA_ASSIGNMENT.
    #[error("the replicas assigned to partition {partition} are not valid: {reason}")]
    InvalidReplicaAssignment {
        /// The partition.
        partition: i32,
        /// What is wrong with it.
        reason: AssignmentFault,
    },
    /// INVALID_CONFIG.
    #[error("the config '{key}' is not valid: {reason}")]
    InvalidConfig {
        /// The config's name.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// INVALID_REQUEST.
    #[error("the config '{key}' occurs more than once in the request")]
    DuplicateConfig {
        /// The config's name.
        key: String,
    },
    /// INVALID_REQUEST.
    #[error("the node id must not be negative, and is {node}")]
    InvalidNodeId {
        /// As it was asked for.
        node: NodeId,
    },
    /// DUPLICATE_BROKER_REGISTRATION.
    #[error(
        "the node id {node} belongs to the data directory {owner}: choose another id, or unregister it first"
    )]
    NodeIdTaken {
        /// The id.
        node: NodeId,
        /// The directory that holds it.
        owner: Uuid,
    },
    /// BROKER_ID_NOT_REGISTERED.
    #[error("there is no node {node}")]
    UnknownNode {
        /// As it was asked for.
        node: NodeId,
    },
    /// INVALID_REQUEST: nothing tells a node that comes back empty from the one that held the records.
    #[error("node {node} still holds replicas of {partitions} partitions: move them to other nodes first")]
    NodeHoldsReplicas {
        /// The node.
        node: NodeId,
        /// Of how many partitions.
        partitions: u64,
    },
    /// STALE_BROKER_EPOCH: the node has registered anew since.
    #[error("the registration {epoch} of node {node} is not the current one, {current}")]
    StaleNodeEpoch {
        /// The node.
        node: NodeId,
        /// As the request has it.
        epoch: NodeEpoch,
        /// As it stands.
        current: NodeEpoch,
    },
    /// FENCED_LEADER_EPOCH, or NOT_CONTROLLER where the request is ahead of this state.
    #[error("the leader epoch is {current}, and the request has {epoch}")]
    LeaderEpochDiffers {
        /// As the request has it.
        epoch: LeaderEpoch,
        /// As it stands.
        current: LeaderEpoch,
    },
    /// INVALID_UPDATE_VERSION, or NOT_CONTROLLER where the request is ahead of this state.
    #[error("the partition epoch is {current}, and the request has {epoch}")]
    PartitionEpochDiffers {
        /// As the request has it.
        epoch: PartitionEpoch,
        /// As it stands.
        current: PartitionEpoch,
    },
    /// INVALID_REQUEST.
    #[error("the partition is led by node {leader}, not by node {node}")]
    NotLeader {
        /// Who asks.
        node: NodeId,
        /// Who leads, −1 for nobody.
        leader: NodeId,
    },
    /// INVALID_REQUEST.
    #[error("the ISR is not valid: {reason}")]
    InvalidIsr {
        /// What is wrong with it.
        reason: IsrFault,
    },
    /// INELIGIBLE_REPLICA.
    #[error("node {node} is fenced or unknown and cannot be in sync")]
    IneligibleReplica {
        /// The node.
        node: NodeId,
    },
    /// ELECTION_NOT_NEEDED.
    #[error("node {leader} leads the partition already")]
    ElectionNotNeeded {
        /// Who leads.
        leader: NodeId,
    },
    /// PREFERRED_LEADER_NOT_AVAILABLE.
    #[error("the preferred leader, node {preferred}, is not live and in sync")]
    PreferredLeaderNotAvailable {
        /// The first replica.
        preferred: NodeId,
    },
    /// ELIGIBLE_LEADERS_NOT_AVAILABLE.
    #[error("no replica of the partition is live")]
    NoLiveReplica,
    /// INVALID_REQUEST.
    #[error("the quota entity is not valid: {reason}")]
    InvalidQuotaEntity {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// INVALID_REQUEST.
    #[error("the quota '{key}' is not valid: {reason}")]
    InvalidQuota {
        /// Its name.
        key: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// POLICY_VIOLATION.
    #[error("there may be quotas for {} entities at most", limits::MAX_QUOTA_ENTITIES)]
    TooManyQuotaEntities,
    /// INVALID_REQUEST.
    #[error("the configs are those of nobody: {reason}")]
    InvalidConfigResource {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// POLICY_VIOLATION.
    #[error("there may be {} groups and nodes with configs at most", limits::MAX_CONFIG_RESOURCES)]
    TooManyConfigResources,
    /// INVALID_UPDATE_VERSION.
    #[error("the feature '{feature}' cannot be given the level {level}: {reason}")]
    InvalidFeatureUpdate {
        /// Its name.
        feature: String,
        /// As it was asked for.
        level: i16,
        /// Why not.
        reason: &'static str,
    },
    /// UNKNOWN_SERVER_ERROR: the metadata holds as many as the number's type can.
    #[error("there are no {what} left")]
    Exhausted {
        /// Of what.
        what: &'static str,
    },
}

/// What is wrong with a topic's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicNameFault {
    /// It is empty.
    #[error("it must not be empty")]
    Empty,
    /// It is `.` or `..`.
    #[error("it must not be '.' or '..'")]
    Dots,
    /// It is too long.
    #[error("it has {length} characters, and may have {} at most", limits::MAX_TOPIC_NAME)]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// It has a character outside `[a-zA-Z0-9._-]`.
    #[error("only letters, digits, '.', '_' and '-' may occur in it")]
    Character,
}

/// What is wrong with the replicas of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentFault {
    /// Partitions are counted from the first new one without gaps, each once.
    #[error("the partitions must be numbered consecutively from {first}")]
    NotConsecutive {
        /// The number of the first one.
        first: i32,
    },
    /// The list is empty.
    #[error("there must be at least one")]
    Empty,
    /// A node occurs twice.
    #[error("node {node} occurs more than once")]
    Repeated {
        /// The node.
        node: NodeId,
    },
    /// A node is not registered.
    #[error("there is no node {node}")]
    UnknownNode {
        /// The node.
        node: NodeId,
    },
    /// All partitions of a topic have equally many replicas.
    #[error("there are {found} of them, and {expected} for the other partitions")]
    Uneven {
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
    },
    /// Every node in it is fenced.
    #[error("all of them are fenced")]
    AllFenced,
    /// There are assignments for more or fewer partitions than are to be added.
    #[error("{found} partitions are assigned, and {expected} are to be added")]
    Count {
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
    },
}

/// What is wrong with an ISR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsrFault {
    /// The leader is always in sync with itself.
    #[error("it lacks the leader")]
    WithoutLeader,
    /// A node that is no replica.
    #[error("node {node} is not a replica of the partition")]
    NotAReplica {
        /// The node.
        node: NodeId,
    },
    /// A node occurs twice.
    #[error("node {node} occurs more than once")]
    Repeated {
        /// The node.
        node: NodeId,
    },
}
