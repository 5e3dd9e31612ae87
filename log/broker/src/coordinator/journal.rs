//! The journal of a coordinator: one partition of its internal topic, which this node leads.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use thalweg_protocol::record::{
    BatchBuilder, BatchProducer, Batches, ControlRecord, Record, RecordBatch, RecordError,
};
use thalweg_protocol::{
    Compression, Compressor, DecodeError, ErrorCode, LeaderEpoch, Offset, ProducerId, Scratch,
};
use thalweg_storage::{MarkerAppend, ReadBound};

use crate::error::{Refusal, storage_code};
use crate::partition::Partition;

/// How many bytes are read at a time when a journal is replayed: large enough for the disk to stream.
const REPLAY_BYTES: u32 = 1 << 20;

/// The most bytes that one batch of a journal may decompress to. The broker's own are not compressed.
const DECOMPRESSED_LIMIT: usize = 64 << 20;

/// A record to append: a key, and a value or a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalRecord {
    pub(crate) key: Bytes,
    pub(crate) value: Option<Bytes>,
}

/// What a replay meets, in the order of the log.
#[derive(Debug)]
pub(crate) enum Replayed<'a> {
    /// A record. With a producer, it counts only once that one's transaction commits.
    Record { record: Record<'a>, producer: Option<ProducerId> },
    /// The end of a producer's transaction.
    Marker { producer: ProducerId, commits: bool },
}

