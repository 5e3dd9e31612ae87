//! Into which window a record falls, and whether it is still open.

use crate::serde::{Serde, SerdeError};
use crate::state::{TimeWindow, Windowed, split_windowed_key, windowed_key};

/// Windows of one size that follow each other, aligned to the epoch: `[n · size, (n + 1) · size)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindows {
    size_ms: i64,
    grace_ms: i64,
}

impl TimeWindows {
    /// Windows of `size_ms` milliseconds, without grace: a record is late once stream time has reached its
    /// window's end.
    pub fn tumbling(size_ms: i64) -> Self {
        Self { size_ms, grace_ms: 0 }
    }

    /// The same windows, open for `grace_ms` of stream time after their end.
    #[must_use]
    pub fn grace(self, grace_ms: i64) -> Self {
        Self { grace_ms, ..self }
    }

    /// The size of a window in ms.
    pub fn size_ms(&self) -> i64 {
        self.size_ms
    }

    /// For how much stream time after its end a window is open, in ms.
    pub fn grace_ms(&self) -> i64 {
        self.grace_ms
    }

    /// How long a store must keep a window, counted from its start, in ms.
    pub(crate) fn retention_ms(&self) -> i64 {
        self.size_ms.saturating_add(self.grace_ms)
    }
}

/// How an aggregate's keys relate to the records' keys.
pub(crate) trait Windowing<K>: Clone + Send + Sync + 'static {
    /// The key of the results.
    type Key: Clone + Send + 'static;

    /// Appends to `key_bytes`, which hold the record's key, what makes the store's key of it; `false` when
    /// the record is late.
    fn place(&self, stream_time: &mut i64, timestamp: i64, key_bytes: &mut Vec<u8>) -> bool;

    /// The result's key, for a record with this key and time.
    fn key(&self, key: K, timestamp: i64) -> Self::Key;

    /// The result's key, from the store's.
    fn decode<S: Serde<K>>(&self, serde: &S, store_key: &[u8]) -> Result<Self::Key, SerdeError>;

    /// Whether there is a stream time, and windows that expire with it.
    fn is_windowed(&self) -> bool;
}

/// No windows: the store's key is the record's.
#[derive(Clone, Copy)]
pub(crate) struct Unwindowed;

impl<K: Clone + Send + 'static> Windowing<K> for Unwindowed {
    type Key = K;

    fn place(&self, _stream_time: &mut i64, _timestamp: i64, _key_bytes: &mut Vec<u8>) -> bool {
        true
    }

    fn key(&self, key: K, _timestamp: i64) -> K {
        key
    }

    fn decode<S: Serde<K>>(&self, serde: &S, store_key: &[u8]) -> Result<K, SerdeError> {
        serde.decode(store_key)
    }

    fn is_windowed(&self) -> bool {
        false
    }
}

/// Tumbling windows: one a record.
#[derive(Clone, Copy)]
pub(crate) struct Tumbling(pub(crate) TimeWindows);

impl Tumbling {
    fn window(&self, timestamp: i64) -> TimeWindow {
        let start_ms = timestamp.div_euclid(self.0.size_ms).saturating_mul(self.0.size_ms);
        TimeWindow { start_ms, end_ms: start_ms.saturating_add(self.0.size_ms) }
    }
}

impl<K: Clone + Send + 'static> Windowing<K> for Tumbling {
    type Key = Windowed<K>;

    fn place(&self, stream_time: &mut i64, timestamp: i64, key_bytes: &mut Vec<u8>) -> bool {
        *stream_time = timestamp.max(*stream_time);
        let window = self.window(timestamp);
        if window.end_ms <= stream_time.saturating_sub(self.0.grace_ms) {
            return false;
        }
        windowed_key(&[], window.start_ms, key_bytes);
        true
    }

    fn key(&self, key: K, timestamp: i64) -> Windowed<K> {
        Windowed { key, window: self.window(timestamp) }
    }

    fn decode<S: Serde<K>>(&self, serde: &S, store_key: &[u8]) -> Result<Windowed<K>, SerdeError> {
        let Some((key, start_ms)) = split_windowed_key(store_key) else {
            return Err(SerdeError::Length { expected: crate::state::WINDOW_SUFFIX, found: store_key.len() });
        };
        Ok(Windowed { key: serde.decode(key)?, window: self.window(start_ms) })
    }

    fn is_windowed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places the timestamps in order; shows each as the start of its window, or `late`.
    fn check(windows: TimeWindows, timestamps: &[i64], expected: &str) {
        let mut stream_time = i64::MIN;
        let mut shown = Vec::new();
        for &timestamp in timestamps {
            let mut key = Vec::new();
            let windowing = Tumbling(windows);
            shown.push(match Windowing::<()>::place(&windowing, &mut stream_time, timestamp, &mut key) {
                true => split_windowed_key(&key).expect("windowed").1.to_string(),
                false => "late".to_owned(),
            });
        }
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn a_window_is_open_while_its_end_is_after_stream_time_less_grace() {
        check(TimeWindows::tumbling(2).grace(1), &[0, 1, 2, 1, 0, 5, 0], "0 0 2 0 0 4 late");
        check(TimeWindows::tumbling(10), &[9, 10, 9, 19, 10, 20, 19], "0 10 late 10 10 20 late");
        check(TimeWindows::tumbling(10), &[-1, -10, -11], "-10 -10 late");
        check(TimeWindows::tumbling(10).grace(i64::MAX), &[i64::MAX / 2, 0], "4611686018427387900 0");
    }
}
