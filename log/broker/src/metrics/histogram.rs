//! How often something took how long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bound of the first bucket, in µs; that of each further one is twice as large.
const FIRST_BOUND_US: u64 = 64;

/// With so many buckets the last bound is 67 s.
const BUCKETS: usize = 21;

/// Durations, counted by powers of two. Any thread may count, without a lock.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// The last one is for what is above all bounds.
    counts: [AtomicU64; BUCKETS + 1],
    sum_us: AtomicU64,
}

/// What a [`Histogram`] had counted at one moment, more or less: a scrape does not stop the counting.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    /// Each bound in seconds, with how many were at or below it.
    pub(super) up_to: Vec<(f64, u64)>,
    pub(super) count: u64,
    pub(super) sum_seconds: f64,
}

impl Histogram {
    pub(super) fn count(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(micros)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn counted(&self) -> Counted {
        let mut count = 0;
        let mut up_to = Vec::with_capacity(BUCKETS);
        for (power, bucket) in self.counts.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            if power < BUCKETS {
                up_to.push(((FIRST_BOUND_US << power) as f64 / 1e6, count));
            }
        }
        Counted { up_to, count, sum_seconds: self.sum_us.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

/// The first bucket whose bound is not below `micros`.
fn bucket(micros: u64) -> usize {
    let units = micros.div_ceil(FIRST_BOUND_US).max(1);
    (units.next_power_of_two().trailing_zeros() as usize).min(BUCKETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_that_holds_it() {
        let cases =
            [(0, 0), (1, 0), (64, 0), (65, 1), (128, 1), (129, 2), (1 << 26, 20), ((1 << 26) + 1, 21)];
        for (micros, expected) in cases {
            assert_eq!(bucket(micros), expected, "{micros} µs");
        }
        assert_eq!(bucket(u64::MAX / 2), BUCKETS);
        let histogram = Histogram::default();
        for micros in [10, 64, 100, 90_000_000] {
            histogram.count(Duration::from_micros(micros));
        }
        let counted = histogram.counted();
        assert_eq!((counted.count, counted.up_to.len()), (4, BUCKETS));
        assert_eq!(counted.up_to[..3], [(0.000_064, 2), (0.000_128, 3), (0.000_256, 3)]);
        assert_eq!(counted.up_to[BUCKETS - 1], (67.108_864, 3));
        assert!((counted.sum_seconds - 90.000_174).abs() < 1e-9);
    }
}
