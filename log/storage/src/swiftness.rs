//! Whether the disk is so swift that the thread which appended may carry out the round.
//!
//! Handing a round to another thread costs two switches of context and their waits, which is more than a write takes that
//! a fast disk carries out in some ten microseconds. Where writes take longer, threads that serve connections must not wait.
//! On a busy machine many writes seem to: their threads do not run again at once. So it is not the average that counts, but
//! how many are swift. A disk that is slow now and then passes by that count, but what it keeps a thread waiting is paid
//! for: after a long write none is made here for a hundred times as long.

use std::time::{Duration, Instant};

/// A write is swift that takes no longer.
const SWIFT: Duration = Duration::from_micros(300);
/// So many of the last writes count, the newer the more.
const WINDOW: f32 = 16.0;
/// So large a part of them must be swift.
const ENOUGH: f32 = 0.4;

/// Longer than a busy machine keeps a thread waiting that could run.
const LONG: Duration = Duration::from_millis(5);
/// For so many times what it took beyond that no thread that serves connections waits.
const PAUSE: u32 = 100;
/// Nor for longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How swift writes into the journal are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Swiftness {
    /// Which part of the last ones was.
    part: f32,
    /// Until when none counts as swift.
    paused_until: Option<Instant>,
}

impl Swiftness {
    /// Whether a thread that serves connections may wait for one.
    pub(crate) fn is_swift(self, now: Instant) -> bool {
        self.part >= ENOUGH && self.paused_until.is_none_or(|until| until <= now)
    }

    /// One that has just ended took so long, whoever waited for it.
    pub(crate) fn note(&mut self, took: Duration, now: Instant) {
        let this = if took <= SWIFT { 1.0 } else { 0.0 };
        self.part += (this - self.part) / WINDOW;
        if took > LONG {
            self.paused_until = self.paused_until.max(Some(now + ((took - LONG) * PAUSE).min(LONGEST_PAUSE)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many writes that take so long in turn it is swift or is not any more.
    fn changes_after(swiftness: &mut Swiftness, micros: &[u64]) -> Option<usize> {
        let now = Instant::now();
        let before = swiftness.is_swift(now);
        micros.iter().cycle().take(1_000).position(|&micros| {
            swiftness.note(Duration::from_micros(micros), now);
            swiftness.is_swift(now) != before
        })
    }

    #[test]
    fn a_slow_disk_is_noticed_soon_and_a_busy_machine_is_none() {
        let mut swiftness = Swiftness::default();
        assert!(!swiftness.is_swift(Instant::now()), "nothing is known of it");
        assert_eq!(changes_after(&mut swiftness, &[1_000]), None);
        assert_eq!(changes_after(&mut swiftness, &[80]), Some(7));
        assert_eq!(changes_after(&mut swiftness, &[80, 2_000]), None);
        assert_eq!(changes_after(&mut swiftness, &[80]), None);
        assert_eq!(changes_after(&mut swiftness, &[800]), Some(14));
        assert_eq!(changes_after(&mut swiftness, &[800, 2_000, 90]), None);
    }
    /// How long a thread waits within `seconds` for a disk of which every `slow`th write takes `took`, the others 100 µs.
    fn waits(slow: usize, took: Duration, seconds: u64) -> Duration {
        let (mut swiftness, mut waited) = (Swiftness { part: 1.0, paused_until: None }, Duration::ZERO);
        let begun = Instant::now();
        let mut now = begun;
        for write in 1.. {
            let took = if write % slow == 0 { took } else { Duration::from_micros(100) };
            if swiftness.is_swift(now) && took > LONG {
                waited += took;
            }
            now += took;
            swiftness.note(took, now);
            if now - begun > Duration::from_secs(seconds) {
                break;
            }
        }
        waited
    }

    #[test]
    fn a_disk_that_is_slow_now_and_then_takes_little_of_a_threads_time() {
        for slow in [2, 3, 10, 100] {
            for took in [20, 100, 1_000].map(Duration::from_millis) {
                let waited = waits(slow, took, 60);
                assert!(waited < Duration::from_millis(900).max(6 * took), "{slow} {took:?}: {waited:?}");
            }
        }
    }
}
