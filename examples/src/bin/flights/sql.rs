//! SQL over the results.

use std::path::Path;

use thalweg_client::Client;

use crate::Topics;
use crate::results::Results;

/// Asks for the same results in SQL.
pub async fn query(
    _client: &Client,
    _topics: &Topics,
    _airlines: &Path,
    _parquet: &Path,
) -> anyhow::Result<Results> {
    anyhow::bail!("not yet")
}
