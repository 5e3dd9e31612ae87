//! Whether the disk is so swift that the thread which appended may carry out the round.
//!
//! Handing a round to another thread costs two switches of context and their waits, which is more than a write takes that
//! a fast disk carries out in some ten microseconds. Where writes take longer, threads that serve connections must not wait.
//! On a busy machine many writes seem to: their threads do not run again at once. So it is not the average that counts, but
//! how many are swift.

use std::time::Duration;

/// A write is swift that takes no longer.
const SWIFT: Duration = Duration::from_micros(300);
/// So many of the last writes count, the newer the more.
const WINDOW: f32 = 16.0;
/// So large a part of them must be swift.
const ENOUGH: f32 = 0.4;

/// How swift writes into the journal are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Swiftness {
    /// Which part of the last ones was.
    part: f32,
}

impl Swiftness {
    /// Whether a thread that serves connections may wait for one.
    pub(crate) fn is_swift(self) -> bool {
        self.part >= ENOUGH
    }

    /// One took so long, whoever waited for it.
    pub(crate) fn note(&mut self, took: Duration) {
        let this = if took <= SWIFT { 1.0 } else { 0.0 };
        self.part += (this - self.part) / WINDOW;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many writes that take so long in turn it is swift or is not any more.
    fn changes_after(swiftness: &mut Swiftness, micros: &[u64]) -> Option<usize> {
        let before = swiftness.is_swift();
        micros.iter().cycle().take(1_000).position(|&micros| {
            swiftness.note(Duration::from_micros(micros));
            swiftness.is_swift() != before
        })
    }

    #[test]
    fn a_slow_disk_is_noticed_soon_and_a_busy_machine_is_none() {
        let mut swiftness = Swiftness::default();
        assert!(!swiftness.is_swift(), "nothing is known of it");
        assert_eq!(changes_after(&mut swiftness, &[1_000]), None);
        assert_eq!(changes_after(&mut swiftness, &[80]), Some(7));
        assert_eq!(changes_after(&mut swiftness, &[80, 2_000]), None);
        assert_eq!(changes_after(&mut swiftness, &[80]), None);
        assert_eq!(changes_after(&mut swiftness, &[800]), Some(14));
        assert_eq!(changes_after(&mut swiftness, &[800, 2_000, 90]), None);
    }
}
