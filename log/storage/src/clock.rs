//! The seam to the clocks.

use std::fmt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Tells the time. Storage uses the wall clock for append timestamps, retention and compaction, and the monotonic one for how
/// long something has been so; neither to order anything.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Milliseconds since 1970, UTC. May jump in either direction.
    fn now_ms(&self) -> i64;

    /// Milliseconds since an arbitrary moment. Never goes back, and takes part in no jump.
    fn monotonic_ms(&self) -> i64;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    /// When monotonic time begins.
    origin: Instant,
}

impl SystemClock {
    /// Clocks whose monotonic time begins now.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now_ms(&self) -> i64 {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
    }

    fn monotonic_ms(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

/// How the wall clock went, to tell its jumps from the time that passes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// What the clocks showed last.
    last: Option<(i64, i64)>,
}

impl Pace {
    /// Begins with what the clocks show.
    pub(crate) fn of(clock: &dyn Clock) -> Self {
        Self { last: Some((clock.now_ms(), clock.monotonic_ms())) }
    }

    /// How much more than the time that has passed, or less, the wall clock has moved on since the last call.
    pub(crate) fn jumped_ms(&mut self, now_ms: i64, monotonic_ms: i64) -> i64 {
        let (last_now_ms, last_monotonic_ms) =
            self.last.replace((now_ms, monotonic_ms)).unwrap_or((now_ms, monotonic_ms));
        let passed_ms = monotonic_ms.saturating_sub(last_monotonic_ms);
        now_ms.saturating_sub(last_now_ms).saturating_sub(passed_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_the_time_that_passed_is_a_jump() {
        let mut pace = Pace::default();
        for (now_ms, monotonic_ms, jumped_ms) in [
            (1_000, 50, 0),
            (1_500, 550, 0),
            (90_000_000, 1_050, 89_998_000),
            (90_000_010, 1_060, 0),
            (5, 1_160, -90_000_105),
            (i64::MAX, 1_160, i64::MAX - 5),
        ] {
            assert_eq!(pace.jumped_ms(now_ms, monotonic_ms), jumped_ms, "at {now_ms}");
        }
    }
}
