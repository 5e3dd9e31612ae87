//! The typed DSL: streams, grouped streams and tables, after Kafka Streams.

mod builder;
mod graph;
mod grouped;
mod stream;
mod table;
mod windowed;

pub use builder::StreamsBuilder;
pub use grouped::{Grouped, KGroupedStream, Materialized};
pub use stream::KStream;
pub use table::KTable;
pub use windowed::WindowedStream;

/// What keys, values and aggregates must be: cheap enough to clone, and free to move between threads.
pub trait Data: Clone + Send + 'static {}

impl<T: Clone + Send + 'static> Data for T {}
