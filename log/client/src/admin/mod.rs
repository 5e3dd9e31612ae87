//! The calls that manage topics, configs, groups, transactions and the cluster.
//!
//! How a request finds its broker, as in Java's `Admin`: what changes the cluster goes to the controller (any broker
//! passes it on in a cluster without ZooKeeper), what is about partitions to their leaders, what is about groups and
//! transactional ids to their coordinators, and what each broker knows for itself to each of them.

mod cluster;
mod configs;
mod create_topics;
mod elections;
mod features;
mod group_members;
mod group_offsets;
mod groups;
mod hanging;
mod listing;
mod log_dirs;
mod named;
mod partitions;
mod quorum;
mod quotas;
mod reassignments;
mod records;
mod share_groups;
mod topics;
mod transactions;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytestring::ByteString;
use futures::future::BoxFuture;
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, NodeId, TopicPartition};

use crate::asking::{Answers, Asking};
use crate::cluster::Cluster;
use crate::error::{Error, ErrorKind, Result};
use crate::node::Node;

pub use cluster::ClusterDescription;
pub use configs::{
    ConfigChange, ConfigChanges, ConfigEntry, ConfigResource, ConfigResourceType, ConfigSource,
    ConfigSynonym, ConfigType,
};
pub use create_topics::{CreatedTopic, NewTopic};
pub use elections::{Election, ElectionType};
pub use features::{FeatureChange, FeatureUpdate, Features};
pub use group_members::{MemberRef, RemovedMember};
pub use groups::{GroupDescription, GroupFilter, GroupState, GroupType, ListedGroup, MemberDescription};
pub use listing::Listing;
pub use log_dirs::{LogDir, LogDirReplica};
pub use partitions::NewPartitions;
pub use quorum::{QuorumDescription, QuorumNode, QuorumReplica};
pub use quotas::{QuotaAlteration, QuotaEntity, QuotaFilter, QuotaMatch};
pub use reassignments::Reassignment;
pub use share_groups::{ShareGroupDescription, ShareGroupOffset, ShareMemberDescription};
pub use transactions::{
    AbortTransaction, FencedProducer, ListedTransaction, ProducerState, TransactionDescription,
    TransactionFilter, TransactionState,
};

/// Manages topics, configs, groups, transactions and the cluster.
///
/// Every call is retried within the client's API timeout for as long as what it fails by is expected to pass. Where
/// several things are asked for at once, each has a result of its own: one that is refused keeps no other from its
/// answer. A broker that does not have the API a call needs makes it fail with
/// [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion), which says what would do.
#[derive(Clone)]
pub struct Admin {
    cluster: Arc<Cluster>,
}

/// Which broker a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Route {
    Any,
    Controller,
    Broker(NodeId),
}

impl Admin {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }

    async fn node(&self, route: Route) -> Result<Arc<Node>> {
        match route {
            Route::Any => self.cluster.any_node().await,
            Route::Controller => self.cluster.controller().await,
            Route::Broker(id) => self.cluster.find_node(id).await,
        }
    }

    /// One call, tried again while its failure passes.
    async fn call<R>(
        &self,
        operation: &'static str,
        route: Route,
        attempt: impl Fn(Arc<Node>) -> BoxFuture<'static, Result<R>>,
    ) -> Result<R> {
        let mut retry = self.cluster.retry(operation);
        loop {
            let answer = match self.node(route).await {
                Ok(node) => attempt(node).await,
                Err(error) => Err(error),
            };
            match answer {
                Err(error) if error.kind() == ErrorKind::Retry => retry.pause(error).await?,
                answer => return answer,
            }
            self.look_for(route).await;
        }
    }

    /// Asks one broker about several things, until each has an answer.
    async fn call_each<K: Ord + Clone, T: Clone, R>(
        &self,
        api: ApiKey,
        operation: &'static str,
        route: Route,
        open: BTreeMap<K, T>,
        attempt: impl Fn(Arc<Node>, BTreeMap<K, T>) -> BoxFuture<'static, Answers<K, R>>,
    ) -> Asking<K, T, R> {
        let mut asking = Asking::new(&self.cluster, api, operation, open);
        while !asking.open().is_empty() {
            let open = asking.open().clone();
            let keys: Vec<K> = open.keys().cloned().collect();
            let answers = match self.node(route).await {
                Ok(node) => attempt(node, open).await,
                Err(error) => Err(error),
            };
            asking.settle_all(keys, answers);
            if !asking.pause().await {
                break;
            }
            self.look_for(route).await;
        }
        asking
    }

    /// The controller may be another broker by now. A failure of this shows in the next attempt.
    async fn look_for(&self, route: Route) {
        if route == Route::Controller {
            let _ = self.cluster.refresh().await;
        }
    }

    /// How long a broker may wait for others, in ms.
    fn timeout_ms(&self) -> i32 {
        self.cluster.config().request_timeout_ms.min(i32::MAX as u64) as i32
    }
}

/// The version for a call that needs at least version `first` of its API for what was asked.
fn version_from<A: Api>(node: &Node, first: i16) -> Result<i16> {
    node.offered().pick(A::KEY, first.max(*A::VERSIONS.start())..=*A::VERSIONS.end())
}

/// `answer`, unless the code says that it was refused.
fn checked<R>(
    api: ApiKey,
    code: i16,
    message: Option<ByteString>,
    subject: impl FnOnce() -> String,
    answer: R,
) -> Result<R> {
    match ErrorCode::from(code) {
        ErrorCode::None => Ok(answer),
        code => Err(Error::Broker { api, code, subject: subject(), message }),
    }
}

/// The same for what is about a topic: that it does not exist is an error of its own.
fn checked_topic<R>(
    api: ApiKey,
    code: i16,
    message: Option<ByteString>,
    topic: &ByteString,
    answer: R,
) -> Result<R> {
    match ErrorCode::from(code) {
        ErrorCode::UnknownTopicOrPartition => Err(Error::UnknownTopic { topic: topic.clone() }),
        _ => checked(api, code, message, || format!("topic {topic}"), answer),
    }
}

/// The same key may be asked for twice; it has one answer.
fn keyed<K: Ord + Clone>(keys: impl IntoIterator<Item = K>) -> BTreeMap<K, ()> {
    keys.into_iter().map(|key| (key, ())).collect()
}

/// The partitions that a member of a group has, in order, out of those of each topic.
fn assigned(topics: impl Iterator<Item = (ByteString, Vec<i32>)>) -> Vec<TopicPartition> {
    let of_topic = |(topic, partitions): (ByteString, Vec<i32>)| {
        partitions.into_iter().map(move |partition| TopicPartition::new(topic.clone(), partition))
    };
    let mut partitions: Vec<_> = topics.flat_map(of_topic).collect();
    partitions.sort();
    partitions
}
