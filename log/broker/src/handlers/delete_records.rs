//! DeleteRecords: raises the log start offset of partitions.

use std::sync::Arc;
use std::time::Duration;

use thalweg_protocol::messages::delete_records::{
    DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopicResult,
};
use thalweg_protocol::{ErrorCode, Offset};
use tokio::time::timeout;

use super::{RequestContext, within};
use crate::error::storage_code;
use crate::partition::Partition;
use crate::topics;

/// The offset that stands for the high watermark: everything that is committed goes.
const EVERYTHING: i64 = -1;

/// The low watermark of a partition whose records could not be deleted.
const NO_LOW_WATERMARK: i64 = -1;

/// The longest that a request may wait, whatever it asks for.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) async fn handle(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let time = within(request.timeout_ms, MAX_TIMEOUT);
    // Those that are not committed by then are refused.
    let _ = timeout(time, what_was_appended_is_committed(&context, &request)).await;
    let deletions = context.core.deletions.clone();
    let partitions = Arc::clone(&context.core.partitions);
    let delete = move |topic: &str, partition, offset| {
        if topics::is_internal(topic) {
            return Err(ErrorCode::InvalidTopicException);
        }
        let topic = context.core.partitions.topic(topic)?;
        delete(topic.leader(partition)?, offset)
    };
    let response = deletions.run(move || answer(request, delete)).await;
    partitions.changed();
    response
}

/// Waits until the records that are to be deleted are committed, where they are in the log already: a producer that waits for
/// no sync (acks 0 and 1) may have them deleted at once.
async fn what_was_appended_is_committed(context: &RequestContext, request: &DeleteRecordsRequest) {
    for topic in &request.topics {
        for asked in &topic.partitions {
            let found = context.core.partitions.topic(&topic.name);
            if let Ok(partition) = found.and_then(|found| found.leader(asked.partition_index).cloned())
                && (1..=partition.log().log_end_offset().0).contains(&asked.offset)
            {
                // What keeps it from that, the deletion will meet, too.
                let _ = partition.committed(Offset(asked.offset - 1)).await;
            }
        }
    }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse {
    answer(request, |_, _, _| Err(code))
}

fn answer(
    request: DeleteRecordsRequest,
    delete: impl Fn(&str, i32, i64) -> Result<Offset, ErrorCode>,
) -> DeleteRecordsResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| {
            let partition_index = asked.partition_index;
            match delete(&topic.name, partition_index, asked.offset) {
                Ok(start) => {
                    DeleteRecordsPartitionResult { partition_index, low_watermark: start.0, error_code: 0 }
                }
                Err(code) => DeleteRecordsPartitionResult {
                    partition_index,
                    low_watermark: NO_LOW_WATERMARK,
                    error_code: code.code(),
                },
            }
        });
        DeleteRecordsTopicResult { partitions: partitions.collect(), name: topic.name }
    });
    DeleteRecordsResponse { topics: topics.collect(), ..Default::default() }
}

fn delete(partition: &Partition, offset: i64) -> Result<Offset, ErrorCode> {
    let log = partition.log();
    if !log.config().cleanup_policy.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    let high_watermark = log.high_watermark();
    let offset = match offset {
        EVERYTHING => high_watermark,
        offset if offset < 0 || Offset(offset) > high_watermark => return Err(ErrorCode::OffsetOutOfRange),
        offset => Offset(offset),
    };
    log.delete_records(offset).map_err(|error| storage_code(&error))
}
