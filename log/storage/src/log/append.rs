//! Appending batches.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::IoSlice;

use bytes::Bytes;
use thalweg_protocol::record::{
    BatchHeader, RecordBatch, RecordError, TransactionMarker, ValidationRules, validate,
};
use thalweg_protocol::{Compressor, LeaderEpoch, Offset, Scratch};

use super::interface::{AppendInfo, AppendOrigin, FollowerAppendInfo, MarkerAppend, TransactionResult};
use super::replay::parse_marker;
use super::{Log, Offsets, Writer};
use crate::batch_scan::{Damage, check_numbers, verify};
use crate::config::{Durability, LogConfig, TimestampType};
use crate::error::{Error, MAX_INDEXES};
use crate::producers::Verdict;

thread_local! {
    /// Where compressed batches are decompressed to be validated.
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new(MOST_DECOMPRESSED));
    /// What compresses those of topics that have a codec of their own.
    static COMPRESSOR: RefCell<Compressor> = RefCell::new(Compressor::new());
}

/// The most bytes the records of one batch may have when decompressed: sixty times what `max.message.bytes` allows
/// by default, so that a decompression bomb costs no more.
pub(crate) const MOST_DECOMPRESSED: usize = 64 << 20;

/// Batches that go into one segment.
struct Run<'a> {
    headers: &'a [BatchHeader],
    /// The same batches whole, for the markers among them.
    bytes: &'a [u8],
    /// Whether they may be written later with others.
    may_gather: bool,
}

/// The bytes of a header up to and including the leader epoch: base offset, length, leader epoch.
const PATCHED: usize = 16;

impl Log {
    /// Appends one batch as the partition's leader: validates it, checks its producer's sequence, gives it
    /// offsets and `leader_epoch`, and writes it unchanged otherwise.
    ///
    /// A batch whose sequence numbers are among its producer's last five is not appended again: the answer is
    /// that of the first time, with `is_duplicate` set.
    ///
    /// # Errors
    /// See [`Error`]; nothing is appended then.
    pub fn append_as_leader(
        &self,
        batch: &RecordBatch,
        leader_epoch: LeaderEpoch,
        origin: AppendOrigin,
    ) -> Result<AppendInfo, Error> {
        self.check_usable()?;
        let config = self.config();
        let now_ms = self.environment.clock.now_ms();
        let batch = validated(batch, &config, origin, now_ms)?;
        let is_stamped = config.timestamp_type == TimestampType::LogAppendTime;
        let awaits_sync = !matches!(origin, AppendOrigin::Client { awaits_sync: false, .. });

        let mut writer = self.lock_writer()?;
        writer.check_epoch(leader_epoch)?;
        if batch.header().is_idempotent()
            && let Verdict::Duplicate(first_time) = writer.producers.check(batch.header(), origin)?
        {
            if !awaits_sync {
                // Whoever was first may wait for the sync still.
                self.active().log_file().write_out(&self.environment)?;
            }
            return Ok(AppendInfo {
                first_offset: first_time.first_offset,
                last_offset: first_time.last_offset,
                log_append_time_ms: if is_stamped { first_time.append_time_ms } else { -1 },
                log_start_offset: self.log_start_offset(),
                is_duplicate: true,
            });
        }
        let header = self.write_led(&mut writer, &batch, leader_epoch, &config, now_ms, awaits_sync)?;
        drop(writer);
        self.appended(&config, batch.size_in_bytes());
        Ok(self.info(&header, if is_stamped { now_ms } else { -1 }))
    }

    /// Appends a control batch that ends a producer's transaction, and enters the transaction into the index
    /// of aborted ones if it was.
    ///
    /// # Errors
    /// [`Error::ProducerFenced`] and [`Error::CoordinatorFenced`] for old epochs; I/O errors.
    pub fn append_marker(&self, marker: MarkerAppend) -> Result<AppendInfo, Error> {
        self.check_usable()?;
        let config = self.config();
        let now_ms = self.environment.clock.now_ms();
        let content = TransactionMarker {
            commit: marker.result == TransactionResult::Commit,
            coordinator_epoch: marker.coordinator_epoch,
        };
        let batch = content.to_batch(marker.producer_id, marker.producer_epoch, now_ms);

        let mut writer = self.lock_writer()?;
        writer.check_epoch(marker.leader_epoch)?;
        writer.producers.check_marker(&marker)?;
        let header = self.write_led(&mut writer, &batch, marker.leader_epoch, &config, now_ms, true)?;
        drop(writer);
        self.appended(&config, batch.size_in_bytes());
        Ok(self.info(&header, -1))
    }

