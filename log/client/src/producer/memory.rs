//! The bound on the bytes that a producer holds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Who has waited goes on when this part of the budget is free.
const WORTHWHILE: usize = 4;

/// A budget of bytes with two ways to wait for room: a blocked thread and a future.
pub(super) struct Memory {
    limit: usize,
    used: AtomicUsize,
    waiting: AtomicUsize,
    /// Guards nothing; the condition is `used`.
    gate: Mutex<()>,
    room: Condvar,
    room_async: Notify,
}

impl Memory {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            gate: Mutex::new(()),
            room: Condvar::new(),
            room_async: Notify::new(),
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    /// Takes `bytes` if there is room; if nothing is in use, even more than the limit, or a record larger
    /// than the budget could never be sent.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| (used == 0 || used + bytes <= self.limit).then_some(used + bytes);
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).is_ok()
    }

    pub(super) fn give_back(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::SeqCst);
        debug_assert!(before >= bytes, "more is given back than was taken");
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let _gate = self.gate.lock();
            self.room.notify_all();
            self.room_async.notify_waiters();
        }
    }

    /// Whether it is worth going on: `bytes` fit, and so much else that the next batches will not be cut
    /// short.
    fn has_room(&self, bytes: usize) -> bool {
        let used = self.used();
        used == 0 || used + bytes.max(self.limit / WORTHWHILE) <= self.limit
    }

    /// Blocks the thread until `bytes` would fit, at most until `deadline`; says whether they do.
    pub(super) fn wait_blocking(&self, bytes: usize, deadline: Instant) -> bool {
        let _waiting = Waiting::new(&self.waiting);
        let mut gate = self.gate.lock();
        while !self.has_room(bytes) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            self.room.wait_for(&mut gate, left);
        }
        true
    }

    /// Resolves once `bytes` would fit, or at `deadline`; says whether they do.
    pub(super) async fn wait(&self, bytes: usize, deadline: Instant) -> bool {
        let _waiting = Waiting::new(&self.waiting);
        loop {
            let notified = self.room_async.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.has_room(bytes) {
                return true;
            }
            if tokio::time::timeout_at(deadline, notified).await.is_err() {
                return self.has_room(bytes);
            }
        }
    }
}

/// Counts a waiter for as long as it lives, also when its future is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_thread_gets_room_when_some_is_given_back() {
        let memory = Memory::new(100);
        assert!(memory.take(60) && !memory.take(50) && memory.take(40));
        let deadline = Instant::now() + Duration::from_secs(10);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| memory.wait_blocking(50, deadline));
            memory.give_back(60);
            assert!(waiter.join().expect("the waiter ends"));
        });
        assert!(!memory.wait_blocking(61, Instant::now() + Duration::from_millis(5)));
        memory.give_back(40);
        assert!(memory.take(1_000), "an empty budget takes what is larger than itself");
    }

    #[tokio::test]
    async fn a_waiting_future_gets_room_or_gives_up_at_its_deadline() {
        let memory = Memory::new(100);
        assert!(memory.take(100));
        let deadline = Instant::now() + Duration::from_millis(200);
        let (waited, ()) = tokio::join!(memory.wait(10, deadline), async { memory.give_back(30) });
        assert!(waited);
        assert!(!memory.wait(40, deadline).await);
        assert!(Instant::now() >= deadline);
    }
}
