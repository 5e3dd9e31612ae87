//! Warnings that would flood the log if each were written.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How much time lies between two warnings of the same kind.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(10);

/// Decides when a kind of warning is due again.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    /// Guards when the warning was last written, and how many times it has come up since.
    state: Mutex<(Option<Instant>, u64)>,
}

impl Seldom {
    /// It has come up at `now`: how often since it was last written, if it is to be written now.
    pub(crate) fn due(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        let (written, since) = &mut *state;
        *since += 1;
        if written.is_some_and(|written| now.saturating_duration_since(written) < BETWEEN_WARNINGS) {
            return None;
        }
        *written = Some(now);
        Some(std::mem::take(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_is_counted() {
        let (seldom, start) = (Seldom::default(), Instant::now());
        let due = |seconds| seldom.due(start + Duration::from_secs(seconds));
        assert_eq!([due(0), due(1), due(9), due(10), due(21)], [Some(1), None, None, Some(3), Some(1)]);
    }
}
