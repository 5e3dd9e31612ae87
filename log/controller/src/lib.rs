//! The cluster's metadata: topics, partitions, nodes, configs, producer ids.
//!
//! Everything that changes it is a [`Command`]. Whoever wants a change only proposes it, to a [`Controller`];
//! a [`Driver`] puts the commands in one order and makes them durable; then [`apply`], a pure function,
//! decides whether each is valid and carries it out. Readers hold a [`ClusterState`] as it stood at one place
//! of that order.
//!
//! Nothing here knows tokio or wire messages, and nothing but the driver's [`Disk`] does I/O.

mod apply;
mod command;
mod config;
mod config_resource;
mod controller;
mod driver;
mod election;
mod error;
mod feature;
mod group_config;
mod ids;
mod isr_change;
mod json;
pub mod limits;
mod local;
mod node;
mod node_config;
mod placement;
mod quota;
mod rejection;
mod shared_map;
mod snapshot;
mod state;
mod state_machine;
pub mod testing;
mod topic;
mod topic_config;
mod topic_name;

pub use apply::apply;
pub use command::{
    AllocateProducerIds, AlterClientQuotas, AlterResourceConfigs, AlterTopicConfigs, ChangeIsr, Command,
    ConfigChange, ConfigOp, CreatePartitions, CreateTopics, DeleteTopics, ElectLeaders, ElectionKind,
    FeatureUpdate, FeatureUpgrade, FenceNode, IsrChange, ManualPartition, MorePartitions, NewTopic,
    PartitionRef, ProducerIdBlock, Proposal, QuotaChange, QuotaOp, RegisterNode, ResourceConfigChange,
    Response, Results, TopicConfigChange, TopicRef, UnregisterNode, UpdateFeatures,
};
pub use config::LocalConfig;
pub use config_resource::ConfigResource;
pub use controller::Controller;
pub use driver::{Done, Driver, ProposeError};
pub use error::Error;
pub use feature::{FEATURES, FeatureDefinition};
pub use group_config::{GroupConfig, ShareOffsetReset};
pub use ids::{NodeEpoch, PartitionEpoch};
pub use local::{Disk, DiskDirectory, DiskFile, LocalDriver, OsDisk};
pub use node::Node;
pub use node_config::{IdleNodeConfig, NodeConfig};
pub use quota::{EntityName, QuotaDefinition, QuotaEntity, QuotaValue, Quotas};
pub use rejection::{AssignmentFault, IsrFault, Rejection, TopicNameFault};
pub use snapshot::SnapshotError;
pub use state::{ClusterState, METADATA_VERSION, TopicChange};
pub use state_machine::{Entry, StateMachine, Subscription};
pub use topic::{Partition, Topic};
pub use topic_config::{
    CleanupPolicy, ConfigDefinition, ConfigError, ConfigKind, Durability, IsolationLevel, ReplicaList,
    TimestampType, TopicCompression, TopicConfig,
};
pub use topic_name::check as check_topic_name;
