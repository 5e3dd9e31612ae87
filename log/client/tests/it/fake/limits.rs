//! What the fake's brokers put up with, and how logs are cut.

use thalweg_protocol::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
};
use thalweg_protocol::messages::produce::{BatchIndexAndErrorMessage, PartitionProduceResponse};
use thalweg_protocol::record::RecordBatch;
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset, Scratch};

use super::partition::Partition;
use super::{Fake, State};

/// What is refused, and what is slowed down.
#[derive(Default)]
pub(super) struct Limits {
    /// Batches with more records are too large.
    pub(super) max_records: Option<i32>,
    /// Records with these values are invalid, and are named.
    pub(super) bad_values: Vec<&'static str>,
    /// For how long each Produce and Fetch wants the client to keep still.
    pub(super) throttle_ms: i32,
}

impl Fake {
    /// Refuses batches of more records as too large.
    pub fn limit_batches(&self, records: i32) {
        self.state.lock().limits.max_records = Some(records);
    }

    /// Refuses batches with records of these values, and names these.
    pub fn refuse_values(&self, values: &[&'static str]) {
        self.state.lock().limits.bad_values = values.to_vec();
    }

    /// Asks clients for a pause after each Produce and Fetch.
    pub fn throttle(&self, ms: i32) {
        self.state.lock().limits.throttle_ms = ms;
    }

    /// Cuts a log, as an unclean election does, and lets a new leader write `values` behind the cut.
    pub fn truncate(&self, partition: usize, end: i64, values: &[&str]) {
        let mut state = self.state.lock();
        let partition = &mut state.partitions[partition];
        partition.log.retain(|batch| batch.header().next_offset().0 <= end);
        partition.end = partition.log.last().map_or(0, |batch| batch.header().next_offset().0);
        partition.epoch += 1;
        for value in values {
            let mut builder =
                thalweg_protocol::record::BatchBuilder::new(thalweg_protocol::Compression::None, None, 0);
            builder.append(0, None, Some(value.as_bytes()), []).expect("it fits");
            let batch = builder.finish(&mut thalweg_protocol::Compressor::new(), None);
            let batch = batch.at(Offset(partition.end), LeaderEpoch(partition.epoch));
            partition.end += 1;
            partition.log.push(batch);
        }
    }
}

impl State {
    /// Why a batch is refused by the limits, if it is.
    pub(super) fn limit(&self, batch: &RecordBatch) -> Option<PartitionProduceResponse> {
        let limits = &self.limits;
        let refused = |code: ErrorCode, record_errors| {
            let error_code = code.code();
            Some(PartitionProduceResponse {
                error_code,
                record_errors,
                ..PartitionProduceResponse::default()
            })
        };
        if limits.max_records.is_some_and(|most| batch.header().records_count > most) {
            return refused(ErrorCode::MessageTooLarge, Vec::new());
        }
        let mut scratch = Scratch::new(1 << 20);
        let mut named = Vec::new();
        for (at, record) in batch.records(&mut scratch).expect("it was checked").enumerate() {
            let value = record.expect("it was checked").value.unwrap_or_default();
            if limits.bad_values.iter().any(|bad| bad.as_bytes() == value) {
                let message = Some("the fake does not like it".into());
                named.push(BatchIndexAndErrorMessage {
                    batch_index: at as i32,
                    batch_index_error_message: message,
                });
            }
        }
        if named.is_empty() { None } else { refused(ErrorCode::InvalidRecord, named) }
    }

    pub(super) fn epoch_ends(
        &self,
        request: OffsetForLeaderEpochRequest,
        code: i16,
    ) -> OffsetForLeaderEpochResponse {
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let (leader_epoch, end_offset) =
                    self.partitions[asked.partition as usize].end_of(asked.leader_epoch);
                EpochEndOffset { error_code: code, partition: asked.partition, leader_epoch, end_offset }
            });
            OffsetForLeaderTopicResult { partitions: partitions.collect(), topic: topic.topic }
        });
        OffsetForLeaderEpochResponse { topics: topics.collect(), ..OffsetForLeaderEpochResponse::default() }
    }
}

impl Partition {
    /// The newest epoch that is not newer, and where it ends.
    fn end_of(&self, epoch: i32) -> (i32, i64) {
        let of = |batch: &RecordBatch| batch.header().partition_leader_epoch.0;
        let newest = self.log.iter().map(of).filter(|known| *known <= epoch).max();
        let next = self.log.iter().find(|batch| of(batch) > epoch);
        let end = next.map_or(self.end, |batch| batch.header().base_offset.0);
        newest.map_or((-1, -1), |newest| (newest, end))
    }
}
