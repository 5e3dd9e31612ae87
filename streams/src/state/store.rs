//! A store as a program sees it.

use std::sync::Arc;

use super::backend::{Backend, BackendError, ByteStrings, Found, WriteSet};
use super::layout::{self, KeyLayout, StorePrefix};
use super::overlay::{DirtyOrder, Known, Overlay};
use crate::error::Error;
use crate::program::TaskId;
use crate::records::Span;

/// Describes a store of a sub-topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSpec {
    /// Names the store; its changelog is `<app>-<name>-changelog`.
    pub name: String,
    /// What its keys are.
    pub kind: StoreKind,
}

/// What the keys of a store are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Plain keys, kept until deleted.
    KeyValue,
    /// Keys made by [`windowed_key`](super::windowed_key), kept until their window is older than
    /// `retention_ms` before the time that the program passes to [`StateStore::expire`].
    Window {
        /// How long windows are kept, counted from their start, in ms.
        retention_ms: i64,
    },
}

impl StoreSpec {
    /// A store of plain keys.
    pub fn key_value(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: StoreKind::KeyValue }
    }

    /// A store of windowed keys.
    pub fn window(name: impl Into<String>, retention_ms: i64) -> Self {
        Self { name: name.into(), kind: StoreKind::Window { retention_ms } }
    }

    pub(super) fn layout(&self) -> KeyLayout {
        match self.kind {
            StoreKind::KeyValue => KeyLayout::Plain,
            StoreKind::Window { .. } => KeyLayout::Segmented { segment_ms: self.segment_ms() },
        }
    }

    /// Half the retention, but not less than a minute, as in Kafka Streams.
    fn segment_ms(&self) -> i64 {
        match self.kind {
            StoreKind::KeyValue => i64::MAX,
            StoreKind::Window { retention_ms } => (retention_ms / 2).max(60_000),
        }
    }
}

/// A value in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredValue<'a> {
    /// The timestamp it was put with, in ms.
    pub timestamp: i64,
    /// Its bytes.
    pub value: &'a [u8],
}

/// The answers to [`StateStore::multi_get`], one a key, in order. Kept and filled again, it allocates
/// nothing.
#[derive(Debug, Default)]
pub struct StoredValues {
    bytes: Vec<u8>,
    entries: Vec<(i64, Span)>,
}

impl StoredValues {
    /// No answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many answers there are: as many as there were keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The answer to the key at `at`; `None` when the store does not hold it.
    ///
    /// # Panics
    /// When there were not that many keys.
    pub fn get(&self, at: usize) -> Option<StoredValue<'_>> {
        let (timestamp, span) = self.entries[at];
        Some(StoredValue { timestamp, value: span.optional(&self.bytes)? })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    fn push(&mut self, timestamp: i64, value: Option<&[u8]>) {
        let span = Span::append_optional(&mut self.bytes, value);
        self.entries.push((timestamp, span));
    }

    fn set(&mut self, at: usize, timestamp: i64, value: Option<&[u8]>) {
        self.entries[at] = (timestamp, Span::append_optional(&mut self.bytes, value));
    }
}

/// A store of a task: values with timestamps by key, both bytes.
///
/// Writes stay in memory until the commit, which appends the last value of every changed key to the
/// changelog and writes them to the backend together with the input offsets; reads see them at once. What a
/// commit that failed had changed is dropped with the task.
pub struct StateStore {
    task: TaskId,
    spec: StoreSpec,
    layout: KeyLayout,
    prefix: StorePrefix,
    overlay: Overlay,
    backend: Arc<dyn Backend>,
    /// Windows that start before this are expired at the next commit.
    expire_before_ms: Option<i64>,
    /// The first segment that may still hold windows.
    oldest_segment: u64,
    missing: Missing,
    order: DirtyOrder,
}

/// What a batch of reads did not find in memory.
#[derive(Default)]
struct Missing {
    places: ByteStrings,
    positions: Vec<usize>,
    found: Found,
}

impl StateStore {
    pub(super) fn new(
        task: TaskId,
        spec: StoreSpec,
        prefix: StorePrefix,
        backend: Arc<dyn Backend>,
        cache_bytes: usize,
    ) -> Self {
        let layout = spec.layout();
        Self {
            task,
            spec,
            layout,
            prefix,
            overlay: Overlay::new(cache_bytes),
            backend,
            expire_before_ms: None,
            oldest_segment: 0,
            missing: Missing::default(),
            order: DirtyOrder::default(),
        }
    }

    /// The store's description.
    pub fn spec(&self) -> &StoreSpec {
        &self.spec
    }

