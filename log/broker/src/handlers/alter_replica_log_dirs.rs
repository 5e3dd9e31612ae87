//! AlterReplicaLogDirs: a node has one log directory, in which every log is already (KIP-113).

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::alter_replica_log_dirs::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
};

use super::{RequestContext, describe_log_dirs};

pub(crate) fn handle(
    context: &RequestContext,
    request: AlterReplicaLogDirsRequest,
) -> AlterReplicaLogDirsResponse {
    let own = describe_log_dirs::log_dir(&context.core);
    answer(request, |path, topic, partition| {
        if *path != *own {
            return ErrorCode::LogDirNotFound;
        }
        let partitions = &context.core.partitions;
        let found = partitions.topic(topic).and_then(|topic| topic.leader(partition).map(|_| ()));
        found.err().unwrap_or(ErrorCode::None)
    })
}

/// The answer that refuses every move.
pub(crate) fn refuse(request: AlterReplicaLogDirsRequest, code: ErrorCode) -> AlterReplicaLogDirsResponse {
    answer(request, |_, _, _| code)
}

fn answer(
    request: AlterReplicaLogDirsRequest,
    code: impl Fn(&str, &str, i32) -> ErrorCode,
) -> AlterReplicaLogDirsResponse {
    let mut results = Vec::new();
    for dir in request.dirs {
        for topic in dir.topics {
            let partitions = topic.partitions.iter().map(|&partition_index| {
                let error_code = code(&dir.path, &topic.name, partition_index).code();
                AlterReplicaLogDirPartitionResult { partition_index, error_code }
            });
            let partitions = partitions.collect();
            results.push(AlterReplicaLogDirTopicResult { topic_name: topic.name, partitions });
        }
    }
    AlterReplicaLogDirsResponse { results, ..Default::default() }
}
