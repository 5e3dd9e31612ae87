//! Work that waits for the disk, on threads that may: those that serve connections must not.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Threads that may wait for the disk, so many at a time. Clones share them.
#[derive(Clone)]
pub(crate) struct DiskThreads {
    shared: Arc<Shared>,
}

struct Shared {
    most: usize,
    /// Guards what waits for a thread.
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// How many threads are at work; each goes on until nothing waits.
    at_work: usize,
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
}

impl DiskThreads {
    /// At most `count` at a time, at least one.
    pub(crate) fn new(count: usize) -> Self {
        Self { shared: Arc::new(Shared { most: count.max(1), queue: Mutex::default() }) }
    }

    /// Runs `work` when its turn has come, which does not depend on who waits for it: a connection that is busy with an answer
    /// looks after its other requests only later, and must not keep a thread until then. Dropping the future does not end what
    /// has begun; what has not is left out.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, outcome) = oneshot::channel();
        self.shared.enqueue(Box::new(move || {
            if !sender.is_closed() {
                // Who does not wait any more does not want to know.
                let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
            }
        }));
        match outcome.await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => resume_unwind(panic),
            // The runtime is going down, and with it whoever waits here.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Shared {
    fn enqueue(self: &Arc<Self>, job: Box<dyn FnOnce() + Send>) {
        let mut queue = self.queue.lock();
        queue.waiting.push_back(job);
        if queue.at_work < self.most {
            queue.at_work += 1;
            drop(queue);
            let shared = Arc::clone(self);
            spawn_blocking(move || shared.work());
        }
    }

    fn work(&self) {
        loop {
            let mut queue = self.queue.lock();
            let Some(job) = queue.waiting.pop_front() else {
                queue.at_work -= 1;
                return;
            };
            drop(queue);
            job();
        }
    }
}

impl fmt::Debug for DiskThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskThreads").field("most", &self.shared.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    /// Two requests of a connection, the second of which is not looked after while the first is answered.
    #[tokio::test]
    async fn nobody_waits_for_who_does_not_look() {
        let threads = DiskThreads::new(1);
        let mut first = pin!(threads.run(|| std::thread::sleep(Duration::from_millis(20))));
        let mut unattended: Vec<_> = (0..3).map(|at| Box::pin(threads.run(move || at))).collect();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(first.as_mut().poll(&mut context), Poll::Pending);
        for one in &mut unattended {
            assert_eq!(one.as_mut().poll(&mut context), Poll::Pending);
        }
        let within = Duration::from_secs(10);
        timeout(within, first).await.expect("the first is done");
        assert_eq!(timeout(within, threads.run(|| 7)).await, Ok(7));
        for (at, one) in unattended.into_iter().enumerate() {
            assert_eq!(one.await, at);
        }
    }

    #[tokio::test]
    async fn so_many_work_at_once_and_what_nobody_wants_is_left_out() {
        let threads = DiskThreads::new(2);
        let (now, most, done) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let work = || {
            let (now, most, done) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&done));
            move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(10));
                now.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
            }
        };
        let mut running: Vec<_> = (0..10).map(|_| Box::pin(threads.run(work()))).collect();
        let mut context = Context::from_waker(Waker::noop());
        for one in &mut running {
            assert_eq!(one.as_mut().poll(&mut context), Poll::Pending);
        }
        running.truncate(6);
        for one in running {
            one.await;
        }
        sleep(Duration::from_millis(30)).await;
        assert_eq!((most.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (2, 6));
        assert_eq!(threads.run(|| 1).await, 1, "the threads are there again");
    }

    #[tokio::test]
    async fn a_panic_reaches_who_waits_and_nobody_else() {
        let threads = DiskThreads::new(1);
        let panicking = threads.clone();
        let outcome = tokio::spawn(async move { panicking.run(|| panic!("as it should")).await }).await;
        assert!(outcome.expect_err("it panicked").is_panic());
        assert_eq!(threads.run(|| 1).await, 1);
    }
}
