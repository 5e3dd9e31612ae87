//! Keeping to a number of open files.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::on_demand::Handle;

/// How many files are looked at before one more is opened than there should be: those that are being written to cannot be
/// closed, and opening a file must not take long because there are many of them.
const LOOKED_AT: usize = 64;

/// The files of segments that are open, in the order of a clock: when there are too many, the next one that has not been used since
/// the hand last passed it is closed. It is opened again when it is needed.
///
/// The number may be exceeded: a file with bytes that are not synced stays open, since the system tells of writes that
/// failed only those who have it open.
#[derive(Debug)]
pub struct OpenFiles {
    most: usize,
    /// Guards the order, and is held while a few of the files are looked at and closed.
    queue: Mutex<VecDeque<Weak<Handle>>>,
}

impl OpenFiles {
    /// At most about `most` files.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, queue: Mutex::default() })
    }

    /// Enters a file that has been opened, and closes others when there are too many. The file's lock may be held.
    pub(super) fn enter(&self, handle: &Arc<Handle>) {
        let mut queue = self.queue.lock();
        if !handle.is_queued.swap(true, Ordering::Relaxed) {
            queue.push_back(Arc::downgrade(handle));
        }
        let mut looked_at = 0;
        while queue.len() > self.most
            && looked_at < LOOKED_AT
            && let Some(next) = queue.pop_front()
        {
            let Some(handle) = next.upgrade() else { continue };
            if handle.close_if_unused() {
                // It is entered again when it is opened again; whoever does so now waits for the queue.
                handle.is_queued.store(false, Ordering::Relaxed);
            } else {
                queue.push_back(next);
                looked_at += 1;
            }
        }
    }
}