    /// Looks many keys up at once: one answer a key, in order, replaces what `values` held. What is not in
    /// memory is read from the backend in one batch.
    ///
    /// # Errors
    /// When the backend cannot be read.
    pub fn multi_get<'k, I>(&mut self, keys: I, values: &mut StoredValues) -> Result<(), Error>
    where
        I: IntoIterator<Item = &'k [u8]>,
    {
        values.clear();
        let missing = &mut self.missing;
        missing.places.clear();
        missing.positions.clear();
        for key in keys {
            match self.overlay.get(key) {
                Some(Known { timestamp, value }) => values.push(timestamp, value),
                None => {
                    missing.places.push_with(|out| self.layout.place(self.prefix, key, out));
                    missing.positions.push(values.len());
                    values.push(0, None);
                }
            }
        }
        if missing.positions.is_empty() {
            return Ok(());
        }
        missing.found.clear();
        let failed = |error: BackendError| error.of_task(self.task, &self.spec.name, &*self.backend);
        self.backend.multi_get(&missing.places, &mut missing.found).map_err(failed)?;
        for (at, &position) in missing.positions.iter().enumerate() {
            let (timestamp, value) = match missing.found.get(at) {
                Some(stored) => {
                    let (timestamp, value) = layout::split_stored(stored).map_err(failed)?;
                    (timestamp, Some(value))
                }
                None => (0, None),
            };
            self.overlay.learn(self.layout.key(missing.places.get(at)), timestamp, value);
            values.set(position, timestamp, value);
        }
        Ok(())
    }

    /// Looks one key up, into `values` at 0. [`multi_get`](Self::multi_get) is much the quicker way to read
    /// many.
    ///
    /// # Errors
    /// When the backend cannot be read.
    pub fn get<'v>(
        &mut self,
        key: &[u8],
        values: &'v mut StoredValues,
    ) -> Result<Option<StoredValue<'v>>, Error> {
        self.multi_get([key], values)?;
        Ok(values.get(0))
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, key: &[u8], timestamp: i64, value: &[u8]) {
        self.overlay.put(key, timestamp, Some(value));
    }

    /// Deletes `key`: a tombstone in the changelog.
    pub fn delete(&mut self, key: &[u8], timestamp: i64) {
        self.overlay.put(key, timestamp, None);
    }

    /// Sets or deletes many keys: key, timestamp, and the value or `None`.
    pub fn put_all<'b, I>(&mut self, changes: I)
    where
        I: IntoIterator<Item = (&'b [u8], i64, Option<&'b [u8]>)>,
    {
        for (key, timestamp, value) in changes {
            self.overlay.put(key, timestamp, value);
        }
    }

    /// The keys changed since the last commit, each with its last value (`None`: deleted), in the order in
    /// which they first changed.
    pub fn changed(&self) -> impl Iterator<Item = (&[u8], i64, Option<&[u8]>)> {
        self.overlay.dirty().map(|(key, known)| (key, known.timestamp, known.value))
    }

    /// How many keys changed since the last commit.
    pub fn changed_len(&self) -> usize {
        self.overlay.dirty_len()
    }

    /// Lets windows go that start more than the retention before `time_ms`, which the program's stream time
    /// tells; whole segments at a time, with the next commit. Does nothing to a store of plain keys.
    pub fn expire(&mut self, time_ms: i64) {
        if let StoreKind::Window { retention_ms } = self.spec.kind {
            let before = time_ms.saturating_sub(retention_ms);
            self.expire_before_ms = Some(self.expire_before_ms.map_or(before, |old| old.max(before)));
        }
    }

    /// About how much memory the uncommitted changes take.
    pub(crate) fn uncommitted_bytes(&self) -> usize {
        self.overlay.uncommitted_bytes()
    }

    /// Adds the changes since the last commit to `changes`, and what has expired.
    pub(crate) fn collect(&mut self, changes: &mut WriteSet) {
        let (layout, prefix) = (self.layout, self.prefix);
        let segment_of = |key: &[u8]| layout.segment_of(key);
        for (key, Known { timestamp, value }) in self.overlay.sorted_dirty(&mut self.order, segment_of) {
            let place = |out: &mut Vec<u8>| layout.place(prefix, key, out);
            match value {
                Some(value) => changes.put(place, |out| layout::stored(timestamp, value, out)),
                None => changes.delete(place),
            }
        }
        if let Some(before) = self.expire_before_ms.take() {
            let first_kept = layout::segment(before, self.spec.segment_ms());
            if first_kept > self.oldest_segment {
                let bound = |segment: u64| {
                    move |out: &mut Vec<u8>| {
                        out.extend_from_slice(&prefix);
                        out.extend_from_slice(&segment.to_be_bytes());
                    }
                };
                changes.delete_range(bound(self.oldest_segment), bound(first_kept));
                self.oldest_segment = first_kept;
            }
        }
    }

    /// The changes are in the backend.
    pub(crate) fn committed(&mut self) {
        self.overlay.committed();
    }
}
