//! Work that waits for the disk, on threads that may: those that serve connections must not.

use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Threads that may wait for the disk, so many at a time. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct DiskThreads {
    turns: Arc<Semaphore>,
}

impl DiskThreads {
    /// At most `count` at a time, at least one.
    pub(crate) fn new(count: usize) -> Self {
        Self { turns: Arc::new(Semaphore::new(count.max(1))) }
    }

    /// Runs `work` when its turn has come. Dropping the future does not end what has begun.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let turn = Arc::clone(&self.turns).acquire_owned().await.expect("the semaphore is never closed");
        let worked = spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        match worked.await {
            Ok(outcome) => outcome,
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is going down, and with it whoever waits here.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
