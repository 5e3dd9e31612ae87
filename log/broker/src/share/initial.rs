//! Where a share group begins to read a partition.

use thalweg_controller::ShareOffsetReset;
use thalweg_protocol::{ErrorCode, Offset};
use thalweg_storage::TimeQuery;

use super::settings::ShareSettings;
use crate::error::storage_code;
use crate::partition::Partition;

/// Where a group with these settings begins to read `partition` at `now_ms` of the wall clock. May block on the disk.
///
/// # Errors
/// KAFKA_STORAGE_ERROR.
pub(crate) fn start_offset(
    partition: &Partition,
    settings: &ShareSettings,
    now_ms: i64,
) -> Result<Offset, ErrorCode> {
    let log = partition.log();
    let end = if settings.reads_committed { log.last_stable_offset() } else { log.high_watermark() };
    match settings.auto_offset_reset {
        ShareOffsetReset::Earliest => Ok(log.log_start_offset()),
        ShareOffsetReset::Latest => Ok(end),
        ShareOffsetReset::ByDuration(ms) => {
            let since = TimeQuery::At(now_ms.saturating_sub(ms));
            let found = log.offset_for_time(since).map_err(|error| storage_code(&error))?;
            Ok(found.map_or(end, |found| found.offset.min(end)))
        }
    }
}
