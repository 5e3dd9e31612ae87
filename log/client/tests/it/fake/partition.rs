//! A log in memory.

use std::collections::{HashMap, VecDeque};

use thalweg_protocol::record::RecordBatch;
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset};

pub(super) struct Partition {
    pub(super) leader: i32,
    pub(super) epoch: i32,
    pub(super) log: Vec<RecordBatch>,
    pub(super) end: i64,
    /// By producer id.
    producers: HashMap<i64, KnownProducer>,
}

#[derive(Clone, Default)]
struct KnownProducer {
    epoch: i16,
    next_sequence: i32,
    /// The sequence numbers and offsets of the last five batches.
    last: VecDeque<(i32, i64)>,
}

impl Partition {
    pub(super) fn new() -> Self {
        Self { leader: 1, epoch: 1, log: Vec::new(), end: 0, producers: HashMap::new() }
    }

    /// Appends a batch as a leader does: in sequence, and what it has already is answered as the first time.
    pub(super) fn append(&mut self, batch: &RecordBatch) -> Result<i64, ErrorCode> {
        let header = batch.header();
        if header.is_idempotent() {
            let (epoch, sequence) = (header.producer_epoch.0, header.base_sequence);
            let fresh = KnownProducer { epoch, ..KnownProducer::default() };
            let known = self.producers.entry(header.producer_id.0).or_insert_with(|| fresh.clone());
            if epoch < known.epoch {
                return Err(ErrorCode::InvalidProducerEpoch);
            }
            if epoch > known.epoch {
                *known = fresh;
            }
            if let Some((_, offset)) = known.last.iter().find(|(known, _)| *known == sequence) {
                return Ok(*offset);
            }
            if sequence != known.next_sequence {
                return Err(ErrorCode::OutOfOrderSequenceNumber);
            }
            known.next_sequence += header.records_count;
            known.last.push_back((sequence, self.end));
            if known.last.len() > 5 {
                known.last.pop_front();
            }
        }
        let offset = self.end;
        self.log.push(batch.clone().at(Offset(offset), LeaderEpoch(self.epoch)));
        self.end += i64::from(header.records_count);
        Ok(offset)
    }
}
