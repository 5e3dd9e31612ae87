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
}

impl Clocks {
    /// Clocks with `wall` for timestamps; monotonic time begins now.
    pub(crate) fn new(wall: Arc<dyn Clock>) -> Self {
        Self { wall, origin: Instant::now() }
    }

    /// This instant.
    pub(crate) fn now(&self) -> Now {
        let monotonic_ms = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { monotonic_ms, wall_ms: self.wall.now_ms() }
    }

    /// The instant at `monotonic_ms`, to sleep until.
    pub(crate) fn at(&self, monotonic_ms: u64) -> Instant {
        self.origin + std::time::Duration::from_millis(monotonic_ms)
    }
}
