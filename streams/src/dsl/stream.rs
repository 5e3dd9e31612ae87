//! A stream of records, each of which counts for itself.

use std::any::TypeId;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use bytestring::ByteString;

use super::Data;
use super::graph::{Graph, NodeId, Touches, Wiring};
use super::grouped::{Grouped, KGroupedStream};
use crate::operators::{Filter, FlatMap, Operator, Outlet, Peek, Record, Relay, Sink, SlotId};
use crate::serde::Serde;
use crate::topology::Topic;

/// A stream of records with keys `K` and values `V`. Methods add to the topology; nothing runs yet.
pub struct KStream<K, V> {
    graph: Rc<RefCell<Graph>>,
    node: NodeId,
    /// The key is not the one that the partition was chosen by: grouping needs a repartition topic.
    key_changed: bool,
    /// The serde whose bytes the keys of the run are, if they can be used as they stand.
    raw_key: Option<TypeId>,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for KStream<K, V> {
    fn clone(&self) -> Self {
        Self { graph: Rc::clone(&self.graph), ..*self }
    }
}

/// What identifies a serde by its type alone: only one without fields has no other.
pub(super) fn raw_key<S: 'static>(_serde: &S) -> Option<TypeId> {
    if size_of::<S>() == 0 { Some(TypeId::of::<S>()) } else { None }
}

impl<K: Data, V: Data> KStream<K, V> {
    pub(super) fn new(
        graph: Rc<RefCell<Graph>>,
        node: NodeId,
        key_changed: bool,
        raw_key: Option<TypeId>,
    ) -> Self {
        Self { graph, node, key_changed, raw_key, of: PhantomData }
    }

    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    fn add(
        &self,
        description: &str,
        touches: Touches,
        make: impl Fn(&Wiring) -> Box<dyn Operator> + Send + Sync + 'static,
    ) -> NodeId {
        self.graph.borrow_mut().add::<K, V>(description, &[self.node], touches, make)
    }

    /// Keeps the records for which `keep` holds.
    pub fn filter(&self, keep: impl Fn(&Record<K, V>) -> bool + Send + Sync + 'static) -> KStream<K, V> {
        let keep = Arc::new(keep);
        let node = self.add("filter", Touches::default(), move |wiring| {
            Box::new(Filter {
                input: SlotId::new(wiring.input),
                keep: Arc::clone(&keep),
                outlet: Outlet::<K, V>::new(&wiring.outputs),
            })
        });
        KStream { node, ..self.clone() }
    }

    /// Drops the records for which `drop` holds.
    pub fn filter_not(&self, drop: impl Fn(&Record<K, V>) -> bool + Send + Sync + 'static) -> KStream<K, V> {
        self.filter(move |record| !drop(record))
    }

    /// Makes another record of each. Its key counts as changed, so that grouping by it repartitions; to
    /// change only values, use [`map_values`](Self::map_values).
    pub fn map<K2: Data, V2: Data>(
        &self,
        change: impl Fn(Record<K, V>) -> Record<K2, V2> + Send + Sync + 'static,
    ) -> KStream<K2, V2> {
        let node = self.change("map", move |record| [change(record)]);
        KStream::new(Rc::clone(&self.graph), node, true, None)
    }

    /// Makes any number of records of each. Their keys count as changed.
    pub fn flat_map<K2: Data, V2: Data, I>(
        &self,
        change: impl Fn(Record<K, V>) -> I + Send + Sync + 'static,
    ) -> KStream<K2, V2>
    where
        I: IntoIterator<Item = Record<K2, V2>> + 'static,
    {
        let node = self.change("flat map", change);
        KStream::new(Rc::clone(&self.graph), node, true, None)
    }

    /// Makes another value of each. Key, timestamp and headers stay.
    pub fn map_values<V2: Data>(&self, change: impl Fn(V) -> V2 + Send + Sync + 'static) -> KStream<K, V2> {
        let node = self.change("map values", move |record| [record.map_value(&change)]);
        KStream::new(Rc::clone(&self.graph), node, self.key_changed, self.raw_key)
    }

    /// Makes any number of values of each; they all get its key, timestamp and headers.
    pub fn flat_map_values<V2: Data, I>(
        &self,
        change: impl Fn(V) -> I + Send + Sync + 'static,
    ) -> KStream<K, V2>
    where
        I: IntoIterator<Item = V2> + 'static,
    {
        let node = self.change("flat map values", move |record: Record<K, V>| {
            let empty = record.derive(record.key.clone(), (), record.timestamp);
            let values = change(record.value);
            values.into_iter().map(move |value| empty.clone().with_value(value))
        });
        KStream::new(Rc::clone(&self.graph), node, self.key_changed, self.raw_key)
    }

