//! OffsetForLeaderEpoch: where an epoch ended, by which consumers find out that a log was truncated (KIP-320).

use thalweg_protocol::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
};
use thalweg_protocol::{ErrorCode, LeaderEpoch};
use thalweg_storage::EpochEnd;

use super::RequestContext;

pub(crate) fn handle(
    context: &RequestContext,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    answer(request, |topic, asked| {
        let topic = context.core.partitions.topic(topic)?;
        let partition = topic.leader(asked.partition)?;
        partition.check_epoch(LeaderEpoch(asked.current_leader_epoch))?;
        Ok(partition.end_of_epoch(LeaderEpoch(asked.leader_epoch)))
    })
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: OffsetForLeaderEpochRequest, code: ErrorCode) -> OffsetForLeaderEpochResponse {
    answer(request, |_, _| Err(code))
}

fn answer(
    request: OffsetForLeaderEpochRequest,
    end: impl Fn(&str, &OffsetForLeaderPartition) -> Result<EpochEnd, ErrorCode>,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| {
            let mut answer = EpochEndOffset { partition: asked.partition, ..Default::default() };
            match end(&topic.topic, asked) {
                Ok(end) => {
                    answer.leader_epoch = end.epoch.0;
                    answer.end_offset = end.end_offset.0;
                }
                Err(code) => answer.error_code = code.code(),
            }
            answer
        });
        OffsetForLeaderTopicResult { partitions: partitions.collect(), topic: topic.topic }
    });
    OffsetForLeaderEpochResponse { topics: topics.collect(), ..Default::default() }
}
