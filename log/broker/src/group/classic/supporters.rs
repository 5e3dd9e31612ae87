//! Which protocols all members of a group have in common.

use std::collections::BTreeMap;

use bytestring::ByteString;

use super::Protocol;

/// How many members support each protocol: with thousands of them every JoinGroup would otherwise go through all.
#[derive(Debug, Default)]
pub(super) struct Supporters {
    counts: BTreeMap<ByteString, usize>,
}

impl Supporters {
    /// A member supports these from now on.
    pub(super) fn add(&mut self, protocols: &[Protocol]) {
        for protocol in distinct(protocols) {
            *self.counts.entry(protocol.name.clone()).or_default() += 1;
        }
    }

    /// A member that supported these is gone, or supports others.
    pub(super) fn remove(&mut self, protocols: &[Protocol]) {
        for protocol in distinct(protocols) {
            let Some(count) = self.counts.get_mut(&protocol.name) else { continue };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&protocol.name);
            }
        }
    }

    /// How many members support `name`.
    pub(super) fn of(&self, name: &str) -> usize {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

/// A member may name a protocol twice.
fn distinct(protocols: &[Protocol]) -> impl Iterator<Item = &Protocol> {
    let is_first = |at: usize| protocols[..at].iter().all(|before| before.name != protocols[at].name);
    protocols.iter().enumerate().filter(move |(at, _)| is_first(*at)).map(|(_, protocol)| protocol)
}
