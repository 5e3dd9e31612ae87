//! Arrow batches as Parquet files that appear whole or not at all.

mod writer;

pub use writer::{ParquetDirectory, WrittenFile};
