//! Calls about groups or transactional ids that the coordinator of each has to answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytestring::ByteString;
use futures::future::{BoxFuture, join_all};
use thalweg_protocol::NodeId;
use thalweg_protocol::messages::ApiKey;

use crate::asking::{Answers, Asking};
use crate::cluster::Cluster;
use crate::coordinator::{CoordinatorOf, find_coordinators};
use crate::error::Result;
use crate::metadata::BrokerAddress;
use crate::node::Node;

/// Groups or transactional ids, with what is asked about each, and who coordinates them.
type ByBroker<T> = HashMap<NodeId, (BrokerAddress, Vec<(ByteString, T)>)>;

/// Asks the coordinators until each group or transactional id has an answer of its own; moves with the coordinators.
pub(crate) async fn ask_coordinators<T: Clone, R>(
    cluster: &Arc<Cluster>,
    of: CoordinatorOf,
    api: ApiKey,
    operation: &'static str,
    open: BTreeMap<ByteString, T>,
    ask: impl Fn(Arc<Node>, Vec<(ByteString, T)>) -> BoxFuture<'static, Answers<ByteString, R>>,
) -> Asking<ByteString, T, R> {
    let mut asking = Asking::new(cluster, api, operation, open);
    loop {
        let calls =
            split_by_coordinator(cluster, of, &mut asking).await.into_values().map(|(broker, asked)| {
                let ask = &ask;
                async move {
                    let keys: Vec<ByteString> = asked.iter().map(|(key, _)| key.clone()).collect();
                    let answers = match cluster.pool().node(&broker).await {
                        Ok(node) => ask(node, asked).await,
                        Err(error) => Err(error),
                    };
                    (keys, answers)
                }
            });
        for (keys, answers) in join_all(calls).await {
            asking.settle_all(keys, answers);
        }
        if !asking.pause().await {
            return asking;
        }
    }
}

/// What is open by its coordinator; what has none is settled with an error.
async fn split_by_coordinator<T: Clone, R>(
    cluster: &Arc<Cluster>,
    of: CoordinatorOf,
    asking: &mut Asking<ByteString, T, R>,
) -> ByBroker<T> {
    let mut by_broker = ByBroker::new();
    let keys: Vec<ByteString> = asking.open().keys().cloned().collect();
    match find(cluster, of, keys.clone()).await {
        Ok(found) => {
            for (key, coordinator) in found {
                match (coordinator, asking.open().get(&key).cloned()) {
                    (Ok(broker), Some(what)) => {
                        by_broker.entry(broker.id).or_insert((broker, Vec::new())).1.push((key, what));
                    }
                    (Err(error), _) => asking.settle(key, Err(error)),
                    (Ok(_), None) => {}
                }
            }
        }
        Err(error) => asking.settle_all(keys, Err(error)),
    }
    by_broker
}

async fn find(
    cluster: &Arc<Cluster>,
    of: CoordinatorOf,
    keys: Vec<ByteString>,
) -> Result<Vec<(ByteString, Result<BrokerAddress>)>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let node = cluster.any_node().await?;
    find_coordinators(&node, of, keys).await
}
