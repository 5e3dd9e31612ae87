//! Fetch requests that are parked until there is enough to read.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::bell::{Bell, Place};

/// The fetches parked on one partition.
#[derive(Debug, Default)]
pub(crate) struct PendingFetch {
    /// Guards the bells to ring when more can be read, by their address: there may be thousands.
    parked: Mutex<HashMap<usize, (Arc<Bell>, Place)>>,
}

impl PendingFetch {
    /// Parks a fetch: its bell rings at the next advance of what consumers may read. A fetch registers before
    /// it looks whether there is enough, so that no advance is missed.
    pub(crate) fn register(&self, bell: &Arc<Bell>, place: Place) {
        let mut parked = self.parked.lock();
        let entry = parked.entry(address(bell)).or_insert_with(|| (Arc::clone(bell), place));
        entry.1 = place;
    }

    /// Takes a fetch back out of the queue.
    pub(crate) fn deregister(&self, bell: &Arc<Bell>) {
        self.parked.lock().remove(&address(bell));
    }

    /// Rings every bell, and forgets it.
    pub(crate) fn release(&self) {
        for (_, (bell, place)) in self.parked.lock().drain() {
            bell.ring(place);
        }
    }
}

/// Nobody else has it for as long as the bell is parked.
fn address(bell: &Arc<Bell>) -> usize {
    Arc::as_ptr(bell).addr()
}
