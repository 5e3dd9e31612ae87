//! Time windows and their keys.

/// A window of time, `[start_ms, end_ms)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeWindow {
    /// The first ms in it.
    pub start_ms: i64,
    /// The first ms after it.
    pub end_ms: i64,
}

/// A key in a window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Windowed<K> {
    /// The key.
    pub key: K,
    /// The window.
    pub window: TimeWindow,
}

/// How many bytes [`windowed_key`] adds to a key.
pub const WINDOW_SUFFIX: usize = 12;

/// Appends the key under which a window store keeps `key` in the window that starts at `start_ms`, as in
/// Kafka Streams' stores and changelogs: the key's bytes, the start as 8 big-endian bytes, a sequence number
/// of 4 bytes, which is 0.
pub fn windowed_key(key: &[u8], start_ms: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    out.extend_from_slice(&start_ms.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
}

/// Takes a windowed key apart again, into the key and the window's start; `None` when it is too short.
pub fn split_windowed_key(windowed: &[u8]) -> Option<(&[u8], i64)> {
    let (rest, _sequence) = windowed.split_last_chunk::<4>()?;
    let (key, start) = rest.split_last_chunk::<8>()?;
    Some((key, i64::from_be_bytes(*start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_windowed_key_is_laid_out_as_kafkas() {
        let mut out = Vec::new();
        windowed_key(b"EWR", 0x0102, &mut out);
        assert_eq!(out, b"EWR\0\0\0\0\0\0\x01\x02\0\0\0\0");
        assert_eq!(split_windowed_key(&out), Some((&b"EWR"[..], 0x0102)));
        assert_eq!(split_windowed_key(b"short"), None);
    }
}