/// Why a journal cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// The log cannot be read.
    #[error("it cannot be read: {0}")]
    Read(&'static str),
    /// A batch is damaged.
    #[error("the batch at offset {offset} is damaged: {error}")]
    Batch { offset: Offset, error: RecordError },
    /// A record is not what the topic's format says.
    #[error("the record at offset {offset} is malformed: {error}")]
    Malformed { offset: Offset, error: DecodeError },
    /// A record says something that this version does not know.
    #[error("the record at offset {offset} has the unknown {what} {value}")]
    Unknown { offset: Offset, what: &'static str, value: i64 },
}

/// One partition of an internal topic, in the epoch in which its coordinator was loaded.
#[derive(Debug)]
pub(crate) struct Journal {
    partition: Arc<Partition>,
    epoch: LeaderEpoch,
    /// Guards the buffer that batches are built in; held while one is built.
    builder: Mutex<Builder>,
}

#[derive(Debug)]
struct Builder {
    batch: BatchBuilder,
    compressor: Compressor,
}

impl Journal {
    /// The journal that `partition` holds.
    pub(crate) fn new(partition: Arc<Partition>) -> Self {
        let epoch = partition.leader_epoch();
        let batch = BatchBuilder::new(Compression::None, None, 1 << 10);
        Self { partition, epoch, builder: Mutex::new(Builder { batch, compressor: Compressor::default() }) }
    }

    /// The epoch in which the coordinator was loaded: it stands in the markers that it has written.
    pub(crate) fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// Whether `partition` still is this journal, in the same epoch.
    pub(crate) fn is(&self, partition: &Arc<Partition>) -> bool {
        Arc::ptr_eq(&self.partition, partition) && partition.leader_epoch() == self.epoch
    }

    /// The offset of its first record.
    pub(crate) fn start(&self) -> Offset {
        self.partition.log().log_start_offset()
    }

    /// The offset that its next record gets.
    pub(crate) fn end(&self) -> Offset {
        self.partition.log().log_end_offset()
    }

    /// Lets go of the records before `offset`, as far as they are committed. Blocks on the disk.
    ///
    /// # Errors
    /// KAFKA_STORAGE_ERROR.
    pub(crate) fn trim(&self, offset: Offset) -> Result<(), ErrorCode> {
        let log = self.partition.log();
        let offset = offset.min(log.high_watermark());
        if offset > log.log_start_offset() {
            log.delete_records(offset).map_err(|error| storage_code(&error))?;
        }
        Ok(())
    }

    /// Appends `records` as one batch, stamped with `timestamp_ms`; transactionally if a producer is given. Returns the
    /// offset of the last one, to be passed to [`Journal::committed`].
    ///
    /// # Errors
    /// A code that a coordinator's clients understand; nothing is appended then.
    pub(crate) fn append(
        &self,
        records: &[JournalRecord],
        timestamp_ms: i64,
        producer: Option<&BatchProducer>,
    ) -> Result<Offset, ErrorCode> {
        let batch = self.build(records, timestamp_ms, producer)?;
        self.partition.check_isr().map_err(coordinator_code)?;
        let appended = self.partition.append_own(&batch).map_err(|refusal| self.refused(&refusal))?;
        Ok(appended.last_offset)
    }

    fn build(
        &self,
        records: &[JournalRecord],
        timestamp_ms: i64,
        producer: Option<&BatchProducer>,
    ) -> Result<RecordBatch, ErrorCode> {
        let mut builder = self.builder.lock();
        let Builder { batch, compressor } = &mut *builder;
        batch.clear();
        for record in records {
            batch
                .append(timestamp_ms, Some(&record.key), record.value.as_deref(), [])
                .map_err(|_| ErrorCode::InvalidCommitOffsetSize)?;
        }
        Ok(batch.finish(compressor, producer))
    }

    /// Ends a producer's transaction in this partition.
    ///
    /// # Errors
    /// As [`Partition::append_marker`].
    pub(crate) fn append_marker(&self, marker: MarkerAppend) -> Result<Offset, ErrorCode> {
        let appended = self.partition.append_marker(marker).map_err(|refusal| refusal.code)?;
        Ok(appended.last_offset)
    }

    /// Whether the record at `offset` is committed.
    pub(crate) fn is_committed(&self, offset: Offset) -> bool {
        self.partition.is_committed(offset)
    }

    /// Waits until the record at `offset` is committed.
    ///
    /// # Errors
    /// COORDINATOR_NOT_AVAILABLE when the partition fails or goes before that: it is not known then whether the
    /// record will be there when the coordinator is loaded again.
    pub(crate) async fn committed(&self, offset: Offset) -> Result<(), ErrorCode> {
        self.partition.committed(offset).await.map_err(coordinator_code)
    }

    /// Shows every record and marker of the journal to `visit`. Blocks on the disk.
    ///
    /// # Errors
    /// Whatever keeps any of it from being understood: a coordinator never begins with less than there is.
    pub(crate) fn replay(
        &self,
        mut visit: impl FnMut(Replayed<'_>) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let log = self.partition.log();
        let mut scratch = Scratch::new(DECOMPRESSED_LIMIT);
        let mut next = log.log_start_offset();
        while next < log.log_end_offset() {
            let read = self.partition.read(next, REPLAY_BYTES, ReadBound::LogEnd, true);
            let read = read.map_err(|refusal| JournalError::Read(refusal.code.name()))?;
            let Some(slice) = read.records else { break };
            let bytes = slice.read().map_err(|_| JournalError::Read("the segment file cannot be read"))?;
            let before = next;
            for batch in Batches::new(bytes) {
                let batch = batch.map_err(|error| JournalError::Batch { offset: next, error })?;
                next = batch.header().next_offset();
                replay_batch(&batch, &mut scratch, &mut visit)?;
            }
            if next <= before {
                return Err(JournalError::Read("a read returned no whole batch"));
            }
        }
        Ok(())
    }

    /// How a refused append reads to a coordinator's clients.
    fn refused(&self, refusal: &Refusal) -> ErrorCode {
        tracing::warn!(partition = %self.partition.id(), code = refusal.code.name(), message = refusal.message,
            "a coordinator cannot append to its journal");
        coordinator_code(refusal.code)
    }
}

fn replay_batch(
    batch: &RecordBatch,
    scratch: &mut Scratch,
    visit: &mut impl FnMut(Replayed<'_>) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let header = *batch.header();
    let damaged = |error| JournalError::Batch { offset: header.base_offset, error };
    // After an orderly stop nobody has looked at it yet.
    batch.verify().map_err(damaged)?;
    let producer = header.is_transactional().then_some(header.producer_id);
    for record in batch.records(scratch).map_err(damaged)? {
        let record = record.map_err(damaged)?;
        if !header.is_control() {
            visit(Replayed::Record { record, producer })?;
        } else if let ControlRecord::EndTransaction(marker) =
            ControlRecord::parse(&record).map_err(damaged)?
        {
            visit(Replayed::Marker { producer: header.producer_id, commits: marker.commit })?;
        }
    }
    Ok(())
}

/// What partitions say, in the words of coordinators, so that clients look for the coordinator again or just
/// try again.
fn coordinator_code(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::NotLeaderOrFollower => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge => ErrorCode::InvalidCommitOffsetSize,
        // What a producer's batch can be refused for in a transaction.
        ErrorCode::InvalidProducerEpoch | ErrorCode::InvalidTxnState => code,
        _ => ErrorCode::CoordinatorNotAvailable,
    }
}
