//! A clock that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock::Clock;

/// Shows the time it was set to.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicI64,
}

impl ManualClock {
    /// A clock that shows this many ms since 1970.
    pub fn new(now_ms: i64) -> Arc<Self> {
        Arc::new(Self { now_ms: AtomicI64::new(now_ms) })
    }

    /// Moves the clock, in either direction.
    pub fn advance(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }
}
