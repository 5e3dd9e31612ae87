//! What a running application tells about itself.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::error::Error;
use crate::program::TaskId;

/// Something that happened in a running application.
#[derive(Clone, Debug)]
pub enum Event {
    /// A thread has these tasks now.
    Assigned {
        /// All of its tasks.
        tasks: Vec<TaskId>,
    },
    /// A store is being restored from its changelog.
    Restoring {
        /// The task whose store it is.
        task: TaskId,
        /// The store.
        store: String,
        /// How many offsets of the changelog are read.
        done: i64,
        /// How many there are to read.
        total: i64,
    },
    /// A task's state was dropped, and is restored from the changelogs: it was damaged, or ahead of the log.
    StateDropped {
        /// The task.
        task: TaskId,
        /// What was wrong with the state.
        reason: String,
    },
    /// History is being processed.
    Replaying {
        /// How much of what was there at the start is processed, from 0 to 1.
        fraction: f64,
        /// How many records are left to what is known of the inputs' ends.
        left: i64,
        /// When it will be done at the present pace, if that can be told.
        eta: Option<Duration>,
    },
    /// Everything that was in the inputs a moment ago, and could be read, is processed and committed: by all
    /// instances of the application, and through all sub-topologies. Said once.
    Live,
    /// A thread has committed.
    Committed(Committed),
    /// A thread has dropped what was not committed and opened its tasks again.
    Reopened {
        /// Why.
        reason: Arc<Error>,
    },
    /// A thread has ended because of this, and so does the application.
    Failed {
        /// Why.
        reason: Arc<Error>,
    },
}

/// What a commit covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Records taken from inputs.
    pub records_in: u64,
    /// Records written to sinks.
    pub records_out: u64,
    /// Records dropped because their window had closed.
    pub late: u64,
    /// Records dropped because they had no key.
    pub without_key: u64,
    /// Records put aside because they do not decode.
    pub dead_letters: u64,
    /// How long the commit took.
    pub took: Duration,
}

impl Committed {
    pub(crate) fn add(&mut self, other: &Self) {
        self.records_in += other.records_in;
        self.records_out += other.records_out;
        self.late += other.late;
        self.without_key += other.without_key;
        self.dead_letters += other.dead_letters;
        self.took += other.took;
    }
}

/// How many events wait for a reader before the oldest are dropped.
const EVENT_LIMIT: usize = 1024;

/// Where events go. A full channel drops its oldest one, so that a reader who does not keep up, or is not
/// there, costs nothing and still sees the latest.
#[derive(Clone)]
pub(crate) struct EventSender {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
}

impl EventSender {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = bounded(EVENT_LIMIT);
        Self { sender, receiver }
    }

    pub(crate) fn receiver(&self) -> Receiver<Event> {
        self.receiver.clone()
    }

    pub(crate) fn send(&self, event: Event) {
        let mut event = event;
        while let Err(TrySendError::Full(back)) = self.sender.try_send(event) {
            let _oldest = self.receiver.try_recv();
            event = back;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_events_are_kept() {
        let events = EventSender::new();
        for left in 0..2 * EVENT_LIMIT as i64 {
            events.send(Event::Replaying { fraction: 0.0, left, eta: None });
        }
        events.send(Event::Live);
        let received: Vec<_> = events.receiver().try_iter().collect();
        assert_eq!(received.len(), EVENT_LIMIT);
        assert!(matches!(received.last(), Some(Event::Live)));
    }
}
