//! The way in: a connected client, from which producers, consumers and the admin are made.

use std::sync::Arc;

use bytestring::ByteString;

use crate::admin::Admin;
use crate::cluster::Cluster;
use crate::config::{ClientConfig, ConsumerConfig, ProducerConfig, ShareConsumerConfig};
use crate::consumer::{Assignor, Consumer, CooperativeSticky};
use crate::error::Result;
use crate::metadata::Metadata;
use crate::producer::{KeyHash, Partitioner, Producer};
use crate::share::ShareConsumer;

/// A connection to a cluster, by TCP or in process. Cloning it is cheap; clones share the metadata.
///
/// A client lives within a tokio runtime: it must be made, and its futures run, within one (from other
/// threads through [`tokio::runtime::Handle::block_on`]).
#[derive(Clone)]
pub struct Client {
    cluster: Arc<Cluster>,
}

impl Client {
    /// Finds the cluster through one of the bootstrap brokers (or the connector).
    ///
    /// # Errors
    /// [`Error::TimedOut`](crate::Error::TimedOut) with the last failure when none answers within the API
    /// timeout.
    pub async fn connect(config: ClientConfig) -> Result<Self> {
        Ok(Self { cluster: Cluster::connect(config).await? })
    }

    /// A producer with Java's partitioning ([`KeyHash`]).
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for settings that cannot be.
    pub fn producer(&self, config: ProducerConfig) -> Result<Producer> {
        self.producer_with(config, Arc::new(KeyHash))
    }

    /// A producer with an own partitioner.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for settings that cannot be.
    pub fn producer_with(
        &self,
        config: ProducerConfig,
        partitioner: Arc<dyn Partitioner>,
    ) -> Result<Producer> {
        Producer::new(Arc::clone(&self.cluster), config, partitioner)
    }

    /// A consumer; in a group, one that shares by [`CooperativeSticky`].
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for settings that cannot be.
    pub fn consumer(&self, config: ConsumerConfig) -> Result<Consumer> {
        self.consumer_with(config, vec![Arc::new(CooperativeSticky)])
    }

    /// A consumer with own assignors, the most wanted first; the group uses one that all members know.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for settings that cannot be.
    pub fn consumer_with(
        &self,
        config: ConsumerConfig,
        assignors: Vec<Arc<dyn Assignor>>,
    ) -> Result<Consumer> {
        Consumer::new(Arc::clone(&self.cluster), config, assignors)
    }

    /// A member of a share group, whose members share a queue (KIP-932).
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for settings that cannot be.
    pub fn share_consumer(&self, config: ShareConsumerConfig) -> Result<ShareConsumer> {
        ShareConsumer::new(Arc::clone(&self.cluster), config)
    }

    /// The calls that manage topics, offsets and the cluster.
    pub fn admin(&self) -> Admin {
        Admin::new(Arc::clone(&self.cluster))
    }

    /// What is known at present, without asking.
    pub fn metadata(&self) -> Arc<Metadata> {
        self.cluster.metadata()
    }

    /// How many partitions `topic` has; asks the cluster if that is not known yet.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic), and whatever keeps the cluster from answering.
    pub async fn partition_count(&self, topic: &str) -> Result<i32> {
        self.cluster.partition_count(&ByteString::from(topic)).await
    }
}
