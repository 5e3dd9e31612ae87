//! What a partition rings when a fetch that waits for it has something new to read.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Where a partition stands in a fetch: whoever parks a bell chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place(pub(crate) u32);

/// The bell of a fetch or of a fetch session. It remembers which partitions have rung it.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// Guards the places of those that have rung, in order. A partition rings once each time it is parked, so there
    /// are never more than partitions.
    rung: Mutex<Vec<Place>>,
    notify: Notify,
}

impl Bell {
    /// Notes that the partition at `place` has something new, and wakes the one who waits.
    pub(crate) fn ring(&self, place: Place) {
        self.rung.lock().push(place);
        self.notify.notify_one();
    }

    /// Wakes another one who waits, in the stead of the one who was woken.
    pub(crate) fn wake_another(&self) {
        self.notify.notify_one();
    }

    /// Waits until it is rung, or returns at once if it was since the last wait.
    pub(crate) async fn heard(&self) {
        self.notify.notified().await;
    }

    /// The places that have rung since the last call.
    pub(crate) fn take_rung(&self) -> Vec<Place> {
        std::mem::take(&mut self.rung.lock())
    }
}
