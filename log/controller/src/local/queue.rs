//! The proposals that wait for the log.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::command::Command;
use crate::config::LocalConfig;
use crate::driver::{Done, ProposeError};

/// A command that waits for its round.
pub(super) struct Waiting {
    pub(super) command: Command,
    /// As it goes into the log; `None` for a command that only asks what would happen.
    pub(super) encoded: Option<Vec<u8>>,
    pub(super) done: Done,
}

/// The proposals that wait for the log, at most as many as the config says.
pub(super) struct Queue {
    dir: PathBuf,
    config: LocalConfig,
    /// Guards what waits and whether more may come.
    content: Mutex<Content>,
    changed: Condvar,
}

#[derive(Default)]
struct Content {
    waiting: Vec<Waiting>,
    bytes: usize,
    /// Why nothing is accepted any more.
    refusal: Option<ProposeError>,
}

impl Queue {
    pub(super) fn new(dir: PathBuf, config: LocalConfig) -> Self {
        Self { dir, config, content: Mutex::default(), changed: Condvar::new() }
    }

    /// Lets a command wait, or answers at once why it may not.
    pub(super) fn push(&self, command: Command, done: Done) {
        let encoded = command.encode();
        let size = encoded.len();
        let limit = self.config.max_command_bytes;
        if size > limit {
            return done.answer(Err(ProposeError::TooLarge { bytes: size, limit }));
        }
        let mut content = self.lock();
        let refusal = content.refusal.clone().or_else(|| self.overload(&content, size));
        if let Some(refusal) = refusal {
            // The answer may run any code, and must not do so under the lock.
            drop(content);
            return done.answer(Err(refusal));
        }
        let encoded = (!command.is_validate_only()).then_some(encoded);
        content.bytes += size;
        content.waiting.push(Waiting { command, encoded, done });
        drop(content);
        self.changed.notify_one();
    }

    /// Waits until there is something to do, and takes it all; `None` when the queue is closed and empty.
    pub(super) fn take(&self) -> Option<Vec<Waiting>> {
        let mut content = self.lock();
        while content.waiting.is_empty() {
            if content.refusal.is_some() {
                return None;
            }
            content = self.changed.wait(content).unwrap_or_else(PoisonError::into_inner);
        }
        content.bytes = 0;
        Some(std::mem::take(&mut content.waiting))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Refuses what comes from now on; what waits is still carried out.
    pub(super) fn close(&self) {
        self.lock().refusal.get_or_insert(ProposeError::Closed);
        self.changed.notify_all();
    }

    /// Refuses what waits and what comes from now on: the log cannot be written any more. A queue that was
    /// closed before stays so.
    pub(super) fn go_offline(&self, reason: String) {
        let refusal = ProposeError::Offline { dir: self.dir.clone(), reason };
        let mut content = self.lock();
        let refusal = content.refusal.get_or_insert(refusal).clone();
        let waiting = std::mem::take(&mut content.waiting);
        drop(content);
        self.changed.notify_all();
        for waiting in waiting {
            waiting.done.answer(Err(refusal.clone()));
        }
    }

    fn overload(&self, content: &Content, size: usize) -> Option<ProposeError> {
        let waiting = content.waiting.len();
        let too_many = waiting >= self.config.max_waiting_proposals;
        let too_large = waiting > 0 && content.bytes + size > self.config.max_waiting_bytes;
        (too_many || too_large).then_some(ProposeError::Overloaded { waiting })
    }

    /// Nothing that could panic is done under the lock, so what it guards is whole.
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
