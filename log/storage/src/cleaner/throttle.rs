//! Keeping within the I/O budget.

use std::time::{Duration, Instant};

/// Slows its caller down to a number of bytes per second.
#[derive(Debug)]
pub(super) struct Throttle {
    bytes_per_second: u64,
    /// Bytes not paid for yet.
    owed: u64,
    /// Until when what was paid for lasts.
    paid_until: Option<Instant>,
}

/// Bytes that are collected before the clock is asked.
const STEP: u64 = 256 << 10;
/// The longest that is slept at a time: whoever wants the caller to stop does not wait longer.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

impl Throttle {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), owed: 0, paid_until: None }
    }

    /// Notes that bytes were read or written, and sleeps as long as they cost. Returns false when `should_stop` does
    /// not want to wait for that, nor for what would follow.
    pub(super) fn spend(&mut self, bytes: u64, should_stop: &dyn Fn() -> bool) -> bool {
        self.owed += bytes;
        if self.owed < STEP {
            return true;
        }
        let cost = self.cost();
        self.owed = 0;
        let now = Instant::now();
        // What was not used in time is lost: a budget is no savings account.
        let until = self.paid_until.map_or(now, |paid| paid.max(now)) + cost;
        self.paid_until = Some(until);
        loop {
            if should_stop() {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LONGEST_SLEEP));
        }
    }

    fn cost(&self) -> Duration {
        let nanos = u128::from(self.owed) * 1_000_000_000 / u128::from(self.bytes_per_second);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn bytes_take_their_time() {
        let begin = Instant::now();
        let mut throttle = Throttle::new(10 << 20);
        for _ in 0..16 {
            assert!(throttle.spend(64 << 10, &|| false));
        }
        assert!(begin.elapsed() >= Duration::from_millis(99), "a MiB at ten in a second");
        let begin = Instant::now();
        let mut unlimited = Throttle::new(u64::MAX);
        assert!(unlimited.spend(1 << 40, &|| false));
        assert!(begin.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn a_stop_is_felt_at_once() {
        let asked = Cell::new(0);
        let stop_soon = || {
            asked.set(asked.get() + 1);
            asked.get() > 2
        };
        assert!(!Throttle::new(1).spend(1 << 30, &stop_soon));
        assert_eq!(asked.get(), 3);
    }
}
