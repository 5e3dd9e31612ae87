//! State in memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::OnceLock;

use parking_lot::RwLock;

use super::backend::{Backend, BackendError, ByteStrings, Change, Found, Visit, WriteSet};

/// An ordered map in memory: gone with the process, and restored from the changelog.
#[derive(Debug, Default)]
pub(crate) struct MemoryBackend {
    /// Guards the map against readers of other threads; held for one batch at a time.
    map: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
    damage: OnceLock<String>,
}

impl Backend for MemoryBackend {
    fn multi_get(&self, keys: &ByteStrings, found: &mut Found) -> Result<(), BackendError> {
        let map = self.map.read();
        for key in keys.iter() {
            found.push(map.get(key).map(Vec::as_slice));
        }
        Ok(())
    }

    fn write(&self, changes: &WriteSet) -> Result<(), BackendError> {
        let mut map = self.map.write();
        for change in changes.iter() {
            match change {
                Change::Put(key, value) => match map.get_mut(key) {
                    Some(old) => {
                        old.clear();
                        old.extend_from_slice(value);
                    }
                    None => drop(map.insert(key.to_vec(), value.to_vec())),
                },
                Change::Delete(key) => drop(map.remove(key)),
                Change::DeleteRange(from, to) => {
                    let range = (Bound::Included(from), Bound::Excluded(to));
                    let doomed: Vec<_> = map.range::<[u8], _>(range).map(|(key, _)| key.clone()).collect();
                    for key in doomed {
                        map.remove(&key);
                    }
                }
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), BackendError> {
        Ok(())
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), BackendError> {
        let map = self.map.read();
        for (key, value) in map.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to))) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn condemn(&self, reason: &str) {
        self.damage.get_or_init(|| reason.to_owned());
    }

    fn damage(&self) -> Option<&str> {
        self.damage.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::backend::checks;

    #[test]
    fn is_a_map_of_bytes() {
        checks::a_map_of_bytes(&MemoryBackend::default());
    }
}
