//! The pauses between retries.

use std::time::Duration;

use fastrand::Rng;

/// Doubling pauses with ±20 % jitter, so that clients which failed together do not come back together.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first_ms: u64,
    max_ms: u64,
    attempts: u32,
    rng: Rng,
}

impl Backoff {
    pub(crate) fn new(first_ms: u64, max_ms: u64, rng: Rng) -> Self {
        Self { first_ms, max_ms: max_ms.max(first_ms), attempts: 0, rng }
    }

    /// The pause before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        let doubled = self.first_ms.saturating_mul(1 << self.attempts.min(20)).min(self.max_ms);
        self.attempts = self.attempts.saturating_add(1);
        Duration::from_millis(doubled).mul_f64(0.8 + 0.4 * self.rng.f64())
    }

    /// Begins again with the first pause.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit_and_vary_by_a_fifth() {
        let mut backoff = Backoff::new(50, 1_000, Rng::with_seed(1));
        for expected in [50, 100, 200, 400, 800, 1_000, 1_000] {
            let pause = backoff.next().as_secs_f64() * 1_000.0;
            assert!((0.79..1.21).contains(&(pause / f64::from(expected))), "{pause} ms for {expected}");
        }
        backoff.reset();
        assert!(backoff.next().as_millis() <= 60);
    }
}
