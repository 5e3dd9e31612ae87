//! Connections by broker: one each, opened when needed, opened again when lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use thalweg_protocol::{Connect, NodeId};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::error::Result;
use crate::metadata::BrokerAddress;
use crate::node::Node;

/// Resolves when the connection is open; shared by all who want it.
pub(crate) type Opening = Shared<BoxFuture<'static, Result<Arc<Node>>>>;

/// The connections of one user of the client. Requests that a broker answers late hold up those behind them,
/// so producers, fetchers and group members have a pool each.
pub(crate) struct Pool {
    connector: Arc<dyn Connect>,
    request_timeout: Duration,
    backoff: Backoff,
    /// Guards which connection is the broker's; never held while one is opened.
    entries: Mutex<HashMap<NodeId, Entry>>,
}

struct Entry {
    host: ByteString,
    port: u16,
    opening: Opening,
    backoff: Backoff,
    not_before: Instant,
}

impl Pool {
    pub(crate) fn new(connector: Arc<dyn Connect>, request_timeout: Duration, backoff: Backoff) -> Self {
        Self { connector, request_timeout, backoff, entries: Mutex::new(HashMap::new()) }
    }

    /// The connection to a broker, if it is open.
    pub(crate) fn open_node(&self, broker: &BrokerAddress) -> Option<Arc<Node>> {
        let entries = self.entries.lock();
        let entry = entries.get(&broker.id).filter(|entry| entry.is_of(broker))?;
        match entry.opening.peek() {
            Some(Ok(node)) if !node.is_closed() => Some(Arc::clone(node)),
            _ => None,
        }
    }

    /// The connection to a broker, opened if it has to be. After a failure the next attempt waits.
    pub(crate) fn node(&self, broker: &BrokerAddress) -> Opening {
        let mut entries = self.entries.lock();
        let before = entries.remove(&broker.id).filter(|entry| entry.is_of(broker));
        let entry = match before {
            Some(entry) if !is_lost(&entry.opening) => entry,
            Some(mut entry) => {
                if matches!(entry.opening.peek(), Some(Ok(_))) {
                    entry.backoff.reset();
                }
                entry.opening = self.open_at(broker, entry.not_before);
                entry.not_before = Instant::now() + entry.backoff.next();
                entry
            }
            None => {
                let mut backoff = self.backoff.clone();
                let not_before = Instant::now() + backoff.next();
                let (host, port) = (broker.host.clone(), broker.port);
                Entry { host, port, opening: self.open_at(broker, Instant::now()), backoff, not_before }
            }
        };
        let opening = entry.opening.clone();
        entries.insert(broker.id, entry);
        opening
    }

    fn open_at(&self, broker: &BrokerAddress, not_before: Instant) -> Opening {
        let connector = Arc::clone(&self.connector);
        let (host, port, request_timeout) = (broker.host.clone(), broker.port, self.request_timeout);
        let open = async move {
            tokio::time::sleep_until(not_before).await;
            Node::open(connector, &host, port, request_timeout).await.map(Arc::new)
        };
        open.boxed().shared()
    }
}

impl Entry {
    fn is_of(&self, broker: &BrokerAddress) -> bool {
        self.port == broker.port && self.host == broker.host
    }
}

/// Whether an attempt has failed, or its connection is gone.
fn is_lost(opening: &Opening) -> bool {
    match opening.peek() {
        None => false,
        Some(Ok(node)) => node.is_closed(),
        Some(Err(_)) => true,
    }
}
