//! The harness of the whole-system tests and benchmarks: real processes, real data, peers. Not published.

pub mod compare;
pub mod counting;
pub mod feed;
pub mod flights;
pub mod history;
pub mod node;
pub mod peers;
pub mod process;
