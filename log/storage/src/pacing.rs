//! When a round of syncs is worth beginning.
//!
//! A sync costs the same whatever it carries, and it is the larger part of what a small batch costs. Clients that wait for
//! their answers send the next batches only then: rounds that begin as soon as anything is there carry one batch each and
//! stay so. So while much comes in, a round waits until about as much is there as clients have shown to have under way, but
//! never longer than an interval from the beginning of the one before. PostgreSQL's `commit_delay` has the same reason.

use std::time::Duration;

/// Rounds do not wait for less than this: where that little comes in, a sync more costs nothing that anyone lacks.
const LEAST_BYTES: u64 = 32 << 10;
/// Nor for more than this: then a sync is cheap beside its bytes.
const MOST_BYTES: u64 = 1 << 20;
/// Two rounds that wait begin no further apart than this.
const INTERVAL: Duration = Duration::from_millis(2);
/// After having waited in vain so many rounds do not try for more.
const MODEST_ROUNDS: u32 = 64;

/// What rounds have learnt of how much there is to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pacing {
    /// So many unsynced bytes are worth a round.
    enough: u64,
    /// For so many rounds it is not raised.
    modest: u32,
}

impl Pacing {
    /// How long a round has to wait when so many bytes are unsynced and the round before began so long ago.
    pub(crate) fn wait(self, unsynced: u64, since_last: Duration) -> Duration {
        match self.enough {
            ..LEAST_BYTES => Duration::ZERO,
            enough if unsynced >= enough => Duration::ZERO,
            _ => INTERVAL.saturating_sub(since_last),
        }
    }

    /// So many bytes are worth a round.
    pub(crate) fn enough(self) -> u64 {
        self.enough
    }

    /// A round begins with so many bytes. It shows what is worth waiting for: twice as much, if there is more; where it has
    /// waited and not got enough, this is about all that clients send before they are answered, or within an interval.
    pub(crate) fn begin(&mut self, unsynced: u64, has_waited: bool) {
        if has_waited && unsynced < self.enough {
            *self = Self { enough: unsynced / 4 * 3, modest: MODEST_ROUNDS };
        } else if self.modest > 0 {
            self.modest -= 1;
        } else {
            self.enough = unsynced.saturating_mul(2).min(MOST_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rounds carry in the end, in batches of 16 KiB, when clients have at most so many under way and send them fast.
    fn carried(window: u64) -> (u64, u32) {
        let mut pacing = Pacing::default();
        let (mut last, mut in_vain) = (1, 0);
        for _ in 0..10 * MODEST_ROUNDS {
            // Clients send as many as were answered, and more while the round waits.
            let wanted = pacing.enough().div_ceil(BATCH);
            let waits = !pacing.wait(last * BATCH, Duration::ZERO).is_zero();
            let now = if waits { wanted.min(window) } else { last };
            in_vain += u32::from(waits && now < wanted);
            pacing.begin(now * BATCH, waits);
            last = now;
        }
        (last, in_vain)
    }

    const BATCH: u64 = 16 << 10;

    #[test]
    fn rounds_come_to_carry_nearly_all_that_clients_have_under_way() {
        // With a single batch under way there is nothing to wait for, and it is tried seldom.
        assert_eq!(carried(1), (1, 10));
        let (five, in_vain) = carried(5);
        assert!((4..=5).contains(&five) && in_vain <= 10, "{five} {in_vain}");
        let (thirty, in_vain) = carried(30);
        assert!((22..=30).contains(&thirty) && in_vain <= 10, "{thirty} {in_vain}");
        assert_eq!(carried(1_000), (64, 0));
    }

    #[test]
    fn what_comes_seldom_or_is_little_does_not_wait() {
        let mut pacing = Pacing::default();
        for _ in 0..1_000 {
            assert_eq!(pacing.wait(300, Duration::ZERO), Duration::ZERO);
            pacing.begin(300, false);
        }
        let large = Pacing { enough: MOST_BYTES, modest: 0 };
        assert_eq!(large.wait(1, INTERVAL), Duration::ZERO);
        assert_eq!(large.wait(1, INTERVAL / 4), INTERVAL / 4 * 3);
        assert_eq!(large.wait(MOST_BYTES, Duration::ZERO), Duration::ZERO);
    }
}
