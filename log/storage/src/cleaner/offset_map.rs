//! From keys to the last offset that each was written at.

use siphasher::sip128::{Hash128, SipHasher13};
use thalweg_protocol::Offset;

/// Hashes keys with a secret, so that nobody can look for two keys that are taken for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyHasher(SipHasher13);

/// 128 bits of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash([u64; 2]);

impl KeyHasher {
    pub(super) fn new(secret: u128) -> Self {
        Self(SipHasher13::new_with_key(&secret.to_le_bytes()))
    }

    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> KeyHash {
        let Hash128 { h1, h2 } = self.0.hash(key);
        KeyHash([h1, h2])
    }
}

/// A hash table of a size that is given once. Of each key it holds the hash, not the key: two keys with the same 128
/// bits are taken for one.
///
/// Slots are probed one after the other. It is filled to three quarters, so that the search for a key that is not
/// there takes 8.5 of them on average (Knuth, TAOCP 6.4), most in one or two cache lines.
#[derive(Debug)]
pub(super) struct OffsetMap {
    /// Hash, and offset + 1; 0 in a slot that is free.
    slots: Vec<[u64; 3]>,
    len: usize,
    most: usize,
}

impl OffsetMap {
    const SLOT: usize = size_of::<[u64; 3]>();
    const FEWEST_SLOTS: usize = 16;

    /// A map that takes at most `bytes`, or less if `keys` need less. The pages are the system's until they are used.
    pub(super) fn new(bytes: usize, keys: u64) -> Self {
        let needed = usize::try_from(keys.saturating_add(keys / 3 + 2)).unwrap_or(usize::MAX);
        let slots = (bytes / Self::SLOT).min(needed).max(Self::FEWEST_SLOTS);
        Self { slots: vec![[0; 3]; slots], len: 0, most: slots * 3 / 4 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Notes that a key was written at `offset`, which is above all before. Returns false when it is a new key and the
    /// map is full.
    #[inline]
    pub(super) fn insert(&mut self, key: KeyHash, offset: Offset) -> bool {
        let at = self.find(key);
        let slot = &mut self.slots[at];
        if slot[2] == 0 {
            if self.len == self.most {
                return false;
            }
            self.len += 1;
            *slot = [key.0[0], key.0[1], 0];
        }
        slot[2] = offset.0 as u64 + 1;
        true
    }

    /// The last offset of a key.
    #[inline]
    pub(super) fn get(&self, key: KeyHash) -> Option<Offset> {
        let [.., stored] = self.slots[self.find(key)];
        stored.checked_sub(1).map(|offset| Offset(offset as i64))
    }

    /// The slot of a key, or the free one where it would be.
    #[inline]
    fn find(&self, KeyHash([high, low]): KeyHash) -> usize {
        // The hash as a fraction of the slots (Lemire 2019): their number need not be a power of two.
        let mut at = ((u128::from(high) * self.slots.len() as u128) >> 64) as usize;
        loop {
            let slot = &self.slots[at];
            if slot[2] == 0 || slot[0] == high && slot[1] == low {
                return at;
            }
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn it_says_what_a_map_says() {
        let hasher = KeyHasher::new(7);
        let mut random = fastrand::Rng::with_seed(1);
        for bytes in [0, 1000, 24 * 1000, 1 << 20] {
            let mut map = OffsetMap::new(bytes, u64::MAX);
            let mut model: HashMap<u32, i64> = HashMap::new();
            for offset in 0..40_000 {
                let key = random.u32(..50_000);
                if map.insert(hasher.hash(&key.to_be_bytes()), Offset(offset)) {
                    model.insert(key, offset);
                } else {
                    assert!(!model.contains_key(&key), "a key that is there is always taken");
                    assert_eq!(map.len(), (bytes / 24).max(16) * 3 / 4, "it is full");
                }
            }
            assert_eq!(map.len(), model.len());
            for key in 0..50_000_u32 {
                let found = map.get(hasher.hash(&key.to_be_bytes()));
                assert_eq!(found, model.get(&key).map(|&offset| Offset(offset)));
            }
        }
    }

    #[test]
    fn it_is_no_larger_than_it_must_be() {
        for keys in (0..2000).chain([u64::MAX]) {
            let map = OffsetMap::new(24_000, keys);
            assert!(map.most as u64 >= keys.min(750), "all {keys} fit");
            assert!(map.slots.len() as u64 <= (keys.saturating_add(keys / 3 + 2)).clamp(16, 1000));
        }
    }

    #[test]
    fn the_secret_decides_the_hash() {
        let hash = |secret, key: &[u8]| KeyHasher::new(secret).hash(key);
        assert_eq!(hash(1, b"key"), hash(1, b"key"));
        assert_ne!(hash(1, b"key"), hash(2, b"key"));
        assert_ne!(hash(1, b"key"), hash(1, b"kez"));
        // The reference vectors of SipHash-1-3-128 are the crate's business; that it is 128 bits is ours.
        let KeyHash([high, low]) = hash(1, b"");
        assert_ne!(high, low);
    }
}
