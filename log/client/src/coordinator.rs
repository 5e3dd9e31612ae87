//! The broker that looks after a group or a transactional id.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::messages::find_coordinator::FindCoordinatorRequest;
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, NodeId};

use crate::asking::Answers;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::metadata::BrokerAddress;
use crate::node::Node;
use crate::pool::Pool;

/// The first version of FindCoordinator that tells groups from transactional ids.
const TYPED: i16 = 1;
/// The first version of FindCoordinator that takes several keys.
const SEVERAL: i16 = 4;

/// What a coordinator looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoordinatorOf {
    Group,
    Transaction,
}

/// Finds a coordinator, and finds it again when it moves.
pub(crate) struct Coordinator {
    cluster: Arc<Cluster>,
    pool: Arc<Pool>,
    of: CoordinatorOf,
    key: ByteString,
    /// Guards where it was last found.
    found: Mutex<Option<BrokerAddress>>,
}

impl Coordinator {
    /// A coordinator that is talked to over a connection of its own: its answers may be long in coming.
    pub(crate) fn new(cluster: &Arc<Cluster>, of: CoordinatorOf, key: &str) -> Self {
        Self::over(cluster, Arc::new(cluster.new_pool()), of, key)
    }

    /// A group's coordinator for a few short calls, over the connections that the client has anyway.
    pub(crate) fn for_short_calls(cluster: &Arc<Cluster>, group: &str) -> Self {
        Self::over(cluster, Arc::clone(cluster.pool()), CoordinatorOf::Group, group)
    }

    fn over(cluster: &Arc<Cluster>, pool: Arc<Pool>, of: CoordinatorOf, key: &str) -> Self {
        Self { cluster: Arc::clone(cluster), pool, of, key: ByteString::from(key), found: Mutex::new(None) }
    }

    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// The group or transactional id.
    pub(crate) fn key(&self) -> &ByteString {
        &self.key
    }

    /// The connection to the coordinator; finds it if that is not known.
    pub(crate) async fn node(&self) -> Result<Arc<Node>> {
        let found = self.found.lock().clone();
        let broker = match found {
            Some(broker) => broker,
            None => {
                let broker = self.find().await?;
                *self.found.lock() = Some(broker.clone());
                broker
            }
        };
        let opened = self.pool.node(&broker).await;
        if opened.is_err() {
            self.forget();
        }
        opened
    }

    /// Another broker may be the coordinator by now.
    pub(crate) fn forget(&self) {
        *self.found.lock() = None;
    }

    /// Looks at a refusal: one that says the coordinator has moved makes the next call find it again.
    pub(crate) fn refused(&self, api: ApiKey, code: ErrorCode) -> Error {
        if matches!(code, ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable) {
            self.forget();
        }
        Error::Broker { api, code, subject: self.subject(), message: None }
    }

    /// One call, not retried. A failed connection makes the next call find the coordinator again.
    pub(crate) async fn call<A: Api>(
        &self,
        request: A,
        max_version: i16,
        extra: Duration,
    ) -> Result<A::Response> {
        let node = self.node().await?;
        let versions = *A::VERSIONS.start()..=max_version.min(*A::VERSIONS.end());
        let answer = node.call_within(request, versions, extra).await;
        if let Err(Error::Connection { .. }) = &answer {
            self.forget();
        }
        answer
    }

    pub(crate) fn subject(&self) -> String {
        self.of.subject(&self.key)
    }

    async fn find(&self) -> Result<BrokerAddress> {
        let node = self.cluster.any_node().await?;
        let found = find_coordinators(&node, self.of, vec![self.key.clone()]).await?;
        let missing = Error::BadAnswer { api: ApiKey::FindCoordinator, reason: "it names no coordinator" };
        found.into_iter().next().ok_or(missing)?.1
    }
}

impl CoordinatorOf {
    /// What errors are about.
    pub(crate) fn subject(self, key: &str) -> String {
        match self {
            Self::Group => format!("group {key}"),
            Self::Transaction => format!("transactional id {key}"),
        }
    }
}

/// Asks a broker for the coordinators of some groups or transactional ids: of all in one request if it can (KIP-699).
pub(crate) async fn find_coordinators(
    node: &Arc<Node>,
    of: CoordinatorOf,
    keys: Vec<ByteString>,
) -> Answers<ByteString, BrokerAddress> {
    let version = node.offered().pick(ApiKey::FindCoordinator, FindCoordinatorRequest::VERSIONS)?;
    let key_type = if version >= TYPED { i8::from(of == CoordinatorOf::Transaction) } else { 0 };
    if version >= SEVERAL {
        let request = FindCoordinatorRequest { key_type, coordinator_keys: keys, ..Default::default() };
        let response = node.call_in(version, request, Duration::ZERO).await?;
        let found = response.coordinators.into_iter().map(|found| {
            let address = address(of, &found.key, found.error_code, found.error_message, || {
                (found.node_id, found.host, found.port)
            });
            (found.key, address)
        });
        return Ok(found.collect());
    }
    if of == CoordinatorOf::Transaction && version < TYPED {
        // A broker from before transactions would take the id for a group's.
        node.offered().pick(ApiKey::FindCoordinator, TYPED..=*FindCoordinatorRequest::VERSIONS.end())?;
    }
    let mut all = Vec::new();
    for key in keys {
        let request = FindCoordinatorRequest { key_type, key: key.clone(), ..Default::default() };
        let found = node.call_in(version, request, Duration::ZERO).await?;
        let address = address(of, &key, found.error_code, found.error_message, || {
            (found.node_id, found.host, found.port)
        });
        all.push((key, address));
    }
    Ok(all)
}

fn address(
    of: CoordinatorOf,
    key: &str,
    code: i16,
    message: Option<ByteString>,
    found: impl FnOnce() -> (i32, ByteString, i32),
) -> Result<BrokerAddress> {
    let api = ApiKey::FindCoordinator;
    let code = ErrorCode::from(code);
    if !code.is_none() {
        return Err(Error::Broker { api, code, subject: of.subject(key), message });
    }
    let (id, host, port) = found();
    let port =
        u16::try_from(port).map_err(|_| Error::BadAnswer { api, reason: "its port is out of range" })?;
    Ok(BrokerAddress { id: NodeId(id), host, port, rack: None })
}
