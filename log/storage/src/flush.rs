//! Rounds of syncs: group commit for the whole data directory.

use std::sync::Arc;

use crate::log::Log;
use crate::manager::SyncListener;

/// Syncs logs in rounds: a round syncs every log that asked for it, in parallel, while the next one collects.
#[derive(Debug)]
pub struct SyncRounds {}

impl SyncRounds {
    /// Starts `threads` threads that sync and call `listener`.
    pub fn new(threads: usize, listener: SyncListener) -> Self {
        unimplemented!()
    }

    /// Puts `log` into the next round. Asking again before that round begins changes nothing.
    pub fn request(&self, log: &Arc<Log>) {
        unimplemented!()
    }

    /// How many rounds have ended.
    pub fn rounds(&self) -> u64 {
        unimplemented!()
    }
}
