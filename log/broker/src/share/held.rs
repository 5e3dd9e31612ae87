//! Drives one share-partition.

use std::ops::Range;
use std::sync::Arc;

use bytestring::ByteString;
use parking_lot::{Mutex, MutexGuard};
use thalweg_protocol::{EncodeError, ErrorCode, LeaderEpoch, Offset};

use super::partition::{
    AckBatch, AckTerms, AcquireTerms, Acquired, SharePartition, Span, StoredBatch, Transition,
};
use super::records::{self, ShareKey, StateRecord};
use super::settings::ShareSettings;
use super::tally::ShareTally;
use crate::coordinator::{Journal, Now};
use crate::partition::{Bell, PendingFetch, Place};

/// After so many updates a snapshot is written, so that a replay takes in few: Kafka's
/// `share.coordinator.snapshot.update.records.per.snapshot`.
const UPDATES_PER_SNAPSHOT: u32 = 500;

/// A share-partition of this node.
///
/// What a call changes stands in memory as soon as it stands in the journal, in the same order; answers wait until it is
/// committed.
#[derive(Debug)]
pub(crate) struct HeldShare {
    key: ShareKey,
    journal: Arc<Journal>,
    /// Guards the share-partition; held for a decision and the append that follows from it, so that both have one order.
    state: Mutex<State>,
    /// The fetches that wait for records of it.
    waiting: PendingFetch,
}

#[derive(Debug)]
struct State {
    partition: SharePartition,
    snapshot_epoch: i32,
    state_epoch: i32,
    created_ms: i64,
    /// How many updates have been written since the last snapshot.
    updates: u32,
    /// Where the last snapshot is in the journal: all that is before it may go.
    snapshot_at: Offset,
    /// The deadline that is noted for it, in monotonic ms.
    scheduled: Option<u64>,
    /// Set once the group or the topic has been deleted, or the start offset been set anew by an operator.
    is_gone: bool,
}

/// What a look at a share-partition found to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Read from here.
    From(Offset),
    /// There is nothing to acquire at the moment.
    Nothing,
    /// It is not there any more.
    Gone,
}

/// How far a group is in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareSummary {
    pub(crate) start: Offset,
    /// How many records after the start offset the group is done with.
    pub(crate) done_count: u64,
    pub(crate) leader_epoch: LeaderEpoch,
}

impl HeldShare {
    /// A share-partition that is not in the journal yet.
    pub(crate) fn new(
        key: ShareKey,
        journal: Arc<Journal>,
        start: Offset,
        state_epoch: i32,
        now: Now,
    ) -> Self {
        let state = State {
            partition: SharePartition::new(start),
            snapshot_epoch: -1,
            state_epoch,
            created_ms: now.wall_ms,
            updates: 0,
            snapshot_at: Offset(i64::MAX),
            scheduled: None,
            is_gone: false,
        };
        Self { key, journal, state: Mutex::new(state), waiting: PendingFetch::default() }
    }

    /// The share-partition that the journal describes by `snapshot`, which is at `snapshot_at`.
    pub(crate) fn restore(
        key: ShareKey,
        journal: Arc<Journal>,
        snapshot: &StateRecord,
        snapshot_at: Offset,
        now: Now,
    ) -> Self {
        let held = Self::new(key, journal, snapshot.start, snapshot.state_epoch, now);
        let mut state = held.state.lock();
        state.partition.restore(snapshot.start, &snapshot.batches);
        (state.snapshot_epoch, state.snapshot_at) = (snapshot.snapshot_epoch, snapshot_at);
        drop(state);
        held
    }

    /// Takes in an update that follows in the journal.
    pub(crate) fn follow(&self, update: &StateRecord) {
        let mut state = self.state.lock();
        if update.snapshot_epoch == state.snapshot_epoch {
            state.partition.restore(update.start, &update.batches);
            state.updates += 1;
        }
    }

    /// Whose share-partition it is.
    pub(crate) fn key(&self) -> &ShareKey {
        &self.key
    }

    /// Waits until the record of the journal at `offset` is committed.
    ///
    /// # Errors
    /// COORDINATOR_NOT_AVAILABLE when it will not be.
    pub(crate) async fn committed(&self, offset: Offset) -> Result<(), ErrorCode> {
        self.journal.committed(offset).await
    }

