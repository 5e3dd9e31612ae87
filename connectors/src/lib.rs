//! Files and Parquet, in and out.
//!
//! [`files`] cuts text, JSON lines and CSV into records; [`parquet`] writes Arrow batches as Parquet files that
//! appear whole or not at all.

mod error;
pub mod files;
pub mod parquet;
mod timestamp;

pub use error::Error;
pub use timestamp::{format_time, looks_like_date, parse_time};
