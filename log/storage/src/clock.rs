//! The seam to the wall clock.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time. Storage uses it for append timestamps, retention and the expiry of producers, never to
/// order anything.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Milliseconds since 1970, UTC. May jump in either direction.
    fn now_ms(&self) -> i64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now_ms(&self) -> i64 {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
    }
}
