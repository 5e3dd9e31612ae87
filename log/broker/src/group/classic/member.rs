//! A member of a group.

use bytes::Bytes;
use bytestring::ByteString;

use super::Ticket;

/// One protocol (for consumers: an assignor) that a member supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Protocol {
    pub(crate) name: ByteString,
    /// What the member says of itself in it (for consumers: the subscription).
    pub(crate) metadata: Bytes,
}

/// A member of a group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: ByteString,
    /// Set for a static member.
    pub(crate) instance_id: Option<ByteString>,
    pub(crate) client_id: ByteString,
    pub(crate) client_host: ByteString,
    pub(crate) session_timeout_ms: u64,
    pub(crate) rebalance_timeout_ms: u64,
    /// In order of preference.
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) assignment: Bytes,
    /// Whether the member has not been through a rebalance yet.
    pub(super) is_new: bool,
    /// Its JoinGroup that waits for the others.
    pub(super) joining: Option<Ticket>,
    /// Its SyncGroup that waits for the leader's.
    pub(super) syncing: Option<Ticket>,
    /// Whether it has asked for its assignment of this generation.
    pub(super) has_synced: bool,
    /// When the session lapses, in monotonic ms; not while a request of the member waits here.
    pub(super) session_deadline: u64,
}

impl Member {
    /// What the member said of itself in protocol `name`; empty if it does not support it.
    pub(crate) fn metadata(&self, name: &str) -> Bytes {
        self.protocols.iter().find(|p| p.name == name).map(|p| p.metadata.clone()).unwrap_or_default()
    }

    /// When the member is given up, in monotonic ms; `None` while a request of it waits here. A member that
    /// has yet to go through its first rebalance is given up even then: its client may be long gone, and
    /// the answer to its JoinGroup would be what tells it its id.
    pub(super) fn deadline(&self) -> Option<u64> {
        let waits = self.joining.is_some() || self.syncing.is_some();
        (!waits || self.is_new).then_some(self.session_deadline)
    }
}
