//! A grouped stream cut into windows of time.

use super::grouped::{KGroupedStream, Materialized};
use super::{Data, KTable};
use crate::operators::{Record, TimeWindows, Tumbling};
use crate::serde::{BigEndian, Serde};
use crate::state::{StoreSpec, Windowed};

/// A stream grouped by key and window. Time is the records' own: a window closes when stream time, the
/// greatest timestamp that this operator has seen on its partition, has passed its end by the grace. What
/// comes later is dropped and counted.
pub struct WindowedStream<'a, K, V, KS> {
    grouped: &'a KGroupedStream<K, V, KS>,
    windows: TimeWindows,
}

impl<'a, K: Data, V: Data, KS: Serde<K>> WindowedStream<'a, K, V, KS> {
    pub(super) fn new(grouped: &'a KGroupedStream<K, V, KS>, windows: TimeWindows) -> Self {
        Self { grouped, windows }
    }

    /// Counts the records of each key and window.
    pub fn count(&self, materialized: impl Into<Materialized>) -> KTable<Windowed<K>, i64> {
        self.aggregate(materialized, BigEndian, || 0, |_, count| *count += 1)
    }

    /// Folds the records of each key and window into an aggregate, which begins as `initial`.
    ///
    /// # Panics
    /// When the windows have no size, or a negative grace.
    pub fn aggregate<A: Data>(
        &self,
        materialized: impl Into<Materialized>,
        value: impl Serde<A>,
        initial: impl Fn() -> A + Send + Sync + 'static,
        add: impl Fn(&Record<K, V>, &mut A) + Send + Sync + 'static,
    ) -> KTable<Windowed<K>, A> {
        assert!(self.windows.size_ms() > 0, "a window is at least 1 ms long");
        assert!(self.windows.grace_ms() >= 0, "grace is not negative");
        let spec = |name| StoreSpec::window(name, self.windows.retention_ms());
        self.grouped.materialize(Tumbling(self.windows), materialized.into(), spec, value, initial, add)
    }
}
