//! The client of Thalweg's log, and of any other that speaks the Kafka protocol: over TCP, or in process
//! through whatever implements [`Connect`](thalweg_protocol::Connect).
//!
//! Everything begins with [`Client::connect`]; from it come [`Producer`], [`Consumer`] and [`Admin`]. An
//! [`Error`] says by its [`kind`](Error::kind) what the caller must do.

mod admin;
mod backoff;
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
mod tcp;

pub use admin::{Admin, ClusterDescription, CreatedTopic, NewTopic};
pub use client::Client;
pub use config::{Acks, ClientConfig, ConsumerConfig, Isolation, OffsetReset, ProducerConfig};
pub use consumer::{
    Assignment, Assignor, CommittedOffset, Consumer, CooperativeSticky, FetchedBatches, FetchedRecords,
    GroupMember, GroupMetadata, ListedOffset, OffsetSpec, Polled, Progress, Range, RebalanceEvent,
    RoundRobin, Waker,
};
pub use error::{Error, ErrorKind, Result};
pub use metadata::{BrokerAddress, Metadata, PartitionMetadata, TopicMetadata};
pub use producer::{
    Acknowledged, Appender, Delivery, KeyHash, Partitioner, Producer, ProducerRecord, TopicSlot,
};
pub use tcp::TcpConnector;
