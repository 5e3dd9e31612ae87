//! Testing topologies without a broker.

mod driver;
mod memory_log;

pub use driver::{StateAfterCrash, TestDriver};
pub use memory_log::{NextEnd, WrittenRecord};
