//! The harness of the whole-system tests and benchmarks: real processes, real data, peers. Not published.

pub mod compare;
pub mod counting;
pub mod feed;
pub mod flights;
pub mod history;
pub mod node;
pub mod peers;
pub mod process;

use anyhow::Context;

/// A number from the environment, such as how often something is killed, or else the usual one.
///
/// # Errors
/// When what stands there is no number.
pub fn setting(name: &str, usual: u64) -> anyhow::Result<u64> {
    std::env::var(name).map_or(Ok(usual), |text| text.parse().with_context(|| name.to_owned()))
}
