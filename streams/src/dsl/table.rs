//! A table: the last value of each key.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use super::graph::{Graph, NodeId};
use super::{Data, KStream};

/// The last value of each key, as changes arrive.
pub struct KTable<K, V> {
    graph: Rc<RefCell<Graph>>,
    node: NodeId,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K: Data, V: Data> KTable<K, V> {
    pub(super) fn new(graph: Rc<RefCell<Graph>>, node: NodeId) -> Self {
        Self { graph, node, of: PhantomData }
    }

    /// The table's changes as a stream. Grouping it by the table's own key needs no repartition topic.
    pub fn to_stream(&self) -> KStream<K, V> {
        KStream::new(Rc::clone(&self.graph), self.node, false, None)
    }

    /// The table with other values.
    pub fn map_values<V2: Data>(&self, change: impl Fn(V) -> V2 + Send + Sync + 'static) -> KTable<K, V2> {
        let stream = self.to_stream().map_values(change);
        KTable::new(Rc::clone(&self.graph), stream.node())
    }
}
