//! What can be set on a [`Session`](crate::Session): plain data, each field with unit, default and reason.

use serde::{Deserialize, Serialize};

/// How topics become tables, and how much of a query is told about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SqlConfig {
    /// How many records of each partition, counted from the first there is, are looked at to infer the columns
    /// of a topic that no `CREATE TABLE` declares. Default: 1000: a few fetches at most.
    pub sample_records: usize,
    /// How many bytes of each partition that sample reads at most. Default: 4 MiB, so that large records do not
    /// make every statement slow.
    pub sample_bytes: usize,
    /// After how many rows a batch goes to the operators. Default: 8192, DataFusion's own size; it may be more
    /// when a single batch of the log holds more.
    pub batch_rows: usize,
    /// How many records that did not decode are told with place and reason; all are counted. Default: 10.
    pub undecodable_shown: usize,
    /// After how many rows `COPY` begins a new Parquet file. Default: 10 million.
    pub rows_per_file: u64,
}

impl Default for SqlConfig {
    fn default() -> Self {
        Self {
            sample_records: 1000,
            sample_bytes: 4 << 20,
            batch_rows: 8192,
            undecodable_shown: 10,
            rows_per_file: 10_000_000,
        }
    }
}
