//! The share-partitions of one partition of `__share_group_state`.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use thalweg_protocol::{ErrorCode, Offset};

use super::held::{HeldShare, too_long};
use super::records::{self, ShareKey, ShareRecord};
use crate::coordinator::{Clocks, Journal, JournalError, Replayed, Shard};

/// The most share-partitions of one shard: each takes some hundred bytes and more while records are in flight.
const MAX_SHARES: usize = 100_000;

/// How far a snapshot may lie behind the journal's end before it is written anew, so that what lies before can go.
const MAX_BEHIND: i64 = 20_000;

/// Fewer records are not worth the sync that letting go of them takes.
const LEAST_TRIMMED: i64 = 1_000;

/// The share-partitions of one partition of `__share_group_state`.
#[derive(Debug)]
pub(crate) struct ShareShard {
    journal: Arc<Journal>,
    clocks: Clocks,
    /// Guards which there are; held for a look-up, or the append that makes or ends one.
    shares: Mutex<HashMap<ShareKey, Arc<HeldShare>>>,
}

impl Shard for ShareShard {
    type Settings = Clocks;

    fn load(journal: Journal, clocks: &Clocks) -> Result<Self, JournalError> {
        let (journal, now) = (Arc::new(journal), clocks.now());
        let mut shares: HashMap<ShareKey, Arc<HeldShare>> = HashMap::new();
        journal.replay(|replayed| {
            let Replayed::Record { record, .. } = replayed else { return Ok(()) };
            match records::read(&record)? {
                Some(ShareRecord::Snapshot(key, snapshot)) => {
                    let journal = Arc::clone(&journal);
                    let held = HeldShare::restore(key.clone(), journal, &snapshot, record.offset, now);
                    shares.insert(key, Arc::new(held));
                }
                Some(ShareRecord::Update(key, update)) => {
                    if let Some(held) = shares.get(&key) {
                        held.follow(&update);
                    }
                }
                Some(ShareRecord::Gone(key)) => {
                    shares.remove(&key);
                }
                None => {}
            }
            Ok(())
        })?;
        Ok(Self { journal, clocks: clocks.clone(), shares: Mutex::new(shares) })
    }

    fn journal(&self) -> &Journal {
        &self.journal
    }
}

impl ShareShard {
    /// The share-partition of this key.
    pub(crate) fn get(&self, key: &ShareKey) -> Option<Arc<HeldShare>> {
        self.shares.lock().get(key).cloned()
    }

    /// The share-partition of this key, made to begin at `start` if there is none. Returns as well the record that is to be
    /// committed before anybody hears of it.
    ///
    /// # Errors
    /// COORDINATOR_NOT_AVAILABLE when there are too many; why it cannot be written.
    pub(crate) fn get_or_create(
        &self,
        key: &ShareKey,
        start: Offset,
    ) -> Result<(Arc<HeldShare>, Option<Offset>), ErrorCode> {
        let mut shares = self.shares.lock();
        if let Some(held) = shares.get(key) {
            return Ok((Arc::clone(held), None));
        }
        if shares.len() >= MAX_SHARES {
            tracing::warn!(limit = MAX_SHARES, "there are too many share-partitions");
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        let (held, written) = self.create(key, start, 0)?;
        shares.insert(key.clone(), Arc::clone(&held));
        Ok((held, Some(written)))
    }

    /// Has the share-partition of this key begin at `start`, whatever was before. Returns the record that is to be committed
    /// before that is answered.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub(crate) fn reset(&self, key: &ShareKey, start: Offset) -> Result<Offset, ErrorCode> {
        let mut shares = self.shares.lock();
        let state_epoch = shares.get(key).map_or(0, |old| old.next_state_epoch());
        if state_epoch == 0 && shares.len() >= MAX_SHARES {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        let (held, written) = self.create(key, start, state_epoch)?;
        if let Some(old) = shares.insert(key.clone(), held) {
            old.bury();
        }
        Ok(written)
    }

    fn create(
        &self,
        key: &ShareKey,
        start: Offset,
        state_epoch: i32,
    ) -> Result<(Arc<HeldShare>, Offset), ErrorCode> {
        let now = self.clocks.now();
        let held = HeldShare::new(key.clone(), Arc::clone(&self.journal), start, state_epoch, now);
        let written = held.write_snapshot(now)?;
        Ok((Arc::new(held), written))
    }

    /// Ends the share-partitions that `is_over` chooses. Returns the last record, which is to be committed before that is
    /// answered; `None` when there are none.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub(crate) fn remove(&self, is_over: impl Fn(&ShareKey) -> bool) -> Result<Option<Offset>, ErrorCode> {
        let mut shares = self.shares.lock();
        let over: Vec<ShareKey> = shares.keys().filter(|key| is_over(key)).cloned().collect();
        if over.is_empty() {
            return Ok(None);
        }
        let tombstones: Vec<_> =
            over.iter().map(records::tombstone).collect::<Result<_, _>>().map_err(too_long)?;
        let written = self.journal.append(&tombstones, self.clocks.now().wall_ms, None)?;
        for key in &over {
            if let Some(held) = shares.remove(key) {
                held.bury();
            }
        }
        Ok(Some(written))
    }

    /// The share-partitions that `is_wanted` chooses.
    pub(crate) fn find(&self, is_wanted: impl Fn(&ShareKey) -> bool) -> Vec<Arc<HeldShare>> {
        let shares = self.shares.lock();
        shares.iter().filter(|(key, _)| is_wanted(key)).map(|(_, held)| Arc::clone(held)).collect()
    }

    /// Lets go of what the journal has before all snapshots. Blocks on the disk.
    pub(crate) fn trim(&self) {
        let (now, end) = (self.clocks.now(), self.journal.end());
        let mut needed = end;
        for held in self.find(|_| true) {
            let at = held.snapshot_at();
            needed = needed.min(at);
            // It is let go of the next time, when the new one is committed.
            if end.0 - at.0 > MAX_BEHIND
                && let Err(code) = held.write_snapshot(now)
            {
                tracing::warn!(group = %held.key().group, code = code.name(), "a snapshot is written later");
            }
        }
        if needed.0 - self.journal.start().0 < LEAST_TRIMMED {
            return;
        }
        if let Err(code) = self.journal.trim(needed) {
            tracing::warn!(code = code.name(), "the journal of share groups stays longer than it need");
        }
    }
}
