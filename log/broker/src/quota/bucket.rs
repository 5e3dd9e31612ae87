//! Counts the use of something of which there is so much a second.

use std::time::Duration;

use tokio::time::Instant;

/// For how long what is not used is saved up: whoever was idle may use that much at once. Kafka looks at as many seconds
/// (`quota.window.num` of them).
pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// The longest pause that a client is asked for at a time. What is still overdrawn then is asked for the next time.
const LONGEST_PAUSE: Duration = WINDOW;

/// So much a second flows in, up to what [`WINDOW`] brings; it may be overdrawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    level: f64,
    /// When it had this level.
    at: Instant,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(rate: f64, now: Instant) -> Self {
        Self { level: rate * WINDOW.as_secs_f64(), at: now }
    }

    /// Takes `amount` out. Returns how long it takes until it is no longer overdrawn.
    pub(super) fn take(&mut self, amount: f64, rate: f64, now: Instant) -> Duration {
        self.fill(rate, now);
        self.level -= amount;
        self.pause(rate)
    }

    /// How long it takes until it is no longer overdrawn.
    pub(super) fn look(&mut self, rate: f64, now: Instant) -> Duration {
        self.fill(rate, now);
        self.pause(rate)
    }

    /// Whether it is as good as a new one by now.
    pub(super) fn is_full(&self, rate: f64, now: Instant) -> bool {
        let mut later = *self;
        later.fill(rate, now);
        later.level >= rate * WINDOW.as_secs_f64()
    }

    fn fill(&mut self, rate: f64, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + rate * passed).min(rate * WINDOW.as_secs_f64());
        self.at = now;
    }

    fn pause(&self, rate: f64) -> Duration {
        match self.level < 0.0 {
            true => Duration::try_from_secs_f64(-self.level / rate)
                .map_or(LONGEST_PAUSE, |pause| pause.min(LONGEST_PAUSE)),
            false => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_up_can_be_used_at_once_and_what_is_overdrawn_has_to_be_waited_for() {
        let start = Instant::now();
        let mut bucket = Bucket::new(100.0, start);
        // (at which ms, how much is taken, how many ms the pause is)
        for (at_ms, amount, pause_ms) in [
            (0, 400.0, 0),
            (0, 600.0, 0),
            (0, 50.0, 500),
            (250, 0.0, 250),
            (500, 0.0, 0),
            (1_500, 100.0, 0),
            (1_500, 100.0, 1_000),
            (1_500, 10_000.0, 10_000),
            (60_000, 0.0, 10_000),
            (202_500, 1_000.0, 0),
            (202_500, 1.0, 10),
        ] {
            let now = start + Duration::from_millis(at_ms);
            assert_eq!(bucket.take(amount, 100.0, now).as_millis(), pause_ms, "at {at_ms}");
        }
    }

    #[test]
    fn over_a_long_time_no_more_flows_than_its_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(1000.0, start);
        let (mut now, mut used) = (start, 0.0);
        while now < start + Duration::from_secs(600) {
            used += 700.0;
            now += bucket.take(700.0, 1000.0, now);
            now += Duration::from_micros(10);
        }
        let fair = 1000.0 * 610.0;
        assert!((fair - 1000.0..fair + 1000.0).contains(&used), "{used}");
    }

    #[test]
    fn a_lower_rate_holds_at_once() {
        let start = Instant::now();
        let mut bucket = Bucket::new(1000.0, start);
        assert_eq!(bucket.take(20.0, 1.0, start), Duration::from_secs(10));
        assert!(!bucket.is_full(1.0, start + Duration::from_secs(19)));
        assert!(bucket.is_full(1.0, start + Duration::from_secs(20)));
    }
}
