//! The wall clock, for the timestamps of records. Everything else goes by tokio's clock, which a test can
//! hold.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time in ms since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "records are dated with the wall clock, and nothing is decided by it"
)]
pub(crate) fn wall_clock_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
