//! The client of Thalweg's log, and of any other that speaks the Kafka protocol: over TCP, or in process through
//! whatever implements [`Connect`](thalweg_protocol::Connect).
//!
//! Everything begins with [`Client::connect`]; from it come [`Producer`], [`Consumer`], [`ShareConsumer`] and [`Admin`]. An [`Error`]
//! says by its [`kind`](Error::kind) what the caller must do.
//!
//! ```no_run
//! use std::time::Duration;
//! use thalweg_client::{Client, ClientConfig, ConsumerConfig, NewTopic, OffsetReset, ProducerConfig, ProducerRecord};
//!
//! # async fn example() -> Result<(), thalweg_client::Error> {
//! let client = Client::connect(ClientConfig::with_bootstrap("127.0.0.1:9092")).await?;
//! client.admin().create_topic(NewTopic::new("flights", 4)).await?;
//!
//! let producer = client.producer(ProducerConfig::default())?;
//! let delivery = producer.send(ProducerRecord::new("flights", "JFK to SFO").key("N14228")).await?;
//! println!("at offset {:?}", delivery.await?.offset);
//!
//! let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::group("readers") };
//! let mut consumer = client.consumer(config)?;
//! consumer.subscribe(["flights"])?;
//! loop {
//!     for batches in consumer.poll(Duration::from_secs(1)).await?.batches {
//!         for record in batches.into_records() {
//!             println!("{:?}", record?.value);
//!         }
//!     }
//!     consumer.commit().await?;
//! }
//! # }
//! ```
//!
//! How the parts hang together: `Cluster` holds the metadata and hands out connections (`Pool`, `Node`) whose
//! versions are negotiated. A producer's records fill batches in an `Accumulator` or an [`Appender`]; the one task
//! `Sender` owns what waits and is in flight, and a `PartitionQueue` decides for each partition what goes next and
//! under which sequence number. A consumer has no task of its own but for its heartbeats and its rebalances: `poll` drives
//! fetches and searches for positions, tells what the membership has come to, and sends the next fetch before it returns
//! what the last one brought. A share consumer works likewise, but acquires nothing ahead of need.

mod admin;
mod asking;
mod backoff;
mod batch_records;
mod by_coordinator;
mod by_leader;
mod client;
mod clock;
mod cluster;
mod config;
mod consumer;
mod coordinator;
mod error;
mod metadata;
mod node;
mod pool;
mod producer;
mod releases;
mod share;
mod tcp;
mod throttle;

pub use admin::{
    AbortTransaction, Admin, ClusterDescription, ConfigChange, ConfigChanges, ConfigEntry, ConfigResource,
    ConfigResourceType, ConfigSource, ConfigSynonym, ConfigType, CreatedTopic, Election, ElectionType,
    FeatureChange, FeatureUpdate, Features, FencedProducer, GroupDescription, GroupFilter, GroupState,
    GroupType, ListedGroup, ListedTransaction, Listing, LogDir, LogDirReplica, MemberDescription, MemberRef,
    NewPartitions, NewTopic, ProducerState, QuorumDescription, QuorumNode, QuorumReplica, QuotaAlteration,
    QuotaEntity, QuotaFilter, QuotaMatch, Reassignment, RemovedMember, ShareGroupDescription,
    ShareGroupOffset, ShareMemberDescription, TransactionDescription, TransactionFilter, TransactionState,
};
pub use client::Client;
pub use config::{
    AcknowledgementMode, Acks, AcquireMode, ClientConfig, ConsumerConfig, GroupProtocol, Isolation,
    OffsetReset, ProducerConfig, ShareConsumerConfig,
};
pub use consumer::{
    Assignment, Assignor, CommittedOffset, Consumer, ConsumerMetrics, CooperativeSticky, FetchedBatches,
    FetchedRecords, GroupMember, GroupMetadata, ListedOffset, OffsetSpec, Polled, Progress, Range,
    RebalanceEvent, RoundRobin, Waker,
};
pub use error::{Error, ErrorKind, Result};
pub use metadata::{BrokerAddress, Metadata, PartitionMetadata, TopicMetadata};
pub use producer::{
    Acknowledged, Appender, Delivery, KeyHash, Partitioner, Producer, ProducerMetrics, ProducerRecord,
    Refusals, Refused, TopicSlot,
};
pub use share::{
    AcknowledgeType, AcknowledgementOutcome, AcquiredBatches, AcquiredRange, AcquiredRecord, AcquiredRecords,
    ShareConsumer, ShareConsumerMetrics, SharePolled,
};
pub use tcp::TcpConnector;
/// Where records are.
pub use thalweg_protocol::{Offset, TopicPartition};