    /// Appends batches as a follower, exactly as the leader has them. A cut batch at the end is left out.
    ///
    /// # Errors
    /// [`Error::UnexpectedOffset`] when a batch lies before the log's end; invalid batches; I/O errors. Some of the
    /// batches may have been appended when the disk ran full: the log end offset tells.
    pub fn append_as_follower(&self, batches: &Bytes) -> Result<FollowerAppendInfo, Error> {
        self.check_usable()?;
        let config = self.config();
        let (headers, bytes) = verified_batches(batches)?;
        let now_ms = self.environment.clock.now_ms();
        let mut writer = self.lock_writer()?;
        self.check_continuity(&writer, &headers)?;
        let before = self.log_end_offset();
        let result = self.write_followed(&mut writer, &headers, batches, &config, now_ms);
        let log_end_offset = self.log_end_offset();
        drop(writer);
        // Some of it may be there although the rest is not.
        if log_end_offset > before {
            self.appended(&config, bytes);
        }
        result.map(|()| FollowerAppendInfo { bytes, batches: headers.len(), log_end_offset })
    }

    /// Writes batches of a leader; those that go into the same segment at once.
    fn write_followed(
        &self,
        writer: &mut Writer,
        headers: &[BatchHeader],
        batches: &[u8],
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<(), Error> {
        let mut rest = headers;
        let mut from = 0;
        while let Some(first) = rest.first() {
            self.roll_if_needed(writer, first, config)?;
            let (count, size) = self.fitting(rest, config);
            let (run, after) = rest.split_at(count);
            let bytes = &batches[from..from + size];
            let run = Run { headers: run, bytes, may_gather: false };
            self.write_run(writer, &run, &mut [IoSlice::new(bytes)], config, now_ms)?;
            rest = after;
            from += size;
        }
        Ok(())
    }

    /// Gives a batch its offsets and epoch and writes it. Its bytes may be shared with the producer that waits
    /// for the answer, so that the patched fields are written from beside them.
    fn write_led(
        &self,
        writer: &mut Writer,
        batch: &RecordBatch,
        leader_epoch: LeaderEpoch,
        config: &LogConfig,
        now_ms: i64,
        awaits_sync: bool,
    ) -> Result<BatchHeader, Error> {
        let header = BatchHeader {
            base_offset: self.log_end_offset(),
            partition_leader_epoch: leader_epoch,
            ..*batch.header()
        };
        self.roll_if_needed(writer, &header, config)?;
        let mut head = [0; BatchHeader::SIZE];
        header.write(&mut head);
        let bytes = batch.bytes();
        let mut parts = [IoSlice::new(&head[..PATCHED]), IoSlice::new(&bytes[PATCHED..])];
        // As it is now: what comes behind a change to relaxed is acknowledged at once.
        let may_gather = awaits_sync && self.config.read().durability == Durability::Synced;
        let run = Run { headers: &[header], bytes, may_gather };
        self.write_run(writer, &run, &mut parts, config, now_ms)?;
        Ok(header)
    }

    /// Writes batches to the active segment, as these parts, and notes them everywhere.
    fn write_run(
        &self,
        writer: &mut Writer,
        run: &Run<'_>,
        parts: &mut [IoSlice<'_>],
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<(), Error> {
        let Run { headers, bytes, may_gather } = *run;
        let active = self.active();
        let position = active.size_in_bytes();
        active.write(parts, may_gather, &self.environment)?;
        writer.unsynced.wrote(position);
        let mut from = 0;
        let mut expected = self.log_end_offset();
        for header in headers {
            if header.base_offset > expected {
                // What was there the leader has compacted away.
                writer.cleaned.gaps_below = header.base_offset.max(writer.cleaned.gaps_below);
                writer.unsynced.cleaned = true;
            }
            expected = header.next_offset();
            let size = header.size_in_bytes();
            if header.is_idempotent() {
                self.note_producer(writer, &active, header, &bytes[from..from + size], now_ms)?;
            }
            if writer.epochs.assign(header.partition_leader_epoch, header.base_offset) {
                writer.unsynced.epochs = true;
            }
            active.note(header, config.index_interval_bytes, &self.environment)?;
            from += size;
        }
        if let Some(last) = headers.last() {
            Offsets::store(&self.offsets.log_end, last.next_offset());
        }
        Ok(())
    }

    /// On a durable topic every append joins the next round, whoever waits for it.
    fn appended(&self, config: &LogConfig, bytes: usize) {
        if config.durability == Durability::Synced {
            self.request_sync(bytes as u64);
        }
    }

    fn info(&self, header: &BatchHeader, log_append_time_ms: i64) -> AppendInfo {
        AppendInfo {
            first_offset: header.base_offset,
            last_offset: header.last_offset(),
            log_append_time_ms,
            log_start_offset: self.log_start_offset(),
            is_duplicate: false,
        }
    }

    fn check_continuity(&self, writer: &Writer, headers: &[BatchHeader]) -> Result<(), Error> {
        let mut expected = self.log_end_offset();
        for header in headers {
            // A compacted log may have gaps.
            if header.base_offset < expected {
                return Err(Error::UnexpectedOffset { expected, found: header.base_offset });
            }
            writer.check_epoch(header.partition_leader_epoch)?;
            expected = header.next_offset();
        }
        Ok(())
    }

    /// Records the producer of a batch that is being appended.
    fn note_producer(
        &self,
        writer: &mut Writer,
        active: &crate::segment::Segment,
        header: &BatchHeader,
        batch: &[u8],
        now_ms: i64,
    ) -> Result<(), Error> {
        if !header.is_control() {
            if let Some(first_offset) = writer.producers.apply(header, now_ms) {
                self.change_undecided(|undecided| undecided.opened(first_offset));
            }
            return Ok(());
        }
        let Some(marker) = parse_marker(batch) else { return Ok(()) };
        let ended = writer.producers.apply_marker(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            header.base_offset,
            now_ms,
        );
        let Some(ended) = ended else { return Ok(()) };
        if !marker.commit {
            active.note_aborted(ended.into(), &self.environment)?;
        }
        self.change_undecided(|undecided| undecided.ended(ended.first_offset, ended.last_offset));
        Ok(())
    }

    fn change_undecided(&self, change: impl FnOnce(&mut crate::producers::UndecidedTransactions)) {
        let mut undecided = self.undecided.lock();
        change(&mut undecided);
        self.publish_undecided(&undecided);
    }
}

/// What a leader appends for a batch: the batch as it is, or stamped anew where the topic or a faulty header
/// demands it.
fn validated<'a>(
    batch: &'a RecordBatch,
    config: &LogConfig,
    origin: AppendOrigin,
    now_ms: i64,
) -> Result<Cow<'a, RecordBatch>, Error> {
    let mut batch = Cow::Borrowed(batch);
    match origin {
        AppendOrigin::Client { .. } => {
            let is_stamped = config.timestamp_type == TimestampType::LogAppendTime;
            let rules = ValidationRules {
                max_batch_bytes: config.max_message_bytes as usize,
                timestamps: (!is_stamped).then(|| {
                    let earliest = now_ms.saturating_sub(config.timestamp_before_max_ms);
                    earliest..=now_ms.saturating_add(config.timestamp_after_max_ms)
                }),
                allow_control: false,
            };
            let valid = SCRATCH.with_borrow_mut(|scratch| validate(&batch, &rules, scratch))?;
            if config.cleanup_policy.compact && valid.first_keyless.is_some() {
                return Err(Error::KeylessRecords { indexes: keyless(&batch)? });
            }
            if !is_stamped && valid.max_timestamp != batch.header().max_timestamp {
                batch = Cow::Owned(batch.into_owned().with_max_timestamp(valid.max_timestamp));
            }
            if let Some(compressed) = compressed_anew(&batch, config)? {
                batch = Cow::Owned(compressed);
            }
        }
        AppendOrigin::Coordinator => {
            if batch.header().is_control() {
                return Err(RecordError::ControlBatch.into());
            }
            batch.verify()?;
        }
    }
    if config.timestamp_type == TimestampType::LogAppendTime {
        batch = Cow::Owned(batch.into_owned().appended_at(now_ms));
    }
    Ok(batch)
}

/// The batch with the codec of the topic, where that has one of its own and the batch another.
fn compressed_anew(batch: &RecordBatch, config: &LogConfig) -> Result<Option<RecordBatch>, Error> {
    let Some((compression, level)) = config.compression else { return Ok(None) };
    if batch.header().compression()? == compression {
        return Ok(None);
    }
    let compressed = SCRATCH.with_borrow_mut(|scratch| {
        COMPRESSOR.with_borrow_mut(|compressor| batch.recompressed(compression, level, scratch, compressor))
    })?;
    let (size, limit) = (compressed.size_in_bytes(), config.max_message_bytes as usize);
    if size > limit {
        return Err(RecordError::BatchTooLarge { size, limit }.into());
    }
    Ok(Some(compressed))
}

/// The places of the records without keys. Producers send the others again (KIP-467).
fn keyless(batch: &RecordBatch) -> Result<Vec<i32>, Error> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut indexes = Vec::new();
        for (index, record) in (0..).zip(batch.records(scratch)?) {
            if record?.key.is_none() && indexes.len() < MAX_INDEXES {
                indexes.push(index);
            }
        }
        Ok(indexes)
    })
}

/// The headers of the whole batches in `bytes`, and how many bytes those are.
fn verified_batches(bytes: &[u8]) -> Result<(Vec<BatchHeader>, usize), Error> {
    let mut headers = Vec::new();
    let mut from = 0;
    while bytes.len() - from >= BatchHeader::SIZE {
        let header = BatchHeader::parse(&bytes[from..])?;
        let Some(batch) = bytes[from..].get(..header.size_in_bytes()) else { break };
        verify(&header, batch)?;
        check_numbers(&header).map_err(|damage| match damage {
            Damage::Record(problem) => Error::InvalidBatch(problem),
            Damage::Offset(found) => Error::UnexpectedOffset { expected: Offset(0), found },
        })?;
        from += batch.len();
        headers.push(header);
    }
    Ok((headers, from))
}
