//! What keeps a task's state: one ordered map of bytes, written only by the commit and by restore.

use std::ops::ControlFlow;

use crate::error::Error;
use crate::program::TaskId;

/// Byte strings in one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteStrings {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl ByteStrings {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends the string that `write` appends to the bytes.
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a batch of keys is far below 4 GiB"));
    }

    pub(crate) fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at))
    }
}

/// One change of a [`WriteSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    Put(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
    /// Deletes every key from the first (included) to the second (excluded).
    DeleteRange(&'a [u8], &'a [u8]),
}

/// Changes that are written together or not at all, in order.
#[derive(Debug, Default)]
pub(crate) struct WriteSet {
    /// Two strings a change.
    strings: ByteStrings,
    kinds: Vec<ChangeKind>,
}

#[derive(Clone, Copy, Debug)]
enum ChangeKind {
    Put,
    Delete,
    DeleteRange,
}

impl WriteSet {
    pub(crate) fn clear(&mut self) {
        self.strings.clear();
        self.kinds.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    #[cfg(feature = "rocksdb")]
    pub(crate) fn size_in_bytes(&self) -> usize {
        self.strings.bytes.len()
    }

    pub(crate) fn put(&mut self, key: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>)) {
        self.push(ChangeKind::Put, key, value);
    }

    pub(crate) fn delete(&mut self, key: impl FnOnce(&mut Vec<u8>)) {
        self.push(ChangeKind::Delete, key, |_| {});
    }

    pub(crate) fn delete_range(&mut self, from: impl FnOnce(&mut Vec<u8>), to: impl FnOnce(&mut Vec<u8>)) {
        self.push(ChangeKind::DeleteRange, from, to);
    }

    fn push(
        &mut self,
        kind: ChangeKind,
        first: impl FnOnce(&mut Vec<u8>),
        second: impl FnOnce(&mut Vec<u8>),
    ) {
        self.strings.push_with(first);
        self.strings.push_with(second);
        self.kinds.push(kind);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        self.kinds.iter().enumerate().map(|(at, kind)| {
            let (first, second) = (self.strings.get(2 * at), self.strings.get(2 * at + 1));
            match kind {
                ChangeKind::Put => Change::Put(first, second),
                ChangeKind::Delete => Change::Delete(first),
                ChangeKind::DeleteRange => Change::DeleteRange(first, second),
            }
        })
    }
}

/// The values of a batch of keys, in their order; `None` where a key is absent.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) strings: ByteStrings,
    pub(crate) present: Vec<bool>,
}

impl Found {
    pub(crate) fn clear(&mut self) {
        self.strings.clear();
        self.present.clear();
    }

    pub(crate) fn push(&mut self, value: Option<&[u8]>) {
        self.strings.push_with(|out| out.extend_from_slice(value.unwrap_or_default()));
        self.present.push(value.is_some());
    }

    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        if self.present[at] { Some(self.strings.get(at)) } else { None }
    }
}

/// Why a backend did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BackendError {
    /// What it keeps is not what was written to it: it must be dropped, and written anew from the changelogs.
    Damaged(String),
    /// It could not be read or written. What it keeps may be as good as ever, and dropping it would not help.
    #[cfg_attr(not(feature = "rocksdb"), expect(dead_code, reason = "memory does not fail"))]
    Failed(String),
}

impl BackendError {
    /// The error of the task that `backend` belongs to; damage is noted there.
    pub(super) fn of_task(self, task: TaskId, store: &str, backend: &dyn Backend) -> Error {
        let store = store.to_owned();
        match self {
            Self::Damaged(reason) => {
                backend.condemn(&reason);
                Error::StateDamaged { task, store, reason }
            }
            Self::Failed(reason) => Error::State { task, store, reason },
        }
    }
}

/// A store below the overlay: RocksDB or memory.
///
/// Writers take turns (the task that owns it, or its restore); readers of other threads see only whole
/// write sets.
pub(crate) trait Backend: Send + Sync {
    /// Looks `keys` up, and pushes one answer a key to `found`.
    fn multi_get(&self, keys: &ByteStrings, found: &mut Found) -> Result<(), BackendError>;

    /// Applies all of `changes`, or none.
    fn write(&self, changes: &WriteSet) -> Result<(), BackendError>;

    /// Makes what was written survive a loss of memory.
    fn flush(&self) -> Result<(), BackendError>;

    /// Visits the keys from `from` (included) to `to` (excluded) in order, until `visit` breaks.
    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), BackendError>;

    /// Notes that what it keeps is damaged: when the task is opened next, be it after a restart, it is dropped.
    fn condemn(&self, reason: &str);

    /// Why it was condemned, if it was.
    fn damage(&self) -> Option<&str>;
}

/// Looks at a key and its value.
pub(crate) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// What every backend must do, as checks that both run.
#[cfg(test)]
pub(crate) mod checks {
    use super::*;

    fn set(changes: &[Change<'_>]) -> WriteSet {
        let mut set = WriteSet::default();
        for change in changes {
            let bytes = |bytes: &[u8]| {
                let bytes = bytes.to_vec();
                move |out: &mut Vec<u8>| out.extend_from_slice(&bytes)
            };
            match change {
                Change::Put(key, value) => set.put(bytes(key), bytes(value)),
                Change::Delete(key) => set.delete(bytes(key)),
                Change::DeleteRange(from, to) => set.delete_range(bytes(from), bytes(to)),
            }
        }
        set
    }

    fn contents(backend: &dyn Backend) -> String {
        let mut shown = Vec::new();
        backend
            .scan(b"", b"\xff", &mut |key, value| {
                shown.push(format!("{}={}", key.escape_ascii(), value.escape_ascii()));
                ControlFlow::Continue(())
            })
            .expect("readable");
        shown.join(" ")
    }

    pub(crate) fn a_map_of_bytes(backend: &dyn Backend) {
        let changes = set(&[
            Change::Put(b"b", b"2"),
            Change::Put(b"a", b"1"),
            Change::Put(b"a", b"3"),
            Change::Put(b"d", b""),
            Change::Put(b"e", b"5"),
        ]);
        backend.write(&changes).expect("writable");
        assert_eq!(contents(backend), "a=3 b=2 d= e=5");

        let mut keys = ByteStrings::default();
        for key in ["d", "c", "a"] {
            keys.push_with(|out| out.extend_from_slice(key.as_bytes()));
        }
        let mut found = Found::default();
        backend.multi_get(&keys, &mut found).expect("readable");
        assert_eq!((found.get(0), found.get(1), found.get(2)), (Some(&b""[..]), None, Some(&b"3"[..])));

        backend.write(&set(&[Change::DeleteRange(b"b", b"e"), Change::Delete(b"a")])).expect("writable");
        assert_eq!(contents(backend), "e=5");
        let mut visited = 0;
        backend
            .scan(b"a", b"e", &mut |_, _| {
                visited += 1;
                ControlFlow::Break(())
            })
            .expect("readable");
        assert_eq!(visited, 0, "the upper bound is excluded");
    }
}
