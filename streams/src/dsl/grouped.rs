//! A stream grouped by key, and its aggregates.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use super::graph::{Graph, NodeId, Touches};
use super::windowed::WindowedStream;
use super::{Data, KTable};
use crate::operators::{Aggregate, AggregateParts, Emit, Record, SlotId, TimeWindows, Unwindowed, Windowing};
use crate::serde::{BigEndian, Serde};
use crate::state::StoreSpec;

/// How a stream is grouped: the name of its repartition topic, should it need one, and the serdes for it.
#[derive(Clone, Debug)]
pub struct Grouped<KS, VS> {
    pub(super) name: String,
    pub(super) key: KS,
    pub(super) value: VS,
}

impl<KS, VS> Grouped<KS, VS> {
    /// Groups through `<app>-<name>-repartition` if the key was changed.
    pub fn new(name: impl Into<String>, key: KS, value: VS) -> Self {
        Self { name: name.into(), key, value }
    }
}

/// How an aggregate is kept and when its results come out. A `&str` is one with the defaults.
#[derive(Clone, Debug)]
pub struct Materialized {
    name: String,
    emit: Emit,
}

impl Materialized {
    /// Kept in the store `name`, whose changelog is `<app>-<name>-changelog`. The name is asked for because
    /// state is found by it when the topology changes.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), emit: Emit::default() }
    }

    /// Chooses when results come out.
    #[must_use]
    pub fn emit(self, emit: Emit) -> Self {
        Self { emit, ..self }
    }
}

impl From<&str> for Materialized {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// A stream whose records of one key are all in one task.
pub struct KGroupedStream<K, V, KS> {
    graph: Rc<RefCell<Graph>>,
    node: NodeId,
    key: KS,
    raw_keys: bool,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K: Data, V: Data, KS: Serde<K>> KGroupedStream<K, V, KS> {
    pub(super) fn new(graph: Rc<RefCell<Graph>>, node: NodeId, key: KS, raw_keys: bool) -> Self {
        Self { graph, node, key, raw_keys, of: PhantomData }
    }

    /// Counts the records of each key.
    pub fn count(&self, materialized: impl Into<Materialized>) -> KTable<K, i64> {
        self.aggregate(materialized, BigEndian, || 0, |_, count| *count += 1)
    }

    /// Folds the records of each key into an aggregate, which begins as `initial`.
    pub fn aggregate<A: Data>(
        &self,
        materialized: impl Into<Materialized>,
        value: impl Serde<A>,
        initial: impl Fn() -> A + Send + Sync + 'static,
        add: impl Fn(&Record<K, V>, &mut A) + Send + Sync + 'static,
    ) -> KTable<K, A> {
        self.materialize(Unwindowed, materialized.into(), StoreSpec::key_value, value, initial, add)
    }

    /// Combines the values of each key into one; a key's first value is taken as it is.
    pub fn reduce(
        &self,
        materialized: impl Into<Materialized>,
        value: impl Serde<V>,
        combine: impl Fn(V, &V) -> V + Send + Sync + 'static,
    ) -> KTable<K, V> {
        let value = Reduced(value);
        let add = move |record: &Record<K, V>, reduced: &mut Option<V>| {
            *reduced = Some(match reduced.take() {
                None => record.value.clone(),
                Some(so_far) => combine(so_far, &record.value),
            });
        };
        let table: KTable<K, Option<V>> = self.aggregate(materialized, value, || None, add);
        table.map_values(|value| value.expect("a key that was reduced has a value"))
    }

    /// Aggregates per window of time instead of over all time.
    pub fn windowed_by(&self, windows: TimeWindows) -> WindowedStream<'_, K, V, KS> {
        WindowedStream::new(self, windows)
    }

    pub(super) fn materialize<A: Data, W: Windowing<K>>(
        &self,
        windowing: W,
        materialized: Materialized,
        spec: impl FnOnce(String) -> StoreSpec,
        value: impl Serde<A>,
        initial: impl Fn() -> A + Send + Sync + 'static,
        add: impl Fn(&Record<K, V>, &mut A) + Send + Sync + 'static,
    ) -> KTable<W::Key, A> {
        let Materialized { name, emit } = materialized;
        let description = format!("aggregate into {name}");
        let touches = Touches { store: Some(spec(name)), ..Touches::default() };
        let parts = AggregateParts { initial: Arc::new(initial), add: Arc::new(add), emit, of: PhantomData };
        let (key, raw_keys) = (self.key.clone(), self.raw_keys);
        let node = self.graph.borrow_mut().add::<K, V>(description, &[self.node], touches, move |wiring| {
            Box::new(Aggregate::new(
                SlotId::new(wiring.input),
                &wiring.outputs,
                wiring.store,
                key.clone(),
                value.clone(),
                windowing.clone(),
                parts.clone(),
                raw_keys,
            ))
        });
        KTable::new(Rc::clone(&self.graph), node)
    }
}

/// Writes the value that a reduce always has.
#[derive(Clone)]
struct Reduced<S>(S);

impl<V, S: Serde<V>> Serde<Option<V>> for Reduced<S> {
    fn encode(&self, value: &Option<V>, out: &mut Vec<u8>) -> Result<(), crate::SerdeError> {
        match value {
            Some(value) => self.0.encode(value, out),
            None => Err(crate::SerdeError::Null),
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<Option<V>, crate::SerdeError> {
        self.0.decode(bytes).map(Some)
    }
}