    /// Gives each record another key. Grouping by it repartitions.
    pub fn select_key<K2: Data>(
        &self,
        key: impl Fn(&Record<K, V>) -> K2 + Send + Sync + 'static,
    ) -> KStream<K2, V> {
        let node = self.change("select key", move |record| {
            let key = key(&record);
            [record.with_key(key)]
        });
        KStream::new(Rc::clone(&self.graph), node, true, None)
    }

    fn change<K2: Data, V2: Data, I>(
        &self,
        description: &str,
        change: impl Fn(Record<K, V>) -> I + Send + Sync + 'static,
    ) -> NodeId
    where
        I: IntoIterator<Item = Record<K2, V2>> + 'static,
    {
        let change = Arc::new(change);
        self.add(description, Touches::default(), move |wiring| {
            Box::new(FlatMap {
                input: SlotId::<K, V>::new(wiring.input),
                change: Arc::clone(&change),
                outlet: Outlet::<K2, V2>::new(&wiring.outputs),
            })
        })
    }

    /// Shows each record to `look` and passes it on. After a crash it is shown again: what `look` does is
    /// not part of the transaction.
    pub fn peek(&self, look: impl Fn(&Record<K, V>) + Send + Sync + 'static) -> KStream<K, V> {
        let look = Arc::new(look);
        let node = self.add("peek", Touches::default(), move |wiring| {
            Box::new(Peek {
                input: SlotId::new(wiring.input),
                look: Arc::clone(&look),
                outlet: Outlet::<K, V>::new(&wiring.outputs),
            })
        });
        KStream { node, ..self.clone() }
    }

    /// Shows each record to `look`, as [`peek`](Self::peek) does, and ends the stream.
    pub fn for_each(&self, look: impl Fn(&Record<K, V>) + Send + Sync + 'static) {
        self.peek(look);
    }

    /// Both streams as one. Records of the two are taken in the order of their timestamps, as far as they
    /// are known.
    pub fn merge(&self, other: &KStream<K, V>) -> KStream<K, V> {
        let make = |wiring: &Wiring| -> Box<dyn Operator> {
            Box::new(Relay { input: SlotId::new(wiring.input), outlet: Outlet::<K, V>::new(&wiring.outputs) })
        };
        let parents = [self.node, other.node];
        let node = self.graph.borrow_mut().add::<K, V>("merge", &parents, Touches::default(), make);
        let raw_key = self.raw_key.filter(|_| self.raw_key == other.raw_key);
        KStream::new(Rc::clone(&self.graph), node, self.key_changed || other.key_changed, raw_key)
    }

    /// Groups by the key. If it was changed, the records go through the topic `<app>-<name>-repartition`
    /// first, so that all of one key meet in one task; if not, only the key's serde is used. Records
    /// without a key are dropped and counted.
    pub fn group_by_key<KS: Serde<K>>(
        &self,
        grouped: Grouped<KS, impl Serde<V>>,
    ) -> KGroupedStream<K, V, KS> {
        let Grouped { name, key, value } = grouped;
        if !self.key_changed {
            return self.grouped(key);
        }
        let topic = Topic::repartition(name);
        self.sink(topic.clone(), key.clone(), value.clone(), true);
        let stream = super::builder::source(&self.graph, topic, key.clone(), value);
        stream.grouped(key)
    }

    fn grouped<KS: Serde<K>>(&self, key: KS) -> KGroupedStream<K, V, KS> {
        let raw_keys = self.raw_key.is_some() && self.raw_key == raw_key(&key);
        KGroupedStream::new(Rc::clone(&self.graph), self.node, key, raw_keys)
    }

    /// Groups by another key: [`select_key`](Self::select_key), then [`group_by_key`](Self::group_by_key).
    pub fn group_by<K2: Data, KS: Serde<K2>>(
        &self,
        grouped: Grouped<KS, impl Serde<V>>,
        key: impl Fn(&Record<K, V>) -> K2 + Send + Sync + 'static,
    ) -> KGroupedStream<K2, V, KS> {
        self.select_key(key).group_by_key(grouped)
    }

    /// Writes the stream to a topic, which must exist. The partition is chosen by the key's bytes, as every
    /// Kafka client does it.
    pub fn to(&self, topic: impl Into<ByteString>, key: impl Serde<K>, value: impl Serde<V>) {
        self.sink(Topic::named(topic), key, value, false);
    }

    fn sink(&self, topic: Topic, key: impl Serde<K>, value: impl Serde<V>, needs_key: bool) {
        let touches = Touches { sink: Some(topic.clone()), ..Touches::default() };
        self.add(&format!("write {topic}"), touches, move |wiring| {
            Box::new(Sink {
                input: SlotId::<K, V>::new(wiring.input),
                sink: wiring.sink,
                key: key.clone(),
                value: value.clone(),
                needs_key,
                scratch: Default::default(),
                of: PhantomData,
            })
        });
    }
}
