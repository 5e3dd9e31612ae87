//! Where a topology begins.

use std::cell::RefCell;
use std::rc::Rc;

use bytestring::ByteString;

use super::graph::{Graph, Touches};
use super::{Data, KStream};
use crate::error::Error;
use crate::operators::{Outlet, Source};
use crate::serde::Serde;
use crate::topology::{Topic, Topology};

/// Builds a topology out of typed streams.
///
/// ```
/// use thalweg_streams::{BigEndian, Grouped, Json, StreamsBuilder, Text};
///
/// #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// struct Flight {
///     carrier: String,
/// }
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("flights", Text, Json)
///     .group_by(Grouped::new("by-carrier", Text, Json), |flight| {
///         let flight: &Flight = &flight.value;
///         flight.carrier.clone()
///     })
///     .count("flights-per-carrier")
///     .to_stream()
///     .to("carriers", Text, BigEndian);
/// let topology = builder.build()?;
/// println!("{topology}");
/// # Ok::<(), thalweg_streams::Error>(())
/// ```
#[derive(Default)]
pub struct StreamsBuilder {
    graph: Rc<RefCell<Graph>>,
}

impl StreamsBuilder {
    /// A builder without streams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a topic. A record whose key or value does not decode goes to the dead-letter topic; a null key
    /// is `None`, a null value is what [`Optional`](crate::Optional) is for.
    pub fn stream<K: Data, V: Data>(
        &self,
        topic: impl Into<ByteString>,
        key: impl Serde<K>,
        value: impl Serde<V>,
    ) -> KStream<K, V> {
        source(&self.graph, Topic::named(topic), key, value)
    }

    /// The topology.
    ///
    /// # Errors
    /// [`Error::Topology`] when it cannot run, such as when a topic is read twice.
    pub fn build(self) -> Result<Topology, Error> {
        self.graph.take().into_topology()
    }
}

/// Adds a source, of a topic that exists or of an internal one.
pub(super) fn source<K: Data, V: Data, KS: Serde<K>>(
    graph: &Rc<RefCell<Graph>>,
    topic: Topic,
    key: KS,
    value: impl Serde<V>,
) -> KStream<K, V> {
    let raw_key = super::stream::raw_key(&key);
    let touches = Touches { source: Some(topic.clone()), ..Touches::default() };
    let node = graph.borrow_mut().add::<K, V>(format!("read {topic}"), &[], touches, move |wiring| {
        Box::new(Source {
            key: key.clone(),
            value: value.clone(),
            outlet: Outlet::<K, V>::new(&wiring.outputs),
        })
    });
    KStream::new(Rc::clone(graph), node, false, raw_key)
}
