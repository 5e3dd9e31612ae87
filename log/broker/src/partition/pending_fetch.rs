//! Fetch requests that are parked until there is enough to read.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The fetches parked on one partition.
#[derive(Debug, Default)]
pub(crate) struct PendingFetch {
    /// Guards the bells to ring when more can be read.
    parked: Mutex<Vec<Arc<Notify>>>,
}

impl PendingFetch {
    /// Parks a fetch: its bell rings at the next advance of what consumers may read. A fetch registers before
    /// it looks whether there is enough, so that no advance is missed.
    pub(crate) fn register(&self, bell: &Arc<Notify>) {
        let mut parked = self.parked.lock();
        if !parked.iter().any(|other| Arc::ptr_eq(other, bell)) {
            parked.push(Arc::clone(bell));
        }
    }

    /// Takes a fetch back out of the queue.
    pub(crate) fn deregister(&self, bell: &Arc<Notify>) {
        self.parked.lock().retain(|other| !Arc::ptr_eq(other, bell));
    }

    /// Rings every bell.
    pub(crate) fn release(&self) {
        for bell in self.parked.lock().drain(..) {
            bell.notify_one();
        }
    }
}
