//! ListOffsets: finds offsets by time.

use thalweg_protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopicResponse,
};
use thalweg_protocol::{ErrorCode, LeaderEpoch};
use thalweg_storage::{TimeQuery, TimestampOffset};

use super::RequestContext;
use crate::partition::Partition;
use crate::server::Answer;

/// The version from which answers have the leader epoch of what they found.
const FIRST_VERSION_WITH_EPOCHS: i16 = 4;

/// The times below zero that stand for something else (KIP-734, KIP-405, KIP-1005, KIP-1023).
mod special {
    /// The end of what this consumer may read.
    pub(super) const LATEST: i64 = -1;
    /// The first offset.
    pub(super) const EARLIEST: i64 = -2;
    /// The record with the largest timestamp.
    pub(super) const MAX_TIMESTAMP: i64 = -3;
    /// The first offset on the broker's own disk.
    pub(super) const EARLIEST_LOCAL: i64 = -4;
    /// The last offset in tiered storage.
    pub(super) const LATEST_TIERED: i64 = -5;
    /// The first offset not yet in tiered storage.
    pub(super) const EARLIEST_PENDING_UPLOAD: i64 = -6;

    /// The first version of this API in which `time` means something; none where it never does.
    pub(super) fn first_version(time: i64) -> Option<i16> {
        match time {
            LATEST | EARLIEST => Some(1),
            MAX_TIMESTAMP => Some(7),
            EARLIEST_LOCAL => Some(8),
            LATEST_TIERED => Some(9),
            EARLIEST_PENDING_UPLOAD => Some(11),
            _ => None,
        }
    }
}

pub(crate) fn begin(context: &RequestContext, request: ListOffsetsRequest) -> Answer {
    let mut asked = request.topics.iter().flat_map(|topic| &topic.partitions);
    if !asked.any(|asked| asked.timestamp >= 0 || asked.timestamp == special::MAX_TIMESTAMP) {
        return Answer::now(handle(context, request));
    }
    // These look for records, which may have to come from the disk.
    let (context, reads) = (context.clone(), context.core.cold_reads.clone());
    super::blocks(async move { reads.run(move || handle(&context, request)).await })
}

fn handle(context: &RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let read_committed = request.isolation_level == 1;
    let mut response = answer(request, |topic, asked| {
        let topic = context.core.partitions.topic(topic)?;
        let is_special = asked.timestamp < 0;
        if is_special && special::first_version(asked.timestamp).is_none_or(|first| context.version < first) {
            return Err(ErrorCode::UnsupportedVersion);
        }
        find(topic.leader(asked.partition_index)?, asked, read_committed)
    });
    if context.version < FIRST_VERSION_WITH_EPOCHS {
        for partition in response.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            partition.leader_epoch = LeaderEpoch::UNKNOWN.0;
        }
    }
    response
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse {
    answer(request, |_, _| Err(code))
}

fn answer(
    request: ListOffsetsRequest,
    find: impl Fn(&str, &ListOffsetsPartition) -> Result<Option<TimestampOffset>, ErrorCode>,
) -> ListOffsetsResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| {
            let mut answer =
                ListOffsetsPartitionResponse { partition_index: asked.partition_index, ..Default::default() };
            match find(&topic.name, asked) {
                Ok(Some(found)) => {
                    answer.timestamp = found.timestamp;
                    answer.offset = found.offset.0;
                    answer.leader_epoch = found.leader_epoch.0;
                }
                Ok(None) => {}
                Err(code) => answer.error_code = code.code(),
            }
            answer
        });
        ListOffsetsTopicResponse { partitions: partitions.collect(), name: topic.name }
    });
    ListOffsetsResponse { topics: topics.collect(), ..Default::default() }
}

fn find(
    partition: &Partition,
    asked: &ListOffsetsPartition,
    read_committed: bool,
) -> Result<Option<TimestampOffset>, ErrorCode> {
    partition.check_epoch(LeaderEpoch(asked.current_leader_epoch))?;
    let log = partition.log();
    let end = if read_committed { log.last_stable_offset() } else { log.high_watermark() };
    let query = match asked.timestamp {
        special::LATEST => {
            let leader_epoch = partition.leader_epoch();
            return Ok(Some(TimestampOffset { timestamp: -1, offset: end, leader_epoch }));
        }
        special::EARLIEST | special::EARLIEST_LOCAL => TimeQuery::Earliest,
        // Nothing is tiered here: no offset is the last one there, and none waits to go there.
        special::LATEST_TIERED | special::EARLIEST_PENDING_UPLOAD => return Ok(None),
        special::MAX_TIMESTAMP => TimeQuery::MaxTimestamp,
        time if time >= 0 => TimeQuery::At(time),
        _ => return Err(ErrorCode::UnsupportedVersion),
    };
    let found = log.offset_for_time(query).map_err(|error| crate::error::storage_code(&error))?;
    // What is not committed yet, or belongs to an open transaction, is not there for this consumer.
    let is_visible = |found: &TimestampOffset| found.offset < end || found.timestamp < 0;
    Ok(found.filter(is_visible))
}
