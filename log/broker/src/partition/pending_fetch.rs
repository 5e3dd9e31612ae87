//! Fetch requests that are parked until there is enough to read.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The fetches parked on one partition.
#[derive(Debug, Default)]
pub(crate) struct PendingFetch {
    /// Guards the bells to ring when more can be read, by their address: there may be thousands.
    parked: Mutex<HashMap<usize, Arc<Notify>>>,
}

impl PendingFetch {
    /// Parks a fetch: its bell rings at the next advance of what consumers may read. A fetch registers before
    /// it looks whether there is enough, so that no advance is missed.
    pub(crate) fn register(&self, bell: &Arc<Notify>) {
        self.parked.lock().entry(address(bell)).or_insert_with(|| Arc::clone(bell));
    }

    /// Takes a fetch back out of the queue.
    pub(crate) fn deregister(&self, bell: &Arc<Notify>) {
        self.parked.lock().remove(&address(bell));
    }

    /// Rings every bell.
    pub(crate) fn release(&self) {
        for (_, bell) in self.parked.lock().drain() {
            bell.notify_one();
        }
    }
}

/// Nobody else has it for as long as the bell is parked.
fn address(bell: &Arc<Notify>) -> usize {
    Arc::as_ptr(bell).addr()
}
