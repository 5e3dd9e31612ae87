//! The quorum that keeps the cluster's metadata (KIP-595, 836, 853).

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::describe_quorum::{
    DescribeQuorumRequest, PartitionData, ReplicaState, TopicData,
};
use thalweg_protocol::{LeaderEpoch, NodeId, Offset, Uuid};

use super::{Admin, Route, checked};
use crate::error::{Error, Result};

/// The log of the metadata, as a topic of one partition.
const METADATA_TOPIC: &str = "__cluster_metadata";

/// The quorum that keeps the cluster's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumDescription {
    /// The active controller.
    pub leader: NodeId,
    /// The epoch of its leadership.
    pub leader_epoch: LeaderEpoch,
    /// Up to where the metadata is committed.
    pub high_watermark: Offset,
    /// Those that vote.
    pub voters: Vec<QuorumReplica>,
    /// Those that only read along: brokers, and controllers that are not in the quorum yet.
    pub observers: Vec<QuorumReplica>,
    /// Where voters listen, if the broker says so.
    pub nodes: Vec<QuorumNode>,
}

/// One that keeps the metadata's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuorumReplica {
    /// The node.
    pub id: NodeId,
    /// The directory that it keeps it in; zero where the broker does not say.
    pub directory: Uuid,
    /// How far it has got; −1 if the leader does not know.
    pub end: Offset,
    /// When it fetched last, in ms since 1970, if the leader knows.
    pub last_fetch_ms: Option<i64>,
    /// When it had last caught up with the leader, in ms since 1970, if the leader knows.
    pub last_caught_up_ms: Option<i64>,
}

/// Where a voter listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumNode {
    /// The node.
    pub id: NodeId,
    /// Name, host and port of each of its listeners for controllers.
    pub listeners: Vec<(ByteString, ByteString, u16)>,
}

impl Admin {
    /// The quorum that keeps the cluster's metadata.
    ///
    /// # Errors
    /// Whatever keeps the controllers from answering.
    pub async fn describe_quorum(&self) -> Result<QuorumDescription> {
        let api = ApiKey::DescribeQuorum;
        let subject = || "the metadata quorum".to_owned();
        self.call("describing the quorum", Route::Any, |node| {
            Box::pin(async move {
                let request = DescribeQuorumRequest {
                    topics: vec![TopicData {
                        topic_name: ByteString::from_static(METADATA_TOPIC),
                        partitions: vec![PartitionData { partition_index: 0 }],
                    }],
                };
                let response = node.call(request).await?;
                checked(api, response.error_code, response.error_message, subject, ())?;
                let missing = Error::BadAnswer { api, reason: "the metadata's partition is missing from it" };
                let found = response.topics.into_iter().flat_map(|topic| topic.partitions).next();
                let found = found.ok_or(missing)?;
                checked(api, found.error_code, found.error_message, subject, ())?;
                let nodes = response.nodes.into_iter().map(|node| QuorumNode {
                    id: NodeId(node.node_id),
                    listeners: node.listeners.into_iter().map(|it| (it.name, it.host, it.port)).collect(),
                });
                Ok(QuorumDescription {
                    leader: NodeId(found.leader_id),
                    leader_epoch: LeaderEpoch(found.leader_epoch),
                    high_watermark: Offset(found.high_watermark),
                    voters: found.current_voters.into_iter().map(replica).collect(),
                    observers: found.observers.into_iter().map(replica).collect(),
                    nodes: nodes.collect(),
                })
            })
        })
        .await
    }
}

fn replica(state: ReplicaState) -> QuorumReplica {
    let known = |ms: i64| (ms >= 0).then_some(ms);
    QuorumReplica {
        id: NodeId(state.replica_id),
        directory: state.replica_directory_id,
        end: Offset(state.log_end_offset),
        last_fetch_ms: known(state.last_fetch_timestamp),
        last_caught_up_ms: known(state.last_caught_up_timestamp),
    }
}
