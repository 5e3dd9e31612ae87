//! The client's half of a share session with one broker (KIP-932): pure.
//!
//! A session belongs to the connection that it was opened over, and the records that come in it belong to the session: with
//! either they are gone. Requests say which epoch of the session they are, and name only the partitions that are new or gone.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_protocol::Uuid;

/// The epoch of a request that opens a session.
const OPENS: i32 = 0;

/// The epoch of a request that ends a session.
pub(super) const ENDS: i32 = -1;

/// Counts the sessions that a consumer has opened, with whichever broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SessionNumber(pub(super) u64);

/// A partition as requests name it: the id of its topic, and its index.
pub(super) type Key = (Uuid, i32);

/// What a fetch says of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) epoch: i32,
    pub(super) added: Vec<Key>,
    pub(super) forgotten: BTreeMap<Uuid, Vec<i32>>,
}

/// A session with a broker.
#[derive(Debug)]
pub(super) struct ShareSession {
    pub(super) number: SessionNumber,
    /// Of the next request.
    epoch: i32,
    named: BTreeSet<Key>,
}

impl ShareSession {
    pub(super) fn new(number: SessionNumber) -> Self {
        Self { number, epoch: OPENS, named: BTreeSet::new() }
    }

    /// Whether the broker knows it.
    pub(super) fn is_open(&self) -> bool {
        self.epoch != OPENS
    }

    /// The epoch of the next request that fetches nothing.
    pub(super) fn epoch(&self) -> i32 {
        self.epoch
    }

    /// What the next fetch says, that wants these partitions and no others.
    pub(super) fn plan(&mut self, wanted: BTreeSet<Key>) -> Plan {
        let added = wanted.difference(&self.named).copied().collect();
        let mut forgotten: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
        for (topic, partition) in self.named.difference(&wanted) {
            forgotten.entry(*topic).or_default().push(*partition);
        }
        self.named = wanted;
        Plan { epoch: self.epoch, added, forgotten }
    }

    /// The broker has answered a request of the session, and did not refuse it as a whole.
    pub(super) fn answered(&mut self) {
        self.epoch = self.epoch.checked_add(1).unwrap_or(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: Uuid = Uuid([7; 16]);

    #[test]
    fn only_what_changes_is_named() {
        let mut session = ShareSession::new(SessionNumber(1));
        let plan = |session: &mut ShareSession, wanted: &[i32]| {
            let plan = session.plan(wanted.iter().map(|at| (TOPIC, *at)).collect());
            session.answered();
            let added: Vec<i32> = plan.added.iter().map(|(_, at)| *at).collect();
            (plan.epoch, added, plan.forgotten.get(&TOPIC).cloned().unwrap_or_default())
        };
        assert!(!session.is_open());
        assert_eq!(plan(&mut session, &[0, 1]), (0, vec![0, 1], vec![]));
        assert!(session.is_open());
        assert_eq!(plan(&mut session, &[0, 1]), (1, vec![], vec![]));
        assert_eq!(plan(&mut session, &[1, 2]), (2, vec![2], vec![0]));
        session.epoch = i32::MAX;
        session.answered();
        assert_eq!(session.epoch(), 1, "0 would open another");
    }
}
