//! The values of a store in memory: changes since the last commit, and what was read lately.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::records::Span;

/// A value in a store, or its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known<'a> {
    pub(super) timestamp: i64,
    pub(super) value: Option<&'a [u8]>,
}

/// Two generations of entries. New and changed ones go to the young generation; one found in the old
/// generation moves to the young one. When the young one has outgrown half the budget it becomes the old
/// one, and the old one is forgotten: what is in use survives, without a list to maintain. That only happens
/// right after a commit, when nothing is dirty.
pub(super) struct Overlay {
    hasher: DefaultHashBuilder,
    young: Generation,
    old: Generation,
    budget: usize,
    /// How large the young generation was after the last commit.
    size_at_commit: usize,
}

#[derive(Default)]
struct Generation {
    index: HashTable<u32>,
    entries: Vec<Entry>,
    arena: Vec<u8>,
    dirty: Vec<u32>,
}

/// Room for sorting the changed keys: segment, first bytes, entry.
#[derive(Default)]
pub(super) struct DirtyOrder {
    places: Vec<(u64, u64, u32)>,
}

/// The first eight bytes of a key as a number that sorts as they do.
fn first_bytes(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = key.len().min(8);
    first[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(first)
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    timestamp: i64,
    key: Span,
    /// `Span::NULL` for a key that is known to be absent.
    value: Span,
    dirty: bool,
}

/// What an entry takes beside the bytes of key and value: itself, its slot in the index, its place in the
/// list of dirty ones.
const ENTRY_BYTES: usize = size_of::<Entry>() + 10;

impl Overlay {
    /// An empty overlay that keeps up to `budget` bytes beyond a commit.
    pub(super) fn new(budget: usize) -> Self {
        let (young, old) = (Generation::default(), Generation::default());
        Self { hasher: DefaultHashBuilder::default(), young, old, budget, size_at_commit: 0 }
    }

    /// What is known of `key`; `None` when only the backend can tell.
    pub(super) fn get(&mut self, key: &[u8]) -> Option<Known<'_>> {
        let hash = self.hasher.hash_one(key);
        if let Some(at) = self.young.find(hash, key) {
            return Some(self.young.known(at));
        }
        let at = self.old.find(hash, key)?;
        let Known { timestamp, value } = self.old.known(at);
        let at = self.young.insert(hash, key, timestamp, value);
        Some(self.young.known(at))
    }

    /// Notes what the backend says of `key`, unless something is known already.
    pub(super) fn learn(&mut self, key: &[u8], timestamp: i64, value: Option<&[u8]>) {
        let hash = self.hasher.hash_one(key);
        if self.young.find(hash, key).is_none() {
            self.young.insert(hash, key, timestamp, value);
        }
    }

    /// Changes the value of `key`, or deletes it.
    pub(super) fn put(&mut self, key: &[u8], timestamp: i64, value: Option<&[u8]>) {
        let hash = self.hasher.hash_one(key);
        let young = &mut self.young;
        let at = match young.find(hash, key) {
            Some(at) => {
                young.replace(at, timestamp, value);
                at
            }
            None => young.insert(hash, key, timestamp, value),
        };
        let entry = &mut young.entries[at as usize];
        if !entry.dirty {
            entry.dirty = true;
            young.dirty.push(at);
        }
    }

    /// How many keys have changed since the last commit.
    pub(super) fn dirty_len(&self) -> usize {
        self.young.dirty.len()
    }

    /// The changed keys with their last values, in the order in which they first changed.
    pub(super) fn dirty(&self) -> impl Iterator<Item = (&[u8], Known<'_>)> {
        self.young.dirty.iter().map(|&at| {
            let key = self.young.entries[at as usize].key.of(&self.young.arena);
            (key, self.young.known(at))
        })
    }

    /// The changed keys with their last values, by segment and then by key: the order in which a backend that
    /// keeps its keys sorted takes them best.
    pub(super) fn sorted_dirty<'a>(
        &'a self,
        order: &'a mut DirtyOrder,
        segment_of: impl Fn(&[u8]) -> u64,
    ) -> impl Iterator<Item = (&'a [u8], Known<'a>)> {
        let young = &self.young;
        let key_of = |at: u32| young.entries[at as usize].key.of(&young.arena);
        order.places.clear();
        order.places.extend(young.dirty.iter().map(|&at| {
            let key = key_of(at);
            (segment_of(key), first_bytes(key), at)
        }));
        // Most keys differ in their first eight bytes, which are compared without looking them up.
        order
            .places
            .sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| key_of(a.2).cmp(key_of(b.2))));
        order.places.iter().map(move |&(_, _, at)| (key_of(at), young.known(at)))
    }

    /// About how much memory changes and reads have taken since the last commit.
    pub(super) fn uncommitted_bytes(&self) -> usize {
        self.young.size_in_bytes() - self.size_at_commit
    }

    /// Everything is in the backend now.
    pub(super) fn committed(&mut self) {
        let young = &mut self.young;
        for at in young.dirty.drain(..) {
            young.entries[at as usize].dirty = false;
        }
        if young.size_in_bytes() > self.budget / 2 {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
            if self.old.size_in_bytes() > self.budget {
                self.old.clear();
            }
        }
        self.size_at_commit = self.young.size_in_bytes();
    }
}

