//! Keeping to a number of open files.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::on_demand::{Closed, Handle};

/// How many files are looked at before one more is opened than there should be: those that are being written to cannot be
/// closed, and opening a file must not take long because there are many of them.
const LOOKED_AT: usize = 64;
/// How many are closed when the process has no descriptors left, so that not every open meets with that.
const ROOM: usize = 64;

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
        let too_many = queue.len().saturating_sub(self.most);
        turn(&mut queue, too_many);
    }

    /// Closes some files. Returns whether there were any.
    pub(super) fn make_room(&self) -> bool {
        let mut queue = self.queue.lock();
        let all = queue.len();
        // Twice round: the first time those that were used are passed over.
        (0..=2 * all / LOOKED_AT).map(|_| turn(&mut queue, ROOM)).sum::<usize>() > 0
    }
}

/// Turns the hand until `count` files less are in the queue or enough have been looked at. Returns how many have been
/// closed by this.
fn turn(queue: &mut VecDeque<Weak<Handle>>, count: usize) -> usize {
    let (mut fewer, mut looked_at, mut closed) = (0, 0, 0);
    while fewer < count
        && looked_at < LOOKED_AT
        && let Some(next) = queue.pop_front()
    {
        let Some(handle) = next.upgrade() else {
            fewer += 1;
            continue;
        };
        match handle.close_if_unused() {
            Closed::Not => {
                queue.push_back(next);
                looked_at += 1;
            }
            outcome => {
                // It is entered again when it is opened again; whoever does so now waits for the queue.
                handle.is_queued.store(false, Ordering::Relaxed);
                fewer += 1;
                closed += usize::from(matches!(outcome, Closed::Now(_)));
            }
        }
    }
    closed
}
