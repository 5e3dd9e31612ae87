//! The task runtime.

mod commit;
mod failpoint;

pub use commit::{CommitOrder, CommitStep};
pub use failpoint::{Failpoint, Moment, TestHooks};
