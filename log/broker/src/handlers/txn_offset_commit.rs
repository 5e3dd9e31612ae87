//! TxnOffsetCommit: keeps the offsets of a group once a transaction commits.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::messages::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
};
use thalweg_protocol::{ErrorCode, Offset, ProducerEpoch, ProducerId, TopicPartition};

use super::asked_offsets::{self, AskedPartition, AskedTopic};
use super::{RequestContext, own};
use crate::coordinator::Shard;
use crate::group::{Commit, GroupShard};
use crate::server::Answer;
use crate::topics::CONSUMER_OFFSETS;
use crate::transaction::{Producer, TransactionCoordinator, TransactionVersion};

/// From this version on topics are told by their ids.
const FIRST_WITH_IDS: i16 = 6;

/// From this version on the broker adds the offsets to the transaction by itself (KIP-890, part 2).
const FIRST_THAT_ADDS: i16 = 5;

/// From this version on clients know TRANSACTION_ABORTABLE.
const FIRST_WITH_ABORTABLE: i16 = 4;

pub(crate) async fn begin(context: RequestContext, mut request: TxnOffsetCommitRequest) -> Answer {
    let mut asked = asked(&mut request);
    let topics = asked_offsets::check(&context, &mut asked, context.version >= FIRST_WITH_IDS);
    let producer =
        Producer { id: ProducerId(request.producer_id), epoch: ProducerEpoch(request.producer_epoch) };
    let commit = Commit {
        group: own(&request.group_id),
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        generation: request.generation_id_or_member_epoch,
        knows_epochs: true,
        retention_ms: None,
        topics,
        producer: Some(producer),
    };
    match append(&context, &request.transactional_id, &commit, producer).await {
        Ok((_, None)) => Answer::now(answer(asked)),
        Ok((shard, Some(last))) => Answer::waits(async move {
            if let Err(code) = shard.journal().committed(last).await {
                asked_offsets::fail(&mut asked, code);
            }
            answer(asked).into()
        }),
        Err(code) => {
            asked_offsets::fail(&mut asked, told(context.version, code));
            Answer::now(answer(asked))
        }
    }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(mut request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse {
    let mut asked = asked(&mut request);
    asked_offsets::fail(&mut asked, code);
    answer(asked)
}

async fn append(
    context: &RequestContext,
    transactional_id: &str,
    commit: &Commit,
    producer: Producer,
) -> Result<(Arc<GroupShard>, Option<Offset>), ErrorCode> {
    let (groups, transactions) = (&context.core.groups, &context.core.transactions);
    let group_shard = groups.shard(&commit.group).await?;
    let offsets = TopicPartition::new(CONSUMER_OFFSETS, groups.partition_of(&commit.group)?);
    let id = ByteString::from(transactional_id);
    if context.version >= FIRST_THAT_ADDS && !commit.topics.is_empty() {
        let partitions = BTreeSet::from([offsets.clone()]);
        let version = TransactionVersion::EpochBump;
        transactions.add_partitions(&id, producer, &partitions, version).await?;
    }
    let shard = transactions.shard(&id).await?;
    let verify = || TransactionCoordinator::verify(&shard, &id, producer, &offsets);
    let last = group_shard.commit(commit, verify)?;
    Ok((group_shard, last))
}

/// An error in words that the version's clients know.
fn told(version: i16, code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        ErrorCode::TransactionAbortable if version < FIRST_WITH_ABORTABLE => ErrorCode::InvalidTxnState,
        // They try again, which is what they shall do.
        ErrorCode::ConcurrentTransactions if version < FIRST_THAT_ADDS => {
            ErrorCode::CoordinatorLoadInProgress
        }
        code => code,
    }
}

fn asked(request: &mut TxnOffsetCommitRequest) -> Vec<AskedTopic> {
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

fn answer(asked: Vec<AskedTopic>) -> TxnOffsetCommitResponse {
    let topics = asked.into_iter().map(|topic| TxnOffsetCommitResponseTopic {
        name: topic.name,
        topic_id: topic.id,
        partitions: topic
            .partitions
            .into_iter()
            .map(|asked| TxnOffsetCommitResponsePartition {
                partition_index: asked.partition,
                error_code: asked.code.code(),
            })
            .collect(),
    });
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}
