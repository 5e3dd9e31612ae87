//! A typed record on its way through the operators.

/// What flows through a typed stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<K, V> {
    /// The key; `None` for null.
    pub key: Option<K>,
    /// The value.
    pub value: V,
    /// When it happened, in ms since 1970.
    pub timestamp: i64,
    /// Which record of the current run it comes from, for the headers and the key's bytes.
    origin: u32,
}

/// The origin of a record that does not come from the current run.
const NO_ORIGIN: u32 = u32::MAX;

impl<K, V> Record<K, V> {
    /// A record out of nothing: it carries no headers.
    pub fn new(key: Option<K>, value: V, timestamp: i64) -> Self {
        Self { key, value, timestamp, origin: NO_ORIGIN }
    }

    pub(crate) fn with_origin(key: Option<K>, value: V, timestamp: i64, origin: usize) -> Self {
        Self { key, value, timestamp, origin: origin as u32 }
    }

    /// The record with another key; it keeps its headers.
    pub fn with_key<K2>(self, key: K2) -> Record<K2, V> {
        Record { key: Some(key), value: self.value, timestamp: self.timestamp, origin: self.origin }
    }

    /// The record with another value; it keeps its headers.
    pub fn with_value<V2>(self, value: V2) -> Record<K, V2> {
        Record { key: self.key, value, timestamp: self.timestamp, origin: self.origin }
    }

    /// The record with its value replaced by what `change` makes of it.
    pub fn map_value<V2>(self, change: impl FnOnce(V) -> V2) -> Record<K, V2> {
        Record { key: self.key, value: change(self.value), timestamp: self.timestamp, origin: self.origin }
    }

    /// Which record of the current run it comes from.
    pub(crate) fn origin(&self) -> Option<usize> {
        if self.origin == NO_ORIGIN { None } else { Some(self.origin as usize) }
    }

    /// The same origin for another record.
    pub(crate) fn derive<K2, V2>(&self, key: Option<K2>, value: V2, timestamp: i64) -> Record<K2, V2> {
        Record { key, value, timestamp, origin: self.origin }
    }
}
