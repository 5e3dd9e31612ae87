//! Replicas that are to move, to other nodes or directories: there are none.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use thalweg_protocol::messages::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequest,
};
use thalweg_protocol::messages::describe_log_dirs::DescribeLogDirsRequest;
use thalweg_protocol::messages::list_partition_reassignments::ListPartitionReassignmentsRequest;

use crate::calls::create_topic;
use crate::grouping::code;
use crate::harness::{Harness, three_ways};

three_ways!(replicas_stay_on_their_nodes, logs_stay_in_their_directory);

async fn replicas_stay_on_their_nodes(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    for (topic, partition_index, replicas, expected) in [
        ("t", 0, Some(vec![1]), ErrorCode::None),
        ("t", 0, None, ErrorCode::NoReassignmentInProgress),
        ("t", 0, Some(vec![]), ErrorCode::InvalidReplicaAssignment),
        ("t", 0, Some(vec![7]), ErrorCode::InvalidReplicaAssignment),
        ("t", 0, Some(vec![1, 1]), ErrorCode::InvalidReplicaAssignment),
        ("t", 0, Some(vec![-1]), ErrorCode::InvalidReplicaAssignment),
        ("t", 1, Some(vec![1]), ErrorCode::UnknownTopicOrPartition),
        ("nowhere", 0, Some(vec![1]), ErrorCode::UnknownTopicOrPartition),
        ("nowhere", 0, None, ErrorCode::UnknownTopicOrPartition),
    ] {
        let partitions = vec![ReassignablePartition { partition_index, replicas: replicas.clone() }];
        let topics = vec![ReassignableTopic { name: topic.into(), partitions }];
        let request = AlterPartitionReassignmentsRequest { topics, ..Default::default() };
        let answer = client.call(request, 1).await;
        assert_eq!(answer.error_code, 0);
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(code(partition.error_code), expected, "{topic}-{partition_index} {replicas:?}");
    }
    let listed = client.call(ListPartitionReassignmentsRequest::default(), 0).await;
    assert_eq!((listed.error_code, listed.topics.len()), (0, 0));
}

async fn logs_stay_in_their_directory(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let own = client.call(DescribeLogDirsRequest { topics: None }, 4).await.results[0].log_dir.to_string();
    for (path, topic, partition, expected) in [
        (&*own, "t", 0, ErrorCode::None),
        (&*own, "t", 1, ErrorCode::UnknownTopicOrPartition),
        (&*own, "nowhere", 0, ErrorCode::UnknownTopicOrPartition),
        ("/nowhere", "t", 0, ErrorCode::LogDirNotFound),
        ("/nowhere", "nowhere", 0, ErrorCode::LogDirNotFound),
        ("", "t", 0, ErrorCode::LogDirNotFound),
    ] {
        let topics = vec![AlterReplicaLogDirTopic { name: topic.into(), partitions: vec![partition] }];
        let dirs = vec![AlterReplicaLogDir { path: path.into(), topics }];
        let answer = client.call(AlterReplicaLogDirsRequest { dirs }, 2).await;
        let partition = &answer.results[0].partitions[0];
        assert_eq!(code(partition.error_code), expected, "{path} {topic}-{}", partition.partition_index);
    }
}
