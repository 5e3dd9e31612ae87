//! Where the parts of a task's state lie in its one ordered map.
//!
//! ```text
//! 00 00 "checkpoint"                                  → the checkpoint
//! 00 00 "store/" name                                 → the store's prefix, u16
//! prefix u16 · key                                    → timestamp i64 · value       (key-value store)
//! prefix u16 · segment u64 · key · start i64 · seq u32 → timestamp i64 · value      (window store)
//! ```
//!
//! Numbers are big-endian. A segment is a stretch of window starts; its number has the sign bit flipped, so
//! that segments before 1970 sort first. All windows of a segment expire together by one range delete.

use super::backend::BackendError;

/// The key of the checkpoint.
pub(super) const CHECKPOINT: &[u8] = b"\0\0checkpoint";

/// What the names of stores follow.
pub(super) const STORE_NAMES: &[u8] = b"\0\0store/";

/// A store's place among the others of its task.
pub(super) type StorePrefix = [u8; 2];

/// How a store's keys lie in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyLayout {
    /// As they are.
    Plain,
    /// By segment of the window's start.
    Segmented { segment_ms: i64 },
}

impl KeyLayout {
    /// Appends the place of `key`.
    pub(super) fn place(self, prefix: StorePrefix, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&prefix);
        if let Self::Segmented { .. } = self {
            out.extend_from_slice(&self.segment_of(key).to_be_bytes());
        }
        out.extend_from_slice(key);
    }

    /// The segment that `key` lies in; always 0 where there are none. A key too short to be windowed lies in
    /// the first segment.
    pub(super) fn segment_of(self, key: &[u8]) -> u64 {
        match self {
            Self::Plain => 0,
            Self::Segmented { segment_ms } => {
                let start = super::window::split_windowed_key(key).map_or(i64::MIN, |(_, start)| start);
                segment(start, segment_ms)
            }
        }
    }

    /// The key that lies at `place`.
    pub(super) fn key(self, place: &[u8]) -> &[u8] {
        let skip = match self {
            Self::Plain => 2,
            Self::Segmented { .. } => 10,
        };
        place.get(skip..).unwrap_or_default()
    }
}

/// The number of the segment that holds `start`, in sorting order.
pub(super) fn segment(start: i64, segment_ms: i64) -> u64 {
    (start.div_euclid(segment_ms) as u64) ^ (1 << 63)
}

/// The first place after all of a store's.
pub(super) fn end_of(prefix: StorePrefix) -> StorePrefix {
    u16::from_be_bytes(prefix).saturating_add(1).to_be_bytes()
}

/// Appends a stored value.
pub(super) fn stored(timestamp: i64, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&timestamp.to_be_bytes());
    out.extend_from_slice(value);
}

/// Takes a stored value apart.
pub(super) fn split_stored(stored: &[u8]) -> Result<(i64, &[u8]), BackendError> {
    let (timestamp, value) = stored.split_first_chunk::<8>().ok_or_else(|| {
        BackendError::Damaged(format!("a value of {} bytes has no room for a timestamp", stored.len()))
    })?;
    Ok((i64::from_be_bytes(*timestamp), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::window::windowed_key;

    #[test]
    fn segments_sort_by_time_and_keys_come_back() {
        let layout = KeyLayout::Segmented { segment_ms: 100 };
        let place = |start| {
            let (mut key, mut out) = (Vec::new(), Vec::new());
            windowed_key(b"k", start, &mut key);
            layout.place([0, 1], &key, &mut out);
            assert_eq!(layout.key(&out), key);
            out
        };
        assert!(place(-1) < place(0));
        assert!(place(99) < place(100));
        assert_eq!(place(0)[..10], place(99)[..10]);
    }
}
