//! The memory budget of requests: whoever wants to hold a request's bytes asks here first.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests up to this size in bytes have a share of their own, so that large ones, or ones that never
/// arrive whole, cannot keep out the small ones that a cluster lives by (heartbeats, metadata).
pub(super) const SMALL: usize = 16 * 1024;

/// The budget counts in units of this many bytes, rounded up, since a semaphore counts in u32.
const UNIT: usize = 1024;

/// Bounds the bytes of requests that are in memory at once.
///
/// Waiting is first come, first served within each share, so a large request is not starved by smaller ones.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    small_units: usize,
    large_units: usize,
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    _permit: OwnedSemaphorePermit,
}

impl MemoryBudget {
    /// A budget of `bytes`, an eighth of it kept for small requests.
    pub(crate) fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(16, u32::MAX as usize);
        let small_units = units / 8;
        let large_units = units - small_units;
        Self {
            small: Arc::new(Semaphore::new(small_units)),
            large: Arc::new(Semaphore::new(large_units)),
            small_units,
            large_units,
        }
    }

    /// How many bytes are held.
    pub(crate) fn used(&self) -> usize {
        let free = self.small.available_permits() + self.large.available_permits();
        (self.small_units + self.large_units).saturating_sub(free) * UNIT
    }

    /// Waits until `bytes` can be held. A request larger than the whole share takes all of it.
    pub(crate) async fn reserve(&self, bytes: usize) -> Reservation {
        let (share, units) = self.share(bytes);
        let permit = Arc::clone(share).acquire_many_owned(units).await;
        Reservation { _permit: permit.expect("the semaphore is never closed") }
    }

    /// Reserves `bytes` if nobody has to wait for it.
    pub(crate) fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let (share, units) = self.share(bytes);
        let permit = Arc::clone(share).try_acquire_many_owned(units).ok()?;
        Some(Reservation { _permit: permit })
    }

    fn share(&self, bytes: usize) -> (&Arc<Semaphore>, u32) {
        let units = bytes.div_ceil(UNIT).max(1);
        if bytes <= SMALL {
            (&self.small, units.min(self.small_units) as u32)
        } else {
            (&self.large, units.min(self.large_units) as u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_requests_cannot_take_the_share_of_small_ones() {
        let budget = MemoryBudget::new(1 << 20);
        let all = budget.reserve(100 << 20).await;
        assert!(budget.try_reserve(SMALL + 1).is_none());
        let small = budget.try_reserve(SMALL).expect("the small share is free");
        drop(all);
        assert!(budget.try_reserve(SMALL + 1).is_some());
        drop(small);
    }
}
