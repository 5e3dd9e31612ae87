//! How long a broker wants a client to keep still (KIP-124, 219).

use std::time::Duration;

use thalweg_protocol::messages::Response;

/// The responses that this client gets and that can ask for a pause.
macro_rules! pause_of {
    ($response:expr; $($api:ident)*) => {
        match $response {
            $(Response::$api(response) => response.throttle_time_ms,)*
            _ => 0,
        }
    };
}

/// How long nothing is to be sent to the broker after this answer; the broker has answered without waiting itself.
pub(crate) fn pause_after(response: &Response) -> Option<Duration> {
    let ms = pause_of!(response;
        Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat LeaveGroup
        SyncGroup DescribeGroups ListGroups ApiVersions CreateTopics DeleteTopics DeleteRecords InitProducerId
        OffsetForLeaderEpoch AddPartitionsToTxn AddOffsetsToTxn EndTxn TxnOffsetCommit DescribeConfigs
        DescribeLogDirs CreatePartitions DeleteGroups ElectLeaders IncrementalAlterConfigs
        AlterPartitionReassignments ListPartitionReassignments OffsetDelete DescribeClientQuotas AlterClientQuotas
        UpdateFeatures DescribeCluster DescribeProducers DescribeTransactions ListTransactions
        ConsumerGroupHeartbeat ConsumerGroupDescribe ListConfigResources ShareGroupHeartbeat ShareFetch ShareAcknowledge
    );
    u64::try_from(ms).ok().filter(|ms| *ms > 0).map(Duration::from_millis)
}
