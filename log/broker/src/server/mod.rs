//! Connections: what arrives on a socket or from within the process, in order, through one gate.

mod budget;
mod gate;
mod input;
mod listener;
mod order;
mod sendfile;

pub(crate) use budget::MemoryBudget;
pub use gate::{AllowAll, Gate, Principal, Verdict};
pub(crate) use order::{Answer, Order};
