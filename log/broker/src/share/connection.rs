//! The share sessions of one connection, which end with it.

use std::collections::HashSet;
use std::sync::Weak;

use parking_lot::Mutex;

use super::sessions::SessionKey;
use super::shares::Shares;

/// The share sessions that a connection has opened. Dropping it ends them, and what their members have acquired is free again.
#[derive(Debug)]
pub(crate) struct ConnectionSessions {
    /// Counts the connections.
    id: u64,
    shares: Weak<Shares>,
    /// Guards whose sessions they are; held for a look. There are no more than the node's sessions.
    keys: Mutex<HashSet<SessionKey>>,
}

impl ConnectionSessions {
    pub(super) fn new(id: u64, shares: Weak<Shares>) -> Self {
        Self { id, shares, keys: Mutex::default() }
    }

    /// Which connection it is.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Notes that it has opened a session.
    pub(crate) fn note(&self, key: &SessionKey) {
        let mut keys = self.keys.lock();
        if !keys.contains(key) {
            keys.insert(key.clone());
        }
    }

    /// Notes that a session has ended.
    pub(crate) fn forget(&self, key: &SessionKey) {
        self.keys.lock().remove(key);
    }
}

impl Drop for ConnectionSessions {
    fn drop(&mut self) {
        let Some(shares) = self.shares.upgrade() else { return };
        for key in self.keys.get_mut().drain() {
            shares.end_session(&key, Some(self.id));
        }
    }
}