    /// Where to read for somebody who wants records, in a log that has the offsets that `log` tells.
    pub(crate) fn look(
        &self,
        settings: &ShareSettings,
        log: impl FnOnce() -> Range<Offset>,
        now: Now,
    ) -> Look {
        let mut state = self.state.lock();
        if state.is_gone {
            return Look::Gone;
        }
        // Asked under the lock: whatever was acquired until now is in the log then, unless that has lost it.
        let log = log();
        // That others are there now has to last, too: else they would be taken for those that are done with.
        if state.partition.log_ends_at(log.end)
            && let Err(code) = self.snapshot(&mut state, now)
        {
            tracing::warn!(group = %self.key.group, code = code.name(), "a snapshot is written later");
        }
        state.partition.log_starts_at(log.start);
        state.partition.next_fetch(settings.max_record_locks).map_or(Look::Nothing, Look::From)
    }

    /// Acquires for `member` what is free of the batches that a read from `from` found. Returns the ranges that it has now, and
    /// until when, if that is earlier than all that was noted before.
    pub(crate) fn acquire(
        &self,
        member: &ByteString,
        from: Offset,
        spans: &[Span],
        terms: AcquireTerms,
    ) -> (Vec<Acquired>, Option<u64>) {
        let mut state = self.state.lock();
        if state.is_gone {
            return (Vec::new(), None);
        }
        let acquired = state.partition.acquire(member, from, spans, terms);
        let deadline = if acquired.is_empty() { None } else { state.schedule() };
        (acquired, deadline)
    }

    /// Takes what a member says of records. Returns the record that is to be committed before it is answered.
    ///
    /// # Errors
    /// Those of [`SharePartition::acknowledge`]; why nothing can be written.
    pub(crate) fn acknowledge(
        &self,
        member: &str,
        batches: &[AckBatch],
        settings: &ShareSettings,
        now: Now,
    ) -> Result<Option<Offset>, ErrorCode> {
        let state = self.state.lock();
        if state.is_gone {
            return Err(ErrorCode::UnknownTopicOrPartition);
        }
        let terms = AckTerms {
            max_deliveries: settings.delivery_count_limit,
            until_ms: now.monotonic_ms + settings.record_lock_ms,
        };
        let transition = state.partition.acknowledge(member, batches, terms)?;
        self.carry_out(state, transition, now)
    }

    /// Takes back what `member` has.
    ///
    /// # Errors
    /// Why nothing can be written: it has it until its time is over then.
    pub(crate) fn release(
        &self,
        member: &str,
        settings: &ShareSettings,
        now: Now,
    ) -> Result<Option<Offset>, ErrorCode> {
        let state = self.state.lock();
        if state.is_gone {
            return Ok(None);
        }
        let transition = state.partition.release(member, settings.delivery_count_limit);
        self.carry_out(state, transition, now)
    }

    /// Takes back what members have had for too long, and counts it. Returns the next deadline, in monotonic ms, if there is one.
    pub(crate) fn expire(&self, settings: &ShareSettings, tally: &ShareTally, now: Now) -> Option<u64> {
        /// When it is tried again what could not be written, in ms.
        const RETRY_MS: u64 = 1_000;
        let mut state = self.state.lock();
        state.scheduled = None;
        if state.is_gone {
            return None;
        }
        let transition = state.partition.expire(now.monotonic_ms, settings.delivery_count_limit);
        let count = transition.count();
        if let Err(code) = self.carry_out(state, transition, now) {
            let key = &self.key;
            tracing::warn!(group = %key.group, topic_id = %key.topic_id, partition = key.partition, code = code.name(),
                "records that members have had for too long stay with them for now");
            self.state.lock().scheduled = Some(now.monotonic_ms + RETRY_MS);
            return Some(now.monotonic_ms + RETRY_MS);
        }
        tally.expired(count);
        self.state.lock().schedule()
    }

    /// How many records members have, and how many wait to be delivered again.
    pub(crate) fn in_flight(&self) -> (u64, u64) {
        self.state.lock().partition.in_flight()
    }

