//! Stream processing on the log.

mod assignment;
mod config;
mod dsl;
mod error;
mod inputs;
mod operators;
mod output;
mod program;
mod records;
mod runtime;
mod serde;
mod state;
pub mod testing;
mod topology;

pub use config::{Guarantee, StartAt, StateKind, StreamsConfig, Undecodable};
pub use dsl::{Data, Grouped, KGroupedStream, KStream, KTable, Materialized, StreamsBuilder, WindowedStream};
pub use error::{Error, ErrorKind};
pub use inputs::{InputRun, Inputs};
pub use operators::{Emit, Record, TimeWindows};
pub use output::{
    DEAD_LETTER_OFFSET, DEAD_LETTER_PARTITION, DEAD_LETTER_REASON, DEAD_LETTER_TOPIC, Output, PartitionChoice,
};
pub use program::{CHECKPOINT_LIMIT, Counters, Program, ProgramFactory, TaskContext, TaskId};
pub use records::{InputBatch, RecordBuffer};
pub use runtime::{CommitOrder, CommitStep, Committed, Event, Failpoint, Moment, Streams, TestHooks};
pub use serde::{
    BigEndian, Json, Optional, RawBytes, Serde, SerdeError, Text, Unit, WindowStoreKey, WindowedKey,
};
pub use state::{
    OwnedValue, StateStore, StoreKind, StoreSpec, StoreView, StoredValue, StoredValues, TimeWindow,
    WINDOW_SUFFIX, Windowed, split_windowed_key, windowed_key,
};
/// A record as it lies in a batch: bytes, nothing decoded.
pub use thalweg_protocol::record::{Header, Headers, Record as RawRecord};
pub use topology::{Subtopology, Topic, Topology};
