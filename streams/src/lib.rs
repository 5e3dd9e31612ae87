//! Stream processing on the log: a library, in the process of whoever uses it.
//!
//! Begin with [`StreamsBuilder`], which makes a [`Topology`] of typed streams, and run it with
//! [`Streams::start`], or in a test with [`testing::TestDriver`]. A front end of one's own implements
//! [`Program`] and puts [`Subtopology`]s together; it gets raw batches, stores and outputs, and everything
//! below is the same.
//!
//! # How a record goes through
//!
//! A *task* is a sub-topology on one partition of its sources. `runtime/stream_thread.rs` is the loop of a
//! thread that runs some tasks:
//!
//! 1. **poll**: what was fetched, and what the group has decided. New tasks are opened by
//!    `runtime/opener.rs` on a thread of its own: it compares the task's state with what is committed
//!    (`runtime/opening.rs`), replays the changelogs if the state is behind (`runtime/restore.rs`), and hands
//!    the task over.
//! 2. **enqueue**: batches are indexed into the task's queues (`records.rs`, `inputs.rs`).
//! 3. **process**: the program takes runs off the queues. The DSL's (`operators/program.rs`) decodes a run
//!    and passes it from operator to operator, a batch at a time. State is read and written through
//!    [`StateStore`]s, whose changes stay in memory (`state/overlay.rs`). Results are handed to the
//!    producer, into the open transaction.
//! 4. **punctuate**: programs that asked for it are called by the wall clock.
//! 5. **commit** (`runtime/committer.rs`): outputs and changelogs are sent and acknowledged, the positions of
//!    the inputs become part of the transaction, it is ended, and then each task's state is written at once,
//!    changes and checkpoint together ([`CommitStep`]). State is never ahead of the log: after a crash it is
//!    at some earlier commit, and the committed tail of the changelog brings it forward.
//!
//! When a commit fails, everything since the last one is dropped and the tasks are opened again. When its
//! outcome is not known, the thread fences itself off and looks it up.
//!
//! `runtime/live.rs` decides when history is done; [`Event`]s tell. Formats are drawn in
//! `docs/formats/streams-state.md`.
//!
//! # Features
//!
//! `rocksdb` (default): state in RocksDB. Without it state is in memory, and restored from its changelog at
//! every start.

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
pub use error::{Error, ErrorKind, TopicChange};
pub use inputs::{InputRun, Inputs};
pub use operators::{Emit, Record, TimeWindows};
pub use output::{
    DEAD_LETTER_OFFSET, DEAD_LETTER_PARTITION, DEAD_LETTER_REASON, DEAD_LETTER_TOPIC, Output, PartitionChoice,
};
pub use program::{CHECKPOINT_LIMIT, Counters, Program, ProgramFactory, TaskContext, TaskId};
pub use records::{InputBatch, RecordBuffer};
pub use runtime::{CommitOrder, CommitStep, Committed, Event, Failpoint, Fault, Moment, Streams, TestHooks};
pub use serde::{
    BigEndian, Json, Optional, RawBytes, Serde, SerdeError, Text, Unit, WindowStoreKey, WindowedKey,
};
pub use state::{
    OwnedValue, StateStore, StoreKind, StoreSpec, StoreView, StoredValue, StoredValues, TimeWindow,
    WINDOW_SUFFIX, Windowed, split_windowed_key, windowed_key,
};
/// How to reach the log; see [`Streams::start`].
pub use thalweg_client::ClientConfig;
/// A record as it lies in a batch: bytes, nothing decoded.
pub use thalweg_protocol::record::{Header, Headers, Record as RawRecord};
pub use topology::{Subtopology, Topic, Topology};