impl Generation {
    fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let is_it = |&at: &u32| {
            let entry = &self.entries[at as usize];
            entry.hash == hash && entry.key.of(&self.arena) == key
        };
        self.index.find(hash, is_it).copied()
    }

    fn insert(&mut self, hash: u64, key: &[u8], timestamp: i64, value: Option<&[u8]>) -> u32 {
        let at = u32::try_from(self.entries.len()).expect("a generation is bounded in bytes");
        let key = Span::append(&mut self.arena, key);
        let value = Span::append_optional(&mut self.arena, value);
        self.entries.push(Entry { hash, timestamp, key, value, dirty: false });
        self.index.insert_unique(hash, at, |&other| self.entries[other as usize].hash);
        at
    }

    fn replace(&mut self, at: u32, timestamp: i64, value: Option<&[u8]>) {
        let entry = &mut self.entries[at as usize];
        entry.timestamp = timestamp;
        match value {
            Some(value) if !entry.value.is_null() && value.len() <= entry.value.len as usize => {
                let start = entry.value.start as usize;
                self.arena[start..start + value.len()].copy_from_slice(value);
                entry.value.len = value.len() as u32;
            }
            _ => entry.value = Span::append_optional(&mut self.arena, value),
        }
    }

    fn known(&self, at: u32) -> Known<'_> {
        let entry = &self.entries[at as usize];
        Known { timestamp: entry.timestamp, value: entry.value.optional(&self.arena) }
    }

    fn size_in_bytes(&self) -> usize {
        self.arena.len() + self.entries.len() * ENTRY_BYTES
    }

    fn clear(&mut self) {
        self.index.clear();
        self.entries.clear();
        self.arena.clear();
        self.dirty.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(timestamp: i64, value: Option<&[u8]>) -> Option<Known<'_>> {
        Some(Known { timestamp, value })
    }

    #[test]
    fn the_last_change_of_a_key_counts() {
        let mut overlay = Overlay::new(0);
        assert_eq!(overlay.get(b"a"), None);
        overlay.learn(b"a", 1, Some(b"one"));
        overlay.put(b"b", 2, Some(b"two"));
        overlay.put(b"a", 3, Some(b"longer than one"));
        overlay.put(b"b", 4, None);
        overlay.learn(b"b", 0, Some(b"stale"));
        assert_eq!(overlay.get(b"a"), known(3, Some(b"longer than one")));
        assert_eq!(overlay.get(b"b"), known(4, None));
        let dirty: Vec<_> = overlay.dirty().map(|(key, known)| (key.to_vec(), known.timestamp)).collect();
        assert_eq!(dirty, [(b"b".to_vec(), 4), (b"a".to_vec(), 3)]);
        overlay.put(b"a", 5, Some(b"one"));
        assert_eq!(overlay.get(b"a"), known(5, Some(b"one")));
        assert_eq!(overlay.dirty_len(), 2);
    }

    #[test]
    fn changes_come_out_sorted_for_the_backend() {
        let mut overlay = Overlay::new(0);
        for key in ["b", "a", "long key 2", "long key 1", "a\0", ""] {
            overlay.put(key.as_bytes(), 0, None);
        }
        let mut order = DirtyOrder::default();
        let sorted: Vec<_> = overlay.sorted_dirty(&mut order, |_| 0).map(|(key, _)| key.to_vec()).collect();
        assert!(sorted.is_sorted(), "{sorted:?}");
        let by_length = |key: &[u8]| key.len() as u64;
        let sorted: Vec<_> =
            overlay.sorted_dirty(&mut order, by_length).map(|(key, _)| (key.len(), key.to_vec())).collect();
        assert!(sorted.is_sorted(), "{sorted:?}");
    }

    #[test]
    fn what_is_used_survives_the_budget_and_dirt_never_goes() {
        let mut overlay = Overlay::new(40 * (ENTRY_BYTES + 8));
        for round in 0..20_u32 {
            for key in 0..10_u32 {
                overlay.put(&(1000 * round + key).to_be_bytes(), 0, Some(&key.to_be_bytes()));
            }
            assert!(overlay.get(b"used").is_some() || round == 0, "round {round}");
            if round == 0 {
                overlay.learn(b"used", 9, Some(b"often"));
            }
            assert_eq!(overlay.dirty_len(), 10);
            overlay.committed();
            assert_eq!((overlay.dirty_len(), overlay.uncommitted_bytes()), (0, 0));
        }
        assert_eq!(overlay.get(b"used"), known(9, Some(b"often")));
        assert_eq!(overlay.get(&0_u32.to_be_bytes()), None, "the first round is forgotten");
        assert!(overlay.young.size_in_bytes() + overlay.old.size_in_bytes() <= overlay.budget * 2);
    }

    #[test]
    fn without_a_budget_nothing_outlives_a_commit() {
        let mut overlay = Overlay::new(0);
        overlay.put(b"a", 1, Some(b"1"));
        overlay.committed();
        assert_eq!(overlay.get(b"a"), None);
    }
}
