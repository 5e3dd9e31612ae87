//! OffsetCommit: keeps the offsets of a group.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use super::asked_offsets::{self, AskedPartition, AskedTopic};
use super::{RequestContext, own};
use crate::coordinator::Shard;
use crate::group::Commit;
use crate::server::Answer;

/// From this version on topics are told by their ids (KIP-848).
const FIRST_WITH_IDS: i16 = 10;

/// From this version on members of the consumer protocol tell their epochs (KIP-848).
const FIRST_WITH_EPOCHS: i16 = 9;

pub(crate) async fn begin(context: RequestContext, mut request: OffsetCommitRequest) -> Answer {
    let mut asked = asked(&mut request);
    let topics = asked_offsets::check(&context, &mut asked, context.version >= FIRST_WITH_IDS);
    let commit = Commit {
        group: own(&request.group_id),
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        generation: request.generation_id_or_member_epoch,
        knows_epochs: context.version >= FIRST_WITH_EPOCHS,
        retention_ms: (request.retention_time_ms >= 0).then_some(request.retention_time_ms),
        topics,
        producer: None,
    };
    let shard = match context.core.groups.shard(&commit.group).await {
        Ok(shard) => shard,
        Err(code) => {
            asked_offsets::fail(&mut asked, code);
            return Answer::now(answer(asked));
        }
    };
    match shard.commit(&commit, || Ok(())) {
        Ok(None) => Answer::now(answer(asked)),
        Ok(Some(last)) => Answer::waits(async move {
            if let Err(code) = shard.journal().committed(last).await {
                asked_offsets::fail(&mut asked, code);
            }
            answer(asked).into()
        }),
        Err(code) => {
            asked_offsets::fail(&mut asked, code);
            Answer::now(answer(asked))
        }
    }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(mut request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse {
    let mut asked = asked(&mut request);
    asked_offsets::fail(&mut asked, code);
    answer(asked)
}

fn asked(request: &mut OffsetCommitRequest) -> Vec<AskedTopic> {
    let topics = std::mem::take(&mut request.topics).into_iter().map(|topic| AskedTopic {
        name: topic.name,
        id: topic.topic_id,
        partitions: topic
            .partitions
            .into_iter()
            .map(|asked| {
                let (offset, epoch) = (asked.committed_offset, asked.committed_leader_epoch);
                AskedPartition::new(asked.partition_index, offset, epoch, asked.committed_metadata)
            })
            .collect(),
    });
    topics.collect()
}

fn answer(asked: Vec<AskedTopic>) -> OffsetCommitResponse {
    let topics = asked.into_iter().map(|topic| OffsetCommitResponseTopic {
        name: topic.name,
        topic_id: topic.id,
        partitions: topic
            .partitions
            .into_iter()
            .map(|asked| OffsetCommitResponsePartition {
                partition_index: asked.partition,
                error_code: asked.code.code(),
            })
            .collect(),
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}
