//! The seam between the task runtime and what runs in it.
//!
//! The runtime owns polling, the store handles, restore, timers and the commit. A [`Program`] gets raw
//! record batches and owns decoding, ordering and computing. The typed DSL is one; SQL compiles to another.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::inputs::Inputs;
use crate::output::Output;
use crate::state::StateStore;

/// A task: one sub-topology on one partition of each of its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// The index of the sub-topology in its [`Topology`](crate::Topology).
    pub subtopology: u32,
    /// The partition of the sources that it reads.
    pub partition: i32,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.subtopology, self.partition)
    }
}

impl FromStr for TaskId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (subtopology, partition) = text.split_once('_').ok_or(())?;
        Ok(Self {
            subtopology: subtopology.parse().map_err(drop)?,
            partition: partition.parse().map_err(drop)?,
        })
    }
}

/// What a task computes. One instance serves one task, on one thread at a time.
///
/// All calls are synchronous and on a dedicated thread: a program may use the processor as long as it likes
/// within a batch, but must not block.
///
/// **State.** What must survive lies in the task's stores and in the checkpoint ([`save`](Self::save)).
/// Everything else is lost when the task moves, and is dropped when a transaction is aborted: the runtime
/// then makes a new instance and replays from the last commit.
pub trait Program: Send {
    /// Takes records off `inputs` and processes them: at least one run, if one is there, and preferably no
    /// more than a few thousand records, so that commits stay on time. Called when records wait; when the
    /// program takes none (because it waits for another input), it is called again when more have arrived.
    ///
    /// # Errors
    /// An error stops the application, except that what `task` returned is passed through.
    fn process(&mut self, inputs: &mut Inputs, task: &mut TaskContext) -> Result<(), Error>;

    /// The wall-clock time, in ms since 1970, at which [`punctuate`](Self::punctuate) is to be called;
    /// `None` for never. (Stream time is the program's own: it sees the timestamps.)
    fn next_punctuation(&self) -> Option<i64> {
        None
    }

    /// Called when the wall clock has reached [`next_punctuation`](Self::next_punctuation).
    ///
    /// # Errors
    /// As [`process`](Self::process).
    fn punctuate(&mut self, _now_ms: i64, _task: &mut TaskContext) -> Result<(), Error> {
        Ok(())
    }

    /// Called first thing in every commit: brings out what was held back (coalesced results) and writes
    /// state that is only in the program's memory into the stores.
    ///
    /// # Errors
    /// As [`process`](Self::process).
    fn before_commit(&mut self, _task: &mut TaskContext) -> Result<(), Error> {
        Ok(())
    }

    /// Appends to `checkpoint` what must be restored together with the stores and does not lie in them, such
    /// as stream time. At most [`CHECKPOINT_LIMIT`] bytes: it travels in the metadata of committed offsets.
    fn save(&self, _checkpoint: &mut Vec<u8>) {}

    /// Takes up what [`save`](Self::save) wrote at the last commit. Called once, after the stores are
    /// restored and before anything else; not called for a task that never committed.
    ///
    /// # Errors
    /// When the bytes are not what `save` writes.
    fn load(&mut self, _checkpoint: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

/// The most bytes that [`Program::save`] may write. Kafka takes 4,096 bytes of metadata an offset.
pub const CHECKPOINT_LIMIT: usize = 1024;

/// Makes the program of each task of a sub-topology. A closure from [`TaskId`] to a boxed program is one.
pub trait ProgramFactory: Send + Sync {
    /// Makes the program of `task`.
    fn create(&self, task: TaskId) -> Box<dyn Program>;
}

impl<F> ProgramFactory for F
where
    F: Fn(TaskId) -> Box<dyn Program> + Send + Sync,
{
    fn create(&self, task: TaskId) -> Box<dyn Program> {
        self(task)
    }
}

/// What a task hands its program: the stores, in the order in which the sub-topology names them, the
/// output, and counters. The parts are fields so that they can be borrowed side by side.
pub struct TaskContext {
    /// The task.
    pub task: TaskId,
    /// The stores of the sub-topology, in its order.
    pub stores: Vec<StateStore>,
    /// Where results go.
    pub output: Output,
    /// What is counted beside the results.
    pub counters: Counters,
}

/// What a program counts beside its results; reported at every commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records dropped because their window had closed.
    pub late: u64,
    /// Records dropped because they had no key to group by.
    pub without_key: u64,
}
