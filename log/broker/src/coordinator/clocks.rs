//! The clocks of the coordinators.

use std::sync::Arc;

use thalweg_storage::Clock;
use tokio::time::Instant;

use super::Now;

/// Both clocks: the wall clock of the log, and the runtime's monotonic one.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    wall: Arc<dyn Clock>,
    /// When monotonic time begins.
    origin: Instant,
    /// What the wall clock showed at first, and its own monotonic one.
    first: (i64, i64),
}

impl Clocks {
    /// Clocks with `wall` for timestamps; monotonic time begins now.
    pub(crate) fn new(wall: Arc<dyn Clock>) -> Self {
        let first = (wall.now_ms(), wall.monotonic_ms());
        Self { wall, origin: Instant::now(), first }
    }

    /// This instant.
    pub(crate) fn now(&self) -> Now {
        let monotonic_ms = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { monotonic_ms, wall_ms: self.wall.now_ms() }
    }

    /// The time of the wall clock, in ms, by which the age of what is forgotten with time is told. When the wall clock jumps
    /// ahead nothing is older for it, until the next start.
    pub(crate) fn ageing_ms(&self) -> i64 {
        let (wall_ms, monotonic_ms) = self.first;
        let passed_ms = self.wall.monotonic_ms().saturating_sub(monotonic_ms);
        self.wall.now_ms().min(wall_ms.saturating_add(passed_ms))
    }

    /// The instant at `monotonic_ms`, to sleep until.
    pub(crate) fn at(&self, monotonic_ms: u64) -> Instant {
        self.origin + std::time::Duration::from_millis(monotonic_ms)
    }
}
