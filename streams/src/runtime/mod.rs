//! The task runtime.

mod client_error;
mod client_log;
mod commit;
mod committer;
mod events;
mod failpoint;
mod live;
mod live_monitor;
mod log;
mod opener;
mod opening;
mod plan;
mod purge;
mod restore;
mod shared;
mod stream_thread;
mod streams;
mod task;
mod topic_watch;
mod topics;
mod waiting;

pub use commit::{CommitOrder, CommitStep};
pub use events::{Committed, Event};
pub use failpoint::{Failpoint, Fault, Moment, TestHooks};
pub use streams::Streams;

pub(crate) use committer::commit;
pub(crate) use log::{CommittedInput, TransactionLog};
pub(crate) use opening::{LastCommit, Opening, compare, replays};
pub(crate) use plan::Plan;
pub(crate) use task::Task;
