//! The harness of the whole-system tests and benchmarks: real processes, real data, peers. Not published.

pub mod flights;
pub mod node;
pub mod peers;
pub mod process;
