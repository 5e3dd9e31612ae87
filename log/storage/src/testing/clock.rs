//! A clock that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock::Clock;

/// Shows the time it was set to.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicI64,
    monotonic_ms: AtomicI64,
}

impl ManualClock {
    /// A clock that shows this many ms since 1970.
    pub fn new(now_ms: i64) -> Arc<Self> {
        Arc::new(Self { now_ms: AtomicI64::new(now_ms), monotonic_ms: AtomicI64::new(0) })
    }

    /// Lets time pass.
    ///
    /// # Panics
    /// When it is to go back: that is a jump.
    pub fn advance(&self, by_ms: i64) {
        assert!(by_ms >= 0, "time does not go back");
        self.monotonic_ms.fetch_add(by_ms, Ordering::SeqCst);
        self.jump(by_ms);
    }

    /// Sets the wall clock otherwise, in either direction; no time passes.
    pub fn jump(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn monotonic_ms(&self) -> i64 {
        self.monotonic_ms.load(Ordering::SeqCst)
    }
}
