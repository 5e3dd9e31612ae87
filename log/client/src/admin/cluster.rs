//! The cluster's nodes.

use bytestring::ByteString;
use thalweg_protocol::NodeId;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::describe_cluster::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
};

use super::{Admin, Route, checked};
use crate::error::{Error, Result};
use crate::metadata::{BrokerAddress, Metadata};

/// The cluster's nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDescription {
    /// The cluster's id; empty where the broker does not say.
    pub cluster_id: ByteString,
    /// The controller, or the broker that stands for it.
    pub controller: Option<NodeId>,
    /// The brokers, in the order of their ids.
    pub brokers: Vec<BrokerAddress>,
}

impl Admin {
    /// The cluster's nodes. Brokers that have no DescribeCluster tell them with their metadata.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn describe_cluster(&self) -> Result<ClusterDescription> {
        let described = self.call("describing the cluster", Route::Any, |node| {
            Box::pin(async move {
                let response = node.call(DescribeClusterRequest::default()).await?;
                let (code, message) = (response.error_code, response.error_message.clone());
                checked(ApiKey::DescribeCluster, code, message, || "the cluster".to_owned(), response)
            })
        });
        match described.await {
            Ok(response) => Ok(response.into()),
            Err(Error::UnsupportedVersion { .. }) => Ok((&*self.cluster.refresh().await?).into()),
            Err(error) => Err(error),
        }
    }
}

impl From<DescribeClusterResponse> for ClusterDescription {
    fn from(response: DescribeClusterResponse) -> Self {
        let broker = |broker: DescribeClusterBroker| BrokerAddress {
            id: NodeId(broker.broker_id),
            host: broker.host,
            port: u16::try_from(broker.port).unwrap_or_default(),
            rack: broker.rack,
        };
        let mut brokers: Vec<BrokerAddress> = response.brokers.into_iter().map(broker).collect();
        brokers.sort_by_key(|broker| broker.id);
        let controller = (response.controller_id >= 0).then_some(NodeId(response.controller_id));
        Self { cluster_id: response.cluster_id, controller, brokers }
    }
}

impl From<&Metadata> for ClusterDescription {
    fn from(metadata: &Metadata) -> Self {
        Self {
            cluster_id: metadata.cluster_id.clone().unwrap_or_default(),
            controller: metadata.controller,
            brokers: metadata.brokers().into_iter().cloned().collect(),
        }
    }
}