    /// How far the group is.
    pub(crate) fn summary(&self) -> ShareSummary {
        let state = self.state.lock();
        ShareSummary {
            start: state.partition.start(),
            done_count: state.partition.done_count(),
            leader_epoch: self.journal.epoch(),
        }
    }

    /// The state epoch that one has which takes the place of this one.
    pub(crate) fn next_state_epoch(&self) -> i32 {
        self.state.lock().state_epoch.checked_add(1).unwrap_or(0)
    }

    /// Ends the share-partition: whoever still has to do with it finds it gone.
    pub(crate) fn bury(&self) {
        self.state.lock().is_gone = true;
        self.waiting.release();
    }

    /// Rings `bell` when records may have become free.
    pub(crate) fn park(&self, bell: &Arc<Bell>, place: Place) {
        self.waiting.register(bell, place);
    }

    /// Forgets `bell`.
    pub(crate) fn unpark(&self, bell: &Arc<Bell>) {
        self.waiting.deregister(bell);
    }

    /// Where the last snapshot is: what the journal has before it is not needed for this share-partition.
    pub(crate) fn snapshot_at(&self) -> Offset {
        self.state.lock().snapshot_at
    }

    /// Writes down how all stands. Returns the record that is to be committed before that counts.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub(crate) fn write_snapshot(&self, now: Now) -> Result<Offset, ErrorCode> {
        self.snapshot(&mut self.state.lock(), now)
    }

    /// Writes a transition down, carries it out, and wakes whoever may find something now.
    fn carry_out(
        &self,
        mut state: MutexGuard<'_, State>,
        transition: Transition,
        now: Now,
    ) -> Result<Option<Offset>, ErrorCode> {
        if transition.is_empty() {
            return Ok(None);
        }
        let batches = transition.stored();
        let written = match batches.is_empty() {
            true => None,
            false => Some(self.update(&state, &transition, batches, now)?),
        };
        state.partition.apply(transition);
        if written.is_some() {
            state.updates += 1;
        }
        if state.updates >= UPDATES_PER_SNAPSHOT
            && let Err(code) = self.snapshot(&mut state, now)
        {
            tracing::warn!(group = %self.key.group, code = code.name(), "a snapshot is written later");
        }
        drop(state);
        self.waiting.release();
        Ok(written)
    }

    fn update(
        &self,
        state: &State,
        transition: &Transition,
        batches: Vec<StoredBatch>,
        now: Now,
    ) -> Result<Offset, ErrorCode> {
        let update = StateRecord {
            snapshot_epoch: state.snapshot_epoch,
            state_epoch: state.state_epoch,
            leader_epoch: self.journal.epoch(),
            start: state.partition.start_after(transition),
            done_count: state.partition.done_count_after(transition),
            batches,
        };
        let record = records::update(&self.key, &update).map_err(too_long)?;
        self.journal.append(&[record], now.wall_ms, None)
    }

    fn snapshot(&self, state: &mut State, now: Now) -> Result<Offset, ErrorCode> {
        let snapshot_epoch = state.snapshot_epoch.checked_add(1).unwrap_or(0);
        let snapshot = StateRecord {
            snapshot_epoch,
            state_epoch: state.state_epoch,
            leader_epoch: self.journal.epoch(),
            start: state.partition.start(),
            done_count: state.partition.done_count(),
            batches: state.partition.stored(),
        };
        let record =
            records::snapshot(&self.key, &snapshot, state.created_ms, now.wall_ms).map_err(too_long)?;
        let at = self.journal.append(&[record], now.wall_ms, None)?;
        (state.snapshot_epoch, state.snapshot_at, state.updates) = (snapshot_epoch, at, 0);
        Ok(at)
    }
}

impl State {
    /// Notes when the first lock ends, unless an earlier time is noted already. Returns it if it is news.
    fn schedule(&mut self) -> Option<u64> {
        let deadline = self.partition.next_deadline()?;
        if self.scheduled.is_some_and(|scheduled| scheduled <= deadline) {
            return None;
        }
        self.scheduled = Some(deadline);
        Some(deadline)
    }
}

/// A string that no record has room for.
pub(super) fn too_long(error: EncodeError) -> ErrorCode {
    tracing::warn!(%error, "a record of a share-partition cannot be encoded");
    ErrorCode::InvalidRequest
}
