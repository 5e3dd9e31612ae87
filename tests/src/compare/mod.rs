//! `make bench`: Thalweg and its peers under the same work, in one run.
//!
//! Each side has a process of its own with its own defaults; the rounds alternate, so that both meet the same
//! machine. What is published are medians, and the median of the rounds' ratios.

pub mod broker;
pub mod jobs;
pub mod latency;
pub mod limits;
pub mod load;
pub mod meter;
pub mod report;
pub mod transactions;
