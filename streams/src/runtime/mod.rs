//! The task runtime.

mod commit;
mod committer;
mod events;
mod failpoint;
mod log;
mod opening;
mod plan;
mod streams;
mod task;

pub use commit::{CommitOrder, CommitStep};
pub use events::{Committed, Event};
pub use failpoint::{Failpoint, Moment, TestHooks};
pub use streams::Streams;

pub(crate) use committer::commit;
pub(crate) use log::{CommittedInput, TransactionLog};
pub(crate) use opening::{LastCommit, Opening, compare, replays};
pub(crate) use plan::Plan;
pub(crate) use task::Task;
