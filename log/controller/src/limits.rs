//! The bounds of what the cluster metadata takes in. `apply` decides by them, so changing one changes what an
//! old log means: a change needs a new metadata version.

/// Partitions that one command may create, as in Kafka: a request for 2³¹ must not cost memory.
pub const MAX_PARTITIONS_PER_COMMAND: usize = 10_000;

/// Partitions in the whole cluster: each costs about 300 bytes in every node's memory and some in every
/// snapshot.
pub const MAX_PARTITIONS: u64 = 1_000_000;

/// Bytes in a topic's name: with `-<partition>` it still fits a file name.
pub const MAX_TOPIC_NAME: usize = 249;

/// Bytes in the value of one config.
pub const MAX_CONFIG_VALUE: usize = 8_192;

/// Users, client ids and addresses that have quotas: each costs some 100 bytes in every node's memory and every snapshot.
pub const MAX_QUOTA_ENTITIES: usize = 10_000;

/// Groups and nodes that have configs of their own: each costs some 100 bytes in every node's memory and every snapshot.
pub const MAX_CONFIG_RESOURCES: usize = 10_000;

/// Producer ids in a block, as in Kafka.
pub const PRODUCER_IDS_PER_BLOCK: u32 = 1_000;

/// The partitions of a topic that does not say how many it wants.
pub const DEFAULT_PARTITIONS: i32 = 1;

/// The replicas of a topic that does not say how many it wants, if there are as many nodes.
pub const DEFAULT_REPLICATION_FACTOR: usize = 3;
