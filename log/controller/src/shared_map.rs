//! An ordered map whose copies share what they have in common.
//!
//! The entries stand in sorted chunks behind `Arc`s. A copy copies the list of chunks, a change copies one
//! chunk: some microseconds each for 10,000 entries, where a deep copy of the cluster's state would take
//! milliseconds for every command.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// Entries in a chunk. A change copies half as many on average, a copy of the map counts one `Arc` per chunk.
const CHUNK: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct SharedMap<K, V> {
    /// Sorted by key, within and across; no chunk is empty.
    chunks: Vec<Arc<Vec<(K, V)>>>,
    len: usize,
}

/// What one key has in two maps; never the same value in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Difference<'a, V> {
    pub(crate) old: Option<&'a V>,
    pub(crate) new: Option<&'a V>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|(key, value)| (key, value))
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let chunk = self.chunks.get(self.chunk_of(key))?;
        let at = position(chunk, key).ok()?;
        chunk.get(at).map(|(_, value)| value)
    }

    /// Puts `value` in the place of `key`.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let at = self.chunk_of(&key);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return;
        };
        let chunk = Arc::make_mut(chunk);
        match position(chunk, &key) {
            Ok(found) => chunk[found].1 = value,
            Err(gap) => {
                chunk.insert(gap, (key, value));
                self.len += 1;
                if chunk.len() > CHUNK {
                    let upper = chunk.split_off(chunk.len() / 2);
                    self.chunks.insert(at + 1, Arc::new(upper));
                }
            }
        }
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.chunk_of(key);
        let chunk = self.chunks.get_mut(at)?;
        let found = position(chunk, key).ok()?;
        let chunk = Arc::make_mut(chunk);
        let (_, value) = chunk.remove(found);
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(at);
        } else {
            self.join_with_next(at);
        }
        Some(value)
    }

    /// What differs from `old`, in the order of the keys; `same` compares two values. Chunks that both maps
    /// share are not looked into, so that the cost follows the changes and not the size.
    pub(crate) fn differences<'a>(
        &'a self,
        old: &'a Self,
        same: impl Fn(&V, &V) -> bool,
    ) -> Vec<Difference<'a, V>> {
        let (mut new, mut old) = (Cursor::new(self), Cursor::new(old));
        let mut found = Vec::new();
        loop {
            if new.skip_shared(&mut old) {
                continue;
            }
            let order = match (new.entry(), old.entry()) {
                (None, None) => return found,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((new, _)), Some((old, _))) => new.cmp(old),
            };
            let fresh = if order.is_le() { new.take() } else { None };
            let stale = if order.is_ge() { old.take() } else { None };
            if !matches!((fresh, stale), (Some(fresh), Some(stale)) if same(fresh, stale)) {
                found.push(Difference { old: stale, new: fresh });
            }
        }
    }

    /// The chunk in which `key` is or would be; the last one for a key beyond all.
    fn chunk_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.chunks
            .partition_point(|chunk| chunk.first().is_some_and(|(first, _)| first.borrow() <= key))
            .saturating_sub(1)
    }

    /// Keeps the number of chunks in proportion when many entries are removed.
    fn join_with_next(&mut self, at: usize) {
        let (Some(this), Some(next)) = (self.chunks.get(at), self.chunks.get(at + 1)) else { return };
        if this.len() + next.len() <= CHUNK / 2 {
            let next = self.chunks.remove(at + 1);
            Arc::make_mut(&mut self.chunks[at]).extend(next.iter().cloned());
        }
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        let entries = |map: &Self| -> usize { map.len };
        entries(self) == entries(other)
            && self.chunks.iter().flat_map(|c| c.iter()).eq(other.chunks.iter().flat_map(|c| c.iter()))
    }
}

fn position<K: Borrow<Q>, V, Q: Ord + ?Sized>(chunk: &[(K, V)], key: &Q) -> Result<usize, usize> {
    chunk.binary_search_by(|(candidate, _)| candidate.borrow().cmp(key))
}

struct Cursor<'a, K, V> {
    chunks: &'a [Arc<Vec<(K, V)>>],
    at: usize,
}

impl<'a, K, V> Cursor<'a, K, V> {
    fn new(map: &'a SharedMap<K, V>) -> Self {
        Self { chunks: &map.chunks, at: 0 }
    }

    fn entry(&self) -> Option<&'a (K, V)> {
        self.chunks.first()?.get(self.at)
    }

    fn take(&mut self) -> Option<&'a V> {
        let chunk = self.chunks.first()?;
        let (_, value) = chunk.get(self.at)?;
        self.at += 1;
        if self.at == chunk.len() {
            self.chunks = &self.chunks[1..];
            self.at = 0;
        }
        Some(value)
    }

    /// Skips a chunk that both cursors stand at the beginning of.
    fn skip_shared(&mut self, other: &mut Self) -> bool {
        let (Some(this), Some(that)) = (self.chunks.first(), other.chunks.first()) else { return false };
        let shared = self.at == 0 && other.at == 0 && Arc::ptr_eq(this, that);
        if shared {
            self.chunks = &self.chunks[1..];
            other.chunks = &other.chunks[1..];
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16, u8),
        Remove(u16),
        Fork,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0_u16..600, any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
            4 => (0_u16..600).prop_map(Step::Remove),
            1 => Just(Step::Fork),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_behaves_as_a_sorted_map_and_forks_stay_as_they_were(
            steps in proptest::collection::vec(step(), 0..2_000)
        ) {
            let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
            let (mut fork, mut fork_model) = (map.clone(), model.clone());
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        map.insert(key, value);
                        model.insert(key, value);
                    }
                    Step::Remove(key) => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    Step::Fork => (fork, fork_model) = (map.clone(), model.clone()),
                }
            }
            prop_assert!(map.iter().eq(model.iter()));
            prop_assert_eq!(map.len(), model.len());
            prop_assert!(fork.iter().eq(fork_model.iter()));
            prop_assert!((0..600).all(|key| map.get(&key) == model.get(&key)));

            let keys: std::collections::BTreeSet<_> = model.keys().chain(fork_model.keys()).collect();
            let expected: Vec<_> = keys
                .into_iter()
                .map(|key| Difference { old: fork_model.get(key), new: model.get(key) })
                .filter(|difference| difference.old != difference.new)
                .collect();
            prop_assert_eq!(map.differences(&fork, |a, b| a == b), expected);
        }
    }

    #[test]
    fn a_change_copies_one_chunk() {
        let mut map = SharedMap::default();
        for key in 0..10_000 {
            map.insert(key, key);
        }
        let before = map.clone();
        map.insert(5_000, 0);
        let shared = map.chunks.iter().zip(&before.chunks).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert_eq!(shared, map.chunks.len() - 1);
        for key in 0..9_990 {
            map.remove(&key);
        }
        assert_eq!(map.chunks.len(), 1);
    }
}
