//! What a round may still spend, and whether it may go on.

use super::throttle::Throttle;
use crate::error::Error;

/// Why a round has ended before its end.
#[derive(Debug)]
pub(super) enum Halt {
    /// Somebody wanted it to stop.
    Stopped,
    /// The log's segments were changed under it: truncated, deleted or closed.
    Changed,
    /// Something went wrong.
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        match error {
            Error::LogClosed { .. } => Self::Changed,
            error if error.is_not_found() => Self::Changed,
            error => Self::Failed(error),
        }
    }
}

/// The bytes of a round.
pub(super) struct Budget<'a> {
    pub(super) throttle: &'a mut Throttle,
    pub(super) should_stop: &'a dyn Fn() -> bool,
    pub(super) read: u64,
    pub(super) written: u64,
}

impl Budget<'_> {
    pub(super) fn spend_read(&mut self, bytes: u64) -> Result<(), Halt> {
        self.read += bytes;
        self.spend(bytes)
    }

    pub(super) fn spend_write(&mut self, bytes: u64) -> Result<(), Halt> {
        self.written += bytes;
        self.spend(bytes)
    }

    fn spend(&mut self, bytes: u64) -> Result<(), Halt> {
        match self.throttle.spend(bytes, self.should_stop) {
            true => Ok(()),
            false => Err(Halt::Stopped),
        }
    }
}
